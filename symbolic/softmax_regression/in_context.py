"""The in-context theorem: a move of x, or of A, seen as a move of the target b with the same residual.

    normalized   f_after - b = f_now - b~              b~ = b + f_now - f_after
    rescaled     u_after - alpha_after b = u_now - alpha_now b~
                                                       b~ = (u_now - u_after + alpha_after b)/alpha_now

Both are the only answers, and both keep the hyperplane sum b = 1; positive entries they need not keep. The theorem
matches the value of one residual. It says neither that x_now is optimal for b~ nor that gradients agree:
grad of the b~ problem at x_now is A^T S(f_now)(f_after - b), the real one A^T S(f_after)(f_after - b).
How far b~ can be from b is in `symbolic.lipschitz`.

Source: Li et al., arXiv:2304.13276 (normalized); Gao, Song, Yin, arXiv:2305.00660 (rescaled); Gao, Song, Xie,
arXiv:2307.02419 (a matrix of targets, row by row).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import sympy as sp

from symbolic.normal_form import vanishes
from symbolic.softmax_regression.data import matrix
from symbolic.softmax_regression.matrix import MatrixSoftmaxRegression
from symbolic.softmax_regression.row import Row
from symbolic.softmax_regression.vector import SoftmaxRegression

__all__ = ["Move", "move"]


@dataclass(frozen=True)
class Move:
    """A move of the weights or of the data, as a move of the target; one row for each row of targets.

    `target` is b~ (row by row), proven to have the residual after the move and to keep 1 - sum b up to the factor
    1 (normalized) or alpha_after/alpha_now (rescaled); `shift` is b~ - b; `increment` is residual_after -
    residual_now with b itself, which equals -`shift` (normalized) or -alpha_now `shift` (rescaled).
    """

    target: sp.ImmutableMatrix
    shift: sp.ImmutableMatrix
    increment: sp.ImmutableMatrix


def move(
    model: SoftmaxRegression | MatrixSoftmaxRegression,
    now: Sequence | sp.MatrixBase,
    then: Sequence | sp.MatrixBase,
    *,
    after: SoftmaxRegression | MatrixSoftmaxRegression | None = None,
) -> Move:
    """The target b~ for which the problem has, at the weights `now`, the residual that it has with b at `then`.

    Args:
        model: the problem before the move.
        now, then: the weights before and after, in the shape of x or X; numbers or expressions.
        after: the problem after the move, if A moves too: the same loss and the same target.
    Raises:
        TypeError: the model is no softmax regression.
        ValueError: a shape differs, `after` has another loss or target, or u is not exp.
    """
    after = model if after is None else after
    before, behind = _rows(model, now), _rows(after, then)
    same = [
        (p.normalization, p.activation, p.target) == (q.normalization, q.activation, q.target)
        for p, q in zip(before, behind, strict=False)
    ]
    if len(before) != len(behind) or not all(same):
        raise ValueError(
            "`after` must have the loss and the target of `model`; a move of the target itself is no move of A. "
            f"Got the {after.normalization} loss with {[row.target for row in behind]} for the "
            f"{model.normalization} one with {[row.target for row in before]}."
        )
    if any(row.activation != "exp" for row in before):
        raise ValueError(f"The theorem is about u = exp; got {before[0].activation}.")
    _prove(before[0].size, before[0].normalization)
    targets = [_target(p, q) for p, q in zip(before, behind, strict=True)]
    target = sp.ImmutableMatrix(targets)
    return Move(
        target,
        sp.ImmutableMatrix(target - sp.Matrix([row.target for row in before])),
        sp.ImmutableMatrix(
            sp.Matrix([row.residual for row in behind]) - sp.Matrix([row.residual for row in before])
        ),
    )


def _rows(model: SoftmaxRegression | MatrixSoftmaxRegression, weights: Sequence | sp.MatrixBase) -> list[Row]:
    """The rows of the problem at given weights."""
    if not isinstance(model, SoftmaxRegression | MatrixSoftmaxRegression):
        raise TypeError(f"A move is one of a vector or matrix model; got {type(model).__name__}.")
    values = matrix("weights", weights)
    if values.shape != model.shape:
        raise ValueError(f"The weights must have the shape {model.shape}; got {values.shape}.")
    here = dict(zip(model.weights, values, strict=True))
    rows = (model.row,) if isinstance(model, SoftmaxRegression) else model.rows
    return [replace(row, logits=tuple(s.xreplace(here) for s in row.logits)) for row in rows]


def _target(now: Row, after: Row) -> tuple[sp.Expr, ...]:
    """b~ of one row."""
    if now.normalization == "normalized":
        return tuple(b + f - g for b, f, g in zip(now.target, now.f, after.f, strict=True))
    rows = zip(now.target, now.u, after.u, strict=True)
    return tuple((u - v + after.alpha * b) / now.alpha for b, u, v in rows)


@lru_cache(maxsize=32)
def _prove(size: int, normalization: str) -> None:
    """With letters for all logits and targets: b~ has the residual after the move, and sums to what it should."""
    s, t, b = (tuple(sp.Dummy(f"{name}_{i + 1}", real=True) for i in range(size)) for name in "stb")
    now, after = (Row(logits, b, normalization) for logits in (s, t))
    target = _target(now, after)
    factor = sp.S.One if normalization == "normalized" else after.alpha / now.alpha
    moved = replace(now, target=target).residual
    gaps = [r - q for r, q in zip(after.residual, moved, strict=True)]
    gaps.append(sp.Add(*target) - 1 - factor * (sp.Add(*b) - 1))
    if not all(vanishes(gap) for gap in gaps):
        raise AssertionError("the moved target has not the residual after the move, or not its sum")
