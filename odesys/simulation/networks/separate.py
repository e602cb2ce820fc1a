"""Linear attention with separate key and query, of any rank."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from odesys.clock import Normalization
from odesys.simulation._arguments import whole
from odesys.simulation.features import attention_features, symmetric_coefficients
from odesys.simulation.networks.network import check, linear_attention, value_of
from odesys.simulation.networks.restricted import RestrictedAttention

__all__ = ["InitRule", "SeparateAttention", "SeparateWeights"]

InitRule = Literal["per-head", "per-layer", "entry"]


class SeparateWeights(NamedTuple):
    """All weights of separate attention, E = D+1."""

    value: Float[Array | np.ndarray, "H E E"]
    """W^V_i; its last row is (vv_i^T, v_i)."""
    key: Float[Array | np.ndarray, "H R E"]
    """W^K_i, whose rows are (k_ir^T, kk_ir)."""
    query: Float[Array | np.ndarray, "H R E"]
    """W^Q_i, whose rows are (q_ir^T, *)."""


@dataclass(frozen=True)
class SeparateAttention:
    """Multi-head linear attention with separate key and query of rank R:

        ATTN(X) = X + (1/N) sum_i W^V_i X X^T W^K_i^T W^Q_i X  ("sum": no 1/N),    yhat = ATTN(X)[D+1, N+1] .

    Every entry of W^V_i, W^K_i and W^Q_i is a weight. With the last row (vv_i^T, v_i) of W^V_i and the rows
    (k_ir^T, kk_ir) of W^K_i and (q_ir^T, *) of W^Q_i the prediction is

        yhat = sum_{i,r} (vv_i^T, v_i) (X X^T / N) (k_ir; kk_ir) q_ir^T x_q ;  nothing else of the weights
    reaches it.

    Args:
        heads: H.
        rank: R, the number of rows of W^K_i and W^Q_i.
        normalization: "sum", "mean" or "tokens", see `odesys.simulation.networks`.
        init_rule: what the size `init` of random weights means, as standard deviations of (v, k and q):

            "per-head"   (default) init, init / sqrt(R (D+1)): the authors' code up to December 2025
            "per-layer"  init / sqrt(H (D+1)^2), init / sqrt(H R (D+1)): their code since commit 6d24121, init
                         over the root of the number of entries of all heads' W^V, of all heads' W^K
            "entry"      init, init

    Raises:
        ValueError: `heads` < 1, `rank` < 1, an unknown normalization or init_rule; in `init`, `rank` > D.

    Source: arXiv:2501.16265v2, definition of ATTN_S and its extension to rank R.
    """

    heads: int
    rank: int = 1
    normalization: Normalization = "sum"
    init_rule: InitRule = "per-head"

    degree: ClassVar[int] = 3
    held: ClassVar[tuple[str, ...]] = ("vv", "kk")
    features = staticmethod(attention_features)

    def __post_init__(self):
        check(self)
        whole("rank", self.rank, 1, "the rank R of key and query")
        if self.init_rule not in get_args(InitRule):
            raise ValueError(
                f"`init_rule` must be one of {list(get_args(InitRule))}; got {self.init_rule!r}."
            )

    def init(
        self, generator: np.random.Generator, init: float, dim: int, *, all_blocks: bool = False
    ) -> SeparateWeights:
        """Normal entries in v_i, k_ir and q_ir by the rule `init_rule`, zero elsewhere.

        `all_blocks=True` draws every entry of W^V, W^K and W^Q.
        """
        if self.rank > dim:
            raise ValueError(
                f"`rank` must not exceed the dimension D of x, since K_i^T Q_i has no more than D directions to "
                f"learn; got rank = {self.rank}, D = {dim}. Use rank = {dim}."
            )
        value_size, key_size = (init * factor for factor in self._sizes(dim))
        rows = (self.heads, self.rank, dim + 1)
        if all_blocks:
            value = value_size * generator.standard_normal((self.heads, dim + 1, dim + 1))
            return SeparateWeights(value, *(key_size * generator.standard_normal((2, *rows))))
        value, key, query = np.zeros((self.heads, dim + 1, dim + 1)), np.zeros(rows), np.zeros(rows)
        value[:, -1, -1] = value_size * generator.standard_normal(self.heads)
        for matrix in (key, query):
            matrix[..., :-1] = key_size * generator.standard_normal((self.heads, self.rank, dim))
        return SeparateWeights(value, key, query)

    def _sizes(self, dim: int) -> tuple[float, float]:
        """Standard deviations of value, and of key and query, over `init`."""
        if self.init_rule == "entry":
            return 1.0, 1.0
        columns = self.rank * (dim + 1)
        if self.init_rule == "per-head":
            return 1.0, 1 / math.sqrt(columns)
        return 1 / math.sqrt(self.heads * (dim + 1) ** 2), 1 / math.sqrt(self.heads * columns)

    def key_query(self, weights: SeparateWeights) -> Float[Array, "H E E"]:
        """W^K_i^T W^Q_i."""
        return jnp.einsum("hra,hrb->hab", weights.key, weights.query)

    def forward(
        self, weights: SeparateWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array | np.ndarray, "P E T"]:
        """ATTN(X) for each sequence, the whole output."""
        return linear_attention(weights.value, self.key_query(weights), prompts, self.normalization)

    def predict(
        self, weights: SeparateWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array, " P"]:
        """yhat, the entry (D+1, N+1) of the output."""
        return self.forward(weights, prompts)[:, -1, -1]

    def coefficients(self, weights: SeparateWeights) -> Float[Array, " F"]:
        """Theta_abc = sum_i W^V_i[D+1, a] (W^K_i^T W^Q_i)[b, c], symmetrised in ab."""
        theta = jnp.einsum("ha,hrb,hrc->abc", weights.value[:, -1, :], weights.key, weights.query[:, :, :-1])
        return symmetric_coefficients(theta)

    def restricted(self, weights: SeparateWeights) -> tuple[RestrictedAttention, dict[str, np.ndarray]]:
        """The same layer with v_i, k_ir and q_ir its only weights.

        Raises:
            ValueError: vv_i or kk_ir is not zero, so that the two networks differ.
        """
        return RestrictedAttention.of(self, weights)

    def blocks(self, weights: SeparateWeights) -> dict[str, Float[np.ndarray, "*axes"]]:
        """v_i, k_ir, q_ir, vv_i, kk_ir: everything that reaches the prediction."""
        return {
            "v": weights.value[..., -1, -1],
            "k": weights.key[..., :-1],
            "q": weights.query[..., :-1],
            "vv": weights.value[..., -1, :-1],
            "kk": weights.key[..., -1],
        }

    def assemble(self, blocks: Mapping[str, Float[Array | np.ndarray, "*axes"]]) -> SeparateWeights:
        """The weights with these v_i, k_ir and q_ir (vv_i and kk_ir, where given), zero elsewhere."""
        k, q = jnp.asarray(blocks["k"]), jnp.asarray(blocks["q"])
        zeros = jnp.zeros((*k.shape[:2], k.shape[2] + 1), dtype=k.dtype)
        key, query = zeros.at[..., :-1].set(k), zeros.at[..., :-1].set(q)
        if "kk" in blocks:
            key = key.at[..., -1].set(blocks["kk"])
        return SeparateWeights(value_of(blocks, k.shape[2]), key, query)
