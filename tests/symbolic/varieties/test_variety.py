"""All real solutions of polynomial systems: from known roots, from known counts, and with planted faults."""

import time
from collections import Counter
from itertools import product

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from polynomial_systems import float_points, rational_points, system

from symbolic.varieties import matching, numbers, projections, solver, variety
from symbolic.varieties.deadline import BudgetExceeded, Deadline
from symbolic.varieties.variety import PolynomialSystem

x, y, z, v = sp.symbols("x y z v")

SMALL = st.fractions(-4, 4, max_denominator=6).map(lambda f: sp.Rational(f.numerator, f.denominator))
LINE = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3))


def solve(system, seconds):
    return variety.solve(system, Deadline(seconds))


def linear(c):
    return c[0] * x + c[1] * y + c[2]


def normalised(c):
    first = next(v for v in c if v)
    return tuple(sp.Rational(v, first) for v in c)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=5), LINE, LINE)
def test_planar_systems_built_from_known_roots_are_recovered(roots, g, h):
    """(p, y - L) with p = prod (x - a_i) and L through (a_i, b_i), mixed by a matrix of determinant one.

    The ideal, hence the roots and their multiplicities, stay what they are.
    """
    values = dict(roots)
    p = sp.Mul(*(x - a for a, _ in roots))
    q = y - sp.interpolate(list(values.items()), x)
    first = sp.expand(p + linear(g) * q)
    second = sp.expand(q + linear(h) * first)
    found = solve(system([first, second], (x, y)), 20)
    expected = {(a, values[a]): sum(a == other for other, _ in roots) for a in values}
    assert dict(rational_points(found)) == expected
    assert (found.components, found.complex_count, found.faults) == ((), len(roots), ())


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(LINE, min_size=1, max_size=3), st.lists(LINE, min_size=1, max_size=3))
def test_crossing_lines_meet_where_they_do(first, second):
    """Products of lines: the isolated points are the crossings that are on no common line, by Cramer's rule."""
    groups = [[c for c in group if c[:2] != (0, 0)] for group in (first, second)]
    found = solve(system([sp.Mul(*map(linear, group)) for group in groups], (x, y)), 20)
    pairs = list(product(*groups))
    shared = [a for a, b in pairs if all(a[i] * b[j] == a[j] * b[i] for i, j in ((0, 1), (0, 2), (1, 2)))]
    expected = Counter()
    for a, b in pairs:
        det = a[0] * b[1] - a[1] * b[0]
        if det:
            place = (sp.Rational(a[1] * b[2] - a[2] * b[1], det), sp.Rational(a[2] * b[0] - a[0] * b[2], det))
            if not any(c[0] * place[0] + c[1] * place[1] + c[2] == 0 for c in shared):
                expected[place] += 1
    assert dict(rational_points(found)) == expected
    assert [c.dimension for c in found.components] == [1] * len({normalised(c) for c in shared})


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=4),
    st.tuples(*[st.integers(-2, 2)] * 3),
)
def test_systems_in_space_built_from_known_roots_are_recovered(roots, mix):
    values = {a: (b, c) for a, b, c in roots}
    p = sp.Mul(*(x - a for a, _, _ in roots))
    q = y - sp.interpolate([(a, b) for a, (b, _) in values.items()], x)
    r = z - sp.interpolate([(a, c) for a, (_, c) in values.items()], x)
    equations = [p + mix[0] * y * q + mix[1] * r, q + mix[2] * x * r, r]
    found = solve(system(equations, (x, y, z)), 20)
    expected = {(a, *values[a]): sum(a == other[0] for other in roots) for a in values}
    assert dict(rational_points(found)) == expected
    assert found.complex_count == len(roots)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.integers(-5, 5), min_size=6, max_size=6), min_size=2, max_size=2))
def test_random_conics_agree_with_another_algorithm(coefficients):
    """SymPy: a lexicographic Groebner basis in shape position, and Sturm's theorem for its last polynomial."""
    monomials = [x**2, x * y, y**2, x, y, sp.Integer(1)]
    equations = [sum(c * m for c, m in zip(row, monomials, strict=True)) for row in coefficients]
    if 0 in equations:
        return
    basis = sp.groebner(equations, x, y, order="lex")
    last = sp.Poly(basis.exprs[-1], x, y)
    shape = len(basis.exprs) == 2 and last.degree(x) == 0 and sp.Poly(basis.exprs[0], x, y).degree(x) == 1
    found = solve(system(equations, (x, y)), 20)
    assert found.faults == ()
    if shape and last.degree(y) > 0:
        assert len(found.points) == sp.Poly(last.as_expr(), y).count_roots()
        assert found.complex_count == last.degree(y)


def test_two_points_above_one_x_and_points_at_infinity():
    # x y = 1 and x y^2 = x: the resultant in x has the root 0, above which the curves only meet at infinity.
    found = solve(system([x * y - 1, x * y**2 - x], (x, y)), 10)
    assert rational_points(found) == [((-1, -1), 1), ((1, 1), 1)]
    found = solve(system([x**2 - x, y**2 - x - 1], (x, y)), 10)
    assert float_points(found) == [(0, -1), (0, 1), (1, -(2**0.5)), (1, 2**0.5)]


def test_points_a_rounding_error_apart_are_two():
    gap = sp.Rational(1, 10**40)
    found = solve(system([(x - 1) * (x - 1 - gap), y - x**2], (x, y)), 10)
    assert rational_points(found) == [((1, 1), 1), ((1 + gap, (1 + gap) ** 2), 1)]


@pytest.mark.parametrize(
    ("equations", "multiplicity"),
    [((x**2, y**3), 6), ((y - x**2, y), 2), ((y**2 - x**3, x**2 - y**3), 4), ((x * y, x**2 + y**2), 4)],
)
def test_intersection_multiplicities_at_the_origin(equations, multiplicity):
    # By hand: 2 * 3; a tangent; two cusps (multiplicity 2 * 2); a node and a pair of conjugate lines (2 * 2).
    found = solve(system(equations, (x, y)), 10)
    assert dict(rational_points(found))[(0, 0)] == multiplicity


def katsura(n):
    """Katsura's magnetism problem: 2^n solutions."""
    u = sp.symbols(f"u0:{n + 1}")

    def value(i):
        return u[abs(i)] if abs(i) <= n else 0

    sums = [sum(value(k) * value(m - k) for k in range(-n, n + 1)) - value(m) for m in range(n)]
    return [*sums, sum(value(k) for k in range(-n, n + 1)) - 1], u


def noonburg(n):
    """Noonburg's neural network: 3^n - 2 n solutions for n = 3, namely 21."""
    s = sp.symbols(f"s0:{n}")
    return [10 * a * sum(b**2 for b in s if b != a) - 11 * a + 10 for a in s], s


@pytest.mark.parametrize(
    ("family", "complex_count", "real_count"),
    # Published counts of the PoSSo and PHCpack collections of test systems.
    [(katsura(3), 8, 6), (katsura(4), 16, 12), (noonburg(3), 21, 7)],
)
def test_families_with_published_counts(family, complex_count, real_count):
    found = solve(system(*family), 20)
    assert (found.complex_count, len(found.points), found.faults) == (complex_count, real_count, ())


def test_cyclic_four_is_two_curves():
    # Published: cyclic 4-roots form two curves, no isolated ones.
    a, b, c, d = sp.symbols("a b c d")
    equations = [
        a + b + c + d,
        a * b + b * c + c * d + d * a,
        a * b * c + b * c * d + c * d * a + d * a * b,
        a * b * c * d - 1,
    ]
    found = solve(system(equations, (a, b, c, d)), 20)
    assert [(c.dimension, c.proven) for c in found.components] == [(1, True), (1, True)]
    assert found.points == ()


@pytest.mark.parametrize(
    ("equations", "symbols", "points", "dimensions"),
    [
        ((x * y, x * z, x * v, 0), (x, y, z, v), [], [3, 1]),
        # A sphere and its centre; a cylinder; the line and the plane; everything; nothing.
        ([w * (x**2 + y**2 + z**2 - 1) for w in (x, y, z)], (x, y, z), [(0, 0, 0)], [2]),
        ((x**2 + y**2 - 1, 0, 0), (x, y, z), [], [2]),
        ((x * z, y * z, 0), (x, y, z), [], [2, 1]),
        ((0, 0), (x, y), [], [2]),
        ((1, x), (x, y), [], []),
        # A twisted cubic, given by more equations than its codimension.
        ((y - x**2, z - x**3, x * (y - x**2)), (x, y, z), [], [1]),
        # Components without real points are none; a sum of squares is a point.
        ((x * (x**2 + y**2 + 1), y * (x**2 + y**2 + 1)), (x, y), [(0, 0)], []),
        ([w * (x**2 + y**2 + z**2) for w in (x, y, z)], (x, y, z), [(0, 0, 0)], []),
        # A positive definite form that is no visible sum of squares (eigenvalues 1, 1 +- sqrt(1/2)): one point.
        ([w * (x**2 + y**2 + z**2 + x * y + y * z) for w in (x, y, z)], (x, y, z), [(0, 0, 0)], []),
        # The same form plus one: nothing but the origin, where the factors vanish.
        ([w * (x**2 + y**2 + z**2 + x * y + y * z + 1) for w in (x, y, z)], (x, y, z), [(0, 0, 0)], []),
        # A sphere so small that no sample meets it.
        ([w * (x**2 + y**2 + z**2 - sp.Rational(1, 10**6)) for w in (x, y, z)], (x, y, z), [(0, 0, 0)], [2]),
        # An isolated point on no component beside one that lies on a component.
        ((x * (x - 1), y * (x - 1)), (x, y), [(0, 0)], [1]),
        # A lonely real point of a curve is a point, and the curve stays.
        ((y**2 - x**2 * (x - 1), (y**2 - x**2 * (x - 1)) * y), (x, y), [(0, 0)], [1]),
        # A curve above a point: x = 0 and y^2 - z^3 = 0.
        ((x, (y**2 - z**3) * (y - 5), (y**2 - z**3) * (z - 1)), (x, y, z), [(0, 5, 1)], [1]),
    ],
)
def test_components_and_isolated_points(equations, symbols, points, dimensions):
    found = solve(system(equations, symbols), 20)
    assert float_points(found) == points
    assert [c.dimension for c in found.components] == dimensions
    assert all(c.proven for c in found.components)


def test_signs_and_inequations():
    equations = [(x**2 - 1) * (x - 3), y - x]
    assert float_points(solve(system(equations, (x, y), signs=("positive", "")), 10)) == [(1, 1), (3, 3)]
    assert float_points(solve(system(equations, (x, y), nonzero=[x + y - 6]), 10)) == [(-1, -1), (1, 1)]
    assert float_points(solve(system([x * (x + 1)], (x,), signs=("nonnegative",)), 10)) == [(0,)]


def test_the_same_answer_every_time():
    family = noonburg(3)
    answers = {tuple(float_points(solve(system(*family), 20))) for _ in range(10)}
    assert len(answers) == 1


# Planted faults: whatever loses a root, the counts disagree.


def test_a_lost_real_root_is_noticed(monkeypatch):
    isolated = numbers._isolated

    def losing(minimal, bits):
        real, other = isolated(minimal, bits)
        return (real[1:], other) if len(real) > 2 else (real, other)

    monkeypatch.setattr(numbers, "_isolated", losing)
    found = solve(system([x**3 - 3 * x + 1], (x,)), 10)
    assert found.faults == ("2 real solutions were found where Sturm's theorem counts 3",)


def test_a_lost_point_is_noticed(monkeypatch):
    descended = matching._descended

    def losing(root, *arguments):
        place = descended(root, *arguments)
        if place is not None and float(place[0]) > 1:
            raise matching._NoCandidateError
        return place

    monkeypatch.setattr(matching, "_descended", losing)
    found = solve(system([20 * x * y - 10 * x - 4 * x**3, 10 * x**2 - 8 * y - 8 * y**3], (x, y)), 10)
    assert len(found.points) == 4
    assert found.faults[0].endswith("real solutions were found where Sturm's theorem counts 4")


def test_a_hidden_factor_is_noticed(monkeypatch):
    factored = solver.factored
    monkeypatch.setattr(solver, "factored", lambda p: factored(p)[:-1] or factored(p))
    found = solve(system([x * (3 - x - 2 * y), y * (2 - y - x)], (x, y)), 10)
    assert found.faults == ("1 complex solutions were accounted for where a quotient algebra has 4",)


def test_a_hidden_point_off_a_component_is_noticed(monkeypatch):
    # x (x - 1) = y (x - 1) = 0: the line x = 1 and the origin, which is lost with the factor x.
    equations = system([x * (x - 1), y * (x - 1)], (x, y))
    assert float_points(solve(equations, 10)) == [(0, 0)]
    factored = solver.factored
    monkeypatch.setattr(
        solver, "factored", lambda p: [f for f in factored(p) if len(f[0]) > 1] or factored(p)
    )
    found = solve(equations, 10)
    assert found.points == ()
    assert found.faults == ("0 points off all components were found where an ideal has 1",)


# Time.


def test_large_steps_run_elsewhere_with_the_same_answer(monkeypatch):
    equations = system([x**3 - y, y**3 - x], (x, y))
    here = solve(equations, 60)
    monkeypatch.setattr(projections, "_QUICK_PLANAR", 0)
    there = solve(equations, 60)
    assert there == here
    assert len(here.points) == 3


def test_the_time_is_kept_inside_one_long_step():
    # Two polynomials of degree 40: the resultant alone takes minutes.
    degrees = [(i, j) for i in range(41) for j in range(41 - i)]
    first, second = ({(i, j): (a * i + b * j) % 7 - 3 or 1 for i, j in degrees} for a, b in ((3, 5), (5, 4)))
    start = time.monotonic()
    with pytest.raises(BudgetExceeded, match=r"more than the .* s that it was given. Raise `budget`"):
        solve(PolynomialSystem(2, (first, second)), 1.0)
    assert time.monotonic() - start < 5.0
