"""Many starts of one system, each with its own step sizes, so that no error hides among the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from odesys.integrators.contract import DIFFRAX_METHODS, check_method, failure, integrate
from odesys.integrators.dataset import counts, labelled, monitors, trajectory
from odesys.integrators.run import Request, Run, Stop, default_atol, request
from odesys.integrators.switching import switching_times
from odesys.system import ODESystem, by_name

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["solve_ensemble"]

#: From this many starts on, compiling once (seconds) costs less than stepping one start after the other.
_MANY = 32


def solve_ensemble(
    system: ODESystem,
    y0: Mapping[str | sp.Symbol, float | Iterable[float]],
    times: Iterable[float],
    method: str | None = None,
    rtol: float = 1e-8,
    atol: float | Mapping[str | sp.Symbol, float] | Iterable[float] | None = None,
    invariants: Iterable[object] = (),
    observables: Mapping[str, sp.Expr] | None = None,
    max_steps: int = 100_000,
) -> xr.Dataset:
    """Integrate  dx/dt = f(t, x; p)  from m starts, each as accurately as `solve` would.

    SciPy's methods step one start after the other; diffrax's step all starts at once in one compiled call.
    None does as `solve` does for fewer than 32 starts and takes Dopri8 for more.

    Args:
        y0: for each state a number, or m numbers; all sequences have the same length m.
        system, times, method, rtol, atol, invariants, observables, max_steps: as in `solve`; `atol=None`
            follows each start's own size.
    Returns:
        A dataset with dimensions "start", "time" and otherwise as in `solve`; steps are summed over starts.
    Raises:
        IntegrationError: a start does not arrive; the message names it, `.partial` is its run so far.
        TypeError, ValueError: as in `solve`, or the starts' lengths differ.
    """
    starts = _starts(system, y0)
    first = dict(zip(system.field.names, starts[0], strict=True))
    checked = request(system, first, times, rtol, atol, max_steps)
    monitored = monitors(system, invariants, observables)
    check_method(method)
    requests = [
        replace(checked, start=start, atol=_atol(checked, start) if atol is None else checked.atol)
        for start in starts
    ]
    if method is None and len(starts) >= _MANY:
        method = "Dopri8"
    used, runs = _integrate_all(requests, method)
    for index, (each, run) in enumerate(zip(requests, runs, strict=True)):
        if run.stop is not Stop.DONE:
            partial = trajectory(each, run, used, monitored)
            raise failure(each, run, used, partial, who=f"Start {index}: ")
    states = np.stack([run.states for run in runs], axis=1)
    return labelled(("start", "time"), checked, checked.times, states, counts(*runs), used, monitored)


def _integrate_all(requests: list[Request], method: str | None) -> tuple[str, list[Run]]:
    if method in DIFFRAX_METHODS and not len(switching_times(requests[0].system)):
        from odesys.integrators import diffrax_backend

        return method, diffrax_backend.integrate_many(requests, method)
    results = [integrate(each, method) for each in requests]
    return ", ".join(sorted({used for used, _ in results})), [run for _, run in results]


def _atol(checked: Request, start: np.ndarray) -> np.ndarray:
    return default_atol(checked.system, start, checked.times, checked.rtol)


def _starts(system: ODESystem, y0: Mapping[str | sp.Symbol, object]) -> np.ndarray:
    """Starts of shape (m, n)."""
    names = system.field.names
    given = by_name(system.field.state, y0, "state")
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(
            f"No starts for the states {missing}; got {sorted(given)}. Give some for each of {list(names)}."
        )
    columns = {}
    for name in names:
        column = np.array(given[name])
        if column.dtype.kind not in "iuf" or column.ndim > 1 or not np.all(np.isfinite(column)):
            raise ValueError(
                f"The starts of {name} must be real, finite numbers in one dimension; got {given[name]!r}."
            )
        columns[name] = column
    lengths = {name: len(column) for name, column in columns.items() if column.ndim}
    if not lengths or len(set(lengths.values())) > 1 or 0 in lengths.values():
        raise ValueError(
            f"The starts must be sequences of one common length, at least one of them; got lengths "
            f"{lengths}. A single start is for `solve`."
        )
    return np.stack(np.broadcast_arrays(*columns.values()), axis=1).astype(float)
