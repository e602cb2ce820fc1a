"""A cycle of f as a fixed point of p copies of f in a ring:  (x_0, ..., x_{p-1}) -> (f(x_{p-1}), f(x_0), ...).

Its formulas are those of f, whatever p is. Points, bounds and slopes of a cycle are those of this fixed point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp
from flint import ctx, fmpq

from fixedpoints.near.balls import BITS, Matrix, as_ball, as_float, identity, matmul
from fixedpoints.near.local import Local, Located, located
from odesys.system import MapSystem
from symbolic.field import IteratedMap

__all__ = ["Ring", "composed", "ring"]


@dataclass(frozen=True, eq=False)
class Ring:
    """A cycle in balls of some 70 digits: `place` is the fixed point of the p copies."""

    system: MapSystem
    period: int
    place: Located

    @property
    def points(self) -> list[dict[str, float]]:
        """The points of the cycle as floats, in the order of visit."""
        return [dict(zip(self.system.map.names, map(as_float, at), strict=True)) for at in self.balls]

    @property
    def balls(self) -> list[Sequence]:
        """The points as rationals or balls."""
        n, at = len(self.system.map.state), self.place.nominal.at
        return [at[k * n : (k + 1) * n] for k in range(self.period)]

    def slopes(self, local: Local) -> Matrix:
        """Df(x_{p-1}) ... Df(x_0) - 1 from the slopes of the copies, shape (n, n)."""
        n, p = len(self.system.map.state), self.period
        _, ring_slopes = local.slopes()
        product = identity(n)
        for k in range(p):
            # Copy k + 1 moves to f of copy k; `Local` has subtracted the identity.
            row, column = (k + 1) % p * n, k * n
            block = [list(ring_slopes[row + i][column : column + n]) for i in range(n)]
            if p == 1:
                block = [[x + fmpq(int(i == j)) for j, x in enumerate(r)] for i, r in enumerate(block)]
            product = matmul(block, product)
        return [[x - fmpq(int(i == j)) for j, x in enumerate(row)] for i, row in enumerate(product)]

    def shortest(self) -> int:
        """The minimal period: the smallest divisor d of p with x_d = x_0, to all digits."""
        balls = self.balls
        return next(d for d in sp.divisors(self.period) if same(balls[0], balls[d % self.period]))

    def holds(self, at: Sequence) -> bool:
        """Whether a point, as balls, is one of the cycle's."""
        return any(same(point, at) for point in self.balls)


def ring(system: MapSystem, points: Sequence[Sequence[float]]) -> Ring:
    """The cycle near p points given in the order of visit.

    Raises:
        NotAFixedPointError: Newton's method with some 70 digits does not end there.
    """
    rule, period = system.map, len(points)
    copied = MapSystem(copies(rule, period), dict(system.parameters))
    flat = [float(x) for point in points for x in point]
    return Ring(system, period, located(copied, dict(zip(copied.map.names, flat, strict=True))))


def copies(rule: IteratedMap, period: int) -> IteratedMap:
    """The ring of p copies; the state x at step k is called x[k]."""
    steps = [{x: sp.Symbol(f"{x.name}[{k}]", **x.assumptions0) for x in rule.state} for k in range(period)]
    state = [symbol for step in steps for symbol in step.values()]
    rhs = [f.xreplace(steps[k - 1]) for k in range(period) for f in rule.rhs]
    return IteratedMap(tuple(state), tuple(rhs), rule.parameters)


def composed(rule: IteratedMap, period: int) -> IteratedMap:
    """f^p as one formula; for one state and few steps."""
    image: Mapping[sp.Symbol, sp.Expr] = {x: x for x in rule.state}
    for _ in range(period):
        image = {x: f.xreplace(image) for x, f in zip(rule.state, rule.rhs, strict=True)}
    return IteratedMap(rule.state, tuple(image.values()), rule.parameters)


def same(a: Sequence, b: Sequence) -> bool:
    """Whether two points, as balls, may be one: balls of different points of a cycle are disjoint."""
    with ctx.workprec(BITS):
        return all(as_ball(x).overlaps(as_ball(y)) for x, y in zip(a, b, strict=True))
