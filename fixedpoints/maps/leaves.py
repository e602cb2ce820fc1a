"""Flat directions removed: a map that conserves linear functionals k . x, on the leaf of one point.

Gradient descent on a loss that is constant along v keeps v . x whatever the step, so that a multiplier is 1
everywhere and cycles come in families. On a leaf  k . x = const  nothing of that is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from fixedpoints.maps.arguments import autonomous
from fixedpoints.near.continuum import identities
from odesys.system import MapSystem, numbers_for
from symbolic.errors import NotConservedError
from symbolic.field import IteratedMap
from symbolic.zero import exact, is_zero, residual

__all__ = ["Leaf", "conserved_functionals", "leaf", "on_leaf"]


@dataclass(frozen=True, eq=False)
class Leaf:
    """A map on a leaf: `system` in the states that are kept, and the others as expressions of these."""

    system: MapSystem
    others: Mapping[sp.Symbol, sp.Expr]


def on_leaf(
    system: MapSystem,
    point: Mapping[str | sp.Symbol, float],
    functionals: Sequence[sp.Expr] | None = None,
) -> MapSystem:
    """The map on the leaf  k . x = k . x0  of its conserved linear functionals, one state fewer for each.

    Args:
        system: a map with its numbers.
        point: x0, a number for each state.
        functionals: k . x, proven to be conserved; by default all that are found.
    Raises:
        symbolic.NotConservedError: a functional is not conserved, with what one step changes.
        ValueError: a functional is not linear in the states; or a state of the point is missing or unknown.
    """
    return leaf(system, point, functionals).system


def leaf(
    system: MapSystem,
    point: Mapping[str | sp.Symbol, float],
    functionals: Sequence[sp.Expr] | None = None,
) -> Leaf:
    """As `on_leaf`, with the states that were eliminated."""
    system = autonomous(system, "Leaves are")
    rule = system.map
    given = [_row(rule, sp.sympify(k)) for k in functionals or ()]
    rows = conserved_functionals(system) if functionals is None else [_proven(system, row) for row in given]
    if not rows:
        return Leaf(system, {})
    start = dict(zip(rule.state, map(sp.Rational, numbers_for(rule.state, point, "state")), strict=True))
    reduced, pivots = sp.Matrix(rows).rref()
    others = {}
    for i, pivot in enumerate(pivots):
        rest = sum(
            (reduced[i, j] * (start[x] - x) for j, x in enumerate(rule.state) if j != pivot), sp.S.Zero
        )
        others[rule.state[pivot]] = sp.expand(start[rule.state[pivot]] + rest)
    kept = [i for i in range(len(rule.state)) if i not in pivots]
    if not kept:
        raise ValueError(
            f"Every state of this map is conserved; got the functionals {[list(r) for r in rows]}. "
            "No state is left to move on a leaf."
        )
    rhs = tuple(rule.rhs[i].xreplace(others) for i in kept)
    there = IteratedMap(tuple(rule.state[i] for i in kept), rhs, rule.parameters, source=rule.source)
    return Leaf(MapSystem(there, dict(system.parameters)), others)


def conserved_functionals(system: MapSystem) -> list[tuple[sp.Expr, ...]]:
    """A basis of the constant rows k with  k . (f(x) - x) = 0  for all x, as far as algebra shows them."""
    numbers = tuple((p, sp.Rational(v)) for p, v in zip(system.map.parameters, system.args, strict=True))
    try:
        return [tuple(map(sp.sympify, row)) for row in identities(system.map, numbers, 0)]
    except (sp.PolynomialError, NotImplementedError):
        return []


def _row(rule: IteratedMap, functional: sp.Expr) -> tuple[sp.Expr, ...]:
    row = tuple(functional.diff(x) for x in rule.state)
    rest = sp.expand(functional - sum(k * x for k, x in zip(row, rule.state, strict=True)))
    if rest != 0 or any(k.free_symbols for k in row) or not any(row):
        raise ValueError(
            f"A functional is a sum of numbers times the states {list(rule.names)}; got {functional}."
        )
    return row


def _proven(system: MapSystem, row: Sequence[sp.Expr]) -> tuple[sp.Expr, ...]:
    rule = system.map
    numbers = {p: sp.Rational(v) for p, v in zip(rule.parameters, system.args, strict=True)}
    moved = sum(
        (k * (exact(f.xreplace(numbers)) - x) for k, f, x in zip(row, rule.rhs, rule.state, strict=True)),
        sp.S.Zero,
    )
    if is_zero(moved) is not True:
        functional = sum((k * x for k, x in zip(row, rule.state, strict=True)), sp.S.Zero)
        raise NotConservedError(
            f"{functional} is not conserved: one step changes it by {residual(moved)}.", residual(moved)
        )
    return tuple(row)
