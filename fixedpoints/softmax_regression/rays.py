"""A loss along a ray to infinity, exactly: which rows win, where the loss goes, how fast, and whether it falls.

On x = x_0 + s v both losses are ratios of sums of exponentials of s, u_i = exp(a_i x_0) exp(a_i v s). With rational
data the coefficients are sums of exp(rational) with rational factors, which vanish only if they are empty
(Lindemann-Weierstrass). So leading terms, ties and signs are exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import sympy as sp

from fixedpoints.softmax_regression.problem import check, vector
from symbolic.softmax_regression.vector import SoftmaxRegression

__all__ = ["Escape", "escape"]

#: A number: sum of factor * exp(exponent), exponent -> factor. A function of s: rate -> number.
Number = dict[Fraction, Fraction]
Function = dict[Fraction, Number]

_T = sp.Symbol("t", positive=True)


@dataclass(frozen=True)
class Escape:
    """What a loss does on the ray x = start + s v for s -> oo:  L ~ limit + coefficient exp(-rate s).

    Args:
        direction: v. start: x_0.
        face: the rows (from 1) of A with the largest a_i v: f goes to the softmax over them.
        limit: of the loss, exact; oo if the rescaled loss grows, L ~ coefficient exp(-rate s) with rate < 0.
        rate, coefficient: of the approach, exact; coefficient is 0 where the loss is constant along the ray.
        limit_f: where f goes, n entries.
    """

    direction: tuple[sp.Rational, ...]
    start: tuple[sp.Rational, ...]
    face: tuple[int, ...]
    limit: sp.Expr
    rate: sp.Rational
    coefficient: sp.Expr
    limit_f: tuple[sp.Expr, ...]

    @cached_property
    def attracts(self) -> bool:
        """Whether the loss falls outwards, so that a flow on the ray goes to infinity."""
        return bool(self.rate > 0 and _sign(self.coefficient) > 0)

    @cached_property
    def law(self) -> sp.Expr:
        """s ~ log(rate^2 coefficient t / |v|^2) / rate  for a flow on the ray and t -> oo: never exponential.

        Raises:
            ValueError: the ray does not attract.
        """
        if not self.attracts:
            raise ValueError(f"There is no law of escape where a flow does not escape: {self}.")
        length = sum(v**2 for v in self.direction)
        return sp.log(self.rate**2 * self.coefficient * _T / length) / self.rate

    @property
    def kind(self) -> str:
        """Where the ray leads: "vertex" of the simplex of f or "face" of it."""
        return "vertex" if len(self.face) == 1 else "face"

    def __str__(self) -> str:
        rows = ", ".join(map(str, self.face))
        several = "s" if len(self.face) > 1 else ""
        place = f"along ({', '.join(map(_shown, self.direction))}) to the {self.kind} of row{several} {rows}"
        if self.coefficient == 0:
            return f"{place} the loss stays {_shown(self.limit)}"
        if self.limit == sp.oo:
            return f"{place} the loss grows like exp({_shown(-self.rate)} s): repels"
        verdict = "falls: attracts" if self.attracts else "rises: repels"
        return f"{place} the loss goes to {_shown(self.limit)} like exp(-{_shown(self.rate)} s) and {verdict}"


def escape(
    model: SoftmaxRegression,
    direction: Sequence | Mapping[str, Any],
    start: Sequence | Mapping[str, Any] | None = None,
) -> Escape:
    """What the loss does along the ray x = start + s direction, s -> oo, from its exact leading terms.

    Args:
        model: a vector problem with rational A and b, u = exp and no ridge.
        direction: v, d numbers; a float is the rational that it is.
        start: x_0, the origin if None.
    Raises:
        TypeError, ValueError: the model has no numbers, a vector has another length or is not finite, or v = 0.
    """
    check(model)
    v = vector("direction", direction, model)
    x = vector("start", [0] * model.A.cols if start is None else start, model)
    if not any(v):
        raise ValueError("`direction` must not be zero: a ray leads somewhere.")
    rates, exponents = ([Fraction(int(s.p), int(s.q)) for s in model.A * p] for p in (v, x))
    b = [Fraction(int(value.p), int(value.q)) for value in model.b]
    u: list[Function] = [
        {rate: {exponent: Fraction(1)}} for rate, exponent in zip(rates, exponents, strict=True)
    ]
    alpha = _sum(u)
    squares = _sum(
        [_product(r, r) for ui, bi in zip(u, b, strict=True) for r in [_sum([ui, _scaled(alpha, -bi)])]]
    )
    top = max(rates)
    face = [i for i, rate in enumerate(rates) if rate == top]
    below = alpha[top]
    terms = _normalized if model.normalization == "normalized" else _rescaled
    limit, rate, coefficient = terms(_scaled(squares, Fraction(1, 2)), _product(alpha, alpha), 2 * top)
    f = [
        _written({exponents[i]: Fraction(1)}) / _written(below) if i in face else sp.S.Zero
        for i in range(len(b))
    ]
    return Escape(tuple(v), tuple(x), tuple(i + 1 for i in face), limit, rate, coefficient, tuple(f))


def _normalized(loss: Function, alpha2: Function, top: Fraction) -> tuple[sp.Expr, sp.Rational, sp.Expr]:
    """Limit, rate and coefficient of loss/alpha2: with the limit N/D, of (loss D - N alpha2)/(D alpha2)."""
    D, N = alpha2[top], loss.get(top, {})
    limit = _written(N) / _written(D)
    for rate in sorted({*loss, *alpha2} - {top}, reverse=True):
        gap = _less(_times(loss.get(rate, {}), D), _times(N, alpha2.get(rate, {})))
        if gap:
            return limit, _rational(top - rate), _written(gap) / _written(_times(D, D))
    return limit, sp.S.Zero, sp.S.Zero


def _rescaled(loss: Function, alpha2: Function, top: Fraction) -> tuple[sp.Expr, sp.Rational, sp.Expr]:
    """Limit, rate and coefficient of the loss itself."""
    del alpha2, top
    limit = sp.S.Zero
    for rate in sorted(loss, reverse=True):
        if rate == 0:
            limit = _written(loss[rate])
        else:
            limit = sp.oo if rate > 0 else limit
            return limit, _rational(-rate), _written(loss[rate])
    return limit, sp.S.Zero, sp.S.Zero


def _sum(functions: Sequence[Function]) -> Function:
    total: Function = defaultdict(lambda: defaultdict(Fraction))
    for function in functions:
        for rate, number in function.items():
            for exponent, factor in number.items():
                total[rate][exponent] += factor
    return _tidy(total)


def _product(a: Function, b: Function) -> Function:
    total: Function = defaultdict(lambda: defaultdict(Fraction))
    for (p, x), (q, y) in product(a.items(), b.items()):
        for exponent, factor in _times(x, y).items():
            total[p + q][exponent] += factor
    return _tidy(total)


def _tidy(function: Function) -> Function:
    """Without what is zero."""
    kept = {rate: {e: c for e, c in number.items() if c} for rate, number in function.items()}
    return {rate: number for rate, number in kept.items() if number}


def _scaled(function: Function, by: Fraction) -> Function:
    return _tidy({rate: {e: c * by for e, c in number.items()} for rate, number in function.items()})


def _times(a: Number, b: Number) -> Number:
    total: Number = defaultdict(Fraction)
    for (p, x), (q, y) in product(a.items(), b.items()):
        total[p + q] += x * y
    return {exponent: factor for exponent, factor in total.items() if factor}


def _less(a: Number, b: Number) -> Number:
    exponents = {*a, *b}
    gap = {e: a.get(e, Fraction(0)) - b.get(e, Fraction(0)) for e in exponents}
    return {exponent: factor for exponent, factor in gap.items() if factor}


def _rational(value: Fraction) -> sp.Rational:
    return sp.Rational(value.numerator, value.denominator)


def _written(number: Number) -> sp.Expr:
    return sp.Add(*(_rational(c) * sp.exp(_rational(e)) for e, c in sorted(number.items())))


def _sign(number: sp.Expr) -> int:
    """The sign of a sum of exponentials that is not zero unless it is literally 0; digits are added until it shows."""
    if number == 0:
        return 0
    digits = 30
    while True:
        value = sp.N(number, digits, maxn=digits + 10_000)
        if abs(value) > 0 and value.is_comparable:
            return 1 if value > 0 else -1
        digits *= 2


def _shown(number: sp.Expr) -> str:
    return str(number) if number.is_Rational and number.q < 10**6 else str(sp.N(number, 8))
