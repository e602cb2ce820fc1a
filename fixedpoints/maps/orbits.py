"""What is found of a map's cycles: their points in the order of visit, multipliers, and how sure we are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from fixedpoints.points import Certificate, Component, OpenBox

__all__ = ["Cycle", "Cycles"]


@dataclass(frozen=True, eq=False)
class Cycle:
    """A cycle  x_0 -> x_1 -> ... -> x_{p-1} -> x_0  of p different points, and what the map does near it.

    Args:
        points: state name -> coordinate, in the order of visit; the lexicographically smallest comes first.
        multipliers: eigenvalues of Df(x_{p-1}) ... Df(x_0), by falling modulus; none where f
            is not differentiable.
        multiplier_errors: bounds on their errors.
        dims: dimensions of the unstable, centre and stable subspaces.
        stability: in words: stable, unstable (one state); sink, saddle, source; see `evidence` for others.
        evidence: the sentence that says what decided it.
        residual: largest |f_i(x_k) - x_{k+1, i}|, as computed at the floats of `points`.
    """

    points: tuple[Mapping[str, float], ...]
    multipliers: tuple[complex, ...]
    multiplier_errors: tuple[float, ...]
    dims: tuple[int, int, int]
    stability: str
    evidence: str
    residual: float

    @property
    def period(self) -> int:
        """p, the number of points."""
        return len(self.points)


@dataclass(frozen=True, eq=False)
class Cycles:
    """The answer of `cycles`: those of minimal period p, and everything that an honest answer must add.

    Args:
        period: p.
        cycles: of minimal period p, by their first points.
        shorter: cycles whose period is a proper divisor of p, where f^p fixes nothing else next to their points.
        certificate: how sure we are that no cycle is missing; it counts those of minimal period p.
        components: sets of points of period p of positive dimension; x[k] is the state x at step k.
        excluded: where f^p has poles or is undefined, as far as it was met.
        unresolved: boxes that may hold a further point of period p, each with a `reason`.
        rejected: places that a search took for a point of period p and that could not be confirmed, with the reason.
    """

    period: int
    cycles: tuple[Cycle, ...]
    shorter: tuple[Cycle, ...]
    certificate: Certificate
    components: tuple[Component, ...] = ()
    excluded: tuple[sp.Basic, ...] = ()
    unresolved: tuple[OpenBox, ...] = ()
    rejected: tuple[tuple[Mapping[str, float], str], ...] = ()

    @property
    def points(self) -> tuple[Mapping[str, float], ...]:
        """The points of all cycles of minimal period p, cycle by cycle."""
        return tuple(point for cycle in self.cycles for point in cycle.points)
