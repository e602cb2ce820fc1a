"""The scalar functions that descend: of weights and data, hashable, since compiled code is kept for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from odesys.simulation.networks import Network
from odesys.simulation.statistics import Moments, mean_squared_error
from odesys.simulation.tasks import LinearRegression

__all__ = ["GivenLoss", "MomentLoss", "Pieces", "SequenceLoss", "pieces"]

# Sequences of which autodiff keeps the intermediate values at the same time.
_PIECE = 512


@dataclass(frozen=True)
class MomentLoss:
    """L = (1/P) sum (y_q - yhat)^2  from the second moments of the network's features."""

    network: Network

    def __call__(self, weights: Any, data: Moments) -> Float[Array, ""]:
        return mean_squared_error(self.network.coefficients(weights), data)


@dataclass(frozen=True)
class SequenceLoss:
    """L = (1/P) sum (y_q - yhat)^2  by the forward pass on the raw sequences, piece by piece.

    The backward pass computes each piece again rather than keep it, so memory does not grow with P.
    """

    network: Network

    def __call__(self, weights: Any, data: tuple[Pieces, ...]) -> Float[Array, ""]:
        @jax.checkpoint
        def piece(each: Pieces):
            return each.share @ (each.labels - self.network.predict(weights, each.prompts)) ** 2

        return sum(jnp.sum(jax.lax.map(piece, same_length)) for same_length in data)


@dataclass(frozen=True)
class GivenLoss:
    """A function of the weights alone."""

    function: Callable

    def __call__(self, weights: Any, data: None):
        del data
        return self.function(weights)


class Pieces(NamedTuple):
    """The sequences of one context length in C pieces of B."""

    prompts: Float[Array | np.ndarray, "*C B E T"]
    labels: Float[Array | np.ndarray, "*C B"]
    share: Float[Array | np.ndarray, "*C B"]
    """1/P, and 0 for the sequences that fill up the last piece."""


def pieces(task: LinearRegression, size: int = _PIECE) -> tuple[Pieces, ...]:
    """The whole data set for `SequenceLoss`, one entry for each context length."""
    batches = list(task.batches())
    return tuple(
        _cut(
            *(np.concatenate(parts) for parts in zip(*batches[i :: len(task.lengths)], strict=True)),
            size,
            task,
        )
        for i in range(len(task.lengths))
    )


def _cut(prompts: np.ndarray, labels: np.ndarray, size: int, task: LinearRegression) -> Pieces:
    size = min(size, len(labels))
    count = -(-len(labels) // size)
    # Repeated sequences, not zeros, fill up: their predictions are finite, so that 0 times them is 0.
    chosen = np.arange(count * size) % len(labels)
    share = np.where(np.arange(count * size) < len(labels), 1 / task.examples, 0.0)
    return Pieces(
        prompts[chosen].reshape(count, size, *prompts.shape[1:]),
        labels[chosen].reshape(count, size),
        share.reshape(count, size),
    )
