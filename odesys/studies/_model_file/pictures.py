"""The figures: the course of the run and, on a line or a plane, the phase line, portrait or cobweb."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fixedpoints import cobweb, phase_line, portrait
from odesys.model_file import ModelFile
from odesys.plotting import COLOURS, time_course
from odesys.report import Picture
from odesys.system import MapSystem

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["course", "plane"]

#: What is shown around a run, as a part of its range.
_MARGIN = 0.3
#: Curves that can be told apart.
_MOST = len(COLOURS)


def course(model: ModelFile, name: str, run: Dataset) -> Picture:
    """States over time, or over steps."""
    names, dim = model.rule.names[:_MOST], "time" if "time" in run.dims else "step"
    axes = time_course(run, variables=list(names))
    if dim == "step":
        for line in axes.lines:
            line.set(linestyle="none", marker="o", markersize=3)
        axes.legend(frameon=False)
    some = f", the first {_MOST} of {len(model.rule.names)} states" if len(model.rule.names) > _MOST else ""
    what = f"The course of {model.name} from the start of the file{some}."
    return Picture(f"{name}-course", axes.figure, what, f"{', '.join(names)} over the {dim}.")


def plane(model: ModelFile, name: str, run: Dataset) -> Picture | None:
    """The phase line or portrait of a flow, the cobweb of a scalar map; None for what neither can show."""
    names, system = model.rule.names, model.exact
    if model.rule.time is not None or len(names) > 2 or (isinstance(system, MapSystem) and len(names) > 1):
        return None
    box = model.box or {x: _around(run[x].values) for x in names}
    if isinstance(system, MapSystem):
        (side,) = box.values()
        axes = cobweb(system, model.start or {}, min(run.sizes["step"] - 1, 60), interval=side).axes
        what = f"The orbit of {model.name} between the graph of the map and the diagonal."
    elif len(names) == 1:
        (side,) = box.values()
        axes, what = (
            phase_line(system, side).axes,
            f"The velocity of {model.name} over its state, with its fixed points.",
        )
    else:
        axes = portrait(system, box).axes
        axes.plot(*(run[x].values for x in names), color=COLOURS[5], linewidth=2.0, zorder=4)
        what = (
            f"The phase portrait of {model.name}; the light blue line is the run from the start of the file."
        )
        axes.set(xlim=box[names[0]], ylim=box[names[1]])
    return Picture(f"{name}-plane", axes.figure, what, what)


def _around(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * ((high - low) or abs(high) or 1.0)
    return low - margin, high + margin
