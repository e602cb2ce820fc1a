"""Flow, gradient descent and linear first integrals from a gradient that is already in the form to compute with."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from symbolic.conservation import FirstIntegral, verify
from symbolic.field import IteratedMap, VectorField
from symbolic.softmax_regression.data import symbols_of

__all__ = ["conserved", "descent", "flat_conditions", "flow", "null_directions", "shortest_growth"]


def flow(
    weights: tuple[sp.Symbol, ...],
    gradient: Sequence[sp.Expr],
    parameters: tuple[sp.Symbol, ...],
    source: str,
) -> VectorField:
    """x' = -grad L."""
    return VectorField(weights, tuple(-g for g in gradient), parameters, source=source)


def descent(
    weights: tuple[sp.Symbol, ...],
    gradient: Sequence[sp.Expr],
    parameters: tuple[sp.Symbol, ...],
    step: sp.Expr,
    source: str,
) -> IteratedMap:
    """x -> x - eta grad L  with eta = `step`.

    Raises:
        ValueError: eta is no positive, finite number or expression, or depends on a weight.
    """
    step = sp.sympify(step)
    number = isinstance(step, sp.Expr) and step is not sp.nan and step.is_positive is not False
    if not number or step.free_symbols & set(weights):
        raise ValueError(f"`step` must be positive and must not depend on the weights; got {step}.")
    rhs = tuple(x - step * g for x, g in zip(weights, gradient, strict=True))
    new = tuple(s for s in symbols_of((step,)) if s not in parameters)
    return IteratedMap(weights, rhs, (*parameters, *new), source=source)


def conserved(field: VectorField, direction: sp.MatrixBase, source: str) -> FirstIntegral:
    """<v, x>, proven constant along a gradient flow.

    That is v^T grad L = 0 identically, so gradient descent keeps <v, x> too, exactly and with any step.
    """
    return verify(field, (direction.T * sp.Matrix(field.state))[0], source=source)


def flat_conditions(blocks: Sequence[sp.MatrixBase], normalization: str) -> sp.ImmutableMatrix:
    """The matrix that sends to zero the v along which no loss of A_p x changes, whatever its target is.

    normalized: A_p v = t_p 1 for some t_p, a shift of all logits of p, so the differences of rows; rescaled: A_p v = 0,
    so the rows themselves.
    """
    if normalization == "normalized":
        blocks = [block[1:, :] - sp.ones(block.rows - 1, 1) * block[0, :] for block in blocks]
    return sp.ImmutableMatrix(sp.Matrix.vstack(*map(sp.Matrix, blocks)))


def null_directions(conditions: sp.MatrixBase) -> tuple[sp.ImmutableMatrix, ...]:
    """A basis of the null space; without fractions, and for letters in general position."""
    found = []
    for v in conditions.nullspace(simplify=True):
        denominators = [sp.denom(sp.together(entry)) for entry in v]
        found.append(sp.ImmutableMatrix((v * sp.lcm_list(denominators)).applyfunc(sp.cancel)))
    return tuple(found)


def shortest_growth(A: sp.MatrixBase, name: str = "A") -> sp.ImmutableMatrix:
    """The shortest v with A v = 1.

    Raises:
        ValueError: there is none.
    """
    try:
        # The shortest solution lies in the row space.
        y, free = (A * A.T).gauss_jordan_solve(sp.ones(A.rows, 1))
    except ValueError:
        raise ValueError(
            f"No v has {name} v = (1, ..., 1), so that the rescaled loss has no direction of pure growth: "
            f"the columns of {name} = {A.tolist()} do not span it."
        ) from None
    return sp.ImmutableMatrix((A.T * y.xreplace(dict.fromkeys(free, sp.S.Zero))).applyfunc(sp.factor))
