"""Products that vanish: a system of equations split into simpler ones by the factors of its right-hand sides.

A fixed point makes one factor of each right-hand side vanish. Every choice of factors is a system of its own;
a choice with fewer different factors than states describes a whole component of fixed points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import sympy as sp
from flint import fmpq, fmpq_mat

from fixedpoints.boxes.singular import Magnitude

__all__ = ["branches", "independent"]

#: More choices of factors than this are not told apart; the functions stay whole.
_MOST_CHOICES = 64

#: Functions that vanish exactly where their argument does.
_LIKE_THEIR_ARGUMENT = (Magnitude, sp.tanh, sp.sinh, sp.asinh, sp.atan, sp.erf, sp.asin, sp.atanh)


def branches(
    functions: Sequence[sp.Expr], may_vanish: Callable[[sp.Expr], bool]
) -> tuple[list[tuple[sp.Expr, ...]], list[tuple[sp.Expr, ...]]]:
    """Systems of n equations, and systems of fewer, whose zeros together are those of n functions.

    Factors that vanish nowhere are left out; a system that contains a smaller one is part of it.
    """
    factored = [[f for f in _factors(function) if may_vanish(f)] for function in functions]
    if math.prod(map(len, factored)) > _MOST_CHOICES:
        factored = [[f] for f in functions]
    choices = {frozenset(choice): tuple(dict.fromkeys(choice)) for choice in product(*factored)}
    minimal = [written for chosen, written in choices.items() if not any(other < chosen for other in choices)]
    full = [w for w in minimal if len(w) == len(functions)]
    return full, [w for w in minimal if len(w) < len(functions)]


def independent(functions: Sequence[sp.Expr]) -> tuple[int, ...]:
    """The numbers of the functions without those that are linear combinations of earlier ones, term by term."""
    terms: dict[sp.Expr, int] = {}
    rows = []
    for function in functions:
        parts = sp.expand_mul(function).as_coefficients_dict()
        row = {terms.setdefault(term, len(terms)): c for term, c in parts.items() if c != 0}
        rows.append(row)
    matrix = fmpq_mat(
        [
            [fmpq(int(c.p), int(c.q)) for row in rows for c in [sp.Rational(row.get(k, 0))]]
            for k in range(len(terms))
        ]
        or [[0] * len(rows)]
    )
    reduced, rank = matrix.rref()
    return tuple(next(j for j in range(len(rows)) if reduced[i, j] != 0) for i in range(rank))


def _factors(function: sp.Expr) -> list[sp.Expr]:
    """Expressions of which one must vanish for the function to vanish, numbers left out."""
    # Common factors of the terms only: a full factorisation may expand exponentials to enormous degrees.
    written = sp.factor_terms(function)
    factors = sp.Mul.make_args(written) if isinstance(written, (sp.Mul, sp.Pow)) else (function,)
    cores = dict.fromkeys(_core(f) for f in factors if f.free_symbols)
    return list(cores)


def _core(factor: Any) -> Any:
    """A simpler expression with the same zeros: u for |u|, tanh(u), u^p and the like."""
    while True:
        if factor.is_Pow and factor.exp.is_positive and not isinstance(factor, sp.exp):
            factor = factor.base
        elif isinstance(factor, _LIKE_THEIR_ARGUMENT):
            factor = factor.args[0]
        else:
            return factor
