"""Observables whose flow closes and has a time course that SymPy finds: that course against the integrator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from odesys.check import Check, control
from odesys.evaluation import DomainError, evaluate
from odesys.lambdify import compile_expressions
from odesys.model_file import ModelFile
from odesys.model_file.claims import is_conserved
from odesys.studies._model_file.courses import Courses, distance
from symbolic.closed_form import ClosedForm
from symbolic.discovery import discover, laws
from symbolic.varieties.deadline import BudgetExceeded, Deadline, elsewhere

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["checks"]

#: Seconds to look for them.
BUDGET = 30.0

Found = Mapping[str, tuple[ClosedForm, Mapping[str, sp.Expr]]]


def checks(model: ModelFile, runs: Courses) -> list[Check]:
    """A check of each time course that is found in time, with a planted fault."""
    if not model.observables or model.rule.time is not None:
        return []
    try:
        found: Found = elsewhere(__name__, "_searched", (model,), Deadline(BUDGET))
    except BudgetExceeded:
        return []
    return [check for name, (law, values) in found.items() for check in _held(model, runs, name, law, values)]


def _searched(model: ModelFile) -> Found:
    """Time courses of observables, each with the conserved quantities whose values it speaks of."""
    verdicts = {name: is_conserved(model.rule, expression) for name, expression in model.conserved.items()}
    integrals = {name: verdict.evidence for name, verdict in verdicts.items() if verdict.evidence is not None}
    seen = discover(model.rule, model.observables, integrals)
    values = {name: integral.expression for name, integral in integrals.items()}
    values = values or {f"C_{i}": one.expression for i, one in enumerate(seen.integrals, 1)}
    scalar = {name: r.field for name, r in seen.reductions.items() if name in model.observables}
    return {
        name: (law, {p.name: values[p.name] for p in law.field.parameters if p.name in values})
        for name, law in laws(scalar).items()
        if isinstance(law, ClosedForm)
    }


def _held(
    model: ModelFile, runs: Courses, name: str, law: ClosedForm, values: Mapping[str, sp.Expr]
) -> list[Check]:
    course, faulty = (
        _along(model, {name: model.observables[name], **values}, run) for run in (runs.scipy, runs.faulty)
    )
    begin = {key: float(course[key][0]) for key in course}
    numbers = {p.name: begin.get(p.name, float(model.numbers.get(p.name, 0))) for p in law.field.parameters}
    times = runs.times
    try:
        theory = evaluate(law, {name: begin[name]}, times, numbers)
    except DomainError as error:
        times = times[times < error.time]
        if times.size < 2:
            return []
        theory = evaluate(law, {name: begin[name]}, times, numbers)

    def judge(run: Dataset) -> Check:
        return Check(
            f"closed-form: {name}(t) against {runs.scipy.attrs['method']}, error over the range{runs.upto}",
            measured=distance(theory, run.isel(time=slice(times.size)), [name]),
            expected=0.0,
            tolerance=10 * runs.tolerance,
            source="found and proven by SymPy",
            reason=f"10 times, for powers of the states, {runs.reason}",
        )

    true = judge(course)
    return [true, control(judge, faulty, name=f"{runs.fault}, seen by the closed form of {name}", true=true)]


def _along(model: ModelFile, expressions: Mapping[str, sp.Expr], run: Dataset) -> Dataset:
    """Expressions in states and parameters along a run."""
    import xarray as xr

    rule = model.rule
    function = compile_expressions(tuple(expressions.values()), (*rule.state, *rule.parameters))
    values = function(*(run[x].values for x in rule.names), *model.system.args)
    variables = {name: ("time", np.array(each)) for name, each in zip(expressions, values, strict=True)}
    return xr.Dataset(variables, {"time": run["time"].values})
