"""Fixed points of polynomial and rational systems, and of those that substitutions make so: exact, complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import sympy as sp

from fixedpoints.arguments import System, rule_and_numbers
from fixedpoints.points import Certificate, Component, FixedPoint, FixedPoints
from odesys.lambdify import compile_field
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap
from symbolic.varieties.deadline import BudgetExceeded, Deadline
from symbolic.varieties.form import NotAlgebraic, PolynomialForm, polynomial_form
from symbolic.varieties.points import AlgebraicPoint, avoids
from symbolic.varieties.polynomials import Exponents, never_zero
from symbolic.varieties.states import Coordinate
from symbolic.varieties.variety import PolynomialSystem, Variety, solve
from symbolic.zero import exact

__all__ = ["BudgetExceeded", "NotAlgebraic", "algebraic", "exact_points", "poles", "sign_of"]

#: Bits of the first enclosures; more are used until they tell all points and components apart.
_FIRST_BITS = 128


def algebraic(rule: System, budget: float = 60.0) -> FixedPoints:
    """Every fixed point of a polynomial or rational system:  f(x) = 0, or f(x) = x for a map.

    Fields in commensurable exponentials, in sines and cosines of one angle, and in rational powers become
    polynomial by substitution. A bare rule keeps its parameters: points are expressions with conditions.

    Args:
        rule: a system with numbers, each float being the rational that it is; or a bare rule.
        budget: seconds.
    Returns:
        The points, without eigenvalues and stability, and the components. The certificate is "complete" if
        the answer has passed independent counts and the real dimension of each component is proven.
    Raises:
        NotAlgebraic: the field is not polynomial or rational and no known substitution makes it so.
        BudgetExceeded: the time is over.
        TypeError: the rule is of another type.
        ValueError: the rule depends on time.
    """
    deadline = Deadline(budget)
    rhs, state, parameters = _vanishing(rule)
    if parameters:
        from fixedpoints.parametric import parametric_points

        return parametric_points(rhs, state, parameters, deadline)
    if isinstance(rule, (ODESystem, MapSystem)):
        return _with_residuals(rule, exact_points(rhs, state, deadline, float))
    return exact_points(rhs, state, deadline, Coordinate.expression)


def exact_points(
    rhs: Sequence[sp.Expr],
    state: Sequence[sp.Symbol],
    deadline: Deadline,
    written: Callable[[Coordinate], float | sp.Expr],
) -> FixedPoints:
    """Every real zero of right-hand sides without parameters.

    Args:
        deadline: until when an answer is wanted.
        written: what becomes a coordinate in `location`: `float` or `Coordinate.expression`.
    """
    form = polynomial_form(rhs, state, deadline=deadline)
    system = PolynomialSystem(len(form.unknowns), form.equations, form.nonzero, form.signs)
    variety = solve(system, deadline)
    places = _places(form, variety)
    points = tuple(_point(form, point, place, bounds, written) for point, place, bounds in places)
    return FixedPoints(
        points,
        tuple(_component(form, c.equations, c.dimension) for c in variety.components),
        _certificate(form, variety, len(points)),
        excluded=(*poles(form), *form.undefined),
        periods={s.state.name: 2 * sp.pi / s.unit for s in form.states if s.kind == "angle"},
    )


def poles(form: PolynomialForm) -> tuple[sp.Expr, ...]:
    """Where the field has poles: expressions of the states that vanish there."""
    bases = {form.meanings[s.unknowns[0]]: s.state for s in form.states if s.kind == "power"}
    signs = (*form.signs, *map(sign_of, form.parameters))
    possible = [p for p in form.nonzero if not never_zero(p.items(), signs) and not _is_definite(p)]
    expressions = [form.expression(p) for p in possible]
    return tuple(dict.fromkeys(bases.get(e, e) for e in expressions))


def sign_of(symbol: sp.Symbol) -> str:
    """What a symbol's assumptions say of its sign, as polynomial systems put it."""
    return "positive" if symbol.is_positive else "nonnegative" if symbol.is_nonnegative else ""


def _vanishing(
    rule: System,
) -> tuple[tuple[sp.Expr, ...], tuple[sp.Symbol, ...], tuple[sp.Symbol, ...]]:
    """What vanishes at fixed points, with numbers put in exactly; the states; the parameters that are left."""
    bare, values = rule_and_numbers(rule)
    numbers = {p: sp.Rational(v) for p, v in values.items()}
    rhs = [exact(f.xreplace(numbers)) for f in bare.rhs]
    if isinstance(bare, IteratedMap):
        rhs = [f - x for f, x in zip(rhs, bare.state, strict=True)]
    left = {symbol for f in rhs for symbol in f.free_symbols}
    return tuple(rhs), bare.state, tuple(p for p in bare.parameters if p in left)


def _places(
    form: PolynomialForm, variety: Variety
) -> list[tuple[AlgebraicPoint, tuple[Coordinate, ...], tuple]]:
    """Points in the order of their states, with coordinates and bounds that hold no other fixed point."""
    wanted = [(point, _coordinates(form, point)) for point in variety.points]
    wanted = [(point, place) for point, place in wanted if all(map(_as_assumed, place))]
    bits = _FIRST_BITS
    while not all(
        point.curve or avoids(point, [c.equations for c in variety.components], bits // 2)
        for point, _ in wanted
    ):
        bits *= 2
    axes = [_axis([place[k] for _, place in wanted], bits) for k in range(len(form.states))]
    wanted.sort(key=lambda pair: [axis[x.numbers][0] for axis, x in zip(axes, pair[1], strict=True)])
    return [
        (point, place, tuple(axis[x.numbers][1] for axis, x in zip(axes, place, strict=True)))
        for point, place in wanted
    ]


def _axis(values: Sequence[Coordinate], bits: int) -> dict[tuple, tuple[int, tuple]]:
    """For each distinct value of one state its rank and bounds, which are disjoint."""
    distinct = {value.numbers: value for value in values}
    while True:
        bounds = sorted(((x.bounds(bits), key) for key, x in distinct.items()), key=lambda pair: pair[0])
        if all(a[1] < b[0] for (a, _), (b, _) in pairwise(bounds)):
            return {key: (rank, pair) for rank, (pair, key) in enumerate(bounds)}
        bits *= 2


def _coordinates(form: PolynomialForm, point: AlgebraicPoint) -> tuple[Coordinate, ...]:
    numbers = dict(zip(form.unknowns, point.coordinates, strict=True))
    return tuple(Coordinate(s, tuple(numbers[u] for u in s.unknowns)) for s in form.states)


def _as_assumed(coordinate: Coordinate) -> bool:
    """Whether a state that is assumed to have a sign has it, or is zero."""
    x = coordinate.form.state
    if not (x.is_nonnegative or x.is_nonpositive) or coordinate.exact == 0:
        return True
    bits = 64
    while (ball := coordinate.ball(bits)).contains(0):
        bits *= 2
    return bool(ball > 0) == bool(x.is_nonnegative)


def _point(
    form: PolynomialForm,
    point: AlgebraicPoint,
    place: tuple[Coordinate, ...],
    bounds: tuple,
    written: Callable[[Coordinate], float | sp.Expr],
) -> FixedPoint:
    kinked = any(
        u in form.kinks and number.sign() == 0
        for u, number in zip(form.unknowns, point.coordinates, strict=True)
    )
    return FixedPoint(
        {x.form.state.name: written(x) for x in place},
        (),
        "",
        enclosure={x.form.state.name: pair for x, pair in zip(place, bounds, strict=True)},
        multiplicity=None if kinked else point.multiplicity,
    )


def _component(form: PolynomialForm, equations: Sequence[dict], dimension: int) -> Component:
    """The component's equations in the states, without those that always hold."""
    expressions = [sp.factor_terms(form.expression(e)) for e in equations]
    plain = all(s.kind == "plain" for s in form.states) and not form.kinks
    kept = [e for e in expressions if plain or sp.simplify(e) != 0]
    return Component(tuple(sorted(kept, key=sp.default_sort_key)), dimension)


def _certificate(form: PolynomialForm, variety: Variety, found: int) -> Certificate:
    doubts = list(variety.faults)
    doubts += [
        f"it is not decided whether the component {', '.join(map(str, told.equations))} = 0 has real points "
        f"of dimension {c.dimension}"
        for c in variety.components
        if not c.proven
        for told in (_component(form, c.equations, c.dimension),)
    ]
    if doubts:
        return Certificate("unknown", "; ".join(doubts), found)
    reason = "exact elimination"
    if any(s.kind != "plain" for s in form.states) or form.kinks:
        letters = ", ".join(str(m) for m in form.meanings.values())
        reason += f" in the unknowns {letters}"
    if variety.complex_count is not None:
        reason += f" accounts for all {variety.complex_count} complex solutions, counted with multiplicity"
    return Certificate("complete", reason, found)


def _with_residuals(system: ODESystem | MapSystem, found: FixedPoints) -> FixedPoints:
    """With the size of the field at the floats of each location."""
    if not found.points:
        return found
    field = compile_field(system)
    states = np.array([list(p.location.values()) for p in found.points], dtype=float).T
    with np.errstate(all="ignore"):
        values = np.asarray(field.rhs(0.0, states, field.args), dtype=float)
    if isinstance(system, MapSystem):
        values = values - states
    sizes = np.abs(values).max(axis=0)
    return replace(
        found, points=tuple(replace(p, residual=float(r)) for p, r in zip(found.points, sizes, strict=True))
    )


def _is_definite(polynomial: Exponents) -> bool:
    """Whether a polynomial of one unknown has no real root."""
    inside = {i for exponents in polynomial for i, e in enumerate(exponents) if e}
    if len(inside) != 1:
        return False
    (i,) = inside
    x = sp.Symbol("x")
    return sp.Poly.from_dict({(m[i],): c for m, c in polynomial.items()}, x).count_roots() == 0
