"""Phase lines: the flow of one state, with every fixed point and what the flow does on either side of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from fixedpoints.arguments import interval_ends
from fixedpoints.boxes.equations import velocity
from fixedpoints.near.one_state import marks, point_on_line
from fixedpoints.pictures.curves import readable, roots_between
from fixedpoints.pictures.domain import fails, limits
from fixedpoints.pictures.factoring import factors, quotient
from fixedpoints.points import Certificate, FixedPoint, FixedPoints
from fixedpoints.shifts import points_within
from odesys.lambdify import compile_field
from odesys.plotting import COLOURS, new_axes
from odesys.system import ODESystem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Gap", "PhaseLine", "phase_line"]

#: How a point is drawn: the filled half is the side that attracts.
_FILL = {"stable": "full", "unstable": "none"}
_NODES = 801


@dataclass(frozen=True, eq=False)
class Gap:
    """Where the field of one state is not defined: the inequality that holds there, and intervals (low, high)."""

    condition: sp.Basic
    intervals: tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class PhaseLine:
    """The flow of one state on an interval.

    Args:
        axes: the picture.
        points: the fixed points in the interval, from left to right.
        excluded: the poles of the field in it.
        masked: where the field is not defined.
        x, velocity: the drawn curve, shape (n,), with nan at poles and where the field is not defined.
        found: the answer of the search for fixed points, with its certificate.
    """

    axes: Axes
    points: tuple[FixedPoint, ...]
    excluded: tuple[float, ...]
    masked: tuple[Gap, ...]
    x: np.ndarray
    velocity: np.ndarray
    found: FixedPoints


def phase_line(
    system: ODESystem,
    interval: tuple[float, float],
    ax: Axes | None = None,
    *,
    points: FixedPoints | None = None,
) -> PhaseLine:
    """Draw dx/dt over x with every fixed point in an interval, marked by what the flow does on either side.

    Fixed points and poles of rational fields are certified roots, and stability comes from exact signs between
    them, so that double roots are named half-stable. Those of other fields come from `fixedpoints.find`, whose
    certificate says whether they are all.

    Args:
        system: an autonomous flow of one state.
        interval: low < high, in the units of the state.
        ax: where to draw; by default a new figure.
        points: the fixed points to mark, if `fixedpoints.find` has answered already.
    Raises:
        TypeError: the system is no ODESystem.
        ValueError: more than one state, a field that depends on time, vanishes everywhere or is defined nowhere
            in the interval, or an interval that is not finite and increasing.
    """
    f, x = _rule(system)
    low, high = interval_ends(interval)
    grid = np.linspace(low, high, _NODES)
    poles = _poles(f, x, low, high)
    curve = _curve(system, grid, poles)
    found = _found(system, f, x, low, high) if points is None else points
    inside = points_within(found, {x.name: (low, high)})
    line = PhaseLine(
        new_axes() if ax is None else ax, inside, poles, _gaps(f, x, low, high), grid, curve, found
    )
    _draw(line, x.name)
    return line


def _rule(system: ODESystem) -> tuple[sp.Expr, sp.Symbol]:
    """The right-hand side with its numbers put in exactly, and its one state."""
    if not isinstance(system, ODESystem):
        raise TypeError(f"A phase line is drawn of an ODESystem; got {type(system).__name__}.")
    field = system.field
    if len(field.state) != 1:
        raise ValueError(
            f"A phase line has one state; this system has {len(field.state)}: {list(field.names)}. "
            "Reduce it first, with symbolic.restrict or symbolic.project."
        )
    if field.time is not None:
        raise ValueError(f"A phase line is of an autonomous field; this one depends on {field.time}.")
    (f,), (x,) = velocity(system), field.state
    if f.is_rational_function(x):
        f = sp.cancel(sp.together(f))
    if f == 0:
        raise ValueError(
            f"d{x}/dt is zero for every {x}: all points are fixed, and there is no line to draw."
        )
    return f, x


def _poles(f: sp.Expr, x: sp.Symbol, low: float, high: float) -> tuple[float, ...]:
    # A rational rule is in lowest terms already.
    _, denominator = sp.fraction(f) if f.is_rational_function(x) else quotient(f, [x])
    return tuple(
        sorted(
            float(root)
            for factor in factors(denominator, [x])
            for root in roots_between(factor, x, low, high)
        )
    )


def _curve(system: ODESystem, grid: np.ndarray, poles: tuple[float, ...]) -> np.ndarray:
    compiled = compile_field(system)
    with np.errstate(all="ignore"):
        curve = np.array(compiled.rhs(0.0, grid[None, :], compiled.args)[0], dtype=float)
    curve[~np.isfinite(curve)] = np.nan
    if np.isnan(curve).all():
        raise ValueError(
            f"The field is not a finite number anywhere between {grid[0]:g} and {grid[-1]:g}; got "
            f"{readable(system.field.rhs[0])}. Choose an interval that meets its domain."
        )
    for pole in poles:
        # One point on either side of a pole is left out, so that no line is drawn through it.
        curve[np.argsort(np.abs(grid - pole))[:2]] = np.nan
    return curve


def _found(system: ODESystem, f: sp.Expr, x: sp.Symbol, low: float, high: float) -> FixedPoints:
    if f.is_rational_function(x):
        try:
            roots = [point_on_line(f, x, mark) for mark in marks(f, x) if not mark.is_pole]
        except ValueError:  # coefficients such as pi, of which no root is certified
            pass
        else:
            reason = "all real roots of the numerator, isolated by ball arithmetic"
            return FixedPoints(tuple(roots), (), Certificate("complete", reason, len(roots)))
    from fixedpoints.finding import find

    return find(system, box={x.name: (low, high)})


def _gaps(f: sp.Expr, x: sp.Symbol, low: float, high: float) -> tuple[Gap, ...]:
    """Intervals between zeros of what must be positive, on which it is not."""
    gaps = []
    for limit in limits([f], [x]):
        cuts = [low, *(float(root) for root in roots_between(limit.expression, x, low, high)), high]
        outside = [(a, b) for a, b in pairwise(cuts) if a < b and fails(limit, [x], [(a + b) / 2])]
        if outside:
            gaps.append(Gap(limit.failure, tuple(outside)))
    return tuple(gaps)


def _draw(line: PhaseLine, name: str) -> None:
    axes, grid, curve = line.axes, line.x, line.velocity
    axes.axhline(0.0, color="0.3", linewidth=1.0, zorder=1)
    axes.plot(grid, curve, color=COLOURS[0], linewidth=1.8, zorder=2)
    for pole in line.excluded:
        axes.axvline(pole, color="0.5", linestyle=":", linewidth=1.4, label=f"pole at {pole:.6g}")
    for gap in line.masked:
        for place, (low, high) in enumerate(gap.intervals):
            label = f"undefined: {readable(gap.condition)}" if place == 0 else "_"
            axes.axvspan(
                low, high, facecolor="0.93", edgecolor="0.6", hatch="///", linewidth=0, label=label, zorder=0
            )
    _draw_directions(line, name)
    for point in line.points:
        _draw_point(axes, point, name)
    axes.set(xlabel=name, ylabel=f"d{name}/dt", xlim=(grid[0], grid[-1]))
    if line.excluded:
        # Near a pole the curve leaves any frame; show the nine tenths of it that lie closest to zero.
        size = 1.2 * np.nanquantile(np.abs(curve), 0.9)
        axes.set_ylim(-size, size)
    if line.points or line.excluded or line.masked:
        axes.legend(framealpha=0.9, edgecolor="none")


def _draw_directions(line: PhaseLine, name: str) -> None:
    """An arrow head between neighbouring points, poles and ends, where the field is defined."""
    marks = sorted((*(point.location[name] for point in line.points), *line.excluded))
    for left, right in pairwise([line.x[0], *marks, line.x[-1]]):
        between = np.flatnonzero((line.x > left) & (line.x < right) & np.isfinite(line.velocity))
        if between.size and line.velocity[between[between.size // 2]] != 0:
            at = between[between.size // 2]
            marker = ">" if line.velocity[at] > 0 else "<"
            line.axes.plot(line.x[at], 0.0, marker=marker, color="0.3", markersize=8, zorder=3)


def _draw_point(axes: Axes, point: FixedPoint, name: str) -> None:
    half = "left" if point.attracts and point.attracts[0] else "right"
    axes.plot(
        point.location[name],
        0.0,
        marker="o",
        markersize=9,
        color=COLOURS[1],
        markerfacecoloralt="white",
        fillstyle=_FILL.get(point.stability, half),
        linestyle="none",
        label=f"{point.stability}: {name} = {point.location[name]:.6g}",
        zorder=4,
    )
