"""The figures: the course of the run and, on a line or a plane, the phase line, portrait or cobweb."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fixedpoints import cobweb, phase_line, portrait
from odesys.model_file import ModelFile
from odesys.plotting import time_course
from odesys.report import Picture
from odesys.system import MapSystem

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["course", "plane"]

#: What is shown around a run, as a part of its range.
_MARGIN = 0.3


def course(model: ModelFile, name: str, run: Dataset) -> Picture:
    """States over time, or over steps."""
    axes = time_course(run, variables=list(model.rule.names))
    return Picture(
        f"{name}-course",
        axes.figure,
        f"The course of {model.name} from the start of the file.",
        f"Lines of {', '.join(model.rule.names)} over time.",
    )


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
        axes.plot(*(run[x].values for x in names), color="black", linewidth=1.4, zorder=4)
        what = (
            f"The phase portrait of {model.name}; the thin black line is the run from the start of the file."
        )
        axes.set(xlim=box[names[0]], ylim=box[names[1]])
    return Picture(f"{name}-plane", axes.figure, what, what)


def _around(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * ((high - low) or abs(high) or 1.0)
    return low - margin, high + margin
