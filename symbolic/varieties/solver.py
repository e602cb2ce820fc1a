"""The search through branches and blocks: every equation is split into factors, every system into blocks.

Each split keeps all solutions: a product vanishes where one of its factors does, and unknowns that no
equation ties together are solved for apart. Intersection multiplicities of as many equations as unknowns add up
over factors and multiply over blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from symbolic.varieties import ideals
from symbolic.varieties.audit import sturm_count
from symbolic.varieties.curves import curve_key, plane_curve
from symbolic.varieties.deadline import Deadline
from symbolic.varieties.linear import solve_linear
from symbolic.varieties.matching import Projections, real_points
from symbolic.varieties.numbers import AlgebraicNumber, fraction_number
from symbolic.varieties.polynomials import (
    distinct,
    factored,
    linear_root,
    never_zero,
    normal,
    substituted,
    unknowns_of,
)
from symbolic.varieties.projections import PlanarProjections, QuotientProjections, UnivariateProjections
from symbolic.varieties.real_part import real_surface

__all__ = ["Part", "PartialPoint", "Solver"]

#: Largest number of terms for which factoring is known to be quick.
_QUICK_FACTORS = 2000


@dataclass(frozen=True)
class PartialPoint:
    """Coordinates of the unknowns of one block (place -> number), with multiplicity and field degree."""

    places: dict[int, AlgebraicNumber]
    multiplicity: int | None
    degree: int
    curve: tuple | None = None


@dataclass(frozen=True)
class Part:
    """Some solutions: finitely many (dimension 0, with `points`), or a set of positive dimension.

    `equations` hold exactly on the part, up to components of other parts. `complex_count` counts the complex
    solutions of a finite part with multiplicity, None where that is not known. `proven` tells whether the part
    is known to have wanted real points of its dimension.
    """

    equations: tuple[Any, ...]
    dimension: int
    points: tuple[PartialPoint, ...] = ()
    complex_count: int | None = None
    proven: bool = True


class Solver:
    """What is the same in every branch.

    Args:
        signs: for each unknown "positive", "nonnegative" or "", where only such solutions are wanted.
        deadline: until when.

    `dropped` tells whether something was left out that has no wanted zeros, but may have complex ones;
    `faults` are counts that disagree, in words.
    """

    def __init__(self, signs: tuple[str, ...], deadline: Deadline):
        self.signs = signs
        self.deadline = deadline
        self.dropped = False
        self.faults: list[str] = []

    def solve(self, equations: Iterable[Any], places: Sequence[int]) -> list[Part]:
        """All solutions of a system in some of the unknowns."""
        self.deadline.check()
        members = distinct(equations)
        if any(p.is_constant() for p in members):
            return []
        parts = [Part((), 0, (PartialPoint({}, 1, 1),), 1)]
        for some, block in _blocks(members, places):
            pairs = list(product(parts, self._block(some, block)))
            parts = [_joined(a, b) for a, b in pairs if not _empty(a, b)]
            self.dropped |= len(parts) < len(pairs)
        return parts

    def never_zero(self, polynomial: Any) -> bool:
        """Whether a polynomial visibly has no wanted zero."""
        return never_zero(polynomial.terms(), self.signs)

    def stripped(self, polynomial: Any) -> Any:
        """Without the factors that visibly have no wanted zeros."""
        if polynomial.is_zero():
            return polynomial
        self.deadline.allow(len(polynomial), _QUICK_FACTORS)
        for factor, exponent in factored(polynomial):
            if self.never_zero(factor):
                polynomial = polynomial / factor**exponent
        return polynomial

    def split(self, polynomial: Any) -> list[tuple[Any, int]]:
        """The irreducible factors that can vanish, with exponents."""
        self.deadline.allow(len(polynomial), _QUICK_FACTORS)
        factors = factored(polynomial)
        kept = [(f, e) for f, e in factors if not self.never_zero(f)]
        self.dropped |= len(kept) < len(factors)
        return kept

    def wanted(self, i: int, number: AlgebraicNumber) -> bool:
        """Whether a number has the sign that is wanted of an unknown."""
        least = {"positive": 1, "nonnegative": 0, "": -1}[self.signs[i]]
        return least == -1 or number.sign() >= least

    def _block(self, members: list[Any], places: tuple[int, ...]) -> list[Part]:
        if not members:
            return [Part((), len(places))]
        if len(places) == 1:
            return self._line(members, places[0])
        if all(p.total_degree() == 1 for p in members):
            return self._linear(members, places)
        choices = [self.split(polynomial) for polynomial in members]
        if not all(choices):
            return []
        whole = [p for p, factors in zip(members, choices, strict=True) if factors == [(p, 1)]]
        for k, factors in enumerate(choices):
            rest = members[:k] + members[k + 1 :]
            if members[k] not in whole and any(f in whole for f, _ in factors):
                # A multiple of another equation says nothing new.
                return self.solve(rest, places)
            if members[k] not in whole:
                return [
                    _repeated(part, exponent)
                    for factor, exponent in factors
                    for part in self.solve([*rest, factor], places)
                ]
        for k, polynomial in enumerate(members):
            if (root := linear_root(polynomial)) is not None:
                return self._fixed(polynomial, root, members[:k] + members[k + 1 :], places)
        if len(places) == 2 and len(members) == 1:
            return self._curve(members[0], *places)
        if len(places) == 2 and len(members) == 2:
            return [self._points(members, places, PlanarProjections(*members, *places, self.deadline))]
        return self._ideal(members, places)

    def _line(self, members: list[Any], i: int) -> list[Part]:
        shared = members[0]
        for polynomial in members[1:]:
            shared = shared.gcd(polynomial)
        if shared.is_constant():
            return []
        part = self._points([normal(shared)], (i,), UnivariateProjections(shared, i))
        return [part if len(members) == 1 else _uncounted(part)]

    def _linear(self, members: list[Any], places: tuple[int, ...]) -> list[Part]:
        """Linear equations: nothing, a point, or a flat set."""
        found = solve_linear(members, places)
        if found is None:
            return []
        if found.point is None:
            proven = not any(self.signs[i] for i in places)
            return [Part(found.equations, len(places) - len(found.equations), proven=proven)]
        numbers = {i: fraction_number(value) for i, value in found.point.items()}
        wanted = all(self.wanted(i, x) for i, x in numbers.items())
        part = Part(found.equations, 0, (PartialPoint(numbers, 1, 1),) if wanted else (), 1)
        return [part if len(members) == len(places) else _uncounted(part)]

    def _fixed(
        self, polynomial: Any, root: tuple[int, Fraction], rest: list[Any], places: tuple[int, ...]
    ) -> list[Part]:
        """One unknown is a rational number; the others are solved for with it in place."""
        i, value = root
        number = fraction_number(value)
        points = (PartialPoint({i: number}, 1, 1),) if self.wanted(i, number) else ()
        here = Part((polynomial,), 0, points, 1)
        others = self.solve([substituted(p, i, value) for p in rest], [k for k in places if k != i])
        parts = [_joined(here, part) for part in others if not _empty(here, part)]
        self.dropped |= len(parts) < len(others)
        return parts

    def _curve(self, polynomial: Any, i: int, j: int) -> list[Part]:
        """One irreducible equation in two unknowns: its real curve and its isolated real points."""
        signed = (self.signs[i] == "positive", self.signs[j] == "positive")
        curve = plane_curve(polynomial, i, j, signed, self.deadline)
        parts = [Part((polynomial,), 1)] if curve.is_curve else []
        self.dropped |= not curve.is_curve
        if curve.isolated:
            key = curve_key(polynomial)
            points = tuple(
                PartialPoint({i: x, j: y}, None, d, key)
                for (x, y), d in curve.isolated
                if self.wanted(i, x) and self.wanted(j, y)
            )
            parts.append(Part((polynomial,), 0, points))
        return parts

    def _points(self, members: list[Any], places: Sequence[int], projections: Projections) -> Part:
        found = real_points(projections, self.deadline, lambda j, x: self.wanted(places[j], x))
        counts = [sturm_count(minimal) for minimal, _ in found.eliminant]
        real = len(found.points) + found.unwanted
        if None not in counts and sum(counts) != real:
            self.faults.append(f"{real} real solutions were found where Sturm's theorem counts {sum(counts)}")
        points = tuple(
            PartialPoint(dict(zip(places, place, strict=True)), multiplicity, degree)
            for place, multiplicity, degree in found.points
        )
        return Part(tuple(members), 0, points, found.complex_count)

    def _ideal(self, members: list[Any], places: tuple[int, ...]) -> list[Part]:
        """By a Groebner basis: finitely many solutions, or a part of the highest dimension and the rest."""
        basis = ideals.groebner(members, self.deadline)
        if ideals.is_everything(basis):
            return []
        free = ideals.free_places(basis, places)
        if not free:
            part = self._points(basis, places, QuotientProjections(basis, places, self.deadline))
            return [part if len(members) == len(places) else _uncounted(part)]
        squares = [p for p in basis if self._sum_of_squares(p)]
        if squares:
            terms = [m for p in squares for m in _monomials(p)]
            self.dropped = True
            return [_uncounted(part) for part in self.solve([*basis, *terms], places)]
        if any(self._reducible(p) for p in basis):
            return [_uncounted(part) for part in self.solve(basis, places)]
        if len(members) == 1:
            return self._surface(members[0], places)
        return self._highest(basis, places, free)

    def _surface(self, polynomial: Any, places: tuple[int, ...]) -> list[Part]:
        """One irreducible equation in three or more unknowns."""
        surface = real_surface(polynomial, places, self)
        if surface.is_full is not False:
            return [Part((polynomial,), len(places) - 1, proven=bool(surface.is_full))]
        self.dropped = True
        key = curve_key(polynomial)
        points = tuple(replace(p, multiplicity=None, curve=key) for p in surface.isolated)
        return [Part((polynomial,), 0, points)] if points else []

    def _sum_of_squares(self, polynomial: Any) -> bool:
        """Whether all terms are visibly of one sign, so that a real zero is one of every term."""
        signs = {coefficient > 0 for coefficient in polynomial.coeffs()}
        even = all(e % 2 == 0 or self.signs[i] for m in polynomial.monoms() for i, e in enumerate(m))
        return len(signs) == 1 and even and len(polynomial) > 1

    def _reducible(self, polynomial: Any) -> bool:
        factors = self.split(polynomial)
        return not factors or len(factors) > 1 or factors[0][1] > 1 or linear_root(polynomial) is not None

    def _highest(self, basis: list[Any], places: tuple[int, ...], free: tuple[int, ...]) -> list[Part]:
        """The part on which the free unknowns are free, and what lies above zeros of leading coefficients.

        Over the field of rational functions of the free unknowns the ideal has finitely many solutions. They
        are all of those where no leading coefficient of a basis vanishes (Gianni, Trager and Zacharias 1988).
        """
        dependent = tuple(i for i in places if i not in free)
        lexicographic = ideals.groebner(basis, self.deadline, (*dependent, *free), "lex")
        leading = ideals.leading_coefficients(lexicographic, dependent, free)
        factors = distinct(f for c in leading for f, _ in factored(c))
        above = basis
        for factor in factors:
            above = ideals.saturated(above, factor, places, self.deadline)
        parts = [] if ideals.is_everything(above) else [Part(tuple(above), len(free), proven=False)]
        if any(self._reducible(p) for p in above):
            parts = self.solve(above, places)
        for factor in factors:
            parts += [_uncounted(part) for part in self.solve([*basis, factor], places)]
        return parts


def _monomials(polynomial: Any) -> list[Any]:
    """For each term the product of its unknowns."""
    context = polynomial.context()
    return [context.from_dict({tuple(int(e > 0) for e in m): 1}) for m in polynomial.monoms()]


def _blocks(members: list[Any], places: Sequence[int]) -> list[tuple[list[Any], tuple[int, ...]]]:
    """The equations and unknowns that hang together."""
    groups: list[tuple[list[Any], frozenset[int]]] = [([], frozenset([i])) for i in places]
    for polynomial in members:
        unknowns = unknowns_of(polynomial)
        tied = [group for group in groups if group[1] & unknowns]
        groups = [group for group in groups if not group[1] & unknowns]
        equations = [p for group in tied for p in group[0]]
        groups.append(([*equations, polynomial], frozenset().union(*(group[1] for group in tied))))
    blocks = [(equations, tuple(i for i in places if i in unknowns)) for equations, unknowns in groups]
    return sorted(blocks, key=lambda block: block[1])


def _empty(a: Part, b: Part) -> bool:
    """Whether a set of positive dimension has no real points, since one of its blocks has none."""
    return a.dimension + b.dimension > 0 and any(p.dimension == 0 and not p.points for p in (a, b))


def _joined(a: Part, b: Part) -> Part:
    """The product of two parts in different unknowns."""
    points = tuple(
        PartialPoint(
            {**p.places, **q.places},
            _times(p.multiplicity, q.multiplicity),
            p.degree * q.degree,
            p.curve or q.curve,
        )
        for p, q in product(a.points, b.points)
    )
    return Part(
        (*a.equations, *b.equations),
        a.dimension + b.dimension,
        points,
        _times(a.complex_count, b.complex_count),
        a.proven and b.proven,
    )


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def _repeated(part: Part, exponent: int) -> Part:
    points = tuple(replace(p, multiplicity=_times(p.multiplicity, exponent)) for p in part.points)
    return replace(part, points=points, complex_count=_times(part.complex_count, exponent))


def _uncounted(part: Part) -> Part:
    points = tuple(replace(p, multiplicity=None) for p in part.points)
    return replace(part, points=points, complex_count=None)
