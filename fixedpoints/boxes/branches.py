"""Products that vanish: a system of equations split into simpler ones by the factors of its right-hand sides.

A fixed point makes one factor of each right-hand side vanish. Every choice of factors is a system of its own;
a choice with fewer different factors than states describes a whole component of fixed points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from fixedpoints.boxes.singular import Magnitude
from symbolic.zero import residual

__all__ = ["branches", "independent"]

#: More choices of factors than this are not told apart; the functions stay whole.
_MOST_CHOICES = 64

#: Functions that vanish exactly where their argument does.
_LIKE_THEIR_ARGUMENT = (Magnitude, sp.tanh, sp.sinh, sp.asinh, sp.atan, sp.erf, sp.asin, sp.atanh)

#: Singular values below this part of the largest make a linear dependence worth a proof.
_SUSPICIOUS = 1e-9


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


def independent(functions: Sequence[sp.Expr], values: np.ndarray) -> tuple[int, ...]:
    """The numbers of the functions, without those that are proven to be linear combinations of the others.

    Args:
        functions: n expressions.
        values: theirs at more than n points in general position, shape (n, m).
    """
    values = values[:, np.isfinite(values).all(axis=0)]
    small = np.abs(values).max(axis=1, initial=0.0) < _SUSPICIOUS
    kept = [i for i, f in enumerate(functions) if f != 0 and not (small[i] and residual(f) == 0)]
    while len(kept) > 1:
        weights = _dependence(values[kept])
        if weights is None:
            break
        if residual(sp.Add(*(w * functions[i] for w, i in zip(weights, kept, strict=True)))) != 0:
            break
        kept.pop(max(k for k, w in enumerate(weights) if w != 0))
    return tuple(kept)


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


def _dependence(values: np.ndarray) -> list[sp.Rational] | None:
    """Coefficients of a linear combination of the rows that vanishes, or None."""
    sizes = np.abs(values).max(axis=1, initial=0.0)
    if values.shape[1] < len(values) or not sizes.all():
        return None
    left, singular, _ = np.linalg.svd(values / sizes[:, None], full_matrices=False)
    if singular[-1] > _SUSPICIOUS * singular[0]:
        return None
    weights = left[:, -1] / sizes
    weights = weights / np.abs(weights).max()
    return [sp.Rational(w).limit_denominator(1000) for w in weights]
