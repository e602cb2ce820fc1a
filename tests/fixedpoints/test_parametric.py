"""Bare rules keep their parameters: points as expressions, conditions, and what happens at exceptions."""

import pytest
import sympy as sp

from fixedpoints.algebraic import NotAlgebraic, algebraic
from symbolic.field import IteratedMap, VectorField
from symbolic.varieties import parametric

x, y, z = sp.symbols("x y z")
p, q, m, r, a, b, c = sp.symbols("p q m r a b c")
k1, k2, lam, alpha = sp.symbols("k_1 k_2 lambda alpha", positive=True)


def points(rhs, state, parameters, rule=VectorField):
    found = algebraic(rule(tuple(state), tuple(map(sp.sympify, rhs)), tuple(parameters)))
    assert found.certificate.kind == "complete", found.certificate
    return found


def told(found):
    return [(tuple(p.location.values()), set(p.conditions)) for p in found.points]


def test_special_parameters_of_a_linear_field():
    # fp-special-parameters (SymPy 11621): det = -m^2 (m - 3).
    u = (x, y, z)
    rhs = [sp.Add(*u) - m * w for w in u]
    found = points(rhs, u, (m,))
    assert told(found) == [((0, 0, 0), set())]
    assert set(found.exceptions) == {sp.Eq(m, 0), sp.Eq(m, 3)}
    plane, line = found.components
    assert (plane.equations, plane.dimension, plane.conditions) == ((x + y + z,), 2, (sp.Eq(m, 0),))
    assert (line.dimension, line.conditions) == (1, (sp.Eq(m, 3),))
    assert all(e.subs({x: 7, y: 7, z: 7}) == 0 for e in line.equations)


def test_transcritical_branches_exist_for_all_parameters():
    # fp-transcritical-branches (HomotopyContinuation.jl 647): y = 0 and y = p, which meet at p = 0.
    found = points([y * (p - y)], (y,), (p,))
    assert told(found) == [((0,), set()), ((p,), set())]
    assert found.exceptions == (sp.Eq(p, 0),)
    assert [point.multiplicity for point in found.points] == [1, 1]


def test_a_reversible_reaction_has_a_line_of_equilibria():
    found = points([-k1 * x + k2 * y, k1 * x - k2 * y], (x, y), (k1, k2))
    assert found.points == ()
    ((equation,),) = (component.equations for component in found.components)
    assert sp.expand(equation**2 - (k1 * x - k2 * y) ** 2) == 0
    assert [(c.dimension, c.conditions) for c in found.components] == [(1, ())]


def test_a_saddle_node_exists_on_one_side():
    found = points([p - x**2], (x,), (p,))
    assert told(found) == [((-sp.sqrt(p),), {p >= 0}), ((sp.sqrt(p),), {p >= 0})]
    assert found.exceptions == (sp.Eq(p, 0),)


def test_a_pitchfork_with_a_positive_parameter_needs_no_conditions():
    found = points([alpha * x - x**3], (x,), (alpha,))
    assert told(found) == [((0,), set()), ((-sp.sqrt(alpha),), set()), ((sp.sqrt(alpha),), set())]
    assert found.exceptions == ()


def test_a_quadratic_that_may_be_linear():
    found = points([a * x**2 + b * x + c], (x,), (a, b, c))
    assert set(found.exceptions) == {sp.Eq(a, 0), sp.Eq(b**2 - 4 * a * c, 0)}
    quadratic = [q for q in found.points if sp.Eq(a, 0) not in q.conditions]
    (linear,) = [q for q in found.points if sp.Eq(a, 0) in q.conditions]
    assert all({sp.Ne(a, 0), b**2 - 4 * a * c >= 0} == set(q.conditions) for q in quadratic)
    assert sp.simplify(quadratic[0].location["x"] + quadratic[1].location["x"] + b / a) == 0
    assert linear.location["x"] == -c / b


def test_competition_with_symbolic_rates():
    found = points([x * (r - x - a * y), y * (m - y - b * x)], (x, y), (r, a, m, b))
    assert {place for place, conditions in told(found) if not conditions} == {(0, 0), (r, 0), (0, m)}
    ((place, conditions),) = [pair for pair in told(found) if pair[1]]
    # Cramer's rule.
    assert [
        sp.simplify(v - w)
        for v, w in zip(place, ((r - a * m) / (1 - a * b), (m - b * r) / (1 - a * b)), strict=True)
    ] == [0, 0]
    assert conditions == {sp.Ne(a * b - 1, 0)}
    # Parallel nullclines; and where two of the four points meet.
    meetings = (r, m, a * m - r, b * r - m)
    assert set(found.exceptions) == {sp.Eq(e, 0) for e in (a * b - 1, *meetings)}


def test_the_two_layer_scalar_network():
    # Saxe et al. 2014: the hyperbola u v = s and the origin.
    s = sp.Symbol("s", positive=True)
    found = points([y * (s - x * y), x * (s - x * y)], (x, y), (s,))
    assert told(found) == [((0, 0), set())]
    assert [(c.equations, c.dimension) for c in found.components] == [((-s + x * y,), 1)]


def test_the_aligned_mode_of_linear_attention():
    # Zhang et al. 2025: lambda^2 v^2 - lambda^3 a v^5 = 0 at v = 0 and v = (lambda a)^(-1/3).
    found = points([lam**2 * x**2 - lam**3 * alpha * x**5], (x,), (lam, alpha))
    zero, other = (point.location["x"] for point in found.points)
    assert zero == 0
    assert sp.simplify(other**3 * lam * alpha - 1) == 0


def test_lorenz():
    found = points([10 * (y - x), p * x - y - x * z, x * y - sp.Rational(8, 3) * z], (x, y, z), (p,))
    assert told(found)[0] == ((0, 0, 0), set())
    wings = told(found)[1:]
    assert [conditions for _, conditions in wings] == [{p - 1 >= 0}] * 2
    assert {sp.simplify(place[0] ** 2 - sp.Rational(8, 3) * (p - 1)) for place, _ in wings} == {0}
    assert {place[2] for place, _ in wings} == {p - 1}
    assert found.exceptions == (sp.Eq(p, 1),)


def test_a_cubic_with_parameters_is_given_by_its_equation():
    found = points([p + q * x - x**3], (x,), (p, q))
    assert [(set(c.equations), c.dimension) for c in found.components] == [({x**3 - q * x - p}, 0)]
    ((exception),) = found.exceptions
    # The discriminant of x^3 - q x - p is 4 q^3 - 27 p^2.
    assert sp.expand((exception.lhs - exception.rhs) ** 2 - (4 * q**3 - 27 * p**2) ** 2) == 0


def test_a_map_and_its_lost_point():
    found = points([r * x * (1 - x)], (x,), (r,), IteratedMap)
    assert told(found) == [((0,), set()), (((r - 1) / r,), {sp.Ne(r, 0)})]
    assert set(found.exceptions) == {sp.Eq(r, 0), sp.Eq(r, 1)}


def test_exponentials_and_angles_with_parameters():
    found = points([a - sp.exp(x)], (x,), (a,))
    assert told(found) == [((sp.log(a),), {a > 0})]
    assert found.exceptions == (sp.Eq(a, 0),)
    found = points([y, p - sp.sin(x)], (x, y), (p,))
    assert {sp.simplify(sp.sin(place[0])) for place, _ in told(found)} == {p}
    assert set(found.exceptions) == {sp.Eq(p, 1), sp.Eq(p, -1)}


def test_a_pole_that_meets_a_point_is_an_exception():
    found = points([(x - p) / (x - q)], (x,), (p, q))
    assert told(found) == [((p,), {sp.Ne(p - q, 0)})]
    assert found.excluded == (x - q,)


def test_a_hidden_branch_refuses_complete(monkeypatch):
    split = parametric.GenericSolver._split

    def hiding(self, members, nonzero):
        choices = split(self, members, nonzero)
        return choices[:1] if choices and len(choices) > 1 else choices

    monkeypatch.setattr(parametric.GenericSolver, "_split", hiding)
    found = algebraic(VectorField((y,), (y * (p - y),), (p,)))
    assert found.certificate.kind == "unknown"
    assert "there is a further fixed point" in found.certificate.reason


def test_refuses_what_is_not_algebraic():
    with pytest.raises(NotAlgebraic, match="x occurs in exponentials and in powers"):
        algebraic(VectorField((x,), (p * x - sp.exp(x),), (p,)))
