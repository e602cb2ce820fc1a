"""From the unknowns back to the states: balls of any precision, exact bounds, and expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from symbolic.varieties.form import StateForm
from symbolic.varieties.numbers import AlgebraicNumber, bounds_of

__all__ = ["Coordinate", "expression_of", "number_expression"]

#: Degree beyond which an algebraic number is written as a decimal number, not as a root of its polynomial.
_LARGEST_DEGREE = 10


@dataclass(frozen=True)
class Coordinate:
    """The value of one state at a point: the numbers of its unknowns, and how the state is written with them."""

    form: StateForm
    numbers: tuple[AlgebraicNumber, ...]

    @property
    def exact(self) -> Fraction | None:
        """The value itself, if it is visibly rational."""
        first = self.numbers[0].rational
        if first is None:
            return None
        if self.form.kind == "plain":
            return first
        if self.form.kind == "power":
            return first ** int(self.form.unit)
        return Fraction(0) if first == 1 else None

    def ball(self, bits: int) -> Any:
        """A real ball around the value."""
        from flint import arb, ctx, fmpq

        with ctx.workprec(bits + 16):
            if self.exact is not None:
                return arb(fmpq(self.exact.numerator, self.exact.denominator))
            first, *rest = (number.ball(bits) for number in self.numbers)
            if self.form.kind == "plain":
                return first
            if self.form.kind == "power":
                return first ** int(self.form.unit)
            value = first.log() if self.form.kind == "exponential" else arb.atan2(rest[0], first)
            return value / _ball(self.form.unit, bits + 16)

    def bounds(self, bits: int) -> tuple[sp.Rational, sp.Rational]:
        """Rational bounds, equal where the value is visibly rational."""
        low, high = (self.exact, self.exact) if self.exact is not None else bounds_of(self.ball(bits))
        return sp.Rational(low.numerator, low.denominator), sp.Rational(high.numerator, high.denominator)

    def expression(self) -> sp.Expr:
        """The value as an expression: radicals, roots of polynomials, logarithms and angles."""
        return expression_of(self.form, tuple(number_expression(number) for number in self.numbers))

    def __float__(self) -> float:
        return float(self.exact) if self.exact is not None else float(self.ball(128).mid())


def expression_of(form: StateForm, values: tuple[sp.Expr, ...]) -> sp.Expr:
    """The state in terms of the values of its unknowns."""
    if form.kind == "plain":
        return values[0]
    if form.kind == "power":
        return sp.expand(values[0] ** form.unit)
    value = sp.log(values[0]) if form.kind == "exponential" else sp.atan2(values[1], values[0])
    return value / form.unit


def number_expression(number: AlgebraicNumber) -> sp.Expr:
    """A rational number, a square root, or the root of its polynomial; a decimal number if that is too large."""
    if number.degree == 1:
        value = number.rational
        assert value is not None
        return sp.Rational(value.numerator, value.denominator)
    if number.degree == 2:
        c, b, a = number.minimal
        root = sp.sqrt(b * b - 4 * a * c)
        return (-b + (root if number.index else -root)) / (2 * a)
    if number.degree <= _LARGEST_DEGREE:
        x = sp.Symbol("x")
        return sp.CRootOf(sp.Poly(number.minimal[::-1], x), number.index)
    low, high = number.bounds(160)
    middle = (low + high) / 2
    return sp.Float(sp.Rational(middle.numerator, middle.denominator), 40)


def _ball(value: sp.Expr, bits: int) -> Any:
    """A ball around a constant; SymPy's decimals are right to the last digit but one."""
    from flint import arb, fmpq

    if value.is_Rational:
        return arb(fmpq(int(value.p), int(value.q)))
    digits = bits // 3 + 10
    near = sp.Rational(str(value.evalf(digits)))
    radius = abs(near) / sp.Integer(10) ** (digits - 3)
    return arb(fmpq(int(near.p), int(near.q)), arb(fmpq(int(radius.p), int(radius.q))).upper())


def placed(form: StateForm, places: Mapping[sp.Symbol, AlgebraicNumber]) -> Coordinate:
    """The coordinate of a state at a point given by the numbers of all unknowns."""
    return Coordinate(form, tuple(places[u] for u in form.unknowns))
