"""What passes between the contract and its backends: a checked request, and the arrays that answer it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
import sympy as sp

from odesys.lambdify import compile_field
from odesys.system import ODESystem, numbers_for

__all__ = ["Request", "Run", "Stop", "request"]

#: Below 100 rounding errors an error estimate is noise.
_SMALLEST_RTOL = 100 * np.finfo(float).eps


class Stop(Enum):
    """Why a backend stopped."""

    DONE = "every requested time was reached"
    STEPS = "the allowed number of steps is used up"
    STALLED = "the step size fell below the spacing of floating-point numbers"


@dataclass(frozen=True, eq=False)
class Request:
    """One initial value problem: x(times[0]) = start, with errors of a step at most atol + rtol |x|."""

    system: ODESystem
    start: np.ndarray  # (n,)
    times: np.ndarray  # (T,), strictly increasing
    rtol: float
    atol: np.ndarray  # (n,)
    max_steps: int


@dataclass(frozen=True, eq=False)
class Run:
    """What was reached: the requested times or, after an early stop, those before it and the last step."""

    times: np.ndarray  # (k,)
    states: np.ndarray  # (n, k)
    steps: int
    evaluations: int | None  # of the right-hand side; None where a backend does not count them
    stop: Stop


def request(
    system: ODESystem,
    y0: Mapping[str | sp.Symbol, float],
    times: Iterable[float],
    rtol: float,
    atol: float | Mapping[str | sp.Symbol, float] | Iterable[float] | None,
    max_steps: int,
) -> Request:
    """The request that `solve`'s arguments describe, checked; `solve` documents arguments and errors."""
    if not isinstance(system, ODESystem):
        raise TypeError(
            f"`solve` takes an ODESystem; got {type(system).__name__}. "
            "Pair a field with its numbers: ODESystem(field, {'name': number}); maps go to `iterate`."
        )
    if "time" in system.field.names:
        raise ValueError("A state is called 'time', which is the name of the result's dimension. Rename it.")
    start = np.array(numbers_for(system.field.state, y0, "state"))
    instants = _times(times)
    if isinstance(rtol, bool) or not isinstance(rtol, (int, float, np.number)) or not rtol > 0:
        raise ValueError(f"`rtol` must be a positive number; got {rtol!r}.")
    if not _SMALLEST_RTOL <= rtol < 1:
        raise ValueError(
            f"`rtol` must lie between {_SMALLEST_RTOL:.2g} and 1 in double precision; got {rtol!r}."
        )
    if isinstance(max_steps, bool) or not isinstance(max_steps, (int, np.integer)) or max_steps < 1:
        raise ValueError(f"`max_steps` must be a positive whole number; got {max_steps!r}.")
    tolerances = default_atol(system, start, instants, rtol) if atol is None else _tolerances(system, atol)
    return Request(system, start, instants, float(rtol), tolerances, int(max_steps))


def default_atol(system: ODESystem, start: np.ndarray, times: np.ndarray, rtol: float) -> np.ndarray:
    """atol_i = rtol * max(|y0_i|, smallest non-zero |y0_j|); `solve` says what holds for a start at zero."""
    sizes = np.abs(start)
    if np.any(sizes > 0):
        return rtol * np.maximum(sizes, np.min(sizes[sizes > 0]))
    drive = np.max(np.abs(compile_field(system).rhs(times[0], start, system.args))) * (times[-1] - times[0])
    return np.full(len(start), rtol * (min(1.0, drive) if drive > 0 else 1.0))


def _times(times: Iterable[float]) -> np.ndarray:
    try:
        instants = np.array(times if hasattr(times, "__len__") else list(times))
        instants = instants.astype(float, casting="same_kind" if instants.dtype.kind == "c" else "unsafe")
    except (TypeError, ValueError):
        raise TypeError(f"`times` must be a sequence of real numbers; got {times!r}.") from None
    if instants.ndim != 1 or len(instants) < 2:
        raise ValueError(
            f"`times` must hold at least two times in one dimension; got shape {instants.shape}. "
            "The first is the time of y0."
        )
    if not np.all(np.isfinite(instants)):
        raise ValueError(f"`times` must be finite; got {instants[~np.isfinite(instants)][0]}.")
    bad = np.flatnonzero(np.diff(instants) <= 0)
    if len(bad):
        i = int(bad[0])
        raise ValueError(
            f"`times` must increase strictly; times[{i + 1}] = {instants[i + 1]} follows times[{i}] = "
            f"{instants[i]}. Sort them and drop repetitions; a flow runs backward as the field -f."
        )
    return instants


def _tolerances(system: ODESystem, atol: object) -> np.ndarray:
    names = system.field.names
    if isinstance(atol, Mapping):
        values = np.array(numbers_for(system.field.state, atol, "tolerance"))
    else:
        try:
            values = np.array(atol, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"`atol` must be a number, or one for each of {list(names)}; got {atol!r}."
            ) from None
    if values.shape not in ((), (len(names),)):
        raise ValueError(
            f"`atol` must be one number, or one for each of the {len(names)} states {list(names)}; "
            f"got shape {values.shape}."
        )
    if not np.all(np.isfinite(values)) or not np.all(values > 0):
        raise ValueError(f"`atol` must be positive and finite; got {atol!r}. `atol=None` scales it to y0.")
    return np.broadcast_to(values, (len(names),)).copy()
