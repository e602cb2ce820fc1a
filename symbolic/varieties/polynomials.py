"""Integer polynomials in many unknowns: one FLINT ring for a whole system, and what is asked of its members.

A polynomial in transport is a mapping from exponent tuples to integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

__all__ = [
    "Exponents",
    "distinct",
    "evaluate",
    "factored",
    "factored_univariate",
    "linear_root",
    "never_zero",
    "normal",
    "ring",
    "substituted",
    "transported",
    "univariate",
    "unknowns_of",
]

#: A polynomial outside FLINT: exponents of the unknowns -> integer coefficient.
Exponents = Mapping[tuple[int, ...], int]


def ring(names: Sequence[str], order: str = "degrevlex") -> Any:
    """FLINT's ring of integer polynomials in these unknowns."""
    from flint import fmpz_mpoly_ctx

    return fmpz_mpoly_ctx.get(tuple(names), order)


def transported(polynomial: Any) -> dict[tuple[int, ...], int]:
    """The polynomial as plain Python integers."""
    return {tuple(map(int, m)): int(c) for m, c in polynomial.terms()}


def unknowns_of(polynomial: Any) -> frozenset[int]:
    """The places of the unknowns that occur."""
    return frozenset(i for i, degree in enumerate(polynomial.degrees()) if degree > 0)


def distinct(polynomials: Iterable[Any]) -> list[Any]:
    """The normal associates of those that are not zero, each once."""
    found: list[Any] = []
    for polynomial in polynomials:
        member = normal(polynomial)
        if not member.is_zero() and member not in found:
            found.append(member)
    return found


def normal(polynomial: Any) -> Any:
    """The primitive associate with positive leading coefficient."""
    if polynomial.is_zero():
        return polynomial
    primitive = polynomial.primitive()[1]
    return primitive if primitive.leading_coefficient() > 0 else -primitive


def factored(polynomial: Any) -> list[tuple[Any, int]]:
    """Irreducible factors that are not constant, with exponents, in an order that never changes."""
    from flint import fmpq_mpoly_ctx

    # python-flint 0.9 cannot hand over the factors of integer polynomials beyond machine words; of rational
    # ones it can.
    home = polynomial.context()
    rational = fmpq_mpoly_ctx.get(home.names(), home.ordering())
    factors = [
        (_cleared(home, f), int(e))
        for f, e in rational.from_dict(dict(polynomial.to_dict())).factor()[1]
        if not f.is_constant()
    ]
    return sorted(factors, key=lambda pair: (pair[0].total_degree(), sorted(transported(pair[0]).items())))


def _cleared(home: Any, polynomial: Any) -> Any:
    """The normal integer multiple of a rational polynomial."""
    common = lcm(*(int(c.q) for c in polynomial.coeffs()))
    return normal(home.from_dict({m: int(c * common) for m, c in polynomial.to_dict().items()}))


def univariate(polynomial: Any, i: int) -> Any:
    """The same polynomial in FLINT's ring of one unknown; it may hold no other unknown than number i."""
    from flint import fmpz_poly

    coefficients = [0] * (int(polynomial.degrees()[i]) + 1)
    for exponents, coefficient in polynomial.terms():
        coefficients[exponents[i]] = int(coefficient)
    return fmpz_poly(coefficients)


def factored_univariate(polynomial: Any) -> tuple[tuple[tuple[int, ...], int], ...]:
    """For each irreducible factor its coefficients, constant first, the leading one positive, and exponent."""
    found = []
    for factor, exponent in polynomial.factor()[1]:
        coefficients = tuple(int(c) for c in factor.coeffs())
        if len(coefficients) > 1:
            sign = 1 if coefficients[-1] > 0 else -1
            found.append((tuple(sign * c for c in coefficients), int(exponent)))
    return tuple(sorted(found, key=lambda pair: (len(pair[0]), pair[0])))


def linear_root(polynomial: Any) -> tuple[int, Fraction] | None:
    """(i, value) if the polynomial is a x_i + b, else None."""
    occurring = unknowns_of(polynomial)
    if len(occurring) != 1 or polynomial.total_degree() != 1:
        return None
    (i,) = occurring
    constant, slope = univariate(polynomial, i).coeffs()
    return i, Fraction(-int(constant), int(slope))


def substituted(polynomial: Any, i: int, value: Fraction) -> Any:
    """The normal associate of the polynomial with a rational number in the place of unknown i."""
    top = int(polynomial.degrees()[i])
    p, q = value.numerator, value.denominator
    result: dict[tuple[int, ...], int] = {}
    for exponents, coefficient in polynomial.terms():
        e = exponents[i]
        rest = (*exponents[:i], 0, *exponents[i + 1 :])
        result[rest] = result.get(rest, 0) + int(coefficient) * p**e * q ** (top - e)
    return normal(polynomial.context().from_dict(result))


def evaluate(polynomial: Any, values: Sequence[Any]) -> Any:
    """The value at numbers, balls or anything that adds and multiplies, in the working precision."""
    total: Any = 0
    for exponents, coefficient in polynomial.terms():
        term: Any = coefficient
        for value, exponent in zip(values, exponents, strict=False):
            if exponent:
                term = term * value ** int(exponent)
        total = total + term
    return total


def never_zero(terms: Iterable[tuple[Sequence[int], int]], signs: Sequence[str]) -> bool:
    """Whether a polynomial is visibly of one sign: all its terms are, and one of them cannot vanish.

    Args:
        signs: for each unknown "positive", "nonnegative" or "".
    """
    certain, sign = False, 0
    for exponents, coefficient in terms:
        if any(e % 2 and not signs[i] for i, e in enumerate(exponents)) or sign * coefficient < 0:
            return False
        sign = 1 if coefficient > 0 else -1
        certain |= all(e == 0 or signs[i] == "positive" for i, e in enumerate(exponents))
    return certain
