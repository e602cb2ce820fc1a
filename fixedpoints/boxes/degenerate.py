"""Zeros at which the Jacobian is singular: told apart at high precision, or recognised and proven exactly.

Ball arithmetic can show that two zeros lie close together, or none, but never that they coincide. So a number
that is written simply is guessed from its digits, put in exactly, and higher derivatives count the zeros around
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import sympy as sp
from flint import arb, arb_mat, ctx, fmpq

from fixedpoints.boxes.equations import Box, Equations, ranges_of
from fixedpoints.boxes.krawczyk import Zero, explore
from fixedpoints.boxes.ranges import Program, Range
from fixedpoints.boxes.singular import Condition, Kind, plain, prepared
from symbolic.zero import residual

__all__ = ["belongs", "exact_zero", "settled"]

_STRICT = (Kind.POSITIVE, Kind.NONZERO, Kind.POLE)
_SINGULAR = (sp.nan, sp.zoo, sp.oo, -sp.oo)

#: Precision and number of tests of the second look at a box that is still open.
_BITS, _TESTS = 512, 1000

#: Derivatives up to this order are looked at.
_HIGHEST_ORDER = 8

#: Numerators and denominators of guessed numbers.
_LARGEST_PART = 10_000


def settled(equations: Equations, box: Box, deadline: float) -> tuple[list[Zero], list[tuple[Box, str]]]:
    """Zeros proven in a small box, and the boxes in it that stay open, each with what is known about it.

    Args:
        equations: what must vanish.
        box: so small that floats hardly resolve it.
        deadline: in the seconds of `time.monotonic`.
    """
    centre = [sp.Rational((low + high) / 2) for low, high in box]
    # A little wider, so that zeros on the faces lie inside.
    local = tuple((-0.625 * (high - low), 0.625 * (high - low)) for low, high in box)
    shifted = equations.shifted(centre)
    seen = explore(shifted, [local], deadline, most=_TESTS, bits=_BITS)
    zeros, left = [_moved(zero, centre) for zero in seen.zeros], []
    if seen.open:
        low, high = np.moveaxis(np.array(seen.open), 2, 0)
        hull = tuple(zip(low.min(axis=0).tolist(), high.max(axis=0).tolist(), strict=True))
        outcome = _recognised(equations, shifted, hull, centre) if seen.finished else _UNDECIDED
        if isinstance(outcome, Zero):
            zeros.append(outcome)
        elif outcome:
            left.append((box, outcome))
    return zeros, left


def exact_zero(equations: Equations, bounds: Sequence[tuple[sp.Rational, sp.Rational]]) -> tuple | None:
    """Simply written numbers within the bounds at which all functions vanish, proven by algebra; or None."""
    guesses = [_guesses(low, high) for low, high in bounds]
    for guess in product(*guesses):
        place = dict(zip(equations.symbols, guess, strict=True))
        values = [_at(f, place) for f in equations.functions]
        if all(_vanishes(v) for v in values):
            return guess
    return None


def belongs(equations: Equations, zero: Zero) -> bool | None:
    """Whether the field is defined at a zero of the equations; None if that is undecided."""
    with ctx.workprec(_BITS):
        ranges = [(arb(_fmpq(low)), arb(_fmpq(high))) for low, high in zero.bounds]
        _, limits = equations.values(ranges)
        if equations.undefined(limits):
            return False
        doubts = [c for c in equations.doubts(limits) if not _is_edge(c, equations)]
    if any(c.kind in _STRICT and c.expression in equations.functions for c in doubts):
        return False
    if not doubts:
        return True
    guess = exact_zero(equations, zero.bounds)
    return None if guess is None else _defined(doubts, dict(zip(equations.symbols, guess, strict=True)))


_UNDECIDED = "may hold fixed points: neither proven to hold one nor proven to hold none"


def _recognised(equations: Equations, shifted: Equations, hull: Box, centre) -> Zero | str:
    """The zero, or what is known about the box; the empty text for a proof that it holds none."""
    bounds = [
        (c + sp.Rational(low), c + sp.Rational(high)) for (low, high), c in zip(hull, centre, strict=True)
    ]
    guess = exact_zero(equations, bounds)
    with ctx.workprec(_BITS):
        if guess is None:
            return _without_guess(shifted, hull)
        place = dict(zip(equations.symbols, guess, strict=True))
        multiplicity = _multiplicity(equations, shifted, hull, place)
    shown = ", ".join(f"{x} = {value}" for x, value in place.items())
    defined = _defined(equations.conditions, place)
    if multiplicity is None and defined is False:
        return _UNDECIDED
    if multiplicity is None or defined is None:
        return f"holds the fixed point {shown}, exactly; whether it is the only one in the box is unresolved"
    if not defined:
        return ""
    return Zero(tuple(bounds), tuple(_tight(value) for value in guess), multiplicity)


def _without_guess(shifted: Equations, hull: Box) -> str:
    if len(hull) > 1:
        return _UNDECIDED
    ends = [shifted.values([(arb(end), arb(end))])[0][0] for end in hull[0]]
    smooth = shifted.slopes(ranges_of(hull)) is not None
    if smooth and any(a[1] < 0 and b[0] > 0 for a, b in (ends, ends[::-1])):
        return "holds at least one fixed point, since the field changes sign; its multiplicity is unresolved"
    return _UNDECIDED


def _multiplicity(equations: Equations, shifted: Equations, hull: Box, place) -> int | None:
    """That of an exact zero which is proven to be the only one in the hull, else None."""
    if len(hull) == 1:
        return _order(equations, shifted, hull, place)
    return 2 if _is_fold(equations, shifted, hull, place) else None


def _order(equations: Equations, shifted: Equations, hull: Box, place) -> int | None:
    """m with f = f' = ... = f^(m-1) = 0 at the point, and f^(m) of one sign on the hull: no other zero there."""
    (x,), (f,), (local,) = equations.symbols, equations.functions, shifted.functions
    ranges = ranges_of(hull)
    if not _on_an_interval(shifted, ranges):
        return None
    for order in range(1, _HIGHEST_ORDER + 1):
        f, local = (prepared(g.diff(x)) for g in (f, local))
        (slope,) = Program([local], (x,), across=False)(ranges)
        if slope[0] > 0 or slope[1] < 0:
            return order
        if not _vanishes(_at(f, place)):
            return None
    return None


def _on_an_interval(shifted: Equations, ranges: list[Range]) -> bool:
    """Whether the part of a hull where the field is defined is an interval, and the function smooth inside."""
    _, limits = shifted.values(ranges)
    for condition in dict.fromkeys((*shifted.doubts(limits), *shifted.hindrances(ranges))):
        if condition.kind in (Kind.POLE, Kind.NONZERO, Kind.JUMP):
            return False
        (slope,) = Program([condition.expression.diff(*shifted.symbols)], shifted.symbols)(ranges)
        if not (slope[0] > 0 or slope[1] < 0):
            return False
    return True


def _is_fold(equations: Equations, shifted: Equations, hull: Box, place) -> bool:
    """Whether an exact zero c with a Jacobian of rank n-1 is proven to be the only one in the hull.

    Let w J(c) = 0. For another zero c + d, n-1 rows of f(c + d) = 0 say d = s e with e in a small box, and
    w f(c + d) = s^2/2 sum_i w_i e' H_i e  with the Hessians H_i on the hull; if that is not 0, there is none.
    """
    jacobian = equations.jacobian.applyfunc(lambda e: _at(e, place))
    if jacobian.has(*_SINGULAR):
        return False
    jacobian = sp.Matrix(jacobian.applyfunc(residual))
    left = jacobian.T.nullspace(simplify=True)
    if len(left) != 1 or any(residual(e) != 0 for e in left[0].T * jacobian):
        return False
    n, ranges = len(hull), ranges_of(hull)
    slopes = shifted.slopes(ranges)
    if slopes is None:
        return False
    weights = [Program([w], ())([])[0] for w in left[0]]
    row = int(np.argmax([float(abs(low.union(high)).mid()) for low, high in weights]))
    entries = np.array(slopes.entries(), dtype=object).reshape(n, n)
    return any(_curved(shifted, ranges, weights, np.delete(entries, row, axis=0), q) for q in range(n))


def _curved(shifted: Equations, ranges, weights, rows: np.ndarray, column: int) -> bool:
    n = len(ranges)
    others = np.delete(rows, column, axis=1)
    try:
        along = arb_mat(n - 1, n - 1, others.ravel().tolist()).solve(
            arb_mat(n - 1, 1, [-entry for entry in rows[:, column]])
        )
    except ZeroDivisionError:
        return False
    direction = along.entries()
    direction.insert(column, arb(1))
    symbols = shifted.symbols
    hessians = [
        [prepared(f.diff(x, y)) for x in symbols for y in symbols] for f in map(prepared, shifted.functions)
    ]
    total = arb(0)
    for (low, high), hessian in zip(weights, hessians, strict=True):
        curvature = [a.union(b) for a, b in Program(hessian, symbols, across=False)(ranges)]
        form = arb_mat(1, n, direction) * arb_mat(n, n, curvature) * arb_mat(n, 1, direction)
        total += low.union(high) * form[0, 0]
    return not total.contains(0)


def _defined(conditions: Sequence[Condition], place: Mapping[sp.Symbol, sp.Expr]) -> bool | None:
    """Whether conditions hold at an exact point."""
    for condition in conditions:
        value = _at(condition.expression, place)
        if value.has(*_SINGULAR):
            return False
        value = residual(value)
        if condition.kind in (Kind.NONNEGATIVE, Kind.SOFT):
            holds = value.is_nonnegative
        else:
            holds = value.is_positive if condition.kind is Kind.POSITIVE else value.is_nonzero
        if not holds:
            return holds
    return True


def _is_edge(condition: Condition, equations: Equations) -> bool:
    """Whether a condition u >= 0 holds at a zero since u itself is one of the functions that vanish there."""
    return condition.kind in (Kind.NONNEGATIVE, Kind.SOFT) and condition.expression in equations.functions


def _at(expression: sp.Expr, place: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    """The value at an exact point; NaN where SymPy cannot put it in, as in Max(0, 1/0)."""
    try:
        return plain(expression).subs(place)
    except ValueError:
        return sp.nan


def _vanishes(value: sp.Expr) -> bool:
    return not value.has(*_SINGULAR) and residual(value) == 0


def _moved(zero: Zero, centre: Sequence[sp.Rational]) -> Zero:
    zone, bounds = (
        tuple(
            (c + sp.Rational(low), c + sp.Rational(high)) for (low, high), c in zip(box, centre, strict=True)
        )
        for box in (zero.zone, zero.bounds)
    )
    return replace(zero, zone=zone, bounds=bounds)


#: Ways of writing a number by a rational r, each with the value of r from that of the number.
_FORMS = (
    (lambda r: r, lambda x: x),
    (lambda r: r * sp.pi, lambda x: x / arb.pi()),
    (sp.sqrt, lambda x: x**2 if x > 0 else None),
    (lambda r: -sp.sqrt(r), lambda x: x**2 if x < 0 else None),
    (sp.log, lambda x: x.exp()),
)


def _guesses(low: sp.Rational, high: sp.Rational) -> list[sp.Expr]:
    """Simply written numbers between two bounds, rational ones first."""
    found = []
    with ctx.workprec(_BITS):
        ball = arb(_fmpq(low)).union(arb(_fmpq(high)))
        for written, inverse in _FORMS:
            value = inverse(ball)
            if value is None or not value.is_finite():
                continue
            ratio = _simplest(_fraction(value.lower()), _fraction(value.upper()))
            if max(abs(ratio.numerator), ratio.denominator) <= _LARGEST_PART:
                guess = sp.sympify(written(sp.Rational(ratio.numerator, ratio.denominator)))
                first, last = _tight(guess)
                if low <= first and last <= high:
                    found.append(guess)
    return list(dict.fromkeys(found))


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator between two, by continued fractions."""
    if low <= 0 <= high:
        return Fraction(0)
    if high < 0:
        return -_simplest(-high, -low)
    whole = -(-low.numerator // low.denominator)
    if whole <= high:
        return Fraction(whole)
    whole -= 1
    return whole + 1 / _simplest(1 / (high - whole), 1 / (low - whole))


def _tight(value: sp.Expr) -> tuple[sp.Rational, sp.Rational]:
    if value.is_Rational:
        return value, value
    with ctx.workprec(_BITS):
        ((low, high),) = Program([value], ())([])
        ends = (_fraction(low.lower()), _fraction(high.upper()))
    return tuple(sp.Rational(end.numerator, end.denominator) for end in ends)


def _fraction(number) -> Fraction:
    ratio = number.fmpq()
    return Fraction(int(ratio.p), int(ratio.q))


def _fmpq(number: sp.Rational) -> fmpq:
    return fmpq(int(number.p), int(number.q))
