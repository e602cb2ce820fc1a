"""What happens on the directions that the linearisation leaves open: reduced equations and their first terms.

Everything is computed order by order with Taylor polynomials, in rationals where the fixed point and the rule
are rational, so that "the quadratic term vanishes" is exact there; elsewhere in balls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from flint import acb_mat, arb, fmpq, fmpq_mat

from fixedpoints.near.balls import (
    Matrix,
    Number,
    as_ball,
    as_float,
    dot,
    float_matrix,
    from_floats,
    identity,
    is_exact,
    matmul,
    nullspace,
    solve,
    transposed,
    vanishes,
)
from fixedpoints.near.jets import Jet, Powers, monomials
from fixedpoints.near.local import Local

__all__ = [
    "Kernel",
    "NotSemisimpleError",
    "along",
    "focal_values",
    "kernel",
    "on_centre_plane",
    "on_kernel",
]


class NotSemisimpleError(ArithmeticError):
    """An eigenvalue 0 with fewer eigenvectors than its multiplicity (or so nearly that it may be)."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """Null vectors of the Jacobian of phi: d rows each, with left_i . right_j = delta_ij."""

    right: Matrix
    left: Matrix


def kernel(local: Local, dimension: int) -> Kernel:
    """The null vectors for a semisimple eigenvalue 0 of that multiplicity.

    Raises:
        NotSemisimpleError: there are fewer.
    """
    slopes, _ = _unhurried(local.slopes()[1])
    if is_exact(slopes):
        right, left = nullspace(slopes), nullspace(transposed(slopes))
        if len(right) != dimension:
            raise NotSemisimpleError(
                f"{len(right)} null vectors for an eigenvalue 0 of multiplicity {dimension}"
            )
    else:
        right, left = _enclosed_kernel(slopes, dimension)
    try:
        return Kernel(right, solve(matmul(left, transposed(right)), left))
    except ZeroDivisionError:
        raise NotSemisimpleError("left and right null vectors are orthogonal") from None


def _enclosed_kernel(slopes: Matrix, dimension: int) -> tuple[Matrix, Matrix]:
    """Null vectors in balls, from the bordered systems  [[J, W], [V^T, 0]] (k, m) = (0, 1)."""
    left, sizes, right = np.linalg.svd(float_matrix(slopes))
    if len(sizes) > dimension and sizes[-dimension - 1] <= 1e-9 * sizes[0]:
        raise NotSemisimpleError(f"more than {dimension} nearly vanishing singular values")
    v, w = from_floats(right[-dimension:]), from_floats(left[:, -dimension:].T)

    def null(matrix: Matrix, start: Matrix, border: Matrix) -> Matrix:
        n = len(matrix)
        bordered = _bordered(matrix, transposed(border), start)
        ones = [[fmpq(0)] * dimension for _ in range(n)] + identity(dimension)
        solution = solve(bordered, ones)
        if not all(vanishes(m) for row in solution[n:] for m in row):
            raise NotSemisimpleError(f"fewer than {dimension} null vectors")
        return transposed(solution[:n])

    try:
        return null(slopes, v, w), null(transposed(slopes), w, v)
    except ZeroDivisionError:
        raise NotSemisimpleError("the null vectors cannot be enclosed") from None


def _unhurried(slopes: Matrix) -> tuple[Matrix, fmpq]:
    """The Jacobian in a unit of time in which its largest entry is about 1, and that unit as a rate.

    Balls would be too wide for linear systems that mix rates of 1e9 with pure numbers.
    """
    size = max(abs(as_float(x)) for row in slopes for x in row)
    pace = fmpq(2) ** math.frexp(size)[1] if size else fmpq(1)
    return [[x / pace for x in row] for row in slopes], pace


def _bordered(matrix: Matrix, columns: Matrix, rows: Matrix) -> Matrix:
    upper = [[*a, *b] for a, b in zip(matrix, columns, strict=True)]
    return upper + [[*row, *([fmpq(0)] * len(rows))] for row in rows]


def along(
    local: Local, null: Kernel, direction: Sequence[Number], order: int
) -> Iterator[tuple[int, list[Number]]]:
    """Lyapunov-Schmidt reduction along a ray in the kernel.

    With x = x* + s K a + h(s), h in the complement on which the left null vectors L vanish, h is solved from
    the range part of phi = 0; yields (k, g_k) with  L . phi = sum_k g_k s^k  for k = 2, 3, ..., order.

    For one null vector the first g_k that does not vanish is also that of the centre manifold,
    ds/dt = g_k s^k + ..., since the two curves differ by terms beyond s^k only (Golubitsky and Schaeffer
    1985, chapters I and VII; Carr 1981, theorem 2.5.3). A map with multiplier 1 and phi = f - id likewise
    has s -> s + g_k s^k + ....
    """
    ray = [{(0,): dot(direction, column)} for column in transposed(null.right)]
    for k, g in _reduced(local, null, ray, 1, order):
        yield k, [part.get((0,) * k, fmpq(0)) for part in g]


def on_kernel(local: Local, null: Kernel, order: int) -> Iterator[tuple[int, list[dict[Powers, Number]]]]:
    """The same in all d coordinates u of the kernel: terms of each degree of  L . phi(x* + K u + h(u))."""
    plane = [{(i,): c for i, c in enumerate(column)} for column in transposed(null.right)]
    return _reduced(local, null, plane, len(null.right), order)


def _reduced(local: Local, null: Kernel, surface: list[dict[Powers, Number]], variables: int, order: int):
    slopes, pace = _unhurried(local.slopes()[1])
    n, d = len(slopes), len(null.right)
    bordered = _bordered(slopes, transposed(null.right), null.left)
    for k in range(2, order + 1):
        jets = [jet.part(k) for jet in local.phi([Jet(terms, k) for terms in surface])]
        powers = list(monomials(variables, k))
        columns = [[part.get(p, fmpq(0)) for part in jets] for p in powers]
        yield k, [{p: dot(row, c) for p, c in zip(powers, columns, strict=True)} for row in null.left]
        bend = solve(bordered, transposed([[-x / pace for x in c] + [fmpq(0)] * d for c in columns]))
        for terms, row in zip(surface, bend[:n], strict=True):
            terms |= dict(zip(powers, row, strict=True))


# A pair of imaginary eigenvalues


def on_centre_plane(local: Local, order: int) -> tuple[list[Jet], Number, fmpq]:
    """The flow on the centre manifold of one pair +-i omega, where  x = x* + u_0 v + u_1 J v + ...

        du_0/dt = -omega^2 u_1 + g_0(u),    du_1/dt = u_0 + g_1(u)

    Returns:
        g_0, g_1 from degree 2 up to the order, omega^2, and the rate in whose inverse time is measured.
    Raises:
        ZeroDivisionError: the equations for the manifold cannot be solved in balls.
    """
    slopes, pace = _unhurried(local.slopes()[1])
    basis, squared = _centre_basis(slopes)
    inverse = solve(basis, identity(len(basis)))
    inner = matmul(inverse, matmul(slopes, basis))
    rest = [row[2:] for row in inner[2:]]
    w = [Jet({}, order + 1) for _ in rest]
    g = [Jet({}, order + 1) for _ in range(2)]
    for k in range(2, order + 1):
        u = [Jet({(0,): fmpq(1)}, k), Jet({(1,): fmpq(1)}, k), *(Jet(jet.terms, k) for jet in w)]
        place = [_combined(row, u, k) for row in basis]
        image = [jet.times(1 / pace).part(k) for jet in local.phi(place)]
        moved = [
            {p: dot(row, [part.get(p, fmpq(0)) for part in image]) for p in monomials(2, k)}
            for row in inverse
        ]
        drift = [w_i.derivative(0) * g[0] + w_i.derivative(1) * g[1] for w_i in w]
        right = [{p: t[p] - d[p] for p in t} for t, d in zip(moved[2:], drift, strict=True)]
        for i, terms in enumerate(_manifold_terms(rest, right, squared, k)):
            w[i] = Jet(w[i].terms | terms, order + 1)
        g = [Jet(old.terms | new, order + 1) for old, new in zip(g, moved[:2], strict=True)]
    return g, squared, pace


def _combined(row: Sequence[Number], jets: Sequence[Jet], order: int) -> Jet:
    total = Jet({}, order)
    for c, jet in zip(row, jets, strict=True):
        total = total + jet.times(c)
    return total


def _turned(powers: Powers, squared: Number) -> dict[Powers, Number]:
    """d/dt of u_0^a u_1^b along  u_0' = -omega^2 u_1, u_1' = u_0."""
    a, b = powers.count(0), powers.count(1)
    terms = {}
    if a:
        terms[(0,) * (a - 1) + (1,) * (b + 1)] = -squared * a
    if b:
        terms[(0,) * (a + 1) + (1,) * (b - 1)] = fmpq(b)
    return terms


def _manifold_terms(rest: Matrix, right: list[dict[Powers, Number]], squared: Number, k: int):
    """w_k from  B w_k - D w_k . A u = -right,  one linear system over all monomials of degree k."""
    if not rest:
        return []
    basis, m = list(monomials(2, k)), len(rest)
    place = {(p, i): m * at + i for at, p in enumerate(basis) for i in range(m)}
    matrix = [[fmpq(0)] * len(place) for _ in place]
    for p in basis:
        for i in range(m):
            for j in range(m):
                matrix[place[p, i]][place[p, j]] += rest[i][j]
            for q, c in _turned(p, squared).items():
                matrix[place[q, i]][place[p, i]] -= c
    column = [[-right[i][p]] for p in basis for i in range(m)]
    solution = solve(matrix, column)
    return [{p: solution[place[p, i]][0] for p in basis} for i in range(m)]


def _centre_basis(slopes: Matrix) -> tuple[Matrix, Number]:
    """Columns v, J v of the centre plane, then a basis of the other invariant space; and omega^2."""
    n = len(slopes)
    if n == 2:
        (a, b), (c, d) = slopes
        return [[fmpq(1), a], [fmpq(0), c]] if c != 0 else [[fmpq(0), b], [fmpq(1), d]], a * d - b * c
    squared = _rational_square(slopes) if is_exact(slopes) else None
    if squared is not None:
        turned = matmul(slopes, slopes)
        shifted = [[x + squared * (i == j) for j, x in enumerate(row)] for i, row in enumerate(turned)]
        v, left = nullspace(shifted)[0], nullspace(transposed(shifted))
    else:
        v, left, squared = _approximate_plane(slopes)
    jv = [dot(row, v) for row in slopes]
    columns = [v, jv, *_annihilated(left, n)]
    return transposed(columns), squared


def _rational_square(slopes: Matrix) -> fmpq | None:
    """omega^2 where lambda^2 + omega^2 divides the characteristic polynomial over the rationals."""
    for factor, _ in fmpq_mat(slopes).charpoly().numer().factor()[1]:
        if factor.degree() == 2 and factor[1] == 0 and factor[0] * factor[2] > 0:
            return fmpq(int(factor[0]), int(factor[2]))
    return None


def _approximate_plane(slopes: Matrix) -> tuple[list[arb], Matrix, arb]:
    """v, two left vectors of the plane and omega^2, from approximate eigenvectors with many digits."""
    balls = [[as_ball(x).mid() for x in row] for row in slopes]
    values, left, right = acb_mat(balls).eig(left=True, right=True, algorithm="approx")
    upper = [i for i, z in enumerate(values) if z.imag.mid() > 0]
    at = min(upper, key=lambda i: abs(float(values[i].real.mid())) / abs(complex(values[i])))
    row = [left[at, j] for j in range(len(balls))]
    v = [right[i, at].real.mid() for i in range(len(balls))]
    return v, [[z.real.mid() for z in row], [z.imag.mid() for z in row]], values[at].imag.mid() ** 2


def _annihilated(left: Matrix, n: int) -> Matrix:
    """A basis of the vectors on which two left vectors vanish."""
    size = np.abs(float_matrix(left))
    floats = float_matrix(left)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    i, j = max(pairs, key=lambda p: abs(np.linalg.det(floats[:, list(p)])) / (1 + size[:, list(p)].max()))
    pivot = [[row[i], row[j]] for row in left]
    vectors = []
    for free in (k for k in range(n) if k not in (i, j)):
        solution = solve(pivot, [[-row[free]] for row in left])
        vector = [fmpq(int(k == free)) for k in range(n)]
        vector[i], vector[j] = solution[0][0], solution[1][0]
        vectors.append(vector)
    return vectors


def focal_values(g: Sequence[Jet], squared: Number, order: int) -> Iterator[tuple[int, Number, float]]:
    """Poincare-Lyapunov quantities of  u_0' = -omega^2 u_1 + g_0, u_1' = u_0 + g_1.

    There is a formal V = u_0^2 + omega^2 u_1^2 + ... with  dV/dt = sum_m eta_m (u_0^2 + omega^2 u_1^2)^m,
    m = 2, 3, ... (Poincare 1885, Lyapunov 1892; Dumortier, Llibre and Artes 2006, section 4.2). With
    r^2 = V the first that does not vanish says  dr/dt = eta_m / 2  r^(2m-1); eta_2 / 2 is the first Lyapunov
    coefficient (Guckenheimer and Holmes 1983, equation 3.4.11).

    Yields:
        m, eta_m, and the size that eta_m would have without cancellation.
    """
    # One order more than asked for, since differentiating loses one.
    v = Jet({(0, 0): fmpq(1), (1, 1): squared}, order + 1)
    sizes = [
        (max([abs(as_float(c)) for jet in g for c in jet.part(k).values()], default=0.0), k)
        for k in range(2, order)
    ]
    pace = math.sqrt(abs(as_float(squared))) or 1.0
    unit = max((size / pace) ** (1 / (k - 1)) for size, k in sizes)
    for k in range(3, order + 1):
        drift = (v.derivative(0) * g[0] + v.derivative(1) * g[1]).part(k)
        even = k % 2 == 0
        terms, eta = _next_terms(drift, squared, k, even)
        v = Jet(v.terms | terms, order + 1)
        if even:
            yield k // 2, eta, pace * unit ** (k - 2)


def _next_terms(drift: dict[Powers, Number], squared: Number, k: int, even: bool):
    basis = list(monomials(2, k))
    place = {p: i for i, p in enumerate(basis)}
    matrix = [[fmpq(0)] * len(basis) for _ in basis]
    for p in basis:
        for q, c in _turned(p, squared).items():
            matrix[place[q]][place[p]] += c
    if even:
        # V is free up to powers of its quadratic part: u_0^k is left out of it, and eta takes its place.
        half, power = k // 2, Jet({(0, 0): fmpq(1), (1, 1): squared}, k)
        round_ = power
        for _ in range(half - 1):
            round_ = round_ * power
        for p in basis:
            matrix[place[p]][0] = -round_[p]
    solution = solve(matrix, [[-drift.get(p, fmpq(0))] for p in basis])
    terms = {p: solution[i][0] for i, p in enumerate(basis)}
    eta = terms.pop((0,) * k) if even else fmpq(0)
    return terms, eta
