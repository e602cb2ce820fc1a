"""The arguments that the questions about maps share, checked once: the map, whole numbers, boxes, starts."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sp

from odesys.system import MapSystem, ODESystem, by_name
from symbolic.field import IteratedMap, VectorField

__all__ = ["Box", "autonomous", "box_sides", "positive", "symbol_of", "whole"]

#: Sides (low, high), one for each state.
Box = tuple[tuple[float, float], ...]


def autonomous(system: Any, what: str) -> MapSystem:
    """The map with its numbers; `what` begins the message, such as "Cycles are".

    Raises:
        TypeError: it is no map. ValueError: it counts its steps, or its parameters have no numbers.
    """
    if isinstance(system, (ODESystem, VectorField)):
        raise TypeError(
            f"{what} those of a map; got {type(system).__name__}, a flow. Write the map as a "
            "symbolic.IteratedMap (descent on a loss: symbolic.gradient_map) in an odesys.MapSystem."
        )
    if isinstance(system, IteratedMap):
        if system.parameters:
            raise ValueError(
                f"{what} those of a map with numbers; {[p.name for p in system.parameters]} have none. "
                "Give each a number, with odesys.MapSystem."
            )
        system = MapSystem(system)
    if not isinstance(system, MapSystem):
        raise TypeError(f"{what} those of an odesys.MapSystem; got {type(system).__name__}.")
    if system.map.time is not None and any(f.has(system.map.time) for f in system.map.rhs):
        raise ValueError(
            f"{what} those of a map that does not count its steps; this one uses {system.map.time}."
        )
    return system


def whole(value: Any, name: str, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def positive(value: Any, name: str) -> float:
    """A positive finite number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value < math.inf:
        raise ValueError(f"`{name}` must be a positive number; got {value!r}.")
    return float(value)


def box_sides(rule: IteratedMap, box: Mapping) -> Box:
    """The sides of a box in the order of the states.

    Raises:
        TypeError: it is no mapping to pairs of numbers.
        ValueError: a state is unknown or missing, or a side is not finite and increasing.
    """
    given = by_name(rule.state, box, "state")
    missing = [name for name in rule.names if name not in given]
    if missing:
        raise ValueError(
            f"`box` lacks the states {missing}; give (low, high) for each of {list(rule.names)}."
        )
    sides = []
    for name in rule.names:
        try:
            low, high = (float(end) for end in given[name])  # type: ignore
        except (TypeError, ValueError):
            raise TypeError(
                f"The side of {name} in `box` must be two numbers (low, high); got {given[name]!r}."
            ) from None
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(
                f"The side of {name} in `box` must be finite and increasing, (low, high); got {given[name]}."
            )
        sides.append((low, high))
    return tuple(sides)


def symbol_of(rule: IteratedMap, parameter: str | sp.Symbol) -> sp.Symbol:
    """The parameter of that name.

    Raises:
        ValueError: the map has none.
    """
    name = parameter.name if isinstance(parameter, sp.Symbol) else parameter
    found = [p for p in rule.parameters if p.name == name and (p == parameter or isinstance(parameter, str))]
    if not found:
        raise ValueError(
            f"No parameter is called {name!r}; the map's parameters are {[p.name for p in rule.parameters]}."
        )
    return found[0]
