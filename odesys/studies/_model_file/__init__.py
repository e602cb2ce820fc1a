"""A study made from a model file: the same treatment for a model that nobody here has seen.

Reading order: `claims` (SymPy proves what the file claims), `courses` and `flow` (integrators and closed forms),
`observables`, `equilibria` (fixed points), `descent` (the judge, for losses), `pictures`. What does not apply to a
model is left out.

It has no name in the registry of studies, since it runs on a file: `odesys check FILE.toml`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from odesys.model_file import ModelFile
from odesys.studies import Announce, StudyResult
from symbolic.field import VectorField

if TYPE_CHECKING:
    from xarray import Dataset

    from odesys.check import Check
    from odesys.model_file.claims import Verdict

__all__ = ["run"]


def run(model: ModelFile, announce: Announce) -> StudyResult:
    """All checks, figures and data of a model file; nothing in them is random.

    Raises:
        ModelFileError: it has no start, or does not say how long to run.
        IntegrationError, DescentError, OverflowError: a run does not reach its end.
    """
    from odesys.studies._model_file import claims, descent, equilibria, pictures

    name = _file_name(model)
    announce("proving the claims")
    checks, verdict = claims.checks(model)
    is_flow = isinstance(model.rule, VectorField)
    moving, course, data = _flow(model, verdict, announce) if is_flow else _map(model, announce)
    checks += moving
    announce("looking for fixed points, and following their neighbours")
    checks += equilibria.checks(model)
    if model.loss is not None:
        announce("descending the loss")
        judged, data["descent"] = descent.against_flow(model) if is_flow else descent.against_map(model)
        checks += judged
    announce("drawing")
    drawn = (pictures.course(model, name, course), pictures.plane(model, name, course))
    return StudyResult(
        [replace(check, study=model.path.name) for check in checks],
        [picture for picture in drawn if picture is not None],
        {f"{name}-{kind}": run for kind, run in data.items()},
    )


def _flow(model: ModelFile, verdict: Verdict | None, announce: Announce) -> tuple[list[Check], Dataset, dict]:
    """What holds along the flow; its course, and the data by kind."""
    from odesys.studies._model_file import courses, flow, observables

    announce("integrating with SciPy and diffrax")
    runs = courses.courses(model)
    checks = flow.integrators(model, runs)
    announce("looking for time courses")
    checks += [*flow.closed_forms(model, verdict, runs), *observables.checks(model, runs)]
    quantities, origin = flow.conserved(model)
    tolerance, reason = 10 * runs.tolerance, f"10 times, for powers of the states, {runs.reason}"
    checks += flow.drifts(model, quantities, origin, runs.scipy, tolerance, reason, runs.mover)
    data = {method: run for run in (runs.whole, runs.diffrax) for method in [run.attrs["method"]]}
    return checks, runs.whole, data


def _map(model: ModelFile, announce: Announce) -> tuple[list[Check], Dataset, dict]:
    """What holds along the orbit of a map; the orbit, and the data by kind."""
    from odesys.iteration import iterate
    from odesys.studies._model_file import flow

    announce("iterating")
    start = model.required("start", "The check iterates from there")
    orbit = iterate(model.system, start, model.required("steps", "Say how often to apply the map"))
    steps = orbit.sizes["step"] - 1
    mover = max(
        model.rule.names, key=lambda x: np.ptp(orbit[x].values) / (np.abs(orbit[x].values).max() or 1.0)
    )
    quantities, origin = flow.conserved(model)
    reason = f"rounding of {steps} steps, a thousand ulps each"
    drifts = flow.drifts(model, quantities, origin, orbit, 2e-13 * steps, reason, mover)
    return [*flow.map_in_jax(model, orbit), *drifts], orbit, {"orbit": orbit}


def _file_name(model: ModelFile) -> str:
    """The stem of the file, as a name of figures and data."""
    return f"model-{re.sub('[^A-Za-z0-9._-]', '-', model.path.stem)}"
