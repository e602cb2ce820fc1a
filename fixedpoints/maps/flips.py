"""Where a multiplier reaches -1 as a parameter moves: the flip of a fixed point or cycle, and what is born there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import sympy as sp

from fixedpoints.arguments import whole
from fixedpoints.maps.arguments import autonomous, symbol_of
from fixedpoints.maps.copies import ring
from fixedpoints.maps.extended import certified, near_flip, round_trip
from fixedpoints.maps.leaves import leaf
from fixedpoints.maps.orbits import Flip, NoFlipError
from fixedpoints.points import NotAFixedPointError
from odesys.system import MapSystem, numbers_for
from symbolic.field import IteratedMap
from symbolic.zero import is_zero

__all__ = ["critical_step", "flip_formula"]


def critical_step(
    system: MapSystem,
    point: Mapping[str | sp.Symbol, float],
    parameter: str | sp.Symbol,
    within: tuple[float, float] | None = None,
    period: int = 1,
) -> Flip:
    """The value of a parameter at which a multiplier of a fixed point, or of a cycle, reaches -1.

    For gradient descent x -> x - eta grad L the first one is eta = 2 / lambda_max of the Hessian. In general
    f(x) = x, (Df + 1) v = 0 is solved for x, v and the parameter together, in balls of some 70 digits that hold
    one solution by Krawczyk's test. The cubic coefficient of the normal form decides whether stable cycles of
    twice the period follow a stable point,

        c = <p, C(q, q, q)> / 6 + <p, B(q, (1 - A)^-1 B(q, q))> / 2,    <p, q> = <q, q> = 1,

    with the derivatives A, B, C of f^p; in one state c = f''^2 / 4 + f''' / 6. States along conserved linear
    functionals are eliminated first.

    Args:
        system: the map with its numbers.
        point: the fixed point, or a point of the cycle, at these numbers.
        parameter: which one moves, by name or symbol.
        within: (low, high), an interval through which the point is followed from the system's own value;
            by default the first flip of a descent map at eta > 0, else the one that Newton's method meets.
        period: p, of the cycle.
    Raises:
        NotAFixedPointError: the point is none of that period.
        NoFlipError: no multiplier reaches -1 there.
        TypeError: the system is no map.
        ValueError: the parameter or a state is unknown, the period no whole number of at least 1, or `within`
            does not hold the system's own value.

    Sources: Kuznetsov, Elements of Applied Bifurcation Theory (2004), theorem 4.3 and section 5.4.
    """
    system = autonomous(system, "Flips are")
    moving, period = symbol_of(system.map, parameter), whole(period, "period")
    start = numbers_for(system.map.state, point, "state")
    flat = leaf(system, dict(zip(system.map.names, start, strict=True)))
    rule = flat.system.map
    kept = [x for x, name in zip(start, system.map.names, strict=True) if name in rule.names]
    orbit, _, _ = round_trip(flat.system, np.array(kept), period)
    here = ring(flat.system, orbit).points[0]
    at, value = near_flip(flat.system, moving, np.array(list(here.values())), period, within)
    flip = certified(flat.system, moving, at, value, period)
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


def _lifted(
    system: MapSystem, others: Mapping[sp.Symbol, sp.Expr], point: Mapping[str, float]
) -> dict[str, float]:
    """The point with the states that were eliminated."""
    known = {x: sp.Float(point[x.name]) for x in system.map.state if x.name in point}
    return {
        x.name: float(others[x].xreplace(known)) if x in others else point[x.name] for x in system.map.state
    }
