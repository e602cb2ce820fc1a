"""What is found of a map: cycles with their multipliers, how sure we are of them, and where they flip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from fixedpoints.points import Certificate, Component, OpenBox

__all__ = ["Cycle", "Cycles", "Flip", "NoFlipError"]


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


class NoFlipError(ValueError):
    """No multiplier of a fixed point or a cycle reaches -1 for a value of the parameter in reach."""


@dataclass(frozen=True, eq=False)
class Flip:
    """The value of a parameter at which a fixed point or a cycle has the multiplier -1, and what is born there.

    Args:
        parameter: its name.
        value, error: the critical value, and a bound on its error.
        exact: the same as a rational number, where point and value are rational; else None.
        period: of the cycle; 1 for a fixed point.
        point: the fixed point there, or the first point of the cycle, state name -> coordinate.
        direction: the eigenvector q of the multiplier -1 at that point, of length 1, in the states that no
            conserved functional eliminates.
        coefficient, coefficient_error: c of the normal form  s -> -s + c s^3  of one round, with s the length
            along q (Kuznetsov 2004, section 5.4), and a bound on its error.
        kind: "supercritical" (c > 0), "subcritical" (c < 0) or "degenerate" (c may vanish).
        speed: d mu / d parameter of the multiplier mu = -1; the flip is real where it is not 0.
        others: the other multipliers, by falling modulus.
        evidence: the sentence that says it all.
    """

    parameter: str
    value: float
    error: float
    exact: sp.Rational | None
    period: int
    point: Mapping[str, float]
    direction: tuple[float, ...]
    coefficient: float
    coefficient_error: float
    kind: str
    speed: float
    others: tuple[complex, ...]
    evidence: str
