"""What conserved quantities decide at a fixed point that the linearisation leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import sympy as sp
from flint import fmpq, fmpq_mat
from sympy.integrals.manualintegrate import manualintegrate
from sympy.polys.matrices import DomainMatrix

from fixedpoints.near.balls import (
    Matrix,
    dot,
    float_matrix,
    from_floats,
    is_exact,
    matmul,
    nullspace,
    rank,
    sign,
    transposed,
)
from fixedpoints.near.jets import expand, variable
from fixedpoints.near.local import Local
from fixedpoints.near.spectrum import Spectrum
from symbolic import conservation
from symbolic.conservation import FirstIntegral
from symbolic.errors import NotConservedError, UndecidedError
from symbolic.field import IteratedMap, VectorField
from symbolic.zero import exact, is_zero, residual

__all__ = ["Verdict", "decide", "found_integrals", "given_integrals", "is_semisimple"]

#: The most states for which quantities are searched, and the most unknown coefficients above degree 1.
_MOST_STATES = 20
_MOST_UNKNOWNS = 60


@dataclass(frozen=True)
class Verdict:
    """`leaf`: on the leaves of the quantities no direction is left open; else one has a strict extremum.

    `quantities` are those that decide.
    """

    leaf: bool
    quantities: tuple[sp.Expr, ...]


def given_integrals(
    rule: VectorField | IteratedMap,
    values: Mapping[sp.Symbol, float],
    integrals: Sequence[FirstIntegral | sp.Expr],
) -> tuple[sp.Expr, ...]:
    """The quantities as expressions in the state, each proven to be conserved by the rule.

    Raises:
        NotConservedError: one changes. ValueError: one uses symbols that the rule does not have.
    """
    numbers = {p: sp.Rational(v) for p, v in values.items()}
    checked = []
    for integral in integrals:
        proven = isinstance(integral, FirstIntegral) and integral.field == rule
        expression = integral.expression if isinstance(integral, FirstIntegral) else sp.sympify(integral)
        here = exact(expression.xreplace(numbers))
        if not proven:
            _check(_with_numbers(rule, numbers), here)
        checked.append(here)
    return tuple(checked)


def found_integrals(
    rule: VectorField | IteratedMap, values: Mapping[sp.Symbol, float], degree: int
) -> tuple[sp.Expr, ...]:
    """What a flow conserves: polynomials up to a degree, or sums of polynomials and logarithms of states; above
    degree 1 also the Hamiltonian of a planar field without divergence."""
    if isinstance(rule, IteratedMap) or len(rule.state) > _MOST_STATES:
        return ()
    field = _with_numbers(rule, {p: sp.Rational(v) for p, v in values.items()})
    rational = all(f.is_rational_function(*field.state) for f in field.rhs)
    found = _found(field, degree) if rational else ()
    return found or (_hamiltonian(field) if degree > 1 else ())


def decide(local: Local, spectrum: Spectrum, integrals: Sequence[sp.Expr]) -> Verdict | None:
    """Stability on the centre directions E by conserved quantities I_1 ... I_m, or None.

    With G the gradients of the I_i at x*: if no direction of E is tangent to the leaves I = const, the
    linearisation decides on each leaf, and the neighbouring leaves have their own fixed point. Otherwise a
    combination c . I whose gradient vanishes at x* and whose Hessian is definite on E and ker G makes
    c . I + K |I - I*|^2 a Lyapunov function on the centre manifold for large K (Finsler's lemma; the
    reduction principle carries stability over to the whole space, Carr 1981, theorem 2.4.2).
    """
    if not integrals:
        return None
    n = len(local.at)
    place = {x: variable(j, 2, c) for j, (x, c) in enumerate(zip(local.rule.state, local.at, strict=True))}
    jets = expand(list(integrals), place, 2)
    gradients = [[jet[j,] for j in range(n)] for jet in jets]
    space = _centre_space(local, spectrum)
    inside = matmul(space, transposed(gradients))
    if rank(inside) == len(space):
        return Verdict(True, tuple(_pruned(integrals, inside)))
    tangent = _null(transposed(inside), rank(inside))
    directions = matmul(tangent, space)
    for combination in _null(transposed(gradients), rank(gradients)):
        hessian = [
            [
                dot(combination, [jet[tuple(sorted((i, j)))] * (1 + (i == j)) for jet in jets])
                for j in range(n)
            ]
            for i in range(n)
        ]
        if _definite(matmul(directions, matmul(hessian, transposed(directions)))):
            used = tuple(q for q, c in zip(integrals, combination, strict=True) if c != 0)
            return Verdict(False, used)
    return None


def _check(rule: VectorField | IteratedMap, quantity: sp.Expr) -> None:
    if isinstance(rule, VectorField):
        conservation.verify(rule, quantity)
        return
    moved = quantity.xreplace(dict(zip(rule.state, rule.rhs, strict=True))) - quantity
    if is_zero(moved) is not True:
        raise NotConservedError(
            f"{quantity} is not conserved: one step changes it by {residual(moved)}.", residual(moved)
        )


def _with_numbers(rule, numbers: Mapping[sp.Symbol, sp.Rational]):
    if not numbers and not any(f.has(sp.Float) for f in rule.rhs):
        return rule
    return type(rule)(rule.state, tuple(exact(f.xreplace(numbers)) for f in rule.rhs))


@lru_cache(maxsize=64)
def _found(field: VectorField, degree: int) -> tuple[sp.Expr, ...]:
    n = len(field.state)
    while degree > 1 and sp.binomial(n + degree, degree) > _MOST_UNKNOWNS:
        degree -= 1
    polynomials = tuple(integral.expression for integral in conservation.find(field, degree=degree))
    return polynomials or _with_logarithms(field)


def _with_logarithms(field: VectorField) -> tuple[sp.Expr, ...]:
    """Combinations of x_i, x_i^2 and log|x_i| that are conserved; log for states whose axes are invariant."""
    candidates = [*field.state, *(x**2 for x in field.state)]
    rates = [field.lie_derivative(c) for c in candidates]
    for x, f in zip(field.state, field.rhs, strict=True):
        rate = sp.cancel(f / x)
        if sp.denom(rate).subs(x, 0) != 0:
            candidates.append(sp.log(sp.Abs(x)))
            rates.append(rate)
    if len(candidates) == 2 * len(field.state):
        return ()
    together = [sp.fraction(sp.cancel(sp.together(r))) for r in rates]
    common = sp.lcm_list([d for _, d in together])
    columns = [sp.Poly(sp.cancel(p * common / d), *field.state).as_dict() for p, d in together]
    rows = sorted({powers for column in columns for powers in column})
    matrix = sp.Matrix([[column.get(powers, 0) for column in columns] for powers in rows])
    basis = DomainMatrix.from_Matrix(matrix).to_field().nullspace().to_Matrix().tolist()
    return tuple(sp.Add(*(c * q for c, q in zip(row, candidates, strict=True))) for row in basis)


@lru_cache(maxsize=64)
def _hamiltonian(field: VectorField) -> tuple[sp.Expr, ...]:
    """H with x' = dH/dy, y' = -dH/dx, proven to be conserved; nothing if the field is not of that form."""
    if len(field.state) != 2:
        return ()
    (x, y), (f, g) = field.state, field.rhs
    if not is_zero(f.diff(x) + g.diff(y)):
        return ()
    kinetic = manualintegrate(f, y)
    rest = sp.simplify(g + kinetic.diff(x))
    hamiltonian = kinetic - manualintegrate(rest, x)
    if rest.has(y) or hamiltonian.has(sp.Integral):
        return ()
    try:
        return (conservation.verify(field, hamiltonian).expression,)
    except (NotConservedError, UndecidedError):
        return ()


def _centre_space(local: Local, spectrum: Spectrum) -> Matrix:
    """Rows that span the centre space: exact where it is rational."""
    _, slopes = local.slopes()
    n, d = len(slopes), spectrum.dims[1]
    if d == n:
        return [[fmpq(int(i == j)) for j in range(n)] for i in range(n)]
    if is_exact(slopes):
        space = _exact_kernel(slopes, local.is_map, repeated=True)
        if len(space) == d:
            return space
    jacobian = float_matrix(slopes) + np.eye(n) * local.is_map
    product = np.eye(n, dtype=complex)
    size = np.abs(jacobian).max()
    for e in spectrum.eigenvalues:
        if e.side == 0:
            product = product @ (jacobian - e.value * np.eye(n)) / size
    return from_floats(np.linalg.svd(product.real)[2][-d:])


def is_semisimple(local: Local, spectrum: Spectrum) -> bool:
    """Whether the eigenvalues on the boundary are proven to be without Jordan blocks."""
    _, slopes = local.slopes()
    space = _exact_kernel(slopes, local.is_map, repeated=False) if is_exact(slopes) else []
    return len(space) == spectrum.dims[1]


def _exact_kernel(slopes: Matrix, is_map: bool, *, repeated: bool) -> Matrix:
    """The kernel of the product of the boundary factors of the characteristic polynomial, rational."""
    matrix, n = fmpq_mat(slopes), len(slopes)
    unit = fmpq_mat([[fmpq(int(i == j)) for j in range(n)] for i in range(n)])
    if is_map:
        matrix = matrix + unit
    product = unit
    for factor, multiplicity in matrix.charpoly().numer().factor()[1]:
        if _on_boundary(factor, is_map):
            value = unit * 0
            for c in reversed(factor.coeffs()):
                value = value * matrix + unit * fmpq(int(c))
            for _ in range(int(multiplicity) if repeated else 1):
                product = product * value
    return nullspace(product.tolist())


def _on_boundary(factor, is_map: bool) -> bool:
    """Factors of degree one and two, which cover what is met: x, x^2 + d; x +- 1, x^2 - 2 c x + 1."""
    c = [int(x) for x in factor.coeffs()]
    if len(c) == 2:
        return abs(c[0]) == abs(c[1]) if is_map else c[0] == 0
    if len(c) == 3:
        return c[0] == c[2] and abs(c[1]) < 2 * abs(c[2]) if is_map else c[1] == 0 and c[0] * c[2] > 0
    return False


def _pruned(integrals: Sequence[sp.Expr], inside: Matrix) -> list[sp.Expr]:
    """As few of the quantities as still leave no direction open, the first ones first."""
    kept: list[int] = []
    for i in range(len(integrals)):
        if rank([[row[j] for j in (*kept, i)] for row in inside]) > len(kept):
            kept.append(i)
    return [integrals[i] for i in kept]


def _null(matrix: Matrix, known: int) -> Matrix:
    """Null vectors of a matrix of known rank; approximate where it is not rational."""
    if is_exact(matrix):
        return nullspace(matrix)
    return from_floats(np.linalg.svd(float_matrix(matrix))[2][known:])


def _definite(matrix: Matrix) -> bool:
    """Whether all leading minors of M or of -M are certainly positive (Sylvester)."""
    for side in (1, -1):
        signed = [[x * side for x in row] for row in matrix]
        if is_exact(signed):
            minors = [fmpq_mat([row[:k] for row in signed[:k]]).det() for k in range(1, len(signed) + 1)]
            if all(m > 0 for m in minors):
                return True
        else:
            # The directions are approximate here: ask for a margin far above their errors.
            sizes = np.linalg.eigvalsh(float_matrix(signed))
            if sizes[0] > 1e-9 * abs(sizes).max() and all(sign(row[i]) > 0 for i, row in enumerate(signed)):
                return True
    return False
