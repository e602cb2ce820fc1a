"""The figures of the study: phase lines, the portrait with two minima, the orbit diagram, the bounds."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from fixedpoints import orbit_diagram_plot, phase_line, portrait
from odesys.plotting import COLOURS, new_axes
from odesys.report import Picture
from odesys.studies.softmax.maps import diagram
from odesys.studies.softmax.setting import CASES
from odesys.system import ODESystem
from symbolic.lipschitz import Cited, Known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odesys.studies.softmax.bounds import Row

__all__ = ["bounds_table", "orbits", "rescaled", "three_points", "two_minima"]


def three_points() -> Picture:
    """The phase line of one weight with three fixed points."""
    line = phase_line(ODESystem(CASES["three-points"].derived().flow), (-0.5, 2.2))
    return Picture(
        "softmax-three-points",
        line.axes.figure,
        "Normalized softmax regression of one weight, A = (0, 4, 5), b = (1/3, 0, 2/3): two minima and the maximum "
        "between them, complete on the whole line.",
        "The velocity of x over x with two filled circles at zeros where it falls and an open one between them.",
    )


def rescaled() -> Picture:
    """Two phase lines of the rescaled loss: with a minimum beside the escape, and with no fixed point at all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    phase_line(ODESystem(CASES["closed-form"].derived("rescaled").flow), (-2.5, 0.2), left)
    left.set_title("A = (1, 2), b = (1/2, 1/2)", fontsize="medium")
    phase_line(ODESystem(CASES["three-points"].derived("rescaled").flow), (-3.0, 0.4), right)
    right.set_yscale("symlog", linthresh=1e-7)
    right.set_ylim(-1e3, 1e-6)
    right.set_title("A = (0, 4, 5), b = (1/3, 0, 2/3), logarithmic", fontsize="medium")
    return Picture(
        "softmax-rescaled",
        figure,
        "The rescaled loss. Left: a minimum, and an unstable point beyond which the flow goes to minus infinity, where "
        "the loss tends to zero though f does not tend to b. Right: the data of the three fixed points of the "
        "normalized loss; here there is none, and the flow goes to minus infinity, where the loss tends to 4/9.",
        "Left: the velocity of x over x with an open circle left of a filled one, negative left of both. Right: the "
        "velocity on a logarithmic axis, negative everywhere and smaller by decades towards the left.",
    )


def two_minima() -> Picture:
    """The portrait of two weights with two minima and the separatrix."""
    model = CASES["two-minima"].derived()
    picture = portrait(ODESystem(model.flow), {"x_1": (-1.0, 2.5), "x_2": (-1.2, 1.6)}, new_axes(7.6, 5.0))
    # Above the axes: inside, it would lie on the separatrix.
    picture.axes.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return Picture(
        "softmax-two-minima",
        picture.axes.figure,
        "Normalized softmax regression of two weights: two minima, the saddle between them, and its stable manifold, "
        "which divides the plane into two basins.",
        "Streamlines that run to one of two filled points; a thick line through a saddle separates them.",
    )


def orbits() -> Picture:
    """The orbit diagram of gradient descent over its step."""
    axes = orbit_diagram_plot(diagram())
    return Picture(
        "softmax-orbits",
        axes.figure,
        "Gradient descent on two rows with b = (1/2, 1/2), over its step: a flip at 16, symmetry breaking at 27.4, "
        "period doubling and irregular orbits beyond.",
        "Dots of the last states over the step: one line that splits into two, each of them into a line for either "
        "start, then period doubling and a cloud.",
    )


#: How a constant is drawn: open where it is an upper limit, with its corner towards what it bounds.
_STYLES: dict[Enum | str, tuple[str, str, str, str]] = {
    "found": ("o", COLOURS[0], "full", "found by the search"),
    Known.SHARP: ("s", COLOURS[2], "none", "best here: attained, or approached"),
    Known.PAIR: ("s", COLOURS[2], "none", "best here: attained, or approached"),
    Known.TWO_ROWS: ("D", COLOURS[2], "none", "best here: proven for n = 2, a numerical optimum beyond"),
    Known.LOOSE: ("<", COLOURS[2], "none", "best here: proven, can be improved"),
    Cited.READ: ("^", COLOURS[1], "full", "published: M as read"),
    Cited.CHAIN: ("^", COLOURS[1], "none", "a chain of steps in the papers' manner"),
}


def bounds_table(rows: Sequence[Row], size: tuple[int, int, float] = (4, 2, 2.0)) -> Picture:
    """The largest ratios found, the best constants known and the published ones, row by row, at one size."""
    some = [row for row in rows if row.size == size]
    axes = new_axes(8.0, 1.6 + 0.25 * len(some))
    for at, row in enumerate(some):
        values = {"found": row.found, row.bound.known: row.best, row.bound.cited: row.published}
        for kind, value in values.items():
            if np.isfinite(value):
                marker, colour, fill, _ = _STYLES[kind]
                # The dot lies inside the open mark where both agree.
                width = 4 if kind == "found" else 8
                axes.plot(value, at, marker, color=colour, fillstyle=fill, markersize=width)
    for marker, colour, fill, label in dict.fromkeys(_STYLES.values()):
        axes.plot([], [], marker, color=colour, fillstyle=fill, label=label)
    axes.set_xscale("log")
    axes.set_yticks(range(len(some)), [row.name for row in some], fontsize="small")
    axes.margins(y=0.015)
    axes.invert_yaxis()
    n, d, R = size
    axes.set(xlabel=f"Lipschitz constant, n = {n}, d = {d}, R = {R:g}, $\\beta = e^{{-R^2}}$, |b| = 1")
    axes.figure.legend(frameon=False, fontsize="small", loc="outside upper center", ncols=2)
    return Picture(
        "softmax-bounds",
        axes.figure,
        "How fast the pieces of softmax regression can move for |A| <= R, |x| <= R: the largest ratio that a search "
        "found, the best constant known here and how well it is known, and the published one where there is one, up "
        "to M = n^1.5 exp(10 R^2).",
        "Rows of markers on a logarithmic axis: found and best close together, published many decades to the right.",
    )
