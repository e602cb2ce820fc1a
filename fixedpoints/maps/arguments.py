"""The arguments that the questions about maps share, checked once: the map and its parameters."""

from __future__ import annotations

from typing import Any

import sympy as sp

from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

__all__ = ["autonomous", "symbol_of"]


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
