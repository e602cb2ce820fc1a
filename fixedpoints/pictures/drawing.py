"""How a phase portrait is drawn: which colour, line and marker stands for what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fixedpoints.pictures.window import Window
from fixedpoints.points import FixedPoint
from odesys.plotting import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fixedpoints.pictures.portraits import Portrait

__all__ = ["draw"]

_NULLCLINES = ({"color": COLOURS[0], "linestyle": "--"}, {"color": COLOURS[1], "linestyle": "-."})
#: The stable ones are wider, so that both are seen where they are one.
_SEPARATRICES = {
    "stable": {"color": COLOURS[2], "linewidth": 2.8},
    "unstable": {"color": COLOURS[3], "linewidth": 1.6},
}
_LINE_OF_POINTS = {"color": COLOURS[6], "linewidth": 3.0}
_POLE = {"color": "0.35", "linestyle": ":", "linewidth": 1.6}

#: Markers: a filled circle attracts, an open one repels, a grey one does neither, a diamond is a saddle; a square
#: is half of each, or not decided.
_ATTRACTS = {"marker": "o", "markerfacecolor": "black"}
_REPELS = {"marker": "o", "markerfacecolor": "white"}
_NEITHER = {"marker": "o", "markerfacecolor": "0.7"}
_SADDLE = {"marker": "D", "markerfacecolor": "white"}
_HALF = {"marker": "s", "fillstyle": "left"}

#: The longest text of a legend's entry.
_LONGEST = 44


def draw(portrait: Portrait, window: Window, own_figure: bool) -> None:
    """Draw all that a portrait holds into its axes; in a figure of its own, the legend stands beside them."""
    axes = portrait.axes
    axes.set(xlim=window.bounds[window.state[0].name], ylim=window.bounds[window.state[1].name])
    axes.set(xlabel=window.state[0].name, ylabel=window.state[1].name)
    if own_figure:
        axes.grid(False)
    _draw_directions(axes, window, *portrait.directions)
    _draw_streamlines(axes, portrait)
    _draw_masks(axes, window, portrait)
    _draw_nullclines(axes, window, portrait)
    _draw_separatrices(axes, portrait)
    for curve in portrait.lines_of_points:
        _draw_pieces(
            axes,
            curve.pieces,
            _legend(f"fixed points: {curve.name}", "fixed points"),
            zorder=5,
            **_LINE_OF_POINTS,
        )
    _draw_points(axes, window, portrait.points)
    _draw_open_boxes(axes, window, portrait)
    style = {"loc": "upper right", "framealpha": 0.9}
    if own_figure:
        style = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
    if portrait.found.certificate.kind == "unknown":
        style["title"] = "fixed points: completeness unknown"
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", title_fontsize="small", **style)


def _draw_directions(axes: Axes, window: Window, points: np.ndarray, velocities: np.ndarray) -> None:
    from matplotlib.collections import LineCollection

    rates = velocities / window.widths[:, None]
    size = np.hypot(*rates)
    half = 0.012 * rates / np.where(size > 0, size, 1.0)
    units = window.to_unit(points)
    ends = np.stack([window.to_state(units - half), window.to_state(units + half)])
    axes.add_collection(
        LineCollection(list(ends.transpose(2, 0, 1)), colors="0.85", linewidths=1.0, zorder=1)
    )


def _draw_streamlines(axes: Axes, portrait: Portrait) -> None:
    from matplotlib.collections import LineCollection

    lines = [line.points for line in portrait.streamlines]
    if not lines:
        return
    axes.add_collection(LineCollection([line.T for line in lines], colors="0.6", linewidths=0.9, zorder=2))
    cycles = [line.points for line in portrait.streamlines if line.limit]
    _draw_pieces(axes, cycles, "limit cycle", color="0.25", linewidth=2.0, zorder=2)
    middles = [line.shape[1] // 2 for line in lines]
    at = np.stack([line[:, k] for line, k in zip(lines, middles, strict=True)], axis=1)
    ahead = np.stack([line[:, k] - line[:, k - 1] for line, k in zip(lines, middles, strict=True)], axis=1)
    _draw_heads(axes, at, ahead, "0.45", zorder=2)


def _draw_heads(axes: Axes, at: np.ndarray, ahead: np.ndarray, color: str, zorder: float) -> None:
    """Arrow heads of one size on the paper, in the directions of small steps."""
    moved = axes.transData.transform((at + ahead).T) - axes.transData.transform(at.T)
    steps = moved.T / np.hypot(*moved.T)
    style = {"units": "inches", "scale_units": "inches", "scale": 1 / 0.09, "width": 0.012, "minlength": 0}
    heads = {"headwidth": 6, "headlength": 7.5, "headaxislength": 7.5, "pivot": "mid"}
    axes.quiver(*at, *steps, color=color, zorder=zorder, **style, **heads)


def _draw_masks(axes: Axes, window: Window, portrait: Portrait) -> None:
    for mask in portrait.masked:
        _draw_pieces(axes, mask.pieces, _legend(mask.name, mask.name[:_LONGEST]), zorder=3, **_POLE)
        if mask.region is not None:
            xs, ys = (
                np.linspace(*ends, n)
                for ends, n in zip(window.bounds.values(), mask.region.T.shape, strict=True)
            )
            axes.contourf(
                xs,
                ys,
                mask.region.astype(float),
                levels=[0.5, 1.5],
                colors=["0.93"],
                hatches=["///"],
                zorder=2.5,
            )


def _draw_nullclines(axes: Axes, window: Window, portrait: Portrait) -> None:
    for state, style in zip(window.state, _NULLCLINES, strict=True):
        branches = [branch for branch in portrait.nullclines if branch.state == state.name]
        still = f"d{state}/dt = 0"
        label = _legend(f"{still}: " + ", ".join(branch.name for branch in branches), still)
        pieces = [piece for branch in branches for piece in branch.pieces]
        _draw_pieces(axes, pieces, label, linewidth=1.7, zorder=3, **style)


def _draw_separatrices(axes: Axes, portrait: Portrait) -> None:
    for kind, style in _SEPARATRICES.items():
        branches = [border.points for border in portrait.separatrices if border.kind == kind]
        _draw_pieces(axes, branches, f"{kind} manifold of a saddle", zorder=4, **style)


def _draw_pieces(axes: Axes, pieces: Iterable[np.ndarray], label: str, **style) -> None:
    for place, piece in enumerate(pieces):
        dot = {"marker": "X", "markersize": 7} if piece.shape[1] == 1 else {}
        axes.plot(*piece, label=label if place == 0 else "_", **style, **dot)


def _draw_points(axes: Axes, window: Window, points: Sequence[FixedPoint]) -> None:
    names = [x.name for x in window.state]
    kinds: dict[str, list[FixedPoint]] = {}
    for point in points:
        # Of "undecided: the linearisation does not decide (...)" the legend says the first word.
        kinds.setdefault(point.stability.split(":")[0], []).append(point)
    for stability, alike in kinds.items():
        at = np.array([[float(point.location[name]) for name in names] for point in alike]).T
        listed = ", ".join(f"({x:.3g}, {y:.3g})" for x, y in at.T)
        label = _legend(f"{stability}: {listed}", f"{stability} ({len(alike)})")
        style = _marker(alike[0])
        axes.plot(
            *at,
            label=label,
            linestyle="none",
            color="black",
            markersize=8,
            markerfacecoloralt="white",
            zorder=6,
            **style,
        )


def _draw_open_boxes(axes: Axes, window: Window, portrait: Portrait) -> None:
    """Question marks where the search for fixed points could not decide."""
    names = [x.name for x in window.state]
    middles = (
        np.array([[sum(box[name]) / 2 for name in names] for box in portrait.found.unresolved])
        .reshape(-1, 2)
        .T
    )
    inside = np.all((window.to_unit(middles) >= 0) & (window.to_unit(middles) <= 1), axis=0)
    if inside.any():
        style = {"marker": "$?$", "linestyle": "none", "color": COLOURS[1], "markersize": 9, "clip_on": False}
        axes.plot(*middles[:, inside], label="unresolved", zorder=7, **style)


def _marker(point: FixedPoint) -> dict[str, object]:
    kind = point.stability
    if kind.startswith(("centre", "stable modulo", "stable, not")):
        return _NEITHER
    if kind.startswith("stable"):
        return _ATTRACTS
    if "saddle" in kind and "node" not in kind:
        return _SADDLE
    # A point that is unstable in one direction alone may be a saddle, which its name does not say.
    repels = kind.startswith("unstable") and point.dims in ((2, 0, 0), (0, 2, 0))
    return _REPELS if repels else _HALF


def _legend(text: str, short: str) -> str:
    """A legend's text, as one writes formulas by hand, or a shorter one."""
    text = text.replace("**", "^").replace("*", " ")
    return text if len(text) <= _LONGEST else short
