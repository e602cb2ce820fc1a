"""Lyapunov exponents: how fast orbits of a map that start next to each other part."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import sympy as sp

from fixedpoints.arguments import whole
from fixedpoints.maps.arguments import autonomous
from odesys.lambdify import CompiledField, compile_field
from odesys.system import MapSystem, numbers_for

__all__ = ["LyapunovExponents", "lyapunov"]

_BLOCKS = 20
#: Slopes of so many steps are computed at once.
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class LyapunovExponents:
    """All Lyapunov exponents of an orbit, per step, by falling size.

    Args:
        values: the exponents, shape (n,); -inf where a slope along the orbit vanishes.
        errors: their standard errors, from the means of blocks of steps, shape (n,).
        steps: over how many steps they are means.
        end: the last state, from which to go on.
    """

    values: np.ndarray
    errors: np.ndarray
    steps: int
    end: Mapping[str, float]


def lyapunov(
    system: MapSystem, start: Mapping[str | sp.Symbol, float], steps: int, transient: int = 1000
) -> LyapunovExponents:
    """The Lyapunov exponents of an orbit,  lim (1/k) log of the singular values of Df^k(x_0).

    A frame of n tangent vectors is carried along,  Df(x_k) Q_k = Q_{k+1} R_{k+1}, and the logarithms of the
    diagonals of R are averaged; their sum is the mean of log|det Df|. The errors are those of a mean of
    independent blocks: they say nothing about other attractors or longer transients.

    Args:
        system: a map with its numbers.
        start: a number for each state.
        steps: over how many steps the mean is taken, at least 20.
        transient: how many steps are made before.
    Raises:
        TypeError: the system is no map.
        ValueError: a number of steps is too small; a state is unknown, missing, or not a finite number; or the
            map counts its steps.
        OverflowError: the orbit or its slopes stop being finite; the message names the step.

    Source: Benettin, Galgani, Giorgilli, Strelcyn, Meccanica 15 (1980); Eckmann and Ruelle, Rev. Mod. Phys. 57
    (1985), section V.
    """
    system = autonomous(system, "Lyapunov exponents are")
    steps, transient = whole(steps, "steps", _BLOCKS), whole(transient, "transient", 0)
    state = np.array(numbers_for(system.map.state, start, "state"))
    compiled, n = compile_field(system), len(state)
    state = _orbit(compiled, system, state, transient, 0)[:, -1]
    frame, logs, done = np.eye(n), np.empty((n, steps)), 0
    while done < steps:
        count = min(_CHUNK, steps - done)
        orbit = _orbit(compiled, system, state, count, transient + done)
        slopes = np.broadcast_to(compiled.jacobian(0, orbit[:, :-1], system.args), (n, n, count))
        if not np.isfinite(slopes).all():
            step = transient + done + int(np.argmin(np.isfinite(slopes).all(axis=(0, 1))))
            raise OverflowError(f"The slopes of the map are not finite at step {step}. Start elsewhere.")
        frame = _stretched(np.moveaxis(slopes, 2, 0), frame, logs[:, done : done + count])
        state, done = orbit[:, -1], done + count
    values = logs.mean(axis=1)
    parts = np.array([part.mean(axis=1) for part in np.array_split(logs, _BLOCKS, axis=1)])
    with np.errstate(invalid="ignore"):
        errors = parts.std(axis=0, ddof=1) / math.sqrt(_BLOCKS)
    order = np.argsort(-values, kind="stable")
    end = dict(zip(system.map.names, state.tolist(), strict=True))
    return LyapunovExponents(values[order], errors[order], steps, end)


def _orbit(
    compiled: CompiledField, system: MapSystem, start: np.ndarray, steps: int, before: int
) -> np.ndarray:
    """x_0 to x_steps, shape (n, steps + 1)."""
    orbit = np.empty((len(start), steps + 1))
    orbit[:, 0] = state = start
    for k in range(steps):
        orbit[:, k + 1] = state = compiled.rhs(0, state, system.args)
        if not np.isfinite(state).all():
            raise OverflowError(
                f"The orbit leaves the finite numbers at step {before + k + 1}: "
                f"{dict(zip(system.map.names, state.tolist(), strict=True))}. Start elsewhere; "
                "fixedpoints.orbit_diagram tells which starts escape."
            )
    return orbit


def _stretched(slopes: np.ndarray, frame: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """The frame after all steps; log|R_ii| of each goes into `logs`, shape (n, steps)."""
    with np.errstate(divide="ignore"):
        if len(frame) == 1:
            logs[0] = np.log(np.abs(slopes[:, 0, 0]))
            return frame
        for k, slope in enumerate(slopes):
            frame, upper = np.linalg.qr(slope @ frame)
            logs[:, k] = np.log(np.abs(np.diag(upper)))
    return frame
