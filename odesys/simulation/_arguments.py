"""Checks of numbers that several modules of the room need: what was asked, what came, in one sentence."""

from __future__ import annotations

import math
from numbers import Integral, Real


def whole(name: str, value: int, minimum: int, meaning: str) -> int:
    """`value` as an int, or a ValueError unless it is a whole number >= minimum."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"`{name}` is {meaning} and must be a whole number >= {minimum}; got {value!r}.")
    return int(value)


def positive(name: str, value: float, meaning: str) -> float:
    """`value` as a float, or a ValueError unless it is a positive finite number."""
    if not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"`{name}` is {meaning} and must be positive and finite; got {value!r}.")
    return float(value)
