"""Numbers that know how exact they are: rationals (`fmpq`) while possible, else balls (`arb`).

A ball holds the truth. Both mix freely, and one ball makes a result a ball. So a rational 0 is a proof, and a
ball that holds 0 says "zero to within this radius".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import sympy as sp
from flint import arb, arb_mat, fmpq, fmpq_mat

__all__ = [
    "FLOAT_ERROR",
    "SLACK",
    "BITS",
    "Matrix",
    "Number",
    "as_ball",
    "as_float",
    "as_rational",
    "dot",
    "float_matrix",
    "from_floats",
    "identity",
    "is_exact",
    "matmul",
    "nullspace",
    "radius",
    "rank",
    "shown",
    "sign",
    "solve",
    "to_rational",
    "transposed",
    "vanishes",
    "widened",
]

Number = fmpq | arb
Matrix = list[list[Number]]

#: Working precision, in bits: about 77 digits.
BITS = 256

#: The relative error that a float coefficient may carry; what bounds allow for.
FLOAT_ERROR = 2.0**-52

#: Relative size below which quantities made of floats count as zero, much larger than that; for decisions.
SLACK = 2.0**-40


def as_rational(number: sp.Expr | int | float) -> fmpq:
    """A SymPy number, integer or float as the exact rational that it is."""
    ratio = sp.Rational(number)
    return fmpq(int(ratio.p), int(ratio.q))


def to_rational(number: Number) -> sp.Rational:
    """The SymPy rational; of a ball, its midpoint."""
    if isinstance(number, fmpq):
        return sp.Rational(int(number.p), int(number.q))
    mantissa, exponent = (int(part) for part in number.mid().man_exp())
    return sp.Integer(mantissa) * sp.Integer(2) ** exponent


def as_ball(number: Number) -> arb:
    """The number as a ball."""
    return number if isinstance(number, arb) else arb(number)


def as_float(number: Number) -> float:
    """The nearest float; of a ball, that of its midpoint."""
    if isinstance(number, fmpq):
        return int(number.p) / int(number.q)
    return float(number.mid())


def radius(number: Number) -> float:
    """How far the truth may be from the midpoint."""
    return 0.0 if isinstance(number, fmpq) else float(number.rad())


def widened(number: Number, by: arb | float) -> arb:
    """The ball with its radius enlarged."""
    return as_ball(number) + arb(0, by)


def is_exact(numbers: Number | Sequence) -> bool:
    """Whether a number, or all in nested sequences, are rational."""
    if isinstance(numbers, (list, tuple)):
        return all(is_exact(n) for n in numbers)
    return isinstance(numbers, fmpq)


def vanishes(number: Number) -> bool:
    """A rational: is it 0? A ball: may it be 0?"""
    return number == 0 if isinstance(number, fmpq) else number.contains(0)


def sign(number: Number) -> int:
    """1 or -1 where that is certain, else 0."""
    if vanishes(number):
        return 0
    return 1 if number > 0 else -1


def identity(n: int) -> Matrix:
    """The n x n unit matrix."""
    return [[fmpq(int(i == j)) for j in range(n)] for i in range(n)]


def transposed(matrix: Matrix) -> Matrix:
    """The transpose."""
    return [list(column) for column in zip(*matrix, strict=True)]


def dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    """sum_i a_i b_i."""
    return sum((x * y for x, y in zip(a, b, strict=True)), fmpq(0))


def matmul(a: Matrix, b: Matrix) -> Matrix:
    """The matrix product."""
    columns = transposed(b)
    return [[dot(row, column) for column in columns] for row in a]


def solve(matrix: Matrix, columns: Matrix) -> Matrix:
    """X with `matrix` X = `columns`.

    Raises:
        ZeroDivisionError: the matrix is singular, or not certainly invertible.
    """
    if is_exact(matrix) and is_exact(columns):
        return fmpq_mat(matrix).solve(fmpq_mat(columns)).tolist()
    return arb_mat(_balls(matrix)).solve(arb_mat(_balls(columns))).tolist()


def nullspace(matrix: Matrix) -> Matrix:
    """A basis of {v: `matrix` v = 0}, one vector a row, of a rational matrix."""
    reduced, known = fmpq_mat(matrix).rref()
    rows, n = reduced.tolist(), len(matrix[0])
    pivots = [next(j for j in range(n) if rows[i][j] != 0) for i in range(known)]
    basis = []
    for free in (j for j in range(n) if j not in pivots):
        vector = [fmpq(int(j == free)) for j in range(n)]
        for i, pivot in enumerate(pivots):
            vector[pivot] = -rows[i][free]
        basis.append(vector)
    return basis


def rank(matrix: Matrix) -> int:
    """The rank of a rational matrix; of one with balls, the largest that is certain by elimination."""
    if not matrix:
        return 0
    if is_exact(matrix):
        return int(fmpq_mat(matrix).rank())
    rows, found = [[as_ball(x) for x in row] for row in matrix], 0
    while rows:
        best = max(
            ((abs(x).lower(), i, j) for i, row in enumerate(rows) for j, x in enumerate(row)),
            key=lambda entry: float(entry[0]),
        )
        if not best[0] > 0:
            break
        _, i, j = best
        pivot = rows.pop(i)
        rows = [[x - row[j] / pivot[j] * p for x, p in zip(row, pivot, strict=True)] for row in rows]
        found += 1
    return found


def float_matrix(matrix: Matrix) -> np.ndarray:
    """The midpoints, as an array of floats."""
    return np.array([[as_float(x) for x in row] for row in matrix], dtype=float)


def from_floats(array: np.ndarray) -> Matrix:
    """Floats as the rationals that they are."""
    return [[fmpq(*map(int, x.as_integer_ratio())) for x in row] for row in array.tolist()]


def shown(number: Number) -> str:
    """A short decimal text."""
    value = as_float(number)
    if isinstance(number, fmpq) and (value == 0 or not math.isfinite(value)):
        return str(number)
    return f"{value:.6g}"


def _balls(matrix: Matrix) -> list[list[arb]]:
    return [[as_ball(x) for x in row] for row in matrix]
