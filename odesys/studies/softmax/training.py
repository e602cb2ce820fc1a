"""The judge: gradient descent by autodiff of the definition, against the derived flows and maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sympy as sp

from odesys import clock
from odesys.check import Check
from odesys.comparison import check_order, compare
from odesys.integrators.contract import solve
from odesys.iteration import iterate
from odesys.simulation import descend
from odesys.studies.softmax.setting import CASES, Matrix
from odesys.system import MapSystem, ODESystem

__all__ = ["checks"]

RATES = np.array([0.04, 0.02, 0.01])
TIME = 8.0


def checks() -> list[Check]:
    """All checks of descent against flows and maps."""
    return [
        *_vector("two-minima", "normalized", [0.5, 0.2]),
        *_vector("closed-form", "rescaled", [-0.5]),
        *_matrix("normalized"),
        *_matrix("rescaled"),
        _map(),
    ]


def _vector(name: str, loss: str, start: list[float]) -> list[Check]:
    case, model = CASES[name], CASES[name].derived(loss)
    return _against_flow(f"{loss} loss", model.flow, case.judged(loss), np.array(start), model.loss)


def _matrix(loss: str) -> list[Check]:
    """Small weights: the rescaled loss grows like the square of an exponential of them."""
    model = Matrix().derived(loss)
    start = np.array([[0.5, -0.1], [-0.3, 0.2]]) if loss == "normalized" else np.full((2, 2), -0.2)
    return _against_flow(f"matrix, {loss} loss", model.flow, Matrix().judged(loss), start, model.loss)


def _against_flow(what: str, flow, judged, start: np.ndarray, loss: sp.Expr) -> list[Check]:
    names = dict(zip(flow.names, start.ravel().tolist(), strict=True))
    times = np.linspace(0.0, TIME, 401)
    theory = solve(ODESystem(flow), names, times, method="DOP853", rtol=1e-11, observables={"loss": loss})
    errors, last = [], None
    for rate in RATES:
        run = descend(judged, start, rate=rate, steps=round(0.95 * TIME / rate) + 1, every=1)
        (last,) = compare(
            theory, run, clock=clock.gradient_flow(rate), variables=["loss"], tolerance=0.02,
            reason="the step's error at eta = 0.01", source="the derived flow",
        )  # fmt: skip
        errors.append(last.measured)
    order = check_order(
        f"descent: distance from the flow is of order 1 in eta, {what}",
        RATES,
        errors,
        order=1,
        tolerance=0.1,
        reason="the next order, eta times the largest curvature",
        source="Euler's method is of order one",
    )
    return [replace(last, name=f"descent: loss, {what}"), order]


def _map() -> Check:
    """The derived map and descent by autodiff are one map: irregular orbits agree as long as rounding allows."""
    case, eta = CASES["two-minima"], sp.Symbol("eta", positive=True)
    system = MapSystem(case.derived().gradient_map(step=eta), {"eta": 0.7})
    orbit = iterate(system, {"x_1": 0.5, "x_2": 0.2}, steps=50)
    run = descend(case.judged(), np.array([0.5, 0.2]), rate=0.7, steps=51)
    found = np.stack([orbit[name].values for name in ("x_1", "x_2")], axis=1)
    return Check(
        "descent: the derived gradient map and autodiff take the same 50 steps",
        measured=float(np.abs(run["w"].values - found).max()),
        expected=0.0,
        tolerance=1e-12,
        source="one against the other, eta = 0.7",
        reason="rounding of 50 contracting steps",
    )
