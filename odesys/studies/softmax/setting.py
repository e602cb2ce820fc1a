"""The problems of the study, and expected values that this package did not make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from odesys.simulation import softmax_regression as judge
from symbolic.softmax_regression import matrix, vector

__all__ = ["CASES", "FIFTY_DIGITS", "MATRICES", "PAPERS", "SEED_PAPER", "Case", "Matrix"]

PAPERS = "Li et al., arXiv:2304.13276; Gao, Song, Yin, arXiv:2305.00660"
SEED_PAPER = "Gao, Song, Xie, arXiv:2307.02419"
FIFTY_DIGITS = "independent 50-digit arithmetic"
LOG_ODDS = "by hand: the logits of each row differ by the logarithm of its odds"


def _numbers(text: str) -> tuple[sp.Rational, ...]:
    return tuple(map(sp.Rational, text.split()))


@dataclass(frozen=True)
class Case:
    """A vector problem with exact numbers.

    Args:
        rows: of A; target: b.
        minima, others: fixed points of the normalized flow, to 15 digits or more; source: who says so.
    """

    rows: tuple[tuple[int, ...], ...]
    target: tuple[sp.Rational, ...]
    minima: tuple[tuple[float, ...], ...] = ()
    others: tuple[tuple[float, ...], ...] = ()
    source: str = FIFTY_DIGITS

    @property
    def size(self) -> tuple[int, int]:
        """(n, d)."""
        return len(self.rows), len(self.rows[0])

    def derived(self, loss: str = "normalized") -> vector.SoftmaxRegression:
        """The problem as SymPy derives it."""
        n, d = self.size
        return vector.model(n=n, d=d, loss=loss).at([list(row) for row in self.rows], self.target)

    def judged(self, loss: str = "normalized") -> judge.SoftmaxRegression:
        """The problem as the definition states it, for autodiff."""
        return judge.vector(self.rows, [float(b) for b in self.target], loss)


CASES: dict[str, Case] = {
    # One weight, three fixed points of the normalized loss.
    "three-points": Case(
        ((0,), (4,), (5,)),
        _numbers("1/3 0 2/3"),
        minima=((0.13300006969169398,), (1.5923783571108186,)),
        others=((0.40397323975491257,),),
    ),
    # Two weights, two minima and a saddle.
    "two-minima": Case(
        ((2, 0), (1, 2), (-3, -3), (2, 1)),
        _numbers("1/8 1/8 3/8 3/8"),
        minima=((-0.033239091624645438, -0.10126145389898047), (1.3817998221421138, 0.69039777753300244)),
        others=((0.65166801078099968, 0.27804551295543911),),
    ),
    # Everything in closed form: Lr = w^2 (w/2 - 1/2)^2/..., w = exp(x).
    "closed-form": Case(((1,), (2,)), _numbers("1/2 1/2"), minima=((0.0,),)),
    # As many rows as the simplex needs: no spurious points.
    "unique": Case(
        ((1, 0), (0, 1), (-1, -1)),
        _numbers("1/2 1/3 1/6"),
        minima=((0.50135913225875802, 0.095894024150593642),),
    ),
    "two-rows": Case(((0,), (1,)), _numbers("1/4 3/4"), minima=((1.0986122886681097,),)),
}


@dataclass(frozen=True)
class Matrix:
    """A matrix problem with exact numbers: A1 and A2 are not symmetric, A2 has a column of ones.

    So X e_1 is conserved: the first column of X stays where it is, and two weights are left.

    Args:
        left: A1; right: A2; target: B.
        minima, others: fixed points of the normalized flow, X row by row with X e_1 = 0; source: who says so.
    """

    left: tuple[tuple[int, ...], ...] = ((1, 2), (0, 1))
    right: tuple[tuple[int, ...], ...] = ((1, 0), (1, 3))
    target: tuple[tuple[str, ...], ...] = (("1/3", "2/3"), ("3/4", "1/4"))
    # 3 X_22 = -log 3, 3 (X_12 + 2 X_22) = log 2
    minima: tuple[tuple[float, ...], ...] = ((0.0, 0.9634572526320550, 0.0, -0.3662040962227032),)
    others: tuple[tuple[float, ...], ...] = ()
    source: str = LOG_ODDS

    @cached_property
    def B(self) -> list[list[sp.Rational]]:
        return [[sp.Rational(b) for b in row] for row in self.target]

    def derived(self, loss: str = "normalized") -> matrix.MatrixSoftmaxRegression:
        """The problem as SymPy derives it."""
        letters = matrix.model(n=2, d=2, loss=loss)
        return letters.at([list(row) for row in self.left], [list(row) for row in self.right], self.B)

    def judged(self, loss: str = "normalized") -> judge.SoftmaxRegression:
        """The problem as the definition states it, for autodiff."""
        return judge.matrix(self.left, self.right, [[float(b) for b in row] for row in self.B], loss)


MATRICES: dict[str, Matrix] = {
    "matrix": Matrix(),
    # The one of the reference run: X_22 = log 3, X_12 + 2 X_22 = 0.
    "reference-matrix": Matrix(
        right=((1, 0), (1, 1)),
        target=(("1/2", "1/2"), ("1/4", "3/4")),
        minima=((0.0, -2.1972245773362196, 0.0, 1.0986122886681098),),
    ),
}
