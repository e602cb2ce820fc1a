"""Networks, written from the paper's definitions: weights, forward pass, linear form in the features.

`normalization` is the one choice that paper and code make differently (`odesys.clock` holds the factors):

    "sum"   (default) no 1/N, as in the authors' code. Their learning rates and initial sizes are meant for
            it: rate 1e-3, init 1e-6 and 6001 steps are Figure 1.
    "mean"  the paper's 1/N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from odesys.clock import Normalization, prediction_scale
from odesys.simulation._arguments import whole
from odesys.simulation.features import attention_features, cubic_features, symmetric_coefficients

__all__ = ["CubicFeatureNetwork", "CubicWeights", "MergedAttention", "MergedWeights", "Network"]

Weights = Any  # a NamedTuple of arrays, one type for each network


@runtime_checkable
class Network(Protocol):
    """What `descend` asks of a network; it must be hashable, since compiled code is kept for each network."""

    heads: int
    normalization: Normalization

    def init(self, generator: np.random.Generator, init: float, dim: int) -> Weights:
        """Weights of standard deviation `init` per entry, drawn from the generator."""
        ...

    def predict(self, weights: Weights, prompts: Float[Array | np.ndarray, "P E T"]) -> Float[Array, " P"]:
        """yhat of each sequence, by the forward pass of the definition."""
        ...

    @staticmethod
    def features(prompts: Float[np.ndarray, "P E T"]) -> Float[np.ndarray, "P F"]:
        """The features phi in which the prediction is linear; one function, whose moments are kept."""
        ...

    def coefficients(self, weights: Weights) -> Float[Array, " F"]:
        """theta with  yhat = <theta, phi>  ("mean")  or  N <theta, phi>  ("sum")."""
        ...

    def restricted(self, weights: Weights) -> tuple[Network, Weights]:
        """The network in which the blocks that theory sets to zero do not exist, at the same weights."""
        ...

    def blocks(self, weights: Weights) -> dict[str, Float[np.ndarray, "*axes"]]:
        """The parts of the weights by the paper's names; leading axes (steps) are kept."""
        ...


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
        normalization: "sum" or "mean", see the module's text.
    Raises:
        ValueError: `heads` < 1 or an unknown normalization.

    Source: arXiv:2501.16265v2, definition of ATTN_M.
    """

    heads: int
    normalization: Normalization = "sum"

    features = staticmethod(attention_features)

    def __post_init__(self):
        _check(self)

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

    def forward(
        self, weights: MergedWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array | np.ndarray, "P E T"]:
        """ATTN(X) for each sequence, the whole output."""
        context = prompts.shape[2] - 1
        scale = prediction_scale(context, self.normalization) / context
        sigma = jnp.einsum("pan,pbn->pab", prompts, prompts)
        mixed = jnp.einsum("hab,pbc,hcd->pad", weights.value, sigma, weights.key_query)
        return prompts + scale * mixed @ prompts

    def predict(
        self, weights: MergedWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array, " P"]:
        """yhat, the entry (D+1, N+1) of the output."""
        return self.forward(weights, prompts)[:, -1, -1]

    def coefficients(self, weights: MergedWeights) -> Float[Array, " F"]:
        """Theta_abc = sum_i W^V_i[D+1, a] W^KQ_i[b, c], symmetrised in ab."""
        theta = jnp.einsum("ha,hbc->abc", weights.value[:, -1, :], weights.key_query[:, :, :-1])
        return symmetric_coefficients(theta)

    def restricted(self, weights: MergedWeights) -> tuple[RestrictedAttention, RestrictedWeights]:
        """The same layer with v_i and U_i its only weights.

        Raises:
            ValueError: vv_i or u_i is not zero, so that the two networks differ.
        """
        blocks = self.blocks(weights)
        if np.any(blocks["vv"]) or np.any(blocks["u"]):
            raise ValueError(
                'The gradient "restricted" holds the blocks vv_i and u_i at zero, but the start has '
                f"max|vv| = {np.abs(blocks['vv']).max():.3g}, max|u| = {np.abs(blocks['u']).max():.3g}. "
                'Set them to zero, or use gradient="full".'
            )
        held = RestrictedAttention(self.heads, self.normalization)
        return held, RestrictedWeights(blocks["v"], blocks["U"])

    def blocks(self, weights: MergedWeights) -> dict[str, Float[np.ndarray, "*axes"]]:
        """v_i, U_i, vv_i, u_i: everything that reaches the prediction."""
        return {
            "v": weights.value[..., -1, -1],
            "U": weights.key_query[..., :-1, :-1],
            "vv": weights.value[..., -1, :-1],
            "u": weights.key_query[..., -1, :-1],
        }


class RestrictedWeights(NamedTuple):
    """The weights of merged attention that theory speaks of."""

    v: Float[Array | np.ndarray, " H"]
    U: Float[Array | np.ndarray, "H D D"]


@dataclass(frozen=True)
class RestrictedAttention:
    """Merged attention whose blocks vv_i and u_i (and those that never matter) are held at zero.

    The layer, its forward pass and its features are those of `MergedAttention`; only what descends differs.
    Theory says that it trains as `CubicFeatureNetwork` does, and since it shares no code with that one, this
    can be tested.

    Args, errors and source as for `MergedAttention`.
    """

    heads: int
    normalization: Normalization = "sum"

    features = staticmethod(attention_features)

    def __post_init__(self):
        _check(self)

    @property
    def _layer(self) -> MergedAttention:
        return MergedAttention(self.heads, self.normalization)

    def init(self, generator: np.random.Generator, init: float, dim: int) -> RestrictedWeights:
        """The authors' rule, see `MergedAttention.init`."""
        return self._layer.restricted(self._layer.init(generator, init, dim))[1]

    def predict(
        self, weights: RestrictedWeights, prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array, " P"]:
        """yhat, by the forward pass of the whole layer."""
        return self._layer.predict(self._whole(weights), prompts)

    def coefficients(self, weights: RestrictedWeights) -> Float[Array, " F"]:
        """Those of the whole layer."""
        return self._layer.coefficients(self._whole(weights))

    def restricted(self, weights: RestrictedWeights) -> tuple[RestrictedAttention, RestrictedWeights]:
        """Itself: it has no other blocks."""
        return self, weights

    def blocks(self, weights: RestrictedWeights) -> dict[str, Float[np.ndarray, "*axes"]]:
        """v_i and U_i."""
        return {"v": weights.v, "U": weights.U}

    @staticmethod
    def _whole(weights: RestrictedWeights) -> MergedWeights:
        H, D, _ = weights.U.shape
        zeros = jnp.zeros((H, D + 1, D + 1), dtype=weights.U.dtype)
        return MergedWeights(zeros.at[:, -1, -1].set(weights.v), zeros.at[:, :-1, :-1].set(weights.U))


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
        normalization: "sum" or "mean", see the module's text.
    Raises:
        ValueError: `heads` < 1 or an unknown normalization.

    Source: arXiv:2501.16265v2, ATTN_M as a two-layer linear network, and Figure 1.
    """

    heads: int
    normalization: Normalization = "sum"

    features = staticmethod(cubic_features)

    def __post_init__(self):
        _check(self)

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


def _check(network: Network) -> None:
    whole("heads", network.heads, 1, "the number H of heads")
    prediction_scale(1, network.normalization)
