"""Points of a generic branch as expressions of the parameters, with the conditions under which they are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import Any

import sympy as sp

from symbolic.varieties.parametric import Generic, GenericSolver, coefficients
from symbolic.varieties.polynomials import transported

__all__ = ["ExpressedPoint", "NotExpressibleError", "at_least_zero", "condition", "expressed", "in_sympy"]


class NotExpressibleError(Exception):
    """Roots that square roots of the parameters do not express."""


@dataclass(frozen=True)
class ExpressedPoint:
    """The unknowns of a point by their place, and the relations under which it exists."""

    values: Mapping[int, sp.Expr]
    conditions: tuple[sp.Basic, ...]


def in_sympy(polynomial: Any, symbols: Sequence[sp.Symbol]) -> sp.Expr:
    """A polynomial of the ring as an expression in these symbols."""
    return sp.Poly.from_dict(transported(polynomial) or {(0,) * len(symbols): 0}, *symbols).as_expr()


def condition(relation: sp.Basic) -> tuple[sp.Basic, ...] | None:
    """() if a relation always holds, None if it never does, else the relation itself."""
    if relation in (sp.true, True):
        return ()
    if relation in (sp.false, False):
        return None
    return (relation,)


def at_least_zero(expression: sp.Expr) -> sp.Basic:
    """The relation expression >= 0, without a positive number as factor."""
    coefficient, rest = sp.factor_terms(sp.factor(expression)).as_coeff_Mul()
    return sp.Ge(rest, 0) if coefficient.is_positive else sp.Ge(expression, 0)


def expressed(branch: Generic, solver: GenericSolver, symbols: Sequence[sp.Symbol]) -> list[ExpressedPoint]:
    """The points of a branch of dimension 0.

    Raises:
        NotExpressibleError: an equation that is left has no solution by square roots and one further root.
    """
    points = [ExpressedPoint({}, ())]
    for polynomial in branch.left:
        points = [more for point in points for more in _extended(point, polynomial, solver, symbols)]
    for i, numerator, denominator in reversed(branch.solved):
        points = [
            extended
            for point in points
            for extended in _with_quotient(point, i, numerator, denominator, symbols)
        ]
    return points


def _extended(
    point: ExpressedPoint, polynomial: Any, solver: GenericSolver, symbols: Sequence[sp.Symbol]
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
    here = {symbols[k]: value for k, value in point.values.items()}
    terms = [sp.expand(in_sympy(part, symbols).subs(here)) for part in parts]
    return [
        ExpressedPoint({**point.values, i: value}, (*point.conditions, *conditions))
        for value, conditions in _roots(terms)
    ]


def _roots(terms: list[sp.Expr]) -> list[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    """The real roots of terms[0] + terms[1] x + ..., a polynomial in x^k of degree at most 2."""
    step = reduce(gcd, (k for k, c in enumerate(terms) if c != 0), 0)
    inner = terms[::step]
    leads = condition(sp.Ne(sp.numer(sp.together(inner[-1])), 0))
    if leads is None:
        raise NotExpressibleError
    if len(inner) == 2:
        powers = [(sp.factor(-inner[0] / inner[1]), leads)]
    elif len(inner) == 3:
        c, b, a = inner
        discriminant = sp.factor(sp.expand(b**2 - 4 * a * c))
        holds = condition(at_least_zero(discriminant))
        if holds is None:
            return []
        root = sp.sqrt(discriminant)
        powers = [(_tidy((-b + sign * root) / (2 * a)), (*leads, *holds)) for sign in (-1, 1)]
    else:
        raise NotExpressibleError
    return [
        (root, (*conditions, *more)) for power, conditions in powers for root, more in _radicals(power, step)
    ]


def _radicals(power: sp.Expr, k: int) -> list[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    """The real k-th roots."""
    if k == 1:
        return [(power, ())]
    if k % 2 == 0:
        holds = condition(at_least_zero(power))
        root = power ** sp.Rational(1, k)
        return [] if holds is None else [(-root, holds), (root, holds)]
    if power.is_nonnegative:
        return [(power ** sp.Rational(1, k), ())]
    if power.is_nonpositive:
        return [(-((-power) ** sp.Rational(1, k)), ())]
    return [(sp.sign(power) * sp.Abs(power) ** sp.Rational(1, k), ())]


def _with_quotient(
    point: ExpressedPoint, i: int, numerator: Any, denominator: Any, symbols: Sequence[sp.Symbol]
) -> list[ExpressedPoint]:
    here = {symbols[k]: value for k, value in point.values.items()}
    below = sp.factor(in_sympy(denominator, symbols).subs(here))
    if is_zero_expression(below):
        return []
    holds = condition(sp.Ne(sp.numer(below), 0))
    if holds is None:
        return []
    value = _tidy(in_sympy(numerator, symbols).subs(here) / below)
    return [ExpressedPoint({**point.values, i: value}, (*point.conditions, *holds))]


def is_zero_expression(expression: sp.Expr) -> bool:
    """Whether an expression with square roots of parameters is identically zero."""
    if expression == 0:
        return True
    if expression.is_rational_function(*expression.free_symbols) and not expression.has(sp.Pow):
        return sp.cancel(expression) == 0
    return bool(sp.radsimp(sp.expand(expression)) == 0 or sp.simplify(expression) == 0)


def _tidy(expression: sp.Expr) -> sp.Expr:
    """Without roots in denominators, factored where it is rational."""
    if expression.has(sp.Pow) and any(
        p.exp.is_Rational and not p.exp.is_Integer for p in expression.atoms(sp.Pow)
    ):
        return sp.radsimp(expression)
    return sp.factor(sp.cancel(expression))
