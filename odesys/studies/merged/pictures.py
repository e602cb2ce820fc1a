"""The figures of the study: the theory drawn over what was trained or integrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odesys.plotting import COLOURS, levels, new_axes, order_plot, overlay
from odesys.report import Picture
from odesys.studies.merged.setting import CONTEXT, DIM, HEADS, OPTIMAL_LOSS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xarray import Dataset

    from odesys.studies.merged.training import Training

__all__ = ["figure_one", "small_starts", "white_course"]


def figure_one(training: Training, theory: Dataset) -> Picture:
    """Fig. 1 of the paper: one abrupt drop of the loss, for attention and for MLP(z), with our theory."""
    axes, clock = new_axes(), training.clock
    steps = training.run["step"].values
    curves = {"attention, all weights free": training.run, "attention, v and U free": training.restricted}
    for colour, (label, run) in zip(COLOURS, curves.items(), strict=False):
        axes.plot(steps, run["loss"], color=colour, linewidth=2.2, label=label)
    marks = slice(None, None, max(1, steps.size // 25))
    axes.plot(
        steps[marks],
        training.cubic["loss"][marks],
        color=COLOURS[2],
        marker="o",
        markerfacecolor="white",
        linestyle="none",
        label="MLP on cubic features",
    )
    theory_steps = clock.step(theory["time"].values)
    label = f"theory, {DIM + 1} equations"
    axes.plot(theory_steps, theory["loss"], color="black", linestyle="--", label=label, zorder=4)
    axes.set(xlabel="steps of gradient descent", ylabel="loss", xlim=(0, steps[-1]), ylim=(0, None))
    levels(axes, {"L*": OPTIMAL_LOSS})
    axes.legend(frameon=False)
    return Picture(
        "merged-1",
        axes.figure,
        f"Training loss of linear attention with merged key and query (D = {DIM}, N = {CONTEXT}, "
        f"H = {HEADS}, P = {training.sequences}) and the derived flow from the same start, after Fig. 1 of "
        "arXiv:2501.16265. The theory knows no finite sample, so its drop comes a few percent apart.",
        "Loss over training steps: four curves stay on a plateau near 1, drop abruptly together and settle "
        "near the dotted line of the smallest loss.",
    )


def white_course(theory: Dataset, run: Dataset) -> Picture:
    """The closed-form time course over the integrated full flow."""
    axes = overlay(theory, run, variables=["sigma"])
    axes.set(xlabel="time (tau)", ylabel="sigma, the coefficient of the identity in M")
    return Picture(
        "merged-white-course",
        axes.figure,
        "White covariance: Eq. 10 with w_eff over the full flow from a random start of size 0.001.",
        "A sigmoid curve of sigma over time, from 0 to 31/36, with markers of the full flow on it.",
    )


def small_starts(errors: Mapping[str, tuple[np.ndarray, np.ndarray, float]]) -> Picture:
    """Errors of the small-start theories over the size of the start; name -> (sizes, errors, order)."""
    axes = new_axes()
    for name, (sizes, values, order) in errors.items():
        order_plot(sizes, values, order=order, label=name, ax=axes)
    axes.set(xlabel="size of the random start, eps", ylabel="largest error of the theory")
    return Picture(
        "merged-small-starts",
        axes.figure,
        "How the theories' errors fall with the size eps of the start: as eps^2 ln(1/eps) for a white "
        "covariance, as eps otherwise.",
        "Log-log plot with two families of markers on straight lines of slopes two and one.",
    )
