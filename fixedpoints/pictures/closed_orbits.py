"""Which lines of a planar flow are closed orbits."""

from __future__ import annotations

import numpy as np

from fixedpoints.pictures.direction_field import DirectionField
from odesys.integrators.bundle import Line, trace

__all__ = ["RESOLUTION", "closed_orbits"]

#: The distance between the points of a drawn line, in sizes of the window.
RESOLUTION = 5e-3
#: A line that returns to its start within this part of the window, a hundred times its error, is closed.
_CLOSED = 1e-6


def closed_orbits(field: DirectionField, lines: list[Line], backward: bool = False) -> dict[int, np.ndarray]:
    """The lines, by their place, that come back to their start, cut there: points (2, k) in unit coordinates.

    `backward` says that the lines were followed against the field. The crossing with the normal at the start
    is integrated anew, since interpolation is not accurate enough to tell an orbit from a spiral.
    """
    returned = [
        (place, line, _distance_to_normal(line))
        for place, line in enumerate(lines)
        if line.stop == "halted" and line.parameter.size > 2
    ]
    candidates = [each for each in returned if each[-1] is not None]
    if not candidates:
        return {}
    places, back, missing = zip(*candidates, strict=True)
    starts, origins = (np.stack([line.states[:, k] for line in back], axis=1) for k in (-2, 0))
    normals = np.stack([line.slopes[:, 0] for line in back], axis=1)
    last = trace(field.directions, starts, np.array(missing) * (-1 if backward else 1), _never)
    ends, slopes = (
        np.stack([getattr(line, part)[:, -1] for line in last], axis=1) for part in ("states", "slopes")
    )
    # What is left along the line, a rounding of the interpolation, is made up for along the tangent.
    ends = ends - slopes * np.sum((ends - origins) * normals, axis=0) / np.sum(slopes * normals, axis=0)
    return {
        place: np.column_stack([line.evenly(RESOLUTION, line.parameter[-2] + part)[:, :-1], end])
        for place, line, part, end, origin in zip(places, back, missing, ends.T, origins.T, strict=True)
        if np.hypot(*(end - origin)) < _CLOSED
    }


def _distance_to_normal(line: Line) -> float | None:
    """How far a line has to go from its last step but one to cross the normal at its start, if it does."""
    fine = np.linspace(*line.parameter[-2:], 33)
    along = (line.at(fine) - line.states[:, :1]).T @ line.slopes[:, 0]
    if not along[0] < 0 <= along[-1]:
        return None
    # Lines are nearly straight over a step, so that the coordinate along them increases.
    return np.interp(0.0, along, fine) - fine[0]


def _never(place: np.ndarray, units: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    return np.zeros(place.shape, dtype=bool)
