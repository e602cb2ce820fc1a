"""Points of a generic branch as expressions of the parameters, with the conditions under which they are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import Any

import sympy as sp

from symbolic.varieties.parametric import Generic, GenericSolver, coefficients
from symbolic.varieties.polynomials import factored, transported
from symbolic.varieties.quotients import Quotients

__all__ = ["ExpressedPoint", "NotExpressibleError", "Writer", "at_least_zero", "condition", "denominators"]


class NotExpressibleError(Exception):
    """Roots that square roots of the parameters do not express."""


@dataclass(frozen=True)
class ExpressedPoint:
    """The unknowns of a point by their place, and the relations under which it exists."""

    values: Mapping[int, sp.Expr]
    conditions: tuple[sp.Basic, ...]


def condition(relation: sp.Basic) -> tuple[sp.Basic, ...] | None:
    """() if a relation always holds, None if it never does, else the relation itself."""
    if relation in (sp.true, True):
        return ()
    if relation in (sp.false, False):
        return None
    return (relation,)


def at_least_zero(expression: sp.Expr) -> sp.Basic:
    """The relation expression >= 0, without a positive number as factor."""
    coefficient, rest = sp.factor_terms(expression).as_coeff_Mul()
    return sp.Ge(rest, 0) if coefficient.is_positive else sp.Ge(expression, 0)


class Writer:
    """Expressions of one ring: its unknowns and parameters are `symbols`, in order."""

    def __init__(self, symbols: Sequence[sp.Symbol]):
        self.symbols = tuple(symbols)
        self._quotients = Quotients(symbols)

    def plain(self, polynomial: Any) -> sp.Expr:
        """A polynomial of the ring, expanded."""
        terms = transported(polynomial) or {(0,) * len(self.symbols): 0}
        return sp.Poly.from_dict(terms, *self.symbols).as_expr()

    def numerator(self, expression: sp.Expr) -> Any | None:
        """The numerator as a polynomial of the ring; None if the expression is not rational."""
        return None if _has_roots(expression) else self._quotients.of(sp.sympify(expression))[0]

    def tidy(self, expression: sp.Expr) -> sp.Expr:
        """Factored where it is rational, else without roots in denominators."""
        if _has_roots(expression):
            return sp.radsimp(expression)
        numerator, denominator = self._quotients.of(sp.sympify(expression))
        return self._product(numerator) / self._product(denominator)

    def vanishes(self, expression: sp.Expr) -> bool:
        """Whether an expression, with square roots of parameters, is identically zero."""
        if expression == 0:
            return True
        if not _has_roots(expression):
            return self._quotients.of(sp.sympify(expression))[0].is_zero()
        return bool(sp.radsimp(sp.expand(expression)) == 0 or sp.simplify(expression) == 0)

    def points(self, branch: Generic, solver: GenericSolver) -> list[ExpressedPoint]:
        """The points of a branch of dimension 0.

        Raises:
            NotExpressibleError: an equation that is left has no solution by square roots and one further root.
        """
        found = [ExpressedPoint({}, ())]
        for polynomial in branch.left:
            found = [more for point in found for more in self._extended(point, polynomial, solver)]
        for i, numerator, denominator in reversed(branch.solved):
            found = [more for point in found for more in self._quotient(point, i, numerator, denominator)]
        return found

    def _product(self, polynomial: Any) -> sp.Expr:
        if polynomial.is_zero():
            return sp.S.Zero
        factors = factored(polynomial)
        rest = polynomial
        for factor, exponent in factors:
            rest = rest / factor**exponent
        return sp.Mul(self.plain(rest), *(self.plain(factor) ** exponent for factor, exponent in factors))

    def _extended(
        self, point: ExpressedPoint, polynomial: Any, solver: GenericSolver
    ) -> list[ExpressedPoint]:
        """A point with one unknown more, for each real root of an equation in it."""
        new = [i for i in solver.unknowns(polynomial) if i not in point.values]
        if len(new) != 1:
            raise NotExpressibleError
        (i,) = new
        parts = coefficients(polynomial, i)
        solver.note(parts[-1])
        if solver.unknowns(polynomial) == {i} and len(parts) > 2:
            solver.note(polynomial.discriminant(polynomial.context().name(i)))
        here = self._here(point)
        terms = [sp.expand(self.plain(part).subs(here)) for part in parts]
        return [
            ExpressedPoint({**point.values, i: value}, (*point.conditions, *conditions))
            for value, conditions in self._roots(terms)
        ]

    def _quotient(
        self, point: ExpressedPoint, i: int, numerator: Any, denominator: Any
    ) -> list[ExpressedPoint]:
        here = self._here(point)
        below = self.tidy(self.plain(denominator).subs(here))
        if self.vanishes(below):
            return []
        value = self.tidy(self.plain(numerator).subs(here) / below)
        return [ExpressedPoint({**point.values, i: value}, point.conditions)]

    def _here(self, point: ExpressedPoint) -> dict[sp.Symbol, sp.Expr]:
        return {self.symbols[k]: value for k, value in point.values.items()}

    def _roots(self, terms: list[sp.Expr]) -> list[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
        """The real roots of terms[0] + terms[1] x + ..., a polynomial in x^k of degree at most 2."""
        step = reduce(gcd, (k for k, c in enumerate(terms) if c != 0), 0)
        inner = terms[::step]
        if self.vanishes(inner[-1]):
            raise NotExpressibleError
        if len(inner) == 2:
            powers = [(self.tidy(-inner[0] / inner[1]), ())]
        elif len(inner) == 3:
            c, b, a = inner
            discriminant = self.tidy(sp.expand(b**2 - 4 * a * c))
            holds = condition(at_least_zero(discriminant))
            if holds is None:
                return []
            root = _root(discriminant, 2)
            powers = [(self.tidy((-b + sign * root) / (2 * a)), holds) for sign in (-1, 1)]
        else:
            raise NotExpressibleError
        return [
            (root, (*conditions, *more))
            for power, conditions in powers
            for root, more in _radicals(power, step)
        ]


def _has_roots(expression: sp.Expr) -> bool:
    """Whether something in an expression is not rational."""
    return any(not p.exp.is_Integer for p in expression.atoms(sp.Pow)) or expression.has(sp.Function)


def denominators(expression: sp.Expr) -> list[sp.Expr]:
    """What must not vanish for an expression to have a value, in an order that never changes."""
    return sorted(
        {p.base for p in expression.atoms(sp.Pow) if p.exp.is_negative and p.base.free_symbols},
        key=sp.default_sort_key,
    )


def _root(power: sp.Expr, k: int) -> sp.Expr:
    """The k-th root, with the root of a positive number as factor taken out."""
    coefficient, rest = sp.factor_terms(power).as_coeff_Mul()
    if coefficient.is_positive:
        return coefficient ** sp.Rational(1, k) * rest ** sp.Rational(1, k)
    return power ** sp.Rational(1, k)


def _radicals(power: sp.Expr, k: int) -> list[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    """The real k-th roots."""
    if k == 1:
        return [(power, ())]
    if k % 2 == 0:
        holds = condition(at_least_zero(power))
        root = _root(power, k)
        return [] if holds is None else [(-root, holds), (root, holds)]
    if power.is_nonnegative:
        return [(_root(power, k), ())]
    if power.is_nonpositive:
        return [(-_root(-power, k), ())]
    return [(sp.sign(power) * sp.Abs(power) ** sp.Rational(1, k), ())]
