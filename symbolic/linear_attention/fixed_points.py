"""Fixed points of separate attention: one function M_S for each set S of learned modes, many weights for each.

    M_S = sum_{d in S} p_d e_d e_d^T,      p_d = 1/(lambda_d a_d),      L(M_S) = tr(Lambda) - sum_{d in S} lambda_d/a_d

Source: Zhang, Singh, Latham, Saxe, arXiv:2501.16265, section 4; condition (C3') is derived here and weaker than the
paper's (C3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from symbolic.linear_attention.task import pulled_back
from symbolic.zero import residual

if TYPE_CHECKING:
    from symbolic.linear_attention.separate import SeparateAttention

__all__ = ["FixedPoint", "conditions", "dealt", "learned", "point", "sizes"]


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A fixed point that has learned the modes S = `modes`: M = M_S, its loss, and weights that realise it.

    `weights` maps every weight to its value in the structured representative, at which the flow was proven to
    vanish; index and eigenvalues of the Hessian belong to it and not to M.
    """

    modes: tuple[int, ...]
    M: sp.ImmutableMatrix
    loss: sp.Expr
    weights: dict[sp.Symbol, sp.Expr]


def point(model: SeparateAttention, modes: Sequence[int]) -> FixedPoint:
    """M_S with its loss and structured weights, proven; see `SeparateAttention.point`."""
    modes = _numbers(modes, model.dim, "modes")
    if len(modes) > model.heads * model.rank:
        raise ValueError(
            f"{model.heads} heads of rank {model.rank} learn at most {model.heads * model.rank} modes; got "
            f"{len(modes)}: {list(modes)}."
        )
    M, placement = learned(model, modes), dealt(model, modes)
    values = sizes(model, placement)
    weights = {w: e.xreplace(values) for w, e in model.aligned(placement).items()}
    loss = model.moments.power - sp.Add(*(model.eigenvalues[d - 1] / model.a[d - 1] for d in modes))
    gaps = [
        *(m.xreplace(weights) - expected for m, expected in zip(model.M, M, strict=True)),
        *(f.xreplace(weights) for f in model.flow.rhs),
        model.moments.loss(M) - loss,
    ]
    if any(residual(gap) != 0 for gap in gaps):
        raise AssertionError(f"the structured weights of the modes {modes} are not the fixed point claimed")
    return FixedPoint(modes, M, loss, weights)


def conditions(model: SeparateAttention, modes: Sequence[int], active: Sequence[int]) -> tuple[sp.Expr, ...]:
    """(C1), (C2), (C3') and v_i = 0 of the other heads, proven; see `SeparateAttention.conditions`.

    Proof, carried out on the derived flow: at M = M_S the residual G is lambda_d^2 e_d e_d^T summed over d not in S.
    So tau dk_ird = v_i lambda_d^2 q_ird (likewise dq) and tau dv_i = sum lambda_d^2 k_ird q_ird over these d alone.
    """
    modes = _numbers(modes, model.dim, "modes")
    active = _numbers(active, model.heads, "active")
    M = learned(model, modes)
    rates = pulled_back(model.moments.residual(M).applyfunc(sp.factor), model.M, model.weights)
    outside = [d for d in range(model.dim) if d + 1 not in modes]
    wanted = [*(model.M - M)]
    for i, (v, K, Q) in enumerate(zip(model.v, model.K, model.Q, strict=True), 1):
        cells = [(r, d, model.eigenvalues[d] ** 2) for r in range(model.rank) for d in outside]
        pull = sp.Add(*(size * K[r, d] * Q[r, d] for r, d, size in cells))
        predicted = dict.fromkeys((*K, *Q), sp.Integer(0)) | {v: pull}
        predicted |= {K[r, d]: v * size * Q[r, d] for r, d, size in cells}
        predicted |= {Q[r, d]: v * size * K[r, d] for r, d, size in cells}
        if any(sp.expand(rates[w] - rate) != 0 for w, rate in predicted.items()):
            raise AssertionError(f"the flow of head {i} at M_S is not what the conditions rest on")
        wanted += [part[r, d] for part in (K, Q) for r, d, _ in cells] if i in active else [v, pull]
    return tuple(wanted)


def learned(model: SeparateAttention, modes: Iterable[int]) -> sp.ImmutableMatrix:
    """M_S, shape (D, D): the targets p_d = 1/(lambda_d a_d) of the modes on the diagonal, zero elsewhere."""
    targets = [sp.Integer(0)] * model.dim
    for d in modes:
        targets[d - 1] = _target(model, d)
    return sp.ImmutableMatrix(sp.diag(*targets))


def dealt(model: SeparateAttention, modes: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """The modes given to the heads in order, R to a head."""
    modes = tuple(modes)
    return tuple(modes[i * model.rank : (i + 1) * model.rank] for i in range(model.heads))


def sizes(model: SeparateAttention, placement: Sequence[Sequence[int]]) -> dict[sp.Symbol, sp.Expr]:
    """v_i = (sum_r p_d)^(1/3) and kappa_ir = sqrt(p_d/v_i) of the balanced equilibrium of `model.aligned`."""
    found = {}
    for i, modes in enumerate(placement):
        if modes:
            found[model.v[i]] = sp.cbrt(sp.Add(*(_target(model, d) for d in modes)))
        for r, d in enumerate(modes):
            found[sp.Symbol(f"kappa_{i + 1}_{r + 1}")] = sp.sqrt(_target(model, d) / found[model.v[i]])
    return found


def _target(model: SeparateAttention, d: int) -> sp.Expr:
    return sp.factor(1 / (model.eigenvalues[d - 1] * model.a[d - 1]))


def _numbers(values: Sequence[int], most: int, name: str) -> tuple[int, ...]:
    ordered = tuple(sorted(values))
    if len(set(ordered)) != len(ordered) or not all(isinstance(n, int) and 1 <= n <= most for n in ordered):
        raise ValueError(f"`{name}` must be distinct integers from 1 to {most}; got {list(values)}.")
    return ordered
