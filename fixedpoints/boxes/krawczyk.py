"""All zeros in a box, by interval branch and prune: what is found is proven, and so is what is not there.

A box is dropped when the range of a right-hand side on it excludes zero, or when the Krawczyk operator

    K(X) = m - C f(m) + (1 - C J(X)) (X - m),    m the middle of X,  C an approximate inverse of J(m),

which contains every zero that X contains, misses it. If K(X) lies in the interior of X, then X holds exactly
one zero (Krawczyk 1969; Moore 1977). Otherwise the box is cut and its parts are tested in turn.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from flint import arb, arb_mat, ctx

from fixedpoints.boxes.equations import Box, Equations, halves, ranges_of, widened
from fixedpoints.boxes.ranges import Range

__all__ = ["Exploration", "Zero", "certified", "explore"]

#: Working precision of the search, and of the enclosures that are reported.
_BITS, _FINE_BITS = 128, 192

#: A side is not cut below this part of its first length.
_SMALLEST = 2.0**-40

#: More boxes than this are waiting only where zeros are not isolated, or where nothing can be proven.
_MOST_WAITING = 30_000

#: A box is narrowed again, rather than cut, while its longest side shrinks at least by this factor.
_WORTHWHILE = 0.7

#: An enclosure is final when it shrinks by less than this factor; far from the zero it shrinks slowly.
_SETTLED = 0.9999


@dataclass(frozen=True, eq=False)
class Zero:
    """A zero proven to exist: the only one in `zone`, and within `bounds`, which are much narrower."""

    zone: tuple[tuple[Any, Any], ...]
    bounds: tuple[tuple[sp.Rational, sp.Rational], ...]
    multiplicity: int | None = 1

    @property
    def location(self) -> tuple[float, ...]:
        """The middle of the bounds; 0 where that is not ruled out."""
        return tuple(0.0 if low <= 0 <= high else float((low + high) / 2) for low, high in self.bounds)

    def same(self, other: Zero) -> bool:
        """Whether two zeros are one: where the zone that holds a single zero holds both."""
        return _holds(self.zone, other.bounds) or _holds(other.zone, self.bounds)


@dataclass(frozen=True, eq=False)
class Exploration:
    """Zeros, and boxes that may hold more; everything else was proven empty. `boxes` counts the tests."""

    zeros: tuple[Zero, ...]
    open: tuple[Box, ...]
    boxes: int
    finished: bool


def explore(
    equations: Equations, boxes: Sequence[Box], deadline: float, *, most: float = math.inf, bits: int = _BITS
) -> Exploration:
    """Every zero of the equations in the boxes, until the deadline or the largest number of tests.

    Args:
        equations: what must vanish.
        boxes: where to look; together they are the region.
        deadline: in the seconds of `time.monotonic`.
        most: tests after which the search gives up.
        bits: working precision.
    """
    whole = np.ptp(np.array(boxes), axis=(0, 2))
    queue, zeros, left, count = deque(boxes), [], [], 0
    with ctx.workprec(bits):
        while queue:
            if count >= most or len(queue) > _MOST_WAITING or time.monotonic() > deadline:
                return Exploration(tuple(zeros), (*left, *queue), count, False)
            box = queue.popleft()
            if any(_inside(box, zero.zone) for zero in zeros):
                continue
            count += 1
            outcome = _narrowed(equations, box)
            if isinstance(outcome, Zero):
                if not any(outcome.same(zero) for zero in zeros):
                    zeros.append(outcome)
            elif outcome is not None:
                box, influence = outcome
                lengths = np.array([high - low for low, high in box]) / whole
                parts = halves(box, int((lengths * influence).argmax()))
                # Floats that are neighbours have no number between them.
                if (lengths <= _SMALLEST).all() or box in parts:
                    left.append(box)
                else:
                    queue.extend(parts)
    return Exploration(tuple(zeros), tuple(left), count, True)


def certified(equations: Equations, point: Sequence[float], radius: float = 1e-6) -> Zero | None:
    """The proof that exactly one zero lies near a point, or None.

    The box tried first has the radius, relative to the coordinates' sizes; smaller ones follow.
    """
    with ctx.workprec(_BITS):
        for shrink in (1.0, 1e-3, 1e-6):
            zone = tuple(
                (x - radius * shrink * (1 + abs(x)), x + radius * shrink * (1 + abs(x))) for x in point
            )
            image = _image(equations, ranges_of(zone))
            if image is not None and _interior(image.krawczyk, zone):
                return _fine(equations, zone)
    return None


@dataclass(frozen=True, eq=False)
class _Image:
    """What Krawczyk's operator says on a box: K(X), whether a mean-value form excludes zero, and |J|."""

    krawczyk: list[Range] | None
    empty: bool
    sizes: np.ndarray


def _narrowed(equations: Equations, box: Box) -> Zero | tuple[Box, np.ndarray] | None:
    """None: proven empty. A zero: proven to be the only one. Else a smaller box and its sides' influence."""
    while True:
        if equations.empty(ranges_of(box)):
            return None
        zone = widened(box)
        image = _image(equations, ranges_of(zone))
        if image is None:
            return box, np.ones(len(box))
        if image.empty:
            return None
        if image.krawczyk is None:
            return box, _influence(image.sizes, box)
        if _interior(image.krawczyk, zone):
            return _fine(equations, zone)
        smaller = _intersection(image.krawczyk, box)
        if smaller is None:
            return None
        if _shrunk(box, smaller) > _WORTHWHILE:
            return smaller, _influence(image.sizes, smaller)
        box = smaller


def _image(equations: Equations, ranges: Sequence[Range]) -> _Image | None:
    """The mean-value forms on a box; None where the slopes are unbounded."""
    slopes = equations.slopes(ranges)
    if slopes is None:
        return None
    n = len(ranges)
    middle = [((low + high) / 2).mid() for low, high in ranges]
    at_middle, _ = equations.values([(m, m) for m in middle])
    value = arb_mat(n, 1, [low.union(high) for low, high in at_middle])
    reach = arb_mat(n, 1, [low.union(high) - m for (low, high), m in zip(ranges, middle, strict=True)])
    sizes = np.array([float(entry.abs_upper()) for entry in slopes.entries()]).reshape(n, n)
    if any(not form.contains(0) for form in (value + slopes * reach).entries()):
        return _Image(None, True, sizes)
    inverse = _inverse(slopes)
    if inverse is None:
        return _Image(None, False, sizes)
    moved = arb_mat(n, 1, middle) - inverse * value + (_unit(n) - inverse * slopes) * reach
    return _Image([(k.lower(), k.upper()) for k in moved.entries()], False, sizes)


def _inverse(slopes: Any) -> Any:
    n = slopes.nrows()
    middle = np.array([float(entry.mid()) for entry in slopes.entries()]).reshape(n, n)
    try:
        with np.errstate(all="ignore"):
            inverse = np.linalg.inv(middle)
    except np.linalg.LinAlgError:
        return None
    return arb_mat(n, n, inverse.ravel().tolist()) if np.isfinite(inverse).all() else None


def _unit(n: int) -> Any:
    return arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])


def _fine(equations: Equations, zone: Box) -> Zero:
    """The zero of a zone, enclosed at high precision by Krawczyk's operator applied again and again."""
    ranges = ranges_of(zone)
    with ctx.workprec(_FINE_BITS):
        goal = [arb(2) ** (16 - _FINE_BITS) * (high - low + abs(low)) for low, high in ranges]
        while True:
            wide = [k for k, (low, high) in enumerate(ranges) if high - low > goal[k]]
            image = _image(equations, ranges) if wide else None
            if image is None or image.krawczyk is None:
                break
            narrower = [
                (arb.max(low, a), arb.min(high, b))
                for (low, high), (a, b) in zip(ranges, image.krawczyk, strict=True)
            ]
            gain, ranges = _shrunk([ranges[k] for k in wide], [narrower[k] for k in wide]), narrower
            if gain > _SETTLED:
                break
        return Zero(zone, tuple((_rational(low.lower()), _rational(high.upper())) for low, high in ranges))


def _rational(number: Any) -> sp.Rational:
    fraction = number.fmpq()
    return sp.Rational(int(fraction.p), int(fraction.q))


def _interior(image: Sequence[Range] | None, box: Box) -> bool:
    return image is not None and all(
        low > side[0] and high < side[1] for (low, high), side in zip(image, box, strict=True)
    )


def _intersection(image: Sequence[Range], box: Box) -> Box | None:
    smaller = []
    for (low, high), (a, b) in zip(image, box, strict=True):
        if low > b or high < a:
            return None
        left = a if not low > a else max(a, math.nextafter(float(low), -math.inf))
        right = b if not high < b else min(b, math.nextafter(float(high), math.inf))
        smaller.append((left, right))
    return tuple(smaller)


def _influence(sizes: np.ndarray, box: Box) -> np.ndarray:
    """For each side, its part in the change of the function that depends on it most; never quite zero."""
    change = sizes * [high - low for low, high in box]
    total = change.sum(axis=1, keepdims=True)
    share = np.divide(change, total, out=np.zeros_like(change), where=(total > 0) & np.isfinite(total))
    return share.max(axis=0) + 1e-3


def _shrunk(box: Sequence[Range], smaller: Sequence[Range]) -> float:
    """The length of the side that shrank least, as a part of what it was; 1 for a box without extent."""
    return max(
        (float((d - c) / (b - a)) for (a, b), (c, d) in zip(box, smaller, strict=True) if b > a), default=1.0
    )


def _inside(box: Box, zone: Box) -> bool:
    return all(a <= low and high <= b for (low, high), (a, b) in zip(box, zone, strict=True))


def _holds(zone: Sequence[tuple[Any, Any]], bounds: Sequence[tuple[sp.Rational, sp.Rational]]) -> bool:
    return all(
        sp.Rational(a) <= low and high <= sp.Rational(b)
        for (low, high), (a, b) in zip(bounds, zone, strict=True)
    )
