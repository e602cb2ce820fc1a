"""The Hessian of the loss of separate key and query: as a matrix anywhere, and its index at every fixed point.

Let X project on the learned subspace of a fixed point, of dimension m, and let b run over the D - m modes outside
it. To second order in a step (dv, dK, dQ) the loss changes by

    sum_ab S_a lambda_b (dM_ab)^2 - 2 <G, sum_i dv_i (dK_i^T Q_i + K_i^T dQ_i) + v_i dK_i^T dQ_i>,

and G = Lambda^2 (I - X) there. Three kinds of directions do not mix:

* In the learned subspace the A R >= m rows of the A heads with v_i != 0 move M freely: m^2 positive.
* For each b, the rows of those heads split into m combinations that carry M and A R - m that do not. Each
  learned a gives [[2 v p_a S_b lambda_a, -2 v lambda_b^2], [-2 v lambda_b^2, 2 v p_a S_a lambda_b]], which has one
  positive eigenvalue, and one of the sign of lambda_a - lambda_b. Each of the others gives +- one: the second term
  alone acts on it, and is not degenerate.
* A head with v_i = 0 whose K_i or Q_i leaves the learned subspace: dv_i multiplies a combination of dK_i and dQ_i
  that occurs nowhere else, which gives +- one.

Every remaining direction has the eigenvalue zero. So, with B the number of heads of the last kind,

    negative = #{a learned, b not: lambda_b > lambda_a} + (A R - m)(D - m) + B
    positive = m^2 + 2 m (D - m) - #{lambda_b >= lambda_a} + (A R - m)(D - m) + B .
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from fixedpoints.linear_attention.modes import Modes
from fixedpoints.linear_attention.weights import Weights

__all__ = ["ZERO", "count_signs", "hessian", "inertia", "structured_eigenvalues"]

Index = tuple[int, int, int]

#: An eigenvalue of a Hessian matrix counts as zero below this fraction of the largest.
ZERO = 1e-9


def hessian(weights: Weights, modes: Modes) -> Float[np.ndarray, "P P"]:
    """d^2 L / dW^2 of  L(M),  M = sum_i v_i K_i^T Q_i, at any weights; the flow's Jacobian is -1/(2 tau) of it.

    2 J^T (S kron Lambda) J - 2 sum_ab G_ab d^2 M_ab,  J = dM/dW; coordinates in the order of `Weights.vector`.

    Raises:
        ValueError: the weights are of another dimension than the task.
    """
    _check_dim(weights, modes)
    (H, R, D), v = weights.key.shape, weights.v
    G = modes.residual(weights.M)
    head = np.repeat(np.arange(H), R)
    keys, queries = weights.key.reshape(-1, D), weights.query.reshape(-1, D)
    unit = np.eye(D)
    slopes = np.concatenate(
        [
            np.einsum("hra,hrb->hab", weights.key, weights.query),
            np.einsum("i,ib,ac->icab", v[head], queries, unit).reshape(-1, D, D),
            np.einsum("i,ia,bc->icab", v[head], keys, unit).reshape(-1, D, D),
        ]
    ).reshape(-1, D * D)
    curvature = 2 * (slopes * np.outer(modes.features, modes.eigenvalues).ravel()) @ slopes.T
    bend = np.zeros_like(curvature)
    at = np.arange(H * R * D).reshape(H * R, D)
    k, q = H + at, H + at.size + at
    bend[head[:, None], k] = queries @ G.T
    bend[head[:, None], q] = keys @ G
    bend[k[:, :, None], q[:, None, :]] = v[head, None, None] * G
    return curvature - 2 * (bend + bend.T)


def count_signs(
    modes: Modes, counts: Sequence[int], heads: int, rank: int, *, active: int, loaded: int = 0
) -> Index:
    """(negative, zero, positive) eigenvalues of the Hessian at a fixed point, by the formula of the module's text.

    Args:
        counts: dimension of the learned subspace in each of the task's eigenspaces.
        active: A, the number of heads with v != 0.
        loaded: B, the number of heads with v = 0 whose key or query leaves the learned subspace.
    """
    D, m = modes.dim, sum(counts)
    sizes = [len(space) for space in modes.spaces]
    ties = sum(c * (g - c) for c, g in zip(counts, sizes, strict=True))
    larger = [sum(sizes[:j]) - sum(counts[:j]) for j in range(len(counts))]
    inverted = sum(c * n for c, n in zip(counts, larger, strict=True))
    both = (active * rank - m) * (D - m) + loaded
    negative, positive = inverted + both, m**2 + 2 * m * (D - m) - inverted - ties + both
    return negative, heads * (1 + 2 * rank * D) - negative - positive, positive


def inertia(matrix: Float[np.ndarray, "P P"], zero: float = ZERO) -> Index:
    """(negative, zero, positive) eigenvalues of a symmetric matrix; below `zero` times the largest is zero."""
    values = np.linalg.eigvalsh(matrix)
    level = zero * np.abs(values).max()
    negative, positive = int(np.sum(values < -level)), int(np.sum(values > level))
    return negative, len(values) - negative - positive, positive


def structured_eigenvalues(
    modes: Modes, assigned: Sequence[Sequence[int]], rank: int, heads: int
) -> Float[np.ndarray, " P"]:
    """The eigenvalues of the Hessian at a structured point, rising, from its blocks of size 1, 2 and at most R.

    Args:
        assigned: for each head that is not zero, the places (from 0) of the modes that it carries.
    """
    lam, S, p = modes.eigenvalues, modes.features, modes.optimum
    learned = np.array([d for head in assigned for d in head], dtype=int)
    others = np.setdiff1d(np.arange(modes.dim), learned)
    # v^2 kappa_d^2 = v p_d of the head that carries mode d.
    strength = np.zeros(modes.dim)
    found: list[np.ndarray] = []
    for places in map(list, assigned):
        v = np.cbrt(p[places].sum())
        strength[places] = v * p[places]
        # dM_dd = v kappa_d (dk + dq) + kappa_d^2 dv.
        scale, shares = np.sqrt(2 * S[places] * lam[places]), p[places] / v
        gram = np.outer(scale, scale) * (np.diag(2 * strength[places]) + np.outer(shares, shares))
        found.append(np.linalg.eigvalsh(gram))
        spare = np.tile(2 * v * lam[others] ** 2, rank - len(places))
        found += [spare, -spare]
    pairs = 2 * np.outer(S, lam) * (strength[:, None] + strength)
    found.append(pairs[np.ix_(learned, learned)][~np.eye(len(learned), dtype=bool)])
    found += _exchange(modes, learned, others, strength[learned])
    values = np.concatenate(found)
    return np.sort(np.concatenate([values, np.zeros(heads * (1 + 2 * rank * modes.dim) - len(values))]))


def _exchange(
    modes: Modes,
    learned: Int[np.ndarray, " m"],
    others: Int[np.ndarray, " n"],
    strength: Float[np.ndarray, " m"],
) -> list[Float[np.ndarray, " mn"]]:
    """The larger and the smaller eigenvalues of the blocks of each learned mode a and each other mode b.

    The smaller one is the determinant over the larger, and the determinant is taken in the form that does not cancel:
    4 v^2 lambda_b^3 (lambda_a a_b - lambda_b a_a)/a_a, whose bracket has the factor lambda_a - lambda_b.
    """
    x, y = modes.eigenvalues[learned][:, None], modes.eigenvalues[others]
    a, weight = modes.a[learned][:, None], strength[:, None]
    # v = strength / p_a, and p_a = 1/(lambda_a a_a).
    v = weight * x * a
    first, second = 2 * weight * modes.features[others] * x, 2 * weight * modes.features[learned][:, None] * y
    large = (first + second) / 2 + np.hypot((first - second) / 2, 2 * v * y**2)
    bracket = (x - y) * (1 + (1 + modes.trace * (x + y) / (x * y)) / modes.context)
    bracket[modes.space[learned][:, None] == modes.space[others]] = 0.0
    return [large.ravel(), (4 * v**2 * y**3 * bracket / a / large).ravel()]


def _check_dim(weights: Weights, modes: Modes) -> None:
    if weights.dim != modes.dim:
        raise ValueError(
            f"The weights are of dimension D = {weights.dim}, the task has {modes.dim} eigenvalues; "
            "they must agree."
        )
