"""Rational expressions as quotients of FLINT polynomials without common factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import sympy as sp

from symbolic.varieties.deadline import Deadline
from symbolic.varieties.polynomials import factored, normal, ring, transported, unknowns_of

__all__ = ["NotAlgebraic", "Quotients"]


class NotAlgebraic(ValueError):
    """A field is not polynomial or rational, nor does a known substitution make it so."""


class Quotients:
    """Quotients of polynomials in fixed symbols.

    Args:
        symbols: all that may occur.
        deadline: until when; by default there is no end.
    """

    def __init__(self, symbols: Sequence[sp.Symbol], deadline: Deadline | None = None):
        self.symbols = tuple(symbols)
        self._deadline = deadline or Deadline(inf)
        self._ring = ring([f"x{i}" for i in range(len(self.symbols))])
        one = self._constant(1)
        self._known: dict[sp.Expr, tuple[Any, Any]] = {
            symbol: (letter, one) for symbol, letter in zip(self.symbols, self._ring.gens(), strict=True)
        }

    def of(self, expression: sp.Expr) -> tuple[Any, Any]:
        """Numerator and denominator, coprime, the denominator with positive leading coefficient."""
        if expression not in self._known:
            self._known[expression] = _reduced(*self._quotient(expression))
        return self._known[expression]

    def factors(self, polynomial: Any) -> list[Any]:
        """The distinct irreducible factors that are not constant."""
        return [factor for factor, _ in factored(polynomial)]

    def holds(self, polynomial: Any, symbols: Sequence[sp.Symbol]) -> bool:
        """Whether one of the symbols occurs."""
        return any(self.symbols[i] in symbols for i in unknowns_of(polynomial))

    def without(
        self,
        polynomial: Any,
        unknowns: tuple[sp.Symbol, ...],
        constants: tuple[sp.Symbol, ...],
        hidden: Mapping[sp.Symbol, sp.Expr],
    ) -> dict[tuple[int, ...], int]:
        """The polynomial in the rest of the symbols, constants being last, without factors of constants alone.

        Raises:
            NotAlgebraic: a constant does not divide out.
        """
        self._deadline.check()
        if constants and not polynomial.is_zero():
            kept = self._constant(1)
            for factor, exponent in factored(polynomial):
                inside = self.holds(factor, unknowns)
                met = [c for c in constants if self.holds(factor, (c,))]
                if inside and met:
                    raise NotAlgebraic(
                        f"The constant {hidden[met[0]]} is not a rational number, and does not divide out."
                    )
                kept = kept * (factor**exponent if inside or not met else 1)
            polynomial = kept
        rest = len(self.symbols) - len(constants)
        return {m[:rest]: c for m, c in transported(normal(polynomial)).items()}

    def _constant(self, value: int) -> Any:
        return self._ring.from_dict({(0,) * len(self.symbols): value})

    def _quotient(self, e: sp.Expr) -> tuple[Any, Any]:
        self._deadline.check()
        if e.is_Rational:
            return self._constant(int(e.p)), self._constant(int(e.q))
        if isinstance(e, sp.Add):
            return self._sum([self.of(part) for part in e.args])
        if isinstance(e, sp.Mul):
            numerator = denominator = self._constant(1)
            for part in e.args:
                a, b = self.of(part)
                numerator, denominator = numerator * a, denominator * b
            return numerator, denominator
        base, exponent = e.as_base_exp()
        numerator, denominator = self.of(base)
        if exponent < 0:
            numerator, denominator = denominator, numerator
        return numerator ** abs(int(exponent)), denominator ** abs(int(exponent))

    def _sum(self, parts: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
        """Terms over one denominator are added first: most sums have few denominators."""
        groups: dict[str, list[Any]] = {}
        for numerator, denominator in parts:
            group = groups.setdefault(str(denominator), [self._constant(0), denominator])
            group[0] = group[0] + numerator
        total, common = self._constant(0), self._constant(1)
        for numerator, denominator in groups.values():
            shared = common.gcd(denominator)
            total = total * (denominator / shared) + numerator * (common / shared)
            common = common * (denominator / shared)
        return total, common


def _reduced(numerator: Any, denominator: Any) -> tuple[Any, Any]:
    if denominator.is_zero():
        raise NotAlgebraic("A denominator is zero for every state.")
    shared = numerator.gcd(denominator)
    if denominator.leading_coefficient() < 0:
        shared = -shared
    return numerator / shared, denominator / shared
