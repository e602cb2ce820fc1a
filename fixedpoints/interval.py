"""All fixed points in a box: each reported one is proven, and so is that the rest of the box holds none.

What can be said of a box that is neither is said in words, box by box; poles and the edges of the field's
domain are named.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from fixedpoints.boxes.degenerate import belongs, exact_zero, settled
from fixedpoints.boxes.equations import Box, Equations, Task, task_in
from fixedpoints.boxes.krawczyk import Zero, explore
from fixedpoints.boxes.singular import Condition, Kind, plain
from fixedpoints.points import Component, OpenBox
from odesys.system import MapSystem, ODESystem
from symbolic.roots import real_roots

__all__ = ["InBox", "in_box"]

#: Boxes below this part of the searched one deserve a second look at higher precision.
_SMALL = 1e-8

_STOPPED = "was not searched through: too many boxes, or the budget ran out"
_OPEN_AT_EVERY_SCALE = "stays open at every scale, as a curve of fixed points would"

#: Sides of boxes at the second look, as parts of those of the searched one, are at least this long.
_THINNEST = 1e-13

#: Open boxes are merged on a grid before they are merged by contact.
_MOST_CLUSTERED = 2000


@dataclass(frozen=True, eq=False)
class InBox:
    """What a box holds: proven fixed points, open boxes, components, and where the field is singular in it.

    `finished` says that the search was not stopped; the box is known completely if it is and nothing is open.
    """

    zeros: tuple[Zero, ...]
    unresolved: tuple[OpenBox, ...]
    components: tuple[Component, ...]
    excluded: tuple[sp.Basic, ...]
    finished: bool
    tests: int


def in_box(system: ODESystem | MapSystem, box: Box, budget: float = 60.0) -> InBox:
    """Every fixed point of a system in a closed box, f(x) = 0 (for a map, f(x) = x), with proof.

    Args:
        system: a flow or a map of analytic (or piecewise smooth) functions.
        box: (low, high) for each state, in the order of the states.
        budget: seconds; what is open when they are over is returned as unresolved.
    Raises:
        NoRangeError: a right-hand side holds a function whose range on a box is not known.
    """
    deadline = time.monotonic() + budget
    task = task_in(system, box)
    zeros: list[tuple[Equations, Zero]] = []
    unresolved, finished, tests = [], True, 0
    for equations in task.full:
        seen = explore(equations, _cut(equations, box), deadline)
        finished, tests = finished and seen.finished, tests + seen.boxes
        found, left = _settled(equations, seen, box, deadline)
        for zero in found:
            verdict = _verdict(equations, zero, box, task.fewer)
            if isinstance(verdict, str):
                left.append((_floats(zero), verdict))
            elif verdict:
                zeros.append((equations, replace(zero, multiplicity=_multiplicity(task, equations, zero))))
        unresolved += left
    distinct, left = _distinct(zeros)
    unresolved += left
    state = system.field.state if isinstance(system, ODESystem) else system.map.state
    written = dict(zip(task.whole.symbols, state, strict=True))
    return InBox(
        tuple(distinct),
        tuple(
            OpenBox({x.name: side for x, side in zip(state, box, strict=True)}, reason)
            for box, reason in unresolved
        ),
        tuple(
            Component(tuple(plain(f).xreplace(written) for f in e.functions), len(state) - len(e.functions))
            for e in task.fewer
        ),
        _named(task.singular, written),
        finished,
        tests,
    )


def _cut(equations: Equations, box: Box) -> list[Box]:
    """The box in parts that meet where the field is singular in one state, if that is at a float.

    On either side a pole or the edge of a logarithm then has values of one sign, up to infinity.
    """
    parts = [box]
    for condition in dict.fromkeys((*equations.conditions, *equations.obstacles)):
        inside = condition.expression.free_symbols
        if len(inside) != 1 or not _is_rational_polynomial(condition.expression, *inside):
            continue
        (x,) = inside
        side = equations.symbols.index(x)
        for root in real_roots(condition.expression, x):
            if root.lower == root.upper == sp.Rational(float(root.lower)):
                parts = [piece for part in parts for piece in _parted(part, side, float(root.lower))]
    return parts


def _is_rational_polynomial(expression: sp.Expr, x: sp.Symbol) -> bool:
    if not expression.is_polynomial(x):
        return False
    domain = sp.Poly(expression, x).domain
    return domain.is_ZZ or domain.is_QQ


def _parted(box: Box, side: int, cut: float) -> list[Box]:
    low, high = box[side]
    if not low < cut < high:
        return [box]
    return [(*box[:side], piece, *box[side + 1 :]) for piece in ((low, cut), (cut, high))]


def _settled(equations: Equations, seen, box: Box, deadline: float) -> tuple[list[Zero], list]:
    """Zeros, and open boxes with their reasons, after a second look at the small open ones."""
    zeros, left = list(seen.zeros), []
    for hull in _clusters(seen.open):
        small = all(b - a <= _SMALL * (d - c) for (a, b), (c, d) in zip(hull, box, strict=True))
        if not small:
            left.append((hull, _OPEN_AT_EVERY_SCALE if seen.finished else _STOPPED))
            continue
        found, still = settled(equations, _thickened(hull, box), deadline)
        zeros += [z for z in found if not any(z.same(other) for other in zeros)]
        left += still
    return zeros, left


def _thickened(hull: Box, box: Box) -> Box:
    """The hull with no side much shorter than the rest, so that all can be cut."""
    thick = []
    for (low, high), (a, b) in zip(hull, box, strict=True):
        more = max(0.0, _THINNEST * (b - a) - (high - low)) / 2
        thick.append((low - more, high + more))
    return tuple(thick)


def _verdict(equations: Equations, zero: Zero, box: Box, fewer: Sequence[Equations]) -> bool | str:
    """True: a fixed point of the field in the box. False: none. Else why that is undecided."""
    for (low, high), (a, b) in zip(zero.bounds, box, strict=True):
        if high < sp.Rational(a) or low > sp.Rational(b):
            return False
    defined = belongs(equations, zero)
    if defined is None:
        return "holds a zero of the numerators; whether the field is defined there is unresolved"
    if defined and any(other.may_hold(zero.bounds) for other in fewer):
        return "holds a fixed point; whether it is isolated or on a component is unresolved"
    return defined


def _multiplicity(task: Task, equations: Equations, zero: Zero) -> int | None:
    """That of a zero of one system of factors in the whole system, where it is known."""
    if equations.functions == task.whole.functions:
        return zero.multiplicity
    if task.whole.regular(zero.bounds):
        return 1
    if len(equations.symbols) == 1:
        # f = factor^e rest, and the rest does not vanish.
        (function,), (factor,) = task.whole.functions, equations.functions
        powers = dict(f.as_base_exp() for f in sp.Mul.make_args(sp.factor_terms(function)))
        exponent = powers.pop(factor, sp.S.Zero)
        rest = replace(task.whole, functions=(sp.Mul(*(base**e for base, e in powers.items())),))
        if zero.multiplicity and exponent.is_Integer and exponent > 0 and not rest.may_hold(zero.bounds):
            return zero.multiplicity * int(exponent)
    return None


def _distinct(zeros: Sequence[tuple[Equations, Zero]]) -> tuple[list[Zero], list[tuple[Box, str]]]:
    """Zeros of several systems of factors, each once; and boxes where it is open whether two are the same."""
    kept: list[tuple[Equations, Zero]] = []
    left = []
    for equations, zero in sorted(zeros, key=lambda pair: pair[1].bounds):
        met = next((pair for pair in kept if _meet(zero, pair[1])), None)
        if met is None:
            kept.append((equations, zero))
            continue
        both = replace(equations, functions=(*equations.functions, *met[0].functions))
        if exact_zero(both, zero.bounds) is None:
            kept.remove(met)
            left.append((_floats(zero), "holds one fixed point or several, closer than can be told apart"))
    return [zero for _, zero in kept], left


def _meet(first: Zero, second: Zero) -> bool:
    return all(a <= d and c <= b for (a, b), (c, d) in zip(first.bounds, second.bounds, strict=True))


def _clusters(boxes: Sequence[Box]) -> list[Box]:
    """Hulls of open boxes that touch, or almost."""
    if not boxes:
        return []
    low, high = _gridded(*np.moveaxis(np.array(boxes), 2, 0))
    slack = (high - low) / 2
    low, high = low - slack, high + slack
    waiting, hulls = np.ones(len(low), dtype=bool), []
    while waiting.any():
        group = [int(waiting.argmax())]
        waiting[group] = False
        for k in group:
            near = waiting & (low <= high[k]).all(axis=1) & (high >= low[k]).all(axis=1)
            group += np.flatnonzero(near).tolist()
            waiting &= ~near
        a, b = (low + slack)[group].min(axis=0), (high - slack)[group].max(axis=0)
        hulls.append(tuple(zip(a.tolist(), b.tolist(), strict=True)))
    return sorted(hulls)


def _gridded(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hulls of the boxes with middles in one cell of a grid, coarse enough that few are left."""
    cells = 2.0**20
    start, extent = low.min(axis=0), np.maximum(np.ptp(np.stack([low, high]), axis=(0, 1)), 1e-300)
    while len(low) > _MOST_CLUSTERED:
        keys = np.floor(((low + high) / 2 - start) / extent * cells).astype(int)
        _, which = np.unique(keys, axis=0, return_inverse=True)
        lows = np.full((which.max() + 1, low.shape[1]), np.inf)
        highs = -lows
        np.minimum.at(lows, which, low)
        np.maximum.at(highs, which, high)
        low, high, cells = lows, highs, cells / 2
    return low, high


def _floats(zero: Zero) -> Box:
    return tuple(
        (float(np.nextafter(float(low), -np.inf)), float(np.nextafter(float(high), np.inf)))
        for low, high in zero.bounds
    )


def _named(limits: Sequence[Condition], written) -> tuple[sp.Basic, ...]:
    """Poles and edges of the domain by name, each once, in the user's symbols."""
    edges = [c for c in limits if c.kind in (Kind.POSITIVE, Kind.NONNEGATIVE, Kind.SOFT)]
    strict = {c.expression for c in limits if c.kind is Kind.POSITIVE}
    kept = [c for c in edges if c.kind is Kind.POSITIVE or c.expression not in strict]
    inside = {c.expression for c in kept}
    kept += [c for c in limits if c.kind in (Kind.POLE, Kind.NONZERO) and c.expression not in inside]
    told = [replace(c, expression=plain(c.expression).xreplace(written)).failure for c in kept]
    return tuple(dict.fromkeys(told))
