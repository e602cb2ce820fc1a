"""What happens at exceptional parameters, and the check of a parametric answer against exact ones at numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

import sympy as sp

from fixedpoints.algebraic import exact_points
from fixedpoints.parametric import generic_points, same
from fixedpoints.points import Certificate, Component, FixedPoint, FixedPoints
from symbolic.varieties.deadline import Deadline
from symbolic.varieties.states import Coordinate
from symbolic.zero import witness_points

__all__ = ["audited", "followed"]

#: Sets of numbers at which an answer is checked: at least so many, and more to meet each point somewhere.
_LEAST_SAMPLES, _MOST_SAMPLES = 2, 4


def followed(
    found: FixedPoints,
    rhs: Sequence[sp.Expr],
    state: Sequence[sp.Symbol],
    parameters: Sequence[sp.Symbol],
    deadline: Deadline,
) -> FixedPoints:
    """With what exists only at an exception, for those that are linear in a parameter, while there is time.

    Exceptions at which the answer is the general one are left out.
    """
    points, components, exceptions = list(found.points), list(found.components), []
    for relation in found.exceptions:
        solved = _solved(relation, parameters)
        # Half of the time is for the general answer and its check.
        if solved is None or deadline.left < deadline.seconds / 2:
            exceptions.append(relation)
            continue
        there = _specialised(rhs, state, parameters, solved, deadline)
        new_points, new_components, changed = _news(found, there, solved)
        if changed:
            exceptions.append(relation)
        points += [_under(p, relation) for p in new_points]
        components += [Component(c.equations, c.dimension, (relation, *c.conditions)) for c in new_components]
    certificate = replace(found.certificate, found=len(points))
    return replace(
        found,
        points=tuple(points),
        components=tuple(components),
        exceptions=tuple(exceptions),
        certificate=certificate,
    )


def audited(
    found: FixedPoints,
    rhs: Sequence[sp.Expr],
    state: Sequence[sp.Symbol],
    parameters: Sequence[sp.Symbol],
    deadline: Deadline,
) -> FixedPoints:
    """Compared with exact answers at two sets of numbers: the certificate is withdrawn if one differs.

    A point that is simple at numbers is simple for all parameters but exceptional ones.
    """
    simple: set[int] = set()
    ordinary = (n for n in _samples(parameters) if not any(_holds(e, n) for e in found.exceptions))
    for k, numbers in enumerate(ordinary):
        if k >= _LEAST_SAMPLES and len(simple) == len(found.points):
            break
        there = exact_points([f.xreplace(numbers) for f in rhs], state, deadline, Coordinate.expression)
        doubt, pairs = _compared(found, there, numbers)
        if doubt:
            where = ", ".join(f"{p} = {v}" for p, v in numbers.items())
            reason = f"at {where} {doubt}"
            return replace(found, certificate=Certificate("unknown", reason, len(found.points)))
        simple |= {k for k, point in pairs if point.multiplicity == 1}
    points = tuple(replace(p, multiplicity=1) if k in simple else p for k, p in enumerate(found.points))
    return replace(found, points=points)


def _samples(parameters: Sequence[sp.Symbol]) -> Iterator[dict[sp.Symbol, sp.Rational]]:
    """Numbers for the parameters, with all combinations of signs that they may have."""
    free = [p for p in parameters if p.is_nonnegative is None and p.is_nonpositive is None]
    for numbers in witness_points(parameters, _MOST_SAMPLES):
        for signs in islice(product((1, -1), repeat=len(free)), 4):
            yield {p: v * dict(zip(free, signs, strict=True)).get(p, 1) for p, v in numbers.items()}


def _solved(relation: sp.Basic, parameters: Sequence[sp.Symbol]) -> Mapping[sp.Symbol, sp.Expr] | None:
    """A parameter in terms of the others, if the relation is linear in one."""
    difference = relation.lhs - relation.rhs
    for parameter in parameters:
        p = sp.Poly(difference, parameter) if difference.has(parameter) else None
        if p is not None and p.degree() == 1:
            return {parameter: sp.cancel(-p.nth(0) / p.nth(1))}
    return None


def _specialised(
    rhs: Sequence[sp.Expr],
    state: Sequence[sp.Symbol],
    parameters: Sequence[sp.Symbol],
    solved: Mapping[sp.Symbol, sp.Expr],
    deadline: Deadline,
) -> FixedPoints | None:
    """The answer with a parameter replaced; None where the field is then no field."""
    there = [f.subs(solved) for f in rhs]
    if any(f.has(sp.zoo, sp.nan, sp.oo) for f in there):
        return None
    left = {s for f in there for s in f.free_symbols}
    kept = [p for p in parameters if p in left]
    if kept:
        return generic_points(there, state, kept, deadline)
    return exact_points(there, state, deadline, Coordinate.expression)


def _news(
    found: FixedPoints, there: FixedPoints | None, solved: Mapping[sp.Symbol, sp.Expr]
) -> tuple[list[FixedPoint], list[Component], bool]:
    """The points and components that the general answer does not give there, and whether it changes at all."""
    if there is None:
        return [], [], True
    general = [_finite([v.subs(solved) for v in p.location.values()]) for p in found.points]
    lost = any(values is None for values in general)
    known: list[list[sp.Expr]] = []
    for values in general:
        if values is not None and not any(same(values, other) for other in known):
            known.append(values)
    points = [p for p in there.points if not any(same(list(p.location.values()), values) for values in known)]
    sets = [_signature(Component(tuple(e.subs(solved) for e in c.equations), c.dimension))
            for c in found.components]  # fmt: skip
    components = [c for c in there.components if _signature(c) not in sets]
    changed = (
        lost
        or bool(points or components)
        or len(known) < len(found.points)
        or len(there.points) < len(known)
        or len(there.components) < len(sets)
    )
    return points, components, changed


def _finite(values: list[sp.Expr]) -> list[sp.Expr] | None:
    return None if any(v.has(sp.zoo, sp.nan, sp.oo, -sp.oo) for v in values) else values


def _signature(component: Component) -> frozenset:
    """What does not depend on constant factors of the equations."""
    return frozenset(
        frozenset(f for f, _ in sp.factor_list(e)[1]) for e in component.equations if sp.expand(e) != 0
    )


def _under(point: FixedPoint, relation: sp.Basic) -> FixedPoint:
    return replace(point, conditions=(relation, *point.conditions))


def _compared(
    found: FixedPoints, there: FixedPoints, numbers: Mapping[sp.Symbol, sp.Expr]
) -> tuple[str, list[tuple[int, FixedPoint]]]:
    """What disagrees, in words, and the pairs (number of a point here, point there)."""
    left = list(there.points)
    pairs = []
    for k, point in enumerate(found.points):
        if not all(_holds(relation, numbers) for relation in point.conditions):
            continue
        values = [v.subs(numbers) for v in point.location.values()]
        match = next((p for p in left if _near(values, list(p.location.values()))), None)
        if match is None:
            return f"the point {point.location} is no fixed point", pairs
        left.remove(match)
        pairs.append((k, match))
    implicit = [c for c in found.components if c.dimension == 0]
    for point in left:
        if not any(_on(c, point, numbers) for c in implicit):
            return f"there is a further fixed point {point.location}", pairs
    dimensions = {c.dimension for c in found.components if c.dimension and _hold(c.conditions, numbers)}
    if dimensions != {c.dimension for c in there.components}:
        return "the components have other dimensions", pairs
    if there.certificate.kind == "unknown":
        return there.certificate.reason, pairs
    return "", pairs


def _hold(relations: Sequence[sp.Basic], numbers: Mapping[sp.Symbol, sp.Expr]) -> bool:
    return all(_holds(relation, numbers) for relation in relations)


def _holds(relation: sp.Basic, numbers: Mapping[sp.Symbol, sp.Expr]) -> bool:
    return bool(relation.subs(numbers))


def _near(a: Sequence[sp.Expr], b: Sequence[sp.Expr]) -> bool:
    """Whether two exact points agree to twenty digits: the exact ones are told apart by far less."""
    return all(
        abs(sp.N(x - y, 30)) <= sp.Float("1e-20") * (1 + abs(sp.N(x, 30))) for x, y in zip(a, b, strict=True)
    )


def _on(component: Component, point: FixedPoint, numbers: Mapping[sp.Symbol, sp.Expr]) -> bool:
    symbols = {s.name: s for e in component.equations for s in e.free_symbols if s not in numbers}
    here = {symbols[name]: value for name, value in point.location.items() if name in symbols}
    return all(abs(sp.N(e.subs(numbers).subs(here), 30)) < sp.Float("1e-15") for e in component.equations)
