"""Where a multiplier reaches -1 as a parameter grows: the flip of a fixed point, and which 2-cycles leave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp
from flint import ctx, fmpq

from fixedpoints.maps.arguments import autonomous, symbol_of
from fixedpoints.maps.copies import ring
from fixedpoints.maps.leaves import leaf
from fixedpoints.maps.returns import ReturnMap
from fixedpoints.near.balls import (
    BITS,
    Matrix,
    Number,
    as_ball,
    as_float,
    dot,
    radius,
    sign,
    solve,
    to_rational,
)
from fixedpoints.near.centre_manifold import NotSemisimpleError, kernel
from fixedpoints.near.jets import Jet
from fixedpoints.near.local import Local, located
from fixedpoints.near.refinement import iterated, newton_step
from fixedpoints.points import NotAFixedPointError
from odesys.lambdify import compile_field
from odesys.system import MapSystem, ODESystem, numbers_for
from symbolic.field import IteratedMap, VectorField
from symbolic.zero import is_zero

__all__ = ["Flip", "NoFlipError", "critical_step", "flip_formula"]

_MOST_NEWTON_STEPS = 50
_NEWTON_END = 1e-14
#: Steps in which a fixed point is followed through an interval of the parameter.
_STEPS = 200


class NoFlipError(ValueError):
    """No multiplier of the fixed point reaches -1 for a value of the parameter in reach."""


@dataclass(frozen=True, eq=False)
class Flip:
    """The value of a parameter at which a fixed point has the multiplier -1, and what is born there.

    Args:
        parameter: its name.
        value, error: the critical value, and a bound on its error.
        exact: the same as a rational number, where point and value are rational; else None.
        point: the fixed point there, state name -> coordinate.
        direction: the eigenvector q of the multiplier -1, of length 1, shape (n,).
        coefficient, coefficient_error: c of the normal form  s -> -s + c s^3  (Kuznetsov 2004, section 5.4).
        kind: "supercritical" (c > 0), "subcritical" (c < 0) or "degenerate" (c may vanish).
        speed: d mu / d parameter of the multiplier mu = -1; the flip is real where it is not 0.
        others: the other multipliers, by falling modulus.
        evidence: the sentence that says it all.
    """

    parameter: str
    value: float
    error: float
    exact: sp.Rational | None
    point: Mapping[str, float]
    direction: tuple[float, ...]
    coefficient: float
    coefficient_error: float
    kind: str
    speed: float
    others: tuple[complex, ...]
    evidence: str


def critical_step(
    system: MapSystem,
    point: Mapping[str | sp.Symbol, float],
    parameter: str | sp.Symbol,
    within: tuple[float, float] | None = None,
) -> Flip:
    """The value of a parameter at which a multiplier of a fixed point reaches -1, with proof.

    For gradient descent x -> x - eta grad L the first one is eta = 2 / lambda_max of the Hessian. In general
    f(x) = x, (Df + 1) v = 0 is solved for x, v and the parameter together, from floats and then in balls of some
    70 digits. The cubic coefficient of the normal form decides whether stable 2-cycles follow a stable point,

        c = <p, C(q, q, q)> / 6 + <p, B(q, (1 - A)^-1 B(q, q))> / 2,    <p, q> = <q, q> = 1,

    in one state c = f''^2 / 4 + f''' / 6. States along conserved linear functionals are eliminated first.

    Args:
        system: the map with its numbers.
        point: the fixed point at these numbers.
        parameter: which one moves, by name or symbol.
        within: (low, high), an interval through which the fixed point is followed from the system's own value;
            by default the first flip of a descent map at eta > 0, else the one that Newton's method meets.
    Raises:
        NotAFixedPointError: the point is none.
        NoFlipError: no multiplier reaches -1 there.
        TypeError: the system is no map.
        ValueError: the parameter or a state is unknown, or `within` does not hold the system's own value.

    Sources: Kuznetsov, Elements of Applied Bifurcation Theory (2004), theorem 4.3 and section 5.4.
    """
    system = autonomous(system, "Flips are")
    moving = symbol_of(system.map, parameter)
    start = numbers_for(system.map.state, point, "state")
    flat = leaf(system, dict(zip(system.map.names, start, strict=True)))
    rule = flat.system.map
    kept = [x for x, name in zip(start, system.map.names, strict=True) if name in rule.names]
    here = [list(ring(flat.system, [kept]).points[0].values())]
    at, value = _guess(flat.system, moving, np.array(here[0]), within)
    numbers = {p: v for p, v in zip(rule.parameters, flat.system.args, strict=True) if p != moving}
    flip = _certified(rule, moving, numbers, at, value)
    return replace(flip, point=_lifted(system, flat.others, flip.point))


def flip_formula(
    rule: IteratedMap, point: Mapping[str | sp.Symbol, sp.Expr], parameter: str | sp.Symbol
) -> tuple[sp.Expr, sp.Expr]:
    """The critical value and the coefficient c of a flip in one state, as formulas of the other parameters.

    Args:
        rule: a map of one state that is affine in the parameter.
        point: a fixed point for every value of the parameter, as an exact expression.
    Returns:
        The value at which f' = -1, and  c = f''^2 / 4 + f''' / 6  there.
    Raises:
        NotAFixedPointError: the map moves the point, or that it does not could not be proven.
        NoFlipError: f' does not depend on the parameter there.
        ValueError: there are several states, or the map is not affine in the parameter.
    """
    moving = symbol_of(rule, parameter)
    if len(rule.state) != 1:
        raise ValueError(
            f"A flip's formula is of a map of one state; this one has {len(rule.state)}. "
            "With numbers there is critical_step."
        )
    (x,), (f,) = rule.state, rule.rhs
    if is_zero(f.diff(moving, 2)) is not True:
        raise ValueError(f"The map is not affine in {moving}; with numbers there is critical_step.")
    (place,) = point.values()
    moved = (f - x).subs(x, place)
    if is_zero(moved) is not True:
        raise NotAFixedPointError(
            f"{x} = {place} is not shown to be a fixed point for every {moving}: the map moves it by "
            f"{sp.simplify(moved)}. Give a point that does not depend on {moving}.",
            float("nan"),
        )
    slope = sp.simplify(f.diff(x).subs(x, place) + 1)
    rate = sp.simplify(slope.diff(moving))
    if rate == 0:
        raise NoFlipError(f"The multiplier at {x} = {place} does not depend on {moving}.")
    value = sp.simplify(-slope.subs(moving, 0) / rate)
    second, third = (f.diff(x, k).subs(x, place).subs(moving, value) for k in (2, 3))
    return value, sp.simplify(second**2 / 4 + third / 6)


# Where to start


def _guess(
    system: MapSystem, moving: sp.Symbol, at: np.ndarray, within: tuple[float, float] | None
) -> tuple[np.ndarray, float]:
    """The fixed point and the value of the parameter near a flip, as floats."""
    rule, value = system.map, system.args[system.map.parameters.index(moving)]
    if within is not None:
        return _followed(system, moving, at, value, *_checked(within, moving, value))
    descends = all(
        is_zero(f.subs(moving, 0) - x) is True and is_zero(f.diff(moving, 2)) is True
        for f, x in zip(rule.rhs, rule.state, strict=True)
    )
    if not descends:
        return at, value
    one = system.with_parameters({moving: 1.0})
    rates = np.linalg.eigvals(compile_field(one).jacobian(0, at, one.args) - np.eye(len(at)))
    falling = [r.real for r in rates if r.real < 0 and abs(r.imag) <= 1e-9 * abs(r)]
    if not falling:
        raise NoFlipError(
            f"No multiplier 1 + {moving} nu reaches -1 for {moving} > 0: the rates nu are "
            f"{', '.join(f'{r:.6g}' for r in rates)}. Flips are of points where a direction is contracted."
        )
    return at, -2 / min(falling)


def _checked(within: tuple[float, float], moving: sp.Symbol, value: float) -> tuple[float, float]:
    low, high = (float(end) for end in within)
    if not low <= value <= high or not low < high:
        raise ValueError(
            f"`within` must be an interval that holds the system's own {moving} = {value:.6g}; got {within}."
        )
    return low, high


def _followed(
    system: MapSystem, moving: sp.Symbol, at: np.ndarray, value: float, low: float, high: float
) -> tuple[np.ndarray, float]:
    """The fixed point where its smallest real multiplier passes -1, first above the present value, then below."""
    compiled = compile_field(system)
    args, place = list(system.args), system.map.parameters.index(moving)
    for end in (high, low):
        here, before = at.copy(), None
        for v in np.linspace(value, end, _STEPS):
            args[place] = float(v)
            for _ in range(_MOST_NEWTON_STEPS):
                slope = compiled.jacobian(0, here, args) - np.eye(len(here))
                move = np.linalg.solve(slope, compiled.rhs(0, here, args) - here)
                here = here - move
                if np.abs(move).max() <= _NEWTON_END * (1 + np.abs(here).max()):
                    break
            multipliers = np.linalg.eigvals(compiled.jacobian(0, here, args))
            real = multipliers.real[np.abs(multipliers.imag) <= 1e-9]
            side = np.sign(real.min() + 1) if len(real) else None
            if before is not None and side is not None and side != before:
                return here, float(v)
            before = side
    raise NoFlipError(
        f"No multiplier passes -1 along the fixed point for {moving} in [{low:g}, {high:g}]. Widen `within`."
    )


# The proof


def _certified(
    rule: IteratedMap, moving: sp.Symbol, numbers: Mapping[sp.Symbol, float], at: np.ndarray, value: float
) -> Flip:
    n = len(rule.state)
    guess = MapSystem(rule, {**{p.name: v for p, v in numbers.items()}, moving.name: value})
    slope = compile_field(guess).jacobian(0, at, guess.args)
    rates, vectors = np.linalg.eig(slope)
    v = vectors[:, np.abs(rates + 1).argmin()].real
    pivot = int(np.abs(v).argmax())
    # f(x) = x and (Df + 1) v = 0 with one component of v equal to 1, for x, the rest of v and the parameter.
    unknown = [sp.Dummy(f"v_{i}", real=True) for i in range(n)]
    vector = [sp.S.One if i == pivot else u for i, u in enumerate(unknown)]
    rest = [u for i, u in enumerate(unknown) if i != pivot]
    turned = [f + s for f, s in zip(rule.jacobian * sp.Matrix(vector), vector, strict=True)]
    rhs = (*(f - x for f, x in zip(rule.rhs, rule.state, strict=True)), *turned)
    names = {u: sp.Symbol(f"v[{i}]", real=True) for i, u in enumerate(unknown)}
    state = (*rule.state, *(names[u] for u in rest), moving)
    field = VectorField(state, tuple(f.xreplace(names) for f in rhs), tuple(numbers))
    system = ODESystem(field, {p.name: w for p, w in numbers.items()})
    start = [*at, *(v[i] / v[pivot] for i in range(n) if i != pivot), value]
    near = _newton(system, start, moving)
    try:
        place = located(system, near)
    except NotAFixedPointError as error:
        raise NoFlipError(
            f"The flip near {moving} = {near[moving.name]:.6g} could not be proven: {error}"
        ) from None
    with ctx.workprec(BITS):
        at = place.bounded.at
        values = {p: fmpq(*map(int, float(w).as_integer_ratio())) for p, w in numbers.items()}
        form = _NormalForm(rule, moving, values, at[:n], at[-1])
        return form.flip(place.nominal.at[-1])


def _newton(system: ODESystem, start: Sequence[float], moving: sp.Symbol) -> dict[str, float]:
    """Where Newton's method ends, with Taylor polynomials for slopes: nothing is compiled."""
    numbers = dict(zip(system.field.parameters, system.args, strict=True))
    with ctx.workprec(BITS):
        local = Local(system.field, numbers, tuple(fmpq(*float(x).as_integer_ratio()) for x in start))
        found = iterated(local, newton_step)
    if found is None:
        raise NoFlipError(
            f"Newton's method meets no multiplier -1 from {moving} = {start[-1]:.6g}. Start nearer to the flip, or "
            "give `within`, an interval to follow the fixed point through."
        )
    return dict(zip(system.field.names, map(as_float, found), strict=True))


@dataclass(frozen=True, eq=False)
class _NormalForm:
    """The map near its flip, in balls."""

    rule: IteratedMap
    moving: sp.Symbol
    numbers: Mapping[sp.Symbol, Number]
    at: Sequence[Number]
    value: Number

    def flip(self, nominal: Number) -> Flip:
        """All that is told of it; `nominal` is the critical value with floats read as they are."""
        once = ReturnMap(self.rule, {**self.numbers, self.moving: self.value}, tuple(self.at), 1)
        _, less = once.slopes()
        try:
            null = kernel(replace(once, steps=2), 1)
            right, left = _unit(null.right[0], null.left[0])
            c = self._cubic(once, less, right, left)
            speed = self._speed(once, less, right, left)
        except (NotSemisimpleError, ZeroDivisionError):
            raise NoFlipError(
                f"At {self.moving} = {as_float(self.value):.6g} a second multiplier is 1 or -1: no simple flip."
            ) from None
        slopes = np.array([[as_float(x) + (i == j) for j, x in enumerate(row)] for i, row in enumerate(less)])
        multipliers = list(np.linalg.eigvals(slopes))
        multipliers.pop(int(np.abs(np.array(multipliers) + 1).argmin()))
        others = tuple(sorted((complex(m) for m in multipliers), key=abs, reverse=True))
        side = sign(c)
        kind = {1: "supercritical", -1: "subcritical", 0: "degenerate"}[side]
        exact = to_rational(nominal) if isinstance(nominal, fmpq) else None
        return Flip(
            self.moving.name,
            as_float(nominal),
            # The float of the value may be off by half a unit in its last place.
            radius(self.value) + abs(as_float(nominal)) * 2.0**-53,
            exact,
            {name: as_float(x) for name, x in zip(self.rule.names, self.at, strict=True)},
            tuple(map(as_float, right)),
            as_float(c),
            radius(c) + abs(as_float(c)) * 2.0**-53,
            kind,
            as_float(speed),
            others,
            self._sentence(kind, as_float(c), as_float(speed), others),
        )

    def _cubic(self, once: ReturnMap, less: Matrix, right: list[Number], left: list[Number]) -> Number:
        """c from the curve  q s + h s^2  with  (1 - A) h = B(q, q) / 2, whose image bends as f does."""
        bend = [jet[0, 0] for jet in once.phi([Jet({(0,): q}, 2) for q in right])]
        h = solve(less, [[-b] for b in bend])
        curve = [Jet({(0,): q, (0, 0): row[0]}, 3) for q, row in zip(right, h, strict=True)]
        return dot(left, [jet[0, 0, 0] for jet in once.phi(curve)])

    def _speed(self, once: ReturnMap, less: Matrix, right: list[Number], left: list[Number]) -> Number:
        """d mu / d parameter = <p, B(q, x') + A' q>  with  (1 - A) x' = df/d parameter."""
        drift = [jet[1,] for jet in self._moved(once, [Jet({}, 1) for _ in right], 1)]
        shift = solve(less, [[-d] for d in drift])
        plane = [Jet({(0,): q, (1,): row[0]}, 2) for q, row in zip(right, shift, strict=True)]
        return dot(left, [jet[0, 1] for jet in self._moved(once, plane, 2)])

    def _moved(self, once: ReturnMap, displacement: list[Jet], order: int) -> list[Jet]:
        """f - id where also the parameter moves, by the variable 1."""
        parameter = Jet({(): as_ball(self.value), (1,): fmpq(1)}, order)
        return replace(once, values={**self.numbers, self.moving: parameter}).phi(displacement)

    def _sentence(self, kind: str, c: float, speed: float, others: Sequence[complex]) -> str:
        fate = {"supercritical": "stable", "subcritical": "unstable", "degenerate": "undecided"}[kind]
        if kind == "supercritical" and any(abs(m) >= 1 for m in others):
            fate = "stable along q, and unstable otherwise,"
        beyond = "above" if (speed < 0) == (kind == "supercritical") else "below"
        born = f"{fate} 2-cycles for {self.moving} {beyond}" if kind != "degenerate" else "no 2-cycles told"
        return f"multiplier -1 moving by {speed:.6g}; s -> -s + {c:.6g} s^3 + ...: {kind}, {born}"


def _unit(right: list[Number], left: list[Number]) -> tuple[list[Number], list[Number]]:
    """q of length 1, its largest component positive, and p with <p, q> = 1."""
    size = sum((as_ball(q) * as_ball(q) for q in right), as_ball(fmpq(0))).sqrt()
    largest = max(right, key=lambda q: abs(as_float(q)))
    size = -size if as_float(largest) < 0 else size
    return [q / size for q in right], [p * size for p in left]


def _lifted(
    system: MapSystem, others: Mapping[sp.Symbol, sp.Expr], point: Mapping[str, float]
) -> dict[str, float]:
    """The point with the states that were eliminated."""
    known = {x: sp.Float(point[x.name]) for x in system.map.state if x.name in point}
    return {
        x.name: float(others[x].xreplace(known)) if x in others else point[x.name] for x in system.map.state
    }
