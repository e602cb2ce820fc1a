"""Arithmetic of ranges: what sums, powers and functions can be when their arguments lie between two ends.

A range is a pair of balls (Arb numbers), one around each end: every value lies between the lower end of the
first and the upper end of the second. Balls carry the rounding errors, and two of them keep wide ranges sharp
where a single ball, known by its middle and radius, would not: [0, 1]^2 stays [0, 1]. Ends may be infinite.
Where a function is undefined on part of the arguments, its range is that on the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
from flint import arb, fmpq
from sympy.core.relational import (
    Equality,
    GreaterThan,
    LessThan,
    StrictGreaterThan,
    StrictLessThan,
    Unequality,
)

from fixedpoints.boxes.singular import Jump, Magnitude, Side

__all__ = [
    "FUNCTIONS",
    "LAMBERT",
    "NUMBERS",
    "RELATIONS",
    "Range",
    "chosen",
    "exponential",
    "flipped",
    "integer_power",
    "larger",
    "negative",
    "plus",
    "rational",
    "real_power",
    "reciprocal",
    "smaller",
    "stretched",
    "times",
]

Range = tuple[Any, Any]

_ZERO, _ONE = arb(0), arb(1)
_LOWEST, _HIGHEST = arb.neg_inf(), arb.pos_inf()
_ANYTHING: Range = (_LOWEST, _HIGHEST)
_FALSE, _MAYBE, _TRUE = (_ZERO, _ZERO), (_ZERO, _ONE), (_ONE, _ONE)

#: Roots up to this degree are taken directly, others through the logarithm.
_LARGEST_ROOT = 64


def rational(p: int, q: int) -> Range:
    """The number p/q."""
    ball = arb(fmpq(p, q))
    return ball, ball


def _constant(ball: Any) -> Range:
    return ball, ball


def plus(a: Range, b: Range) -> Range:
    """a + b."""
    return a[0] + b[0], a[1] + b[1]


def negative(a: Range) -> Range:
    """-a."""
    return -a[1], -a[0]


def stretched(c: Range, a: Range) -> Range:
    """c a  for a positive number c."""
    return c[0] * a[0], c[1] * a[1]


def flipped(c: Range, a: Range) -> Range:
    """c a  for a negative number c."""
    return c[0] * a[1], c[1] * a[0]


def times(a: Range, b: Range) -> Range:
    """a b, from the products of the ends that are smallest and largest by the signs."""
    (a0, a1), (b0, b1) = a, b
    if a0 >= 0:
        low = a0 * b0 if b0 >= 0 else a1 * b0
        high = a0 * b1 if b1 <= 0 else a1 * b1
    elif a1 <= 0:
        low = a1 * b1 if b1 <= 0 else a0 * b1
        high = a1 * b0 if b0 >= 0 else a0 * b0
    elif b0 >= 0:
        low, high = a0 * b1, a1 * b1
    elif b1 <= 0:
        low, high = a1 * b0, a0 * b0
    else:
        low, high = arb.min(a0 * b1, a1 * b0), arb.max(a0 * b0, a1 * b1)
    if low.is_nan() or high.is_nan():
        # 0 times infinity: the factor is exactly 0 or unbounded but finite, so the product of the ends is 0.
        ends = [_ZERO if x == 0 or y == 0 else x * y for x in a for y in b]
        low, high = ends[0], ends[0]
        for end in ends[1:]:
            low, high = arb.min(low, end), arb.max(high, end)
    return low, high


def reciprocal(a: Range) -> Range:
    """1/a; unbounded where a may be zero."""
    low, high = a
    if low > 0 or high < 0:
        return 1 / high, 1 / low
    if low >= 0:
        return (1 / high if high > 0 else _LOWEST), _HIGHEST
    if high <= 0:
        return _LOWEST, (1 / low if low < 0 else _HIGHEST)
    return _ANYTHING


def integer_power(n: int, a: Range) -> Range:
    """a^n for n >= 2."""
    low, high = a
    if n % 2:
        # Of -infinity, Arb knows no odd power; of infinity it does.
        return (-((-low) ** n) if low < 0 else low**n), (-((-high) ** n) if high < 0 else high**n)
    if low >= 0:
        return low**n, high**n
    if high <= 0:
        return high**n, low**n
    return _ZERO, arb.max(-low, high) ** n


def real_power(p: int, q: int, a: Range) -> Range:
    """a^(p/q) for p/q > 0, on the part with a >= 0, where it is increasing."""

    def at(x):
        if not x > 0:
            return _ZERO
        if q <= _LARGEST_ROOT:
            return x.root(q) ** p
        return (x.log() * p / q).exp()

    return at(a[0]), at(a[1] if a[1] > 0 else a[1].upper())


def _increasing(function: Callable) -> Callable[[Range], Range]:
    def bounds(a: Range) -> Range:
        return function(a[0]), function(a[1])

    return bounds


def _clipped(function: Callable, lowest: Callable, highest: Callable, falls: bool = False) -> Callable:
    """Bounds of a monotone function that is defined between two numbers."""

    def bounds(a: Range) -> Range:
        low, high = lowest(), highest()
        ends = [arb.min(arb.max(end, low), high) for end in (a[0].lower(), a[1].upper())]
        first, last = (function(end) for end in (reversed(ends) if falls else ends))
        return first, last

    return bounds


def exponential(a: Range) -> Range:
    """e^a."""
    return a[0].exp(), a[1].exp()


def _log(a: Range) -> Range:
    low, high = a
    return (low.log() if low > 0 else _LOWEST), (high.log() if high > 0 else high.upper().log())


def _wave(function: Callable) -> Callable[[Range], Range]:
    def bounds(a: Range) -> Range:
        ball = a[0].union(a[1])
        if not ball.is_finite():
            return -_ONE, _ONE
        value = function(ball)
        return value.lower(), value.upper()

    return bounds


def _erf(x: Any) -> Any:
    if x.is_finite():
        return x.erf()
    return x.sgn() if x in (_HIGHEST, _LOWEST) else arb(0, 1)


def _cosh(a: Range) -> Range:
    low, high = a
    if low >= 0:
        return low.cosh(), high.cosh()
    if high <= 0:
        return high.cosh(), low.cosh()
    return _ONE, arb.max(-low, high).cosh()


def _magnitude(a: Range) -> Range:
    low, high = a
    if low >= 0:
        return a
    if high <= 0:
        return -high, -low
    return _ZERO, arb.max(-low, high)


def _jump(a: Range) -> Range:
    return (_ZERO, _ZERO) if a[0] > 0 or a[1] < 0 else _ANYTHING


def larger(a: Range, b: Range) -> Range:
    """max(a, b); of truth values, a or b."""
    return arb.max(a[0], b[0]), arb.max(a[1], b[1])


def smaller(a: Range, b: Range) -> Range:
    """min(a, b); of truth values, a and b."""
    return arb.min(a[0], b[0]), arb.min(a[1], b[1])


def _lambert(branch: int) -> Callable[[Range], Range]:
    def value(x):
        return x.lambertw(branch) if x.is_finite() else _HIGHEST

    def edge():
        # W has a square root at -1/e; a ball around the edge would have no real value.
        return -arb(-1).exp()

    def bounds(a: Range) -> Range:
        inner = edge().upper()
        low = value(a[0]) if a[0] > inner else arb(-1)
        if branch == 0:
            return low, (value(a[1]) if a[1] > inner else value(inner))
        high = value(a[1]) if inner < a[1] < 0 else (_LOWEST if a[1] > inner else arb(-1))
        return high, low

    return bounds


def chosen(across: bool, *parts: Range) -> Range:
    """The range of a Piecewise from those of value and condition, branch by branch."""
    taken = []
    for value, truth in zip(parts[::2], parts[1::2], strict=True):
        if truth[1] == 0:
            continue
        taken.append(value)
        if truth[0] == 1:
            break
    if not taken or (len(taken) > 1 and not across):
        return _ANYTHING
    low, high = taken[0]
    for value in taken[1:]:
        low, high = arb.min(low, value[0]), arb.max(high, value[1])
    return low, high


def _truth(certain: Callable[[Range], bool], impossible: Callable[[Range], bool]) -> Callable[[Range], Range]:
    def bounds(difference: Range) -> Range:
        return _TRUE if certain(difference) else _FALSE if impossible(difference) else _MAYBE

    return bounds


def _vanishes(a: Range) -> bool:
    return a[0] == 0 and a[1] == 0


def _differs(a: Range) -> bool:
    return a[0] > 0 or a[1] < 0


NUMBERS: dict[sp.Basic, Callable[[], Range]] = {
    sp.pi: lambda: _constant(arb.pi()),
    sp.E: lambda: _constant(arb.const_e()),
    sp.EulerGamma: lambda: _constant(arb.const_euler()),
    sp.GoldenRatio: lambda: _constant((1 + arb(5).sqrt()) / 2),
    sp.true: lambda: _TRUE,
    sp.false: lambda: _FALSE,
}

RELATIONS = {
    StrictGreaterThan: _truth(lambda d: d[0] > 0, lambda d: d[1] <= 0),
    GreaterThan: _truth(lambda d: d[0] >= 0, lambda d: d[1] < 0),
    StrictLessThan: _truth(lambda d: d[1] < 0, lambda d: d[0] >= 0),
    LessThan: _truth(lambda d: d[1] <= 0, lambda d: d[0] > 0),
    Equality: _truth(_vanishes, _differs),
    Unequality: _truth(_differs, _vanishes),
}

LAMBERT = {0: _lambert(0), -1: _lambert(-1)}

FUNCTIONS: dict[Any, Callable[..., Range]] = {
    sp.log: _log,
    sp.sin: _wave(arb.sin),
    sp.cos: _wave(arb.cos),
    sp.tanh: _increasing(arb.tanh),
    sp.sinh: _increasing(arb.sinh),
    sp.cosh: _cosh,
    sp.atan: _increasing(arb.atan),
    sp.asinh: _increasing(arb.asinh),
    sp.asin: _clipped(arb.asin, lambda: -_ONE, lambda: _ONE),
    sp.acos: _clipped(arb.acos, lambda: -_ONE, lambda: _ONE, falls=True),
    sp.acosh: _clipped(arb.acosh, lambda: _ONE, lambda: _HIGHEST),
    sp.atanh: _clipped(arb.atanh, lambda: -_ONE, lambda: _ONE),
    sp.erf: _increasing(_erf),
    sp.erfc: lambda a: plus((_ONE, _ONE), negative(_increasing(_erf)(a))),
    sp.Not: lambda a: plus((_ONE, _ONE), negative(a)),
    Magnitude: _magnitude,
    Side: _increasing(arb.sgn),
    Jump: _jump,
}
