"""The figures of the study: the theory drawn over what was trained or integrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fixedpoints import portrait
from fixedpoints.linear_attention import Lattice, plateaus
from odesys.integrators.contract import solve
from odesys.plotting import COLOURS, levels, new_axes, order_plot
from odesys.report import Picture
from odesys.studies.separate.setting import CONTEXT, DIM, EIGENVALUES, HEADS, PLATEAUS, spectrum
from odesys.studies.separate.training import learner, plateau_steps, predicted_drops, shifted_course
from odesys.studies.separate.visits import END, START, balanced, learned, way
from odesys.system import ODESystem
from symbolic.linear_attention import merged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odesys.studies.separate.training import Training

__all__ = [
    "figure_3a",
    "figure_3b",
    "figure_3c",
    "figure_4",
    "lattice",
    "merged_plane",
    "small_starts",
    "two_heads",
]


#: Share of a mode from which on a head is said to learn it alone.
ALONE = 0.9


def figure_3a(trainings: Sequence[Training]) -> Picture:
    """Fig. 3a: the staircase of the loss, with the theoretical plateaus and the predicted drops of the first run."""
    axes = new_axes(7.2, 4.2)
    for colour, training in zip(COLOURS, trainings, strict=False):
        run = training.run
        axes.plot(
            run["step"], run["loss"], color=colour, linewidth=1.8, label=f"seed {training.seed}", zorder=3
        )
    drops = training_steps(trainings[0])
    middles = (np.array(PLATEAUS)[:-1] + np.array(PLATEAUS)[1:]) / 2
    axes.plot(
        drops,
        middles,
        linestyle="none",
        marker="D",
        color="black",
        markerfacecolor="white",
        zorder=4,
        label=f"drops predicted from the start of seed {trainings[0].seed}",
    )
    axes.set(xlabel="steps of gradient descent", ylabel="loss", xlim=(0, float(trainings[0].run["step"][-1])))
    levels(axes, {f"L(M_{m})": value for m, value in enumerate(PLATEAUS)})
    axes.legend(frameon=False, fontsize="small")
    return Picture(
        "separate-3a",
        axes.figure,
        f"Training loss of rank-one separate key and query (D = {DIM}, N = {CONTEXT}, H = {HEADS}, "
        f"P = {trainings[0].sequences}), after Fig. 3a of arXiv:2501.16265: four drops between the five losses L(M_m).",
        "Loss over training steps: a staircase that falls from 1 through four plateaus marked by dotted lines; "
        "diamonds mark the predicted times of the drops.",
    )


def training_steps(training: Training) -> np.ndarray:
    """The cascade's drops in steps of the run."""
    return training.clock.step(predicted_drops(training))


def figure_3b(training: Training) -> Picture:
    """Fig. 3b: each head's value weight, and the scalar ODE of the mode that it learns, shifted in time."""
    axes, run = new_axes(7.2, 4.2), training.run
    steps = run["step"].values
    for head in run["head"].values:
        axes.plot(
            steps,
            np.abs(run["v"].sel(head=head)),
            color=COLOURS[(head - 1) % len(COLOURS)],
            linewidth=2.2,
            label=f"head {head}",
        )
    alone, shared = _learned(training)
    for mode in alone:
        head, _ = learner(training, mode)
        course, shift = shifted_course(training, mode)
        axes.plot(
            steps,
            course,
            color="black",
            linestyle="--",
            linewidth=1.2,
            zorder=4,
            label=f"scalar ODE of mode {mode}, shifted by {shift:.0f} tau (head {head})",
        )
    rest = f" Modes {_listed(shared)} are shared by heads, and have no such course." if shared else ""
    axes.set(
        xlabel="steps of gradient descent",
        ylabel="|v_i|, in the normalisation of the theory",
        xlim=(0, steps[-1]),
    )
    axes.legend(frameon=False, fontsize="x-small")
    return Picture(
        "separate-3b",
        axes.figure,
        "Value weights of the heads and the closed-form time course tau dv/dt = lambda^2 v^2 - lambda^3 a v^5 of the "
        "mode that each learns alone, shifted so that both pass v*/2 together, after Fig. 3b of arXiv:2501.16265."
        f"{rest}",
        "Absolute value weights over training steps: one after another the heads rise abruptly to their ends, with "
        "dashed theoretical curves on them.",
    )


def _learned(training: Training) -> tuple[list[int], list[int]]:
    """The modes that a run has learned: those that one head learned alone, and those that heads share."""
    modes = range(1, len(plateau_steps(training)) + 2)
    alone = [mode for mode in modes if learner(training, mode)[1] >= ALONE]
    return alone, [mode for mode in modes if mode not in alone]


def _listed(modes: Sequence[int]) -> str:
    return ", ".join(map(str, modes))


def figure_3c(training: Training) -> Picture:
    """Fig. 3c: at each plateau, the diagonal of sign(v_i) K_i^T Q_i in the eigenbasis."""
    from matplotlib.figure import Figure

    steps = plateau_steps(training) | {len(plateau_steps(training)) + 1: int(training.run["step"][-1])}
    figure = Figure(figsize=(2.1 * len(steps) + 0.8, 3.0), layout="constrained")
    panels = figure.subplots(1, len(steps), sharey=True, squeeze=False)[0]
    image = None
    for panel, (m, step) in zip(panels, steps.items(), strict=True):
        state = training.run.sel(step=step)
        inner = np.diagonal(state["KQ"].values, axis1=1, axis2=2) * np.sign(state["v"].values)[:, None]
        image = panel.imshow(inner, cmap="PuOr", vmin=-4, vmax=4, aspect="auto")
        panel.set_title(f"plateau {m}\nstep {step}", fontsize="medium")
        panel.set_xticks(range(training.dim), [f"e_{d}" for d in range(1, training.dim + 1)])
        panel.set_yticks(range(training.heads), [f"head {i}" for i in range(1, training.heads + 1)])
    figure.colorbar(image, ax=list(panels), label="sign(v_i) (K_i^T Q_i)_dd")
    _, shared = _learned(training)
    rest = f" Here modes {_listed(shared)} are shared." if shared else ""
    return Picture(
        "separate-3c",
        figure,
        "What the heads attend to at each plateau: the diagonal of sign(v_i) K_i^T Q_i in the eigenbasis of the "
        "covariance, after Fig. 3c of arXiv:2501.16265. One eigenvector is learned at a time, by a head of its own "
        f"unless heads are nearly tied: these share it.{rest}",
        "A row of heat maps, heads by eigenvectors: each later map has one more coloured column, with a single "
        "coloured cell, or with several where heads share the eigenvector.",
    )


def figure_4(trainings: Mapping[int, Training]) -> Picture:
    """Fig. 4: the ranks compared."""
    axes = new_axes(7.2, 4.2)
    for colour, (rank, training) in zip(COLOURS, trainings.items(), strict=False):
        axes.plot(
            training.run["step"],
            training.run["loss"],
            color=colour,
            linewidth=1.8,
            label=f"R = {rank}",
            zorder=3,
        )
    some = next(iter(trainings.values()))
    for value in plateaus(spectrum(some.dim), CONTEXT, some.heads):
        axes.axhline(value, color="0.5", linestyle=":", linewidth=1.0, zorder=1)
    axes.set(xlabel="steps of gradient descent", ylabel="loss", xlim=(0, float(some.run["step"][-1])))
    axes.legend(frameon=False)
    return Picture(
        "separate-4",
        axes.figure,
        f"Training loss for ranks of key and query (D = {some.dim}, N = {CONTEXT}, H = {some.heads}, "
        f"P = {some.sequences}), after Fig. 4 of arXiv:2501.16265. A head that has taken off learns the "
        "modes of its other rows exponentially fast, "
        "so that conspicuous plateaus lie where R divides m; the dotted lines are all L(M_m).",
        "Loss over training steps for several ranks: for rank one a staircase of many steps, for higher ranks fewer "
        "and larger ones.",
    )


def lattice() -> Picture:
    """The 2^D fixed points by learned modes and loss, with the way of the aligned start over them."""
    points, axes = Lattice(EIGENVALUES, CONTEXT, DIM), new_axes(7.2, 4.6)
    place = {point.modes: (len(point.modes), point.loss) for point in points}
    for modes, (x, y) in place.items():
        for d in set(range(1, DIM + 1)) - set(modes):
            x_next, y_next = place[tuple(sorted((*modes, d)))]
            axes.plot([x, x_next], [y, y_next], color="0.85", linewidth=0.8, zorder=1)
    kinds = {
        "non-strict saddle": ("D", "white"),
        "strict saddle": ("s", COLOURS[1]),
        "stable": ("o", "black"),
    }
    for kind, (marker, face) in kinds.items():
        some = [point for point in points if point.stability == kind]
        axes.plot(
            *np.array([place[point.modes] for point in some]).T,
            linestyle="none",
            marker=marker,
            markersize=8,
            color="black",
            markerfacecolor=face,
            label=kind,
            zorder=3,
        )
    for modes, (x, y) in place.items():
        # Of two points that almost coincide, the upper one has its name on the left.
        crowded = any(x == other_x and 0 < y - other_y < 0.02 for other_x, other_y in place.values())
        offset, side = ((-7, 3), "right") if crowded else ((7, 3), "left")
        name = "{" + ",".join(map(str, modes)) + "}"
        axes.annotate(name, (x, y), xytext=offset, textcoords="offset points", fontsize="x-small", ha=side)
    visited = np.array([place[learned(visit.place.location)] for visit in way()[0].visits])
    axes.plot(*visited.T, color=COLOURS[0], linewidth=2.2, zorder=2, label="visited in this order")
    axes.set(xlabel="number of learned modes", ylabel="loss", xticks=range(DIM + 1))
    axes.legend(frameon=False)
    return Picture(
        "separate-lattice",
        axes.figure,
        f"All {points.size} functions at which D = {DIM} can stop, and the way from v_i = {START:g} over them: always "
        "the largest eigenvalue that is left, through saddles with no negative eigenvalue of the Hessian.",
        "A diagram of sixteen points in five columns joined by thin lines, with a thick path along the lowest points "
        "from M_0 to the optimum.",
    )


def two_heads() -> Picture:
    """The (v_1, v_2) plane of two heads: four fixed points and the staircase between them."""
    system = balanced(2)
    picture = portrait(system, {"v_1": (-0.1, 1.6), "v_2": (-0.1, 1.7)}, new_axes(7.6, 5.0))
    run = solve(system, {"v_1": START, "v_2": START}, np.linspace(0.0, END / 4, 2001))
    picture.axes.plot(
        run["v_1"], run["v_2"], color=COLOURS[0], linewidth=2.6, zorder=5, label="from v_1 = v_2 = 0.02"
    )
    picture.axes.legend(frameon=True, fontsize="x-small", loc="center")
    return Picture(
        "separate-two-heads",
        picture.axes.figure,
        "Phase portrait of two heads, each aligned with an eigenvector of its own: four fixed points, and the path "
        "from saddle to saddle.",
        "Streamlines in the plane of v_1 and v_2 with four marked fixed points; a thick line runs along the horizontal "
        "axis to the second point and then upward to the stable one.",
    )


def merged_plane() -> Picture:
    """The (s, u) plane of merged key and query, white covariance: one saddle, its separatrices, a curve of ends."""
    pair = merged.model(dim=DIM, heads=1).reductions["white pair"].field
    values = {"lambda": 1.0, "N": float(CONTEXT), "tau": 1.0}
    system = ODESystem(pair, {p.name: values[p.name] for p in pair.parameters})
    picture = portrait(system, {"s": (-2.2, 2.2), "u": (-1.2, 1.2)}, new_axes(7.6, 5.0))
    picture.axes.legend(frameon=True, fontsize="x-small", loc="upper left")
    return Picture(
        "separate-merged-plane",
        picture.axes.figure,
        "For comparison, merged key and query with white covariance in the plane of s and u: one saddle at 0, which is "
        "left exponentially, and the two branches of s u = 1/a on which training ends.",
        "Streamlines in the plane of s and u: a saddle in the middle with two crossing separatrices, and two curves "
        "of fixed points at upper right and lower left.",
    )


def small_starts(errors: Mapping[str, tuple[np.ndarray, np.ndarray, float]]) -> Picture:
    """Errors of the predictions over the size of the start; name -> (sizes, errors, order)."""
    axes = new_axes()
    for name, (sizes, values, order) in errors.items():
        order_plot(sizes, values, order=order, label=name, ax=axes)
    axes.set(xlabel="size of the random start, eps", ylabel="error of the theory")
    return Picture(
        "separate-small-starts",
        axes.figure,
        "How the errors of the predicted drops and plateaus fall with the size eps of a random start.",
        "Log-log plot of three families of markers on straight lines of slopes one and two.",
    )
