"""Numerical search: the same answer in every run, every point checked, plateaus and curves rejected."""

import math

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import brentq

from fixedpoints.newton import Vanishing, converged, spread, starts
from fixedpoints.search import search
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

x, y, z = sp.symbols("x y z")

#: The damped pendulum on two and a half turns and a bit: it rests at 0, pi, ..., 5 pi.
PENDULUM = ODESystem(VectorField((x, y), (y, -sp.sin(x) - y / 5)))
SIX = ((-1.6, 17.3), (-5.0, 5.0))


def system(*rhs, state=(x, y, z)):
    return ODESystem(VectorField(state[: len(rhs)], rhs))


def locations(found):
    return sorted(tuple(f.location.tolist()) for f in found.found)


def test_six_roots_the_same_in_every_run():
    first = [f.location.tolist() for f in search(PENDULUM, SIX).found]
    assert sorted(first) == [pytest.approx([k * math.pi, 0], abs=1e-14) for k in range(6)]
    for _ in range(9):
        assert [f.location.tolist() for f in search(PENDULUM, SIX).found] == first


def test_deflation_reaches_all_27():
    # Case fp-count-27 (DynamicalSystems.jl 187), here without algebra and without a box.
    found = search(system(x - x**3, y - y**3, z - z**3))
    signs = (-1.0, 0.0, 1.0)
    expected = [(a, b, c) for a in signs for b in signs for c in signs]
    assert locations(found) == [pytest.approx(p, abs=1e-15) for p in expected]
    assert all(f.zero is not None for f in found.found)


def test_known_zeros_are_not_found_again():
    known = [(k * math.pi, 0.0) for k in range(5)]
    assert locations(search(PENDULUM, SIX, known=known)) == [pytest.approx((5 * math.pi, 0), abs=1e-14)]
    assert search(PENDULUM, SIX, known=[*known, (5 * math.pi, 0.0)]).found == ()


def test_a_plateau_that_underflows_is_no_zero():
    # exp(-x^2) (x + exp(-x^2)/2) underflows beyond |x| = 27; by monotony of x + exp(-x^2)/2 it has one zero.
    root = brentq(lambda s: s + math.exp(-s * s) / 2, -1, 0, xtol=1e-15)
    found = search(system(x * sp.exp(-(x**2)) + sp.exp(-2 * x**2) / 2))
    assert locations(found) == [(pytest.approx(root, abs=1e-14),)]
    assert found.rejected
    place, reason = found.rejected[0]
    assert abs(place["x"]) > 20
    assert "small but not zero" in reason


def test_a_saturated_softmax_is_no_minimum():
    # p = softmax(a u, 0) with scores far apart is 0 or 1 to all digits; p = 1/3 is the only stationary point.
    p = 1 / (1 + sp.exp(-40 * x))
    found = search(system(p * (1 - p) * (sp.Rational(1, 3) - p)), ((-60.0, 60.0),))
    assert locations(found) == [(pytest.approx(-math.log(2) / 40, abs=1e-15),)]
    assert any("small but not zero" in reason for _, reason in found.rejected)


def test_a_plateau_is_rejected_without_ball_arithmetic_too():
    # gamma(x + 30) has no range here, so that floats alone decide: both field and slope are zero on the plateau.
    p = sp.exp(-((x - 1) ** 2) * sp.gamma(x + 30))
    found = search(system((x - 2) * p), ((-20.0, 20.0),))
    assert found.found == ()
    assert any("a plateau cannot be told from a zero" in reason for _, reason in found.rejected)


def test_a_double_zero_is_recognised():
    found = search(system(sp.exp(x**2) - sp.cos(x)))
    assert locations(found) == [(0.0,)]
    assert found.found[0].zero.multiplicity == 2


def test_a_zero_beyond_the_edge_of_the_domain_is_none():
    # max(x, 0)^(3/2) + x + 1 vanishes at -1, where x^(3/2) is no real number.
    found = search(system(x**1.5 + x + 1))
    assert found.found == ()


def test_points_on_a_curve_of_zeros_are_rejected():
    found = search(system(sp.sin(x + y) - sp.exp(x + y) + 1, sp.sin(2 * x + 2 * y)), ((-1.0, 1.0),) * 2)
    assert found.found == ()
    assert any("the Jacobian is singular" in reason for _, reason in found.rejected)


def test_dependent_rates_are_a_component():
    # A <-> B with a saturating rate: what leaves A enters B.
    rate = sp.tanh(x) - 2 * sp.tanh(y)
    found = search(system(-rate, rate))
    assert [(c.equations, c.dimension) for c in found.components] == [((-rate,), 1)]
    assert found.found == ()


def test_two_dozen_states():
    # x_i' = b_i - x_i + tanh(x_{i+1}) / 2 is a contraction; b is chosen so that it rests at given r.
    n = 24
    states = sp.symbols(f"x_0:{n}")
    rest = [math.sin(3 * k) for k in range(n)]
    pull = [r - math.tanh(rest[(k + 1) % n]) / 2 for k, r in enumerate(rest)]
    rhs = [
        b - s + sp.tanh(states[(k + 1) % n]) / 2 for k, (b, s) in enumerate(zip(pull, states, strict=True))
    ]
    (only,) = search(system(*rhs, state=states)).found
    # The right-hand side is off by rounding, 1e-16, and the Jacobian's inverse is at most 2.
    assert only.location == pytest.approx(rest, abs=1e-14)
    assert only.zero is None


def test_fixed_points_of_a_map():
    logistic = MapSystem(IteratedMap((x,), (4 * x * (1 - x),)))
    assert locations(search(logistic)) == [(0.0,), (0.75,)]


def test_the_budget_ends_a_search():
    found = search(PENDULUM, SIX, budget=1e-9)
    assert not found.finished
    assert found.found == ()


def test_starts_fill_the_box_evenly():
    points = spread(512, [(0, 1), (2, 4)])
    assert ((points >= [[0], [2]]) & (points <= [[1], [4]])).all()
    counts, *_ = np.histogram2d(*points, bins=4, range=[(0, 1), (2, 4)])
    assert counts.min() > 0.7 * 512 / 16
    assert np.array_equal(starts(64, 2, [(0, 1), (2, 4)]), points[:, :64])


def test_the_deflated_step_is_that_of_the_deflated_field():
    # Newton's step for M f, f = x^2 - 1 with M = 1 + 1/(x - 1)^2, from its definition by derivatives.
    t = sp.Symbol("t")
    deflated = (t**2 - 1) * (1 + 1 / (t - 1) ** 2)
    square = Vanishing(lambda v: v**2 - 1, lambda v: (2 * v)[None])
    start = np.array([[0.3]])
    step = float((-deflated / deflated.diff(t)).subs(t, 0.3))
    from fixedpoints import newton

    plain = newton._newton(square.slope(start), square.value(start))
    factor = newton._deflation(start, plain, np.array([[1.0]]), np.ones(1))
    assert (plain * factor).item() == pytest.approx(step, rel=1e-12)
    assert converged(square, start, np.array([[1.0]]), np.ones(1), math.inf) == pytest.approx(-1.0)
