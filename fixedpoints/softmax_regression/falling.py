"""The rescaled loss far out, where the flow is proven to follow it down to its limit.

It is a sum of exponentials,  Lr = sum_e C_e exp(<e, x>)  with e = a_i + a_j of one A_p and C_e from the entries of
(1/2) (I - b 1^T)^T (I - b 1^T). In a direction v some <e, v> vanish: their part of the loss must rest at a minimum,
and it keeps the flow in the space W of directions in which it does not change. The others fall. There, with e
projected on W, some terms T lead: positive, and of no negative products <e, e'>, so that -grad Lr lowers them all. A
further term m does not disturb them if it is dominated, for some k of T, by

    <m - k, q> >= 0  for all q of T,   > 0 for q = k,

so that its ratio to k falls as the flow follows T. What T does not dominate must belong to it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import sympy as sp
from flint import arb, ctx

from fixedpoints.softmax_regression.nearby import fixed_point_near
from fixedpoints.softmax_regression.problem import as_ball, ball, projection
from odesys.system import ODESystem
from symbolic.field import VectorField
from symbolic.softmax_regression.joint import JointRegression

__all__ = ["exponentials", "limit_of_falling"]

_BITS = 200

#: A term smaller than this part of the largest need not belong to those that lead.
_SMALL = 0.01

Exponent = tuple[sp.Rational, ...]


def exponentials(problem: JointRegression) -> dict[Exponent, sp.Rational]:
    """e -> C_e of the rescaled loss, without what cancels."""
    total: dict[Exponent, sp.Rational] = defaultdict(lambda: sp.S.Zero)
    for A, target in zip(problem.blocks, problem.targets, strict=True):
        spread = sp.eye(A.rows) - sp.Matrix(target) * sp.ones(1, A.rows)
        form = spread.T * spread / 2
        for i in range(A.rows):
            for j in range(A.rows):
                total[tuple(A.row(i) + A.row(j))] += form[i, j]
    return {e: C for e, C in total.items() if C}


def limit_of_falling(problem: JointRegression, v: sp.MatrixBase, y: sp.MatrixBase) -> float | None:
    """The limit to which the rescaled loss is proven to fall from y, which lies far out in the direction v.

    None if that is not proven.
    """
    terms = exponentials(problem)
    heights = {e: _dot(e, v) for e in terms}
    falling = [e for e, height in heights.items() if height < 0]
    still = {e: terms[e] for e, height in heights.items() if height == 0}
    if not falling or len(falling) + len(still) < len(terms):
        return None
    with ctx.workprec(_BITS):
        rest = _minimum_near(problem, still, y)
        if rest is None:
            return None
        onto = projection(sp.Matrix([[0] * len(problem.weights), *still]))
        sizes: dict[Exponent, arb] = defaultdict(lambda: arb(0))
        for e in falling:
            sizes[tuple(onto * sp.Matrix(e))] += as_ball(terms[e]) * _rate(e, rest).exp()
        if not _lead_each_other_down(sizes, list(onto * y)):
            return None
        limit = sum((as_ball(C) * _rate(e, rest).exp() for e, C in still.items()), arb(0))
        return 0.0 if limit.contains(0) else float(limit)


def _minimum_near(
    problem: JointRegression, still: Mapping[Exponent, sp.Rational], y: sp.MatrixBase
) -> list[arb] | None:
    """The certified minimum near y of what does not change along v, its other weights zero; None if there is none."""
    x = [arb(0)] * len(problem.weights)
    changing = [e for e in still if any(e)]
    if not changing:
        return x
    R, kept = sp.Matrix(changing).rref()
    weights = tuple(problem.weights[k] for k in kept)
    loss = sp.Add(*(still[e] * sp.exp(_dot([e[k] for k in kept], weights)) for e in changing))
    system = ODESystem(VectorField(weights, tuple(-loss.diff(w) for w in weights)), {})
    point = fixed_point_near(system, R[: len(kept), :] * y)
    if point is None or point.dims is None or point.dims[:2] != (0, 0) or point.enclosure is None:
        return None
    for k, w in zip(kept, weights, strict=True):
        x[k] = ball(*point.enclosure[w.name])
    return x


def _lead_each_other_down(sizes: Mapping[Exponent, arb], y: Sequence[sp.Rational]) -> bool:
    """Whether the terms that are large at y, and what they do not dominate, are positive and lower each other."""
    logs = {e: float(_dot(e, y)) + _log(size) for e, size in sizes.items()}
    leading = [e for e in sizes if logs[e] > max(logs.values()) + math.log(_SMALL)]
    while all(sizes[e] > 0 for e in leading) and all(_dot(e, q) >= 0 for e in leading for q in leading):
        free = [m for m in sizes if m not in leading and not _dominated(m, leading)]
        if not free:
            return True
        leading.append(max(free, key=logs.__getitem__))
    return False


def _dominated(m: Exponent, leading: Sequence[Exponent]) -> bool:
    def above(k: Exponent) -> bool:
        gap = [p - q for p, q in zip(m, k, strict=True)]
        return _dot(gap, k) > 0 and all(_dot(gap, q) >= 0 for q in leading)

    return any(map(above, leading))


def _dot(p: Sequence, q: Sequence) -> sp.Expr:
    return sp.Add(*(a * b for a, b in zip(p, q, strict=True)))


def _rate(e: Exponent, x: Sequence[arb]) -> arb:
    return sum((as_ball(a) * value for a, value in zip(e, x, strict=True)), arb(0))


def _log(size: arb) -> float:
    """The logarithm of the largest absolute value."""
    return float(abs(size).upper().log()) if size != 0 else -math.inf
