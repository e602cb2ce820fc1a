"""Eliminants: the polynomials of linear forms on the solutions, by resultants or from a quotient algebra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symbolic.varieties.deadline import Deadline
from symbolic.varieties.matching import Eliminant
from symbolic.varieties.polynomials import factored_univariate, univariate

__all__ = ["PlanarProjections", "QuotientProjections", "UnivariateProjections"]

#: Largest number of solutions for which resultants and characteristic polynomials are known to be quick.
_QUICK_PLANAR, _QUICK_QUOTIENT = 300, 40


class UnivariateProjections:
    """One polynomial in one unknown."""

    size = 1

    def __init__(self, polynomial: Any, i: int):
        self._eliminant = factored_univariate(univariate(polynomial, i))

    def partial(self, weights: Sequence[int]) -> Eliminant:
        return self._eliminant

    def whole(self, weights: Sequence[int]) -> Eliminant | None:
        return self._eliminant


class PlanarProjections:
    """Two polynomials without common factor in the unknowns i and j.

    The resultant that eliminates y from p(t - w y, y) and q(t - w y, y) vanishes exactly at the values of
    t = x + w y on the common zeros, to the order of their intersection multiplicities, if the leading
    coefficient in y of p or of q is constant; otherwise it may also vanish where zeros meet at infinity.
    """

    size = 2

    def __init__(self, first: Any, second: Any, i: int, j: int, deadline: Deadline):
        self._pair, self._places, self._deadline = (first, second), (i, j), deadline
        (a, b), (c, d) = ((p.degrees()[i], p.degrees()[j]) for p in self._pair)
        # Bezout's bounds for the plane and for the product of two lines.
        bound = min(first.total_degree() * second.total_degree(), a * d + b * c)
        deadline.allow(bound, _QUICK_PLANAR)
        self._known: dict[tuple[int, ...], Eliminant | None] = {}

    def partial(self, weights: Sequence[int]) -> Eliminant:
        key = tuple(weights)
        if key not in self._known:
            keep, drop = self._places if key == (1,) else self._places[::-1]
            self._known[key] = self._eliminated(*self._pair, keep, drop)
        return self._known[key] or ()

    def whole(self, weights: Sequence[int]) -> Eliminant | None:
        key = tuple(weights)
        if key not in self._known:
            self._known[key] = self._sheared(weights[1])
        return self._known[key]

    def _sheared(self, w: int) -> Eliminant | None:
        i, j = self._places
        context = self._pair[0].context()
        letters = list(context.gens())
        letters[i] = letters[i] - w * letters[j]
        sheared = [p.compose(*letters, ctx=context) for p in self._pair]
        if not any(p.degrees()[j] == p.total_degree() for p in sheared):
            return None
        return self._eliminated(*sheared, i, j)

    def _eliminated(self, first: Any, second: Any, keep: int, drop: int) -> Eliminant:
        self._deadline.check()
        resultant = first.resultant(second, first.context().name(drop))
        return factored_univariate(univariate(resultant, keep))


class QuotientProjections:
    """An ideal with finitely many solutions, by multiplication in the algebra of polynomials modulo it.

    Args:
        basis: its reduced Groebner basis in a degree order.
        places: the unknowns.

    The characteristic polynomial of multiplication by s is the product of (t - s(z))^m(z) over the solutions.
    """

    def __init__(self, basis: Sequence[Any], places: Sequence[int], deadline: Deadline):
        self._deadline = deadline
        self._places = tuple(places)
        self.size = len(self._places)
        self._leading = {self._own(g.monomial(0)): g for g in basis}
        self._normal: dict[tuple[int, ...], dict[int, Any]] = {}
        self._known: dict[tuple[int, ...], Eliminant] = {}
        self.monomials = self._standard_monomials()
        self._at = {m: k for k, m in enumerate(self.monomials)}
        self._matrices = [self._multiplication(k) for k in range(self.size)]

    def partial(self, weights: Sequence[int]) -> Eliminant:
        from flint import fmpq, fmpq_mat

        key = tuple(weights)
        if key not in self._known:
            self._deadline.check()
            matrix = fmpq_mat(len(self.monomials), len(self.monomials))
            for weight, multiplication in zip(weights, self._matrices, strict=False):
                matrix += fmpq(weight) * multiplication
            self._known[key] = factored_univariate(matrix.charpoly().numer())
        return self._known[key]

    def whole(self, weights: Sequence[int]) -> Eliminant | None:
        return self.partial(weights)

    def _own(self, exponents: Sequence[int]) -> tuple[int, ...]:
        return tuple(int(exponents[i]) for i in self._places)

    def _standard_monomials(self) -> list[tuple[int, ...]]:
        """The monomials that no leading monomial divides: a basis of the algebra."""
        found = [(0,) * self.size]
        seen = set(found)
        for monomial in found:
            self._deadline.allow(len(found), _QUICK_QUOTIENT)
            for k in range(self.size):
                new = _raised(monomial, k)
                if new not in seen and not any(_divides(lead, new) for lead in self._leading):
                    seen.add(new)
                    found.append(new)
        return found

    def _multiplication(self, k: int) -> Any:
        from flint import fmpq_mat

        matrix = fmpq_mat(len(self.monomials), len(self.monomials))
        for column, monomial in enumerate(self.monomials):
            self._deadline.check()
            for row, coefficient in self._normal_form(_raised(monomial, k)).items():
                matrix[row, column] = coefficient
        return matrix

    def _normal_form(self, monomial: tuple[int, ...]) -> dict[int, Any]:
        """The coefficients, by place in the basis, of what a monomial is modulo the ideal."""
        from flint import fmpq

        if monomial in self._at:
            return {self._at[monomial]: fmpq(1)}
        if monomial not in self._normal:
            result: dict[int, Any] = {}
            if monomial in self._leading:
                (_, lead), *tail = self._leading[monomial].terms()
                for exponents, coefficient in tail:
                    result[self._at[self._own(exponents)]] = fmpq(-coefficient, lead)
            else:
                k = next(k for k in range(self.size) if monomial[k] and _lowered(monomial, k) not in self._at)
                for place, coefficient in self._normal_form(_lowered(monomial, k)).items():
                    for row, part in self._normal_form(_raised(self.monomials[place], k)).items():
                        result[row] = result.get(row, fmpq(0)) + coefficient * part
            self._normal[monomial] = result
        return self._normal[monomial]


def _raised(monomial: tuple[int, ...], k: int) -> tuple[int, ...]:
    return (*monomial[:k], monomial[k] + 1, *monomial[k + 1 :])


def _lowered(monomial: tuple[int, ...], k: int) -> tuple[int, ...]:
    return (*monomial[:k], monomial[k] - 1, *monomial[k + 1 :])


def _divides(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))
