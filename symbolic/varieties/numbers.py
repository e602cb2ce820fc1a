"""Real algebraic numbers: an irreducible polynomial and which of its roots, with balls of any precision."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

__all__ = ["AlgebraicNumber", "Root", "bounds_of", "fraction_number", "roots_of"]


#: Precision up to which all roots of a polynomial are isolated at once; single ones are refined from there.
_ISOLATED_BITS = 512


@dataclass(frozen=True)
class AlgebraicNumber:
    """The real root number `index`, counted from the left, of an irreducible polynomial.

    `minimal` holds its coprime integer coefficients, constant term first, the leading one positive; two
    numbers are equal exactly when both fields are.
    """

    minimal: tuple[int, ...]
    index: int

    @property
    def degree(self) -> int:
        return len(self.minimal) - 1

    @property
    def rational(self) -> Fraction | None:
        """The number itself when it is rational, else None."""
        return Fraction(-self.minimal[0], self.minimal[1]) if self.degree == 1 else None

    def ball(self, bits: int) -> Any:
        """A real ball (FLINT's arb) around the number, computed with that many bits."""
        if bits <= _ISOLATED_BITS or self.degree == 1:
            return _isolated(self.minimal, bits)[0][self.index]
        return _refined(self.minimal, self.index, bits)

    def bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        """Rational bounds, equal exactly when the number is rational."""
        value = self.rational
        return (value, value) if value is not None else bounds_of(self.ball(bits))

    def sign(self) -> int:
        """-1, 0 or 1; exact."""
        if self.minimal == (0, 1):
            return 0
        bits = 64
        while (ball := self.ball(bits)).contains(0):
            bits *= 2
        return 1 if ball > 0 else -1

    def __lt__(self, other: AlgebraicNumber) -> bool:
        if self == other:
            return False
        bits = 64
        while (mine := self.ball(bits)).overlaps(theirs := other.ball(bits)):
            bits *= 2
        return bool(mine < theirs)

    def __float__(self) -> float:
        value = self.rational
        return float(value) if value is not None else float(self.ball(128).mid())


@dataclass(frozen=True, eq=False)
class Root:
    """A complex root: its ball, its multiplicity, and the number that it is when it is real (else None)."""

    ball: Any
    multiplicity: int
    number: AlgebraicNumber | None


def fraction_number(value: Fraction) -> AlgebraicNumber:
    """A rational number as an algebraic one."""
    return AlgebraicNumber((-value.numerator, value.denominator), 0)


def roots_of(factors: tuple[tuple[tuple[int, ...], int], ...], bits: int) -> list[Root]:
    """All complex roots of a product of irreducible polynomials, given with their exponents."""
    found = []
    for minimal, multiplicity in factors:
        real, other = _isolated(minimal, bits)
        found += [Root(_complex(b), multiplicity, AlgebraicNumber(minimal, i)) for i, b in enumerate(real)]
        found += [Root(b, multiplicity, None) for b in other]
    return found


def bounds_of(ball: Any) -> tuple[Fraction, Fraction]:
    """The rational end points of a real ball, exactly."""
    middle, radius = _dyadic(ball.mid()), _dyadic(ball.rad())
    return middle - radius, middle + radius


@lru_cache(maxsize=1024)
def _isolated(minimal: tuple[int, ...], bits: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Real roots in increasing order and the other ones, in pairwise disjoint balls.

    FLINT proves which roots are real: their balls have the imaginary part zero exactly.
    """
    from flint import ctx, fmpz_poly

    with ctx.workprec(bits):
        balls = [ball for ball, _ in fmpz_poly(list(minimal)).complex_roots()]
        if len(minimal) == 2:
            return (_quotient(-minimal[0], minimal[1]),), ()
    real = sorted((ball.real for ball in balls if ball.imag.is_zero()), key=lambda ball: bounds_of(ball)[0])
    return tuple(real), tuple(ball for ball in balls if not ball.imag.is_zero())


@lru_cache(maxsize=256)
def _refined(minimal: tuple[int, ...], index: int, bits: int) -> Any:
    """One real root by the interval Newton method, x in m - p(m) / p'(X): far cheaper than all roots."""
    from flint import arb, ctx, fmpz_poly

    polynomial = fmpz_poly(list(minimal))
    slope = polynomial.derivative()
    steps = [_ISOLATED_BITS]
    while True:
        with ctx.workprec(steps[0]):
            ball = _isolated(minimal, steps[0])[0][index]
            # Close roots need more bits before the slope on the ball is certainly not zero.
            if not slope(ball).contains(0):
                break
        steps[0] *= 2
    while steps[-1] < bits + 64:
        steps.append(min(2 * steps[-1], bits + 64))
    # One step more at full precision for what the factor of quadratic convergence costs.
    for precision in (*steps[1:], steps[-1]):
        with ctx.workprec(precision):
            middle = arb(ball.mid())
            ball = middle - polynomial(middle) / slope(ball)
    return ball


def _quotient(numerator: int, denominator: int) -> Any:
    from flint import arb, fmpq

    return arb(fmpq(numerator, denominator))


def _complex(ball: Any) -> Any:
    from flint import acb

    return acb(ball)


def _dyadic(number: Any) -> Fraction:
    mantissa, exponent = (int(part) for part in number.man_exp())
    return Fraction(mantissa * 2**exponent) if exponent >= 0 else Fraction(mantissa, 2**-exponent)
