"""All real solutions of a polynomial system: the answer, and the counts that it must survive.

The solver splits, eliminates and matches; the audit counts by other means what it should have found: real roots
by Sturm's theorem, complex solutions by the dimension of a quotient algebra. An answer that fails is incomplete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from symbolic.varieties import audit, ideals
from symbolic.varieties.curves import curve_key
from symbolic.varieties.deadline import Deadline, TooLargeError, elsewhere
from symbolic.varieties.points import AlgebraicPoint, in_order, jacobian_rank, vanishes
from symbolic.varieties.polynomials import Exponents, normal, ring, transported
from symbolic.varieties.real_part import is_proven
from symbolic.varieties.solver import Part, PartialPoint, Solver

__all__ = ["Component", "PolynomialSystem", "Variety", "solve"]


@dataclass(frozen=True)
class PolynomialSystem:
    """Equations p = 0 in real unknowns, with what solutions must satisfy besides.

    Args:
        size: the number of unknowns.
        equations: as many polynomials as unknowns, for multiplicities to have a meaning.
        nonzero: polynomials that must not vanish.
        signs: for each unknown "positive", "nonnegative" or "".
    """

    size: int
    equations: tuple[Exponents, ...]
    nonzero: tuple[Exponents, ...] = ()
    signs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Component:
    """Solutions of positive dimension; `proven` tells whether the real dimension is known to be that."""

    equations: tuple[Exponents, ...]
    dimension: int
    proven: bool


@dataclass(frozen=True)
class Variety:
    """All real solutions: isolated points in order, and components.

    `complex_count` counts all complex solutions with multiplicity where they are finitely many, before signs
    and inequations are asked for; None where that is not known. `faults` are the audit's: an answer with faults
    is not complete.
    """

    points: tuple[AlgebraicPoint, ...]
    components: tuple[Component, ...]
    complex_count: int | None
    faults: tuple[str, ...]


def solve(system: PolynomialSystem, deadline: Deadline) -> Variety:
    """All real solutions of a system.

    Raises:
        BudgetExceeded: the time is over; whatever was running has ended.
    """
    try:
        return _solved(system, deadline.brief())
    except TooLargeError:
        return elsewhere(__name__, "_solved_at_length", (system, deadline.left), deadline)


def _solved_at_length(system: PolynomialSystem, seconds: float) -> Variety:
    return _solved(system, Deadline(seconds))


def _solved(system: PolynomialSystem, deadline: Deadline) -> Variety:
    # One unknown more than there are, for ideals to be saturated with.
    context = ring([f"x{i}" for i in range(system.size + 1)])
    equations, nonzero = (
        [normal(context.from_dict({(*m, 0): c for m, c in p.items()})) for p in group]
        for group in (system.equations, system.nonzero)
    )
    signs = (*(system.signs or ("",) * system.size), "")
    solver = Solver(signs, deadline)
    equations = [solver.stripped(p) for p in equations]
    places = tuple(range(system.size))
    parts = solver.solve(equations, places)
    count = _complex_count(parts) if not solver.dropped else None
    large = [p for p in parts if p.dimension > 0]
    sets = _components(large, nonzero, solver, places)
    points = _points([p for p in parts if p.dimension == 0], sets, nonzero, equations, signs, system.size)
    faults = [*solver.faults]
    if count is not None and len(places) > 1:
        faults += _miscounted(count, equations, places, deadline)
    if large and all(part.equations for part in large):
        faults += _missed(points, equations, large, nonzero, solver, places)
    return Variety(tuple(points), tuple(_told(part, proven) for part, proven in sets), count, tuple(faults))


def _miscounted(
    count: int, equations: Sequence[Any], places: tuple[int, ...], deadline: Deadline
) -> list[str]:
    """A fault if the number of complex solutions is another one."""
    counted = audit.solution_count(equations, places, deadline)
    if counted in (None, count):
        return []
    return [f"{count} complex solutions were accounted for where a quotient algebra has {counted}"]


def _missed(
    points: Sequence[AlgebraicPoint],
    equations: Sequence[Any],
    sets: Sequence[Part],
    nonzero: Sequence[Any],
    solver: Solver,
    places: tuple[int, ...],
) -> list[str]:
    """A fault if more points than these lie off all sets of positive dimension."""
    # On each set vanish all its equations, and so does their combination, which elsewhere hardly vanishes.
    combined = [sum((k + 2) * p for k, p in enumerate(part.equations)) for part in sets]
    counted = audit.points_off(equations, [*combined, *nonzero], places, solver.wanted, solver.deadline)
    found = sum(point.curve is None for point in points)
    if counted is None or counted <= found:
        return []
    return [f"{found} points off all components were found where an ideal has {counted}"]


def _complex_count(parts: Sequence[Part]) -> int | None:
    """The complex solutions with multiplicity, if they are finitely many and all parts know theirs."""
    counts = [part.complex_count for part in parts]
    if any(part.dimension for part in parts) or None in counts:
        return None
    return sum(c for c in counts if c is not None)


def _points(
    parts: Sequence[Part],
    sets: Sequence[tuple[Part, bool]],
    nonzero: Sequence[Any],
    equations: Sequence[Any],
    signs: tuple[str, ...],
    size: int,
) -> list[AlgebraicPoint]:
    """The wanted points that lie on no component, each once, with all its multiplicity."""
    merged: dict[tuple, AlgebraicPoint] = {}
    for point in (p for part in parts for p in part.points):
        whole = _whole(point, size)
        if whole.coordinates in merged:
            whole = _merged(merged[whole.coordinates], whole)
        merged[whole.coordinates] = whole
    kept = []
    for point in merged.values():
        if not any(vanishes(p, point) for p in nonzero) and not any(
            _lies_on(point, part) for part, _ in sets
        ):
            if point.multiplicity is None and not point.curve:
                rank = jacobian_rank(list(equations), point, tuple(range(size)))
                point = replace(point, multiplicity=1) if rank == size else point
            kept.append(point)
    return in_order(kept)


def _whole(point: PartialPoint, size: int) -> AlgebraicPoint:
    places = tuple(point.places[i] for i in range(size))
    return AlgebraicPoint(places, point.multiplicity, point.degree, point.curve)


def _merged(a: AlgebraicPoint, b: AlgebraicPoint) -> AlgebraicPoint:
    counted = a.multiplicity is not None and b.multiplicity is not None
    return AlgebraicPoint(
        a.coordinates,
        a.multiplicity + b.multiplicity if counted else None,
        min(a.degree, b.degree),
        a.curve or b.curve,
    )


def _lies_on(point: AlgebraicPoint, part: Part) -> bool:
    """Whether a point belongs to a component, other than as an isolated real point of it."""
    if point.curve and any(curve_key(p) == point.curve for p in part.equations):
        return False
    return all(vanishes(p, point) for p in part.equations)


def _components(
    parts: Sequence[Part], nonzero: Sequence[Any], solver: Solver, places: tuple[int, ...]
) -> list[tuple[Part, bool]]:
    """The largest sets, each with whether it is proven to have real points of its full dimension."""
    kept: list[Part] = []
    for part in sorted(parts, key=lambda part: -part.dimension):
        inside = any(
            all(ideals.contains(part.equations, p, solver.deadline) for p in other.equations)
            for other in kept
            if part.equations
        )
        gone = any(
            ideals.contains(part.equations, p, solver.deadline) if part.equations else p.is_zero()
            for p in nonzero
        )
        if not (inside or gone) and _is_possible(part, solver):
            kept.append(part)
    return [(p, p.proven or is_proven(p.equations, p.dimension, places, solver)) for p in kept]


def _is_possible(part: Part, solver: Solver) -> bool:
    """False where a finite block of the part has no real solution, so that nothing real is on it."""
    return not any(solver.never_zero(p) for p in part.equations)


def _told(part: Part, proven: bool) -> Component:
    equations = tuple({m[:-1]: c for m, c in transported(p).items()} for p in part.equations)
    return Component(equations, part.dimension, proven)
