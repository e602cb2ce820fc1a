"""The inverse of a monotone time function: x(t) with F(x) = F(x_0) + t on a basin, for many times at once.

Newton's method in a coordinate y that stretches the basin to the whole line (its logit, where both ends are finite),
kept inside a bracket that every evaluation shrinks. Since F' = 1/f, a step needs nothing but F and f. Far out, where x
cannot be told from the end of its basin any more, the answer is that end and never nan.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["inverse"]

#: Cells of the grid that brackets every solution first, for few and for many times: less than one unit of y each.
_FEW_CELLS, _MANY_CELLS = 1024, 8192
#: Times from which on the finer grid is worth its cost.
_MANY = 4096
#: Times that are solved together in NumPy: what an iteration touches then stays in the processor's cache.
_BLOCK = 4096
#: From the grid Newton needs 2 or 3 evaluations, and bisection 60 for the last bit; a mixture of both is never slower.
_MOST_STEPS = 150
#: What is left to gain, relative to x, when only rounding is left.
_SETTLED = 2 * np.finfo(float).eps
#: y beyond which exp(|y|) overflows, and beyond which exp(-|y|) vanishes.
_OVERFLOW, _UNDERFLOW = 709.0, 745.0
#: How far beyond the y at which x is rounded to the end of its basin the grid goes.
_BEYOND = 3.0
#: Units in the last place of x that the rounding of F may cost near the start before the time is measured otherwise.
_ROUNDINGS = 4
#: Orders of the two Gauss-Legendre rules that measure a short time.
_ORDERS = (10, 16)
#: Relative distance from an equilibrium ahead below which x moves with it when parameters change.
_ARRIVED = 1e-8


def inverse(
    F: Callable[..., Any], f: Callable[..., Any], size: Callable[..., Any], backend: str
) -> Callable[..., Any]:
    """The function  (times, start, low, high, *args) -> x  with  F(x, *args) = F(start, *args) + t.

    Args:
        F, f: the time function and the field, each a function of (x, *args) in the given backend, F' f = 1.
        size: the sum of the sizes of F's terms, whose rounding is what F(x) - F(x_0) may lose.
        backend: "numpy", or "jax" for a function that can be traced and differentiated: by the implicit function
            theorem  dx/dt = f(x),  dx/dx_0 = f(x)/f(x_0)  and  dx/dp = -f(x) (dF(x)/dp - dF(x_0)/dp).
    Returns:
        A function of times t >= 0 of any shape, one start, and the ends of its basin (low, high), either of which
        may be infinite; x has the shape of the times. Times must lie before a blow-up.
    """
    if backend != "numpy":
        return _differentiable(F, f, size)

    def course(times, start, low, high, *args):
        times = np.asarray(times, dtype=float)
        with np.errstate(all="ignore"):
            grid = _grid(F, f, np, times.size, start, low, high, args)
            x, flat = np.empty(times.size), times.reshape(-1)
            for first in range(0, times.size, _BLOCK):
                block = slice(first, first + _BLOCK)
                x[block] = _solve(F, f, size, np, _loop, flat[block], grid, start, low, high, args)
        return x.reshape(times.shape)

    return course


def _solve(F, f, size, xp: ModuleType, loop, times, grid, start, low, high, args):
    times, target = xp.asarray(times), F(start, *args) + xp.asarray(times)
    bracket = _cell(xp, grid, target)

    def advance(state):
        y, near, far, (x_near, x_far), (latest, before), _ = state
        x, slope = _point(y, low, high, xp)
        gap = F(x, *args) - target
        # Along the flow F grows: a positive gap, or a value that is lost in the end of the basin, lies too far.
        beyond = (gap > 0) | ~xp.isfinite(gap)
        near, x_near = xp.where(beyond, near, y), xp.where(beyond, x_near, x)
        far, x_far = xp.where(beyond, y, far), xp.where(beyond, x, x_far)
        newton = -gap * f(x, *args) / slope
        inside = xp.clip(y + newton, xp.minimum(near, far), xp.maximum(near, far)) - y
        # Newton's next error in y is the square of its step.
        error = newton**2 * xp.abs(slope / x)
        # Newton's step, kept in the bracket, if it is the last or halves the last but one; else the bracket is halved.
        good = xp.isfinite(gap) & ((error <= _SETTLED) | (2 * xp.abs(inside) < before))
        step = xp.where(good, inside, (near - y + far - y) / 2)
        # A bracket of two neighbouring floats is narrow enough.
        left = xp.minimum(xp.where(good, error, np.inf), xp.abs(x_far - x_near) / xp.abs(x))
        return y + step, near, far, (x_near, x_far), (xp.abs(step), latest), left

    wide = xp.full(times.shape, np.inf)
    y = loop(advance, (*bracket, (wide, wide), wide), xp)
    x, y0 = _point(y, low, high, xp)[0], _coordinate(start, low, high, xp)
    lost = size(start, *args) * xp.abs(f(x, *args)) > _ROUNDINGS * xp.abs(x)
    close = (xp.abs(y - y0) <= 1) & lost
    if xp is np:
        if np.any(close):
            x = np.array(x)
            polished = _polished(f, np, y[close], y0, times[close], low, high, args)
            x[close] = _point(polished, low, high, np)[0]
    else:
        x = _polished_where(close, f, xp, y, y0, times, low, high, args, x)
    return xp.where((times == 0) | (f(start, *args) == 0), start, x)


def _polished_where(close, f, xp: ModuleType, y, y0, times, low, high, args, x):
    """The same in JAX, which spends the time only if any of the points needs it."""
    import jax

    def polish(_):
        return xp.where(close, _point(_polished(f, xp, y, y0, times, low, high, args), low, high, xp)[0], x)

    return jax.lax.cond(xp.any(close), polish, lambda _: x, None)


def _polished(f, xp: ModuleType, y, y0, times, low, high, args):
    """One more Newton step near the start, where F(x) - F(x_0) cancels and the integral of dx/f does not."""
    nodes, rough, fine = (xp.asarray(part).reshape(-1, *(1,) * y.ndim) for part in _rules())
    x, slope = _point(y0 + (y - y0) * nodes, low, high, xp)
    pace = slope / f(x, *args)
    rough, fine = ((y - y0) * xp.sum(weights * pace, axis=0) for weights in (rough, fine))
    moved = y + (times - fine) / pace[-1]
    # Where two orders agree to ten digits, the higher one is right to rounding.
    sure = (xp.abs(fine - rough) <= 1e-10 * xp.abs(fine)) & xp.isfinite(moved)
    return xp.where(sure, moved, y)


@cache
def _rules() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes on [0, 1], the last of them 1, and the weights of two Gauss-Legendre rules on them."""
    (low, rough), (high, fine) = (np.polynomial.legendre.leggauss(order) for order in _ORDERS)
    nodes = np.concatenate([(1 + low) / 2, (1 + high) / 2, [1.0]])
    blanks = [np.zeros(len(rough)), np.zeros(len(fine))]
    return nodes, np.concatenate([rough / 2, blanks[1], [0.0]]), np.concatenate([blanks[0], fine / 2, [0.0]])


def _grid(F, f, xp: ModuleType, size: int, start, low, high, args):
    """Places y from the start to where x cannot be told from the end any more, with x, F and dy/dF there."""
    y0, forward = _coordinate(start, low, high, xp), f(start, *args) > 0
    top, bottom = _reach(low, high, xp), _reach(-high, -low, xp)
    last = xp.where(forward, xp.maximum(top, y0 + 1), xp.minimum(-bottom, y0 - 1))
    cells = _MANY_CELLS if size >= _MANY else _FEW_CELLS
    y = y0 + (last - y0) * xp.linspace(0.0, 1.0, cells + 1)
    x, slope = _point(y, low, high, xp)
    values = F(x, *args)
    return y, x, xp.where(xp.isfinite(values), values, np.inf), f(x, *args) / slope


def _reach(low, high, xp: ModuleType):
    """y beyond which x cannot be told from the upper end; exp(-y) itself counts only where that end is zero."""
    width = xp.where(xp.isfinite(low), high - low, 1.0)
    told = xp.log(width / xp.abs(high)) - np.log(_SETTLED) + _BEYOND
    reach = xp.where(high == 0, _UNDERFLOW, xp.clip(told, 1.0, _UNDERFLOW))
    return xp.where(xp.isfinite(high), reach, _OVERFLOW)


def _cell(xp: ModuleType, grid, target):
    """For each target a first y and the cell (near, far) that holds it, with x at both ends.

    The first y is that of the cubic through the cell's ends with their slopes, where it stays in the cell.
    """
    y, x, values, pace = grid
    far = xp.clip(xp.searchsorted(values, target, side="right"), 1, y.shape[0] - 1)
    near = far - 1
    first, last, width = y[near], y[far], values[far] - values[near]
    s = (target - values[near]) / width
    r = 1 - s
    cubic = (
        first * (1 + 2 * s) * r**2
        + last * s**2 * (3 - 2 * s)
        + width * s * r * (pace[near] * r - pace[far] * s)
    )
    low, high = xp.minimum(first, last), xp.maximum(first, last)
    guess = xp.where((cubic >= low) & (cubic <= high), cubic, (first + last) / 2)
    return guess, first, last, (x[near], x[far])


def _settled(state, xp):
    # A state with x = 0 compares as nan, and has nothing left to gain either.
    return ~xp.any(state[-1] > _SETTLED)


def _loop(advance, state, xp):
    for _ in range(_MOST_STEPS):
        state = advance(state)
        if _settled(state, xp):
            break
    return state[0]


# --- the basin as the image of the line ---------------------------------------------------------------------


def _point(y, low, high, xp: ModuleType):
    """x(y) and dx/dy: increasing, and onto (low, high) whichever of its ends are infinite."""
    below, above = xp.isfinite(low), xp.isfinite(high)
    if xp is np:
        return _CHARTS[bool(below), bool(above)](y, low, high, np)
    low, high = xp.where(below, low, 0.0), xp.where(above, high, 0.0)
    images = [chart(y, low, high, xp) for chart in _CHARTS.values()]
    chosen = [below & above, below & ~above, ~below & above, ~below & ~above]
    return tuple(xp.select(chosen, parts) for parts in zip(*images, strict=True))


def _between(y, low, high, xp: ModuleType):
    tail = xp.exp(-xp.abs(y))
    part = (high - low) * tail / (1 + tail)
    return xp.where(y < 0, low + part, high - part), part / (1 + tail)


def _from_below(y, low, high, xp: ModuleType):
    rise = xp.exp(y)
    return low + rise, rise


def _from_above(y, low, high, xp: ModuleType):
    fall = xp.exp(-y)
    return high - fall, fall


def _line(y, low, high, xp: ModuleType):
    rise, fall = xp.exp(y), xp.exp(-y)
    return _sinh(y, rise, fall, xp), (rise + fall) / 2


#: By whether the lower and the upper end are finite.
_CHARTS = {
    (True, True): _between,
    (True, False): _from_below,
    (False, True): _from_above,
    (False, False): _line,
}


def _sinh(y, rise, fall, xp: ModuleType):
    """sinh(y) from exp(y) and exp(-y), by its series where they cancel."""
    square = xp.minimum(y * y, 1.0)
    series = 1.0
    for n in range(16, 0, -2):
        series = 1 + square / (n * (n + 1)) * series
    return xp.where(xp.abs(y) < 1, y * series, (rise - fall) / 2)


def _coordinate(x, low, high, xp: ModuleType):
    """y(x)."""
    below, above = xp.isfinite(low), xp.isfinite(high)
    rise = xp.log(xp.where(below, x - xp.where(below, low, 0.0), 1.0))
    fall = xp.log(xp.where(above, xp.where(above, high, 0.0) - x, 1.0))
    return xp.where(below | above, rise - fall, xp.arcsinh(x))


# --- JAX ----------------------------------------------------------------------------------------------------


def _differentiable(
    F: Callable[..., Any], f: Callable[..., Any], size: Callable[..., Any]
) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def loop(advance, state, xp):
        def going(carried):
            count, inner = carried
            return (count < _MOST_STEPS) & ~_settled(inner, xp)

        return jax.lax.while_loop(going, lambda c: (c[0] + 1, advance(c[1])), (0, state))[1][0]

    @jax.custom_jvp
    def course(times, start, low, high, *args):
        times = jnp.asarray(times)
        grid = _grid(F, f, jnp, times.size, start, low, high, args)
        return _solve(F, f, size, jnp, loop, times, grid, start, low, high, args)

    @course.defjvp
    def derivative(primals, tangents):
        times, start, low, high, *args = primals
        moment, shift, _, _, *changes = tangents
        x = course(*primals)
        speed, slope = jax.jvp(lambda z: f(z, *args), (start,), (jnp.ones_like(start),))
        growth = jnp.where(speed == 0, jnp.exp(slope * times), f(x, *args) / speed)
        moved = f(x, *args) * moment + growth * shift
        if args:
            moved = moved + _moved_by_parameters(
                F, f, x, start, jnp.where(speed > 0, high, low), args, changes
            )
        return x, moved

    return course


def _moved_by_parameters(F, f, x, start, end, args, changes):
    """dx along a change of the parameters; at an equilibrium, where F is lost in rounding, x moves with it."""
    import jax
    import jax.numpy as jnp

    arrived = jnp.abs(x - end) <= _ARRIVED * jnp.abs(end - start)
    before = jnp.where(arrived, start, x)
    _, late = jax.jvp(lambda *a: F(before, *a) - F(start, *a), tuple(args), tuple(changes))
    _, pushed = jax.jvp(lambda *a: f(x, *a), tuple(args), tuple(changes))
    _, slope = jax.jvp(lambda z: f(z, *args), (x,), (jnp.ones_like(x),))
    return jnp.where(arrived, -pushed / slope, -f(x, *args) * late)
