"""The inverse of a monotone time function: x with F(x) = w on a basin, for many w at once.

Newton's method in a coordinate y that stretches the basin to the whole line (its logit, where both ends are finite),
kept inside a bracket that each evaluation shrinks. Since F' = 1/f, a step needs nothing but F and f, and far out, where
x cannot be told from the end of the basin any more, the answer is that end and never nan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Chart", "invert"]

#: Safeguarded Newton needs about 10 evaluations; bisection alone would need 64 for the last bit.
_MOST_STEPS = 100
#: y beyond which x is a float's distance from the end of its basin; the smallest normal double is exp(-708).
_REACH = 700.0


@dataclass(frozen=True)
class Chart:
    """The basin (low, high), either end possibly infinite, as the image of the whole line under an increasing x(y)."""

    low: float
    high: float

    def point(self, y, xp):
        """x(y) and dx/dy."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            width, tail = self.high - self.low, xp.exp(-xp.abs(y))
            small = tail / (1 + tail)
            x = xp.where(y < 0, self.low + width * small, self.high - width * small)
            return x, width * small / (1 + tail)
        if np.isfinite(self.low):
            return self.low + xp.exp(y), xp.exp(y)
        if np.isfinite(self.high):
            return self.high - xp.exp(-y), xp.exp(-y)
        return xp.sinh(y), xp.cosh(y)

    def coordinate(self, x: float) -> float:
        """y(x)."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            return float(np.log(x - self.low) - np.log(self.high - x))
        if np.isfinite(self.low):
            return float(np.log(x - self.low))
        if np.isfinite(self.high):
            return float(-np.log(self.high - x))
        return float(np.arcsinh(x))


def invert(
    F: Callable, f: Callable, chart: Chart, start: float, targets: np.ndarray, backend: str
) -> np.ndarray:
    """x on the basin with F(x) = target, for targets that lie ahead of the start along the flow.

    Args:
        F, f: the time function and the field, functions of an array of x in the given backend.
        chart: the basin.
        start: x_0 inside it.
        targets: F(x_0) + t with t >= 0, shape (T,).
    Returns:
        x, shape (T,).
    """
    xp, loop = (np, _python_loop) if backend == "numpy" else _jax()
    ahead = bool(f(np.array([start]))[0] > 0)
    y0 = chart.coordinate(start)
    near = xp.full(np.shape(targets), y0)
    far = xp.full(np.shape(targets), max(y0 + 1.0, _REACH) if ahead else min(y0 - 1.0, -_REACH))
    targets = xp.asarray(targets)

    def step(state):
        y, near, far, _ = state
        x, slope = chart.point(y, xp)
        gap = F(x) - targets
        # Along the flow F grows: a positive gap, or a value that is lost in the end of the basin, lies too far.
        beyond = (gap > 0) | ~xp.isfinite(gap)
        near, far = xp.where(beyond, near, y), xp.where(beyond, y, far)
        newton = y - gap * f(x) / slope
        inside = (newton - near) * (newton - far) < 0
        moved = xp.where(inside & xp.isfinite(newton), newton, (near + far) / 2)
        moved = xp.where(gap == 0, y, moved)
        return moved, near, far, xp.max(xp.abs(moved - y) / (1 + xp.abs(y)))

    y = loop(step, (near, near, far, xp.asarray(np.inf)))
    return np.asarray(chart.point(y, xp)[0])


def _python_loop(step: Callable, state: tuple) -> Any:
    with np.errstate(all="ignore"):
        for _ in range(_MOST_STEPS):
            state = step(state)
            if state[3] < 4 * np.finfo(float).eps:
                break
    return state[0]


def _jax() -> tuple[Any, Callable]:
    import jax
    import jax.numpy as jnp

    def loop(step, state):
        def going(carried):
            count, inner = carried
            return (count < _MOST_STEPS) & (inner[3] >= 4 * np.finfo(float).eps)

        return jax.lax.while_loop(going, lambda carried: (carried[0] + 1, step(carried[1])), (0, state))[1][0]

    return jnp, loop
