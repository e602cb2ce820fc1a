"""From eliminants to points: which roots of the coordinates' polynomials belong together, by exclusion.

For a system with finitely many solutions z, let S_j be the polynomial of the values of the linear form
s_j(z) = x_1 + w_2 x_2 + ... + w_j x_j, and X_j that of x_j. A root of S_n is the value of some solution. If
disjoint balls exclude all pairs (root of S_{j-1}, root of X_j) but one from adding up to a root of S_j, then that
pair is right. So the solution above each real root of S_n is found, unique and real, or it is seen that none is
wanted there; or other weights w are tried: some separate all solutions, and enough precision excludes all wrong
pairs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Any, Protocol

from symbolic.varieties.deadline import Deadline
from symbolic.varieties.numbers import AlgebraicNumber, Root, roots_of

__all__ = ["Eliminant", "Matched", "Projections", "real_points"]

#: Irreducible factors with exponents, as `polynomials.factored_univariate` gives them.
Eliminant = tuple[tuple[tuple[int, ...], int], ...]


class Projections(Protocol):
    """A system with finitely many complex solutions, seen through linear forms of its unknowns."""

    size: int

    def partial(self, weights: Sequence[int]) -> Eliminant:
        """A polynomial that vanishes at s(z) for each solution z, s = sum of weights times unknowns."""
        ...

    def whole(self, weights: Sequence[int]) -> Eliminant | None:
        """The polynomial whose roots are exactly s(z), as often as the solutions count; None: bad weights."""
        ...


@dataclass(frozen=True)
class Matched:
    """Wanted real points (coordinates, multiplicity, degree of the number field), and what hid them.

    `unwanted` is the number of real roots of the eliminant above which there is no wanted point.
    """

    points: tuple[tuple[tuple[AlgebraicNumber, ...], int, int], ...]
    unwanted: int
    eliminant: Eliminant

    @property
    def complex_count(self) -> int:
        """The number of complex solutions, each counted with its multiplicity."""
        return sum((len(minimal) - 1) * exponent for minimal, exponent in self.eliminant)


#: Whether a number is wanted as coordinate j.
Wanted = Callable[[int, AlgebraicNumber], bool]


class _NotSeparatedError(Exception):
    """Two candidates for one value: other weights or more precision must tell them apart."""


class _NoCandidateError(Exception):
    """No candidate for a value, which cannot be; the point is missing then, and counts will show it."""


def real_points(projections: Projections, deadline: Deadline, wanted: Wanted = lambda j, x: True) -> Matched:
    """All wanted real solutions, each with its exact multiplicity.

    Raises:
        BudgetExceeded: the time is over.
    """
    if projections.size == 1:
        return _on_a_line(projections, wanted)
    for weights, bits in _attempts(projections.size):
        deadline.check()
        eliminant = projections.whole(weights)
        if eliminant is None:
            continue
        try:
            return _matched(projections, eliminant, weights, bits, deadline, wanted)
        except _NotSeparatedError:
            continue
    raise AssertionError("the attempts never end")


def _on_a_line(projections: Projections, wanted: Wanted) -> Matched:
    eliminant = projections.whole((1,))
    assert eliminant is not None
    roots = [root for root in roots_of(eliminant, 64) if root.number is not None]
    points = [((r.number,), r.multiplicity, r.number.degree) for r in roots if wanted(0, r.number)]
    return Matched(tuple(points), len(roots) - len(points), eliminant)


def _attempts(size: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Pairs (weights, precision) such that every weight meets every precision in the end."""
    for last in count(2):
        for k in range(1, last):
            for sign in (1, -1):
                yield (1, *(sign * k**j for j in range(1, size))), 64 * 2 ** (last - k)


def _matched(
    projections: Projections,
    eliminant: Eliminant,
    weights: Sequence[int],
    bits: int,
    deadline: Deadline,
    wanted: Wanted,
) -> Matched:
    from flint import ctx

    size = projections.size
    with ctx.workprec(bits + 32):
        axes = [roots_of(projections.partial([int(i == j) for i in range(j + 1)]), bits) for j in range(size)]
        sums = [_Line(axes[0])]
        sums += [_Line(roots_of(projections.partial(weights[:j]), bits)) for j in range(2, size)]
        points, unwanted = [], 0
        for root in roots_of(eliminant, bits):
            deadline.check()
            if root.number is None:
                continue
            try:
                place = _descended(root, axes, sums, weights, wanted)
            except _NoCandidateError:
                continue
            if place is None:
                unwanted += 1
            else:
                points.append((place, root.multiplicity, root.number.degree))
    return Matched(tuple(points), unwanted, eliminant)


def _descended(
    root: Root, axes: Sequence[Sequence[Root]], sums: Sequence[_Line], weights: Sequence[int], wanted: Wanted
) -> tuple[AlgebraicNumber, ...] | None:
    """The coordinates of the one solution whose form has this real value; None if none is wanted there."""
    place = []
    for j in range(len(axes) - 1, 0, -1):
        pairs = [(r, x) for x in axes[j] for r in sums[j - 1].meeting(root.ball - weights[j] * x.ball)]
        if not pairs:
            raise _NoCandidateError
        # A wanted solution has real coordinates, hence real sums of them.
        possible = [
            (r, x)
            for r, x in pairs
            if r.number and x.number and wanted(j, x.number) and (j > 1 or wanted(0, r.number))
        ]
        if not possible:
            return None
        if len(pairs) > 1:
            raise _NotSeparatedError
        ((root, coordinate),) = pairs
        place.append(coordinate.number)
    return (root.number, *reversed(place))


class _Line:
    """Roots sorted by real part, so that those which meet a ball are found without looking at all of them."""

    def __init__(self, roots: Sequence[Root]):
        self.roots = sorted(roots, key=lambda root: _middle(root.ball))
        self.places = [_middle(root.ball) for root in self.roots]
        self.widest = max((_size(root.ball.real.rad()) for root in roots), default=0.0)

    def meeting(self, ball: Any) -> list[Root]:
        middle = _middle(ball)
        # Far beyond the rounding of the places to doubles, so that no meeting root is left out.
        reach = self.widest + _size(ball.real.rad()) + 1e-9 * (1.0 + abs(middle))
        if reach == inf:
            return [root for root in self.roots if root.ball.overlaps(ball)]
        found = []
        for k in range(bisect_left(self.places, middle - reach), len(self.places)):
            if self.places[k] > middle + reach:
                break
            if self.roots[k].ball.overlaps(ball):
                found.append(self.roots[k])
        return found


def _middle(ball: Any) -> float:
    return float(ball.real.mid())


def _size(radius: Any) -> float:
    """An upper bound, as a double."""
    return 1.001 * float(radius) + 1e-300
