"""The real part of a plane curve: whether it is a curve at all, and its isolated points. Exact.

Over the complex numbers x^2 + y^2 = 0 is a pair of lines; over the real ones it is a point. The real branches
of an irreducible p(x, y) = 0 are graphs between neighbouring zeros of the discriminant of p in y, so a root above
one sample in each gap decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from symbolic.varieties.deadline import Deadline
from symbolic.varieties.matching import real_points
from symbolic.varieties.numbers import AlgebraicNumber, fraction_number, roots_of
from symbolic.varieties.points import AlgebraicPoint, vanishes
from symbolic.varieties.polynomials import factored_univariate, substituted, transported, univariate
from symbolic.varieties.projections import PlanarProjections

__all__ = ["PlaneCurve", "curve_key", "plane_curve", "real_numbers"]

ZERO = fraction_number(Fraction(0))


@dataclass(frozen=True)
class PlaneCurve:
    """`is_curve`: some part is one-dimensional where signs allow; `isolated`: real points that lie alone."""

    is_curve: bool
    isolated: tuple[tuple[tuple[AlgebraicNumber, AlgebraicNumber], int], ...]


def curve_key(polynomial: Any) -> tuple:
    """What tells one plane curve from another."""
    return tuple(sorted(transported(polynomial).items()))


def real_numbers(polynomial: Any) -> list[AlgebraicNumber]:
    """The distinct real roots of a polynomial of one unknown, in increasing order."""
    numbers = [
        AlgebraicNumber(minimal, k)
        for minimal, _ in factored_univariate(polynomial)
        for k in range(_count(minimal))
    ]
    return sorted(numbers)


def plane_curve(polynomial: Any, i: int, j: int, signed: tuple[bool, bool], deadline: Deadline) -> PlaneCurve:
    """The real part of p(x, y) = 0, p irreducible in exactly the unknowns i and j.

    Args:
        signed: whether only x > 0, and only y > 0, count for `is_curve`.
    """
    slope = polynomial.derivative(polynomial.context().name(j))
    critical = _critical(polynomial, slope, i, j, signed)
    is_curve = any(
        any(not signed[1] or y > ZERO for y in real_numbers(univariate(substituted(polynomial, i, at), j)))
        for at in _samples(critical)
        if not signed[0] or at > 0
    )
    return PlaneCurve(is_curve, _isolated(polynomial, slope, i, j, critical, deadline))


def _critical(
    polynomial: Any, slope: Any, i: int, j: int, signed: tuple[bool, bool]
) -> list[AlgebraicNumber]:
    """Where branches may begin, meet, end or leave the region of the signs."""
    found = set(real_numbers(univariate(polynomial.resultant(slope, polynomial.context().name(j)), i)))
    if signed[1]:
        crossing = substituted(polynomial, j, Fraction(0))
        if not crossing.is_zero():
            found |= set(real_numbers(univariate(crossing, i)))
    if signed[0]:
        found.add(ZERO)
    return sorted(found)


def _samples(critical: Sequence[AlgebraicNumber]) -> list[Fraction]:
    """One rational number in each gap."""
    if not critical:
        return [Fraction(0)]
    inner = [_between(a, b) for a, b in pairwise(critical)]
    return [critical[0].bounds(64)[0] - 1, *inner, critical[-1].bounds(64)[1] + 1]


def _between(a: AlgebraicNumber, b: AlgebraicNumber) -> Fraction:
    bits = 64
    while (left := a.bounds(bits)[1]) >= (right := b.bounds(bits)[0]):
        bits *= 2
    return (left + right) / 2


def _isolated(
    polynomial: Any, slope: Any, i: int, j: int, critical: list[AlgebraicNumber], deadline: Deadline
) -> tuple[tuple[tuple[AlgebraicNumber, AlgebraicNumber], int], ...]:
    """The singular points that no real branch reaches, with the degrees of their number fields."""
    if slope.is_constant():
        return ()
    across = polynomial.derivative(polynomial.context().name(i))
    found = []
    for (x, y), _, degree in real_points(
        PlanarProjections(polynomial, slope, i, j, deadline), deadline
    ).points:
        coordinates = [ZERO] * polynomial.context().nvars()
        coordinates[i], coordinates[j] = x, y
        if vanishes(across, AlgebraicPoint(tuple(coordinates), None, degree)) and not _reached(
            polynomial, i, j, x, y, critical
        ):
            found.append(((x, y), degree))
    return tuple(found)


def _reached(
    polynomial: Any, i: int, j: int, x: AlgebraicNumber, y: AlgebraicNumber, critical: list[AlgebraicNumber]
) -> bool:
    """Whether a branch ends at (x, y): into a box that no branch leaves upward or downward, one enters."""
    line = polynomial.context().from_dict(
        {tuple(k if n == i else 0 for n in range(polynomial.context().nvars())): c
         for k, c in enumerate(x.minimal)}
    )  # fmt: skip
    levels = real_numbers(univariate(polynomial.resultant(line, polynomial.context().name(i)), j))
    low, high = _window(y, levels, Fraction(1))
    size = Fraction(1)
    while True:
        left, right = _window(x, critical, size)
        edges = [real_numbers(univariate(substituted(polynomial, j, level), i)) for level in (low, high)]
        if not any(_inside(root, left, right) for edge in edges for root in edge):
            break
        size /= 4
    sides = [real_numbers(univariate(substituted(polynomial, i, side), j)) for side in (left, right)]
    return any(_inside(root, low, high) for side in sides for root in side)


def _window(at: AlgebraicNumber, others: list[AlgebraicNumber], size: Fraction) -> tuple[Fraction, Fraction]:
    """Rational numbers around a number, at most about `size` away, with none of the others between them."""
    bits = 64
    while True:
        low, high = at.bounds(bits)
        low, high = low - size, high + size
        if not any(other != at and _inside(other, low, high) for other in others):
            return low, high
        bits, size = bits + 8, size / 4


def _inside(number: AlgebraicNumber, low: Fraction, high: Fraction) -> bool:
    return not number < fraction_number(low) and not fraction_number(high) < number


def _count(minimal: tuple[int, ...]) -> int:
    return sum(root.number is not None for root in roots_of(((minimal, 1),), 64))
