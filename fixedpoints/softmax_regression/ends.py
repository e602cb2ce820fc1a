"""Infinity of the normalized loss, face by face: where f leaves the interior of the simplex, does the flow follow?

The rows of A that win in a direction span a face of their hull. Far out in it f lives on these rows K, and moving
mass to another row j changes the loss by

    D_j = c_j - <f, c> = -b_j - <f, c>_K,        c = f - b,

so that f_j decays where D_j > 0. At a vertex k that is D_j = b_k - 1 - b_j: below zero for every b in the simplex
but e_k, so that saturated vertices repel, slowly. A larger face attracts at a minimum of its own problem if D_j > 0
for the rows next to it, and b in the simplex does not forbid that.

Hulls are of one or two dimensions, exact for rational rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import sympy as sp
from flint import arb, ctx

from fixedpoints.finding import find
from fixedpoints.points import FixedPoint
from fixedpoints.softmax_regression.problem import (
    Reduced,
    as_ball,
    check,
    logits,
    on_face,
    place_of,
    probabilities,
    reduced,
    system_of,
)
from symbolic.softmax_regression.vector import SoftmaxRegression

__all__ = ["Behaviour", "End", "Halt", "NoHullError", "ends", "inside_hull", "outside_slopes"]

Behaviour = Literal["repels", "attracts", "mixed", "undecided"]

_BITS = 200


class NoHullError(ValueError):
    """The faces are enumerated for one and two weights (without flat directions) only."""


@dataclass(frozen=True, eq=False)
class Halt:
    """Where the problem of a face comes to rest, and whether the flow of the whole problem leaves for it.

    Args:
        f: the n probabilities; zero off the face.
        loss: the limit loss there.
        is_minimum: of the problem of the face alone; True at a vertex; None if degenerate.
        slopes: row (from 1) -> D_j, off the face.
        behaviour: "attracts" outwards or "repels"; "mixed" where it depends on the direction of approach.
    """

    f: tuple[float, ...]
    loss: float
    is_minimum: bool | None
    slopes: dict[int, float]
    behaviour: Behaviour


@dataclass(frozen=True, eq=False)
class End:
    """A face of the hull of the rows of A, and the halts of its problem.

    Args:
        rows: those of the face, from 1. direction: one in which they win, in the weights x.
        dimension: of the face, 0 for a vertex of the hull.
        halts: complete, with the certificate of `fixedpoints.find`, if `complete`.
    """

    rows: tuple[int, ...]
    direction: tuple[sp.Rational, ...]
    dimension: int
    halts: tuple[Halt, ...]
    complete: bool

    @property
    def behaviour(self) -> Behaviour:
        """What all halts do, or "mixed"."""
        kinds = {halt.behaviour for halt in self.halts}
        if not self.complete or "undecided" in kinds:
            return "undecided"
        return kinds.pop() if len(kinds) == 1 else "mixed"


def ends(model: SoftmaxRegression) -> tuple[End, ...]:
    """Every face at infinity of a normalized problem, vertices first.

    Args:
        model: a vector problem with rational A and b, u = exp and no ridge.
    Raises:
        TypeError, ValueError: the model has no numbers, or its loss is the rescaled one: see `escape` for its rays.
        NoHullError: there are more than two weights without flat directions, or none.
    """
    check(model)
    if model.normalization != "normalized":
        raise ValueError(
            "Only the normalized loss is decided face by face; use `escape` for rays of the rescaled one."
        )
    return _ends(model)


@lru_cache(maxsize=64)
def _ends(model: SoftmaxRegression) -> tuple[End, ...]:
    core = reduced(model)
    if core.dim not in (1, 2):
        raise NoHullError(
            f"Faces at infinity are enumerated for one and two weights (without flat directions); this has {core.dim}."
        )
    rows = [tuple(map(_fraction, core.model.A.row(i))) for i in range(core.model.A.rows)]
    faces = _line(rows) if core.dim == 1 else _plane(rows)
    return tuple(_end(core, rows, direction, dimension) for rows, direction, dimension in faces)


def inside_hull(model: SoftmaxRegression) -> bool:
    """Whether 0 lies inside the hull of the rows of a planar model: in every direction some a_i v > 0."""
    corners = _hull(sorted({tuple(_fraction(a) for a in model.A.row(i)) for i in range(model.A.rows)}))
    origin = (Fraction(0), Fraction(0))
    return len(corners) > 2 and all(
        _turn(a, b, origin) > 0 for a, b in zip(corners, corners[1:] + corners[:1], strict=True)
    )


def outside_slopes(model: SoftmaxRegression, face: Sequence[int], f: Sequence[arb]) -> dict[int, arb]:
    """D_j for the rows j (from 0) off a face whose rows have the probabilities f."""
    mean = sum((p * (p - as_ball(model.b[i])) for i, p in zip(face, f, strict=True)), arb(0))
    return {j: -as_ball(model.b[j]) - mean for j in range(model.A.rows) if j not in face}


def halts_of(
    model: SoftmaxRegression, face: Sequence[int], direction: sp.MatrixBase
) -> tuple[list[Halt], bool]:
    """The halts of a face (rows from 0) of a reduced model, and whether they are all."""
    if all(model.A.row(i) == model.A.row(face[0]) for i in face):
        return [halt_at(model, face, direction)], True
    inside = reduced(on_face(model, face))
    found = find(system_of(inside.model))
    halts = [halt_at(model, face, direction, (inside, point)) for point in found.points]
    return halts, found.certificate.kind == "complete" and not found.components


def halt_at(
    model: SoftmaxRegression,
    face: Sequence[int],
    direction: sp.MatrixBase,
    at: tuple[Reduced, FixedPoint] | None = None,
) -> Halt:
    """The halt at a fixed point of a face's own problem, or at a vertex, whose equal rows leave no weights."""
    with ctx.workprec(_BITS):
        if at is None:
            f = [as_ball(sp.Rational(1, len(face)))] * len(face)
        else:
            inside, point = at
            place = place_of(point, inside.model)
            f = probabilities(inside.model.A, place)
        slopes = outside_slopes(model, face, f)
        c = [p - as_ball(model.b[i]) for i, p in zip(face, f, strict=True)]
        loss = (sum((x * x for x in c), arb(0)) + sum((as_ball(model.b[j]) ** 2 for j in slopes), arb(0))) / 2
        if _fits(model, face, at):
            behaviour: Behaviour = "attracts"
        elif at is None:
            behaviour = _agreed(list(slopes.values()))
        else:
            behaviour = _agreed([_radial(model, face, direction, inside, place, slopes)])
        probability = dict(zip(face, map(float, f), strict=True))
        return Halt(
            tuple(probability.get(i, 0.0) for i in range(model.A.rows)),
            float(loss),
            True if at is None else _minimum(point),
            {j + 1: float(slope) for j, slope in slopes.items()},
            behaviour,
        )


def _end(core: Reduced, rows: tuple[int, ...], direction: tuple[Fraction, ...], dimension: int) -> End:
    v = sp.Matrix([sp.Rational(x.numerator, x.denominator) for x in direction])
    halts, complete = halts_of(core.model, rows, v)
    return End(tuple(i + 1 for i in rows), tuple(core.lift(v)), dimension, tuple(halts), complete)


def _fits(model: SoftmaxRegression, face: Sequence[int], at: tuple[Reduced, FixedPoint] | None) -> bool:
    """Whether f = b there: the loss goes to 0."""
    if any(model.b[j] != 0 for j in range(model.A.rows) if j not in face):
        return False
    if at is None:
        return all(model.b[i] == sp.Rational(1, len(face)) for i in face)
    inside, point = at
    try:
        best = inside.model.interpolation()
    except ValueError:
        return False
    enclosure = point.enclosure or {}
    return all(low <= best[x] <= high for x in inside.model.x for low, high in [enclosure[x.name]])


def _radial(model, face, direction, inside, place, slopes: dict[int, arb]) -> arb:
    """sum_j f_j D_j (a_k - a_j) v over the rows next to a face: how fast the flow moves along v, up to a factor."""
    gaps = {j: ((model.A.row(face[0]) - model.A.row(j)) * direction)[0] for j in slopes}
    next_ones = [j for j, gap in gaps.items() if gap == min(gaps.values())]
    lifted = [arb(0)] * model.A.cols
    for k, value in zip(inside.kept, place, strict=True):
        lifted[k] = value
    rows = dict(
        zip(next_ones, logits(model.A.extract(next_ones, list(range(model.A.cols))), lifted), strict=True)
    )
    # One common factor exp(-row) is left out; only the sign matters.
    first = rows[next_ones[0]]
    return sum(((rows[j] - first).exp() * slopes[j] for j in next_ones), arb(0))


def _agreed(slopes: Sequence[arb]) -> Behaviour:
    if all(slope > 0 for slope in slopes):
        return "attracts"
    if all(slope < 0 for slope in slopes):
        return "repels"
    signs = {slope > 0 for slope in slopes if slope > 0 or slope < 0}
    return "mixed" if len(signs) == 2 else "undecided"


def _minimum(point: FixedPoint) -> bool | None:
    if point.dims is None or point.dims[1]:
        return None
    return point.dims[0] == 0


def _fraction(value: sp.Rational) -> Fraction:
    return Fraction(int(value.p), int(value.q))


#: (rows from 0, an outward direction, dimension) of a face.
Face = tuple[tuple[int, ...], tuple[Fraction, ...], int]


def _line(rows: list[tuple[Fraction, ...]]) -> list[Face]:
    """The two ends of a line."""
    return [
        (tuple(i for i, row in enumerate(rows) if row == end), (sign,), 0)
        for end, sign in ((min(rows), Fraction(-1)), (max(rows), Fraction(1)))
    ]


def _plane(rows: list[tuple[Fraction, ...]]) -> list[Face]:
    """Every corner and edge of the hull, corners first."""
    corners = _hull(sorted(set(rows)))
    edges = []
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
        outward = (by - ay, ax - bx)  # the hull runs counter-clockwise
        top = outward[0] * ax + outward[1] * ay
        tied = tuple(i for i, (x, y) in enumerate(rows) if outward[0] * x + outward[1] * y == top)
        edges.append((tied, outward, 1))
    vertices = []
    for corner, (_, before, _), (_, after, _) in zip(corners, [edges[-1], *edges[:-1]], edges, strict=True):
        between = (before[0] + after[0], before[1] + after[1])
        vertices.append((tuple(i for i, row in enumerate(rows) if row == corner), between, 0))
    return vertices + edges


def _hull(points: list[tuple[Fraction, ...]]) -> list[tuple[Fraction, ...]]:
    """The corners of the hull of sorted points of the plane, counter-clockwise (Andrew's monotone chain)."""

    def chain(ordered):
        kept: list[tuple[Fraction, ...]] = []
        for x, y in ordered:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], (x, y)) <= 0:
                kept.pop()
            kept.append((x, y))
        return kept[:-1]

    return chain(points) + chain(points[::-1])


def _turn(o, a, b) -> Fraction:
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])
