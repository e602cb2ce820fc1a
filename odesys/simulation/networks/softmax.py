"""Softmax attention: a simulation without a theory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from odesys.clock import Normalization
from odesys.simulation.networks.merged import MergedAttention, MergedWeights
from odesys.simulation.networks.network import check
from odesys.simulation.networks.separate import SeparateAttention, SeparateWeights

__all__ = ["SoftmaxAttention"]


@dataclass(frozen=True)
class SoftmaxAttention:
    """Multi-head softmax attention:

        ATTN(X) = X + sum_i W^V_i X softmax( X^T W^K_i^T W^Q_i X ),    yhat = ATTN(X)[D+1, N+1] ,

    the softmax over the N+1 tokens, the query included, for each token that asks; no 1/N, since it is a mean
    already. The prediction is not linear in any features of the sequence, so no sufficient statistics exist:
    it descends with gradient="raw" only, and nothing that theory says of linear attention speaks of it.

    Args:
        heads: H.
        rank: R of separate key and query; None for a merged matrix W^KQ_i instead of W^K_i^T W^Q_i.
    Raises:
        ValueError: `heads` < 1 or `rank` < 1; in `init`, `rank` > D.

    Source: arXiv:2501.16265v2, softmax versions of ATTN_M and ATTN_S; the authors' code with `--softmax`.
    """

    heads: int
    rank: int | None = 1

    normalization: ClassVar[Normalization] = "mean"
    degree: ClassVar[int] = 1  # in the value weights, the only ones in which it is homogeneous
    held: ClassVar[tuple[str, ...]] = ()
    features: ClassVar[None] = None

    def __post_init__(self):
        check(self)
        _ = self._layer

    @property
    def _layer(self) -> MergedAttention | SeparateAttention:
        """The linear layer of the same weights."""
        if self.rank is None:
            return MergedAttention(self.heads)
        return SeparateAttention(self.heads, self.rank)

    def init(
        self, generator: np.random.Generator, init: float, dim: int, *, all_blocks: bool = False
    ) -> MergedWeights | SeparateWeights:
        """As for linear attention."""
        return self._layer.init(generator, init, dim, all_blocks=all_blocks)

    def forward(
        self, weights: MergedWeights | SeparateWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array | np.ndarray, "P E T"]:
        """ATTN(X) for each sequence, the whole output."""
        return prompts + self._attend(weights, prompts, prompts)

    def predict(
        self, weights: MergedWeights | SeparateWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array, " P"]:
        """yhat, the entry (D+1, N+1) of the output; only the query asks."""
        return prompts[:, -1, -1] + self._attend(weights, prompts, prompts[:, :, -1:])[:, -1, -1]

    def _attend(self, weights, prompts, asking) -> Float[Array, "P E Q"]:
        """What the tokens that ask, the columns of `asking`, are told."""
        scores = jnp.einsum("pan,hab,pbm->phnm", prompts, self._layer.key_query(weights), asking)
        attention = jax.nn.softmax(scores, axis=2)
        return jnp.einsum("hab,pbn,phnm->pam", weights.value, prompts, attention)

    def coefficients(self, weights: Any) -> Float[Array, " F"]:
        """There are none.

        Raises:
            ValueError: always.
        """
        raise ValueError(_NOT_LINEAR)

    def restricted(self, weights: Any) -> Any:
        """There is no theory whose assumptions could be held.

        Raises:
            ValueError: always.
        """
        raise ValueError(_NOT_LINEAR)

    def blocks(self, weights: MergedWeights | SeparateWeights) -> dict[str, Float[np.ndarray, "*axes"]]:
        """Those of linear attention."""
        return self._layer.blocks(weights)

    def assemble(
        self, blocks: Mapping[str, Float[Array | np.ndarray, "*axes"]]
    ) -> MergedWeights | SeparateWeights:
        """As for linear attention."""
        return self._layer.assemble(blocks)


_NOT_LINEAR = (
    "Softmax attention is not linear in any features of the sequence, so the sufficient statistics do not "
    'apply. Use gradient="raw".'
)
