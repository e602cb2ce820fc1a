"""The exact end of the first plateau, t*, of each head near zero weights, by quadrature.

    v^2 = f(theta) = v_0^2 + sum_d [P_d (e^{2 g_d theta} - 1) + M_d (e^{-2 g_d theta} - 1)],       g_d = lambda_d^2

with P = (1/4) sum_r (k + q)^2 and M = (1/4) sum_r (k - q)^2, dtheta/dt = v/tau: what `symbolic.linear_attention.escape`
proves. While v < 0 theta runs backwards; told along the motion, P and M change places. f is convex, so a head

* rises:  f' >= 0 from the start,  t* = tau J(start);
* dips:   f falls to a minimum that is positive,  t* = tau [J(minimum) + J'(minimum) - J'(start)];
* turns:  f falls to zero at theta_1, where v changes sign and theta turns,  t* = tau [2 J'(theta_1) - J'(start)];
* never escapes: the minimum is zero, or nothing that grows is there: t* is infinite,

where J is the integral of dtheta/sqrt f from a point on, to infinity, and J' the same the other way. Each starts where
f begins to rise, so that one quadrature rule does for all.

Source: derived here; Zhang et al., arXiv:2501.16265, section 4, for the flow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

__all__ = ["QuadratureError", "escape_time", "escapes"]

#: What two quadratures, one with half the step of the other, may differ by, relative to the result.
_AGREEMENT = 1e-12
#: The coarsest step of the trapezoidal rule, and how often it is halved.
_STEP, _HALVINGS = 0.5, 6
#: The integrand is left out where it is below exp(-40), 4e-18, of its largest value; y = e^u may enter by its root.
_NEGLIGIBLE = 40.0
#: Exponents beyond this one overflow; the integrand vanishes long before.
_LARGEST = 700.0
#: So much must grow that it has taken off, by exp(2 * _NEGLIGIBLE), at that exponent.
_SMALLEST = np.exp(2 * _NEGLIGIBLE - _LARGEST)
#: What is left of a sum that cancels, relative to its parts, may be rounding.
_ROUNDING = 8 * np.finfo(float).eps
#: Bisections that leave nothing of an interval in float64.
_BISECTIONS = 110


class QuadratureError(ArithmeticError):
    """A waiting time did not reach its accuracy, or float64 cannot hold what it takes."""


def escape_time(
    v: Float[np.ndarray, "*heads"],
    k: Float[np.ndarray, "*heads R D"],
    q: Float[np.ndarray, "*heads R D"],
    eigenvalues: Float[np.ndarray, " D"],
    tau: float = 1.0,
) -> Float[np.ndarray, "*heads"]:
    """The end t* of the first plateau of each head, when its cubic flow blows up:

    tau dv/dt = sum_rd lambda_d^2 k_rd q_rd,  tau dk_rd/dt = lambda_d^2 v q_rd,  tau dq_rd/dt = lambda_d^2 v k_rd.

    A learned mode has lambda_d = 0 here and stands still. Accurate to 1e-12 relative for weights of any size, if the
    start is not close to the boundary between those that turn and those that dip: there t* grows as the logarithm of
    the distance, and changes by more when the start is rounded. On the boundary, to rounding, t* is infinite; so it is
    for zero weights, and for a start that only decays, such as k = q = -v e_d > 0.

    Args:
        v: value weights, any shape.
        k, q: rows of key and query in the eigenbasis of the covariance, the shape of v, then (R, D).
        eigenvalues: lambda_d >= 0.
        tau: time constant, positive.
    Returns:
        One time for each head, infinite for those that never escape.
    Raises:
        ValueError: shapes do not fit, a number is not finite, an eigenvalue is negative, or tau is not positive.
        QuadratureError: the quadrature did not converge, or weights or eigenvalues are too far apart in size.
    """
    return escapes(v, k, q, eigenvalues, tau)[0]


def escapes(
    v: Float[np.ndarray, "*heads"],
    k: Float[np.ndarray, "*heads R D"],
    q: Float[np.ndarray, "*heads R D"],
    eigenvalues: Float[np.ndarray, " D"],
    tau: float = 1.0,
) -> tuple[Float[np.ndarray, "*heads"], Int[np.ndarray, "*heads"]]:
    """t* of each head, and the mode that it has then learned: of those that grow, the one of the largest eigenvalue.

    Args, Raises: as `escape_time`. Modes are numbered from 0, and -1 stands for none.
    """
    v, k, q, eigenvalues = _checked(v, k, q, eigenvalues, tau)
    heads, shape = v.size, k.shape[v.ndim :]
    times, modes = np.full(heads, np.inf), np.full(heads, -1)
    hills = _hills(v.reshape(heads), k.reshape(heads, *shape), q.reshape(heads, *shape), eigenvalues)
    moving = np.flatnonzero(hills.unit > 0)
    hills = hills.only(moving)
    waits, fastest = _waits(hills)
    times[moving] = tau * waits / hills.unit
    # The first of equal eigenvalues is the mode that is named.
    places = np.flatnonzero(eigenvalues > 0)
    modes[moving] = [places[np.argmax(hills.rates == rate)] if rate > 0 else -1 for rate in fastest]
    return times.reshape(v.shape), modes.reshape(v.shape)


@dataclass(frozen=True, eq=False)
class _Hills:
    """f(y) = height + sum_d [grow_d (e^{2 g_d y} - 1) + fade_d (e^{-2 g_d y} - 1)] for many heads, along their motion.

    Weights are told in multiples of `unit`, which is 0 for a head that cannot move; `tilt` is grow - fade without
    the rounding of that difference.
    """

    height: np.ndarray
    grow: np.ndarray
    fade: np.ndarray
    tilt: np.ndarray
    rates: np.ndarray
    unit: np.ndarray

    def only(self, which: np.ndarray) -> _Hills:
        parts = (getattr(self, name)[which] for name in ("height", "grow", "fade", "tilt"))
        return _Hills(*parts, self.rates, self.unit[which])

    def back(self) -> _Hills:
        """The same seen the other way."""
        return replace(self, grow=self.fade, fade=self.grow, tilt=-self.tilt)

    def at(self, y: np.ndarray, height: np.ndarray) -> _Hills:
        """The same told from y on, where f is known to be `height`."""
        x = 2 * self.rates * y[:, None]
        _refuse_range((x > _LARGEST) & (self.grow + self.fade > 0))
        grow, fade, tilt = self._moved(np.minimum(x, _LARGEST))
        return replace(self, height=height, grow=grow, fade=fade, tilt=tilt)

    @property
    def fastest(self) -> np.ndarray:
        """The largest rate of anything that grows; 0 if nothing does."""
        return np.max(np.where(self.grow > 0, self.rates, 0.0), axis=1, initial=0.0)

    def value(self, y: np.ndarray) -> np.ndarray:
        """f at y >= 0, shape (..., heads)."""
        one, other = self._terms(y)
        return self.height + np.sum(one + other, axis=-1)

    def blur(self, y: np.ndarray) -> np.ndarray:
        """What rounding may have made of f at y."""
        one, other = self._terms(y)
        return _ROUNDING * (self.height + np.sum(np.abs(one) + np.abs(other), axis=-1))

    def slope(self, y: np.ndarray) -> np.ndarray:
        """f'(y)/2 at one y for each head."""
        _, _, tilt = self._moved(np.minimum(2 * self.rates * y[:, None], _LARGEST))
        return np.sum(self.rates * tilt, axis=-1)

    def _moved(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """grow, fade and tilt as they are told from 2 g y = x on."""
        grow, fade = self.grow * np.exp(x), self.fade * np.exp(-x)
        near = self.tilt * np.cosh(x) + (self.grow + self.fade) * np.sinh(x)
        return grow, fade, np.where(x < 1, near, grow - fade)

    def _terms(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Near 0 grow and fade all but cancel; far out one of them may be all there is.
        x = np.minimum(2 * self.rates * y[..., None], _LARGEST)
        rise, fall = np.expm1(x), np.expm1(-x)
        near = rise * self.tilt, -rise * fall * self.fade
        return tuple(
            np.where(x < 1, n, far) for n, far in zip(near, (self.grow * rise, self.fade * fall), strict=True)
        )


def _hills(v: np.ndarray, k: np.ndarray, q: np.ndarray, eigenvalues: np.ndarray) -> _Hills:
    active = eigenvalues > 0
    k, q = k[..., active], q[..., active]
    unit = np.maximum(np.abs(v), np.max(np.maximum(np.abs(k), np.abs(q)), axis=(1, 2), initial=0.0))
    scale = np.where(unit > 0, unit, 1.0)
    v, k, q = v / scale, k / scale[:, None, None], q / scale[:, None, None]
    plus, minus = (np.sum((k + sign * q) ** 2, axis=1) / 4 for sign in (1, -1))
    tilt, rates = np.sum(k * q, axis=1), eigenvalues[active] ** 2
    # At v = 0 the head goes where dv/dt points; a force within rounding of its parts is none.
    force = np.sum(rates * tilt, axis=1)
    felt = np.abs(force) > _ROUNDING * np.sum(rates * np.sum(np.abs(k * q), axis=1), axis=1)
    direction = np.sign(np.where(v != 0, v, np.where(felt, force, 0.0)))
    forward = direction[:, None] > 0
    grow, fade = np.where(forward, plus, minus), np.where(forward, minus, plus)
    still = (direction == 0) | ~np.any(grow + fade > 0, axis=1)
    return _Hills(v**2, grow, fade, direction[:, None] * tilt, rates, np.where(still, 0.0, unit))


def _waits(hills: _Hills) -> tuple[np.ndarray, np.ndarray]:
    """t*/tau in units of weight 1 for heads that move, and the rate g that wins (0 for none)."""
    waits, winners = np.full(hills.height.shape, np.inf), np.zeros(hills.height.shape)

    def put(which: np.ndarray, time: np.ndarray, end: _Hills) -> None:
        waits[which], winners[which] = time, end.fastest

    rising = hills.slope(np.zeros_like(hills.height)) >= 0
    rises, falling = np.flatnonzero(rising), np.flatnonzero(~rising)
    start = hills.only(rises)
    put(rises, _integral(start), start)
    down = hills.only(falling)
    bottom, depth = _bottom(down)
    # A depth within rounding is zero: the head is drawn into v = 0 for ever.
    blur = down.blur(bottom)
    dips = np.flatnonzero((depth > blur) & (down.fastest > 0))
    start = down.only(dips)
    there = start.at(bottom[dips], depth[dips])
    put(falling[dips], _integral(there) + _integral(there.back()) - _integral(start.back()), start)
    turns = np.flatnonzero(depth < -blur)
    start = down.only(turns)
    there = start.at(_turn(start, bottom[turns]), np.zeros(turns.size))
    put(falling[turns], 2 * _integral(there.back()) - _integral(start.back()), start.back())
    return waits, winners


def _bottom(hills: _Hills) -> tuple[np.ndarray, np.ndarray]:
    """Where falling hills are lowest, and how high they are there; where nothing grows, far out."""
    high = np.full(hills.height.shape, 1.0 / np.max(hills.rates, initial=1e-300))
    # exp(2 g y) never gets to _LARGEST for the slowest mode before the fastest decides.
    for _ in range(64):
        low = (hills.slope(high) < 0) & (2 * high * np.min(hills.rates) < _LARGEST)
        if not np.any(low):
            break
        high = np.where(low, 2 * high, high)
    place = _bisect(hills.slope, high)
    return place, hills.value(place)


def _turn(hills: _Hills, bottom: np.ndarray) -> np.ndarray:
    """The zero of each hill before its bottom."""
    return _bisect(lambda y: -hills.value(y), bottom)


def _bisect(function: Callable[[np.ndarray], np.ndarray], high: np.ndarray) -> np.ndarray:
    """Where an increasing function of one number a head changes sign between 0 and `high`."""
    low = np.zeros_like(high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = function(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _integral(hills: _Hills) -> np.ndarray:
    """J, the integral of dy/sqrt f(y) from 0 to infinity for hills that rise from 0 on; infinite if nothing grows.

    With y = ln(1 + e^u)/g it runs over the whole line, and the integrand decays exponentially both ways: by e^u, or by
    e^{u/2} where f(0) = 0, and by e^{-u} where f has taken off. Singularities, zeros of f at a distance of 1/g, or of
    |y| near a low start, are at a distance of order 1 in u. So the trapezoidal rule gains digits in proportion to the
    number of points, however low f starts and however small a part of it grows.
    """
    if not hills.height.size:
        return np.zeros(0)
    growing = hills.grow > 0
    able = hills.fastest > 0
    scale = np.where(able, hills.fastest, 1.0)
    with np.errstate(divide="ignore"):
        lengths = (_NEGLIGIBLE - np.log(hills.grow) / 2) * scale[:, None] / hills.rates
    last = np.max(np.min(np.where(growing, lengths, np.inf), axis=1), where=able, initial=_NEGLIGIBLE)
    _refuse_range(growing & (hills.grow < _SMALLEST) & (2 * hills.rates * last / scale[:, None] > _LARGEST))
    # Where f(0) = 0 the integrand near it is e^{u/2} over the root of the slope.
    low = np.maximum(hills.height, hills.slope(np.zeros_like(scale)) / scale)
    first = np.log(np.min(low, where=able & (low > 0), initial=1.0)) - 2 * _NEGLIGIBLE

    def total(step: float, offset: float) -> np.ndarray:
        u = np.arange(first + offset, last + step, step)[:, None]
        y = np.logaddexp(0.0, u) / scale
        share = np.where(u > 0, 1 / (1 + np.exp(-np.abs(u))), np.exp(-np.abs(u)) / (1 + np.exp(-np.abs(u))))
        return step * np.sum(share / (scale * np.sqrt(hills.value(y))), axis=0)

    step, fine = _STEP, total(_STEP, 0.0)
    for _ in range(_HALVINGS):
        coarse, fine = fine, (fine + total(step, step / 2)) / 2
        step /= 2
        if np.all(np.abs(fine - coarse)[able] <= _AGREEMENT * fine[able]):
            return np.where(able, fine, np.inf)
    raise QuadratureError(
        f"The waiting times did not settle: {fine} after {coarse}, in time constants and units of the largest weight."
    )


def _refuse_range(overflows: np.ndarray) -> None:
    """Refuse heads of which a part grows or fades out of the range of floats while others decide."""
    if np.any(overflows):
        raise QuadratureError(
            f"{np.sum(np.any(overflows, axis=1))} heads have weights, or eigenvalues with weights on them, too far "
            "apart in size for float64: a part of them fades or grows by more than exp(600). Leave out what does not "
            "matter."
        )


def _checked(v, k, q, eigenvalues, tau: float) -> tuple[np.ndarray, ...]:
    v, k, q, eigenvalues = (np.asarray(part, dtype=float) for part in (v, k, q, eigenvalues))
    if k.ndim != v.ndim + 2 or k.shape[: v.ndim] != v.shape or q.shape != k.shape:
        raise ValueError(
            f"`k` and `q` must have the shape of `v`, then (R, D); got {v.shape}, {k.shape}, {q.shape}."
        )
    if eigenvalues.shape != k.shape[-1:]:
        raise ValueError(
            f"`eigenvalues` must be D = {k.shape[-1]} numbers; got the shape {eigenvalues.shape}."
        )
    if not all(np.all(np.isfinite(part)) for part in (v, k, q, eigenvalues)) or np.any(eigenvalues < 0):
        raise ValueError("Weights and eigenvalues must be finite, and eigenvalues >= 0.")
    if not (np.isfinite(tau) and tau > 0):
        raise ValueError(f"`tau` must be positive and finite; got {tau!r}.")
    return v, k, q, eigenvalues
