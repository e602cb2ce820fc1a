"""A fixed point to all digits: Newton's method in balls, with a proof where the point is isolated and simple."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from flint import arb, arb_mat

from fixedpoints.near.balls import (
    Matrix,
    Number,
    as_ball,
    as_float,
    float_matrix,
    from_floats,
    identity,
    matmul,
    solve,
    vanishes,
    widened,
)
from fixedpoints.near.functions import NotSmoothError, UndefinedHereError

if TYPE_CHECKING:
    from fixedpoints.near.local import Local

__all__ = ["iterated", "newton_step", "shortest_step"]

#: (phi, its Jacobian) -> what to subtract.
Step = Callable[[list[Number], Matrix], list[Number]]

_TINY = 2.0**-200
_MOST_STEPS = 150


def iterated(local: Local, step: Step) -> tuple[Number, ...] | None:
    """The end of Newton's method from x*, in balls that hold the fixed point, or None if it finds none.

    Args:
        step: `newton_step`, or `shortest_step` where fixed points are not isolated.
    """
    here = tuple(as_ball(x).mid() for x in local.at)
    size = max([abs(as_float(x)) for x in here] + [1e-300])
    last = math.inf
    try:
        for _ in range(_MOST_STEPS):
            value, slopes = replace(local, at=here).slopes()
            if all(as_ball(v).is_zero() for v in value):
                last = 0.0
                break
            done = all(vanishes(v) for v in value)
            moves = step(value, slopes)
            here = tuple((x - m).mid() for x, m in zip(here, moves, strict=True))
            last = max(abs(as_float(m)) for m in moves)
            if not last < 1e6 * max(size, 1.0):
                return None
            if done or last <= _TINY * size:
                break
    except (ZeroDivisionError, UndefinedHereError, NotSmoothError, np.linalg.LinAlgError):
        if not last < 1e-20 * max(size, 1e-6):
            return None
    if not last <= 1e-15 * max(size, 1.0):
        return None
    box = _enclosed(local, here, 8 * last + _TINY * size)
    # Steps also vanish where slopes underflow, far from any fixed point.
    return box if all(vanishes(v) for v in replace(local, at=box).value()) else None


def newton_step(value: list[Number], slopes: Matrix) -> list[Number]:
    """J^-1 phi."""
    middle = arb_mat([[as_ball(x).mid() for x in row] for row in slopes])
    return [row[0] for row in middle.solve(arb_mat([[as_ball(v).mid()] for v in value])).tolist()]


def shortest_step(value: list[Number], slopes: Matrix) -> list[Number]:
    """The shortest least-squares solution, where Newton's step is not unique on a set of fixed points."""
    inverse = np.linalg.pinv(float_matrix(slopes), rcond=1e-9)
    return [row[0] for row in matmul(from_floats(inverse), [[as_ball(v).mid()] for v in value])]


def _enclosed(local: Local, here: tuple[arb, ...], size: float) -> tuple[Number, ...]:
    """Balls around the midpoints: proven to hold the fixed point by Krawczyk's test where that succeeds.

    Where it does not (at a multiple root or on a set of fixed points) they are as wide as the last steps of
    Newton's method suggest.
    """
    wide = tuple(widened(x, size) for x in here)
    try:
        value, slopes = replace(local, at=here).slopes()
        inverse = solve([[as_ball(x).mid() for x in row] for row in slopes], identity(len(here)))
        moved = matmul(inverse, [[v] for v in value])
        reach = max(4 * abs(as_ball(m[0])).upper() + arb(size) * arb(2.0**-40) for m in moved)
        box = tuple(widened(x, reach) for x in here)
        _, over = replace(local, at=box).slopes()
        shrink = matmul(inverse, over)
        for i, row in enumerate(shrink):
            spread = sum((abs(as_ball(x) - (i == j)).upper() for j, x in enumerate(row)), arb(0)) * reach
            if not abs(as_ball(moved[i][0])).upper() + spread < reach:
                return wide
    except (ZeroDivisionError, UndefinedHereError, NotSmoothError):
        return wide
    return box
