"""Softmax problems that several tests share, by the names of the reference numbers."""

import numpy as np
import sympy as sp

from fixedpoints.softmax_regression import ends
from symbolic.softmax_regression import vector
from symbolic.softmax_regression.matrix import MatrixSoftmaxRegression

_DATA = {
    "D1a": ([[0], [4], [5]], ["1/3", "0", "2/3"]),  # three fixed points, or none if rescaled
    "D1b_interior_b": ([[0], [1], [5]], ["5/8", "1/8", "1/4"]),
    "D1d_rescaled_closed_form": ([[1], [2]], ["1/2", "1/2"]),
    "D1e": ([[0], [1]], ["1/4", "3/4"]),
    "D2a": ([[2, 0], [1, 2], [-3, -3], [2, 1]], ["1/8", "1/8", "3/8", "3/8"]),  # two minima, a saddle
    "D2c_n3_full_rank_unique": ([[1, 0], [0, 1], [-1, -1]], ["1/2", "1/3", "1/6"]),
    "mirror": ([[0, -2], [-1, 3], [1, 3], [0, 0]], ["1/3", "1/3", "1/3", "0"]),  # three minima, two saddles
    "T6": ([[0, 0], [0, 0], [3, 0], [4, 0], [0, -1]], ["0", "0", "297/500", "198/500", "1/100"]),
    "V5": ([[1, 0], [1, 1], [1, 2]], ["1/6", "1/3", "1/2"]),  # a constant column
}


#: The target of D1a, whose rows are 0, 4, 5: minimum, maximum, minimum.
THREE = ["1/3", 0, "2/3"]
QUARTERS = ["1/4", "3/4"]

#: A2 e_1 = 1, so that the first column of X is conserved and two weights are left.
_MATRICES = {
    "M1": ([[1, 2], [0, 1]], [[1, 0], [1, 1]], [["1/2", "1/2"], ["1/4", "3/4"]]),
}


def problem(A, b, loss="normalized"):
    """A model with numbers; strings are fractions."""
    return vector.model(n=len(A), d=len(A[0]), loss=loss).at(A, _exact(b))


def matrix_problem(A1, A2, B, loss="normalized"):
    """A matrix model with numbers; strings are fractions."""
    return MatrixSoftmaxRegression(A1, A2, [_exact(row) for row in B], loss)


def product(A, targets, loss="normalized"):
    """One problem of a single weight for each target, side by side: A1 is the unit matrix, so that X decouples."""
    return matrix_problem(sp.eye(len(targets)).tolist(), [[a] for a in A], targets, loss)


def one_row(name, loss="normalized"):
    """The vector problem of this name as a matrix problem with A1 = (1)."""
    A, b = _DATA[name]
    return matrix_problem([[1]], A, [b], loss)


def by_rows(model):
    """The ends at infinity by the rows that win there."""
    return {end.rows: end for end in ends(model)}


def places(stops):
    """The coordinates of the points, a row for each."""
    return np.array([list(point.location.values()) for point in stops.points])


def _exact(values):
    return [sp.Rational(value) if isinstance(value, str) else value for value in values]


def named(name, loss="normalized"):
    if name in _MATRICES:
        return matrix_problem(*_MATRICES[name], loss)
    return problem(*_DATA[name], loss)
