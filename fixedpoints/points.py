"""What is found: a fixed point with what it does."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HALF_STABLE", "STABLE", "UNSTABLE", "FixedPoint"]

#: The stability of a fixed point on a line, decided by the exact signs of the field on its two sides.
STABLE = "stable"
UNSTABLE = "unstable"
HALF_STABLE = "half-stable"


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A point where the right-hand side vanishes.

    Args:
        location: state name -> value, the float next to the certified root.
        stability: "stable", "unstable", or "half-stable" (attracts on one side only).
        eigenvalue: df/dx there, in 1/time; zero where the linearisation does not decide.
        multiplicity: the exact order of the zero of f.
        attracts: whether states below it, and states above it, move towards it.
    """

    location: dict[str, float]
    stability: str
    eigenvalue: float
    multiplicity: int
    attracts: tuple[bool, bool]
