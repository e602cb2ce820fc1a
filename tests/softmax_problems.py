"""Softmax problems that several tests share, by the names of the reference numbers."""

import sympy as sp

from symbolic.softmax_regression import vector

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


def problem(A, b, loss="normalized"):
    """A model with numbers; strings are fractions."""
    exact = [sp.Rational(value) if isinstance(value, str) else value for value in b]
    return vector.model(n=len(A), d=len(A[0]), loss=loss).at(A, exact)


def named(name, loss="normalized"):
    return problem(*_DATA[name], loss)
