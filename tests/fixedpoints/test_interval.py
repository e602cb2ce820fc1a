"""Fixed points in a box, by proof: every published case, and what must stay open stays open."""

import math
import time

import pytest
import sympy as sp
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from fixedpoints.algebraic import algebraic
from fixedpoints.boxes.equations import Equations
from fixedpoints.interval import in_box
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

x, y, z = sp.symbols("x y z")


def inside(rhs, *box, state=None, budget=20.0):
    rhs = rhs if isinstance(rhs, tuple) else (rhs,)
    state = state or (x, y, z)[: len(rhs)]
    return in_box(ODESystem(VectorField(state, rhs)), tuple((float(a), float(b)) for a, b in box), budget)


def locations(found):
    return [tuple(float((low + high) / 2) for low, high in zero.bounds) for zero in found.zeros]


def multiplicities(found):
    return [zero.multiplicity for zero in found.zeros]


def complete(found):
    return found.finished and not found.unresolved


def test_double_root():
    # Case fp-double-root-halfstable (IntervalRootFinding.jl 74): 3/2 x^2 + O(x^4) at 0, and no other root.
    found = inside(sp.exp(x**2) - sp.cos(x), (-10, 10))
    assert complete(found)
    assert [zero.bounds for zero in found.zeros] == [((0, 0),)]
    assert multiplicities(found) == [2]


def test_pole_clutter():
    # Case fp-pole-clutter (IntervalRootFinding.jl 169).
    terms = [(-10 if k % 10 == 0 else sp.Rational(3, 2)) * (1 + x) ** -k for k in range(100)]
    found = inside(sp.Add(*terms), (-2, 2))
    assert complete(found)
    assert locations(found) == [(pytest.approx(0.0646316396393, abs=1e-13),)]
    assert found.excluded == (x + 1,)


def test_two_transcendental_equations():
    # y = sin(x) leaves x = cos(sin(x)), a contraction in one unknown: one solution, by another algorithm.
    found = inside((sp.sin(x) - y, sp.cos(y) - x), (-6, 6), (-6, 6))
    root = brentq(lambda s: math.cos(math.sin(s)) - s, 0, 1, xtol=1e-15)
    assert complete(found)
    assert locations(found) == [pytest.approx((root, math.sin(root)), abs=1e-14)]


def test_a_root_that_iterations_miss():
    # Case fp-fsolve-start-dependence (SciPy 4227).
    rate = 9.889 * (1 - sp.exp((x / 60 - 1) * (-2.403) / (-0.167)))
    rate -= 4.964 * (1 - sp.exp((x / 80 - 1) * (-2.369) / (-0.125)))
    found = inside(rate, (0, 60))
    assert complete(found)
    assert locations(found) == [(pytest.approx(57.11177009, abs=1e-8),)]


def test_tangent_and_its_poles():
    # tan x = x: tabulated roots (OEIS A115365 and the next); sin x - x cos x = x^3/3 + ... at 0.
    found = inside(sp.tan(x) - x, (-10, 10))
    roots = [4.493409457909064, 7.725251836937707]
    assert complete(found)
    assert [p for (p,) in locations(found)] == pytest.approx([-roots[1], -roots[0], 0, *roots], abs=1e-14)
    assert multiplicities(found) == [1, 1, 3, 1, 1]
    assert found.excluded == (sp.cos(x),)


def test_double_roots_that_are_no_floats():
    found = inside(1 - sp.sin(x), (-10, 10))
    assert complete(found)
    assert multiplicities(found) == [2, 2, 2]
    expected = [math.pi / 2 + 2 * math.pi * k for k in (-1, 0, 1)]
    assert [p for (p,) in locations(found)] == pytest.approx(expected, abs=1e-15)


def test_roots_closer_than_floats_resolve():
    # 3/2 x^2 = 1e-30 at leading order; with the other sign there is no root, by a margin of 1e-30.
    near = sp.exp(x**2) - sp.cos(x)
    found = inside(near - sp.Rational(1, 10**30), (-10, 10))
    assert complete(found)
    root = math.sqrt(2 / 3) * 1e-15
    assert [p for (p,) in locations(found)] == pytest.approx([-root, root], rel=1e-12)
    assert inside(near + sp.Rational(1, 10**30), (-10, 10)).zeros == ()


def test_roots_closer_than_the_second_look_resolves_stay_open():
    # exp(x) - 1 - (1 + d) x has the roots 0 and about 2 d: an exact root with another one next to it.
    found = inside(sp.exp(x) - 1 - (1 + sp.Rational(1, 10**40)) * x, (-1, 1))
    assert found.zeros == ()
    (box,) = found.unresolved
    assert (
        box.reason
        == "holds the fixed point x = 0, exactly; whether it is the only one in the box is unresolved"
    )
    # And next to 0 there is no root at all, by a margin that is too small to be seen.
    found = inside(sp.exp(x**2) - sp.cos(x) + sp.Rational(1, 10**60), (-1, 1))
    assert found.zeros == ()
    (box,) = found.unresolved
    assert box.reason.startswith("may hold fixed points")


def test_a_triple_point_in_the_plane_is_no_fold():
    # sinh(x) - x = x^3/6 + ...: along x the field is flatter than a parabola.
    found = inside((sp.sinh(x) - x, y + sp.exp(x) - 1 - sp.tanh(x)), (-1, 1), (-1, 1))
    assert found.zeros == ()
    (box,) = found.unresolved
    assert box.reason.startswith("holds the fixed point x = 0, y = 0, exactly")


def test_a_fold_in_the_plane():
    # On y = 0 the first equation is x^2 + ...: one zero of multiplicity two.
    found = inside((sp.exp(x**2 + y**2) - 1, y), (-2, 2), (-2, 2))
    assert complete(found)
    assert [zero.bounds for zero in found.zeros] == [((0, 0), (0, 0))]
    assert multiplicities(found) == [2]


def test_a_degenerate_point_that_is_not_resolved_says_so():
    # Both equations begin with squares: the Jacobian is zero, and no test here can count such zeros.
    found = inside((sp.exp(x * y) - sp.cos(x), sp.cos(x) - sp.exp(y**2)), (-1, 1), (-1, 1), budget=5)
    assert found.unresolved
    assert any("x" in box and box["x"][0] <= 0 <= box["x"][1] for box in found.unresolved)
    assert all(box.reason for box in found.unresolved)


def test_a_removable_pole_is_no_fixed_point():
    found = inside(sp.sin(x) / x, (-4, 4))
    assert complete(found)
    assert [p for (p,) in locations(found)] == pytest.approx([-math.pi, math.pi], abs=1e-15)
    assert found.excluded == (x,)


@pytest.mark.parametrize(
    ("rate", "side", "roots", "excluded"),
    [
        # log x = cos x, by Newton's method in 30 digits.
        (sp.log(x) - sp.cos(x), (-1, 5), [1.30296400121601], (x <= 0,)),
        (x * sp.log(3 / x), (-1, 4), [3], (3 / x <= 0, x)),
        (sp.sqrt(x) - x, (-0.2, 4), [0, 1], (x < 0,)),
        # Case portrait-fractional-power-domain (PyDSTool 162): (3 - sqrt 5)/2 in the middle.
        (x**1.5 / (1 + x**1.5) - x / 2, (-0.2, 4), [0, 0.38196601125, 1], (x < 0,)),
        (sp.exp(1 / x) - sp.Rational(1, 2), (-2, 1), [-1 / math.log(2)], (x,)),
        (1 / sp.sqrt(x) - sp.exp(x - 1), (-1, 3), [1], (x <= 0,)),
    ],
    ids=str,
)
def test_edges_of_the_domain_are_named_and_do_not_blur_the_answer(rate, side, roots, excluded):
    found = inside(rate, side)
    assert complete(found)
    assert [p for (p,) in locations(found)] == pytest.approx(roots, abs=1e-11)
    assert found.excluded == excluded


def test_nowhere_defined():
    found = inside(sp.sqrt(-1 - x**2) + sp.exp(x), (-1, 1))
    assert complete(found)
    assert found.zeros == ()
    assert found.excluded == (-(x**2) - 1 < 0,)


def test_zeros_on_the_edges_belong_to_the_box_and_those_beyond_do_not():
    found = inside(sp.sin(sp.pi * x), (-1, 2))
    assert complete(found)
    assert [p for (p,) in locations(found)] == pytest.approx([-1, 0, 1, 2], abs=1e-15)
    rate = sp.exp(x) - sp.E
    assert locations(inside(rate, (0, 1))) == [(1.0,)]
    assert inside(rate, (0, math.nextafter(1, 0))).zeros == ()


def test_a_box_as_narrow_as_floats_allow():
    # Around 1e15 floats are 1/8 apart, so that sides cannot be halved for long.
    found = inside(sp.tanh(x - 10**15 - 3), (1e15, 1e15 + 10))
    assert complete(found)
    assert locations(found) == [(1e15 + 3,)]
    # A double root between two floats, with digits that nobody would guess.
    u = x - 10**15 - sp.Rational(1, 3)
    found = inside(sp.exp(u) - 1 - u, (1e15, 1e15 + 10))
    assert found.finished
    assert any(box["x"][0] <= 1e15 + 1 / 3 <= box["x"][1] for box in found.unresolved)


def test_what_lies_outside_the_box_is_not_named():
    # The pole at -1 is 0.05 away: near enough to matter for the proof, and no part of the answer.
    found = inside(1 / (x + 1) - sp.exp(-x), (-0.95, 1))
    assert complete(found)
    assert [p for (p,) in locations(found)] == [0.0]
    assert found.excluded == ()


def test_kinks_are_no_obstacle():
    # 1 - x + max(0, y) = 0 and max(0, x) = y + |y|: y = x - 1 > 0 and x = 2 y, by cases.
    found = inside((1 - x + sp.Max(0, y), -y + sp.Max(0, x) - sp.Abs(y)), (-5, 5), (-5, 5))
    assert complete(found)
    assert locations(found) == [(2.0, 1.0)]


def test_a_jump_over_zero_is_no_zero_and_a_jump_onto_zero_stays_open():
    # sign(x) - 1/2 is -3/2, -1/2 or 1/2; sign(x) is 0 at 0, and no derivative tells how.
    found = inside(sp.sign(x) - sp.Rational(1, 2), (-1, 1))
    assert complete(found)
    assert found.zeros == ()
    (box,) = inside(sp.sign(x), (-1, 1)).unresolved
    assert box["x"][0] <= 0 <= box["x"][1]
    assert box["x"][1] - box["x"][0] < 1e-9


def test_branches_of_a_field_meet_without_hiding_what_lies_between():
    # Below 1 the rate is 2 - x, above it x - 3: the root 3 counts, the root 2 of the lower branch does not.
    found = inside(sp.Piecewise((2 - x, x < 1), (x - 3, True)), (-5, 5))
    assert complete(found)
    assert locations(found) == [(3.0,)]


def test_common_factors_are_components():
    found = inside((sp.sin(x) * y, y * sp.cos(x)), (-3, 3), (-3, 3))
    assert complete(found)
    assert [(c.equations, c.dimension) for c in found.components] == [((y,), 1)]
    assert found.zeros == ()


def test_dependent_equations_leave_a_component():
    # Three coupled oscillators: the rates add up to zero, since all may turn together.
    rates = [sum(sp.sin(b - a) for b in (x, y, z)) for a in (x, y, z)]
    found = inside(tuple(rates), (-3, 3), (-3, 3), (-3, 3))
    assert [c.dimension for c in found.components] == [1]
    assert len(found.components[0].equations) == 2


def test_multiplicities_of_products():
    # x^2 (exp x - 1) has a triple root at 0, which two factors share: exact, but not counted.
    found = inside(x**2 * (sp.exp(x) - 1) * sp.cos(x) ** 3, (-2, 2))
    assert [p for (p,) in locations(found)] == pytest.approx([-math.pi / 2, 0, math.pi / 2], abs=1e-15)
    assert multiplicities(found) == [3, None, 3]
    assert complete(found)


def test_maps_stop_where_they_return_the_state():
    # Ricker's map x -> x exp(2 (1 - x)).
    system = MapSystem(IteratedMap((x,), (x * sp.exp(2 * (1 - x)),)))
    assert locations(in_box(system, ((-1.0, 5.0),))) == [(0.0,), (1.0,)]


def test_numbers_of_parameters_are_read_exactly():
    # exp(x) = 1 + c with c = 2^-52: a root at log(1 + 2^-52), which rounding the sum would keep by luck only.
    c = sp.Symbol("c")
    system = ODESystem(VectorField((x,), (sp.exp(x) - 1 - c,), (c,)), {"c": 2.0**-52})
    ((root,),) = locations(in_box(system, ((-1.0, 1.0),)))
    assert root == pytest.approx(math.log1p(2.0**-52), rel=1e-15)


def test_the_budget_is_kept_and_what_is_open_is_listed():
    # sin(1/x) has a root in every neighbourhood of 0: no search can end.
    begun = time.monotonic()
    found = inside(sp.sin(1 / x), (-1, 1), budget=1.0)
    assert time.monotonic() - begun < 3
    assert not found.finished
    assert any(box["x"][0] < 0 < box["x"][1] for box in found.unresolved)
    assert "the budget ran out" in found.unresolved[0].reason
    # What was proven before is right: 1/(k pi).
    assert any(p == pytest.approx(1 / math.pi, abs=1e-15) for (p,) in locations(found))


def test_a_curve_of_fixed_points_that_is_not_seen_as_one_stays_open():
    found = inside((sp.sin(x + y) - sp.exp(x + y) + 1, sp.sin(2 * x + 2 * y)), (-3, 3), (-3, 3), budget=1.0)
    assert not complete(found)
    assert found.unresolved


def test_rates_in_an_odd_proportion_leave_a_component():
    # A <-> B in volumes of 0.3 and 0.7: the rates are proportional, with numbers that are no short fractions.
    rate = sp.tanh(x) - 2 * sp.tanh(y)
    found = inside((-rate / 0.3, rate / 0.7), (-1, 1), (-1, 1))
    assert [c.dimension for c in found.components] == [1]


def test_a_hidden_root_is_never_denied(monkeypatch):
    # The evaluator is made blind around the root: it may say nothing there, and the box must stay open.
    values, slopes = Equations.values, Equations.slopes

    def hides(ranges):
        (low, high), *_ = ranges
        return low < 0.7 and high > 0.6

    def blind(self, ranges):
        functions, limits = values(self, ranges)
        return ([(arb.neg_inf(), arb.pos_inf())] if hides(ranges) else functions), limits

    monkeypatch.setattr(Equations, "values", blind)
    monkeypatch.setattr(Equations, "slopes", lambda self, r: None if hides(r) else slopes(self, r))
    found = inside(sp.exp(x) - 2, (0, 1))  # the root log 2 = 0.693
    assert found.zeros == ()
    assert any(box["x"][0] <= math.log(2) <= box["x"][1] for box in found.unresolved)


roots = st.lists(st.integers(-12, 12), min_size=1, max_size=4, unique=True)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(first=roots, second=roots, slant=st.integers(-2, 2))
def test_polynomial_systems_built_from_their_roots(first, second, slant):
    # u = x + slant y and v = y - x/4 take given values, in all pairs; both routes must find them all.
    u, v = x + sp.Rational(slant, 4) * y, y - x / 4
    rhs = (sp.prod(u - sp.Rational(r, 8) for r in first), sp.prod(v - sp.Rational(s, 8) for s in second))
    pairs = [(sp.Rational(r, 8), sp.Rational(s, 8)) for r in first for s in second]
    inverse = sp.Matrix([[1, sp.Rational(slant, 4)], [-sp.Rational(1, 4), 1]]).inv()
    expected = sorted(tuple(map(float, inverse * sp.Matrix(pair))) for pair in pairs)
    found = inside(rhs, (-4, 4), (-4, 4))
    assert complete(found)
    assert sorted(locations(found)) == [pytest.approx(p, abs=1e-14) for p in expected]
    exact = algebraic(ODESystem(VectorField((x, y), tuple(map(sp.expand, rhs)))))
    assert sorted((p.location["x"], p.location["y"]) for p in exact.points) == [
        pytest.approx(p, abs=1e-14) for p in expected
    ]
