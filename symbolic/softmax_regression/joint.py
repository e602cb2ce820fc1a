"""Several softmax regressions that share their weights: the sum of their losses.

    L(x) = sum_p L_p(A_p x),    L_p the normalized or rescaled loss of one row, with its target b_p and u = exp

A vector problem is the sum of one. The matrix problem softmax(A1 X A2^T) = B is the sum of m, one for each row of B,
with x = vec(X) row by row and A_p = (A1)_p kron A2. In this form it is asked where the flow stops and what happens
at infinity, once for both.

Source: Gao, Song, Xie, arXiv:2307.02419 (the tensor trick).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from symbolic.field import VectorField
from symbolic.softmax_regression import rules
from symbolic.softmax_regression.data import interpolating_point, symbols_of
from symbolic.softmax_regression.row import Row

__all__ = ["JointRegression", "Place"]

#: What an entry of f is called: i of a vector problem, (j, i) of the matrix P; from 1.
Place = int | tuple[int, int]


@dataclass(frozen=True)
class JointRegression:
    """The sum of m softmax regressions (A_p, b_p) in the same weights x; made by `joint` of a vector or matrix model.

    Args:
        weights: x_1 ... x_d.
        blocks: A_p, shape (n_p, d) each; one row is allowed, whose normalized loss is a constant.
        targets: b_p, n_p entries each.
        normalization: "normalized" or "rescaled", the same for all.
        places: what the model that it comes from calls each entry of f_p.
        source: where the losses come from.
    """

    weights: tuple[sp.Symbol, ...]
    blocks: tuple[sp.ImmutableMatrix, ...]
    targets: tuple[tuple[sp.Expr, ...], ...]
    normalization: str
    places: tuple[tuple[Place, ...], ...]
    source: str = ""

    @cached_property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        entries = [entry for block in self.blocks for entry in block]
        return symbols_of((*entries, *(b for target in self.targets for b in target)))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The losses L_p as functions of their logits A_p x."""
        x = sp.Matrix(self.weights)
        parts = zip(self.blocks, self.targets, strict=True)
        return tuple(Row(tuple(block * x), target, self.normalization) for block, target in parts)

    @cached_property
    def loss(self) -> sp.Expr:
        """sum_p L_p."""
        return sp.Add(*(row.loss for row in self.rows))

    @cached_property
    def gradient(self) -> sp.ImmutableMatrix:
        """grad L, shape (d, 1): sum_p A_p^T dL_p/ds, each in the form to compute with."""
        total = sp.zeros(len(self.weights), 1)
        for row, block in zip(self.rows, self.blocks, strict=True):
            total += row.pull_back(block)
        return sp.ImmutableMatrix(total)

    @cached_property
    def flow(self) -> VectorField:
        """x' = -grad L."""
        return rules.flow(self.weights, tuple(self.gradient), self.parameters, self.source)

    @cached_property
    def flat_conditions(self) -> sp.ImmutableMatrix:
        """The matrix that sends to zero the directions along which the loss is constant, whatever the b_p are."""
        return rules.flat_conditions(self.blocks, self.normalization)

    def interpolation(self) -> dict[sp.Symbol, sp.Expr]:
        """A point with f_p = b_p for every p; unique up to flat directions.

        Raises:
            ValueError: no such point exists, and why.
            UndecidedError: whether one exists could not be decided.
        """
        return dict(zip(self.weights, interpolating_point(self.blocks, self.targets), strict=True))
