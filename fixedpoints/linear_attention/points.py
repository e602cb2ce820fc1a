"""One function at which separate key and query can stop, and the simplest weights that compute it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np
import sympy as sp
from jaxtyping import Float

from fixedpoints.linear_attention.curvature import count_signs, structured_eigenvalues
from fixedpoints.linear_attention.modes import Modes, checked_heads, checked_rank
from fixedpoints.linear_attention.weights import Weights
from fixedpoints.points import Component

__all__ = ["Point"]


@dataclass(frozen=True, eq=False)
class Point:
    """M_S = sum_{d in S} p_d e_d e_d^T, the function that has learned the modes S, with structured weights for it.

    Structured: heads take the modes of S in order, R each, with v_i = (sum p_d)^(1/3) over the modes of head i and
    k_ir = q_ir = kappa_d e_d, kappa_d^2 = p_d/v_i (R = 1: v = |k| = |q| = (lambda_d a_d)^(-1/3)); all else is zero.
    The index is that of these weights: other weights of the same function may have another
    (`fixedpoints.linear_attention.conditions`).

    Args:
        task: the numbers of the modes.
        modes: S, numbered from 1, rising.
        heads, rank: H and R.
    Raises:
        ValueError: there is no such mode, one is named twice, or there are more than H R.

    Source: arXiv:2501.16265, sections 4 and 5; eigenvalues and index are derived in
    `fixedpoints.linear_attention.curvature`.
    """

    task: Modes
    modes: tuple[int, ...]
    heads: int
    rank: int = 1

    def __post_init__(self):
        H, R = checked_heads(self.heads), checked_rank(self.rank, self.task.eigenvalues)
        given = tuple(self.modes)
        whole = all(isinstance(d, Integral) and not isinstance(d, bool) for d in given)
        if not whole or not all(1 <= d <= self.task.dim for d in given) or len(set(given)) != len(given):
            raise ValueError(f"`modes` must be different numbers from 1 to D = {self.task.dim}; got {given}.")
        if len(given) > H * R:
            raise ValueError(
                f"{H} heads of rank {R} compute M of rank at most {H * R}, so that the flow stops at no function "
                f"with {len(given)} learned modes; got {given}. Take more heads."
            )
        object.__setattr__(self, "modes", tuple(sorted(map(int, given))))

    def __repr__(self) -> str:
        learned = ", ".join(map(str, self.modes))
        return f"Point(modes=({learned}), loss={self.loss:.6g}, index={self.index}, {self.stability})"

    @property
    def loss(self) -> float:
        """L(M_S) = tr(Lambda) - sum_{d in S} lambda_d / a_d."""
        return float(self.task.trace - self.task.drops[self._places].sum())

    @property
    def M(self) -> Float[np.ndarray, " D"]:
        """The diagonal of M_S: p_d for learned modes, else 0."""
        diagonal = np.zeros(self.task.dim)
        diagonal[self._places] = self.task.optimum[self._places]
        return diagonal

    @property
    def counts(self) -> tuple[int, ...]:
        """How many modes are learned in each eigenspace."""
        return self.task.counts(self._places)

    @property
    def dimension(self) -> int:
        """Dimension of the set of functions of this kind at which the flow stops: sum_j m_j (g_j - m_j).

        0, an isolated function, if all eigenvalues differ: m_j of g_j equal modes may be any m_j-dimensional
        subspace of their eigenspace, a point of a Grassmannian.
        """
        return sum(c * (len(s) - c) for c, s in zip(self.counts, self.task.spaces, strict=True))

    @property
    def assigned(self) -> tuple[tuple[int, ...], ...]:
        """The modes of each head that is not zero, in the structured weights."""
        return tuple(self.modes[i : i + self.rank] for i in range(0, len(self.modes), self.rank))

    @property
    def weights(self) -> Weights:
        """The structured weights."""
        v, key = np.zeros(self.heads), np.zeros((self.heads, self.rank, self.task.dim))
        for i, head in enumerate(self.assigned):
            shares = self.task.optimum[[d - 1 for d in head]]
            v[i] = np.cbrt(shares.sum())
            for r, (d, share) in enumerate(zip(head, shares, strict=True)):
                key[i, r, d - 1] = np.sqrt(share / v[i])
        return Weights(v, key, key)

    @property
    def index(self) -> tuple[int, int, int]:
        """(negative, zero, positive) eigenvalues of the Hessian at the structured weights, by formula."""
        return count_signs(self.task, self.counts, self.heads, self.rank, active=len(self.assigned))

    @cached_property
    def hessian_eigenvalues(self) -> Float[np.ndarray, " P"]:
        """Of the loss at the structured weights, rising; P = H (1 + 2 R D)."""
        places = [[d - 1 for d in head] for head in self.assigned]
        return structured_eigenvalues(self.task, places, self.rank, self.heads)

    def eigenvalues(self, time_constant: float = 1.0) -> Float[np.ndarray, " P"]:
        """Of the flow's Jacobian at the structured weights, in 1/time, falling: -(Hessian)/(2 tau).

        The first is the rate at which training escapes, if it is positive.

        Raises:
            ValueError: the time constant is not positive.
        """
        if not time_constant > 0:
            raise ValueError(f"`time_constant` must be positive; got {time_constant!r}.")
        return 0.0 - self.hessian_eigenvalues / (2 * time_constant)

    @property
    def stability(self) -> str:
        """ "stable", "strict saddle" or "non-strict saddle", of the structured weights.

        Stable: a global minimum, or for H R < D the best predictor of rank H R; the loss is a Lyapunov function.
        Strict: some eigenvalue of the Hessian is negative, so that training escapes exponentially. Non-strict:
        none is, yet the loss falls at third order along v, k and q of a head that is zero, so that training
        escapes algebraically, like 1/(t* - t).
        """
        negative, _, _ = self.index
        if negative:
            return "strict saddle"
        full = len(self.modes) == min(self.task.dim, self.heads * self.rank)
        return "stable" if full else "non-strict saddle"

    @property
    def component(self) -> Component:
        """The functions of this kind, by equations in the entries M_<row>_<column>, and the dimension of the set."""
        D, equations = self.task.dim, []
        M = sp.Matrix(D, D, lambda a, b: sp.Symbol(f"M_{a + 1}_{b + 1}"))
        for space, count in zip(self.task.spaces, self.counts, strict=True):
            share = sp.Float(float(self.task.optimum[space[0]]))
            block = M.extract(list(space), list(space))
            size = len(space)
            if count in (0, size):
                equations += list(block - count // size * share * sp.eye(size))
            else:
                equations += [block[i, j] - block[j, i] for i in range(size) for j in range(i)]
                equations += list(block * block - share * block)
                equations.append(block.trace() - count * share)
            equations += [M[a, b] for a in space for b in range(D) if b not in space]
        return Component(tuple(equations), self.dimension)

    @property
    def _places(self) -> list[int]:
        return [d - 1 for d in self.modes]
