"""From a scalar loss to the dynamics of its minimisation, in continuous time or step by step."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from symbolic.field import IteratedMap, VectorField

__all__ = ["gradient_flow", "gradient_map"]


def gradient_flow(
    loss: sp.Expr, weights: Sequence[sp.Symbol], *, time_constant: sp.Expr = 1, source: str = ""
) -> VectorField:
    """Gradient flow  tau dw/dt = -dL/dw  of a scalar loss.

    Time has the units of `time_constant`: full-batch gradient descent with rate eta takes step k at
    t = k * eta * tau.

    Args:
        loss: the scalar L(w; p); every symbol outside `weights` is a parameter, ordered by name.
        weights: the n coordinates w that descend, in the order arrays will use.
        time_constant: tau, positive.
        source: where the loss comes from.
    Returns:
        The field with state `weights`.
    Raises:
        ValueError: the loss does not depend on one of the weights, or tau depends on a weight or is not
            positive.
    """
    weights, gradient, constant = _prepare(loss, weights, time_constant, "time_constant")
    # Term by term, so that numerical factors of the loss and of tau cancel.
    rhs = tuple(sp.Add(*(-term / constant for term in sp.Add.make_args(g))) for g in gradient)
    return VectorField(weights, rhs, _others(rhs, weights, loss, constant), source=source)


def gradient_map(
    loss: sp.Expr, weights: Sequence[sp.Symbol], *, step: sp.Expr, source: str = ""
) -> IteratedMap:
    """Gradient descent as a map,  w -> w - eta dL/dw.

    Args:
        loss, weights, source: as in `gradient_flow`.
        step: eta, the learning rate, positive.
    Raises:
        ValueError: the loss does not depend on one of the weights, or eta depends on a weight or is not
            positive.
    """
    weights, gradient, step = _prepare(loss, weights, step, "step")
    rhs = tuple(w - step * g for w, g in zip(weights, gradient, strict=True))
    return IteratedMap(weights, rhs, _others(rhs, weights, loss, step), source=source)


def _prepare(loss, weights, scale, name: str) -> tuple[tuple[sp.Symbol, ...], list[sp.Expr], sp.Expr]:
    loss, scale, weights = sp.sympify(loss), sp.sympify(scale), tuple(weights)
    if not isinstance(loss, sp.Expr) or loss.is_Matrix:
        raise TypeError(f"`loss` must be a scalar expression; got {type(loss).__name__}.")
    absent = [str(w) for w in weights if w not in loss.free_symbols]
    if absent:
        raise ValueError(
            f"The loss does not depend on the weights {absent}; it depends on "
            f"{sorted(s.name for s in loss.free_symbols)}. Leave them out, or check their assumptions."
        )
    if scale.free_symbols & set(weights) or scale.is_nonpositive:
        raise ValueError(f"`{name}` must be positive and must not depend on the weights; got {scale}.")
    return weights, [loss.diff(w) for w in weights], scale


def _others(rhs, weights, loss, scale) -> tuple[sp.Symbol, ...]:
    # The loss may hold parameters that its gradient lacks; they stay declared so that loss and flow share one
    # list.
    used = loss.free_symbols | scale.free_symbols | {s for f in rhs for s in f.free_symbols}
    return tuple(sorted(used - set(weights), key=lambda symbol: symbol.name))
