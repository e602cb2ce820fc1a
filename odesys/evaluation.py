"""A closed form on a time grid: the same kind of Dataset that an integrator returns, without stepping."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from odesys.inversion import Chart, invert
from odesys.lambdify import compile_expressions
from odesys.system import numbers_for
from symbolic.basins import smooth_factors
from symbolic.closed_form import ClosedForm
from symbolic.zero import exact

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DomainError", "evaluate"]


class DomainError(ValueError):
    """A closed form was asked for outside its domain.

    Attributes:
        time: the first time asked for that lies outside.
        limit: the time at which the domain ends, or None if it cannot be told.
    """

    def __init__(self, message: str, time: float, limit: float | None = None):
        super().__init__(message)
        self.time = time
        self.limit = limit

    def __reduce__(self):
        return type(self), (self.args[0], self.time, self.limit)


def evaluate(
    law: ClosedForm,
    start: Mapping[str | sp.Symbol, float],
    times: Iterable[float],
    parameters: Mapping[str | sp.Symbol, float] | None = None,
    *,
    backend: str = "numpy",
    observables: Mapping[str, sp.Expr] | None = None,
) -> xr.Dataset:
    """The states x(t; x_0, p) of a closed form at given times, in double precision.

    Explicit laws are evaluated as they stand. Implicit ones, t = F(x) - F(x_0), are inverted on the certified basin of
    x_0 by a bracketed Newton iteration, to rounding; a start at a zero of the field stays there.

    Args:
        law: from `symbolic.closed_form`.
        start: one finite number for each state, by name or symbol: x at time 0.
        times: increasing times t >= 0, in the units of the field's time, shape (T,).
        parameters: one finite number for each parameter of the law's field.
        backend: "numpy" or "jax".
        observables: expressions in states and parameters, by name, to evaluate along the way.
    Returns:
        A dataset with dimension "time" and a float64 variable for each state and observable; attributes: method,
        source, start and parameters (JSON), proof.
    Raises:
        DomainError: a time lies outside the law's domain: before 0, or past a blow-up or the end of a basin.
        TypeError, ValueError: states, parameters, times, backend or observables are not as described.
    """
    if not isinstance(law, ClosedForm):
        raise TypeError(f"`evaluate` takes a ClosedForm from symbolic.closed_form; got {type(law).__name__}.")
    grid = _times(times)
    field = law.field
    x0 = numbers_for(field.state, start, "state")
    args = numbers_for(field.parameters, parameters or {}, "parameter")
    watched = {str(name): sp.sympify(e) for name, e in (observables or {}).items()}
    taken = sorted({*field.names, "time"} & watched.keys())
    if taken:
        raise ValueError(f"The names {taken} of observables are taken by states or the time. Rename them.")
    with _double_precision(backend):
        course = _explicit if law.explicit is not None else _implicit
        states = course(law, x0, args, grid, backend)
        watch = compile_expressions(tuple(watched.values()), (*field.state, *field.parameters), backend)
        watched_values = [np.asarray(v) for v in watch(*states, *args)] if watched else []
    return _dataset(
        law,
        start=x0,
        args=args,
        grid=grid,
        states=states,
        watched=dict(zip(watched, watched_values, strict=True)),
    )


def _explicit(law: ClosedForm, x0, args, grid: np.ndarray, backend: str) -> list[np.ndarray]:
    symbols = (law.time, *law.initial.values(), *law.field.parameters)
    _check_conditions(law, symbols, (*x0, *args), grid)
    function = compile_expressions(tuple(law.explicit[x] for x in law.field.state), symbols, backend)
    states = [np.array(values, dtype=float) for values in function(grid, *x0, *args)]
    for x, values in zip(law.field.state, states, strict=True):
        if not np.all(np.isfinite(values)):
            at = float(grid[np.argmax(~np.isfinite(values))])
            raise DomainError(f"The closed form of {x} is not a finite number at t = {at:.12g}.", at)
    return states


def _check_conditions(law: ClosedForm, symbols, values, grid: np.ndarray) -> None:
    for condition in law.domain.conditions:
        margin = condition.lhs - condition.rhs
        if isinstance(condition, (sp.Lt, sp.Le)):
            margin = -margin
        function = compile_expressions((margin,), symbols)
        margins = np.broadcast_to(function(grid, *values)[0], grid.shape)
        good = {sp.Ne: margins != 0, sp.Ge: margins >= 0, sp.Le: margins >= 0}.get(
            type(condition), margins > 0
        )
        if not np.all(good):
            first = int(np.argmax(~good))
            before = float(grid[first - 1]) if first else 0.0
            end = _crossing(lambda t, f=function: float(f(t, *values)[0]), before, float(grid[first]))
            until = f", which holds until t = {end:.12g}" if end is not None else ""
            raise DomainError(
                f"t = {float(grid[first]):.12g} lies outside the closed form's domain: it needs {condition}{until}. "
                "Ask for earlier times, or start elsewhere.",
                float(grid[first]),
                end,
            )


def _crossing(margin, good: float, bad: float) -> float | None:
    """Where a margin that is positive at `good` and not at `bad` vanishes; None if it never was positive."""
    if not margin(good) > 0:
        return None
    for _ in range(200):
        middle = (good + bad) / 2
        if middle in (good, bad):
            break
        good, bad = (middle, bad) if margin(middle) > 0 else (good, middle)
    return good


def _implicit(law: ClosedForm, x0, args, grid: np.ndarray, backend: str) -> list[np.ndarray]:
    (x,), (start,), field = law.field.state, x0, law.field
    numbers = dict(zip(field.parameters, args, strict=True))
    compiled = compile_expressions((law.primitive, field.rhs[0]), (x, *field.parameters), backend)
    if float(compiled(start, *args)[1]) == 0.0:
        return [np.full(grid.shape, start)]
    low, high = law.basin(start, numbers)
    F, f = (partial(lambda k, value: compiled(value, *args)[k], k) for k in (0, 1))
    origin = float(F(np.array([start]))[0])
    end = high if float(f(np.array([start]))[0]) > 0 else low
    _check_arrival(law, numbers, F, end, origin, grid)
    return [invert(F, f, Chart(low, high), start, origin + grid, backend)]


def _check_arrival(law: ClosedForm, numbers, F, end: float, origin: float, grid: np.ndarray) -> None:
    """Refuse times past the arrival at the end of the basin, if F is finite there."""
    (x,), (rate,) = law.field.state, law.field.rhs
    if np.isfinite(end):
        # At a zero of order one or more 1/f has no integral: that end is approached forever.
        factors = smooth_factors(exact(rate.xreplace({p: sp.Float(v) for p, v in numbers.items()})), x)
        _, order = min(factors, key=lambda factor: abs(factor[0].subs(x, sp.Float(end)).evalf()))
        if order >= 1:
            return
    far = np.array([end]) if np.isfinite(end) else np.sign(end) * np.array([1e20, 1e30, 1e40])
    values = np.asarray(F(far), dtype=float)
    settled = np.isfinite(values).all() and np.ptp(values) <= 1e-9 * (1 + abs(values[-1]))
    arrival = float(values[-1]) - origin
    if settled and grid[-1] >= arrival:
        first = float(grid[np.argmax(grid >= arrival)])
        what = "blows up" if np.isinf(end) else f"arrives at {end:.12g}, where the field is singular,"
        raise DomainError(
            f"t = {first:.12g} lies outside the closed form's domain: {x} {what} at t = {arrival:.12g}. "
            "Ask for earlier times, or start elsewhere.",
            first,
            arrival,
        )


def _times(times: Iterable[float]) -> np.ndarray:
    grid = np.array(times if isinstance(times, np.ndarray) else list(times), dtype=float)
    if grid.ndim != 1 or grid.size == 0 or not np.all(np.isfinite(grid)):
        raise ValueError(f"`times` must be a sequence of at least one finite number; got shape {grid.shape}.")
    if np.any(np.diff(grid) <= 0):
        at = int(np.argmax(np.diff(grid) <= 0))
        raise ValueError(f"`times` must increase; got {grid[at]:.12g} before {grid[at + 1]:.12g}.")
    if grid[0] < 0:
        raise DomainError(
            f"t = {grid[0]:.12g} lies outside the closed form's domain: it needs t >= 0, since it starts at t = 0.",
            float(grid[0]),
        )
    return grid


def _double_precision(backend: str) -> Any:
    if backend != "jax":
        return nullcontext()
    import jax

    return jax.enable_x64(True)


def _dataset(law: ClosedForm, *, start, args, grid, states, watched) -> xr.Dataset:
    import xarray as xr

    field = law.field
    variables = {x.name: ("time", values) for x, values in zip(field.state, states, strict=True)}
    return xr.Dataset(
        variables
        | {name: ("time", np.broadcast_to(values, grid.shape).copy()) for name, values in watched.items()},
        {"time": grid},
        {
            "method": f"closed form ({'explicit' if law.explicit is not None else 'implicit'})",
            "source": field.source,
            "start": json.dumps(dict(zip(field.names, start, strict=True))),
            "parameters": json.dumps(
                {p.name: value for p, value in zip(field.parameters, args, strict=True)}
            ),
            "proof": str(law.proof),
        },
    )
