"""From saddle to saddle: random small starts of the population flow, against what theory says before it is run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from odesys.check import Check, control
from odesys.comparison import check_order
from odesys.integrators.contract import solve
from odesys.studies.separate.cascade import drop_times
from odesys.studies.separate.flow import crossing, start_of, system
from odesys.studies.separate.setting import CONTEXT, DIM, EIGENVALUES, HEADS, PAPER, PLATEAUS
from symbolic.linear_attention import separate

if TYPE_CHECKING:
    from xarray import Dataset

    from symbolic.linear_attention.separate import SeparateAttention

__all__ = ["SIZES", "Climb", "Findings", "checks"]

#: Standard deviations of the starts, all entries alike, and how many of each.
SIZES = np.array([0.1, 0.03, 0.01])
SEEDS = {"quick": 3, "full": 6}
#: Middles of the four drops from the first start of size 0.1, by another implementation of the flow, good to 1e-3 tau.
INDEPENDENT = (60.89325798797979, 114.46681108289958, 261.9332503726635, 850.3406502397354)


@dataclass(frozen=True, eq=False)
class Climb:
    """One run of all 45 weights down the staircase, D = 4, H = 5, R = 1, from normal weights of one size."""

    size: float
    seed: int

    @cached_property
    def start(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """v (H,), k and q (H, 1, D)."""
        drawn = self.size * np.random.default_rng(1000 + self.seed).standard_normal(HEADS * (1 + 2 * DIM))
        v, k, q = np.split(drawn, [HEADS, HEADS * (1 + DIM)])
        return v, k.reshape(HEADS, 1, DIM), q.reshape(HEADS, 1, DIM)

    @cached_property
    def predicted(self) -> np.ndarray:
        """The middles of the drops by the escape-time integral and the cascade, from the start alone."""
        return np.array([drop.time for drop in drop_times(*self.start, np.array(EIGENVALUES), CONTEXT)])

    @cached_property
    def run(self) -> Dataset:
        """The flow until well after the last drop."""
        times = np.linspace(0.0, 1.5 * self.predicted[-1] + 300.0, 1201)
        return self._solve(start_of(self._model, *self.start), times)

    @cached_property
    def drops(self) -> np.ndarray:
        """When the loss passes the middle between two plateaus, integrated once more in small steps around it."""
        loss, found = self.run["loss"].values, []
        for level in ((a + b) / 2 for a, b in pairwise(PLATEAUS)):
            after = int(np.argmax(loss < level))
            near = self.run.isel(time=[after - 1, after])
            start = {name: float(near[name][0]) for name in self._model.flow.names}
            finer = self._solve(start, np.linspace(*near["time"].values, 61))
            found.append(crossing(finer["time"].values, finer["loss"].values, level))
        return np.array(found)

    @property
    def _model(self) -> SeparateAttention:
        return separate.model(dim=DIM, heads=HEADS)

    def _solve(self, start: dict[str, float], times: np.ndarray) -> Dataset:
        model = self._model
        observables = {"loss": model.loss} | {f"M_{d}_{d}": model.M[d - 1, d - 1] for d in range(1, DIM + 1)}
        return solve(system(model), start, times, method="DOP853", rtol=1e-10, observables=observables)

    @cached_property
    def plateau_errors(self) -> np.ndarray:
        """|loss - L(M_m)| where the flow is slowest between two drops, m = 1 ... D - 1."""
        times, loss = self.run["time"].values, self.run["loss"].values
        slope, found = np.abs(np.gradient(loss, times)), []
        for m, (first, last) in enumerate(pairwise(self.drops), 1):
            inside = np.flatnonzero((times > first) & (times < last))
            found.append(abs(loss[inside[slope[inside].argmin()]] - PLATEAUS[m]))
        return np.array(found)

    @property
    def errors(self) -> np.ndarray:
        """Relative errors of the predicted drops."""
        return np.abs(self.predicted / self.drops - 1)


@dataclass(frozen=True, eq=False)
class Findings:
    """The checks, the climbs by size, and errors by size: name -> (sizes, errors, order)."""

    checks: list[Check]
    climbs: dict[float, list[Climb]]
    errors: dict[str, tuple[np.ndarray, np.ndarray, float]]


def checks(scale: str) -> Findings:
    """All checks of random starts."""
    climbs = {size: [Climb(size, seed) for seed in range(SEEDS[scale])] for size in SIZES}

    def over(quantity) -> np.ndarray:
        return np.array([quantity(climbs[size]) for size in SIZES])

    first = over(lambda runs: max(run.errors[0] for run in runs))
    later = over(lambda runs: np.median([run.errors[1:] for run in runs]))
    plateaus = over(lambda runs: max(run.plateau_errors.max() for run in runs))
    reference = climbs[SIZES[0]][0]
    middle = climbs[SIZES[-1]]
    judge = partial(_first_drop, middle)
    true = judge([run.predicted[0] for run in middle])
    naive = [1 / (EIGENVALUES[0] ** 2 * np.abs(run.start[0]).max()) for run in middle]
    found = [
        Check(
            "flow: largest relative error of four drop times, eps = 0.1",
            measured=float(np.abs(reference.drops / INDEPENDENT - 1).max()),
            expected=0.0,
            tolerance=2e-5,
            source="another implementation of the flow",
            reason="its times are interpolated, good to 1e-3 of 61 tau",
        ),
        true,
        control(judge, naive, name="t = tau/(lambda_1^2 max |v_i(0)|)", true=true),
        _order("first drop, escape-time integral: largest relative error", first, 2, 0.5),
        _order("later drops, cascade: median relative error", later, 1, 0.5),
        _order("loss on the plateaus: largest error", plateaus, 2, 0.75),
    ]
    errors = {
        "first drop, relative": (SIZES, first, 2.0),
        "later drops, relative, median": (SIZES, later, 1.0),
        "loss on the plateaus": (SIZES, plateaus, 2.0),
    }
    return Findings(found, climbs, errors)


def _first_drop(climbs: list[Climb], predicted: list[float]) -> Check:
    errors = [abs(time / climb.drops[0] - 1) for time, climb in zip(predicted, climbs, strict=True)]
    return Check(
        "flow: median relative error of the first drop's time, eps = 0.01",
        measured=float(np.median(errors)),
        expected=0.0,
        tolerance=1e-4,
        source=f"escape-time integral of the cubic flow, derived here; largest of {len(errors)}: {max(errors):.2g}",
        reason="terms of relative order eps^2; ten times as much where another head escapes almost as early",
    )


def _order(what: str, errors: np.ndarray, order: float, tolerance: float) -> Check:
    return check_order(
        f"flow: {what} is of order {order} in eps",
        SIZES,
        errors,
        order=order,
        tolerance=tolerance,
        reason="one decade of sizes and a few starts: an order to a factor of three in the error",
        source=f"small starts; {PAPER}, section 4",
    )
