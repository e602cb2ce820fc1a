"""Fixed points by exact elimination: complete, enclosed, with multiplicities; and honest where it cannot be."""

import math
import time

import pytest
import sympy as sp

from fixedpoints import algebraic as module
from fixedpoints.algebraic import BudgetExceeded, NotAlgebraic, algebraic
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField
from symbolic.varieties import solver

x, y, z, v, t = sp.symbols("x y z v t")


def flow(rhs, state=(x, y), **numbers):
    parameters = tuple(sp.Symbol(name) for name in numbers)
    return ODESystem(VectorField(tuple(state), tuple(map(sp.sympify, rhs)), parameters), numbers)


def places(found):
    return [tuple(p.location.values()) for p in found.points]


def close(found, expected, tolerance=1e-9):
    """Ten digits are what the cases give."""
    got = places(found)
    assert len(got) == len(expected)
    for a, b in zip(got, sorted(expected), strict=True):
        assert a == pytest.approx(b, abs=tolerance)


# Cases of public trackers, with answers from the file of verified cases.


def test_five_real_equilibria_of_nine_that_solve_drops():
    # fp-cubic-missing (SymPy 17449).
    start = time.monotonic()
    found = algebraic(flow([20 * x * y - 10 * x - 4 * x**3, 10 * x**2 - 8 * y - 8 * y**3]))
    assert time.monotonic() - start < 2
    close(
        found,
        [
            (0, 0),
            (0.8566568714, 0.6467721991),
            (-0.8566568714, 0.6467721991),
            (2.644224302, 1.898384431),
            (-2.644224302, 1.898384431),
        ],
    )
    assert str(found.certificate) == (
        "found 5; complete: exact elimination accounts for all 9 complex solutions, counted with multiplicity"
    )
    assert {p.multiplicity for p in found.points} == {1}


def test_one_real_solution_of_thirty_five():
    # JuliaHomotopyContinuation loses some of these to path crossing; Bezout's bound 7 * 5 is attained.
    found = algebraic(flow([3 * x**3 * y + 5 * x * y**6 + 2, x**5 + y**5 - 1]))
    ((a, b),) = places(found)
    assert "35 complex" in found.certificate.reason
    assert abs(3 * a**3 * b + 5 * a * b**6 + 2) < 1e-14
    assert abs(a**5 + b**5 - 1) < 1e-14


def test_an_equilibrium_that_radicals_cannot_express():
    # fp-unsolvable-quintic-1d (SymPy PR 23011).
    close(algebraic(flow([x**5 - x + 1, -y])), [(-1.16730397826, 0.0)], 1e-11)
    (point,) = algebraic(VectorField((x,), (x**5 - x + 1,))).points
    assert point.location["x"] == sp.CRootOf(x**5 - x + 1, 0)


def test_planes_of_equilibria():
    # fp-plane-of-equilibria (SymPy 23110): the union of {x = 0} and {y = z = v = 0}.
    found = algebraic(flow([x * y, x * z, x * v, 0], (x, y, z, v)))
    assert [(set(c.equations), c.dimension) for c in found.components] == [({x}, 3), ({y, z, v}, 1)]
    assert (found.points, found.certificate.kind) == ((), "complete")


def test_twenty_seven_points():
    # fp-count-27 (DynamicalSystems.jl 187): {-1, 0, 1}^3.
    start = time.monotonic()
    found = algebraic(flow([w - w**3 for w in (x, y, z)], (x, y, z)))
    assert time.monotonic() - start < 2
    values = (-1.0, 0.0, 1.0)
    assert places(found) == [(a, b, c) for a in values for b in values for c in values]


def test_lotka_volterra_competition():
    # portrait-separatrix.
    found = algebraic(flow([x * (3 - x - 2 * y), y * (2 - y - x)]))
    assert places(found) == [(0, 0), (0, 2), (1, 1), (3, 0)]


def test_a_fractional_power_and_its_domain():
    # portrait-fractional-power-domain (PyDSTool 162): defined for x >= 0 only, where it has three equilibria.
    found = algebraic(flow([x**1.5 / (1 + x**1.5) - x / 2], (x,)))
    close(found, [(0.0,), (0.38196601125,), (1.0,)], 1e-11)
    assert found.excluded == (sp.Lt(x, 0),)
    # The field is not smooth at 0, so no multiplicity is claimed there.
    assert [p.multiplicity for p in found.points] == [None, 1, 1]


def test_pole_clutter():
    # fp-pole-clutter (IntervalRootFinding.jl 169): one equilibrium in [-2, 2], a pole at -1. It is the only one on
    # the line.
    terms = [(-10 if k % 10 == 0 else sp.Rational(3, 2)) * (1 + x) ** -k for k in range(100)]
    found = algebraic(flow([sp.Add(*terms)], (x,)))
    close(found, [(0.0646316396393,)], 1e-12)
    assert found.excluded == (x + 1,)
    assert found.certificate.kind == "complete"


def test_multi_branch_nullclines():
    # portrait-multi-branch-nullcline (PyDSTool 97).
    assert places(algebraic(flow([(x**2 - 1) * y, x - y**3]))) == [(-1, -1), (0, 0), (1, 1)]


# Fields that become polynomial by substitution.


def softmax_flow(rows, target, state):
    """-grad of |softmax(A x) - b|^2 / 2."""
    u = [sp.exp(sum(a * s for a, s in zip(row, state, strict=True))) for row in rows]
    total = sp.Add(*u)
    loss = sum((e / total - b) ** 2 for e, b in zip(u, target, strict=True)) / 2
    return flow([-loss.diff(s) for s in state], state)


def test_softmax_regression_with_two_minima_on_the_whole_plane():
    # Reference numbers: 50-digit Newton, independent of this package (set D2a).
    rows = [[2, 0], [1, 2], [-3, -3], [2, 1]]
    start = time.monotonic()
    found = algebraic(softmax_flow(rows, [sp.Rational(k, 8) for k in (1, 1, 3, 3)], (x, y)))
    assert time.monotonic() - start < 5
    close(
        found,
        [
            (-0.033239091624645438, -0.10126145389898047),
            (1.3817998221421138, 0.69039777753300244),
            (0.65166801078099968, 0.27804551295543911),
        ],
        1e-15,
    )
    assert found.certificate.kind == "complete"
    assert found.excluded == ()


@pytest.mark.parametrize(
    ("rows", "target", "expected"),
    [
        # Reference numbers, sets D1a and D1b; the counts are Sturm's for the polynomial in e^x.
        ([0, 4, 5], "1/3 0 2/3", [0.13300006969169398, 0.40397323975491257, 1.5923783571108186]),
        ([0, 1, 5], "5/8 1/8 1/4", [-0.99102859165653527, -0.46331080684642024, -0.28266778507346653]),
        # n = 2: the interpolating point log(q / (1 - q)) at q = 3/4.
        ([0, 1], "1/4 3/4", [math.log(3)]),
    ],
)
def test_softmax_regression_on_a_line(rows, target, expected):
    found = algebraic(softmax_flow([[a] for a in rows], map(sp.Rational, target.split()), (x,)))
    close(found, [(value,) for value in expected], 1e-15)


def test_pendulum_stands_for_all_its_turns():
    found = algebraic(flow([y, -sp.sin(x) - y / 5]))
    close(found, [(0, 0), (math.pi, 0)], 1e-15)
    assert found.periods == {"x": 2 * sp.pi}
    assert [tuple(p.location.values()) for p in algebraic(VectorField((x, y), (y, -sp.sin(x)))).points] == [
        (0, 0),
        (sp.pi, 0),
    ]


def test_three_oscillators_in_phase_differences():
    # Identical Kuramoto oscillators: f = 0 at the in-phase point, two twisted, three antiphase states.
    a, b = x, y
    found = algebraic(
        flow([sp.sin(b - a) - 2 * sp.sin(a) - sp.sin(b), -sp.sin(b - a) - 2 * sp.sin(b) - sp.sin(a)])
    )
    third = 2 * math.pi / 3
    pi = math.pi
    close(found, [(0, 0), (-third, third), (third, -third), (0, pi), (pi, 0), (pi, pi)], 1e-14)


def test_absolute_values_and_roots():
    # x = |y| - 1 and x = y meet at y = -1/2 only: for y >= 0 the lines are parallel.
    assert places(algebraic(flow([sp.Abs(y) - 1 - x, x - y]))) == [(-0.5, -0.5)]
    # sqrt(2) x = sqrt(x^2 + 1) at x = 1, not at -1.
    assert places(algebraic(flow([sp.sqrt(2) * x - sp.sqrt(x**2 + 1)], (x,)))) == [(1,)]


# Maps, rational fields, exact coordinates.


def test_a_map_is_fixed_where_it_returns_its_argument():
    found = algebraic(
        MapSystem(IteratedMap((x,), (sp.Symbol("r") * x * (1 - x),), (sp.Symbol("r"),)), {"r": 2.5})
    )
    assert places(found) == [(0.0,), (0.6,)]  # 1 - 1/r
    assert max(p.residual for p in found.points) < 1e-15


def test_a_zero_of_the_numerator_at_a_pole_is_none():
    # x y / (x + y): the numerators vanish at the origin, and so does the denominator.
    found = algebraic(flow([x * y / (x + y), (x - y) / (x + y)]))
    assert (found.points, found.excluded) == ((), (x + y,))


def test_floats_are_the_rationals_that_they_are():
    # 3 * 0.1 is not 0.3 in binary: the roots are two, closer than doubles near 0.3 are to each other.
    found = algebraic(flow([(x - 3 * sp.Symbol("a")) * (x - sp.Symbol("b"))], (x,), a=0.1, b=0.3))
    assert len(found.points) == 2
    low, high = (p.enclosure["x"] for p in found.points)
    assert low[0] == low[1] == sp.Rational(0.3)
    assert high[0] == high[1] == 3 * sp.Rational(0.1)


def test_exact_coordinates_of_a_bare_field():
    (low, high) = algebraic(VectorField((x, y), (x**2 - 2, y - x**2))).points
    assert low.location == {"x": -sp.sqrt(2), "y": 2}
    assert high.location == {"x": sp.sqrt(2), "y": 2}
    (point,) = algebraic(VectorField((x,), (sp.exp(2 * x) - 3,))).points
    assert sp.simplify(point.location["x"] - sp.log(3) / 2) == 0


def test_enclosures_hold_one_point_and_no_component():
    found = algebraic(flow([(y - x**2) * (x - sp.Rational(1, 10**12)), (y - x**2) * (y - 1)]))
    (point,) = found.points
    ((a, b), (c, d)) = point.enclosure["x"], point.enclosure["y"]
    assert a <= sp.Rational(1, 10**12) <= b
    assert c <= 1 <= d
    # y - x^2 on the box is at least c - max x^2 > 0.
    assert c - max(a**2, b**2) > 0
    assert [c.dimension for c in found.components] == [1]


def test_multiple_points():
    found = algebraic(flow([x**2 * (x - 1), (y - x) ** 3]))
    assert [(tuple(p.location.values()), p.multiplicity) for p in found.points] == [((0, 0), 6), ((1, 1), 3)]


def test_states_with_an_assumed_sign():
    n, m = sp.symbols("n m", positive=True)
    assert places(algebraic(flow([n * (1 - n**2), m - n], (n, m)))) == [(0, 0), (1, 1)]
    assert places(algebraic(flow([sp.exp(2 * n) - sp.exp(-n)], (n,)))) == [(0,)]


def test_points_are_in_order_and_the_same_every_time():
    toggle = flow([sp.sympify(4) / (1 + y**3) - x, sp.sympify(4) / (1 + x**3) - y])
    answers = {tuple(places(algebraic(toggle))) for _ in range(5)}
    (answer,) = answers
    assert list(answer) == sorted(answer)


# Refusals and doubts.


def test_an_undecided_component_is_not_complete():
    # Motzkin's polynomial plus (z - x)^2 is nowhere negative and no sum of squares. Over the complex numbers its
    # zeros are a surface, over the real ones eight points and the axes of the Motzkin polynomial.
    form = x**4 * y**2 + x**2 * y**4 - 3 * x**2 * y**2 + 1 + (z - x) ** 2
    found = algebraic(flow([x * form, y * form, z * form], (x, y, z)))
    assert found.certificate.kind == "unknown"
    assert "not decided whether the component" in found.certificate.reason


def test_a_planted_missing_root_refuses_complete(monkeypatch):
    factored = solver.factored
    monkeypatch.setattr(solver, "factored", lambda p: factored(p)[1:] or factored(p))
    found = algebraic(flow([x * (3 - x - 2 * y), y * (2 - y - x)]))
    assert found.certificate.kind == "unknown"
    assert "where a quotient algebra has 4" in str(found.certificate)


def test_a_planted_missing_point_refuses_complete(monkeypatch):
    real_points = solver.real_points

    def losing(*arguments):
        found = real_points(*arguments)
        return type(found)(found.points[1:], found.unwanted, found.eliminant)

    monkeypatch.setattr(solver, "real_points", losing)
    found = algebraic(flow([20 * x * y - 10 * x - 4 * x**3, 10 * x**2 - 8 * y - 8 * y**3]))
    assert found.certificate.kind == "unknown"
    assert "Sturm" in str(found.certificate)


def test_the_budget_is_kept():
    # Four quartics in four unknowns: hundreds of solutions and a long Groebner basis.
    state = sp.symbols("a b c d")
    rhs = [sum((3 * i + 7 * j + k) % 11 * p * q * r for i, p in enumerate(state) for j, q in enumerate(state)
               for r in (p, q, 1)) * state[k] ** 2 - k - 1 + state[k] for k in range(4)]  # fmt: skip
    start = time.monotonic()
    with pytest.raises(BudgetExceeded, match="Raise `budget`"):
        algebraic(flow(rhs, state), budget=1.5)
    assert time.monotonic() - start < 6


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        (flow([sp.exp(x) - x], (x,)), NotAlgebraic, "occurs in exponentials and in powers"),
        # fp-double-root-halfstable is analytic, not algebraic.
        (flow([sp.exp(x**2) - sp.cos(x)], (x,)), NotAlgebraic, "linear combination of the states"),
        (VectorField((x,), (t - x,), time=t), ValueError, "autonomous rule; this one depends on t"),
        ("x' = x", TypeError, "Fixed points are of an ODESystem"),
    ],
)
def test_refusals(rule, error, message):
    with pytest.raises(error, match=message):
        algebraic(rule)


def test_public_errors_are_those_of_the_lower_room():
    assert issubclass(module.NotAlgebraic, ValueError)
    assert issubclass(module.BudgetExceeded, RuntimeError)
