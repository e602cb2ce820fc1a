"""`odesys solve`: a model of the user's own, integrated or iterated from its start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from odesys.commands.faults import BrokenRun, UsageFault
from odesys.commands.files import check_free, written
from odesys.commands.own_models import is_file, loaded
from odesys.model_file import ModelFile, ModelFileError, Run
from odesys.system import ODESystem

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["course", "solve"]


def solve(path: str, changes: Mapping[str, Any], target: Path | None, force: bool) -> str:
    """Run a model file and write its course; returns what to print, a JSON object on one line.

    Args:
        path: the file.
        changes: entries of `odesys.model_file.Run` that take the place of the file's; None changes nothing.
        target, force: where the course goes as NetCDF, and whether a file there may be overwritten.
    Raises:
        UsageFault: the file is faulty or lacks a start or an end, or the target is there already.
        BrokenRun: the run did not reach its end; the message says when it stopped, and why.
    """
    if not is_file(path):
        raise UsageFault(f"`odesys solve` runs a model of your own, FILE.toml; got {path!r}.")
    if target is not None:
        check_free(target, force)
    model = loaded(path)
    _check_kind(model, changes)
    model = replace(model, run=_changed(model.run, changes))
    try:
        run = course(model)
    except (ModelFileError, ValueError) as error:
        raise UsageFault(str(error)) from error
    if target is not None:
        with written(target) as fresh:
            run.to_netcdf(fresh, engine="h5netcdf")
    return json.dumps(_summary(model, run, target), allow_nan=False)


def course(model: ModelFile) -> Dataset:
    """The run that a model file asks for, with its observables and the drift of what it claims to conserve.

    Raises:
        ModelFileError: it has no start, or no end.
        BrokenRun: the integration did not reach its end, or the map leaves the finite numbers.
    """
    start = model.required("start", "A run begins there")
    if isinstance(model.system, ODESystem):
        from odesys.integrators.contract import IntegrationError
        from odesys.integrators.contract import solve as integrate

        end = model.required("end", "Say how long to integrate, here or with --end")
        times = np.linspace(0.0, end, model.run.points)
        monitored = {"invariants": tuple(model.conserved.values()), "observables": model.observables}
        try:
            run = integrate(model.system, start, times, model.run.method, model.run.rtol, **monitored)
        except IntegrationError as error:
            raise BrokenRun(
                f"{model.path}: the integration stopped at time {error.time:.12g} of {end:g}: {error.reason}."
            ) from error
    else:
        from odesys.iteration import iterate

        try:
            run = iterate(model.system, start, model.required("steps", "Say how many, here or with --steps"))
        except OverflowError as error:
            raise BrokenRun(str(error)) from error
        run = run.assign(_along(model, run))
    if model.conserved:
        run = run.assign_coords(invariant=list(model.conserved))
    return run.assign_attrs(model=model.name, start=json.dumps(dict(start)))


def _along(model: ModelFile, run: Dataset) -> dict[str, Any]:
    """Observables and drifts along the orbit of a map."""
    from odesys.lambdify import compile_expressions

    rule = model.rule
    named = {**model.observables, **model.conserved}
    clock = rule.time if rule.time is not None else sp.Dummy("t")
    function = compile_expressions(tuple(named.values()), (clock, *rule.state, *rule.parameters))
    values = function(run["step"].values, *(run[x].values for x in rule.names), *model.system.args)
    found = dict(zip(named, values, strict=True))
    variables: dict[str, Any] = {name: ("step", found[name]) for name in model.observables}
    if model.conserved:
        drifts = np.array([found[name] - found[name][0] for name in model.conserved])
        variables["invariant_drift"] = (("invariant", "step"), drifts, {"long_name": "I(k) - I(0)"})
    return variables


def _check_kind(model: ModelFile, changes: Mapping[str, Any]) -> None:
    """Refuse options of flows for maps, and of maps for flows."""
    is_flow = isinstance(model.system, ODESystem)
    for name, value in changes.items():
        if value is not None and (name == "steps") == is_flow:
            raise UsageFault(
                f"--{name} is of {'maps' if is_flow else 'flows'}; {model.path} holds a {'flow' if is_flow else 'map'}."
            )


def _changed(run: Run, changes: Mapping[str, Any]) -> Run:
    given = {name: value for name, value in changes.items() if value is not None}
    for name in ("end", "rtol"):
        if name in given and not 0 < given[name] < float("inf"):
            raise UsageFault(f"--{name} must be positive and finite; got {given[name]}.")
    return replace(run, **given)


def _summary(model: ModelFile, run: Dataset, target: Path | None) -> dict[str, Any]:
    dim = "time" if "time" in run.dims else "step"
    last = run.isel({dim: -1})
    found: dict[str, Any] = {"model": model.name}
    if dim == "time":
        found |= {"method": run.attrs["method"], "rtol": run.attrs["rtol"], "steps": int(run.attrs["steps"])}
    found[dim] = run[dim].values[-1].item()
    found["end"] = {name: float(last[name]) for name in model.rule.names}
    if model.observables:
        found["observables"] = {name: float(last[name]) for name in model.observables}
    if model.conserved:
        drifts = np.abs(run["invariant_drift"].values).max(axis=-1)
        found["drift"] = dict(zip(model.conserved, drifts.tolist(), strict=True))
    return {**found, "file": None if target is None else str(target)}
