"""Taylor polynomials of expressions, in numbers that are exact while they can be.

A jet is a polynomial in small variables, cut off beyond an order. Expressions are expanded by walking through
them once, so no derivative of a whole right-hand side is ever written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement

import sympy as sp
from flint import fmpq
from sympy.core.relational import Relational

from fixedpoints.near.balls import Number, as_ball, as_rational, is_exact, sign, to_rational, vanishes
from fixedpoints.near.functions import (
    LowerLambertW,
    NotSmoothError,
    UndefinedHereError,
    constant_value,
    function_value,
    taylor,
)

__all__ = ["Jet", "NotSmoothError", "UndefinedHereError", "constant", "expand", "variable"]

#: The variables of a monomial, sorted and repeated: x0^2 x1 is (0, 0, 1).
Powers = tuple[int, ...]


class Jet:
    """A polynomial in small variables, known up to an order: monomial -> coefficient."""

    __slots__ = ("order", "terms")

    def __init__(self, terms: Mapping[Powers, Number], order: int):
        self.terms = {powers: c for powers, c in terms.items() if not (isinstance(c, fmpq) and c == 0)}
        self.order = order

    @property
    def value(self) -> Number:
        """The constant term."""
        return self.terms.get((), fmpq(0))

    def __getitem__(self, powers: Powers) -> Number:
        return self.terms.get(powers, fmpq(0))

    def part(self, degree: int) -> dict[Powers, Number]:
        """The terms of one degree."""
        return {powers: c for powers, c in self.terms.items() if len(powers) == degree}

    def __add__(self, other: Jet) -> Jet:
        terms = dict(self.terms)
        for powers, c in other.terms.items():
            terms[powers] = terms[powers] + c if powers in terms else c
        return Jet(terms, self.order)

    def __mul__(self, other: Jet) -> Jet:
        terms: dict[Powers, Number] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                if len(a) + len(b) <= self.order:
                    powers = tuple(sorted(a + b)) if a and b else a or b
                    terms[powers] = terms[powers] + x * y if powers in terms else x * y
        return Jet(terms, self.order)

    def times(self, factor: Number) -> Jet:
        """The jet multiplied by a number."""
        return Jet({powers: c * factor for powers, c in self.terms.items()}, self.order)

    def moving(self) -> Jet:
        """Without the constant term."""
        return Jet({powers: c for powers, c in self.terms.items() if powers}, self.order)

    def derivative(self, index: int) -> Jet:
        """With respect to one variable; the order falls by one."""
        terms = {}
        for powers, c in self.terms.items():
            if index in powers:
                at = powers.index(index)
                terms[powers[:at] + powers[at + 1 :]] = c * powers.count(index)
        return Jet(terms, self.order - 1)


def constant(number: Number, order: int) -> Jet:
    """The jet of a number."""
    return Jet({(): number}, order)


def variable(index: int, order: int, at: Number | None = None) -> Jet:
    """The jet of  at + x_index."""
    terms: dict[Powers, Number] = {} if at is None else {(): at}
    if order > 0:
        terms[index,] = fmpq(1)
    return Jet(terms, order)


def monomials(variables: int, degree: int) -> Iterator[Powers]:
    """All monomials of a degree."""
    return combinations_with_replacement(range(variables), degree)


def expand(
    expressions: Sequence[sp.Expr],
    values: Mapping[sp.Symbol, Jet],
    order: int,
    number: Callable[[sp.Float], Number] = as_rational,
) -> list[Jet]:
    """The Taylor polynomials of expressions.

    Args:
        expressions: in the symbols of `values`.
        values: the jet of each symbol; its constant term is where it stands.
        order: the degree up to which the result is known.
        number: how a float in an expression is read; by default as the rational that it is.
    Raises:
        UndefinedHereError: no real value, for example a pole or the logarithm of 0.
        NotSmoothError: a value, but no derivatives up to the order, for example |x| at 0.
    """
    walk = _Walk(values, order, number)
    return [walk(sp.sympify(e)) for e in expressions]


class _Walk:
    def __init__(self, values, order: int, number):
        self._order, self._number = order, number
        self._known: dict[sp.Basic, Jet] = dict(values)

    def __call__(self, e: sp.Expr) -> Jet:
        if e not in self._known:
            self._known[e] = self._jet(e)
        return self._known[e]

    def _jet(self, e: sp.Expr) -> Jet:
        if isinstance(e, sp.Float):
            return constant(self._number(e), self._order)
        if isinstance(e, sp.Rational):
            return constant(as_rational(e), self._order)
        if isinstance(e, sp.CRootOf):
            return constant(constant_value(e), self._order)
        if isinstance(e, sp.Add):
            total = Jet({}, self._order)
            for argument in e.args:
                total = total + self(argument)
            return total
        if isinstance(e, sp.Mul):
            product = self(e.args[0])
            for argument in e.args[1:]:
                product = product * self(argument)
            return product
        if isinstance(e, sp.Pow):
            return self._power(e)
        if isinstance(e, (sp.Max, sp.Min, sp.Piecewise)):
            return self(self._chosen(e))
        if e.is_Symbol:
            raise KeyError(f"No value for the symbol {e}.")
        if not e.args:
            return constant(constant_value(e), self._order)
        if isinstance(e, (sp.Abs, sp.sign, sp.Heaviside, sp.floor, sp.ceiling)):
            return self._stepping(e)
        if isinstance(e, sp.LambertW) and e.args[1:] == (-1,):
            return self._of_one(LowerLambertW, e.args[0])
        if len(e.args) == 1:
            return self._of_one(type(e), e.args[0])
        return self._of_many(e)

    def _of_one(self, function: type, argument: sp.Expr) -> Jet:
        inside = self(argument)
        return _composed(taylor(function, inside.value, self._order, _value_at), inside)

    def _power(self, e: sp.Pow) -> Jet:
        base, exponent = self(e.base), sp.Rational(e.exp) if e.exp.is_Float else e.exp
        if exponent.is_Integer and exponent >= 0:
            return _integer_power(base, int(exponent))
        if exponent.is_Rational:
            return _composed(_power_series(base.value, exponent, self._order, e), base)
        if not base.value > 0:
            raise UndefinedHereError(f"{e} needs a positive base")
        logarithm = self(exponent) * _composed(taylor(sp.log, base.value, self._order, _value_at), base)
        return _composed(taylor(sp.exp, logarithm.value, self._order, _value_at), logarithm)

    def _stepping(self, e: sp.Expr) -> Jet:
        """Functions that are constant or linear between their jumps."""
        inside = self(e.args[0])
        side = sign(inside.value)
        if side == 0 and isinstance(e, (sp.Abs, sp.sign)) and self._order == 0:
            return constant(abs(inside.value) if isinstance(e, sp.Abs) else inside.value, 0)
        if isinstance(e, (sp.floor, sp.ceiling)):
            return constant(_whole(e, inside.value), self._order)
        if side == 0:
            raise NotSmoothError(f"{e} has no derivative here")
        if isinstance(e, sp.Abs):
            return inside.times(fmpq(side))
        value = fmpq(side) if isinstance(e, sp.sign) else fmpq(int(side > 0))
        return constant(value, self._order)

    def _chosen(self, e: sp.Expr) -> sp.Expr:
        """The branch or extreme that holds in a whole neighbourhood (for a mere value: that holds here)."""
        if isinstance(e, sp.Piecewise):
            for value, condition in e.args:
                if self._holds(condition):
                    return value
            raise UndefinedHereError(f"no branch of {e} holds")
        best = e.args[0]
        for other in e.args[1:]:
            side = sign(self(other).value - self(best).value)
            if side == 0 and self._order > 0:
                raise NotSmoothError(f"{e} has no derivative here")
            best = other if (side > 0) == isinstance(e, sp.Max) else best
        return best

    def _holds(self, condition: sp.Basic) -> bool:
        if condition in (sp.true, sp.false):
            return bool(condition)
        if isinstance(condition, sp.And):
            return all(self._holds(c) for c in condition.args)
        if isinstance(condition, sp.Or):
            return any(self._holds(c) for c in condition.args)
        if isinstance(condition, sp.Not):
            return not self._holds(condition.args[0])
        if not isinstance(condition, Relational):
            raise NotSmoothError(f"the condition {condition} cannot be decided")
        difference = self(condition.lhs).value - self(condition.rhs).value
        side = sign(difference)
        if side == 0 and (self._order > 0 or not is_exact(difference)):
            raise NotSmoothError(f"{condition} changes here")
        if isinstance(condition, (sp.Eq, sp.Ne)):
            return (side == 0) == isinstance(condition, sp.Eq)
        if side == 0:
            return isinstance(condition, (sp.Ge, sp.Le))
        return (side > 0) == isinstance(condition, (sp.Gt, sp.Ge))

    def _of_many(self, e: sp.Expr) -> Jet:
        """A function of several arguments, by its partial derivatives; only of first order."""
        inside = [self(a) for a in e.args]
        moving = [jet.moving() for jet in inside]
        at = [jet.value for jet in inside]
        total = constant(function_value(type(e), at), self._order)
        if all(not jet.terms for jet in moving):
            return total
        if self._order > 1:
            raise NotSmoothError(f"{type(e).__name__} of several arguments is expanded to first order only")
        dummies = sp.symbols(f"z:{len(at)}", real=True)
        here = {z: constant(c, 0) for z, c in zip(dummies, at, strict=True)}
        for z, jet in zip(dummies, moving, strict=True):
            slope = expand([type(e)(*dummies).diff(z)], here, 0, self._number)[0].value
            total = total + jet.times(slope)
        return total


def _whole(e: sp.Expr, value: Number) -> fmpq:
    """floor or ceiling, away from its jumps."""
    below = fmpq(value.floor()) if isinstance(value, fmpq) else value.floor().unique_fmpz()
    if below is None or value == below:
        raise NotSmoothError(f"{e} jumps here")
    return fmpq(below) + int(isinstance(e, sp.ceiling))


def _integer_power(base: Jet, exponent: int) -> Jet:
    result = constant(fmpq(1), base.order)
    while exponent:
        if exponent % 2:
            result = result * base
        exponent //= 2
        if exponent:
            base = base * base
    return result


def _composed(series: Sequence[Number], inside: Jet) -> Jet:
    """sum_k series[k] (inside - inside(0))^k, by Horner's rule."""
    moving, order = inside.moving(), inside.order
    result = constant(series[-1], order)
    for c in reversed(series[:-1]):
        result = result * moving + constant(c, order)
    return result


def _power_series(c: Number, exponent: sp.Rational, order: int, e: sp.Expr) -> list[Number]:
    """Coefficients of (c + z)^exponent."""
    r = as_rational(exponent)
    if vanishes(c):
        if exponent < 0:
            raise UndefinedHereError(f"{e} has a pole here")
        if not isinstance(c, fmpq) or exponent < order:
            raise NotSmoothError(f"{e} has no derivative of order {order} here")
        return [fmpq(0)] * (order + 1)
    if not exponent.is_Integer and c < 0:
        raise UndefinedHereError(f"{e} is not real here")
    power, coefficient, series = _scalar_power(c, exponent), fmpq(1), []
    for k in range(order + 1):
        series.append(power * coefficient)
        power, coefficient = power / c, coefficient * (r - k) / (k + 1)
    return series


def _scalar_power(c: Number, exponent: sp.Rational) -> Number:
    if exponent.is_Integer:
        return c ** int(exponent)
    if isinstance(c, fmpq):
        value = to_rational(c) ** exponent
        if value.is_Rational:
            return as_rational(value)
    return as_ball(c).root(int(exponent.q)) ** int(exponent.p)


def _value_at(expression: sp.Expr, symbol: sp.Symbol, c: Number) -> Number:
    return expand([expression], {symbol: constant(c, 0)}, 0)[0].value
