"""Descent on the derived population loss: no sample, so theory must hold to the order of the step.

The SymPy loss is compiled to JAX and handed to `descend`, which differentiates it anew; the run uses nothing
of the derived flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from odesys import clock
from odesys.check import Check, control
from odesys.comparison import check_order, compare
from odesys.lambdify import compile_expressions
from odesys.simulation import descend
from odesys.simulation.observables import effective_start
from odesys.studies.merged.flow import Flow, reduced_course
from odesys.studies.merged.setting import PAPER, numbers

if TYPE_CHECKING:
    from xarray import Dataset

    from odesys.clock import Clock
    from symbolic.linear_attention.merged import MergedAttention

__all__ = ["checks"]

#: tau dW/dt = -(1/2) dL/dW is the gradient flow of L with this time constant.
TIME_CONSTANT = 2.0
WHITE_2, UNEQUAL_2 = (1.0, 1.0), (2 / 3, 1 / 3)


@dataclass(frozen=True, eq=False)
class Descent:
    """Descent on the population loss of a derived model at given eigenvalues."""

    model: MergedAttention
    eigenvalues: tuple[float, ...]

    @cached_property
    def loss(self):
        """The derived loss as a JAX function of the vector of all weights."""
        known = numbers(self.eigenvalues)
        constants = [p for p in self.model.parameters if p in self.model.loss.free_symbols]
        compiled = compile_expressions((self.model.loss,), (*self.model.weights, *constants), backend="jax")
        values = [known[p.name] for p in constants]
        return lambda w: compiled(*w, *values)[0]

    def run(self, weights: np.ndarray, rate: float, time: float) -> Dataset:
        """Loss, M and sigma = tr(M)/D until the given theory time, some two hundred steps recorded."""
        every = max(1, round(time / (TIME_CONSTANT * rate) / 200))
        steps = every * int(np.ceil(time / (TIME_CONSTANT * rate) / every)) + 1
        run = descend(self.loss, weights, rate=rate, steps=steps, every=every)
        H, D = self.model.heads, self.model.dim
        v, U = run["w"].values[:, :H], run["w"].values[:, H:].reshape(-1, H, D, D)
        M = np.einsum("kh,khab->kab", v, U)
        courses = {f"M_{d + 1}_{d + 1}": ("step", M[:, d, d]) for d in range(D)}
        return run.assign(courses).assign(sigma=("step", np.einsum("kaa->k", M) / D))


def checks(small: Flow) -> list[Check]:
    """All checks of population descent, on a flow of few weights."""
    return [*_white(small), *_general(small)]


def _white(small: Flow) -> list[Check]:
    """A balanced aligned white start, on which Eq. 10 is exact: all that is left is the step's error."""
    descent, w = Descent(small.model, WHITE_2), 0.1
    r = np.ones(small.model.heads) / np.sqrt(small.model.heads)
    start = np.concatenate([r * w, (r[:, None, None] * w / np.sqrt(2) * np.eye(2)).ravel()])
    rates, times = np.array([4e-3, 2e-3, 1e-3]), np.linspace(0.0, 6.0, 601)
    law = small.law("white", {"sigma": w**2 / np.sqrt(2)}, times, eigenvalues=WHITE_2)
    runs = [descent.run(start, rate, 5.5) for rate in rates]

    def judge(step: Clock) -> Check:
        (check,) = compare(
            law, runs[-1], clock=step, variables=["sigma"], tolerance=0.01, source=f"{PAPER}, Eq. 10"
        )
        return check

    true = judge(clock.gradient_flow(rates[-1], TIME_CONSTANT))
    wrong = clock.gradient_flow(rates[-1])
    errors = [
        compare(law, run, clock=clock.gradient_flow(rate, TIME_CONSTANT), variables=["sigma"])[0].measured
        for rate, run in zip(rates, runs, strict=True)
    ]
    return [
        true,
        control(judge, wrong, name="clock of the flow without the 1/2 before dL/dW", true=true),
        check_order(
            "descent: distance from Eq. 10 is of order 1 in the learning rate",
            rates,
            errors,
            order=1,
            tolerance=0.05,
            reason="the next order, a few learning rates 4e-3 times the growth rate 3",
            source="Euler's method is of order one",
        ),
    ]


def _general(small: Flow) -> list[Check]:
    """A random small start with unequal eigenvalues against the aligned reduction: loss and weights."""
    spectrum, rate = np.array(UNEQUAL_2), 1e-3
    growth = np.linalg.norm(spectrum**2)
    weights = 1e-4 * small.direction
    s = effective_start(*small.blocks(weights), spectrum)
    time = np.log(1e4) / growth + 20.0
    theory = reduced_course(
        small, s, s * spectrum**2 / growth, np.linspace(0.0, time + 1, 1001), eigenvalues=UNEQUAL_2
    )
    run = Descent(small.model, UNEQUAL_2).run(weights, rate, time)
    return compare(
        theory,
        run,
        clock=clock.gradient_flow(rate, TIME_CONSTANT),
        variables=["loss", "M_1_1", "M_2_2"],
        tolerance=0.01,
        reason="learning rate 1e-3 over some 14 e-folds of growth, and eps = 1e-4",
        source=f"{PAPER}, section 3, aligned reduction",
    )
