"""Time courses, theory over training, orders of convergence: each function draws into an Axes and returns it.

No pyplot and no global style: a figure is an object of its own, so that nothing needs a display.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset

__all__ = ["COLOURS", "levels", "new_axes", "order_plot", "overlay", "time_course"]

#: Colours that colour-blind readers can tell apart (Okabe and Ito 2008), strongest on white first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: How many markers of one curve are drawn at most, so that they stay apart from each other.
MOST_MARKERS = 40


class _Clock(Protocol):
    def time(self, steps, /) -> np.ndarray: ...


def new_axes(width: float = 6.4, height: float = 4.0) -> Axes:
    """An empty Axes in a figure of its own, `axes.figure`; width and height in inches."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(width, height), layout="constrained").subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    return axes


def time_course(
    run: Dataset, *, variables: Sequence[str] | None = None, label: str = "", ax: Axes | None = None
) -> Axes:
    """Draw variables of a run as lines over its times (or steps), a colour per variable.

    Args:
        run: a Dataset with the dim "time" or "step"; further dims give a line per entry, in one colour.
        variables: which variables; by default all numbers that move with that dim.
        label: added to the variables' names in the legend, for example "theory".
        ax: where to draw; by default a new figure.
    Raises:
        ValueError: the run has neither dim, or lacks a variable.
    """
    axes = new_axes() if ax is None else ax
    names, dim = _moving(run, variables)
    for place, name in enumerate(names):
        curves = _curves(run[name], dim)
        style = {"color": COLOURS[place % len(COLOURS)], "alpha": 1.0 if curves.shape[1] == 1 else 0.6}
        lines = axes.plot(run[dim].values, curves, linewidth=1.8, zorder=3, **style)
        lines[0].set_label(_legend(run[name], label))
    return _labelled(axes, run[dim], [run[name] for name in names])


def overlay(
    theory: Dataset,
    truth: Dataset,
    *,
    clock: _Clock | None = None,
    variables: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a theory's courses as lines over the markers of a run.

    Args:
        theory: a Dataset with the dim "time".
        truth: the run, with the dim "step" (then its times are `clock.time(steps)`) or "time".
        clock: the times of steps, as in `odesys.compare`.
        variables: which variables; by default all that both have.
        ax: where to draw; by default a new figure.
    Raises:
        ValueError: a dim, the clock or a variable is missing, or no variable is shared.
    """
    axes = new_axes() if ax is None else ax
    names, dim = _moving(truth, variables)
    if variables is None:
        names = [name for name in names if name in theory]
    if not names:
        raise ValueError(
            f"No variable is shared: {sorted(map(str, theory))} against {sorted(map(str, truth))}."
        )
    if dim == "step" and clock is None:
        raise ValueError(
            "The run counts steps; pass `clock`, so that they can be drawn at the theory's times."
        )
    times = truth["time"].values if clock is None else clock.time(truth["step"].values)
    chosen = np.unique(np.linspace(0, times.size - 1, MOST_MARKERS).round().astype(int))
    word = "training" if dim == "step" else "integrated"
    for place, name in enumerate(names):
        style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}
        style |= {"linestyle": "none", "markersize": 5.5, "markerfacecolor": "white", "markeredgewidth": 1.2}
        points = axes.plot(times[chosen], _curves(truth[name], dim)[chosen], zorder=2, **style)
        points[0].set_label(_legend(truth[name], word))
    return time_course(theory, variables=names, label="theory", ax=axes)


def levels(axes: Axes, values: Mapping[str, float]) -> Axes:
    """Draw a dotted horizontal line for each value, with its name at the right edge."""
    for name, value in values.items():
        axes.axhline(value, color="0.35", linestyle=":", linewidth=1.2, zorder=1)
        axes.annotate(
            name,
            (1.0, value),
            xycoords=axes.get_yaxis_transform(),
            xytext=(-2, 3),
            textcoords="offset points",
            ha="right",
            color="0.25",
        )
    return axes


def order_plot(
    steps: Sequence[float],
    errors: Sequence[float],
    *,
    order: float,
    label: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw errors over step sizes, both logarithmic, with the line of the expected order, error ~ step^order.

    Args:
        steps, errors: positive numbers, one error per step size.
        order: the slope of the line, which passes through the smallest step's error.
        label: what the errors are, for the legend.
        ax: where to draw; by default a new figure.
    """
    axes = new_axes() if ax is None else ax
    x, y = np.asarray(steps, dtype=float), np.asarray(errors, dtype=float)
    anchor = int(np.argmin(x))
    ends = np.array([x.min(), x.max()])
    guide = y[anchor] * (ends / x[anchor]) ** order
    axes.loglog(ends, guide, color="0.35", linestyle="--", label=f"order {order:g}", zorder=2)
    place = sum(line.get_marker() in MARKERS for line in axes.lines)
    style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}
    axes.loglog(x, y, linestyle="none", markersize=7, label=label or "measured", zorder=3, **style)
    axes.set_xlabel("step size")
    axes.set_ylabel("error")
    axes.legend(frameon=False)
    return axes


def _moving(run: Dataset, variables: Sequence[str] | None) -> tuple[list[str], str]:
    """The names of the variables to draw, and the dim along which they move."""
    dim = next((dim for dim in ("step", "time") if dim in run.dims), None)
    if dim is None:
        raise ValueError(f'A run must have the dim "time" or "step"; it has {sorted(map(str, run.dims))}.')
    there = [str(n) for n, array in run.data_vars.items() if dim in array.dims and array.dtype.kind in "fiu"]
    missing = sorted(set(variables or ()) - set(there))
    if missing:
        raise ValueError(f"The run has no variables {missing} to draw over {dim}; it has {there}.")
    return (there if variables is None else list(variables)), dim


def _curves(array: DataArray, dim: str) -> np.ndarray:
    """Shape (instants, entries): one column per entry of the further dims."""
    values = array.transpose(dim, ...).values
    return values.reshape(values.shape[0], -1)


def _legend(array: DataArray, label: str) -> str:
    return f"{array.name}, {label}" if label else str(array.name)


def _labelled(axes: Axes, clock: DataArray, arrays: Sequence[DataArray]) -> Axes:
    axes.set_xlabel(_axis_label(clock))
    axes.set_ylabel(_axis_label(arrays[0]) if len(arrays) == 1 else "")
    axes.legend(frameon=False)
    return axes


def _axis_label(array: DataArray) -> str:
    name = array.attrs.get("long_name") or str(array.name)
    units = array.attrs.get("units")
    return f"{name} ({units})" if units else name
