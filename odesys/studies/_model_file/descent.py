"""The judge: gradient descent on the loss, by autodiff, against the derived flow or map."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from odesys import clock
from odesys.check import Check, control
from odesys.comparison import check_order
from odesys.integrators.contract import solve
from odesys.iteration import iterate
from odesys.lambdify import compile_field
from odesys.model_file import ModelFile
from odesys.studies._model_file.loss import jax_loss, weights

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["against_flow", "against_map"]

#: Steps of the coarsest descent at most, and how long its steps are relative to the fastest motion.
_STEPS, _COARSEST, _HALVINGS = 200, 0.05, 3


def against_flow(model: ModelFile) -> tuple[list[Check], Dataset]:
    """Descent departs from the flow in proportion to its step; and the finest run."""
    start = model.required("start", "Descent begins there")
    tau = float(model.at_numbers(model.time_constant))
    step, steps = _coarsest(model, start)
    times = step * np.arange(steps + 1)
    flow = solve(model.system, start, times, method=None, rtol=1e-11)
    rates = np.array([step / tau / 2**k for k in range(_HALVINGS)])

    def errors(loss: Callable) -> tuple[np.ndarray, Dataset]:
        from odesys.simulation import descend

        found = []
        for k, rate in enumerate(rates):
            run = descend(loss, weights(model, start), rate=rate, steps=steps * 2**k + 1, every=2**k)
            found.append(_largest(model, flow, run))
        return np.array(found), run

    def judge(measured: np.ndarray) -> Check:
        return check_order(
            "descent: gradient descent by autodiff departs from the flow with order 1 in its step",
            rates,
            measured,
            order=1,
            tolerance=0.1,
            reason=f"the next term of the expansion, steps of {_COARSEST:g} of the fastest time and less",
            source="Euler's method is of order one",
        )

    measured, run = errors(jax_loss(model))
    if not measured.all():
        # The start is a fixed point to the last digit: nothing moves, and there is no order.
        return [], run
    true = judge(measured)
    wrong, _ = errors(jax_loss(model, 1.01))
    fault = control(judge, wrong, name="a loss 1 % too large, seen by descent", true=true)
    ticking = clock.gradient_flow(rates[-1], tau) if tau != 1 else clock.gradient_flow(rates[-1])
    return [true, fault], run.assign_coords(time=("step", ticking.time(run["step"].values)))


def against_map(model: ModelFile) -> tuple[list[Check], Dataset]:
    """Descent takes the steps of the derived map."""
    from odesys.simulation import descend

    start = model.required("start", "Descent begins there")
    steps = min(model.run.steps or _STEPS, 50)
    rate = float(model.at_numbers(model.step))
    orbit = iterate(model.system, start, steps)
    run = descend(jax_loss(model), weights(model, start), rate=rate, steps=steps + 1)

    def judge(course: Dataset) -> Check:
        return Check(
            f"descent: {steps} steps of gradient descent by autodiff against the derived map",
            measured=_largest(model, orbit, course),
            expected=0.0,
            tolerance=1e-8,
            source="autodiff of the loss",
            reason="rounding, which irregular orbits let grow",
        )

    true = judge(run)
    wrong = descend(jax_loss(model), weights(model, start), rate=1.01 * rate, steps=steps + 1)
    return [true, control(judge, wrong, name="a step 1 % too long, seen by the map", true=true)], run


def _coarsest(model: ModelFile, start) -> tuple[float, int]:
    """The step in time of the coarsest descent, a part of the fastest motion of the flow, and how many of them."""
    end = model.required("end", "Say how long to integrate")
    times = np.linspace(0.0, end, 51)
    run = solve(model.system, start, times, rtol=1e-6)
    states = np.array([run[name].values for name in model.rule.names])
    slopes = compile_field(model.system).jacobian(0.0, states, model.system.args)
    fastest = np.linalg.norm(slopes, axis=(0, 1)).max()
    step = min(_COARSEST / fastest, end / _STEPS) if fastest > 0 else end / _STEPS
    return step, min(_STEPS, round(end / step))


def _largest(model: ModelFile, theory: Dataset, run: Dataset) -> float:
    """The largest difference over all weights and instants, relative to the size of the weights."""
    names = model.rule.names
    size = max(np.abs(theory[name].values).max() for name in names) or 1.0
    return float(max(np.abs(theory[name].values - run[name].values).max() for name in names) / size)
