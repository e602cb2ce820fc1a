"""Ranks compared, after Fig. 4: how soon a head that has taken off learns the modes of its other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fixedpoints.linear_attention import plateaus
from odesys.check import Check
from odesys.studies.separate.cascade import drop_times
from odesys.studies.separate.setting import CONTEXT, PAPER, spectrum
from odesys.studies.separate.training import mid_drops

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odesys.studies.separate.training import Training

__all__ = ["checks"]


def checks(trainings: Mapping[int, Training]) -> list[Check]:
    """All checks of runs that differ in their rank alone."""
    return [
        *(_first_drop(rank, training) for rank, training in trainings.items()),
        _wait_for_mode_two(trainings),
        _end(trainings[max(trainings)]),
    ]


def _drops(training: Training) -> np.ndarray:
    run = training.run
    levels = plateaus(spectrum(training.dim), CONTEXT, training.heads, training.rank)
    return mid_drops(run["step"].values, run["loss"].values, levels)


def _first_drop(rank: int, training: Training) -> Check:
    """The escape-time integral holds for every rank."""
    start = training.run.isel(step=0)
    blocks = (start[name].values for name in ("v", "k", "q"))
    (first,) = drop_times(*blocks, np.array(spectrum(training.dim)), CONTEXT, most=1)
    expected = float(training.clock.step(first.time))
    return Check(
        f"descent: step of the first drop, D = {training.dim}, R = {rank}, P = {training.sequences}",
        measured=float(_drops(training)[0]),
        expected=expected,
        tolerance=0.06 * expected,
        source=f"escape-time integral from the run's own start; cubic flow of {PAPER}, section 5",
        reason="4 relative standard errors of E[y_q z] along e_1, 1.2 % each, and 1 % for the start",
    )


def _wait_for_mode_two(trainings: Mapping[int, Training]) -> Check:
    """After the first drop rank one waits for another head (1/eps), a higher rank for a row of the same (ln 1/eps)."""
    gaps = {rank: float(np.diff(_drops(training))[0]) for rank, training in trainings.items()}
    return Check(
        "descent: longest wait for mode 2 of a rank above 1, over that of rank 1",
        measured=max(gap for rank, gap in gaps.items() if rank > 1) / gaps[1],
        expected=0.0,
        tolerance=0.5,
        source=f"{PAPER}, Fig. 4; structured points are non-strict saddles only where R divides m",
        reason="exponential against algebraic escape: a factor that grows with 1/eps",
    )


def _end(training: Training) -> Check:
    """The largest rank learns all modes within the run."""
    last = float(plateaus(spectrum(training.dim), CONTEXT, training.heads, training.rank)[-1])
    return Check(
        f"descent: final loss, D = {training.dim}, R = {training.rank}, P = {training.sequences}",
        measured=float(training.run["loss"][-1]),
        expected=last,
        tolerance=0.05 * last,
        source=f"{PAPER}, L(M_D)",
        reason="4 standard errors of a mean over 80000 sequences, 1 % each, and what their number lets the fit gain",
    )
