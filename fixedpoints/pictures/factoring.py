"""Exact expressions by their factors: each zero set and each pole has an equation of its own."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

__all__ = ["factors", "quotient"]

#: Beyond this many operations, factoring may take minutes.
_MOST_OPERATIONS = 5_000


def quotient(expression: sp.Expr, state: Sequence[sp.Symbol]) -> tuple[sp.Expr, sp.Expr]:
    """Numerator and denominator without a common factor, where that can be seen."""
    whole = sp.together(_with_open_poles(expression))
    if whole.is_rational_function(*state) or whole.count_ops() < _MOST_OPERATIONS:
        whole = sp.cancel(whole)
    return sp.fraction(whole)


def factors(expression: sp.Expr, state: Sequence[sp.Symbol]) -> tuple[sp.Expr, ...]:
    """The distinct factors that depend on the state, in an order that does not depend on the run."""
    if expression.count_ops() > _MOST_OPERATIONS:
        return (expression,)
    try:
        found = {factor for factor, _ in sp.factor_list(expression)[1]}
    except sp.PolynomialError:
        found = set(sp.Mul.make_args(expression))
    return tuple(sorted((f for f in found if f.free_symbols & set(state)), key=sp.default_sort_key))


def _with_open_poles(expression: sp.Expr) -> sp.Expr:
    """tan, cot, sec and csc by sin and cos, whose quotients show where the poles are."""
    return (
        expression.replace(sp.tan, lambda a: sp.sin(a) / sp.cos(a))
        .replace(sp.cot, lambda a: sp.cos(a) / sp.sin(a))
        .replace(sp.sec, lambda a: 1 / sp.cos(a))
        .replace(sp.csc, lambda a: 1 / sp.sin(a))
    )
