"""Zeros of polynomials whose coefficients hold parameters: for all values of the parameters but exceptional ones.

Factors are branches; an equation that is linear in an unknown eliminates it; what is left is put into triangular
form by a Groebner basis over the rational functions of the parameters. Every leading coefficient, discriminant and
denominator met on the way is a polynomial in the parameters at whose zeros the answer may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from symbolic.varieties import ideals
from symbolic.varieties.deadline import Deadline
from symbolic.varieties.polynomials import factored, never_zero, normal, transported, unknowns_of

__all__ = ["Generic", "GenericSolver", "coefficients"]


@dataclass(frozen=True)
class Generic:
    """A branch of solutions, in terms of the unknowns that are left.

    Args:
        solved: (unknown i, numerator n, denominator d), each x_i = n / d in what is solved later or left.
        left: equations between the unknowns that are left, irreducible, in triangular order where finite.
        equations: the equations that define the branch.
        nonzero: what must not vanish.
        dimension: of the branch, for all but exceptional parameters.
    """

    solved: tuple[tuple[int, Any, Any], ...]
    left: tuple[Any, ...]
    equations: tuple[Any, ...]
    nonzero: tuple[Any, ...]
    dimension: int


class GenericSolver:
    """The branches of one system.

    Args:
        size: the number of unknowns, which come first in the ring; parameters follow.
        signs: for each unknown and parameter "positive", "nonnegative" or "".
        deadline: until when.

    `exceptions` collects irreducible polynomials in the parameters at whose zeros the answer may change.
    """

    def __init__(self, size: int, signs: Sequence[str], deadline: Deadline):
        self.size = size
        self.signs = tuple(signs)
        self.deadline = deadline
        self.exceptions: list[Any] = []

    def solve(self, equations: Iterable[Any]) -> list[Generic]:
        """All branches."""
        return self._branches(list(equations), tuple(range(self.size)), (), (), ())

    def note(self, polynomial: Any) -> None:
        """Remember the factors of what holds parameters only and must not vanish."""
        if polynomial.is_zero():
            return
        for factor, _ in factored(polynomial):
            if (
                not self.unknowns(factor)
                and not never_zero(factor.terms(), self.signs)
                and factor not in self.exceptions
            ):
                self.exceptions.append(factor)

    def unknowns(self, polynomial: Any) -> frozenset[int]:
        """The unknowns, not parameters, that occur."""
        return frozenset(i for i in unknowns_of(polynomial) if i < self.size)

    def contains(self, equations: Sequence[Any], polynomial: Any) -> bool:
        """Whether a polynomial vanishes on all of a branch, for all parameters but exceptional ones."""
        context = polynomial.context()
        spare = context.nvars() - 1
        inverse = context.gens()[spare] * polynomial - 1
        places = (spare, *range(spare))
        basis = ideals.groebner([*equations, inverse], self.deadline, places, "lex")
        return any(not self.unknowns(p) and spare not in unknowns_of(p) for p in basis)

    def _branches(
        self,
        members: list[Any],
        places: tuple[int, ...],
        solved: tuple[tuple[int, Any, Any], ...],
        used: tuple[Any, ...],
        nonzero: tuple[Any, ...],
        based: bool = False,
    ) -> list[Generic]:
        self.deadline.check()
        choices = self._split(members, nonzero)
        if choices is None:
            return []
        if len(choices) != 1:
            return [
                branch
                for choice in choices
                for branch in self._branches(choice, places, solved, used, nonzero)
            ]
        (members,) = choices
        step = self._linear(members, places)
        if step is not None:
            return self._eliminated(step, members, places, solved, used, nonzero)
        if not members:
            return [Generic(solved, (), used, nonzero, len(places))]
        if not based and len(members) + len(places) > 2:
            basis = self._basis(members)
            if any(not self.unknowns(p) for p in basis):
                for p in basis:
                    self.note(p)
                return []
            return self._branches(basis, places, solved, used, nonzero, based=True)
        return [self._left(members, places, solved, used, nonzero)]

    def _split(self, members: list[Any], nonzero: tuple[Any, ...]) -> list[list[Any]] | None:
        """The same system by irreducible equations, one list for each choice of a factor; None: no solution."""
        kept: list[Any] = []
        for k, polynomial in enumerate(members):
            if polynomial.is_zero():
                continue
            self.note(polynomial)
            factors = [
                f
                for f, _ in factored(polynomial)
                if self.unknowns(f) and not never_zero(f.terms(), self.signs) and f not in nonzero
            ]
            if not factors:
                return None
            if len(factors) > 1:
                return [[*kept, f, *members[k + 1 :]] for f in factors]
            if factors[0] not in kept:
                kept.append(factors[0])
        return [kept]

    def _linear(self, members: list[Any], places: tuple[int, ...]) -> tuple[int, int, Any, Any] | None:
        """(equation, unknown, r, c) of an equation c x + r = 0; c free of unknowns if there is such a one."""
        found = []
        for k, polynomial in enumerate(members):
            for i in places:
                parts = coefficients(polynomial, i)
                if len(parts) == 2:
                    c = parts[1]
                    cost = (len(self.unknowns(c)), len(unknowns_of(c)), len(c), len(polynomial), k, i)
                    found.append((cost, (k, i, parts[0], c)))
        return min(found, key=lambda pair: pair[0])[1] if found else None

    def _eliminated(
        self,
        step: tuple[int, int, Any, Any],
        members: list[Any],
        places: tuple[int, ...],
        solved: tuple[tuple[int, Any, Any], ...],
        used: tuple[Any, ...],
        nonzero: tuple[Any, ...],
    ) -> list[Generic]:
        k, i, rest, c = step
        others = members[:k] + members[k + 1 :]
        branches = []
        if self.unknowns(c) and c not in nonzero:
            branches = self._branches([*others, c, rest], places, solved, used, nonzero)
            nonzero = (*nonzero, *(f for f, _ in factored(c) if self.unknowns(f)))
        self.note(c)
        left = tuple(j for j in places if j != i)
        replaced = [_replaced(p, i, -rest, c) for p in others]
        return branches + self._branches(
            replaced, left, (*solved, (i, -rest, c)), (*used, members[k]), nonzero
        )

    def _basis(self, members: list[Any]) -> list[Any]:
        basis = ideals.groebner(members, self.deadline, order="lex")
        for coefficient in self._leading(basis):
            self.note(coefficient)
        return basis

    def _leading(self, basis: list[Any]) -> list[Any]:
        parameters = range(self.size, basis[0].context().nvars())
        return ideals.leading_coefficients(basis, range(self.size), parameters)

    def _left(
        self,
        members: list[Any],
        places: tuple[int, ...],
        solved: tuple[tuple[int, Any, Any], ...],
        used: tuple[Any, ...],
        nonzero: tuple[Any, ...],
    ) -> Generic:
        powers = [self._power(p, places) for p in members]
        met = ideals.smallest_meeting([frozenset(k for k, e in enumerate(m) if e) for m in powers])
        free = len(places) - len(met)
        members = sorted(members, key=lambda p: (len(self.unknowns(p)), p.total_degree(), str(p)))
        return Generic(solved, tuple(members), (*used, *members), nonzero, free)

    def _power(self, polynomial: Any, places: tuple[int, ...]) -> tuple[int, ...]:
        """The lexicographic leading monomial in the unknowns that are left."""
        return max(tuple(int(m[i]) for i in places) for m in polynomial.monoms())


def coefficients(polynomial: Any, i: int) -> list[Any]:
    """The coefficients of the powers of unknown i, from the zeroth on."""
    found: list[dict[tuple[int, ...], int]] = [{} for _ in range(max(int(polynomial.degrees()[i]), 0) + 1)]
    for exponents, coefficient in transported(polynomial).items():
        found[exponents[i]][(*exponents[:i], 0, *exponents[i + 1 :])] = coefficient
    return [polynomial.context().from_dict(part) for part in found]


def _replaced(polynomial: Any, i: int, numerator: Any, denominator: Any) -> Any:
    """The numerator of the polynomial with a quotient in the place of unknown i."""
    parts = coefficients(polynomial, i)
    top = len(parts) - 1
    total = polynomial.context().from_dict({})
    for k, part in enumerate(parts):
        total = total + part * numerator**k * denominator ** (top - k)
    return normal(total)
