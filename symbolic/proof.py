"""What it takes to call an expression a solution: substituted exactly, started exactly, checked in numbers.

    dx/dt - f(x) = 0   identically,      x(0) = x_0   identically,      both again at fixed rational points

The numbers never prove anything; they catch a false simplification and a wrong real branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from symbolic.errors import NotASolutionError, UndecidedError
from symbolic.normal_form import vanishes
from symbolic.zero import residual, witness_points

__all__ = ["Course", "Proof", "Spot", "prove_course", "prove_primitive"]

#: Working digits of a spot check, and the digits that it must reach (a central difference gives two thirds).
_DIGITS, _REQUIRED = 60, 20
_STEP = sp.Rational(1, 10**15)
#: Spot checks of a proof, and how many points may be tried to find as many inside the domain.
_SPOTS, _TRIES = 3, 32
#: Size up to which SymPy's simplification is asked, which is slow on large expressions.
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


@dataclass(frozen=True)
class Proof:
    """The evidence for a closed form; `residual` and `initial_residual` are literally 0.

    `argument` says how the residual was found to vanish.
    """

    residual: sp.Expr
    initial_residual: sp.Expr
    spots: tuple[Spot, ...]
    argument: str

    def __str__(self) -> str:
        checks = "; ".join(str(spot) for spot in self.spots)
        return (
            f"residual {self.residual}, {self.argument}; initial residual {self.initial_residual}; "
            f"checked numerically: {checks}"
        )


@dataclass(frozen=True)
class Course:
    """A candidate x(t) for dx/dt = f(t, x), all in real symbols: what is to be proven.

    `margins` are expressions in (t, x_0, p) that are positive wherever the candidate is claimed to hold, `positive`
    others that then follow; `relations` are polynomials in the parameters that vanish in this case.
    """

    state: tuple[sp.Symbol, ...]
    rhs: tuple[sp.Expr, ...]
    time: sp.Symbol
    starts: tuple[sp.Symbol, ...]
    paths: tuple[sp.Expr, ...]
    margins: tuple[sp.Expr, ...] = ()
    positive: tuple[sp.Expr, ...] = ()
    relations: tuple[sp.Expr, ...] = ()

    def along(self, expression: sp.Expr) -> sp.Expr:
        return expression.subs(dict(zip(self.state, self.paths, strict=True)), simultaneous=True)


def prove_course(course: Course) -> Proof:
    """Prove that a candidate solves its equation from its start, or refuse.

    Raises:
        NotASolutionError: a number shows that it does not; carries the residual.
        UndecidedError: no number contradicts it, and no argument proves it.
    """
    spots = _spots(course)
    arguments = []
    for x, f, path, start in zip(course.state, course.rhs, course.paths, course.starts, strict=True):
        if _square_solves(course, f, path):
            arguments.append("by substitution into the squared equation, its sign fixed by the initial slope")
        elif _solves(course, f, path):
            arguments.append("by substitution")
        else:
            left = path.diff(course.time) - course.along(f)
            raise UndecidedError(
                f"Could not prove that {x} = {path} solves d{x}/d{course.time} = {f}, although it does so at every "
                "point tried. Give a simpler form, or stronger assumptions on the symbols.",
                left,
            )
        left = _started(path, course) - start
        if not _vanishes(left, course):
            raise UndecidedError(f"Could not prove that {x} = {path} starts at {start}.", left)
    return Proof(sp.S.Zero, sp.S.Zero, spots, "; ".join(dict.fromkeys(arguments)))


def prove_primitive(f: sp.Expr, x: sp.Symbol, function: sp.Expr, left: sp.Expr) -> Proof:
    """The proof of an implicit law from the residual F' f - 1 of its primitive, checked on F itself.

    t = F(x) - F(x_0) meets its start by construction; that F is real and increases along the flow is checked.
    """
    if left != 0:
        raise UndecidedError(f"The derivative of {function} could not be shown to be 1/({f}): {left}.", left)
    spots = []
    for point in _points([x, *sorted(f.free_symbols - {x}, key=str)]):
        speed, inner = _number(f, point), dict(point)
        if not _usable(speed) or not speed.is_real or speed == 0:
            continue
        ends = [_number(function, {**inner, x: inner[x] + sign * _STEP}) for sign in (1, -1)]
        spots.append(_spot(point, [_digits((ends[0] - ends[1]) / (2 * _STEP) * speed - 1, sp.S.One)]))
        if len(spots) == _SPOTS:
            break
    _require(spots, f"t = F({x}) - F({x}_0), F = {function}", lambda: left)
    return Proof(sp.S.Zero, sp.S.Zero, tuple(spots), "F' f - 1 = 0")


# --- exact arguments ----------------------------------------------------------------------------------------


def _vanishes(expression: sp.Expr, course: Course) -> bool:
    if vanishes(expression, course.relations):
        return True
    return sp.count_ops(expression) < _SIMPLIFY_OPS and residual(expression, course.relations) == 0


def _solves(course: Course, f: sp.Expr, path: sp.Expr) -> bool:
    """Whether x' - f(x) vanishes, the candidates and their rates being substituted."""
    paths, definitions = _collected(course)
    rates = [_rate(p, course.time, definitions) for p in paths]
    rate = rates[course.paths.index(path)] - f.subs(
        dict(zip(course.state, paths, strict=True)), simultaneous=True
    )
    shift = _shifted_exponents(f, course)
    rate = sp.expand_power_base(rate.xreplace(shift))
    if vanishes(rate, course.relations, {B: base.xreplace(shift) for B, base in definitions.items()}):
        return True
    return not definitions and _vanishes(_lambert(rate, course.time), course)


def _square_solves(course: Course, f: sp.Expr, path: sp.Expr) -> bool:
    """f = r sqrt(q): if x'^2 = f(x)^2 identically and x'(0) = f(x_0), then x' = f(x) until f(x) vanishes."""
    if len(course.state) != 1 or f.has(course.time):
        return False
    (x,), (start,) = course.state, course.starts
    square = sp.expand(f**2)
    if not _has_roots(f, x) or _has_roots(square, x):
        return False
    rate = path.diff(course.time)
    return vanishes(rate**2 - square.subs(x, path), course.relations) and _vanishes(
        rate.subs(course.time, 0) - f.subs(x, start), course
    )


def _has_roots(f: sp.Expr, x: sp.Symbol) -> bool:
    return any(p.base.has(x) and not p.exp.is_integer for p in f.atoms(sp.Pow))


def _collected(course: Course) -> tuple[list[sp.Expr], dict[sp.Symbol, sp.Expr]]:
    """The paths with the positive bases of their broken powers as symbols: (c B^q)^n is then c^n B^(q n)."""
    known = (*course.margins, *course.positive)
    bases = {
        p.base: sp.Dummy("B", positive=True)
        for path in course.paths
        for p in path.atoms(sp.Pow)
        if p.base.has(course.time) and (p.base in known or (p.base.is_positive and not p.exp.is_integer))
    }
    return [path.xreplace(bases) for path in course.paths], {B: base for base, B in bases.items()}


def _rate(path: sp.Expr, t: sp.Symbol, definitions: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    return path.diff(t) + sp.Add(*(path.diff(B) * base.diff(t) for B, base in definitions.items()))


def _shifted_exponents(f: sp.Expr, course: Course) -> dict[sp.Symbol, sp.Expr]:
    """Symbolic exponents n of f as 1 + m, since it is m = n - 1 by which Bernoulli's substitution divides."""
    exponents = {n for p in f.atoms(sp.Pow) for n in p.exp.free_symbols if p.base.has(*course.state)}
    return {n: 1 + sp.Dummy(n.name, real=True, nonzero=True) for n in exponents}


def _started(path: sp.Expr, course: Course) -> sp.Expr:
    return _inverse_lambert(path.subs(course.time, 0))


def _lambert(expression: sp.Expr, t: sp.Symbol) -> sp.Expr:
    """Write W(exp(T)) as w > 0 and T, linear in t, as w + log w, so that SymPy sees W exp(W) = exp(T)."""
    atoms = [a for a in expression.atoms(sp.LambertW) if isinstance(a.args[0], sp.exp) and len(a.args) == 1]
    if len(atoms) != 1:
        return expression
    (atom,), w = atoms, sp.Dummy("w", positive=True)
    exponent = atom.args[0].exp
    slope = exponent.diff(t)
    if slope == 0 or slope.has(t):
        return expression
    moment = (w + sp.log(w) - exponent.subs(t, 0)) / slope
    return sp.powsimp(sp.expand(expression.xreplace({atom: w}).subs(t, moment)))


def _inverse_lambert(expression: sp.Expr) -> sp.Expr:
    """W(y exp(y)) = y for y > 0, which SymPy does not see when it holds exp(log(y) + y)."""

    def undone(z, *branch):
        exponent = sp.expand(z.exp) if isinstance(z, sp.exp) else sp.S.Zero
        for y in exponent.atoms(sp.exp):
            if not branch and sp.expand(exponent - y - y.exp) == 0:
                return y
        return sp.LambertW(z, *branch)

    return expression.replace(sp.LambertW, undone)


# --- numbers ------------------------------------------------------------------------------------------------


def _spots(course: Course) -> tuple[Spot, ...]:
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
