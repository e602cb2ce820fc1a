"""A flip as a zero: the cycle, its turning vector and the parameter together, from floats and then in balls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import sympy as sp
from flint import arb, ctx, fmpq

from fixedpoints.maps.normal_form import NormalForm
from fixedpoints.maps.orbits import Flip, NoFlipError
from fixedpoints.near.balls import BITS, as_ball, as_float, identity, is_exact, matmul, solve, widened
from fixedpoints.near.jets import NotSmoothError, UndefinedHereError
from fixedpoints.near.local import Local, located
from fixedpoints.near.refinement import iterated, newton_step
from fixedpoints.points import NotAFixedPointError
from odesys.lambdify import compile_field
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField
from symbolic.zero import is_zero

__all__ = ["certified", "near_flip", "round_trip"]

_MOST_NEWTON_STEPS = 50
_NEWTON_END = 1e-14
#: Steps in which a cycle is followed through an interval of the parameter.
_STEPS = 200
#: Half-width, relative to 1 + |x|, of the balls on which a zero is proven to be the only one.
_KRAWCZYK = 2.0**-100


def round_trip(
    system: MapSystem, at: np.ndarray, period: int
) -> tuple[list[list[float]], np.ndarray, list[np.ndarray]]:
    """The points of one round, where it ends, and the slopes along it, in floats."""
    compiled, points, slopes = compile_field(system), [], []
    for _ in range(period):
        points.append(at.tolist())
        slopes.append(np.broadcast_to(compiled.jacobian(0, at, system.args), (len(at),) * 2))
        at = compiled.rhs(0, at, system.args)
    return points, at, slopes


def near_flip(
    system: MapSystem, moving: sp.Symbol, at: np.ndarray, period: int, within: tuple[float, float] | None
) -> tuple[np.ndarray, float]:
    """A point of the cycle and the value of the parameter near a flip, as floats.

    Raises:
        NoFlipError: no multiplier reaches -1. ValueError: `within` does not hold the present value.
    """
    rule, value = system.map, system.args[system.map.parameters.index(moving)]
    if within is not None:
        return _followed(system, moving, at, period, value, *_checked(within, moving, value))
    descends = period == 1 and all(
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
    if moving.is_positive and low <= 0:
        raise ValueError(f"`within` must hold positive numbers alone, as {moving} is declared; got {within}.")
    return low, high


def _followed(
    system: MapSystem, moving: sp.Symbol, at: np.ndarray, period: int, value: float, low: float, high: float
) -> tuple[np.ndarray, float]:
    """The cycle where its smallest real multiplier passes -1, first above the present value, then below."""
    for end in (high, low):
        here, before = at.copy(), None
        for v in np.linspace(value, end, _STEPS):
            here, slope = _settled(system.with_parameters({moving: float(v)}), here, period)
            multipliers = np.linalg.eigvals(slope) if np.isfinite(slope).all() else np.array([])
            real = multipliers.real[np.abs(multipliers.imag) <= 1e-9]
            side = np.sign(real.min() + 1) if len(real) else None
            if before is not None and side is not None and side != before:
                return here, float(v)
            before = side
    raise NoFlipError(
        f"No multiplier passes -1 along the cycle for {moving} in [{low:g}, {high:g}]. Widen `within`."
    )


def _settled(system: MapSystem, at: np.ndarray, period: int) -> tuple[np.ndarray, np.ndarray]:
    """The point of the cycle near a guess, by Newton's method, and the slopes of one round there."""
    product = np.eye(len(at))
    for _ in range(_MOST_NEWTON_STEPS):
        _, image, slopes = round_trip(system, at, period)
        product = _product(slopes)
        if not (np.isfinite(product).all() and np.isfinite(image).all()):
            break
        move = np.linalg.lstsq(product - np.eye(len(at)), image - at, rcond=None)[0]
        at = at - move
        if np.abs(move).max() <= _NEWTON_END * (1 + np.abs(at).max()):
            break
    return at, product


def _product(slopes: Sequence[np.ndarray]) -> np.ndarray:
    """The slopes of one round."""
    product = slopes[0]
    for slope in slopes[1:]:
        product = slope @ product
    return product


def certified(system: MapSystem, moving: sp.Symbol, at: np.ndarray, value: float, period: int) -> Flip:
    """The flip near floats.

    Raises:
        NoFlipError: there is none, or no simple one.
    """
    rule, n = system.map, len(system.map.state)
    numbers = {p: v for p, v in zip(rule.parameters, system.args, strict=True) if p != moving}
    points, _, slopes = round_trip(system.with_parameters({moving: value}), at, period)
    rates, eigenvectors = np.linalg.eig(_product(slopes))
    vector = eigenvectors[:, np.abs(rates + 1).argmin()].real
    pivot = int(np.abs(vector).argmax())
    vectors = [vector / vector[pivot]]
    for slope in slopes[:-1]:
        vectors.append(slope @ vectors[-1])
    turning = [float(x) for v in vectors for x in v]
    start = [*(x for point in points for x in point), *turning[:pivot], *turning[pivot + 1 :], value]
    whole = ODESystem(_extended(rule, moving, period, pivot), {p.name: w for p, w in numbers.items()})
    near = _newton(whole, start, moving)
    try:
        place = located(whole, near)
    except NotAFixedPointError as error:
        raise NoFlipError(
            f"The flip near {moving} = {near[moving.name]:.6g} could not be proven: {error}"
        ) from None
    if moving.is_positive and near[moving.name] <= 0:
        raise NoFlipError(
            f"The flip met is at {moving} = {near[moving.name]:.6g}, and {moving} is declared to be positive. "
            "Give `within`, an interval to follow the cycle through."
        )
    with ctx.workprec(BITS):
        if not _is_simple(place.nominal):
            raise NoFlipError(
                f"At {moving} = {near[moving.name]:.6g} there is no simple flip: a second multiplier is 1 or -1, or "
                f"the multiplier -1 does not move with {moving}."
            )
        at_flip = place.bounded.at
        values = {p: fmpq(*float(w).as_integer_ratio()) for p, w in numbers.items()}
        form = NormalForm(rule, moving, values, at_flip[:n], at_flip[-1], period)
        return form.flip(place.nominal.at[-1])


def _is_simple(local: Local) -> bool:
    """Whether a zero is exact, or proven to exist, alone, by Krawczyk's test on balls around it."""
    try:
        middle = replace(local, at=tuple(x if is_exact(x) else as_ball(x).mid() for x in local.at))
        value, slopes = middle.slopes()
        inverse = solve([[as_ball(x).mid() for x in row] for row in slopes], identity(len(value)))
        reach = max(abs(as_ball(x)).upper() + 1 for x in local.at) * arb(_KRAWCZYK)
        _, around = replace(local, at=tuple(widened(x, reach) for x in middle.at)).slopes()
        moved, shrink = matmul(inverse, [[v] for v in value]), matmul(inverse, around)
    except (ZeroDivisionError, NotSmoothError, UndefinedHereError):
        return False
    return all(
        abs(as_ball(m)) + sum(abs(as_ball(x) - (i == j)) for j, x in enumerate(row)) * reach < reach
        for i, ((m,), row) in enumerate(zip(moved, shrink, strict=True))
    )


def _extended(rule: IteratedMap, moving: sp.Symbol, period: int, pivot: int) -> VectorField:
    """What vanishes at a flip:  f(x_k) - x_{k+1}  and  Df(x_k) v_k - v_{k+1},  with x_p = x_0 and v_p = -v_0.

    One component of v_0 is 1. The unknowns are all x_k, the rest of all v_k, and the parameter.
    """
    n, rhs = len(rule.state), []
    xs = [{x: sp.Symbol(f"{x.name}[{k}]", **x.assumptions0) for x in rule.state} for k in range(period)]
    vs = [[sp.Symbol(f"v[{k},{i}]", real=True) for i in range(n)] for k in range(period)]
    unknown = [v for i, v in enumerate(v for row in vs for v in row) if i != pivot]
    vs[0][pivot] = sp.S.One
    for k in range(period):
        ahead = xs[(k + 1) % period]
        rhs += [f.xreplace(xs[k]) - ahead[x] for x, f in zip(rule.state, rule.rhs, strict=True)]
    for k in range(period):
        sense = -1 if k + 1 == period else 1
        moved = rule.jacobian.xreplace(xs[k]) * sp.Matrix(vs[k])
        rhs += [a - sense * b for a, b in zip(moved, vs[(k + 1) % period], strict=True)]
    state = (*(x for step in xs for x in step.values()), *unknown, moving)
    return VectorField(state, tuple(rhs), tuple(p for p in rule.parameters if p != moving))


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
