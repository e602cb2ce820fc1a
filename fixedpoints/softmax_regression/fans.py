"""All directions to infinity of one or two weights, sorted by which rows of each A_p win in them.

The rows that win in a direction span a face of the hull of the rows of A_p. In the plane these faces change at the
outward normals of the hulls' edges: on a normal some A_p has an edge of winners, between two neighbouring normals
every A_p has one corner. (These are the edges and corners of the Minkowski sum of the hulls.)
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cmp_to_key
from math import gcd, lcm

import sympy as sp

from fixedpoints.softmax_regression.problem import winners
from symbolic.softmax_regression.joint import JointRegression

__all__ = ["directions", "grows_everywhere"]

#: A point or a vector of the plane; integers without a common factor for a direction.
Vector = tuple[Fraction, Fraction]


def directions(problem: JointRegression) -> list[tuple[sp.Matrix, int]]:
    """A direction into every face at infinity and the dimension of the face, 0 for a vertex; vertices first.

    Args:
        problem: of one or two weights, without flat directions.
    """
    if len(problem.weights) == 1:
        return [(sp.Matrix([-1]), 0), (sp.Matrix([1]), 0)]
    normals = [normal for hull in map(_hull, _rows(problem)) for normal in _normals(hull)]
    edges = _around(normals)
    return [(v, 0) for v in _between(edges)] + [(_column(v), 1) for v in edges]


def grows_everywhere(problem: JointRegression) -> bool:
    """Whether the rescaled loss of two weights is proven to go to oo in all directions, uniformly.

    That is so if in each direction v some A_p has max_i a_i v > 0, so that alpha_p -> oo, while f_p does not tend to
    b_p: where b_p does not sum to 1, or b_j is not zero for a row j that loses and has f_j -> 0.
    """
    hulls = [_hull(rows) for rows in _rows(problem)]
    turns = [normal for hull in hulls for normal in _normals(hull)]
    turns += [v for hull in hulls for x, y in hull if (x, y) != (0, 0) for v in ((-y, x), (y, -x))]
    edges = _around(turns)
    return all(_grows_along(problem, v) for v in [*map(_column, edges), *_between(edges)])


def _grows_along(problem: JointRegression, v: sp.Matrix) -> bool:
    parts = zip(problem.blocks, problem.targets, winners(problem, v), strict=True)
    return any(
        (A.row(rows[0]) * v)[0] > 0
        and (sum(b) != 1 or any(b[j] != 0 for j in range(len(b)) if j not in rows))
        for A, b, rows in parts
    )


def _rows(problem: JointRegression) -> list[set[Vector]]:
    return [
        {tuple(Fraction(int(a.p), int(a.q)) for a in block.row(i)) for i in range(block.rows)}
        for block in problem.blocks
    ]


def _hull(points: Iterable[Vector]) -> list[Vector]:
    """The corners of the hull, counter-clockwise (Andrew's monotone chain); two for points on a line."""
    ordered = sorted(points)
    if len(ordered) == 1:
        return ordered

    def chain(points):
        kept: list[Vector] = []
        for point in points:
            while len(kept) > 1 and _turn(_less(kept[-1], kept[-2]), _less(point, kept[-2])) <= 0:
                kept.pop()
            kept.append(point)
        return kept[:-1]

    return chain(ordered) + chain(ordered[::-1])


def _normals(hull: list[Vector]) -> list[Vector]:
    """The outward normal of each edge; both of a segment, none of a point."""
    edges = [_less(b, a) for a, b in zip(hull, hull[1:] + hull[:1], strict=True)]
    return [(y, -x) for x, y in edges if (x, y) != (0, 0)]


def _around(vectors: Iterable[Vector]) -> list[Vector]:
    """Each direction once, by angle from just above -pi to pi."""

    def order(a: Vector, b: Vector) -> int:
        turn = _turn(b, a)
        return _quarter(a) - _quarter(b) or (turn > 0) - (turn < 0)

    return sorted({_primitive(v) for v in vectors}, key=cmp_to_key(order))


def _quarter(v: Vector) -> int:
    """Lower half-plane, right axis, upper half-plane, left axis: by angle."""
    x, y = v
    return (0 if y < 0 else 2) if y else (1 if x > 0 else 3)


def _primitive(v: Vector) -> Vector:
    """The vector of integers without a common factor in the same direction."""
    scale = lcm(*(x.denominator for x in v))
    x, y = (int(x * scale) for x in v)
    return Fraction(x, gcd(x, y)), Fraction(y, gcd(x, y))


def _between(edges: list[Vector]) -> list[sp.Matrix]:
    """A direction before each of these; neighbours are less than pi apart, since the hulls together have an inside."""
    return [_column((a[0] + b[0], a[1] + b[1])) for a, b in zip([edges[-1], *edges[:-1]], edges, strict=True)]


def _less(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1]


def _turn(a: Vector, b: Vector) -> Fraction:
    """Positive if b is to the left of a."""
    return a[0] * b[1] - a[1] * b[0]


def _column(v: Vector) -> sp.Matrix:
    return sp.Matrix([sp.Rational(x.numerator, x.denominator) for x in v])
