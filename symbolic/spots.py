"""Numbers against a claim: at fixed rational points, does the formula satisfy its equation and meet its start?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from symbolic.course import Course
from symbolic.errors import NotASolutionError, UndecidedError
from symbolic.normal_form import vanishes
from symbolic.zero import residual, witness_points

__all__ = ["Spot", "course_spots", "primitive_spots"]

#: Working digits of a spot check, and the digits that it must reach (a central difference gives two thirds).
_DIGITS, _REQUIRED = 60, 20
_STEP = sp.Rational(1, 10**15)
#: Spot checks of a proof, and how many points may be tried to find as many inside the domain.
_SPOTS, _TRIES = 3, 32
#: Size up to which SymPy's simplification is asked for a readable residual.
_SIMPLIFY_OPS = 300


@dataclass(frozen=True)
class Spot:
    """A point (numbers by name) and the decimal digits to which the equation and the start hold there."""

    point: dict[str, sp.Rational]
    digits: int

    def __str__(self) -> str:
        return f"{self.digits} digits at " + ", ".join(
            f"{name} = {value}" for name, value in self.point.items()
        )


def course_spots(course: Course) -> tuple[Spot, ...]:
    """Where a candidate meets its equation, by the difference of the candidate itself, and its start.

    Raises:
        NotASolutionError: at some point it does not; UndecidedError: no point was found at which to look.
    """
    symbols = {s for e in (*course.rhs, *course.paths) for s in e.free_symbols} - set(course.state)
    symbols |= {course.time, *course.starts}
    if course.relations:
        return ()  # points in general position do not satisfy the relations; the generic case is checked
    spots: list[Spot] = []
    for point in _points(symbols, course.time, lambda point: _inside(course, point)):
        at_start = {**point, **dict(zip(course.state, (point[s] for s in course.starts), strict=True))}
        slopes = [_number(f.subs(course.time, 0), at_start) for f in course.rhs]
        if not all(_usable(s) and s.is_real for s in slopes):
            continue
        spots.append(_check(course, point))
        if len(spots) == _SPOTS:
            break
    what = ", ".join(f"{x} = {path}" for x, path in zip(course.state, course.paths, strict=True))
    _require(spots, what, lambda: _leftover(course))
    return tuple(spots)


def primitive_spots(f: sp.Expr, x: sp.Symbol, function: sp.Expr) -> tuple[Spot, ...]:
    """Where F is real and F' f = 1, by the difference of F itself.

    Raises:
        NotASolutionError: at some point it is not; UndecidedError: no point was found at which to look.
    """
    spots: list[Spot] = []
    for point in _points([x, *sorted(f.free_symbols - {x}, key=str)]):
        speed, inner = _number(f, point), dict(point)
        if not _usable(speed) or not speed.is_real or speed == 0:
            continue
        ends = [_number(function, {**inner, x: inner[x] + sign * _STEP}) for sign in (1, -1)]
        spots.append(_spot(point, [_digits((ends[0] - ends[1]) / (2 * _STEP) * speed - 1, sp.S.One)]))
        if len(spots) == _SPOTS:
            break
    _require(spots, f"t = F({x}) - F({x}_0), F = {function}", lambda: function.diff(x) * f - 1)
    return tuple(spots)


def _check(course: Course, point: Mapping[sp.Symbol, sp.Rational]) -> Spot:
    t, digits = point[course.time], []
    values = [_number(path, point) for path in course.paths]
    for f, path, start in zip(course.rhs, course.paths, course.starts, strict=True):
        ends = [_number(path, {**point, course.time: t + sign * _STEP}) for sign in (1, -1)]
        slope = _number(f, {**point, **dict(zip(course.state, values, strict=True))})
        # Near an equilibrium the slope is far below the values that are subtracted: the mean slope is the scale.
        mean = (ends[0] - point[start]) / t
        digits.append(_digits((ends[0] - ends[1]) / (2 * _STEP) - slope, max(abs(slope), abs(mean))))
        digits.append(_digits(_number(path.subs(course.time, 0), point) - point[start], point[start]))
    return _spot(point, digits)


def _inside(course: Course, point: Mapping[sp.Symbol, sp.Rational]) -> bool:
    margins = [_number(margin, point) for margin in course.margins]
    return all(_usable(m) and m.is_real and m > 0 for m in margins)


def _points(
    symbols: Iterable[sp.Symbol], time: sp.Symbol | None = None, inside=lambda point: True
) -> Iterator[dict[sp.Symbol, sp.Rational]]:
    """Fixed rational points of every sign that the assumptions allow; outside a domain, times are shortened."""
    ordered = sorted(symbols, key=lambda symbol: symbol.name)
    for k, point in enumerate(witness_points(ordered, _TRIES)):
        for i, symbol in enumerate(ordered):
            point[symbol] = abs(point[symbol]) * sp.Rational(1 + (3 * k + 5 * i) % 7, 2)
            if symbol.is_integer:
                point[symbol] = sp.Integer(2 + (i + k) % 5)
            if symbol.is_nonpositive or (symbol.is_nonnegative is None and (k >> i % 4) % 2):
                point[symbol] = -point[symbol]
        for shrink in (1, 8, 64):
            earlier = {s: value / shrink if s == time else value for s, value in point.items()}
            if inside(earlier):
                yield earlier
                break


def _number(expression: sp.Expr, point: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    return expression.evalf(_DIGITS, subs=dict(point), maxn=400)


def _usable(value: sp.Expr) -> bool:
    return bool(value.is_number and value.is_finite and value.is_comparable)


def _digits(error: sp.Expr, scale: sp.Expr) -> int:
    if not error.is_number or error.has(sp.zoo, sp.nan, sp.oo):
        return 0
    relative = abs(error) / max(abs(scale), sp.Float("1e-30"))
    return _DIGITS if relative == 0 else max(0, int(-sp.log(relative, 10).evalf(5)))


def _spot(point: Mapping[sp.Symbol, sp.Rational], digits: list[int]) -> Spot:
    return Spot({s.name: value for s, value in point.items()}, min(digits))


def _leftover(course: Course) -> sp.Expr:
    """The first of the starts' and rates' residuals that does not vanish."""
    starts = [p.subs(course.time, 0) - s for p, s in zip(course.paths, course.starts, strict=True)]
    rates = [p.diff(course.time) - course.along(f) for p, f in zip(course.paths, course.rhs, strict=True)]
    left = next((e for e in (*starts, *rates) if not vanishes(e, course.relations)), sp.S.Zero)
    return residual(left) if sp.count_ops(left) < _SIMPLIFY_OPS else left


def _require(spots: Sequence[Spot], what: str, leftover: Callable[[], sp.Expr]) -> None:
    if not spots:
        raise UndecidedError(f"No rational point inside the domain was found at which to check {what}.")
    worst = min(spots, key=lambda spot: spot.digits)
    if worst.digits < _REQUIRED:
        left = leftover()
        raise NotASolutionError(
            f"{what} is not a solution: {left} should be zero. It holds to no more than {worst}.", left
        )
