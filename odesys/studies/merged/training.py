"""The judge: gradient descent on the real network, with all its weights, on finite data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from odesys import clock
from odesys.check import Check, control
from odesys.simulation import descend, networks, tasks
from odesys.simulation.features import cubic_features
from odesys.simulation.statistics import estimate
from odesys.studies.merged.setting import CONTEXT, DIM, EIGENVALUES, HEADS, OPTIMAL_LOSS, PAPER

if TYPE_CHECKING:
    from xarray import Dataset

    from odesys.clock import Clock

__all__ = ["RATE", "Training", "checks", "moment_scores", "same_curve"]

#: Fig. 1: learning rate, steps and standard deviation of the initial weights, in the authors' normalisation.
RATE, STEPS, INIT = 1e-3, 6001, 1e-6
#: Free coefficients of the full network's prediction, (D+1)(D+2)/2 D: what training can fit to the sample.
FEATURES = (DIM + 1) * (DIM + 2) // 2 * DIM


@dataclass(frozen=True, eq=False)
class Training:
    """One run at the paper's settings on P sequences, the covariance turned at random as the authors do."""

    sequences: int
    seed: int

    @cached_property
    def task(self) -> tasks.LinearRegression:
        return tasks.linear_regression(
            dim=DIM,
            context=CONTEXT,
            eigenvalues=EIGENVALUES,
            sequences=self.sequences,
            seed=self.seed,
            rotate=True,
        )

    @cached_property
    def run(self) -> Dataset:
        """The full network, all blocks of its weights free."""
        return self._descend(networks.MergedAttention(HEADS), "full")

    @cached_property
    def restricted(self) -> Dataset:
        """The same start with the blocks that theory sets to zero held there."""
        return self._descend(networks.MergedAttention(HEADS), "restricted")

    @cached_property
    def cubic(self) -> Dataset:
        """The two-layer linear network on the cubic features from the same start."""
        return self._descend(networks.CubicFeatureNetwork(HEADS), "full")

    @property
    def clock(self) -> Clock:
        return clock.merged(self.task, RATE)

    def _descend(self, network, gradient) -> Dataset:
        return descend(
            network, self.task, init=INIT, rate=RATE, steps=STEPS, seed=self.seed, gradient=gradient, every=10
        )

    def loss_of(self, M: np.ndarray):
        """Mean and standard error of the loss of beta^T M x_q on this run's data, M in the eigenbasis."""
        turned = (self.task.basis @ M @ self.task.basis.T).reshape(-1)
        return estimate(self.task, lambda prompts, labels: (labels - cubic_features(prompts) @ turned) ** 2)


def checks(training: Training, optimum: np.ndarray, theory: Dataset) -> list[Check]:
    """All checks of a run against the theory: where it ends, when it drops, and what it equals.

    Args:
        training: the run to judge.
        optimum: M* of the theory, shape (D, D), in the eigenbasis.
        theory: the loss of the reduced flow from the run's own start, dim "time".
    """
    judged = partial(drop_time, training, theory)
    drop = judged(training.clock)
    slow = clock.Clock(training.clock.step_time / 2, description="without the factor 2 of a squared loss")
    short = clock.merged(training.task, RATE, "mean")
    twin = "descent: MLP on cubic features trains as attention does"
    return [
        *_end(training, optimum),
        drop,
        control(judged, slow, name="clock without the factor 2 of a squared loss", true=drop),
        control(judged, short, name="clock without the authors' factor N", true=drop),
        same_curve(twin, training.restricted, training.cubic, 1e-10),
        _statistics(training.seed),
    ]


def _end(training: Training, optimum: np.ndarray) -> list[Check]:
    final, theory = float(training.run["loss"][-1]), training.loss_of(optimum)
    size = f"P = {training.sequences}"
    return [
        Check(
            f"descent: final loss, {size}",
            measured=final,
            expected=OPTIMAL_LOSS,
            tolerance=4 * float(theory.standard_error),
            source=f"{PAPER}, L* of Fig. 1",
            reason=f"4 standard errors of a mean over {training.sequences} sequences",
        ),
        Check(
            f"descent: final loss below that of M* on the same data, {size}",
            measured=float(theory.mean) - final,
            expected=FEATURES / training.sequences * OPTIMAL_LOSS,
            tolerance=2 * FEATURES / training.sequences * OPTIMAL_LOSS,
            source="least squares: F free coefficients gain F/P of the residual",
            reason="heavy tails change the gain by a factor of order one",
        ),
    ]


def drop_time(training: Training, theory: Dataset, judged: Clock) -> Check:
    """When the loss is half way between its start and L*, against the reduced flow's time.

    The growth rate at the origin is |E[y_q z]|: the sampled one differs by its standard error, and the time
    of the drop by the same fraction.
    """
    gradient = estimate(training.task, lambda prompts, labels: labels[:, None] * cubic_features(prompts))
    spread = np.linalg.norm(gradient.standard_error) / np.linalg.norm(gradient.mean)
    half = (1 + OPTIMAL_LOSS) / 2
    expected = crossing(theory["time"].values, theory["loss"].values, half)
    measured = crossing(judged.time(training.run["step"].values), training.run["loss"].values, half)
    return Check(
        f"descent: time of the drop, P = {training.sequences}",
        measured=measured,
        expected=expected,
        tolerance=4 * spread * expected,
        source=f"reduced flow from the run's own start; {PAPER}, section 3",
        reason="4 relative standard errors of the growth rate |E[y_q z]|",
    )


def crossing(times: np.ndarray, values: np.ndarray, level: float) -> float:
    """When a falling course first reaches a level, by linear interpolation; nan if it never does."""
    after = int(np.argmax(values <= level))
    if after == 0:
        return float("nan")
    t, v = times[after - 1 : after + 1], values[after - 1 : after + 1]
    return float(t[0] + (level - v[0]) / (v[1] - v[0]) * (t[1] - t[0]))


def same_curve(name: str, one: Dataset, other: Dataset, tolerance: float) -> Check:
    """Two runs have one loss curve."""
    gap = float(np.abs(one["loss"] - other["loss"]).max())
    return Check(
        name, gap, 0.0, tolerance, f"{PAPER}, Fig. 1", "rounding, summed in another order over the run"
    )


def _statistics(seed: int) -> Check:
    """Descent through the sufficient statistics against autodiff of the raw sequences, on small data."""
    task = tasks.linear_regression(dim=3, context=7, sequences=50, seed=seed)
    runs = [
        descend(
            networks.MergedAttention(2), task, init=0.3, rate=1e-4, steps=21, seed=seed, gradient=gradient
        )
        for gradient in ("full", "raw")
    ]
    return same_curve("descent: sufficient statistics train as raw sequences do", *runs, 1e-12)


def moment_scores(sequences: int, seed: int, theory: np.ndarray) -> Check:
    """Largest |sampled - theory|/standard error over E[z z^T], against Bonferroni's bound at level 1e-3."""
    task = tasks.linear_regression(
        dim=DIM, context=CONTEXT, eigenvalues=EIGENVALUES, sequences=sequences, seed=seed
    )

    def products(prompts, labels):
        z = cubic_features(prompts)
        return z[:, :, None] * z[:, None, :]

    sampled = estimate(task, products)
    scores = np.abs(sampled.mean - theory) / sampled.standard_error
    bound = NormalDist().inv_cdf(1 - 1e-3 / (2 * scores.size))
    return Check(
        f"derive: sampled moments, P = {sequences}",
        measured=float(scores.max()),
        expected=0.0,
        tolerance=bound,
        source="Isserlis' theorem against sampling",
        reason=f"Bonferroni bound at level 1e-3 over {scores.size} entries, in standard errors",
    )
