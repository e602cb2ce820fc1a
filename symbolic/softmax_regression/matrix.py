"""Softmax regression with a matrix of targets: find X with softmax(A1 X A2^T) = B, row by row.

    normalized   L(X)  = (1/2) |P - B|_F^2              P = diag(U 1)^{-1} U,  U = exp(Z),  Z = A1 X A2^T
    rescaled     Lr(X) = (1/2) |U - diag(U 1) B|_F^2

A1 has m rows of length d1, A2 has n rows of length d2, X is d1 x d2 and B is m x n; the paper has m = n and d1 = d2.

The tensor trick, in one convention: vec is row-major, X_kl sits in slot (k - 1) d2 + l, and then

    vec(A1 X A2^T) = (A1 kron A2) vec(X),    row j of Z = A_[j] vec(X),    A_[j] = (A1)_j kron A2.

So the loss is the sum of m single regressions (A_[j], B_j) that share X. (Column-major vec, SymPy's own `Matrix.vec`,
has A2 kron A1, and its contiguous blocks are columns of Z.) The gradient never needs the Kronecker product,

    dL/dX = A1^T G A2,   G = P * C - diag((P * C) 1) P,  C = P - B;   rescaled G = U * (R - ((B * R) 1) 1^T).

Source: Gao, Song, Xie, arXiv:2307.02419.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import sympy as sp

from symbolic.closed_form import ClosedForm
from symbolic.conservation import FirstIntegral
from symbolic.field import IteratedMap, VectorField
from symbolic.reduction import Reduction
from symbolic.softmax_regression import rules
from symbolic.softmax_regression.data import letters, matrix, symbols_of, where
from symbolic.softmax_regression.joint import JointRegression
from symbolic.softmax_regression.row import Row
from symbolic.softmax_regression.vector import SoftmaxRegression
from symbolic.zero import is_zero

__all__ = ["MatrixSoftmaxRegression", "model"]

_SOURCE = "Gao, Song, Xie 2023, arXiv:2307.02419"


@lru_cache(maxsize=32, typed=True)
def model(*, n: int, d: int, loss: str = "normalized", rows: int | None = None) -> MatrixSoftmaxRegression:
    """Matrix softmax regression with letters A1_<i>_<j>, A2_<i>_<j>, B_<i>_<j>; numbers by `model(...).at(A1, A2, B)`.

    Args:
        n, d: the shape of A2, and of A1.
        loss: "normalized" or "rescaled".
        rows: of A1 and B, where it is not n.
    Raises:
        ValueError: a size is not a positive integer, there is no such loss, or nothing is left to descend.
    """
    rows = n if rows is None else rows
    return MatrixSoftmaxRegression(letters("A1", rows, d), letters("A2", n, d), letters("B", rows, n), loss)


@dataclass(frozen=True)
class MatrixSoftmaxRegression:
    """Matrix softmax regression; A1, A2 and B hold letters (`model`) or numbers (`at`). All derivatives are proven.

    Weights: X_1_1 ... X_d1_d2 row by row; parameters: the symbols of A1, A2 and B, each row by row.

    Args:
        A1: shape (m, d1). A2: shape (n, d2). B: shape (m, n), any finite numbers.
        normalization: "normalized" or "rescaled".
    Raises:
        ValueError: shapes do not match, an entry is not finite, or A2 has one row with the normalized loss.
    """

    A1: sp.ImmutableMatrix
    A2: sp.ImmutableMatrix
    B: sp.ImmutableMatrix
    normalization: str = "normalized"

    def __post_init__(self):
        for name in ("A1", "A2", "B"):
            object.__setattr__(self, name, matrix(name, getattr(self, name)))
        if self.B.shape != (self.A1.rows, self.A2.rows):
            raise ValueError(
                f"`B` must have a row for each row of A1 and a column for each row of A2, shape "
                f"{(self.A1.rows, self.A2.rows)}; got {self.B.shape}."
            )
        if self.A2.rows == 1 and self.normalization == "normalized":
            raise ValueError(
                "With one row in A2 every softmax is 1 whatever X is, so that the normalized loss is constant "
                "and there is nothing to descend; got A2 with 1 row. Use n >= 2 or loss='rescaled'."
            )
        _ = self.rows  # refuses a loss that does not exist

    # --- definition
    # -------------------------------------------------------------------------------------------

    @cached_property
    def X(self) -> sp.ImmutableMatrix:
        """The weights as a matrix, shape (d1, d2)."""
        return letters("X", self.A1.cols, self.A2.cols)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights, (d1, d2)."""
        return self.A1.cols, self.A2.cols

    @property
    def weights(self) -> tuple[sp.Symbol, ...]:
        """vec(X), row by row."""
        return tuple(self.X)

    @cached_property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        return symbols_of((*self.A1, *self.A2, *self.B))

    @cached_property
    def Z(self) -> sp.ImmutableMatrix:
        """Z = A1 X A2^T, the logits, shape (m, n)."""
        return (self.A1 * self.X * self.A2.T).applyfunc(sp.expand)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The m rows, each a loss of its logits."""
        return tuple(
            Row(tuple(self.Z.row(j)), tuple(self.B.row(j)), self.normalization) for j in range(self.A1.rows)
        )

    @cached_property
    def P(self) -> sp.ImmutableMatrix:
        """The softmax of each row of Z, shape (m, n)."""
        return sp.ImmutableMatrix([row.f for row in self.rows])

    @cached_property
    def residual(self) -> sp.ImmutableMatrix:
        """What the loss squares, shape (m, n): C = P - B, or R = U - diag(U 1) B of the rescaled loss."""
        return sp.ImmutableMatrix([row.residual for row in self.rows])

    @cached_property
    def loss(self) -> sp.Expr:
        """(1/2) |residual|_F^2, the sum of the rows' losses."""
        return sp.Add(*(row.loss for row in self.rows))

    @cached_property
    def label(self) -> str:
        """Where the rows of B lie: inside the simplex, on its boundary or outside."""
        return "; ".join(where(tuple(self.B.row(j)), f"row {j + 1} of B") for j in range(self.B.rows))

    def at(self, A1: Sequence, A2: Sequence, B: Sequence) -> MatrixSoftmaxRegression:
        """The same problem with numbers, or expressions in new parameters, in the place of the letters.

        A float is the exact rational that it is.

        Raises:
            ValueError: a shape differs from the model's, or an entry is not finite.
        """
        given = {"A1": matrix("A1", A1), "A2": matrix("A2", A2), "B": matrix("B", B)}
        for name, value in given.items():
            if value.shape != getattr(self, name).shape:
                raise ValueError(f"`{name}` must have shape {getattr(self, name).shape}; got {value.shape}.")
        return replace(self, **given)

    # --- the tensor trick
    # -------------------------------------------------------------------------------------

    @cached_property
    def kronecker(self) -> sp.ImmutableMatrix:
        """K = A1 kron A2, shape (m n, d1 d2), with  vec(A1 X A2^T) = K vec(X)  for row-major vec, proven."""
        K = sp.ImmutableMatrix(sp.kronecker_product(self.A1, self.A2))
        gap = K * sp.Matrix(list(self.X)) - sp.Matrix(list(self.Z))
        if any(sp.expand(entry) != 0 for entry in gap):
            raise AssertionError("A1 kron A2 does not carry vec(X) to vec(A1 X A2^T)")
        return K

    @cached_property
    def blocks(self) -> tuple[sp.ImmutableMatrix, ...]:
        """A_[j] = (A1)_j kron A2, shape (n, d1 d2), one for each row j of Z = A_[j] vec(X)."""
        n = self.A2.rows
        return tuple(self.kronecker[j * n : (j + 1) * n, :] for j in range(self.A1.rows))

    @cached_property
    def singles(self) -> tuple[SoftmaxRegression, ...]:
        """The m single regressions (A_[j], B_j), each in its own x_1 ... x_(d1 d2) in the place of vec(X)."""
        return tuple(
            SoftmaxRegression(block, tuple(self.B.row(j)), self.normalization)
            for j, block in enumerate(self.blocks)
        )

    @cached_property
    def joint(self) -> JointRegression:
        """The sum of the single regressions in vec(X), the form in which fixed points and infinity are asked for."""
        m, n = self.B.shape
        targets = tuple(tuple(self.B.row(j)) for j in range(m))
        places = tuple(tuple((j + 1, i + 1) for i in range(n)) for j in range(m))
        return JointRegression(self.weights, self.blocks, targets, self.normalization, places, self.source)

    # --- derivatives
    # ------------------------------------------------------------------------------------------

    @cached_property
    def gradient(self) -> sp.ImmutableMatrix:
        """dL/dX, shape (d1, d2), in the form to compute with: each row's gradient pulled back by A2, then by A1."""
        pulled = sp.Matrix([list(row.pull_back(self.A2)) for row in self.rows])
        return sp.ImmutableMatrix(self.A1.T * pulled)

    @cached_property
    def G(self) -> sp.ImmutableMatrix:
        """dL/dZ, shape (m, n): P * C - diag((P * C) 1) P, or U * (R - ((B * R) 1) 1^T) of the rescaled loss."""
        name = "Cov_f" if self.normalization == "normalized" else "u' Qu"
        return sp.ImmutableMatrix([row.gradient_forms[name] for row in self.rows])

    @cached_property
    def gradient_forms(self) -> dict[str, sp.ImmutableMatrix]:
        """dL/dX in every form, all proven equal; "chain" is SymPy's derivative of the loss in X.

        "A1^T G A2"; "rows", the form to compute with; "kronecker" = sum_j A_[j]^T dL/dZ_j, read row by row.
        """
        shape = self.X.shape
        stacked = self.kronecker.T * sp.Matrix(list(self.G))
        return {
            "chain": sp.ImmutableMatrix(*shape, [self.loss.diff(x) for x in self.X]),
            "A1^T G A2": self.A1.T * self.G * self.A2,
            "rows": self.gradient,
            "kronecker": sp.ImmutableMatrix(*shape, list(stacked)),
        }

    @cached_property
    def hessian(self) -> sp.ImmutableMatrix:
        """The Hessian in vec(X), row-major, shape (d1 d2, d1 d2): sum_j A_[j]^T (d2L/dZ_j^2) A_[j]."""
        total = sp.zeros(len(self.X))
        for block, row in zip(self.blocks, self.rows, strict=True):
            total += block.T * row.hessian * block
        return sp.ImmutableMatrix(total)

    def hessian_times(self, Y: sp.MatrixBase) -> sp.ImmutableMatrix:
        """The Hessian applied to a direction Y, shape (d1, d2), without a matrix of d1 d2 rows.

        dZ = A1 Y A2^T goes through the rows' Hessians and back: A1^T (...) A2.

        Raises:
            ValueError: Y has not the shape of X.
        """
        Y = matrix("Y", Y)
        if Y.shape != self.X.shape:
            raise ValueError(f"`Y` must have the shape {self.X.shape} of X; got {Y.shape}.")
        dZ = self.A1 * Y * self.A2.T
        moved = sp.Matrix([list(row.hessian * dZ.row(j).T) for j, row in enumerate(self.rows)])
        return sp.ImmutableMatrix(self.A1.T * moved * self.A2)

    @cached_property
    def flow(self) -> VectorField:
        """vec(X)' = -vec(dL/dX)."""
        return rules.flow(self.weights, tuple(self.gradient), self.parameters, self.source)

    def gradient_map(self, *, step: sp.Expr) -> IteratedMap:
        """Gradient descent  X -> X - eta dL/dX  with eta = `step`.

        Raises:
            ValueError: eta is not positive or depends on a weight.
        """
        return rules.descent(self.weights, tuple(self.gradient), self.parameters, step, self.source)

    @property
    def source(self) -> str:
        """The paper, and where B lies if a row is outside the simplex."""
        return f"{_SOURCE}; {self.label}" if "outside" in self.label else _SOURCE

    # --- structure
    # --------------------------------------------------------------------------------------------

    @cached_property
    def flat(self) -> tuple[sp.ImmutableMatrix, ...]:
        """A basis of the directions Y, shape (d1, d2), along which the loss is constant because of A1 and A2.

        normalized: each row of A1 Y A2^T is constant, such as Y = w k^T with A2 k = 1; rescaled: A1 Y A2^T = 0.
        """
        found = rules.null_directions(self.joint.flat_conditions)
        return tuple(sp.ImmutableMatrix(*self.X.shape, list(v)) for v in found)

    @cached_property
    def conserved(self) -> tuple[FirstIntegral, ...]:
        """<Y, X> for each flat direction Y, proven: constant along the flow and under gradient descent.

        Where A2 k = 1, the vector X k is among them (normalized loss).
        """
        integrals = []
        for Y in self.flat:
            shift = tuple((self.A1 * Y * self.A2.row(0).T).applyfunc(sp.factor))
            source = f"A1 Y A2^T has the constant rows {shift} for Y = {Y.tolist()}"
            integrals.append(rules.conserved(self.flow, sp.Matrix(list(Y)), source))
        return tuple(integrals)

    @cached_property
    def growth(self) -> sp.ImmutableMatrix:
        """The shortest k with A2 k = 1, for which  (dLr/dX) k = 2 A1^T l  is proven, l_j the loss of row j.

        So <dLr/dX, w k^T> = 2 sum_j (A1 w)_j l_j for every w: Euler's identity of each row.

        Raises:
            ValueError: the loss is the normalized one, or 1 is not in range(A2).
        """
        if self.normalization != "rescaled":
            raise ValueError("Euler's identity holds for the rescaled loss; this is the normalized one.")
        k = rules.shortest_growth(self.A2, "A2")
        gap = self.gradient * k - 2 * self.A1.T * sp.Matrix([row.loss for row in self.rows])
        if not all(is_zero(entry) for entry in gap):
            raise AssertionError(f"Euler's identity fails along {tuple(k)}")
        return k

    def interpolation(self) -> dict[sp.Symbol, sp.Expr]:
        """A point with P = B, where both losses vanish; unique up to the `flat` directions.

        It exists if and only if B > 0, each row of B sums to 1, and log B = A1 X A2^T + r 1^T has a solution (X, r).
        With letters in B, the answer holds where all entries are positive.

        Raises:
            ValueError: no such point exists, and why.
            UndecidedError: whether the equations have a solution could not be decided.
        """
        return self.joint.interpolation()

    # --- what users ask every model
    # ---------------------------------------------------------------------------

    @property
    def observables(self) -> dict[str, sp.Expr]:
        """loss and P_<i>_<j> as expressions in the weights."""
        entries = {f"P_{i + 1}_{j + 1}": self.P[i, j] for i in range(self.P.rows) for j in range(self.P.cols)}
        return {"loss": self.loss, **entries}

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """Empty: no reduction of the matrix problem is known here; its single regressions may have one."""
        return {}

    @property
    def closed_forms(self) -> Mapping[str, ClosedForm]:
        """Empty, as `reductions` is."""
        return {}

    @property
    def defaults(self) -> Mapping[str, object]:
        """Empty: the paper trains nothing, so there are no authors' numbers."""
        return {}
