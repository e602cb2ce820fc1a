"""The task as the fixed points see it: one number per eigenmode of the token covariance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Integral, Real

import numpy as np
from jaxtyping import Float, Int

__all__ = ["EQUAL", "Modes", "checked_heads", "checked_rank"]

#: Eigenvalues that agree to this relative difference count as one, repeated: such a difference is rounding.
EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class Modes:
    """The eigenmodes of in-context linear regression, shape (D,) each:

        a_d = 1 + (1 + tr/lambda_d)/N,   S_d = lambda_d^2 a_d,   p_d = 1/(lambda_d a_d),   drop_d = lambda_d/a_d

    Args:
        eigenvalues: lambda_1 >= ... >= lambda_D > 0 of the token covariance.
        context: N >= 1, the number of context pairs; need not be whole, since varying lengths act as one N.
    Raises:
        ValueError: an eigenvalue is not positive and finite, they do not fall, or N < 1.

    Source: arXiv:2501.16265, sections 2 to 4.
    """

    eigenvalues: Float[np.ndarray, " D"]
    context: float

    def __post_init__(self):
        given = np.array(self.eigenvalues, dtype=np.float64)
        if given.ndim != 1 or given.size == 0 or not (np.isfinite(given).all() and (given > 0).all()):
            raise ValueError(
                f"`eigenvalues` must be positive and finite, one for each dimension; got {given.tolist()}. "
                "A direction without variance cannot be learned: leave it out."
            )
        if (np.diff(given) > 0).any():
            raise ValueError(
                f"`eigenvalues` must fall, since mode d is the d-th largest; got {given.tolist()}. "
                f"Give {np.sort(given)[::-1].tolist()}."
            )
        if not isinstance(self.context, Real) or isinstance(self.context, bool) or not self.context >= 1:
            raise ValueError(
                f"`context` is the number N of context pairs, the query not counted, and must be at least 1; "
                f"got {self.context!r}."
            )
        given.setflags(write=False)
        object.__setattr__(self, "eigenvalues", given)

    @property
    def dim(self) -> int:
        """D."""
        return len(self.eigenvalues)

    @cached_property
    def trace(self) -> float:
        """tr(Lambda) = E[y_q^2], the loss of the predictor 0."""
        return math.fsum(self.eigenvalues)

    @cached_property
    def a(self) -> Float[np.ndarray, " D"]:
        return 1 + (1 + self.trace / self.eigenvalues) / self.context

    @cached_property
    def features(self) -> Float[np.ndarray, " D"]:
        """S_d, the eigenvalues of S = E[Lhat^2]."""
        return self.eigenvalues**2 * self.a

    @cached_property
    def optimum(self) -> Float[np.ndarray, " D"]:
        """p_d, the eigenvalues of the optimum M*."""
        return 1 / (self.eigenvalues * self.a)

    @cached_property
    def drops(self) -> Float[np.ndarray, " D"]:
        """lambda_d/a_d, by which the loss falls when mode d is learned."""
        return self.eigenvalues / self.a

    @cached_property
    def spaces(self) -> tuple[range, ...]:
        """The eigenspaces: for each, the places (from 0) of its modes."""
        fall = np.flatnonzero(-np.diff(self.eigenvalues) > EQUAL * self.eigenvalues[:-1]) + 1
        ends = [0, *map(int, fall), self.dim]
        return tuple(range(low, high) for low, high in pairwise(ends))

    @cached_property
    def space(self) -> Int[np.ndarray, " D"]:
        """The number (from 0) of the eigenspace of each mode."""
        return np.repeat(np.arange(len(self.spaces)), [len(space) for space in self.spaces])

    def counts(self, places: Iterable[int]) -> tuple[int, ...]:
        """How many of the modes at these places lie in each eigenspace."""
        found = np.bincount(self.space[list(places)], minlength=len(self.spaces))
        return tuple(map(int, found))

    def residual(self, M: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"]:
        """G(M) = -(1/2) dL/dM = Lambda^2 - S M Lambda."""
        return np.diag(self.eigenvalues**2) - self.features[:, None] * M * self.eigenvalues

    def loss(self, M: Float[np.ndarray, "D D"]) -> float:
        """L(M) = tr(Lambda) - 2 tr(Lambda^2 M) + tr(S M Lambda M^T)."""
        square = np.sum(self.features[:, None] * M**2 * self.eigenvalues)
        return float(self.trace - 2 * np.sum(self.eigenvalues**2 * np.diag(M)) + square)


def checked_heads(heads: int) -> int:
    """H, or a ValueError unless it is a whole number >= 1."""
    if isinstance(heads, bool) or not isinstance(heads, Integral) or heads < 1:
        raise ValueError(f"`heads` is the number H of heads and must be a whole number >= 1; got {heads!r}.")
    return int(heads)


def checked_rank(rank: int, eigenvalues: Sequence[float] | np.ndarray) -> int:
    """R, or a ValueError unless it is a whole number from 1 to D."""
    dim = len(eigenvalues)
    if isinstance(rank, bool) or not isinstance(rank, Integral) or not 1 <= rank <= dim:
        raise ValueError(
            f"`rank` is the number R of rows of a head's key and query matrices and must be a whole number "
            f"from 1 to D = {dim}; got {rank!r}."
        )
    return int(rank)
