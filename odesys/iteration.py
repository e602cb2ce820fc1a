"""Iterated maps as trajectories."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from odesys.lambdify import compile_field
from odesys.system import MapSystem, numbers_for

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["iterate"]


def iterate(
    system: MapSystem, start: Mapping[str | sp.Symbol, float], steps: int, every: int = 1
) -> xr.Dataset:
    """Iterate  x_{k+1} = f(k, x_k; p)  from x_0 = start.

    Args:
        system: the map and its numbers.
        start: one finite number for each state, by name or symbol.
        steps: how many times the map is applied, at least 1.
        every: keep the states after 0, every, 2 every, ... steps; must divide `steps`.
    Returns:
        A dataset with dimension "step" (0 to `steps`), a float64 variable for each state, and the source and
        parameters (JSON) as attributes.
    Raises:
        TypeError: `system` is not a MapSystem.
        ValueError: a state is unknown, missing or not a number; steps or every is not as described.
        OverflowError: the iterates stop being finite; the message names the step.
    """
    import xarray as xr

    if not isinstance(system, MapSystem):
        raise TypeError(f"`iterate` takes a MapSystem; got {type(system).__name__}. Flows go to `solve`.")
    for name, value in (("steps", steps), ("every", every)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"`{name}` must be a positive whole number; got {value!r}.")
    if steps % every:
        raise ValueError(
            f"`every` must divide `steps`, so that the last state is kept; got {every} and {steps}."
        )
    rule, args = compile_field(system).rhs, system.args
    state = np.array(numbers_for(system.map.state, start, "state"))
    kept = np.empty((len(state), steps // every + 1))
    kept[:, 0] = state
    for step in range(steps):
        state = rule(step, state, args)
        if not np.all(np.isfinite(state)):
            values = dict(zip(system.map.names, state.tolist(), strict=True))
            raise OverflowError(
                f"The map leaves the finite numbers at step {step + 1} of {steps}: {values}. "
                "Take fewer steps, or start elsewhere."
            )
        if (step + 1) % every == 0:
            kept[:, (step + 1) // every] = state
    attributes = {"source": system.map.source, "parameters": json.dumps(dict(system.parameters))}
    variables = {name: ("step", row) for name, row in zip(system.map.names, kept, strict=True)}
    return xr.Dataset(variables, {"step": np.arange(0, steps + 1, every)}, attributes)
