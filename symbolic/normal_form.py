"""A fast exact proof that an expression vanishes: everything transcendental is a letter, the rest is a polynomial.

Exponentials, roots, symbolic powers and functions become independent letters, tied only by relations that always
hold (R^q = base, cosh^2 - sinh^2 = 1, ...). If the numerator is zero as a polynomial over the rationals modulo
these relations, the expression is identically zero wherever it is real. The converse does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import sympy as sp
from sympy.polys.rings import PolyRing

__all__ = ["vanishes"]

#: Pairs of functions with  first^2 - sign * second^2 = 1  at equal arguments.
_PAIRS = {sp.cosh: (sp.sinh, 1), sp.cos: (sp.sin, -1)}


def vanishes(
    expression: sp.Expr,
    relations: Sequence[sp.Expr] = (),
    definitions: Mapping[sp.Symbol, sp.Expr] | None = None,
) -> bool:
    """True if the expression is proven to be identically zero; False says nothing.

    Args:
        expression: an expression in real symbols.
        relations: polynomials that are zero by assumption.
        definitions: what symbols in the expression stand for, for bases of powers that are positive for a
            reason that SymPy cannot see; written out after the powers have been collected.
    """
    letters = _Letters((expression, *(definitions or {}).values()))
    plain = letters.write(expression)
    for symbol, meaning in (definitions or {}).items():
        plain = plain.xreplace({symbol: letters.write(meaning)})
    numerator = sp.numer(sp.together(plain))
    ties = [sp.expand(sp.numer(sp.together(tie))) for tie in (*letters.ties, *relations)]
    # Lexicographic, tied letters first: each tie then leads with the power of the letter that it reduces.
    others = sorted({s for e in (numerator, *ties) for s in e.free_symbols} - set(letters.tied), key=str)
    generators = [*letters.tied, *others]
    if not generators:
        return numerator == 0
    ring = PolyRing(generators, sp.QQ, "lex")
    return not ring.from_expr(numerator).rem([ring.from_expr(tie) for tie in ties])


class _Letters:
    """The letters of one expression; `ties` are polynomials in them that vanish, `tied` the letters they reduce."""

    def __init__(self, expressions: Sequence[sp.Expr]):
        self.ties: list[sp.Expr] = []
        self.tied: list[sp.Symbol] = []
        self._known: dict[tuple, sp.Symbol] = {}
        self._units = _exponent_units(expressions)

    def write(self, expression: sp.Expr) -> sp.Expr:
        if expression.is_Rational or expression.is_Symbol:
            return expression
        if isinstance(expression, (sp.Add, sp.Mul)):
            return expression.func(*map(self.write, expression.args))
        if isinstance(expression, sp.exp):
            return self._power(sp.E, expression.exp)
        if isinstance(expression, sp.Pow):
            base, exponent = expression.as_base_exp()
            return self.write(base) ** exponent if exponent.is_Integer else self._power(base, exponent)
        return self._function(expression)

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        """base^(k + p/q + c u + ...) as base^k R^p L^(c/unit) ..., one letter for each irrational part u."""
        product = sp.S.One
        for term in sp.Add.make_args(sp.expand(exponent)):
            coefficient, part = term.as_coeff_Mul()
            if part == 1 and base != sp.E:
                whole, rest = divmod(coefficient, 1)
                product *= self.write(base) ** whole
                product *= self._root(base, rest) if rest else 1
            else:
                unit = self._units[base, part]
                product *= self._letter((base, part)) ** (coefficient / unit)
        return product

    def _root(self, base: sp.Expr, exponent: sp.Rational) -> sp.Expr:
        """base^exponent; numbers are taken out of the root, so that sqrt(4 x^2 + 4) and sqrt(x^2 + 1) are akin."""
        content, core = sp.expand(base).as_content_primitive()
        factors = [core] if content == 1 else [content, core]
        return sp.Mul(
            *(self._root_letter(factor, exponent.q) ** exponent.p for factor in factors if factor != 1)
        )

    def _root_letter(self, base: sp.Expr, q: int) -> sp.Expr:
        if base.is_Rational and (base ** sp.Rational(1, q)).is_Rational:
            return base ** sp.Rational(1, q)
        key = (base, sp.Rational(1, q))
        if key not in self._known:
            value = self.write(base)
            self._tie(self._letter(key), self._letter(key) ** q - value)
        return self._known[key]

    def _function(self, expression: sp.Expr) -> sp.Expr:
        letter = self._letter((expression,))
        if isinstance(expression, sp.Abs) and letter not in self.tied:
            self._tie(letter, letter**2 - self.write(expression.args[0]) ** 2)
        for first, (second, sign) in _PAIRS.items():
            if isinstance(expression, first) and letter not in self.tied:
                partner = self._letter((second(*expression.args),))
                self._tie(letter, letter**2 - sign * partner**2 - 1)
        return letter

    def _tie(self, letter: sp.Symbol, tie: sp.Expr) -> None:
        # A root of an expression with roots is eliminated before them.
        self.tied.insert(0, letter)
        self.ties.insert(0, tie)

    def _letter(self, key: tuple) -> sp.Symbol:
        if key not in self._known:
            self._known[key] = sp.Dummy(f"L{len(self._known)}", positive=True)
        return self._known[key]


def _exponent_units(expressions: Sequence[sp.Expr]) -> dict[tuple[sp.Expr, sp.Expr], sp.Rational]:
    """For each base and irrational part of its exponents, the rational number that divides all its coefficients:
    exp(-t/2) and exp(-t) become powers of one letter."""
    found: dict[tuple[sp.Expr, sp.Expr], list[sp.Rational]] = {}
    for power in set().union(*(e.atoms(sp.exp, sp.Pow) for e in expressions)):
        base, exponent = power.as_base_exp()
        for term in sp.Add.make_args(sp.expand(exponent)):
            coefficient, part = term.as_coeff_Mul()
            found.setdefault((base, part), []).append(coefficient)
    return {key: _common_unit(values) for key, values in found.items()}


def _common_unit(values: Sequence[sp.Rational]) -> sp.Rational:
    """The largest rational that divides each value (a gcd over the field of rationals would be one)."""
    common = math.lcm(*(int(value.q) for value in values))
    return sp.Rational(math.gcd(*(int(value.p * (common // value.q)) for value in values)), common)
