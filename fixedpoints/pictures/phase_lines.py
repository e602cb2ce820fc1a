"""Phase lines: the flow of one state, with every fixed point and what the flow does on either side of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from fixedpoints.points import FixedPoint
from odesys.lambdify import compile_field
from odesys.plotting import COLOURS, new_axes
from odesys.system import ODESystem
from symbolic.roots import RealRoot, real_roots
from symbolic.zero import exact

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PhaseLine", "phase_line"]

#: What a point on a line does, by whether it attracts from below and from above.
_WORDS = {(True, True): "stable", (False, False): "unstable"}
#: How it is drawn: the filled half is the side that attracts.
_FILL = {"stable": "full", "unstable": "none"}


@dataclass(frozen=True, eq=False)
class PhaseLine:
    """The flow of one state on an interval.

    `points` are all fixed points in the open interval, from left to right, and `excluded` the poles of the
    field in it: both complete, by certified roots of numerator and denominator. `x` and `velocity`, shape
    (n,), are the drawn curve, with nan at poles; `axes` is the picture.
    """

    axes: Axes
    points: tuple[FixedPoint, ...]
    excluded: tuple[float, ...]
    x: np.ndarray
    velocity: np.ndarray


def phase_line(system: ODESystem, interval: tuple[float, float], ax: Axes | None = None) -> PhaseLine:
    """Draw dx/dt over x with every fixed point in an interval, marked by what the flow does on either side.

    Args:
        system: an autonomous system of one state whose right-hand side is rational in it.
        interval: low < high, in the units of the state.
        ax: where to draw; by default a new figure.
    Returns:
        The picture and all that it shows. Fixed points and poles are complete on the interval: they are
        certified roots, and stability comes from exact signs between them, so that double roots are named
        half-stable.
    Raises:
        TypeError: the system is no ODESystem.
        ValueError: more than one state, a field that depends on time or is not rational, a field that
            vanishes everywhere, or an interval that is not finite and increasing.
    """
    f, x = _rule(system)
    low, high = _interval(interval)
    points, poles = _analysed(f, x, low, high)
    grid, velocity = _curve(system, low, high, poles)
    axes = new_axes() if ax is None else ax
    _draw(axes, x.name, grid, velocity, points, poles)
    return PhaseLine(axes, points, poles, grid, velocity)


def _rule(system: ODESystem) -> tuple[sp.Expr, sp.Symbol]:
    """The right-hand side with its numbers put in exactly, and its one state."""
    if not isinstance(system, ODESystem):
        raise TypeError(f"A phase line is drawn of an ODESystem; got {type(system).__name__}.")
    field = system.field
    if len(field.state) != 1:
        raise ValueError(
            f"A phase line has one state; this system has {len(field.state)}: {list(field.names)}. "
            "Reduce it first, with symbolic.restrict or symbolic.project."
        )
    if field.time is not None:
        raise ValueError(f"A phase line is of an autonomous field; this one depends on {field.time}.")
    numbers = {p: exact(sp.sympify(v)) for p, v in zip(field.parameters, system.args, strict=True)}
    (x,) = field.state
    rule = sp.cancel(sp.together(exact(field.rhs[0].xreplace(numbers))))
    if not rule.is_rational_function(x):
        raise ValueError(f"phase_line wants a right-hand side that is rational in {x}; got {field.rhs[0]}.")
    if rule == 0:
        raise ValueError(
            f"d{x}/dt is zero for every {x}: all points are fixed, and there is no line to draw."
        )
    return rule, x


def _interval(interval: tuple[float, float]) -> tuple[float, float]:
    low, high = (float(end) for end in interval)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"`interval` must be finite and increasing, (low, high); got {interval}.")
    return low, high


def _analysed(
    f: sp.Expr, x: sp.Symbol, low: float, high: float
) -> tuple[tuple[FixedPoint, ...], tuple[float, ...]]:
    """Fixed points and poles in the interval, from left to right."""
    numerator, denominator = (_monic(part, x) for part in sp.fraction(f))
    # One isolation for zeros and poles together: their enclosures are disjoint, and the cuts separate them.
    marks = real_roots(numerator * denominator, x)
    cuts = [(a.upper + b.lower) / 2 for a, b in pairwise(marks)]
    ends = [marks[0].lower - 1, *cuts, marks[-1].upper + 1] if marks else []
    slope, points, poles = f.diff(x), [], []
    for mark, left, right in zip(marks, ends, ends[1:], strict=False):
        if not low < float(mark) < high:
            continue
        if sp.rem(denominator, mark.minimal.as_expr(), x) == 0:
            poles.append(float(mark))
        else:
            points.append(_point(f, slope, x, mark, left, right))
    return tuple(points), tuple(poles)


def _monic(polynomial: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """With leading coefficient one, so that a common irrational factor does not hide rational ones."""
    poly = sp.Poly(polynomial, x)
    return sp.Add(*(sp.radsimp(c / poly.LC()) * x**k for (k,), c in poly.terms()))


def _point(
    f: sp.Expr, slope: sp.Expr, x: sp.Symbol, root: RealRoot, left: sp.Expr, right: sp.Expr
) -> FixedPoint:
    attracts = (bool(f.subs(x, left) > 0), bool(f.subs(x, right) < 0))
    eigenvalue = float(slope.subs(x, root.value(30))) if root.multiplicity == 1 else 0.0
    return FixedPoint(
        {x.name: float(root)},
        (eigenvalue,),
        _WORDS.get(attracts, "half-stable"),
        evidence=f"exact signs of the field below and above: moves {_towards(attracts)}",
        enclosure={x.name: (root.lower, root.upper)},
        multiplicity=root.multiplicity,
        attracts=attracts,
    )


def _towards(attracts: tuple[bool, bool]) -> str:
    return " and ".join("towards it" if side else "away from it" for side in attracts)


def _curve(
    system: ODESystem, low: float, high: float, poles: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    grid = np.linspace(low, high, 801)
    field = compile_field(system)
    with np.errstate(all="ignore"):
        velocity = np.array(field.rhs(0.0, grid[None, :], field.args)[0], dtype=float)
    velocity[~np.isfinite(velocity)] = np.nan
    for pole in poles:
        # One point on either side of a pole is left out, so that no line is drawn through it.
        nearest = np.argsort(np.abs(grid - pole))[:2]
        velocity[nearest] = np.nan
    return grid, velocity


def _draw(axes: Axes, name: str, grid, velocity, points, poles) -> None:
    axes.axhline(0.0, color="0.3", linewidth=1.0, zorder=1)
    axes.plot(grid, velocity, color=COLOURS[0], linewidth=1.8, zorder=2)
    for pole in poles:
        axes.axvline(pole, color="0.5", linestyle=":", linewidth=1.4, label=f"pole at {pole:.6g}")
    edges = [grid[0], *sorted((*(p.location[name] for p in points), *poles)), grid[-1]]
    for left, right in pairwise(edges):
        middle = (left + right) / 2
        at = np.nanargmin(np.abs(grid - middle))
        if np.isfinite(velocity[at]) and velocity[at] != 0:
            axes.plot(
                middle, 0.0, marker=">" if velocity[at] > 0 else "<", color="0.3", markersize=8, zorder=3
            )
    for point in points:
        fill = _FILL.get(point.stability, "left" if point.attracts[0] else "right")
        axes.plot(
            point.location[name],
            0.0,
            marker="o",
            markersize=9,
            color=COLOURS[1],
            markerfacecoloralt="white",
            fillstyle=fill,
            linestyle="none",
            label=f"{point.stability}: {name} = {point.location[name]:.6g}",
            zorder=4,
        )
    axes.set(xlabel=name, ylabel=f"d{name}/dt", xlim=(grid[0], grid[-1]))
    if poles:
        # Near a pole the curve leaves any frame; show the nine tenths of it that lie closest to zero.
        size = 1.2 * np.nanquantile(np.abs(velocity), 0.9)
        axes.set_ylim(-size, size)
    if points or poles:
        axes.legend(frameon=False)
