"""What a picture leaves blank: poles, and regions in which the field is not defined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from fixedpoints.boxes.singular import Kind
from fixedpoints.pictures.curves import readable, zero_curves
from fixedpoints.pictures.domain import fails, limits
from fixedpoints.pictures.factoring import factors, quotient
from fixedpoints.pictures.window import Window
from odesys.lambdify import compile_expressions

__all__ = ["Masked", "masks"]

#: Nodes of the raster on one side of the window.
_NODES = 300


@dataclass(frozen=True, eq=False)
class Masked:
    """Where the field has no value.

    `condition` names it: an equation for a pole, an inequality for a region, None where values are not finite
    for a reason that the expressions do not show (overflow). `pieces`, states of shape (2, k), are the pole
    (k = 1 for single points) or the edges of the region; `region` tells, for nodes evenly spaced over the window
    (rows from low to high second state, columns from low to high first state), which lie in it, and is None where
    only lines or points are left out.
    """

    name: str
    condition: sp.Basic | None
    pieces: tuple[np.ndarray, ...]
    region: np.ndarray | None


def masks(rhs: Sequence[sp.Expr], window: Window) -> tuple[Masked, ...]:
    """All poles and undefined regions that meet the window.

    Args:
        rhs: the two right-hand sides, without parameters.
        window: where to look.
    Raises:
        ValueError: the field is defined nowhere in the window.
    """
    nodes = np.meshgrid(*window.grid(_NODES))
    finite = np.all(np.isfinite(compile_expressions(rhs, window.state)(*nodes)), axis=0)
    if not finite.any():
        raise ValueError(
            f"The field is not a finite number anywhere in the box {window.bounds}; got "
            f"{[readable(f) for f in rhs]}. Choose a box that meets its domain."
        )
    regions = _undefined(rhs, window, nodes)
    rest = ~finite & ~np.any([mask.region for mask in regions], axis=0) if regions else ~finite
    # A line of nodes that happen to lie on a pole is no region.
    wide = rest[1:, 1:] & rest[:-1, 1:] & rest[1:, :-1] & rest[:-1, :-1]
    others = [Masked("not a finite number", None, (), rest)] if wide.any() else []
    return (*_poles(rhs, window), *regions, *others)


def _poles(rhs: Sequence[sp.Expr], window: Window) -> list[Masked]:
    denominators = [quotient(f, window.state)[1] for f in rhs]
    distinct = dict.fromkeys(factor for d in denominators for factor in factors(d, window.state))
    return [
        Masked(f"pole: {curve.name}", sp.Eq(curve.equation, 0), curve.pieces, None)
        for factor in distinct
        for curve in zero_curves(factor, window)
    ]


def _undefined(rhs: Sequence[sp.Expr], window: Window, nodes: Sequence[np.ndarray]) -> list[Masked]:
    found = []
    for limit in limits(rhs, window.state):
        region = fails(limit, window.state, nodes)
        edges = tuple(piece for c in zero_curves(limit.expression, window) for piece in c.pieces)
        # log|x| is undefined on a line alone.
        if region.any() or (edges and limit.kind is Kind.POSITIVE):
            name = f"undefined: {readable(limit.failure)}"
            found.append(Masked(name, limit.failure, edges, region if region.any() else None))
    return found
