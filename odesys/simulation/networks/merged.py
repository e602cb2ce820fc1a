"""Linear attention with one matrix for key and query in each head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from odesys.clock import Normalization
from odesys.simulation.features import attention_features, symmetric_coefficients
from odesys.simulation.networks.network import check, linear_attention, value_of
from odesys.simulation.networks.restricted import RestrictedAttention

__all__ = ["MergedAttention", "MergedWeights"]


class MergedWeights(NamedTuple):
    """All weights of merged attention, E = D+1."""

    value: Float[Array | np.ndarray, "H E E"]
    """W^V_i; its last row is (vv_i^T, v_i)."""
    key_query: Float[Array | np.ndarray, "H E E"]
    """W^KQ_i = [[U_i, *], [u_i^T, *]]."""


@dataclass(frozen=True)
class MergedAttention:
    """Multi-head linear attention with merged key and query:

        ATTN(X) = X + (1/N) sum_i W^V_i X X^T W^KQ_i X  ("sum": no 1/N),    yhat = ATTN(X)[D+1, N+1] .

    Every entry of W^V_i and W^KQ_i is a weight. With the last row (vv_i^T, v_i) of W^V_i and the first D
    columns (U_i; u_i^T) of W^KQ_i the prediction is

        yhat = sum_i (vv_i^T, v_i) (X X^T / N) (U_i; u_i^T) x_q ;    nothing else of the weights reaches it.

    Args:
        heads: H.
        normalization: "sum", "mean" or "tokens", see `odesys.simulation.networks`.
    Raises:
        ValueError: `heads` < 1 or an unknown normalization.

    Source: arXiv:2501.16265v2, definition of ATTN_M.
    """

    heads: int
    normalization: Normalization = "sum"

    degree: ClassVar[int] = 2
    held: ClassVar[tuple[str, ...]] = ("vv", "u")
    features = staticmethod(attention_features)

    def __post_init__(self):
        check(self)

    def init(
        self, generator: np.random.Generator, init: float, dim: int, *, all_blocks: bool = False
    ) -> MergedWeights:
        """Normal entries of standard deviation `init` in v_i and U_i, zero elsewhere: the authors' rule.

        `all_blocks=True` draws every entry of W^V and W^KQ.
        """
        shape = (2, self.heads, dim + 1, dim + 1)
        drawn = np.zeros(shape)
        if all_blocks:
            drawn[:] = init * generator.standard_normal(shape)
        else:
            drawn[0, :, -1, -1] = init * generator.standard_normal(self.heads)
            drawn[1, :, :-1, :-1] = init * generator.standard_normal((self.heads, dim, dim))
        return MergedWeights(*drawn)

    def key_query(self, weights: MergedWeights) -> Float[Array | np.ndarray, "H E E"]:
        """W^KQ_i."""
        return weights.key_query

    def forward(
        self, weights: MergedWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array | np.ndarray, "P E T"]:
        """ATTN(X) for each sequence, the whole output."""
        return linear_attention(weights.value, weights.key_query, prompts, self.normalization)

    def predict(
        self, weights: MergedWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array, " P"]:
        """yhat, the entry (D+1, N+1) of the output."""
        return self.forward(weights, prompts)[:, -1, -1]

    def coefficients(self, weights: MergedWeights) -> Float[Array, " F"]:
        """Theta_abc = sum_i W^V_i[D+1, a] W^KQ_i[b, c], symmetrised in ab."""
        theta = jnp.einsum("ha,hbc->abc", weights.value[:, -1, :], weights.key_query[:, :, :-1])
        return symmetric_coefficients(theta)

    def restricted(self, weights: MergedWeights) -> tuple[RestrictedAttention, dict[str, np.ndarray]]:
        """The same layer with v_i and U_i its only weights.

        Raises:
            ValueError: vv_i or u_i is not zero, so that the two networks differ.
        """
        return RestrictedAttention.of(self, weights)

    def blocks(self, weights: MergedWeights) -> dict[str, Float[np.ndarray, "*axes"]]:
        """v_i, U_i, vv_i, u_i: everything that reaches the prediction."""
        return {
            "v": weights.value[..., -1, -1],
            "U": weights.key_query[..., :-1, :-1],
            "vv": weights.value[..., -1, :-1],
            "u": weights.key_query[..., -1, :-1],
        }

    def assemble(self, blocks: Mapping[str, Float[Array | np.ndarray, "*axes"]]) -> MergedWeights:
        """The weights with these v_i and U_i (vv_i and u_i, where given), zero elsewhere."""
        U = jnp.asarray(blocks["U"])
        H, D, _ = U.shape
        key_query = jnp.zeros((H, D + 1, D + 1), dtype=U.dtype).at[:, :-1, :-1].set(U)
        if "u" in blocks:
            key_query = key_query.at[:, -1, :-1].set(blocks["u"])
        return MergedWeights(value_of(blocks, D), key_query)
