"""Two integrators against each other, closed forms against an integrator, conserved quantities along it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from odesys.check import Check, control
from odesys.evaluation import DomainError, evaluate
from odesys.lambdify import compile_expressions, compile_field
from odesys.model_file import ModelFile
from odesys.model_file.claims import Verdict
from odesys.studies._model_file.courses import Courses, distance
from symbolic.closed_form import ClosedForm
from symbolic.field import VectorField
from symbolic.varieties.deadline import BudgetExceeded, Deadline, elsewhere

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["closed_forms", "conserved", "drifts", "integrators", "map_in_jax"]

#: Seconds to look for what the file does not claim.
BUDGET = 20.0


def integrators(model: ModelFile, runs: Courses) -> list[Check]:
    """SciPy against diffrax."""
    methods = [run.attrs["method"] for run in (runs.scipy, runs.diffrax)]

    def judge(run: Dataset) -> Check:
        return Check(
            f"flow: SciPy ({methods[0]}) against diffrax ({methods[1]}), error over the range{runs.upto}",
            measured=distance(runs.scipy, run, model.rule.names),
            expected=0.0,
            tolerance=runs.tolerance,
            source="two codes, one flow",
            reason=runs.reason,
        )

    true = judge(runs.diffrax)
    return [true, control(judge, runs.faulty, name=f"{runs.fault}, seen by the other integrator", true=true)]


def closed_forms(model: ModelFile, verdict: Verdict | None, runs: Courses) -> list[Check]:
    """The claimed solution, or of a scalar flow the one that is found, against SciPy."""
    if verdict is not None:
        law, origin = verdict.evidence, f"claimed in {model.path.name}"
        theory = _evaluated(law, model, runs) if isinstance(law, ClosedForm) else _as_claimed(model, runs)
    else:
        law, origin = _found(model), "found and proven by SymPy"
        theory = None if law is None else _evaluated(law, model, runs)
    if theory is None:
        return []
    upto, states = theory.sizes["time"], ", ".join(f"{x}(t)" for x in model.rule.names)

    def judge(run: Dataset) -> Check:
        return Check(
            f"closed-form: {states} against {runs.scipy.attrs['method']}, error over the range{runs.upto}",
            measured=distance(theory, run.isel(time=slice(upto)), model.rule.names),
            expected=0.0,
            tolerance=runs.tolerance,
            source=origin,
            reason=runs.reason,
        )

    true = judge(runs.scipy)
    return [true, control(judge, runs.faulty, name=f"{runs.fault}, seen by the closed form", true=true)]


def conserved(model: ModelFile) -> tuple[Mapping[str, sp.Expr], str]:
    """What is conserved by the file's claim or, without one, by what SymPy finds in a flow; and which of the two."""
    if model.conserved or not isinstance(model.rule, VectorField):
        return model.conserved, f"claimed in {model.path.name}"
    try:
        found = elsewhere("symbolic.discovery", "discover", (model.rule,), Deadline(BUDGET))
    except BudgetExceeded:
        return {}, ""
    return {str(one.expression): one.expression for one in found.integrals}, "found and proven by SymPy"


def drifts(
    model: ModelFile,
    quantities: Mapping[str, sp.Expr],
    origin: str,
    course: Dataset,
    tolerance: float,
    reason: str,
    mover: str,
) -> list[Check]:
    """Conserved quantities along a run, relative to the size of their terms."""
    checks = []
    for name, expression in quantities.items():

        def judge(quantity: sp.Expr, name: str = name) -> Check:
            values, size = _along(model, quantity, course)
            return Check(
                f"flow: drift of {name}, relative to its terms",
                measured=float(np.abs(values - values[0]).max() / size),
                expected=0.0,
                tolerance=tolerance,
                source=origin,
                reason=reason,
            )

        true = judge(expression)
        checks.append(true)
        moved = np.ptp(course[mover].values)
        if moved > 0:
            state = model.rule.state[model.rule.names.index(mover)]
            _, size = _along(model, expression, course)
            wrong = expression + sp.Float(size / (50 * moved)) * state
            fault = f"{name} plus 2 % of its size that move with {mover}, seen by its drift"
            checks.append(control(judge, wrong, name=fault, true=true))
    return checks


def map_in_jax(model: ModelFile, orbit: Dataset) -> list[Check]:
    """Each step of an orbit by NumPy, anew by JAX."""
    steps = orbit["step"].values[:-1].astype(float)
    states = np.array([orbit[name].values for name in model.rule.names])
    images = compile_field(model.system, backend="jax").rhs(steps, states[:, :-1], model.system.args)
    sizes = np.abs(states).max(axis=1, keepdims=True)
    sizes[sizes == 0] = 1.0

    def judge(factor: float) -> Check:
        return Check(
            "flow: each step by NumPy against JAX, relative to the range",
            measured=float((np.abs(factor * np.asarray(images) - states[:, 1:]) / sizes).max()),
            expected=0.0,
            tolerance=1e-12,
            source="two compilers, one map",
            reason="rounding of one step",
        )

    true = judge(1.0)
    if not states.any():
        return [true]
    return [true, control(judge, 1.01, name="a map 1 % too large, seen by the other compiler", true=true)]


def _evaluated(law: ClosedForm, model: ModelFile, runs: Courses) -> Dataset | None:
    """The closed form at the instants of the run that lie in its domain."""
    times, start = runs.times, model.start or {}
    numbers = {p.name: float(model.numbers[p.name]) for p in law.field.parameters}
    try:
        return evaluate(law, start, times, numbers)
    except DomainError as error:
        inside = times[times < error.time]
        return evaluate(law, start, inside, numbers) if inside.size > 1 else None


def _as_claimed(model: ModelFile, runs: Courses) -> Dataset:
    """A claim without proof, taken at its word."""
    import xarray as xr

    symbols = (model.clock, *model.starts.values(), *model.rule.parameters)
    start = [(model.start or {})[x.name] for x in model.starts]
    values = compile_expressions(tuple(model.solution.values()), symbols)(
        runs.times, *start, *model.system.args
    )
    variables = {x.name: ("time", row) for x, row in zip(model.solution, values, strict=True)}
    return xr.Dataset(variables, {"time": runs.times})


def _found(model: ModelFile) -> ClosedForm | None:
    """The time course of a scalar autonomous flow, if one is found in time."""
    if len(model.rule.state) != 1 or model.rule.time is not None:
        return None
    try:
        laws: Mapping[str, object] = elsewhere(
            "symbolic.discovery", "laws", ({"": model.rule},), Deadline(BUDGET)
        )
    except BudgetExceeded:
        return None
    return laws[""] if isinstance(laws[""], ClosedForm) else None


def _along(model: ModelFile, quantity: sp.Expr, course: Dataset) -> tuple[np.ndarray, float]:
    """A quantity along a run, and the size of its terms, whose rounding and errors it gathers."""
    rule, dim = model.rule, "time" if "time" in course.dims else "step"
    clock = rule.time if rule.time is not None else sp.Dummy("t")
    terms = sp.Add.make_args(sp.expand(quantity))
    function = compile_expressions((quantity, *terms), (clock, *rule.state, *rule.parameters))
    values, *parts = function(course[dim].values, *(course[x].values for x in rule.names), *model.system.args)
    return values, float(np.sum(np.abs(parts), axis=0).max()) or 1.0
