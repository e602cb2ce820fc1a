"""The figures of the study: phase lines, the portrait with two minima, the orbit diagram, the bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fixedpoints import orbit_diagram_plot, phase_line, portrait
from odesys.plotting import COLOURS, new_axes
from odesys.report import Picture
from odesys.studies.softmax.maps import diagram
from odesys.studies.softmax.setting import CASES
from odesys.system import ODESystem

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
    """The same data with the rescaled loss: no fixed point."""
    line = phase_line(ODESystem(CASES["three-points"].derived("rescaled").flow), (-1.5, 0.4))
    return Picture(
        "softmax-rescaled",
        line.axes.figure,
        "The same data with the rescaled loss: no fixed point at all. The flow goes to minus infinity, where the loss "
        "tends to 4/9 and not to zero.",
        "The velocity of x over x, negative everywhere and tending to zero on the left.",
    )


def two_minima() -> Picture:
    """The portrait of two weights with two minima and the separatrix."""
    model = CASES["two-minima"].derived()
    picture = portrait(ODESystem(model.flow), {"x_1": (-1.0, 2.5), "x_2": (-1.2, 1.6)}, new_axes(7.6, 5.0))
    picture.axes.legend(frameon=True, fontsize="x-small", loc="upper left")
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
        "Dots of the last states over the step: one line that splits into two, then four, then a cloud.",
    )


def bounds_table(rows: Sequence[Row]) -> Picture:
    """The largest ratios found, the sharp constants and the published ones, quantity by quantity, at one size."""
    size = rows[-1].size
    some = [row for row in rows if row.size == size]
    axes, at = new_axes(7.6, 0.6 + 0.3 * len(some)), np.arange(len(some))
    styles = (("found", "o", COLOURS[0]), ("sharp", "s", COLOURS[2]), ("published", "^", COLOURS[1]))
    for name, marker, colour in styles:
        axes.semilogx(
            [getattr(row, name) for row in some],
            at,
            linestyle="none",
            marker=marker,
            color=colour,
            markerfacecolor="none" if name == "sharp" else colour,
            label=name,
        )
    axes.set_yticks(at, [row.name for row in some])
    axes.invert_yaxis()
    axes.set(xlabel=f"Lipschitz constant, n = {size[0]}, d = {size[1]}, R = {size[2]:g}")
    axes.legend(frameon=False)
    return Picture(
        "softmax-bounds",
        axes.figure,
        "How fast the pieces of softmax regression can move for |A| <= R, |x| <= R: the largest ratio that a search "
        "found, the sharp constant, and the published one where there is one, up to M = n^1.5 exp(10 R^2).",
        "Rows of markers on a logarithmic axis: found and sharp close together, published many decades to the right.",
    )
