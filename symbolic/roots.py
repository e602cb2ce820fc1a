"""Certified roots of a polynomial in one variable: all of them, with exact multiplicity and proven enclosure.

Roots that radicals cannot express are roots like all others. The enclosures come from ball arithmetic
(FLINT's Arb), so that a count or an order of roots is a proof and not a matter of tolerances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import sympy as sp

from symbolic.zero import exact

__all__ = ["ComplexRoot", "RealRoot", "complex_roots", "real_roots"]

#: Precision with which isolation starts; it is doubled until all enclosures are disjoint.
_FIRST_BITS = 64


@dataclass(frozen=True)
class RealRoot:
    """A real root x of a polynomial, lower <= x <= upper, the only root of the polynomial in that interval.

    `lower` and `upper` are rational, and equal exactly when the root is rational. `minimal` is the
    irreducible factor, with integer coefficients, of which x is a simple root; `multiplicity` is x's in the
    whole polynomial.
    """

    lower: sp.Rational
    upper: sp.Rational
    multiplicity: int
    minimal: sp.Poly

    def interval(self, digits: int = 15) -> tuple[sp.Rational, sp.Rational]:
        """Rational bounds of the root whose distance is at most 10^-digits |root|."""
        return _refined(self, digits, lambda ball: (_bounds(ball.real),))[0]

    def value(self, digits: int = 15) -> sp.Float:
        """The root with that many correct decimal digits, up to one unit in the last."""
        lower, upper = self.interval(digits + 3)
        return sp.Float((lower + upper) / 2, digits)

    def __float__(self) -> float:
        lower, upper = self.interval(25)
        return float((lower + upper) / 2)


@dataclass(frozen=True)
class ComplexRoot:
    """A root z of a polynomial, in a box that holds no other; rational bounds of real and imaginary part.

    A real root has the imaginary bounds (0, 0), and no other root has 0 between its imaginary bounds.
    """

    real: tuple[sp.Rational, sp.Rational]
    imaginary: tuple[sp.Rational, sp.Rational]
    multiplicity: int
    minimal: sp.Poly

    def value(self, digits: int = 15) -> sp.Expr:
        """The root, its larger part with that many correct decimal digits."""
        real, imaginary = _refined(self, digits + 3, lambda z: (_bounds(z.real), _bounds(z.imag)))
        parts = [sp.Float(sum(ends) / 2, digits) for ends in (real, imaginary)]
        return parts[0] if self.imaginary == (0, 0) else parts[0] + sp.I * parts[1]

    def __complex__(self) -> complex:
        return complex(self.value(25))


def real_roots(polynomial: sp.Expr | sp.Poly, symbol: sp.Symbol) -> tuple[RealRoot, ...]:
    """Every real root, in increasing order, with disjoint isolating intervals.

    Args:
        polynomial: a polynomial with rational coefficients; a float is the exact rational that it is.
        symbol: its variable.
    Raises:
        ValueError: it is no polynomial in the symbol, a coefficient is not rational, or it is zero.
    """
    factors = _factors(polynomial, symbol)
    bits = _FIRST_BITS
    while True:
        found = []
        for factor, minimal, multiplicity in factors:
            for ball in _balls(factor, bits):
                if ball.imag.is_zero():
                    found.append(RealRoot(*_exact_or_bounds(factor, ball), multiplicity, minimal))
        found.sort(key=lambda root: root.lower)
        if all(a.upper < b.lower for a, b in pairwise(found)):
            return tuple(found)
        bits *= 2


def complex_roots(polynomial: sp.Expr | sp.Poly, symbol: sp.Symbol) -> tuple[ComplexRoot, ...]:
    """Every complex root, ordered by real and then imaginary part, in disjoint isolating boxes.

    Args, Raises: as in `real_roots`. Roots that are not real come in conjugate pairs.
    """
    factors = _factors(polynomial, symbol)
    bits = _FIRST_BITS
    while True:
        found = [
            ComplexRoot(_bounds(ball.real), _bounds(ball.imag), multiplicity, minimal)
            for factor, minimal, multiplicity in factors
            for ball in _balls(factor, bits)
        ]
        found.sort(key=lambda root: (root.real[0], root.imaginary[0]))
        if not any(_overlap(a, b) for i, a in enumerate(found) for b in found[:i]):
            return tuple(found)
        bits *= 2


def _factors(polynomial: sp.Expr | sp.Poly, symbol: sp.Symbol) -> list[tuple[Any, sp.Poly, int]]:
    """(irreducible factor for FLINT, the same for SymPy, multiplicity) over the integers."""
    from flint import fmpz_poly

    expression = exact(polynomial.as_expr() if isinstance(polynomial, sp.Poly) else sp.sympify(polynomial))
    try:
        poly = sp.Poly(expression, symbol)
    except sp.PolynomialError:
        raise ValueError(f"{expression} is not a polynomial in {symbol}.") from None
    if not (poly.domain.is_ZZ or poly.domain.is_QQ):
        raise ValueError(
            f"Certified roots need rational coefficients; got those of {expression} in {symbol}. "
            "Give a number for each parameter."
        )
    if poly.is_zero:
        raise ValueError(f"The zero polynomial vanishes everywhere; it has no isolated roots in {symbol}.")
    integer = poly.clear_denoms(convert=True)[1]
    _, factors = fmpz_poly([int(c) for c in reversed(integer.all_coeffs())]).factor()
    return [(f, sp.Poly([int(c) for c in reversed(f.coeffs())], symbol), int(m)) for f, m in factors]


def _balls(factor: Any, bits: int) -> list[Any]:
    """Disjoint complex balls, one for each root of an irreducible polynomial; exactly real for real roots."""
    from flint import ctx

    with ctx.workprec(bits):
        return [ball for ball, _ in factor.complex_roots()]


def _exact_or_bounds(factor: Any, ball: Any) -> tuple[sp.Rational, sp.Rational]:
    if factor.degree() > 1:
        return _bounds(ball.real)
    root = sp.Rational(-int(factor[0]), int(factor[1]))
    return root, root


def _bounds(ball: Any) -> tuple[sp.Rational, sp.Rational]:
    middle, radius = (_dyadic(part) for part in (ball.mid(), ball.rad()))
    return middle - radius, middle + radius


def _dyadic(number: Any) -> sp.Rational:
    mantissa, exponent = (int(part) for part in number.man_exp())
    return sp.Integer(mantissa) * sp.Integer(2) ** exponent


def _refined(root: RealRoot | ComplexRoot, digits: int, parts) -> tuple[tuple[sp.Rational, sp.Rational], ...]:
    """The parts' bounds, narrowed until the widest is at most 10^-digits of the root's size."""
    from flint import fmpz_poly

    factor = fmpz_poly([int(c) for c in reversed(root.minimal.all_coeffs())])
    if factor.degree() == 1:
        middle = sp.Rational(-int(factor[0]), int(factor[1]))
        return (
            ((middle, middle),) if isinstance(root, RealRoot) else ((middle, middle), (sp.S.Zero, sp.S.Zero))
        )
    known = (root.lower, root.upper) if isinstance(root, RealRoot) else root.real
    height = (sp.S.Zero, sp.S.Zero) if isinstance(root, RealRoot) else root.imaginary
    bits = max(_FIRST_BITS, math.ceil(digits * math.log2(10)) + 16)
    while True:
        # The root's own enclosure is the only one that meets the box which isolates it.
        near = [
            b
            for b in _balls(factor, bits)
            if _meet(_bounds(b.real), known) and _meet(_bounds(b.imag), height)
        ]
        if len(near) == 1:
            bounds = parts(near[0])
            size = max(abs(a + b) / 2 for a, b in bounds)
            if all(b - a <= size / sp.Integer(10) ** digits for a, b in bounds):
                return bounds
        bits *= 2


def _meet(a: tuple[sp.Rational, sp.Rational], b: tuple[sp.Rational, sp.Rational]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _overlap(a: ComplexRoot, b: ComplexRoot) -> bool:
    return _meet(a.real, b.real) and _meet(a.imaginary, b.imaginary)
