"""Infinity of the normalized loss, face by face: where f leaves the interior of the simplex, does the flow follow?

The rows of A that win in a direction span a face of their hull. Far out in it f lives on these rows K, and moving
mass to another row j changes the loss by

    D_j = c_j - <f, c> = -b_j - <f, c>_K,        c = f - b,

so that f_j decays where D_j > 0. At a vertex k that is D_j = b_k - 1 - b_j: below zero for every b in the simplex
but e_k, so that saturated vertices repel, slowly. A larger face attracts at a minimum of its own problem if D_j > 0
for the rows next to it, and b in the simplex does not forbid that.

The rows of a matrix problem share X, so that a direction picks a face of the hull of each A_p, and D_pj is about its
own f_p. On x = y + s v the losers change the loss by sum_pj f_pj D_pj, f_pj ~ exp(-gap_pj s): the smallest gap of all
decides. Where k equal rows of A_p win, f_p is linear in the losers' masses e_j, and L_p changes by exactly

    sum_j D_j e_j + (1/2) [(sum_j e_j)^2/k + sum_j e_j^2]:

losers with D_j = 0, such as those of b_p = e_k, change it by something positive of the rate 2 gap_pj.

All faces are enumerated for one and two weights, exactly for rational rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import sympy as sp
from flint import arb, ctx

from fixedpoints.finding import find
from fixedpoints.points import FixedPoint
from fixedpoints.softmax_regression.faces import Face, Loser
from fixedpoints.softmax_regression.fans import directions
from fixedpoints.softmax_regression.problem import (
    Model,
    Reduced,
    as_ball,
    as_given,
    joint,
    losses,
    place_of,
    reduced,
    system_of,
)
from fixedpoints.softmax_regression.rays import along
from symbolic.softmax_regression.joint import Place

__all__ = ["Behaviour", "End", "Halt", "NoHullError", "all_ends", "ends", "halt_at"]

Behaviour = Literal["repels", "attracts", "mixed", "undecided"]

_BITS = 200


class NoHullError(ValueError):
    """The faces are enumerated for one and two weights (without flat directions) only."""


@dataclass(frozen=True, eq=False)
class Halt:
    """Where the problem of a face comes to rest, and whether the flow of the whole problem leaves for it.

    Args:
        f: the n probabilities, or m rows of n for a matrix; zero off the face.
        loss: the limit loss there.
        is_minimum: of the problem of the face alone; True at a vertex; None if degenerate.
        slopes: row (from 1), or entry (j, i) of P -> D_j, off the face.
        behaviour: "attracts" outwards or "repels"; "mixed" where it depends on the direction of approach.
    """

    f: tuple[float, ...] | tuple[tuple[float, ...], ...]
    loss: float
    is_minimum: bool | None
    slopes: dict[Place, float]
    behaviour: Behaviour


@dataclass(frozen=True, eq=False)
class End:
    """A face at infinity, and the halts of its problem.

    Args:
        rows: those of A that win, from 1; or the entries (j, i) of P that do not go to zero.
        direction: one in which they win, in the weights x.
        dimension: 0 for a vertex, where all rows that win are equal, 1 for an edge.
        halts: complete, with the certificate of `fixedpoints.find`, if `complete`.
    """

    rows: tuple[Place, ...]
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


def ends(model: Model) -> tuple[End, ...]:
    """Every face at infinity of a normalized problem, vertices first.

    Args:
        model: a vector or matrix problem with rational data, u = exp and no ridge.
    Raises:
        TypeError, ValueError: the model has no numbers, or its loss is the rescaled one: see `escape` for its rays.
        NoHullError: there are more than two weights without flat directions, or none.
    """
    problem = joint(model)
    if problem.normalization != "normalized":
        raise ValueError(
            "Only the normalized loss is decided face by face; use `escape` for rays of the rescaled one."
        )
    return all_ends(reduced(problem))


@lru_cache(maxsize=64)
def all_ends(core: Reduced) -> tuple[End, ...]:
    """The same for a sum of regressions without its flat directions."""
    if core.dim not in (1, 2):
        raise NoHullError(
            f"Faces at infinity are enumerated for one and two weights (without flat directions); this has {core.dim}."
        )
    found = []
    for v, dimension in directions(core.problem):
        face = Face(core.problem, v)
        halts, complete = _halts(face)
        found.append(End(face.places, tuple(core.lift(v, sp.S.Zero)), dimension, tuple(halts), complete))
    return tuple(found)


def _halts(face: Face) -> tuple[list[Halt], bool]:
    """The halts of a face, and whether they are all."""
    if face.is_vertex:
        return [halt_at(face)], True
    found = find(system_of(face.inside.problem))
    halts = [halt_at(face, point) for point in found.points]
    return halts, found.certificate.kind == "complete" and not found.components


def halt_at(face: Face, point: FixedPoint | None = None) -> Halt:
    """The halt at a fixed point of a face's own problem, or at a vertex, whose equal rows leave no weights."""
    problem = face.problem
    with ctx.workprec(_BITS):
        f, losing = face.probabilities(point)
        slopes = face.slopes(f)
        place = [] if point is None else place_of(point, face.inside.problem)
        unmet = (as_ball(problem.targets[p][j]) ** 2 / 2 for p, j in face.gaps)
        loss = sum([*losses(face.inside.problem, place), *unmet], arb(0))
        whole = [[0.0] * block.rows for block in problem.blocks]
        for p, rows in enumerate(face.rows):
            for i, value in zip(rows, f[p], strict=True):
                whole[p][i] = float(value)
        return Halt(
            as_given(problem, whole),
            float(loss),
            True if point is None else _minimum(point),
            {problem.places[p][j]: float(slope) for (p, j), slope in slopes.items()},
            _behaviour(face, point, slopes, losing),
        )


def _behaviour(
    face: Face, point: FixedPoint | None, slopes: dict[Loser, arb], losing: dict[Loser, arb]
) -> Behaviour:
    if _fits(face, point):
        return "attracts"
    if len(face.problem.weights) == 1:
        return "attracts" if along(face.problem, face.direction).attracts else "repels"
    decisive = {loser: slope for loser, slope in slopes.items() if not _quadratic(face, loser)}
    if not face.is_edge:
        kind = _agreed(decisive.values())
        return "undecided" if kind == "repels" and len(decisive) < len(slopes) else kind
    slowest = min((face.gaps[loser] for loser in decisive), default=sp.oo)
    quadratic = min((2 * gap for loser, gap in face.gaps.items() if loser not in decisive), default=sp.oo)
    first = sum((losing[x] * slope for x, slope in decisive.items() if face.gaps[x] == slowest), arb(0))
    if slowest < quadratic or (slowest == quadratic and not first > 0):
        kind = _agreed([first])
        return kind if slowest < quadratic else "undecided"
    # What leads is positive; the face's own weights answer it by order 4, if they rest at a nondegenerate point.
    return "attracts" if point is None or _minimum(point) is not None else "undecided"


def _fits(face: Face, point: FixedPoint | None) -> bool:
    """Whether f_p = b_p there for all p: the loss goes to 0."""
    if any(face.problem.targets[p][j] != 0 for p, j in face.gaps):
        return False
    try:
        best = face.inside.problem.interpolation()
    except ValueError:
        return False
    enclosure = {} if point is None else point.enclosure or {}
    return all(low <= best[x] <= high for x in best for low, high in [enclosure[x.name]])


def _quadratic(face: Face, loser: Loser) -> bool:
    """Whether D_j = -b_j - (1 - sum_K b_i)/k is exactly zero, k equal rows K of its A_p being the winners."""
    p, j = loser
    A, b, rows = face.problem.blocks[p], face.problem.targets[p], face.rows[p]
    equal = all(A.row(i) == A.row(rows[0]) for i in rows)
    return equal and b[j] * len(rows) == sum(b[i] for i in rows) - 1


def _agreed(slopes: Iterable[arb]) -> Behaviour:
    slopes = list(slopes)
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
