"""Points with algebraic coordinates, and the exact question whether a polynomial vanishes there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from symbolic.varieties.numbers import AlgebraicNumber
from symbolic.varieties.polynomials import Exponents, evaluate

__all__ = ["AlgebraicPoint", "avoids", "hessian_is_definite", "in_order", "jacobian_rank", "vanishes"]


@dataclass(frozen=True)
class AlgebraicPoint:
    """A real point.

    Args:
        coordinates: one number for each unknown.
        multiplicity: how often it counts as a solution; None where that is not known.
        degree: a bound of the degree of the number field that the coordinates generate.
        curve: the plane curve of which it is an isolated real point, as the curve's key; else None.
    """

    coordinates: tuple[AlgebraicNumber, ...]
    multiplicity: int | None
    degree: int
    curve: tuple | None = None


def vanishes(polynomial: Any, point: AlgebraicPoint) -> bool:
    """Whether a polynomial is zero at a point: exact.

    With the leading coefficients a_i of the coordinates' minimal polynomials and the degrees d_i of p in them,
    a_1^d_1 ... a_n^d_n p(z) is an algebraic integer, and the product of its conjugates is an integer. So if p(z)
    is not zero, then |p(z)| is at least the inverse of a bound of the others' product.
    """
    from flint import arb, ctx

    floor = _floor_bits(polynomial, point)
    bits = 128
    while True:
        with ctx.workprec(bits):
            value = evaluate(polynomial, [x.ball(bits) for x in point.coordinates])
            value = value if isinstance(value, arb) else arb(value)
            if not value.contains(0):
                return False
            if value.abs_upper() < arb(2) ** -floor:
                return True
        bits *= 2


def _floor_bits(polynomial: Any, point: AlgebraicPoint) -> int:
    """A number f such that |p(z)| < 2^-f only if p(z) = 0."""
    cleared = 0.0
    size = math.log2(1 + sum(abs(int(c)) for c in polynomial.coeffs()))
    for x, highest in zip(point.coordinates, polynomial.degrees(), strict=False):
        if degree := int(highest):
            cleared += degree * math.log2(x.minimal[-1])
            # Cauchy's bound of the conjugates, 1 + max |c_k| / c_d, is at most twice its larger part.
            ratio = math.log2(max(1, *map(abs, x.minimal[:-1]))) - math.log2(x.minimal[-1])
            size += degree * (1 + max(0.0, ratio))
    return math.ceil(cleared + (point.degree - 1) * (cleared + size)) + 8


def jacobian_rank(polynomials: list[Any], point: AlgebraicPoint, places: tuple[int, ...]) -> int:
    """A proven lower bound of the rank of the polynomials' Jacobian at a point, by elimination with balls."""
    from flint import arb, ctx

    with ctx.workprec(256):
        values = [x.ball(256) for x in point.coordinates]
        names = [polynomials[0].context().name(i) for i in places] if polynomials else []
        rows = [[arb(0) + evaluate(p.derivative(name), values) for name in names] for p in polynomials]
        rank = 0
        while rows and rows[0]:
            size, r, c = max(
                ((abs(entry).lower(), r, c) for r, row in enumerate(rows) for c, entry in enumerate(row)),
                key=cmp_to_key(lambda a, b: 1 if a[0] > b[0] else -1 if a[0] < b[0] else 0),
            )
            if not size > 0:
                break
            rank += 1
            pivot = rows.pop(r)
            rows = [
                [e - row[c] / pivot[c] * p for k, (e, p) in enumerate(zip(row, pivot, strict=True)) if k != c]
                for row in rows
            ]
    return rank


def in_order(points: list[AlgebraicPoint]) -> list[AlgebraicPoint]:
    """Sorted by the first coordinate, then the second, and so on; exact."""

    def compare(a: AlgebraicPoint, b: AlgebraicPoint) -> int:
        for x, y in zip(a.coordinates, b.coordinates, strict=True):
            if x != y:
                return -1 if x < y else 1
        return 0

    return sorted(points, key=cmp_to_key(compare))


def avoids(point: AlgebraicPoint, sets: Sequence[Sequence[Exponents]], bits: int) -> bool:
    """Whether balls with that many bits around the coordinates meet none of the sets, given by equations."""
    from flint import ctx

    with ctx.workprec(bits):
        values = [x.ball(bits) for x in point.coordinates]
        return all(
            any(not _value(equation, values).contains(0) for equation in equations) for equations in sets
        )


def _value(equation: Exponents, values: Sequence[Any]) -> Any:
    from flint import arb

    total = arb(0)
    for exponents, coefficient in equation.items():
        term = arb(coefficient)
        for value, exponent in zip(values, exponents, strict=True):
            term = term * value**exponent if exponent else term
        total += term
    return total


def hessian_is_definite(polynomial: Any, point: AlgebraicPoint, places: tuple[int, ...]) -> bool:
    """Whether the second derivatives at a point are proven to be a definite matrix: pivots of one sign."""
    from flint import arb, ctx

    names = [polynomial.context().name(i) for i in places]
    with ctx.workprec(256):
        values = [x.ball(256) for x in point.coordinates]
        rows = [
            [arb(0) + evaluate(polynomial.derivative(a).derivative(b), values) for b in names] for a in names
        ]
        signs = set()
        while rows:
            first, *rest = rows
            if first[0].contains(0):
                return False
            signs.add(bool(first[0] > 0))
            rows = [
                [e - row[0] / first[0] * p for e, p in zip(row[1:], first[1:], strict=True)] for row in rest
            ]
    return len(signs) == 1
