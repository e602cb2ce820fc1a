"""Whether the flow of separate key and query stops at given weights, condition by condition, and its index there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from fixedpoints.linear_attention.curvature import count_signs
from fixedpoints.linear_attention.modes import Modes
from fixedpoints.linear_attention.weights import Weights

__all__ = ["Conditions", "conditions"]


@dataclass(frozen=True, eq=False)
class Conditions:
    """What holds at a point of the parameter space; the flow stops there iff C1, C2 and C3' hold.

    Args:
        c1: M = sum_d p_d e_d e_d^T over some modes; for repeated eigenvalues, over a subspace of each eigenspace.
        c2: the rows of K_i and Q_i lie in the learned subspace, for every head with v_i != 0.
        c3_prime: sum_r sum_{d not learned} lambda_d^2 k_ird q_ird = 0, for every head with v_i = 0.
        c3: the condition of the paper's text, K_i or Q_i in the learned subspace for every head with v_i = 0:
            sufficient in place of C3', and not necessary.
        counts: dimension of the learned subspace in each eigenspace; None where C1 fails.
        speed: max |tau dW/dt|, which the conditions do not use.
        index: (negative, zero, positive) eigenvalues of the Hessian by formula; None where the flow does not stop.
    """

    c1: bool
    c2: bool
    c3_prime: bool
    c3: bool
    counts: tuple[int, ...] | None
    speed: float
    index: tuple[int, int, int] | None

    @property
    def is_fixed_point(self) -> bool:
        return self.c1 and self.c2 and self.c3_prime


def conditions(weights: Weights, modes: Modes, tolerance: float = 1e-9) -> Conditions:
    """Judge C1, C2, C3' and C3 at these weights, each to `tolerance` relative to the weights of learned modes.

    With X = M diag(lambda_d a_d), C1 says that X is an orthogonal projector that commutes with Lambda, C2 that
    (1 - X) K_i^T = (1 - X) Q_i^T = 0, and C3' that <K_i, Q_i Lambda^2 (1 - X)> = 0. The same X serves repeated
    eigenvalues, where the learned subspace need not be spanned by given eigenvectors.

    Raises:
        ValueError: the weights are of another dimension than the task, or the tolerance is not positive.

    Source: arXiv:2501.16265, conditions C1 to C3 for rank one; here for any R, with C3 weakened to what is necessary.
    """
    if weights.dim != modes.dim:
        raise ValueError(
            f"The weights are of dimension D = {weights.dim}, the task has {modes.dim} eigenvalues; "
            "they must agree."
        )
    if not tolerance > 0:
        raise ValueError(f"`tolerance` must be positive; got {tolerance!r}.")
    X = weights.M / modes.optimum
    counts = _projector(X, modes, tolerance)
    size = max(np.cbrt(modes.optimum.max()), np.abs(weights.key).max(), np.abs(weights.query).max())
    silent = np.abs(weights.v) <= tolerance * np.cbrt(modes.optimum.max())
    rest = np.eye(modes.dim) - X
    loose_key, loose_query = (
        np.abs(rows @ rest).max(axis=(1, 2)) > tolerance * size for rows in (weights.key, weights.query)
    )
    pull = np.einsum("hrd,d,hrd->h", weights.key @ rest, modes.eigenvalues**2, weights.query)
    pulled = np.abs(pull) > tolerance * (modes.eigenvalues[0] * size) ** 2
    loose = loose_key | loose_query
    c1, c2, c3_prime = counts is not None, not (loose & ~silent).any(), not (pulled & silent).any()
    stops = c1 and c2 and c3_prime
    return Conditions(
        c1=c1,
        c2=c2,
        c3_prime=c3_prime,
        c3=not (loose_key & loose_query & silent).any(),
        counts=counts,
        speed=float(np.abs(weights.velocity(modes)).max()),
        index=_index(modes, counts, weights, silent, loose) if stops and counts is not None else None,
    )


def _projector(X: Float[np.ndarray, "D D"], modes: Modes, tolerance: float) -> tuple[int, ...] | None:
    """The ranks of X in the eigenspaces if X is a projector on subspaces of them, else None."""
    inside = np.zeros(X.shape, dtype=bool)
    for space in modes.spaces:
        inside[np.ix_(space, space)] = True
    gaps = (X[~inside], X - X.T, X @ X - X)
    if any(gap.size and np.abs(gap).max() > tolerance for gap in gaps):
        return None
    return tuple(round(float(X[space, space].sum())) for space in modes.spaces)


def _index(
    modes: Modes,
    counts: tuple[int, ...],
    weights: Weights,
    silent: Bool[np.ndarray, " H"],
    loose: Bool[np.ndarray, " H"],
) -> tuple[int, int, int]:
    return count_signs(
        modes,
        counts,
        weights.heads,
        weights.rank,
        active=int(np.sum(~silent)),
        loaded=int(np.sum(silent & loose)),
    )
