"""The two-layer linear network that linear attention with merged key and query amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from odesys.clock import Normalization, prediction_scale
from odesys.simulation.features import cubic_features
from odesys.simulation.networks.network import check

__all__ = ["CubicFeatureNetwork", "CubicWeights"]


class CubicWeights(NamedTuple):
    """All weights of the two-layer network on the cubic features."""

    outer: Float[Array | np.ndarray, " H"]
    """w_2 = v."""
    inner: Float[Array | np.ndarray, "H D D"]
    """W_1, whose rows are vec(U_i)^T, row-major."""


@dataclass(frozen=True)
class CubicFeatureNetwork:
    """Two-layer linear network on the cubic features, width H ("MLP(z)" of Figure 1):

        yhat = w_2^T W_1 z ,    z = vec(beta x_q^T) ,    beta = (1/N) sum_n y_n x_n  ("sum": no 1/N).

    Args:
        heads: H, the width; attention with H heads is this network while its other blocks are zero.
        normalization: "sum", "mean" or "tokens", see `odesys.simulation.networks`.
    Raises:
        ValueError: `heads` < 1 or an unknown normalization.

    Source: arXiv:2501.16265v2, ATTN_M as a two-layer linear network, and Figure 1.
    """

    heads: int
    normalization: Normalization = "sum"

    degree: ClassVar[int] = 2
    held: ClassVar[tuple[str, ...]] = ()
    features = staticmethod(cubic_features)

    def __post_init__(self):
        check(self)

    def init(self, generator: np.random.Generator, init: float, dim: int) -> CubicWeights:
        """Normal entries of standard deviation `init`: the numbers that attention draws for v_i and U_i."""
        outer = init * generator.standard_normal(self.heads)
        return CubicWeights(outer, init * generator.standard_normal((self.heads, dim, dim)))

    def predict(
        self, weights: CubicWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array, " P"]:
        """yhat, layer by layer."""
        context = prompts.shape[2] - 1
        beta = jnp.einsum("pdn,pn->pd", prompts[:, :-1], prompts[:, -1]) / context
        z = prediction_scale(context, self.normalization) * jnp.einsum(
            "pa,pb->pab", beta, prompts[:, :-1, -1]
        )
        hidden = z.reshape(len(z), -1) @ weights.inner.reshape(self.heads, -1).T
        return hidden @ weights.outer

    def coefficients(self, weights: CubicWeights) -> Float[Array, " F"]:
        """vec(M), M = sum_i v_i U_i, row-major."""
        return jnp.einsum("h,hab->ab", weights.outer, weights.inner).reshape(-1)

    def restricted(self, weights: CubicWeights) -> tuple[CubicFeatureNetwork, CubicWeights]:
        """Itself: it has no other blocks."""
        return self, weights

    def blocks(self, weights: CubicWeights) -> dict[str, Float[np.ndarray, "*axes"]]:
        """v_i and U_i."""
        return {"v": weights.outer, "U": weights.inner}

    def assemble(self, blocks: Mapping[str, Float[Array | np.ndarray, "*axes"]]) -> CubicWeights:
        """w_2 and W_1 from v_i and U_i."""
        return CubicWeights(jnp.asarray(blocks["v"]), jnp.asarray(blocks["U"]))
