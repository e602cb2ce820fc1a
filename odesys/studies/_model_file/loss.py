"""The loss of a model file as JAX differentiates it, for the judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from odesys.lambdify import compile_expressions
from odesys.model_file import ModelFile

__all__ = ["jax_loss", "weights"]


def jax_loss(model: ModelFile, factor: float = 1.0) -> Callable[[Mapping[str, Any]], Any]:
    """The loss at the file's numbers as a function of weights by name; `factor` plants a fault."""
    names = model.rule.names
    value = compile_expressions((model.at_numbers(model.loss),), model.rule.state, backend="jax")

    def loss(at: Mapping[str, Any]) -> Any:
        return factor * value(*(at[name] for name in names))[0]

    return loss


def weights(model: ModelFile, start: Mapping[str, float]) -> dict[str, np.ndarray]:
    """A start as weights for `odesys.simulation.descend`."""
    return {name: np.float64(start[name]) for name in model.rule.names}
