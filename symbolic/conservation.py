"""First integrals: prove that a quantity is conserved, or find every polynomial one up to a degree."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import combinations_with_replacement

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from symbolic.errors import NotConservedError, UndecidedError
from symbolic.field import VectorField
from symbolic.zero import exact, is_zero, residual

__all__ = ["FirstIntegral", "find", "verify"]


@dataclass(frozen=True)
class FirstIntegral:
    """A function I(t, x; p) that is constant along a flow:  dI/dt + sum_i f_i dI/dx_i = 0, proven.

    Made by `verify` or `find`, which hold the proof; `field` is the flow along which it is constant.
    """

    field: VectorField
    expression: sp.Expr
    source: str = dataclasses.field(default="", compare=False)

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {sp.latex(self.expression)} = \mathrm{{const}}$"


def verify(field: VectorField, expression: sp.Expr, *, source: str = "") -> FirstIntegral:
    """Prove that an expression is constant along the flow,  dI/dt + f . grad I = 0.

    Args:
        field: the flow.
        expression: I, in state, parameters and time of the field.
        source: where the quantity comes from.
    Raises:
        ValueError: the expression uses other symbols, or none of the state.
        NotConservedError: it changes; `residual` is its rate of change.
        UndecidedError: its rate of change could be shown neither zero nor non-zero.
    """
    expression = sp.sympify(expression)
    known = {*field.state, *field.parameters, *((field.time,) if field.time is not None else ())}
    foreign = sorted(str(s) for s in expression.free_symbols - known)
    if foreign:
        raise ValueError(
            f"The quantity {expression} uses {foreign}, which the field does not have. "
            f"Write it in {sorted(s.name for s in known)}."
        )
    if not expression.free_symbols & set(field.state):
        raise ValueError(f"The quantity {expression} does not depend on the state {list(field.names)}.")
    rate = field.lie_derivative(expression)
    verdict = is_zero(rate)
    if verdict is None:
        raise UndecidedError(
            f"Could not decide whether {expression} is conserved: its rate of change simplifies to "
            f"{residual(rate)}, which is zero at every point tried. Rewrite it in simpler functions.",
            residual(rate),
        )
    if not verdict:
        left = residual(rate)
        raise NotConservedError(
            f"{expression} is not conserved: along the flow it changes at rate {left}.", left
        )
    return FirstIntegral(field, expression, source=source)


def find(field: VectorField, *, degree: int) -> tuple[FirstIntegral, ...]:
    """A basis of all polynomial first integrals up to a total degree, constants left out.

    The rate of change of  sum_m c_m x^m  vanishes identically exactly when the c_m solve a linear system over
    the field of rational functions of the parameters; its null space is the answer, complete for that degree
    and for parameters in general position (special values can have more).

    Args:
        field: an autonomous flow with polynomial or rational right-hand sides.
        degree: the largest total degree in the state, at least 1.
    Returns:
        A basis, each proven by `verify`; empty when there is none.
    Raises:
        ValueError: the field is not rational in its state, depends on time, or the degree is below 1.
    """
    if not isinstance(degree, int) or degree < 1:
        raise ValueError(f"`degree` must be an integer of at least 1; got {degree!r}.")
    if field.time is not None:
        raise ValueError(
            "`find` wants an autonomous field; this one depends on time. Check a candidate with `verify`."
        )
    denominators = []
    for f in field.rhs:
        if not f.is_rational_function(*field.state):
            raise ValueError(
                f"`find` wants right-hand sides that are rational in {list(field.names)}; got {f}. "
                "Check a candidate with `verify`."
            )
        denominators.append(sp.fraction(sp.together(f))[1])
    common = sp.Integer(1)
    for denominator in denominators:
        common = sp.lcm(common, denominator)
    monomials = [
        sp.Mul(*chosen)
        for d in range(1, degree + 1)
        for chosen in combinations_with_replacement(field.state, d)
    ]
    cleared = [sp.Poly(sp.cancel(exact(f) * common), *field.state) for f in field.rhs]
    columns = [_rate(sp.Poly(m, *field.state), cleared) for m in monomials]
    rows = sorted({powers for column in columns for powers in column.as_dict()})
    matrix = sp.Matrix([[column.as_dict().get(powers, 0) for column in columns] for powers in rows])
    if not rows:
        coefficients = sp.eye(len(monomials)).tolist()
    else:
        coefficients = DomainMatrix.from_Matrix(matrix).to_field().nullspace().to_Matrix().tolist()
    return tuple(
        verify(field, sp.Add(*(c * m for c, m in zip(_normalised(row), monomials, strict=True))))
        for row in coefficients
    )


def _rate(monomial: sp.Poly, cleared: list[sp.Poly]) -> sp.Poly:
    rate = sp.Poly(0, *monomial.gens)
    for x, f in zip(monomial.gens, cleared, strict=True):
        rate += monomial.diff(x) * f
    return rate


def _normalised(row: list[sp.Expr]) -> list[sp.Expr]:
    """Leading coefficient 1, so that a basis reads like the textbook's."""
    leading = next(c for c in row if c != 0)
    return [sp.cancel(c / leading) for c in row]
