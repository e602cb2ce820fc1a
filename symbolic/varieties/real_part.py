"""Does a complex set of solutions have real points of its full dimension?

A real point at which the Jacobian has full rank proves it. For a hypersurface p = 0 more can be said: every
connected part of its real points holds a point nearest to a given centre, where the gradient of p is parallel to the
line from the centre or zero. If there is none, there are no real points; if all of them are singular points at which
the Hessian is definite, hence lonely, then they are all the real points there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice, product
from typing import TYPE_CHECKING, Any

from symbolic.varieties import ideals
from symbolic.varieties.curves import ZERO
from symbolic.varieties.deadline import TooLargeError
from symbolic.varieties.numbers import AlgebraicNumber, fraction_number
from symbolic.varieties.points import AlgebraicPoint, hessian_is_definite, jacobian_rank, vanishes
from symbolic.varieties.polynomials import substituted

if TYPE_CHECKING:
    from symbolic.varieties.solver import PartialPoint, Solver

__all__ = ["Surface", "is_proven", "real_surface"]

#: Sections that are tried.
_SECTIONS = 24


@dataclass(frozen=True)
class Surface:
    """The real part of a hypersurface: full, not known to be less (`is_full` None), or only isolated points."""

    is_full: bool | None
    isolated: tuple[PartialPoint, ...] = ()


def is_proven(equations: Sequence[Any], dimension: int, places: Sequence[int], solver: Solver) -> bool:
    """Whether a wanted real point is found near which the set is a manifold of that dimension."""
    if not equations:
        return True
    free = ideals.free_places(ideals.groebner(equations, solver.deadline), places)
    others = [i for i in places if i not in free]
    for values in islice(_samples(len(free)), _SECTIONS):
        section, here = list(equations), {}
        for i, value in zip(free, values, strict=True):
            value = abs(value) + Fraction(1, 7) if solver.signs[i] else value
            section = [substituted(p, i, value) for p in section]
            here[i] = fraction_number(value)
        for part in solver.solve(section, others):
            for point in part.points if part.dimension == 0 else ():
                whole = _whole({**point.places, **here}, point.degree, equations)
                if jacobian_rank(list(equations), whole, tuple(places)) == len(places) - dimension:
                    return True
    return False


def real_surface(polynomial: Any, places: Sequence[int], solver: Solver) -> Surface:
    """The real part of p = 0, p irreducible, in at least three unknowns."""
    if is_proven([polynomial], len(places) - 1, places, solver):
        return Surface(True)
    try:
        parts = solver.solve(_nearest(polynomial, places), places)
    except TooLargeError:
        return Surface(None)
    points = [point for part in parts for point in part.points]
    if any(_is_smooth(polynomial, point, places) for point in points):
        return Surface(True)
    # The nearest points are among these only if none was left out for its sign.
    whole = not any(part.dimension for part in parts) and not any(solver.signs[i] for i in places)
    if whole and all(_is_lonely(polynomial, point, places) for point in points):
        return Surface(False, tuple(points))
    return Surface(None)


def _nearest(polynomial: Any, places: Sequence[int]) -> list[Any]:
    """The equations of the points of p = 0 that may be nearest to a centre in general position."""
    context = polynomial.context()
    letters = context.gens()
    centre = {i: (7 * k + 3, 11 + 2 * k) for k, i in enumerate(places)}
    slopes = {i: polynomial.derivative(context.name(i)) for i in places}
    away = {i: q * letters[i] - p for i, (p, q) in centre.items()}
    parallel = [
        away[i] * centre[j][1] * slopes[j] - away[j] * centre[i][1] * slopes[i]
        for i, j in combinations(places, 2)
    ]
    return [polynomial, *parallel]


def _is_smooth(polynomial: Any, point: PartialPoint, places: Sequence[int]) -> bool:
    whole = _whole(point.places, point.degree, [polynomial])
    return jacobian_rank([polynomial], whole, tuple(places)) == 1


def _is_lonely(polynomial: Any, point: PartialPoint, places: Sequence[int]) -> bool:
    """Whether p has a strict extremum at a zero: no other zero is near."""
    whole = _whole(point.places, point.degree, [polynomial])
    context = polynomial.context()
    return all(
        vanishes(polynomial.derivative(context.name(i)), whole) for i in places
    ) and hessian_is_definite(polynomial, whole, tuple(places))


def _whole(places: dict[int, AlgebraicNumber], degree: int, equations: Sequence[Any]) -> AlgebraicPoint:
    size = equations[0].context().nvars()
    return AlgebraicPoint(tuple(places.get(i, ZERO) for i in range(size)), None, degree)


def _samples(size: int) -> Iterator[tuple[Fraction, ...]]:
    """Rational points in general position, near the origin first."""
    steps = (0, 1, -1, 2, -2, 5, -5)
    scale = [Fraction(1 + 2 * k, 1 + k) for k in range(size)]
    for radius in range(1, len(steps) + 1):
        for choice in product(steps[:radius], repeat=size):
            if max((steps.index(c) for c in choice), default=0) == radius - 1:
                yield tuple(
                    c * s + Fraction(1, 11 + k) for k, (c, s) in enumerate(zip(choice, scale, strict=True))
                )
