"""Which lines of a planar flow are closed orbits."""

from __future__ import annotations

import numpy as np

from fixedpoints.pictures.direction_field import DirectionField
from odesys.integrators.bundle import Bundle, trace

__all__ = ["RESOLUTION", "closed_orbits"]

#: The distance between the points of a drawn line, in sizes of the window.
RESOLUTION = 5e-3
#: A line that returns to its start within this part of the window, a hundred times its error, is closed.
_CLOSED = 1e-6


def closed_orbits(
    field: DirectionField, lines: Bundle, places: np.ndarray, backward: bool = False
) -> dict[int, np.ndarray]:
    """Those of some lines, by their places, that come back to their start: points (2, k) in unit coordinates.

    They are cut where they come back. `backward` says that the lines were followed against the field. The
    crossing with the normal at the start is integrated anew, since interpolation is not accurate enough to tell
    an orbit from a spiral.
    """
    places, missing = _returns(lines, places)
    if not places.size:
        return {}
    before = lines.edges[places + 1] - 2
    origins, normals = lines.starts[:, places], lines.slopes[:, lines.edges[places]]
    last = trace(field.directions, lines.states[:, before], -missing if backward else missing, _never)
    slopes = last.slopes[:, last.edges[1:] - 1]
    # What is left along the line, a rounding of the interpolation, is made up for along the tangent.
    ahead = np.sum((last.ends - origins) * normals, axis=0) / np.sum(slopes * normals, axis=0)
    ends = last.ends - slopes * ahead
    lengths = lines.parameter[before] + missing
    closed = np.hypot(*(ends - origins)) < _CLOSED
    return {
        int(place): np.column_stack([lines[place].evenly(RESOLUTION, length)[:, :-1], end])
        for place, length, end in zip(places[closed], lengths[closed], ends.T[closed], strict=True)
    }


def _returns(lines: Bundle, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lines whose last step crosses the normal at their start, and what it goes before it does."""
    last = lines.edges[places + 1] - 1
    size = lines.parameter[last] - lines.parameter[last - 1]
    back = np.hypot(*(lines.ends - lines.starts)[:, places]) <= 2 * size
    places = places[back & (np.diff(lines.edges)[places] > 2) & (lines.stops[places] == "halted")]
    last = lines.edges[places + 1] - 1
    fine = np.linspace(lines.parameter[last - 1], lines.parameter[last], 33, axis=1)
    offsets = lines.at(places, fine) - lines.starts[:, places, None]
    along = np.sum(offsets * lines.slopes[:, lines.edges[places], None], axis=0)
    crossing = (along[:, 0] < 0) & (along[:, -1] >= 0)
    # Lines are nearly straight over a step, so that the coordinate along them increases.
    missing = [np.interp(0.0, a, f) - f[0] for a, f in zip(along[crossing], fine[crossing], strict=True)]
    return places[crossing], np.array(missing)


def _never(place: np.ndarray, units: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    return np.zeros(place.shape, dtype=bool)
