"""Flows against independent trajectories, closed forms, and the rate of Euler's identity."""

from __future__ import annotations

import numpy as np
import sympy as sp

from odesys.check import Check
from odesys.evaluation import evaluate
from odesys.integrators.contract import solve
from odesys.studies.softmax.setting import CASES, FIFTY_DIGITS, Case, Matrix
from odesys.system import ODESystem

__all__ = ["checks"]

#: Trajectories by an independent 50-digit integration: case, loss, start, times, states.
TRAJECTORIES = (
    ("two-rows", "normalized", (0.0,), (1, 5, 20, 100),
     ((0.1173767733492998,), (0.459237660806195,), (0.9281914044648381,), (1.098067246958084,))),
    ("three-points", "normalized", (0.3,), (1, 10, 50),
     ((0.2813247281141153,), (0.143423818182432,), (0.1330000698819626,))),
    ("three-points", "normalized", (0.5,), (1, 10, 50, 200),
     ((0.5183741955710718,), (0.7978987655119851,), (1.466668016278611,), (1.591926059740062,))),
    ("two-minima", "normalized", (0.5, 0.2), (1, 10, 50),
     ((0.4803422282620746, 0.1835142582862778), (-0.004060434378524099, -0.1360812745802173),
      (-0.03315064183667591, -0.1013652201093692))),
    ("closed-form", "rescaled", (-0.5,), (1, 10, 50),
     ((-0.4838200052850279,), (-0.2420005811631606,), (-2.350460181958058e-9,))),
    ("closed-form", "rescaled", (-1.0,), (1, 10, 100, 1000),
     ((-1.011388083179579,), (-1.119801417484313,), (-1.97139068526471,), (-3.343383439096044,))),
)  # fmt: skip


def checks() -> list[Check]:
    """All checks of flows."""
    return [_trajectories("DOP853"), _trajectories("Dopri8"), *_closed_forms(), _decay(), _first_column()]


def _run(case: Case, loss: str, start: tuple[float, ...], times, method: str, rtol: float = 1e-12):
    model = case.derived(loss)
    return solve(
        ODESystem(model.flow),
        dict(zip(model.flow.names, start, strict=True)),
        times,
        method=method,
        rtol=rtol,
    )


def _trajectories(method: str) -> Check:
    gaps = []
    for name, loss, start, times, states in TRAJECTORIES:
        run = _run(CASES[name], loss, start, [0.0, *map(float, times)], method)
        found = np.stack([run[x].values[1:] for x in CASES[name].derived(loss).flow.names], axis=1)
        gaps.append(np.abs(found - np.array(states)).max())
    return Check(
        f"flow: {len(TRAJECTORIES)} trajectories, {method}",
        measured=float(max(gaps)),
        expected=0.0,
        tolerance=1e-10,
        source=FIFTY_DIGITS,
        reason="100 times the rtol 1e-12 of the integration",
    )


def _closed_forms() -> list[Check]:
    """w = exp(x) obeys a rational equation with a closed time course: both losses of the data A = (1, 2)."""
    found = []
    for loss, start in (("normalized", -0.5), ("rescaled", -0.5)):
        model, times = CASES["closed-form"].derived(loss), np.linspace(0.0, 20.0, 41)
        law = model.closed_forms["exponential"]
        course = evaluate(law, {"w": float(np.exp(start))}, times)["w"].values
        run = _run(CASES["closed-form"], loss, (start,), times, "DOP853")
        found.append(
            Check(
                f"closed-form: {loss} loss, w = exp(x) against the flow of x",
                measured=float(np.abs(np.log(course) - run["x_1"].values).max()),
                expected=0.0,
                tolerance=1e-10,
                source="derived here: one exponential makes the flow rational",
                reason="100 times the rtol 1e-12 of the integration",
            )
        )
    return found


def _decay() -> Check:
    """Where A v = 1 the rescaled loss falls below 1/(1/Lr(0) + 4 t/|v|^2), and can go to 0 without f -> b."""
    case = Case(((1, 0), (1, 2), (1, -1)), (sp.Rational(1, 2), sp.Rational(1, 4), sp.Rational(1, 4)))
    model, times = case.derived("rescaled"), np.linspace(0.0, 50.0, 101)
    run = solve(
        ODESystem(model.flow), {"x_1": 0.2, "x_2": -0.4}, times, method="DOP853", rtol=1e-11,
        observables={"loss": model.loss},
    )  # fmt: skip
    loss, t = run["loss"].values, sp.Symbol("t")
    bound = np.array([float(model.decay(sp.Float(loss[0]), t).subs(t, time)) for time in times[1:]])
    return Check(
        "flow: the rescaled loss over its bound 1/(1/Lr(0) + 4 t/|v|^2)",
        measured=float((loss[1:] / bound).max()),
        expected=0.5,
        tolerance=0.5,
        source="Euler's identity and Cauchy-Schwarz, derived here",
        reason="exact: the ratio lies between 0 and 1",
    )


def _first_column() -> Check:
    """The matrix flow conserves X e_1, since A2 e_1 = 1."""
    model = Matrix().derived()
    start = dict(zip(model.flow.names, (0.5, -0.1, -1 / 3, 0.2), strict=True))
    run = solve(ODESystem(model.flow), start, [0.0, 1.0, 10.0, 50.0], method="DOP853", rtol=1e-12)
    moved = [np.abs(run[str(x)].values - start[str(x)]).max() for x in model.X.col(0)]
    return Check(
        "flow: the matrix flow keeps X e_1 where A2 e_1 = 1",
        measured=float(max(moved)),
        expected=0.0,
        tolerance=1e-14,
        source="derived here",
        reason="rounding: the rates vanish identically",
    )
