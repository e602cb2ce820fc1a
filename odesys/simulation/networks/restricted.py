"""Linear attention whose blocks that theory sets to zero are held there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float

from odesys.clock import Normalization
from odesys.simulation.features import attention_features
from odesys.simulation.networks.network import Network

__all__ = ["RestrictedAttention"]


@dataclass(frozen=True)
class RestrictedAttention:
    """A linear attention layer whose blocks `held` (and those that never matter) are held at zero.

    The layer, its forward pass and its features are those of `layer`; only what descends differs. Its weights
    are a dict of the blocks that theory speaks of: v, U of merged attention; v, k, q of separate attention.
    Theory says that merged attention then trains as `CubicFeatureNetwork` does, and since it shares no code
    with that one, this can be tested.

    Args:
        layer: `MergedAttention` or `SeparateAttention`.

    Source: arXiv:2501.16265v2, the assumption on the initial weights of both layers.
    """

    layer: Network

    features = staticmethod(attention_features)

    @classmethod
    def of(cls, layer: Network, weights) -> tuple[RestrictedAttention, dict[str, np.ndarray]]:
        """The restriction of a layer at the same weights.

        Raises:
            ValueError: a block `held` is not zero, so that the two networks differ.
        """
        blocks = layer.blocks(weights)
        if any(np.any(blocks[name]) for name in layer.held):
            names = " and ".join(f"{name}_i" for name in layer.held)
            sizes = ", ".join(f"max|{name}| = {np.abs(blocks[name]).max():.3g}" for name in layer.held)
            raise ValueError(
                f'The gradient "restricted" holds the blocks {names} at zero, but the start has {sizes}. '
                'Set them to zero, or use gradient="full".'
            )
        return cls(layer), {name: block for name, block in blocks.items() if name not in layer.held}

    @property
    def heads(self) -> int:
        """H."""
        return self.layer.heads

    @property
    def normalization(self) -> Normalization:
        """That of the layer."""
        return self.layer.normalization

    @property
    def degree(self) -> int:
        """That of the layer."""
        return self.layer.degree

    @property
    def held(self) -> tuple[str, ...]:
        """None is left."""
        return ()

    def init(self, generator: np.random.Generator, init: float, dim: int) -> dict[str, np.ndarray]:
        """The layer's rule."""
        return self.of(self.layer, self.layer.init(generator, init, dim))[1]

    def predict(
        self, weights: dict[str, Array], prompts: Float[Array | np.ndarray, "P E T"]
    ) -> Float[Array, " P"]:
        """yhat, by the forward pass of the whole layer."""
        return self.layer.predict(self.layer.assemble(weights), prompts)

    def coefficients(self, weights: dict[str, Array]) -> Float[Array, " F"]:
        """Those of the whole layer."""
        return self.layer.coefficients(self.layer.assemble(weights))

    def restricted(self, weights: dict[str, Array]) -> tuple[RestrictedAttention, dict[str, Array]]:
        """Itself: it has no other blocks."""
        return self, weights

    def blocks(self, weights: dict[str, np.ndarray]) -> dict[str, Float[np.ndarray, "*axes"]]:
        """The weights themselves."""
        return dict(weights)

    def assemble(self, blocks: Mapping[str, Float[Array | np.ndarray, "*axes"]]) -> dict[str, Array]:
        """The blocks themselves."""
        return dict(blocks)
