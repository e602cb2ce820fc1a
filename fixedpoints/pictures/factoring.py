"""Exact expressions by their factors: each zero set and each pole has an equation of its own."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

__all__ = ["factors", "quotient"]

#: Beyond this many operations, factoring may take minutes; much sooner where every function is an unknown of its own.
_MOST_OPERATIONS, _MOST_WITH_FUNCTIONS = 5_000, 400


def quotient(expression: sp.Expr, state: Sequence[sp.Symbol]) -> tuple[sp.Expr, sp.Expr]:
    """Numerator and denominator without a common factor, where that can be seen."""
    opened = _with_open_poles(expression)
    if _is_finite_everywhere(opened, state):
        return opened, sp.S.One
    whole = sp.together(opened)
    if whole.is_rational_function(*state) or whole.count_ops() < _MOST_OPERATIONS:
        whole = sp.cancel(whole)
    return sp.fraction(whole)


def factors(expression: sp.Expr, state: Sequence[sp.Symbol]) -> tuple[sp.Expr, ...]:
    """The distinct factors that depend on the state, in an order that does not depend on the run."""
    rational = expression.is_rational_function(*state)
    if expression.count_ops() > (_MOST_OPERATIONS if rational else _MOST_WITH_FUNCTIONS) or (
        not rational and _denominators(expression)
    ):
        return tuple(f for f in sp.Mul.make_args(expression) if f.free_symbols & set(state))
    try:
        found = {factor for factor, _ in sp.factor_list(expression)[1]}
    except sp.PolynomialError:
        found = set(sp.Mul.make_args(expression))
    return tuple(sorted((f for f in found if f.free_symbols & set(state)), key=sp.default_sort_key))


def _is_finite_everywhere(expression: sp.Expr, state: Sequence[sp.Symbol]) -> bool:
    """Whether there are denominators, and all are seen to be positive, as sums of exponentials are."""
    bases = _denominators(expression.xreplace({x: sp.Dummy(x.name, real=True) for x in state}))
    return bool(bases) and all(base.is_positive for base in bases)


def _denominators(expression: sp.Expr) -> list[sp.Expr]:
    """The bases of negative powers that are no numbers; exp(-x) is not a denominator."""
    return [p.base for p in expression.atoms(sp.Pow) if p.exp.could_extract_minus_sign() and p.free_symbols]


def _with_open_poles(expression: sp.Expr) -> sp.Expr:
    """tan, cot, sec and csc by sin and cos, whose quotients show where the poles are."""
    return (
        expression.replace(sp.tan, lambda a: sp.sin(a) / sp.cos(a))
        .replace(sp.cot, lambda a: sp.cos(a) / sp.sin(a))
        .replace(sp.sec, lambda a: 1 / sp.cos(a))
        .replace(sp.csc, lambda a: 1 / sp.sin(a))
    )
