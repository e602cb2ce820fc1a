"""A point of the parameter space of separate key and query: the weights that theory speaks of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fixedpoints.linear_attention.modes import Modes

__all__ = ["Weights"]


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights v_i, K_i, Q_i of H heads of rank R, which compute  y_hat = beta^T M x_q,

        M = sum_i v_i K_i^T Q_i ,      tau dv_i = <K_i^T Q_i, G>,  tau dK_i = v_i Q_i G^T,  tau dQ_i = v_i K_i G .

    Args:
        v: shape (H,).
        key, query: the rows k_ir and q_ir in the eigenbasis of the covariance, shape (H, R, D).
    Raises:
        ValueError: shapes that do not fit, or entries that are not finite.

    Source: arXiv:2501.16265, section 4 (any R: section 5); the other blocks of the layer stay zero.
    """

    v: Float[np.ndarray, " H"]
    key: Float[np.ndarray, "H R D"]
    query: Float[np.ndarray, "H R D"]

    def __post_init__(self):
        v, key, query = (np.array(x, dtype=np.float64) for x in (self.v, self.key, self.query))
        if v.ndim != 1 or key.ndim != 3 or key.shape != query.shape or len(key) != len(v):
            raise ValueError(
                f"`v`, `key` and `query` must have shapes (H,), (H, R, D) and (H, R, D); got {v.shape}, "
                f"{key.shape} and {query.shape}."
            )
        for name, array in (("v", v), ("key", key), ("query", query)):
            if not np.isfinite(array).all():
                raise ValueError(f"`{name}` must be finite; got\n{np.array2string(array)}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def heads(self) -> int:
        """H."""
        return self.key.shape[0]

    @property
    def rank(self) -> int:
        """R."""
        return self.key.shape[1]

    @property
    def dim(self) -> int:
        """D."""
        return self.key.shape[2]

    @property
    def M(self) -> Float[np.ndarray, "D D"]:
        """sum_i v_i K_i^T Q_i."""
        return np.einsum("h,hra,hrb->ab", self.v, self.key, self.query)

    @property
    def vector(self) -> Float[np.ndarray, " P"]:
        """All H (1 + 2 R D) coordinates: v, then key, then query, row by row."""
        return np.concatenate([self.v, self.key.ravel(), self.query.ravel()])

    @classmethod
    def from_vector(cls, vector: Float[np.ndarray, " P"], heads: int, rank: int, dim: int) -> Weights:
        """The weights with these coordinates, in the order of `vector`."""
        v, key, query = np.split(np.asarray(vector), [heads, heads * (1 + rank * dim)])
        return cls(v, key.reshape(heads, rank, dim), query.reshape(heads, rank, dim))

    @property
    def location(self) -> dict[str, float]:
        """The coordinates by the names of `symbolic.linear_attention.separate`, numbered from 1."""
        names = [f"v_{h + 1}" for h in range(self.heads)]
        names += [f"{x}_{h + 1}_{r + 1}_{d + 1}" for x in "kq" for h, r, d in np.ndindex(self.key.shape)]
        return dict(zip(names, map(float, self.vector), strict=True))

    def velocity(self, modes: Modes) -> Float[np.ndarray, " P"]:
        """tau dW/dt = -(1/2) dL/dW, in the order of `vector`."""
        G, scale = modes.residual(self.M), self.v[:, None, None]
        pull = np.einsum("hra,ab,hrb->h", self.key, G, self.query)
        return Weights(pull, scale * (self.query @ G.T), scale * (self.key @ G)).vector

    def turned(self, basis: Float[np.ndarray, "D D"]) -> Weights:
        """The same weights in the coordinates of the tokens, e_d = `basis`[:, d]: M becomes basis M basis^T."""
        return Weights(self.v, self.key @ basis.T, self.query @ basis.T)

    def with_spare_queries(self, query: Float[np.ndarray, "R D"]) -> Weights:
        """The same function with this query in every head that has v = 0 and K = 0."""
        spare = (self.v == 0) & ~self.key.any(axis=(1, 2))
        return Weights(self.v, self.key, np.where(spare[:, None, None], query, self.query))

    def split(self, head: int, share: float = 0.5) -> Weights:
        """The same function with a share of one head (from 1) taken over by the first head that is zero.

        Raises:
            ValueError: there is no such head or no zero head, or the share is not between 0 and 1.
        """
        empty = np.flatnonzero((self.v == 0) & ~(self.key.any((1, 2)) | self.query.any((1, 2))))
        if not 1 <= head <= self.heads or empty.size == 0 or empty[0] == head - 1:
            raise ValueError(
                f"To split head {head}, it must be one of 1 ... {self.heads} and another head must be zero; "
                f"v is {self.v.tolist()}. Take more heads."
            )
        if not 0 < share < 1:
            raise ValueError(f"`share` must lie between 0 and 1; got {share!r}.")
        parts = [np.array(x) for x in (self.v, self.key, self.query)]
        for part in parts:
            part[empty[0]] = part[head - 1] * np.cbrt(share)
            part[head - 1] *= np.cbrt(1 - share)
        return Weights(*parts)
