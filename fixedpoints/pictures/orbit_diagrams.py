"""The picture of an orbit diagram: every kept state over the parameter, a colour for each start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odesys.plotting import COLOURS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

__all__ = ["orbit_diagram_plot"]

#: Dots shrink as they become many, between these areas in points squared.
_LARGEST, _SMALLEST = 9.0, 0.4
_AMPLE = 30_000.0


def orbit_diagram_plot(diagram: Dataset, state: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw an orbit diagram: the kept states as dots over the parameter, escapes as ticks at the lower edge.

    Orbits that stand still without a fixed point near (plateaus) are drawn as crosses.

    Args:
        diagram: what `fixedpoints.orbit_diagram` returned.
        state: which state; by default the first.
        ax: where to draw; by default a new figure.
    Raises:
        ValueError: the dataset is no orbit diagram, or has no such state.
    """
    if "period" not in diagram or "kept" not in diagram.dims:
        raise ValueError(
            f"An orbit diagram has the dim 'kept' and the variable 'period'; got {sorted(map(str, diagram))}. "
            "Make one with fixedpoints.orbit_diagram."
        )
    states = [str(name) for name, values in diagram.items() if "kept" in values.dims]
    name = states[0] if state is None else state
    if name not in states:
        raise ValueError(f"No state is called {name!r}; the diagram's states are {states}.")
    axes = new_axes() if ax is None else ax
    parameter = next(str(dim) for dim in diagram[name].dims if dim not in ("start", "kept"))
    starts = diagram.sizes["start"]
    for s in range(starts):
        one = diagram.isel(start=s).transpose(parameter, ...)
        label = ", ".join(f"{x}_0 = {float(one[f'{x}_0']):.4g}" for x in states)
        _draw(axes, one, parameter, name, COLOURS[s % len(COLOURS)], label if starts > 1 else "_", s)
    axes.set(
        xlabel=parameter, ylabel=f"{name}, steps {int(diagram['kept'][0])} to {int(diagram['kept'][-1])}"
    )
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize="small", markerscale=2)
    return axes


def _draw(axes: Axes, one: Dataset, parameter: str, name: str, color: str, label: str, place: int) -> None:
    values, kept, period = one[parameter].values, one[name].values, one["period"].values
    # A periodic orbit is drawn once, not over and over.
    shown = np.where((period > 0)[:, None] & (np.arange(kept.shape[1]) >= period[:, None]), np.nan, kept)
    still = period == -1
    dots = np.isfinite(shown) & ~still[:, None]
    x, y = np.broadcast_to(values[:, None], shown.shape)[dots], shown[dots]
    area = np.clip(_AMPLE / max(len(x), 1), _SMALLEST, _LARGEST)
    style = {"color": color, "linewidths": 0, "zorder": 3 + 0.1 * place, "rasterized": True}
    axes.scatter(x, y, s=area, label=label, **style)
    if still.any():
        axes.scatter(
            values[still],
            kept[still, -1],
            s=14,
            marker="x",
            color=color,
            linewidths=0.8,
            zorder=4,
            label="plateau",
        )
    gone = period == -2
    if gone.any():
        edge = axes.get_xaxis_transform()
        at = np.full(gone.sum(), 0.01)
        axes.plot(values[gone], at, "|", color=color, alpha=0.4, transform=edge, label="escaped", zorder=2)
