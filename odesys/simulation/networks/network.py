"""What `descend` asks of a network, and what the linear attention layers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from odesys.clock import Normalization, prediction_scale
from odesys.simulation._arguments import whole

__all__ = ["Network", "Weights", "check", "linear_attention", "value_of"]

Weights = Any  # a NamedTuple or a dict of arrays, one type for each network


@runtime_checkable
class Network(Protocol):
    """What `descend` asks of a network; it must be hashable, since compiled code is kept for each network."""

    heads: int
    normalization: Normalization
    degree: int
    """Of the prediction in the weights: `odesys.clock` scales weights by it."""
    held: tuple[str, ...]
    """The blocks that theory sets to zero and the gradient "restricted" holds there, by name."""
    features: Callable[[np.ndarray], np.ndarray] | None
    """Prompts -> the features phi in which the prediction is linear; None where there are none."""

    def init(self, generator: np.random.Generator, init: float, dim: int) -> Weights:
        """Random weights of the size `init`, drawn from the generator."""
        ...

    def predict(self, weights: Weights, prompts: Float[Array | np.ndarray, "P E T"]) -> Float[Array, " P"]:
        """yhat of each sequence, by the forward pass of the definition."""
        ...

    def coefficients(self, weights: Weights) -> Float[Array, " F"]:
        """theta with  yhat = prediction_scale * <theta, phi>,  see `odesys.clock.prediction_scale`."""
        ...

    def restricted(self, weights: Weights) -> tuple[Network, Weights]:
        """The network in which the blocks `held` do not exist, at the same weights."""
        ...

    def blocks(self, weights: Weights) -> dict[str, Float[np.ndarray, "*axes"]]:
        """The parts of the weights by the paper's names; leading axes (steps, seeds) are kept."""
        ...

    def assemble(self, blocks: Mapping[str, Float[Array | np.ndarray, "*axes"]]) -> Weights:
        """The weights that have these blocks and zeros elsewhere; blocks `held` may be left out."""
        ...


def check(network: Network) -> None:
    """ValueError unless the network has a head and a known normalization."""
    whole("heads", network.heads, 1, "the number H of heads")
    prediction_scale(1, network.normalization)


def linear_attention(
    value: Float[Array | np.ndarray, "H E E"],
    key_query: Float[Array | np.ndarray, "H E E"],
    prompts: Float[Array | np.ndarray, "P E T"],
    normalization: Normalization,
) -> Float[Array | np.ndarray, "P E T"]:
    """X + (1/N) sum_i W^V_i X X^T W^KQ_i X  for each sequence, with the factor of the normalization."""
    context = prompts.shape[2] - 1
    scale = prediction_scale(context, normalization) / context
    sigma = jnp.einsum("pan,pbn->pab", prompts, prompts)
    mixed = jnp.einsum("hab,pbc,hcd->pad", value, sigma, key_query)
    return prompts + scale * mixed @ prompts


def value_of(blocks: Mapping[str, Float[Array | np.ndarray, "*axes"]], dim: int) -> Float[Array, "H E E"]:
    """W^V_i with the last row (vv_i^T, v_i), zero elsewhere; vv is zero where it is not among the blocks."""
    v = jnp.asarray(blocks["v"])
    value = jnp.zeros((len(v), dim + 1, dim + 1), dtype=v.dtype).at[:, -1, -1].set(v)
    return value.at[:, -1, :-1].set(blocks["vv"]) if "vv" in blocks else value
