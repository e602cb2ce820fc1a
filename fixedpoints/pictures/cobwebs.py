"""Cobwebs: the orbit of a map of one state, between its graph and the diagonal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from fixedpoints.arguments import interval_ends
from fixedpoints.points import FixedPoint, FixedPoints
from odesys.iteration import iterate
from odesys.lambdify import compile_field
from odesys.plotting import COLOURS, new_axes
from odesys.system import MapSystem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Cobweb", "cobweb"]

_NODES = 801
#: What is shown beyond the orbit, as a part of its range.
_MARGIN = 0.15


@dataclass(frozen=True, eq=False)
class Cobweb:
    """The orbit x_0, x_1, ... of a map, and the path that shows it.

    Args:
        axes: the picture.
        orbit: x_0 to x_steps, shape (steps + 1,).
        path: corners of the cobweb, (x_0, x_0), (x_0, x_1), (x_1, x_1), ..., shape (2, 2 steps + 1).
        x: where the graph is drawn, shape (n,).
        image: f(x), shape (n,); nan where f is not defined.
        points: the fixed points in the range of x, by increasing x.
        found: the answer of the search for them, with its certificate.
    """

    axes: Axes
    orbit: np.ndarray
    path: np.ndarray
    x: np.ndarray
    image: np.ndarray
    points: tuple[FixedPoint, ...]
    found: FixedPoints


def cobweb(
    system: MapSystem,
    start: float | Mapping[str | sp.Symbol, float],
    steps: int,
    ax: Axes | None = None,
    *,
    interval: tuple[float, float] | None = None,
    points: FixedPoints | None = None,
) -> Cobweb:
    """Draw the orbit of  x_{k+1} = f(x_k; p)  as a cobweb between the graph of f and the diagonal.

    Args:
        system: a map of one state that does not count its steps.
        start: x_0, a number or the number by name.
        steps: how often the map is applied, at least 1.
        ax: where to draw; by default a new figure.
        interval: the range of x to show; by default that of the orbit and a margin.
        points: the fixed points to mark, if `fixedpoints.find` has answered already.
    Raises:
        TypeError: the system is no MapSystem.
        ValueError: not one state, a map that depends on the step, a start or number of steps that
            `odesys.iterate` refuses, or an interval that is not finite and increasing.
        OverflowError: the orbit leaves the finite numbers.
    """
    x = _state(system)
    begin = start if isinstance(start, Mapping) else {x.name: start}
    orbit = iterate(system, begin, steps)[x.name].values
    low, high = _range(orbit) if interval is None else interval_ends(interval)
    grid = np.linspace(low, high, _NODES)
    image = np.array(compile_field(system).rhs(0.0, grid[None, :], system.args)[0])
    image[~np.isfinite(image)] = np.nan
    found = _find(system, x, low, high) if points is None else points
    inside = tuple(p for p in found.points if low <= float(p.location[x.name]) <= high)
    corners = np.repeat(orbit, 2)
    path = np.stack([corners[:-1], corners[1:]])
    web = Cobweb(new_axes(5.2, 5.0) if ax is None else ax, orbit, path, grid, image, inside, found)
    _draw(web, x.name)
    return web


def _state(system: MapSystem) -> sp.Symbol:
    if not isinstance(system, MapSystem):
        raise TypeError(
            f"A cobweb is drawn of a MapSystem; got {type(system).__name__}. Flows have phase_line."
        )
    rule = system.map
    if len(rule.state) != 1:
        raise ValueError(f"A cobweb has one state; this map has {len(rule.state)}: {list(rule.names)}.")
    if rule.time is not None:
        raise ValueError(f"A cobweb is of a map that does not count its steps; this one uses {rule.time}.")
    return rule.state[0]


def _range(orbit: np.ndarray) -> tuple[float, float]:
    low, high = float(orbit.min()), float(orbit.max())
    margin = _MARGIN * (high - low) or max(abs(low), 1.0)
    return low - margin, high + margin


def _find(system: MapSystem, x: sp.Symbol, low: float, high: float) -> FixedPoints:
    from fixedpoints.finding import find

    return find(system, box={x.name: (low, high)})


def _draw(web: Cobweb, name: str) -> None:
    axes, ends = web.axes, (web.x[0], web.x[-1])
    axes.plot(ends, ends, color="0.5", linewidth=1.0, label=f"{name}' = {name}", zorder=1)
    axes.plot(web.x, web.image, color=COLOURS[0], linewidth=2.0, label=f"{name}' = f({name})", zorder=2)
    axes.plot(*web.path, color=COLOURS[1], linewidth=1.0, zorder=3)
    axes.plot(*web.path[:, 0], marker="s", color=COLOURS[1], linestyle="none", label="start", zorder=4)
    for point in web.points:
        at = float(point.location[name])
        filled = "black" if point.stability.startswith("stable") else "white"
        axes.plot(
            at,
            at,
            marker="o",
            markersize=8,
            color="black",
            markerfacecolor=filled,
            linestyle="none",
            label=f"{point.stability}: {name} = {at:.6g}",
            zorder=5,
        )
    axes.set(xlabel=f"{name}, this step", ylabel=f"{name}', the next", xlim=ends, ylim=ends)
    axes.legend(frameon=False, fontsize="small")
