"""Room on a picture: which new line fits between those that are drawn."""

from __future__ import annotations

import numpy as np

__all__ = ["Spacing", "without_rewinding"]

#: Cells of the raster on one side of the window.
_CELLS = 256


class Spacing:
    """A raster over the unit square that knows how near the drawn lines are.

    A new line may start where all others are at least `distance` away, and runs on until one is nearer than
    0.4 of that.
    """

    def __init__(self, distance: float):
        self.distance = distance
        self._far, self._near = (np.zeros((_CELLS, _CELLS), dtype=bool) for _ in range(2))

    def admits(self, unit: np.ndarray) -> bool:
        """Whether a line may start at a point (2,)."""
        return not self._far[tuple(_cells(unit))]

    def free(self, units: np.ndarray) -> np.ndarray:
        """The beginning of a line (2, k) up to where it comes too near to another one."""
        blocked = self._near[tuple(_cells(units))]
        return units[:, : np.argmax(blocked)] if blocked.any() else units

    def occupy(self, units: np.ndarray) -> None:
        """Take note of a drawn line (2, k), whose points lie closer together than the distances."""
        cells = np.unique(_cells(units), axis=1)
        for raster, distance in ((self._far, self.distance), (self._near, 0.4 * self.distance)):
            disc = cells[:, :, None] + _disc(distance * _CELLS)[:, None, :]
            raster[tuple(np.clip(disc, 0, _CELLS - 1))] = True


def without_rewinding(units: np.ndarray, distance: float) -> np.ndarray:
    """The beginning of a line (2, k) up to where it comes back to itself, lest a spiral become a disc.

    It comes back when it enters, further along than the distance, a cell of a quarter of the distance in
    which it has been before.
    """
    if units.shape[1] < 2:
        return units
    cells = np.floor(units * (4 / distance)).astype(int)
    names = cells[0] * (int(4 / distance) + 2) + cells[1]
    _, first, which = np.unique(names, return_index=True, return_inverse=True)
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(units)))])
    again = length - length[first][which] > distance
    return units[:, : np.argmax(again)] if again.any() else units


def _cells(units: np.ndarray) -> np.ndarray:
    return np.clip((units * _CELLS).astype(int), 0, _CELLS - 1)


def _disc(radius: float) -> np.ndarray:
    """Offsets (2, j) of the cells within a radius, in cells."""
    reach = np.arange(-int(radius), int(radius) + 1)
    x, y = np.meshgrid(reach, reach)
    return np.stack([x, y])[:, x**2 + y**2 <= radius**2]
