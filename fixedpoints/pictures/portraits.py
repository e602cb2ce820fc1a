"""Phase portraits of planar flows: a picture, and all that it shows as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from fixedpoints.boxes.equations import velocity
from fixedpoints.pictures.curves import Curve, zero_curves
from fixedpoints.pictures.direction_field import DirectionField
from fixedpoints.pictures.masks import Masked, masks
from fixedpoints.pictures.nullclines import Nullcline, nullclines
from fixedpoints.pictures.separatrices import Separatrix, separatrices
from fixedpoints.pictures.streamlines import Streamline, streamlines
from fixedpoints.pictures.window import Window, window
from fixedpoints.points import FixedPoint, FixedPoints
from fixedpoints.shifts import points_within
from odesys.lambdify import compile_expressions
from odesys.plotting import new_axes
from odesys.system import ODESystem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Portrait", "portrait"]

#: Rows and columns of the direction field.
_ROWS = 20


@dataclass(frozen=True, eq=False)
class Portrait:
    """The flow of two states in a box.

    Args:
        axes: the picture.
        nullclines: every branch in the box, the first state's before the second's.
        separatrices: the branches of the stable and unstable manifolds of the saddles in the box.
        points: the isolated fixed points in the box.
        streamlines: solution curves, evenly spaced, closed orbits whole.
        masked: poles and undefined regions in the box.
        lines_of_points: where whole curves of fixed points lie.
        directions: where the direction field is drawn (2, k), and the velocities there (2, k), in order.
        found: the answer of the search for fixed points, with its certificate and what it left open.
    """

    axes: Axes
    nullclines: tuple[Nullcline, ...]
    separatrices: tuple[Separatrix, ...]
    points: tuple[FixedPoint, ...]
    streamlines: tuple[Streamline, ...]
    masked: tuple[Masked, ...]
    lines_of_points: tuple[Curve, ...]
    directions: tuple[np.ndarray, np.ndarray]
    found: FixedPoints


def portrait(
    system: ODESystem,
    box: Mapping[str | sp.Symbol, tuple[float, float]],
    ax: Axes | None = None,
    *,
    points: FixedPoints | None = None,
    spacing: float = 0.05,
) -> Portrait:
    """Draw the phase portrait of a planar flow  dx/dt = f(x; p)  in a box.

    The first state runs to the right, the second upward. Streamlines and separatrices are integrated in the
    picture's own arc length, with an error of 1e-8 of the box a step; nullclines and poles are the zeros of
    factors of the exact right-hand sides; fixed points come from `fixedpoints.find`.

    Args:
        system: an autonomous flow of two states.
        box: (low, high) for either state, by name or symbol.
        ax: where to draw; by default a new figure, with the legend beside it.
        points: the fixed points to mark, if `find` has answered already.
        spacing: the distance between streamlines, as a part of the box.
    Raises:
        TypeError: the system is no ODESystem, or bounds are not two numbers.
        ValueError: not two states, a field that depends on time, stands still or is defined nowhere in the
            box, a box that is not finite and increasing in each state, or a spacing outside (0.01, 0.5).
    """
    from fixedpoints.pictures.drawing import draw

    frame = _frame(system, box)
    if not 0.01 <= spacing <= 0.5:
        raise ValueError(f"`spacing` is a part of the box, between 0.01 and 0.5; got {spacing!r}.")
    rhs, field = velocity(system), DirectionField(system, frame)
    masked = masks(rhs, frame)
    found = _find(system, frame) if points is None else points
    inside = points_within(found, frame.bounds)
    borders = separatrices(field, inside)
    lines = streamlines(field, spacing, avoid=[border.points for border in borders])
    picture = Portrait(
        new_axes(7.6, 5.0) if ax is None else ax,
        nullclines(rhs, frame),
        borders,
        inside,
        lines,
        masked,
        _lines_of_points(found, frame),
        _directions(field),
        found,
    )
    draw(picture, frame, own_figure=ax is None)
    return picture


def _frame(system: ODESystem, box: Mapping[str | sp.Symbol, tuple[float, float]]) -> Window:
    if not isinstance(system, ODESystem):
        raise TypeError(f"A phase portrait is drawn of an ODESystem; got {type(system).__name__}.")
    field = system.field
    if len(field.state) != 2:
        raise ValueError(
            f"A phase portrait has two states; this system has {len(field.state)}: {list(field.names)}. "
            "One state goes to phase_line; reduce more of them with symbolic.restrict or symbolic.project."
        )
    if field.time is not None:
        raise ValueError(f"A phase portrait is of an autonomous field; this one depends on {field.time}.")
    if all(f == 0 for f in velocity(system)):
        raise ValueError(f"The field of {list(field.names)} is zero everywhere: all points are fixed.")
    return window(field.state, box)


def _find(system: ODESystem, frame: Window) -> FixedPoints:
    from fixedpoints.finding import find

    return find(system, box=frame.bounds)


def _lines_of_points(found: FixedPoints, frame: Window) -> tuple[Curve, ...]:
    """The curves on which all equations of a component of dimension one hold."""
    curves = []
    for component in found.components:
        if component.dimension != 1:
            continue
        first, *others = component.equations
        for curve in zero_curves(first, frame):
            if all(_vanishes(equation, curve, frame) for equation in others):
                curves.append(curve)
    return tuple(curves)


def _vanishes(equation: sp.Expr, curve: Curve, frame: Window) -> bool:
    values = [compile_expressions([equation], frame.state)(*piece)[0] for piece in curve.pieces]
    size = sp.count_ops(equation) * max(1.0, *np.abs(frame.low), *np.abs(frame.high))
    return all(np.all(np.abs(value) <= 1e-9 * float(size)) for value in values)


def _directions(field: DirectionField) -> tuple[np.ndarray, np.ndarray]:
    """The middles of the cells of a grid where the velocity is finite, and the velocities, both (2, k)."""
    middles = (np.arange(_ROWS) + 0.5) / _ROWS
    units = np.stack(np.meshgrid(middles, middles)).reshape(2, -1)
    velocities = field.rates(units) * field.window.widths[:, None]
    good = np.all(np.isfinite(velocities), axis=0)
    return field.window.to_state(units[:, good]), velocities[:, good]
