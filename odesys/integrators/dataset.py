"""From plain arrays to the labelled result: states, observables, monitored invariants and provenance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from odesys.integrators.run import Request, Run
from odesys.lambdify import compile_expressions
from odesys.system import ODESystem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Monitors", "counts", "labelled", "monitors", "trajectory"]

_DRIFT = "invariant_drift"
#: Stands for time in autonomous fields; one symbol, so that compiled expressions are found again.
_NO_CLOCK = sp.Dummy("t")


class Monitors:
    """Expressions that are evaluated along a run: observables by name, and invariants."""

    def __init__(self, system: ODESystem, observables: dict[str, sp.Expr], invariants: tuple[sp.Expr, ...]):
        self.observables = observables
        self.invariants = invariants
        self._system = system

    def evaluate(self, times: np.ndarray, states: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Observables by name (..., T) and invariants (k, ..., T) along states (n, ..., T)."""
        field, args = self._system.field, self._system.args
        clock = field.time if field.time is not None else _NO_CLOCK
        function = compile_expressions(
            (*self.observables.values(), *self.invariants), (clock, *field.state, *field.parameters)
        )
        values = function(times, *states, *args)
        split = len(self.observables)
        return dict(zip(self.observables, values[:split], strict=True)), np.array(values[split:])


def monitors(
    system: ODESystem, invariants: Iterable[object], observables: Mapping[str, sp.Expr] | None
) -> Monitors:
    """The expressions to monitor, checked to speak of the system's own symbols."""
    if isinstance(invariants, sp.Basic) or hasattr(invariants, "expression"):
        raise TypeError(f"`invariants` must be a sequence of first integrals; got one: write [{invariants}].")
    expressions = tuple(_expression(system, getattr(i, "expression", i), "invariant") for i in invariants)
    named = {
        str(name): _expression(system, expression, f"observable {name!r}")
        for name, expression in (observables or {}).items()
    }
    taken = sorted({*system.field.names, "time", "start", "invariant", _DRIFT} & named.keys())
    if taken:
        raise ValueError(f"The names {taken} of observables are taken by states or dimensions. Rename them.")
    return Monitors(system, named, expressions)


def trajectory(request: Request, run: Run, method: str, monitored: Monitors) -> xr.Dataset:
    """The run as a dataset with dimension "time"."""
    return labelled(("time",), request, run.times, run.states, counts(run), method, monitored)


def counts(*runs: Run) -> dict[str, int]:
    """The work of some runs, summed."""
    evaluations = [run.evaluations for run in runs if run.evaluations is not None]
    total = {"steps": sum(run.steps for run in runs)}
    return total | ({"rhs_evaluations": sum(evaluations)} if len(evaluations) == len(runs) else {})


def labelled(
    dims: tuple[str, ...],
    request: Request,
    times: np.ndarray,
    states: np.ndarray,
    work: dict[str, int],
    method: str,
    monitored: Monitors,
) -> xr.Dataset:
    """States of shape (n, *dims), time last, with what is monitored and where it comes from."""
    import xarray as xr

    observed, invariants = monitored.evaluate(times, states)
    variables: dict[str, Any] = {
        name: (dims, np.array(values))
        for name, values in zip(request.system.field.names, states, strict=True)
    }
    for name, values in observed.items():
        variables[name] = (dims, np.array(values), {"expression": str(monitored.observables[name])})
    coordinates: dict[str, Any] = {"time": times}
    attributes = _provenance(request, method) | work
    if monitored.invariants:
        drift = invariants - invariants[..., :1]
        variables[_DRIFT] = (("invariant", *dims), drift, {"long_name": "I(t) - I(t0)"})
        coordinates["invariant"] = [str(expression) for expression in monitored.invariants]
        attributes["invariant_drift_max"] = float(np.max(np.abs(drift)))
    return xr.Dataset(variables, coordinates, attributes)


def _provenance(request: Request, method: str) -> dict[str, Any]:
    """Where a result comes from, in plain numbers and strings that NetCDF can hold."""
    system = request.system
    tolerances = dict(zip(system.field.names, request.atol.tolist(), strict=True))
    return {
        "method": method,
        "rtol": request.rtol,
        "atol": json.dumps(tolerances),
        "source": system.field.source,
        "parameters": json.dumps(dict(system.parameters)),
        "versions": _versions(),
    }


def _expression(system: ODESystem, given: object, who: str) -> sp.Expr:
    if not isinstance(given, (sp.Expr, int, float)):
        raise TypeError(
            f"An {who} must be a SymPy expression, or have one as `.expression`; got {type(given).__name__}."
        )
    expression = sp.sympify(given)
    field = system.field
    declared = {*field.state, *field.parameters, *((field.time,) if field.time is not None else ())}
    foreign = sorted(symbol.name for symbol in expression.free_symbols - declared)
    if foreign:
        raise ValueError(
            f"The {who} {expression} uses {foreign}, which are not symbols of the system: states "
            f"{list(field.names)}, parameters {[p.name for p in field.parameters]}. Build it from those."
        )
    return expression


@lru_cache(maxsize=1)
def _versions() -> str:
    return json.dumps(
        {name: metadata.version(name) for name in ("odesys", "sympy", "numpy", "scipy", "jax", "diffrax")}
    )
