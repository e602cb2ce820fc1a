"""The normal form of a flip,  s -> -s + c s^3 + ...,  whose coefficient tells which cycles are born."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp
from flint import fmpq

from fixedpoints.maps.orbits import Flip, NoFlipError
from fixedpoints.maps.returns import ReturnMap
from fixedpoints.near.balls import Matrix, Number, as_ball, as_float, dot, radius, sign, solve, to_rational
from fixedpoints.near.centre_manifold import NotSemisimpleError, kernel
from fixedpoints.near.jets import Jet
from symbolic.field import IteratedMap

__all__ = ["NormalForm"]


@dataclass(frozen=True, eq=False)
class NormalForm:
    """One round of a cycle near its flip, in balls.

    Args:
        rule: the map f.
        moving: the parameter that moves.
        numbers: the values of the others.
        at: a point of the cycle at the flip.
        value: the parameter there.
        period: how many steps are one round.
    """

    rule: IteratedMap
    moving: sp.Symbol
    numbers: Mapping[sp.Symbol, Number]
    at: Sequence[Number]
    value: Number
    period: int = 1

    def flip(self, nominal: Number) -> Flip:
        """All that is told of the flip; `nominal` is the critical value with floats read as they are."""
        once = ReturnMap(self.rule, {**self.numbers, self.moving: self.value}, tuple(self.at), self.period)
        _, less = once.slopes()
        try:
            null = kernel(replace(once, steps=2 * self.period), 1)
            right, left = _unit(null.right[0], null.left[0])
            c = self._cubic(once, less, right, left)
            speed = self._speed(once, less, right, left)
        except (NotSemisimpleError, ZeroDivisionError):
            raise NoFlipError(
                f"At {self.moving} = {as_float(self.value):.6g} a second multiplier is 1 or -1: no simple flip."
            ) from None
        slopes = np.array([[as_float(x) + (i == j) for j, x in enumerate(row)] for i, row in enumerate(less)])
        multipliers = list(np.linalg.eigvals(slopes))
        multipliers.pop(int(np.abs(np.array(multipliers) + 1).argmin()))
        others = tuple(sorted((complex(m) for m in multipliers), key=abs, reverse=True))
        side = sign(c)
        kind = {1: "supercritical", -1: "subcritical", 0: "degenerate"}[side]
        exact = to_rational(nominal) if isinstance(nominal, fmpq) else None
        return Flip(
            self.moving.name,
            as_float(nominal),
            # The float of the value may be off by half a unit in its last place.
            radius(self.value) + abs(as_float(nominal)) * 2.0**-53,
            exact,
            self.period,
            {name: as_float(x) for name, x in zip(self.rule.names, self.at, strict=True)},
            tuple(map(as_float, right)),
            as_float(c),
            radius(c) + abs(as_float(c)) * 2.0**-53,
            kind,
            as_float(speed),
            others,
            self._sentence(kind, as_float(c), as_float(speed), others),
        )

    def _cubic(self, once: ReturnMap, less: Matrix, right: list[Number], left: list[Number]) -> Number:
        """c from the curve  q s + h s^2  with  (1 - A) h = B(q, q) / 2, whose image bends as f does."""
        bend = [jet[0, 0] for jet in once.phi([Jet({(0,): q}, 2) for q in right])]
        h = solve(less, [[-b] for b in bend])
        curve = [Jet({(0,): q, (0, 0): row[0]}, 3) for q, row in zip(right, h, strict=True)]
        return dot(left, [jet[0, 0, 0] for jet in once.phi(curve)])

    def _speed(self, once: ReturnMap, less: Matrix, right: list[Number], left: list[Number]) -> Number:
        """d mu / d parameter = <p, B(q, x') + A' q>  with  (1 - A) x' = df/d parameter."""
        drift = [jet[1,] for jet in self._moved(once, [Jet({}, 1) for _ in right], 1)]
        shift = solve(less, [[-d] for d in drift])
        plane = [Jet({(0,): q, (1,): row[0]}, 2) for q, row in zip(right, shift, strict=True)]
        return dot(left, [jet[0, 1] for jet in self._moved(once, plane, 2)])

    def _moved(self, once: ReturnMap, displacement: list[Jet], order: int) -> list[Jet]:
        """f - id where also the parameter moves, by the variable 1."""
        parameter = Jet({(): as_ball(self.value), (1,): fmpq(1)}, order)
        return replace(once, values={**self.numbers, self.moving: parameter}).phi(displacement)

    def _sentence(self, kind: str, c: float, speed: float, others: Sequence[complex]) -> str:
        fate = {"supercritical": "stable", "subcritical": "unstable", "degenerate": "undecided"}[kind]
        if kind == "supercritical" and any(abs(m) >= 1 for m in others):
            fate = "stable along q, and unstable otherwise,"
        beyond = "above" if (speed < 0) == (kind == "supercritical") else "below"
        born = (
            f"{fate} {2 * self.period}-cycles for {self.moving} {beyond}"
            if kind != "degenerate"
            else "nothing told of cycles"
        )
        return f"multiplier -1 moving by {speed:.6g}; s -> -s + {c:.6g} s^3 + ...: {kind}, {born}"


def _unit(right: list[Number], left: list[Number]) -> tuple[list[Number], list[Number]]:
    """q of length 1, its largest component positive, and p with <p, q> = 1."""
    size = sum((as_ball(q) * as_ball(q) for q in right), as_ball(fmpq(0))).sqrt()
    largest = max(right, key=lambda q: abs(as_float(q)))
    size = -size if as_float(largest) < 0 else size
    return [q / size for q in right], [p * size for p in left]
