"""A closed form on a time grid: the same kind of Dataset that an integrator returns, without stepping."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from odesys.inversion import inverse
from odesys.lambdify import compile_expressions
from odesys.system import numbers_for
from symbolic.closed_form import ClosedForm

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DomainError", "evaluate", "time_course"]


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
        observables: expressions in time, states and parameters, by name, to evaluate along the way.
    Returns:
        A dataset with dimension "time" and a float64 variable for each state and observable; attributes: method,
        backend, source, start and parameters (JSON), proof.
    Raises:
        DomainError: a time lies outside the law's domain: before 0, or past a blow-up or the end of a basin.
        TypeError, ValueError: states, parameters, times, backend or observables are not as described.
    """
    if not isinstance(law, ClosedForm):
        raise TypeError(f"`evaluate` takes a ClosedForm from symbolic.closed_form; got {type(law).__name__}.")
    field = law.field
    x0 = numbers_for(field.state, start, "state")
    args = numbers_for(field.parameters, parameters or {}, "parameter")
    watched = _observables(law, observables or {})
    grid = _times(times)
    with _double_precision(backend):
        run = _explicit if law.explicit is not None else _implicit
        states = run(law, x0, args, grid, backend)
        values = _watch(law, tuple(watched.values()), backend)(grid, *states, *args) if watched else ()
    seen = {name: np.array(value) for name, value in zip(watched, values, strict=True)}
    return _dataset(law, x0, args, grid, dict(zip(field.names, states, strict=True)) | seen, backend)


def time_course(law: ClosedForm, backend: str = "numpy") -> Callable[..., tuple]:
    """The function  (times, start, args) -> (x_1, ..., x_n)  of a closed form, without any checks.

    `start` and `args` are tuples of numbers, in the order of `field.state` and `field.parameters`; each x_i has the
    shape of `times`. With backend "jax" it can be traced and differentiated by times, start and args; for an implicit
    law by the implicit function theorem, dx/dt = f(x), dx/dx_0 = f(x)/f(x_0). The basin of an implicit law is read
    off the law's own boundaries: `evaluate` certifies it, and refuses times outside the domain, where this function
    returns numbers without meaning.

    Raises:
        ValueError: the backend is unknown, or the law has no numerical form.
    """
    field = law.field
    if law.explicit is not None:
        # Told that t >= 0, the compiler sees which exponentials decay and leaves them as they are.
        forward = {law.time: sp.Dummy(law.time.name, nonnegative=True)}
        symbols = (forward[law.time], *(law.initial[x] for x in field.state), *field.parameters)
        paths = tuple(law.explicit[x].xreplace(forward) for x in field.state)
        function = compile_expressions(paths, symbols, backend)
        return lambda times, start, args=(): function(times, *start, *args)
    invert, ends = (
        _inverter(law, backend),
        compile_expressions(law.domain.boundaries, field.parameters, backend),
    )

    def course(times, start, args=()):
        xp = _array_module(backend)
        known = ends(*args) if law.domain.boundaries else ()
        # An end that is not real for these parameters is nan, and compares as neither below nor above.
        low = [xp.where(end < start[0], end, -np.inf) for end in known]
        high = [xp.where(end > start[0], end, np.inf) for end in known]
        below = xp.max(xp.stack([*low, xp.asarray(-np.inf)]))
        above = xp.min(xp.stack([*high, xp.asarray(np.inf)]))
        return (
            invert(xp.asarray(times, dtype=float), xp.asarray(start[0], dtype=float), below, above, *args),
        )

    return course


@lru_cache(maxsize=64)
def _inverter(law: ClosedForm, backend: str) -> Callable[..., Any]:
    symbols = (*law.field.state, *law.field.parameters)
    size = sp.Add(*map(sp.Abs, sp.Add.make_args(sp.expand_mul(law.primitive))))
    F, f, parts = (
        compile_expressions((e,), symbols, backend) for e in (law.primitive, law.field.rhs[0], size)
    )
    invert = inverse(lambda *a: F(*a)[0], lambda *a: f(*a)[0], lambda *a: parts(*a)[0], backend)
    if backend == "numpy":
        return invert
    import jax

    return jax.jit(invert)


def _explicit(law: ClosedForm, x0, args, grid: np.ndarray, backend: str) -> list[np.ndarray]:
    _check_conditions(law, x0, args, grid)
    states = [np.array(values, dtype=float) for values in time_course(law, backend)(grid, x0, args)]
    for x, values in zip(law.field.state, states, strict=True):
        if not np.all(np.isfinite(values)):
            at = float(grid[np.argmax(~np.isfinite(values))])
            raise DomainError(
                f"The closed form of {x} is not a finite number at t = {at:.12g}, for {_told(law, x0, args)}. Its "
                f"domain is: {law.domain}.",
                at,
            )
    return states


def _implicit(law: ClosedForm, x0, args, grid: np.ndarray, backend: str) -> list[np.ndarray]:
    (x,), (start,), field = law.field.state, x0, law.field
    numbers = dict(zip((p.name for p in field.parameters), args, strict=True))
    slope = float(compile_expressions(field.rhs, (x, *field.parameters))(start, *args)[0])
    if slope == 0.0:
        return [np.full(grid.shape, start)]
    low, high = law.basin(start, numbers)
    limit = law.arrival(start, numbers)
    if grid[-1] >= limit:
        end = high if slope > 0 else low
        what = "blows up" if np.isinf(end) else f"reaches {end:.12g}, where the field is singular,"
        raise _outside(float(grid[np.argmax(grid >= limit)]), f"{x} {what} at t = {limit:.12g}", limit)
    # Lengths are rounded up to a power of two, so that a grid of another length seldom compiles anew.
    padded = np.pad(grid, (0, 2 ** max(4, (grid.size - 1).bit_length()) - grid.size), mode="edge")
    values = _inverter(law, backend)(padded, np.float64(start), np.float64(low), np.float64(high), *args)
    return [np.array(values)[: grid.size]]


def _check_conditions(law: ClosedForm, x0, args, grid: np.ndarray) -> None:
    symbols = (law.time, *(law.initial[x] for x in law.field.state), *law.field.parameters)
    for condition in law.domain.conditions:
        margin = (
            condition.lhs - condition.rhs if isinstance(condition, sp.Ne) else condition.gts - condition.lts
        )
        function = compile_expressions((margin,), symbols)

        def holds(times, function=function, condition=condition):
            values = function(times, *x0, *args)[0]
            return values != 0 if isinstance(condition, sp.Ne) else values > 0

        good = holds(grid)
        if np.all(good):
            continue
        first = int(np.argmax(~good))
        time, before = float(grid[first]), float(grid[first - 1]) if first else 0.0
        if not holds(before):
            raise _outside(
                time,
                f"it needs {condition}, which {_told(law, x0, args)} do not meet",
                None,
                "Start elsewhere.",
            )
        limit = _last(holds, before, time)
        raise _outside(time, f"it needs {condition}, which holds until t = {limit:.12g}", limit)


def _outside(
    time: float, why: str, limit: float | None, advice: str = "Ask for earlier times."
) -> DomainError:
    return DomainError(f"t = {time:.12g} lies outside the closed form's domain: {why}. {advice}", time, limit)


def _last(holds: Callable, good: float, bad: float) -> float:
    """The last time at which a condition holds, by bisection down to neighbouring floats."""
    while (middle := (good + bad) / 2) not in (good, bad):
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _told(law: ClosedForm, x0, args) -> str:
    names = (*(law.initial[x].name for x in law.field.state), *(p.name for p in law.field.parameters))
    return ", ".join(f"{name} = {value:.12g}" for name, value in zip(names, (*x0, *args), strict=True))


def _observables(law: ClosedForm, given: Mapping[str, sp.Expr]) -> dict[str, sp.Expr]:
    watched = {str(name): sp.sympify(expression) for name, expression in given.items()}
    taken = sorted({*law.field.names, "time"} & watched.keys())
    if taken:
        raise ValueError(f"The names {taken} of observables are taken by states or the time. Rename them.")
    known = {law.time, *law.field.state, *law.field.parameters}
    for name, expression in watched.items():
        foreign = sorted(symbol.name for symbol in expression.free_symbols - known)
        if foreign:
            raise ValueError(
                f"The observable {name!r} uses {foreign}, which are not symbols of the law: states "
                f"{list(law.field.names)}, parameters {[p.name for p in law.field.parameters]}, time {law.time}."
            )
    return watched


def _watch(law: ClosedForm, expressions: tuple[sp.Expr, ...], backend: str) -> Callable[..., tuple]:
    return compile_expressions(expressions, (law.time, *law.field.state, *law.field.parameters), backend)


def _times(times: Iterable[float]) -> np.ndarray:
    try:
        grid = np.array(times if hasattr(times, "__len__") else list(times), dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"`times` must be a sequence of real numbers; got {times!r}.") from None
    if grid.ndim != 1 or grid.size == 0 or not np.all(np.isfinite(grid)):
        raise ValueError(
            f"`times` must hold at least one time in one dimension, all finite; got an array of shape {grid.shape}."
        )
    if np.any(np.diff(grid) <= 0):
        at = int(np.argmax(np.diff(grid) <= 0))
        raise ValueError(f"`times` must increase; got {grid[at]:.12g} before {grid[at + 1]:.12g}.")
    if grid[0] < 0:
        raise _outside(
            float(grid[0]), "it begins at t = 0, the time of the start", None, "Ask for times from 0 on."
        )
    return grid


def _array_module(backend: str) -> Any:
    if backend == "numpy":
        return np
    import jax.numpy as jnp

    return jnp


def _double_precision(backend: str) -> Any:
    if backend != "jax":
        return nullcontext()
    import jax

    return jax.enable_x64(True)


def _dataset(law: ClosedForm, x0, args, grid: np.ndarray, variables, backend: str) -> xr.Dataset:
    import xarray as xr

    names = [p.name for p in law.field.parameters]
    return xr.Dataset(
        {name: ("time", np.array(np.broadcast_to(values, grid.shape))) for name, values in variables.items()},
        {"time": grid},
        {
            "method": f"closed form ({'explicit' if law.explicit is not None else 'implicit'})",
            "backend": backend,
            "source": law.field.source,
            "start": json.dumps(dict(zip(law.field.names, x0, strict=True))),
            "parameters": json.dumps(dict(zip(names, args, strict=True))),
            "proof": str(law.proof),
        },
    )
