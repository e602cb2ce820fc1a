"""Sums of exponentials of s, exactly: their sums, products and quotients, and the leading terms of these.

A function is  sum_r c_r exp(r s)  with rational rates r and coefficients that are sums of exp(rational) with rational
factors. Such a coefficient vanishes only if it is empty (Lindemann-Weierstrass), so that leading terms are exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import sympy as sp

__all__ = ["ONE", "Function", "Number", "Quotient", "leading", "plus", "scaled", "sign", "times", "written"]

#: A number: sum of factor * exp(exponent), exponent -> factor. A function of s: rate -> number.
Number = dict[Fraction, Fraction]
Function = dict[Fraction, Number]

ONE: Function = {Fraction(0): {Fraction(0): Fraction(1)}}


def plus(*functions: Function) -> Function:
    """The sum, without what is zero."""
    total: Function = defaultdict(lambda: defaultdict(Fraction))
    for function in functions:
        for rate, number in function.items():
            for exponent, factor in number.items():
                total[rate][exponent] += factor
    return _tidy(total)


def times(first: Function, second: Function) -> Function:
    """The product, without what is zero."""
    total: Function = defaultdict(lambda: defaultdict(Fraction))
    for (p, x), (q, y) in product(first.items(), second.items()):
        for (a, c), (b, d) in product(x.items(), y.items()):
            total[p + q][a + b] += c * d
    return _tidy(total)


def scaled(function: Function, by: Fraction) -> Function:
    """The product with a rational number."""
    return _tidy({rate: {e: c * by for e, c in number.items()} for rate, number in function.items()})


def _tidy(function: Function) -> Function:
    kept = {rate: {e: c for e, c in number.items() if c} for rate, number in function.items()}
    return {rate: number for rate, number in kept.items() if number}


@dataclass(frozen=True)
class Quotient:
    """A quotient of functions, neither of them zero."""

    above: Function
    below: Function

    @property
    def rate(self) -> Fraction:
        """Of its leading term for s -> oo."""
        return max(self.above) - max(self.below)

    @property
    def lead(self) -> Quotient:
        """The coefficient of its leading term, a quotient of two constants."""
        zero = Fraction(0)
        return Quotient({zero: self.above[max(self.above)]}, {zero: self.below[max(self.below)]})

    def __add__(self, other: Quotient) -> Quotient | None:
        """The sum; None if it is zero."""
        if self.below == other.below:
            above, below = plus(self.above, other.above), self.below
        else:
            above = plus(times(self.above, other.below), times(other.above, self.below))
            below = times(self.below, other.below)
        return Quotient(above, below) if above else None


def leading(terms: Iterable[Quotient]) -> tuple[Fraction, sp.Expr] | None:
    """Rate and coefficient of the leading term of a sum of quotients; None if the sum is zero.

    Terms of the same rate can cancel: then their exact sum, which falls faster, takes their place.
    """
    left = list(terms)
    while left:
        rate = max(term.rate for term in left)
        tied = [term for term in left if term.rate == rate]
        coefficient = _sum(term.lead for term in tied)
        if coefficient is not None:
            return rate, written(*coefficient.above.values()) / written(*coefficient.below.values())
        rest = _sum(tied)
        left = [term for term in left if term.rate != rate] + ([] if rest is None else [rest])
    return None


def _sum(terms: Iterable[Quotient]) -> Quotient | None:
    total: Quotient | None = None
    for term in terms:
        total = term if total is None else total + term
    return total


def written(number: Number) -> sp.Expr:
    """A number as an expression."""
    return sp.Add(*(_rational(c) * sp.exp(_rational(e)) for e, c in sorted(number.items())))


def _rational(value: Fraction) -> sp.Rational:
    return sp.Rational(value.numerator, value.denominator)


def sign(number: sp.Expr) -> int:
    """The sign of a sum of exponentials that is not zero unless it is literally 0; digits are added until it shows."""
    if number == 0:
        return 0
    digits = 30
    while True:
        value = sp.N(number, digits, maxn=digits + 10_000)
        if abs(value) > 0 and value.is_comparable:
            return 1 if value > 0 else -1
        digits *= 2
