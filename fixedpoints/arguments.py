"""The arguments that the questions of this room share, checked once: rules, places, boxes, intervals, numbers."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sp

from odesys.system import MapSystem, ODESystem, by_name
from symbolic.field import IteratedMap, VectorField

__all__ = [
    "Box",
    "Rule",
    "System",
    "box_sides",
    "coordinates",
    "interval_ends",
    "positive",
    "rule_and_numbers",
    "seconds",
    "whole",
]

Rule = VectorField | IteratedMap
System = ODESystem | MapSystem | Rule
#: Sides (low, high), one for each state.
Box = tuple[tuple[float, float], ...]


def rule_and_numbers(system: System) -> tuple[Rule, dict[sp.Symbol, float]]:
    """The rule and a number for each parameter; none for a bare rule.

    Raises:
        TypeError: it is none of the four kinds.
        ValueError: it depends on time.
    """
    if isinstance(system, ODESystem):
        rule = system.field
    elif isinstance(system, MapSystem):
        rule = system.map
    elif isinstance(system, (VectorField, IteratedMap)):
        rule = system
    else:
        raise TypeError(
            "Fixed points are of an ODESystem, a MapSystem, a VectorField or an IteratedMap; "
            f"got {type(system).__name__}."
        )
    if rule.time is not None and any(f.has(rule.time) for f in rule.rhs):
        raise ValueError(
            f"A fixed point needs an autonomous rule; this one depends on {rule.time}. "
            f"Make {rule.time} a state, or put a number in its place."
        )
    args = () if system is rule else system.args
    return rule, dict(zip(rule.parameters, args, strict=False))


def coordinates(rule: Rule, point: Mapping) -> list:
    """One value for each state, in order.

    Raises:
        TypeError: the point is no mapping. ValueError: a state is unknown, missing or given twice.
    """
    given = by_name(rule.state, point, "state")
    missing = [name for name in rule.names if name not in given]
    if missing:
        raise ValueError(
            f"No coordinate for the states {missing}; got {sorted(given)}. "
            f"Give one for each of {list(rule.names)}."
        )
    return [given[name] for name in rule.names]


def box_sides(states: Sequence[sp.Symbol], box: Mapping[str | sp.Symbol, tuple[float, float]]) -> Box:
    """The sides (low, high) of a box in the order of the states.

    Raises:
        TypeError: it is no mapping to pairs of numbers.
        ValueError: a state is unknown, missing or given twice, or a side is not finite and increasing.
    """
    names = [x.name for x in states]
    if not isinstance(box, Mapping):
        example = ", ".join(f'"{name}": (-1, 1)' for name in names)
        raise TypeError(f"`box` must map each state to (low, high), such as {{{example}}}; got {box!r}.")
    given = by_name(states, box, "state")
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(
            f"`box` lacks the states {missing}; it has {sorted(given)}. Give (low, high) for each of {names}."
        )
    return tuple(_ends(given[name], f"The side of {name} in `box`") for name in names)


def interval_ends(interval: tuple[float, float]) -> tuple[float, float]:
    """The ends (low, high) of `interval`.

    Raises:
        TypeError: it is no pair of numbers. ValueError: it is not finite and increasing.
    """
    return _ends(interval, "`interval`")


def _ends(given: Any, what: str) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be two numbers (low, high); got {given!r}.") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{what} must be finite and increasing, (low, high); got {given}.")
    return low, high


def seconds(budget: Any) -> float:
    """A budget of time; it may be infinite.

    Raises:
        ValueError: it is no positive number.
    """
    if isinstance(budget, bool) or not isinstance(budget, numbers.Real) or not budget > 0:
        raise ValueError(f"`budget` must be a positive number of seconds; got {budget!r}.")
    return float(budget)


def positive(value: Any, name: str) -> float:
    """A positive finite number.

    Raises:
        ValueError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value < math.inf:
        raise ValueError(f"`{name}` must be a positive number; got {value!r}.")
    return float(value)


def whole(value: Any, name: str, least: int = 1) -> int:
    """A whole number of at least `least`.

    Raises:
        ValueError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}; got {value!r}.")
    return int(value)
