"""Linear equations with rational coefficients, by elimination in FLINT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

from symbolic.varieties.polynomials import normal, transported

__all__ = ["LinearSolution", "solve_linear"]


@dataclass(frozen=True)
class LinearSolution:
    """A flat set: independent equations, and the only point if it is one (place -> number)."""

    equations: tuple[Any, ...]
    point: dict[int, Fraction] | None


def solve_linear(members: Sequence[Any], places: Sequence[int]) -> LinearSolution | None:
    """The solutions of polynomials of degree 1 in some unknowns; None if there are none."""
    from flint import fmpq_mat

    context = members[0].context()
    monomials = [tuple(int(k == i) for k in range(context.nvars())) for i in places]
    monomials.append((0,) * context.nvars())
    rows = [[terms.get(m, 0) for m in monomials] for terms in map(transported, members)]
    reduced, rank = fmpq_mat(rows).rref()
    kept = [[reduced[i, j] for j in range(len(monomials))] for i in range(rank)]
    if any(all(c == 0 for c in row[:-1]) for row in kept):
        return None
    equations = tuple(_polynomial(context, dict(zip(monomials, row, strict=True))) for row in kept)
    if rank < len(places):
        return LinearSolution(equations, None)
    point = {i: Fraction(-int(row[-1].p), int(row[-1].q)) for i, row in zip(places, kept, strict=True)}
    return LinearSolution(equations, point)


def _polynomial(context: Any, coefficients: dict[tuple[int, ...], Any]) -> Any:
    common = lcm(*(int(c.q) for c in coefficients.values()))
    return normal(context.from_dict({m: int(c * common) for m, c in coefficients.items() if c != 0}))
