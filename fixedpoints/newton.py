"""Newton's method from many starts at once, led away from the zeros that are known.

Deflation (Brown and Gearhart 1971; Farrell, Birkisson and Funke 2015) multiplies the field by

    M(x) = prod_r (1 + 1 / |x - r|^2)

over the known zeros r. The Newton step of M f is that of f times one number, so that it costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from odesys.lambdify import compile_field
from odesys.system import MapSystem, ODESystem

__all__ = ["Vanishing", "converged", "crossings", "spread", "starts", "vanishing"]

_STEPS, _HALVINGS = 60, 8

#: Points at which the sign of a single rate is looked at.
_SAMPLES = 4096

#: A run has arrived when its last step is smaller than this part of 1 + |x|.
_ARRIVED = 1e-10

#: Half-widths of the cubes around the origin in which starts lie when no box is given, in turn.
_REACHES = (1.0, 3.0, 0.1, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Vanishing:
    """What vanishes at fixed points, as functions of arrays: `value` (n, m) -> (n, m), `slope` -> (n, n, m)."""

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]


def vanishing(system: ODESystem | MapSystem) -> Vanishing:
    """f of a flow, or f(x) - x of a map, with its Jacobian."""
    field, shift = compile_field(system), float(isinstance(system, MapSystem))

    def value(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(field.rhs(0.0, x, field.args), dtype=float) - shift * x

    def slope(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            jacobian = np.asarray(field.jacobian(0.0, x, field.args), dtype=float)
        return jacobian - shift * np.eye(len(x))[:, :, None]

    return Vanishing(value, slope)


def crossings(f: Vanishing, box: Sequence[tuple[float, float]] | None) -> np.ndarray:
    """Starts for one state next to which the rate changes sign, shape (1, k)."""
    places = np.sort(starts(_SAMPLES, 1, box), axis=1)
    signs = np.sign(f.value(places)[0])
    change = np.flatnonzero(signs[1:] * signs[:-1] < 0)
    return (places[:, change] + places[:, change + 1]) / 2


def spread(count: int, box: Sequence[tuple[float, float]]) -> np.ndarray:
    """Points spread evenly over a box, the same in every run, shape (n, count).

    Fractional parts of k sqrt(p_j) with the j-th prime (Richtmyer 1951).
    """
    low, high = np.array(box, dtype=float).T[:, :, None]
    primes = np.array([float(sp.prime(j + 1)) for j in range(len(box))])
    return low + (high - low) * np.modf(np.outer(np.sqrt(primes), np.arange(1, count + 1)))[0]


def starts(count: int, n: int, box: Sequence[tuple[float, float]] | None) -> np.ndarray:
    """Where iterations start, shape (n, count): spread over the box, or over growing cubes around 0."""
    if box is not None:
        return spread(count, box)
    return spread(count, [(-1.0, 1.0)] * n) * np.resize(_REACHES, count)


def converged(
    f: Vanishing, x: np.ndarray, known: np.ndarray, scale: np.ndarray, deadline: float
) -> np.ndarray:
    """Where damped Newton iterations arrive, shape (n, k), in the order of arrival.

    Args:
        f: the field and its Jacobian.
        x: starts, shape (n, m); those from which no iteration arrives are left out.
        known: zeros to be led away from, shape (n, p).
        scale: the typical size of each coordinate, in which distances to the known zeros are measured.
        deadline: in the seconds of `time.monotonic`; runs that have not arrived by then are left out.
    """
    there = []
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            value = f.value(x)
            step = _newton(f.slope(x), value)
            arrived = np.abs(step).max(axis=0) <= _ARRIVED * (1 + np.abs(x).max(axis=0))
            arrived &= np.isfinite(value).all(axis=0)
            there.append((x + step)[:, arrived])
            x, step, value = (a[:, ~arrived] for a in (x, step, value))
            if not x.size or time.monotonic() > deadline:
                break
            x = _damped(f, x, step * _deflation(x, step, known, scale), value, known, scale)
    return np.concatenate(there, axis=1)


def _newton(slope: np.ndarray, value: np.ndarray) -> np.ndarray:
    """-J^-1 f, shape (n, m); of least squares where J is singular, NaN where it is not finite."""
    matrices, right = np.moveaxis(slope, 2, 0), -value.T[:, :, None]
    good = np.isfinite(matrices).all(axis=(1, 2)) & np.isfinite(right).all(axis=(1, 2))
    matrices = np.where(good[:, None, None], matrices, np.eye(len(slope)))
    right = np.where(good[:, None, None], right, np.nan)
    try:
        step = np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        step = np.linalg.pinv(matrices) @ right
    return step[:, :, 0].T


def _deflation(x: np.ndarray, step: np.ndarray, known: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The factor that turns the Newton step s of f into that of M f:  1 / (1 - s . grad log M)."""
    away = _away(x, known, scale)
    square = (away**2).sum(axis=0)
    along = -2 * (away * (step / scale[:, None])[:, None]).sum(axis=0) / (square * (square + 1))
    factor = 1 / (1 - along.sum(axis=0))
    return np.where(np.isfinite(factor), factor, 1.0)


def _damped(f: Vanishing, x, step, value, known, scale) -> np.ndarray:
    """x + t step with the first t = 1, 1/2, 1/4, ... that lessens |M f|, or the last."""
    size = _merit(value, x, known, scale)
    best, left = x + step, np.arange(x.shape[1])
    for k in range(_HALVINGS):
        trial = x[:, left] + step[:, left] * 0.5**k
        best[:, left] = trial
        better = _merit(f.value(trial), trial, known, scale) < size[left]
        left = left[~better]
        if not left.size:
            break
    return np.where(np.isfinite(best).all(axis=0), best, x)


def _merit(value: np.ndarray, x: np.ndarray, known: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """|M f|."""
    square = (_away(x, known, scale) ** 2).sum(axis=0)
    size = np.linalg.norm(value, axis=0) * np.prod(1 + 1 / square, axis=0)
    return np.where(np.isnan(size), np.inf, size)


def _away(x: np.ndarray, known: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """From each known zero to each point, in units of the scale, shape (n, p, m)."""
    return (x[:, None, :] - known[:, :, None]) / scale[:, None, None]
