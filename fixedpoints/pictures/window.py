"""The window of a picture: a box in the plane of two states, and its own unit coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp

from fixedpoints.arguments import box_sides

__all__ = ["Window", "window"]


@dataclass(frozen=True)
class Window:
    """The box  low_i <= x_i <= high_i  of two states, in the order of the field.

    Unit coordinates z = (x - low) / (high - low) make lengths and directions those of the picture, whatever
    units the states have.
    """

    state: tuple[sp.Symbol, sp.Symbol]
    low: tuple[float, float]
    high: tuple[float, float]

    @cached_property
    def widths(self) -> np.ndarray:
        """high - low, shape (2,)."""
        return np.subtract(self.high, self.low)

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """(low, high) by the name of the state."""
        return {x.name: ends for x, *ends in zip(self.state, self.low, self.high, strict=True)}

    def to_unit(self, states: np.ndarray) -> np.ndarray:
        """Unit coordinates of states, shape (2, ...)."""
        return (states - _column(self.low, states)) / _column(self.widths, states)

    def to_state(self, units: np.ndarray) -> np.ndarray:
        """States of unit coordinates, shape (2, ...)."""
        return units * _column(self.widths, units) + _column(self.low, units)

    def grid(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """`count` values from low to high for either state."""
        return tuple(np.linspace(a, b, count) for a, b in zip(self.low, self.high, strict=True))


def _column(values: Sequence[float] | np.ndarray, like: np.ndarray) -> np.ndarray:
    """Two values in a shape that broadcasts with (2, ...)."""
    return np.reshape(values, (2,) + (1,) * (like.ndim - 1))


def window(state: Sequence[sp.Symbol], box: Mapping[str | sp.Symbol, tuple[float, float]]) -> Window:
    """The window that a box describes.

    Args:
        state: the two states of the field, in its order.
        box: low < high, finite, for each state, by name or symbol.
    Raises:
        TypeError: the box is no mapping, or the bounds of a state are not two numbers.
        ValueError: a state is unknown, missing or given twice, or its bounds are not finite and increasing.
    """
    sides = box_sides(state, box)
    return Window(tuple(state), tuple(low for low, _ in sides), tuple(high for _, high in sides))
