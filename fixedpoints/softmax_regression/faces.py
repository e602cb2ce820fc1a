"""A face at infinity: the rows of each A_p that win in a direction, and the problem that is left on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp
from flint import arb

from fixedpoints.points import FixedPoint
from fixedpoints.softmax_regression.problem import (
    Reduced,
    Rows,
    as_ball,
    logits,
    named,
    noun,
    place_of,
    probabilities,
    reduced,
    winners,
)
from symbolic.softmax_regression.joint import JointRegression, Place

__all__ = ["Face", "Loser"]

#: Row j, from 0, of A_p that does not win: (p, j).
Loser = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Face:
    """Where f_p lives far out in a direction v, on x = y + s v for s -> oo.

    Args:
        problem: without flat directions.
        direction: v, a column of rational numbers.
    """

    problem: JointRegression
    direction: sp.MatrixBase

    @cached_property
    def rows(self) -> Rows:
        """The rows of each A_p that win, from 0."""
        return winners(self.problem, self.direction)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The same, as the model calls them."""
        return named(self.problem, self.rows)

    @cached_property
    def gaps(self) -> dict[Loser, sp.Rational]:
        """(a_k - a_j) v > 0 for every row j that loses against the winners k of its A_p."""
        found = {}
        for p, (block, rows) in enumerate(zip(self.problem.blocks, self.rows, strict=True)):
            heights = list(block * self.direction)
            found |= {(p, j): heights[rows[0]] - heights[j] for j in range(block.rows) if j not in rows}
        return found

    @cached_property
    def inside(self) -> Reduced:
        """The normalized problem of the winners alone: what is left where the f_j of the losers have gone to zero.

        Their targets add the constant (1/2) sum_j b_j^2 to its loss.
        """
        problem = self.problem
        return reduced(
            replace(
                problem,
                blocks=tuple(
                    A.extract(rows, range(A.cols)) for A, rows in zip(problem.blocks, self.rows, strict=True)
                ),
                targets=_chosen(problem.targets, self.rows),
                places=_chosen(problem.places, self.rows),
            )
        )

    @property
    def is_vertex(self) -> bool:
        """Whether the winners of each A_p are equal, so that the normalized problem has no weights left."""
        return all(
            block.row(i) == block.row(rows[0])
            for block, rows in zip(self.problem.blocks, self.rows, strict=True)
            for i in rows
        )

    @property
    def is_edge(self) -> bool:
        """Whether the winners win in one direction only: all but one of the weights are left."""
        return len(self.problem.weights) - self.inside.dim == 1

    def probabilities(self, point: FixedPoint | None) -> tuple[list[list[arb]], dict[Loser, arb]]:
        """f_p of the winners at a fixed point of their own problem (None at a vertex), and f_j of the losers.

        The latter are to be multiplied by exp(-gap s); that is exact to leading order if the face is an edge.
        """
        inside = self.inside
        place = [] if point is None else place_of(point, inside.problem)
        at = inside.lift(place, arb(0))
        rows = [logits(block, at) for block in self.problem.blocks]
        losing = {
            (p, j): 1 / sum(((rows[p][k] - rows[p][j]).exp() for k in self.rows[p]), arb(0))
            for p, j in self.gaps
        }
        return probabilities(inside.problem, place), losing

    def slopes(self, f: Sequence[Sequence[arb]]) -> dict[Loser, arb]:
        """D_j = -b_j - <f, c> of each loser, with the f_p of the winners: it decays where that is positive."""
        mean = [
            sum((q * (q - as_ball(target[i])) for i, q in zip(rows, part, strict=True)), arb(0))
            for rows, part, target in zip(self.rows, f, self.problem.targets, strict=True)
        ]
        return {(p, j): -as_ball(self.problem.targets[p][j]) - mean[p] for p, j in self.gaps}

    def __str__(self) -> str:
        kind = "vertex" if self.is_vertex else "face"
        return f"the {kind} of {noun(self.places)} {', '.join(map(str, self.places))}"


def _chosen(parts: Sequence[tuple], rows: Rows) -> tuple[tuple, ...]:
    return tuple(tuple(part[i] for i in chosen) for part, chosen in zip(parts, rows, strict=True))
