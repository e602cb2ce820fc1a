"""Where merged key and query stops: two functions, each computed by a manifold of weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fixedpoints.linear_attention.modes import Modes, checked_heads

__all__ = ["FixedPointSet", "merged"]


@dataclass(frozen=True, eq=False)
class FixedPointSet:
    """All weights of one function at which the flow stops.

    Args:
        name: "zero" or "optimum".
        equation: in words, which weights they are.
        modes: the learned modes, from 1.
        loss: L on the set.
        dimension: of the set in parameter space.
        index: (negative, zero, positive) eigenvalues of the Hessian, everywhere on the set.
        stability: "strict saddle" or "stable".
        representative: in words, the weights to which the eigenvalues belong; they differ along the set.
        hessian_eigenvalues: there, rising; P = H (D^2 + 1).
    """

    name: str
    equation: str
    modes: tuple[int, ...]
    loss: float
    dimension: int
    index: tuple[int, int, int]
    stability: str
    representative: str
    hessian_eigenvalues: Float[np.ndarray, " P"]

    def eigenvalues(self, time_constant: float = 1.0) -> Float[np.ndarray, " P"]:
        """Of the flow's Jacobian at the representative, in 1/time, falling: -(Hessian)/(2 tau).

        Raises:
            ValueError: the time constant is not positive.
        """
        if not time_constant > 0:
            raise ValueError(f"`time_constant` must be positive; got {time_constant!r}.")
        return 0.0 - self.hessian_eigenvalues / (2 * time_constant)


def merged(eigenvalues: Iterable[float], context: float, heads: int) -> tuple[FixedPointSet, FixedPointSet]:
    """Both sets of fixed points of  tau dU_i = v_i G, tau dv_i = <U_i, G>,  complete; M = sum_i v_i U_i.

    If some v_i is not zero then G = 0, that is M = M*. Else G = Lambda^2, and <U_i, Lambda^2> = 0 for every head.

    Raises:
        ValueError: an eigenvalue is not positive and finite, they do not fall, N < 1 or H < 1.

    Source: arXiv:2501.16265, section 3; proven on the derived flow in `symbolic.linear_attention.merged`.
    """
    task, H = Modes(tuple(eigenvalues), context), checked_heads(heads)
    D, P = task.dim, H * (task.dim**2 + 1)
    growth = float(np.sqrt(np.sum(task.eigenvalues**4)))
    origin = np.sort(np.concatenate([np.full(H, -2 * growth), np.zeros(P - 2 * H), np.full(H, 2 * growth)]))
    zero = FixedPointSet(
        "zero",
        "v_i = 0 and tr(Lambda^2 U_i) = 0 for every head",
        (),
        task.trace,
        H * (D**2 - 1),
        (H, H * (D**2 - 1), H),
        "strict saddle",
        "all weights zero",
        origin,
    )
    optimum = FixedPointSet(
        "optimum",
        "sum_i v_i U_i = M* = diag(1/(lambda_d a_d))",
        tuple(range(1, D + 1)),
        float(task.trace - task.drops.sum()),
        P - D**2,
        (0, P - D**2, D**2),
        "stable",
        "balanced: v_i = r_i |M*|^(1/2), U_i = r_i M*/|M*|^(1/2) with |r| = 1",
        _at_optimum(task, P),
    )
    return zero, optimum


def _at_optimum(task: Modes, P: int) -> Float[np.ndarray, " P"]:
    """The eigenvalues of 2 J^T (S kron Lambda) J,  J J^T = s^2 I + vec(M*) vec(M*)^T / s^2,  s^2 = |M*|_F.

    Entries of M off the diagonal stand alone: 2 s^2 S_a lambda_b.
    """
    weight, size = np.outer(task.features, task.eigenvalues), float(np.linalg.norm(task.optimum))
    alone = 2 * size * weight[~np.eye(task.dim, dtype=bool)]
    root = np.sqrt(2 * np.diag(weight))
    motion = size * np.eye(task.dim) + np.outer(task.optimum, task.optimum) / size
    together = np.linalg.eigvalsh(root[:, None] * motion * root)
    return np.sort(np.concatenate([np.zeros(P - task.dim**2), alone, together]))
