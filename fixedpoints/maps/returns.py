"""The p-th iterate of a map without its formula: on boxes, and as Taylor polynomials near a point of a cycle.

A formula of f^p grows like the p-th power of that of f. Here f is applied p times to ranges or to jets, and
slopes are multiplied along the way, so that the cost grows like p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy as sp
from flint import arb, arb_mat, fmpq

from fixedpoints.boxes.equations import Equations, equations_of
from fixedpoints.boxes.ranges import Range
from fixedpoints.near.balls import Matrix, Number, as_rational, widened
from fixedpoints.near.jets import Jet, constant, expand, variable
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

__all__ = ["ReturnEquations", "ReturnMap", "return_equations"]


@dataclass(frozen=True, eq=False)
class ReturnEquations:
    """f^p(x) - x = 0 on boxes, as `fixedpoints.boxes.krawczyk.explore` asks for it.

    Args:
        once: f itself, with the conditions under which it is defined.
        period: p.
    """

    once: Equations
    period: int

    def values(self, ranges: Sequence[Range]) -> tuple[list[Range], list[Range]]:
        """The ranges of f^p - id, and those of the conditions at every step."""
        image, limits = list(ranges), []
        for _ in range(self.period):
            image, at = self._image(image)
            limits += at
        return [(low - b, high - a) for (low, high), (a, b) in zip(image, ranges, strict=True)], limits

    def slopes(self, ranges: Sequence[Range]) -> Any:
        """The range of the Jacobian of f^p - id as an Arb matrix, by the chain rule; None where it has none."""
        n = len(ranges)
        image, product = list(ranges), _unit(n)
        for step in range(self.period):
            slopes = self.once.slopes(image)
            if slopes is None:
                return None
            product = slopes * product
            if step + 1 < self.period:
                image, _ = self._image(image)
        return product - _unit(n)

    def empty(self, ranges: Sequence[Range]) -> bool:
        """Whether no point of a box comes back to itself, or the orbit of none is defined."""
        image = list(ranges)
        for _ in range(self.period):
            image, limits = self._image(image)
            if self.once.undefined(limits):
                return True
        return any(low > b or high < a for (low, high), (a, b) in zip(image, ranges, strict=True))

    def _image(self, ranges: list[Range]) -> tuple[list[Range], list[Range]]:
        """The range of f, by its formula and by its mean-value form, whichever is narrower."""
        plain, limits = self.once.values(ranges)
        slopes = self.once.slopes(ranges)
        if slopes is None or not all(low.is_finite() and high.is_finite() for low, high in ranges):
            return plain, limits
        n = len(ranges)
        middle = [((low + high) / 2).mid() for low, high in ranges]
        at_middle, _ = self.once.values([(m, m) for m in middle])
        value = arb_mat(n, 1, [low.union(high) for low, high in at_middle])
        reach = arb_mat(n, 1, [low.union(high) - m for (low, high), m in zip(ranges, middle, strict=True)])
        forms = (value + slopes * reach).entries()
        return [
            (arb.max(low, form.lower()), arb.min(high, form.upper())) if form.is_finite() else (low, high)
            for (low, high), form in zip(plain, forms, strict=True)
        ], limits


def return_equations(system: MapSystem, period: int) -> ReturnEquations:
    """What vanishes at the points of period p of a map.

    Raises:
        NoRangeError: a right-hand side holds a function whose range on a box is not known.
    """
    rule = system.map
    once = ODESystem(VectorField(rule.state, rule.rhs, rule.parameters), dict(system.parameters))
    return ReturnEquations(equations_of(once), period)


@dataclass(frozen=True, eq=False)
class ReturnMap:
    """phi(u) = f^q(x + u) - x near a point x of a cycle, as `fixedpoints.near.local.Local` is it for q = 1.

    Args:
        rule: the map f.
        values: a number or a ball for each parameter; or a jet, for one that moves.
        at: x, rational or in balls.
        steps: q, how often f is applied.
        error: relative radius of the balls as which floats are read; 0 reads them as they are.
    """

    rule: IteratedMap
    values: Mapping[sp.Symbol, float | Number | Jet]
    at: tuple[Number, ...]
    steps: int
    error: float = 0.0

    def phi(self, displacement: Sequence[Jet]) -> list[Jet]:
        """The Taylor polynomials of phi for displacements u that vanish at 0."""
        order = displacement[0].order
        read = partial(_read, error=self.error)
        numbers = {p: v if isinstance(v, Jet) else constant(read(v), order) for p, v in self.values.items()}
        place = [u + constant(c, order) for u, c in zip(displacement, self.at, strict=True)]
        image = place
        for _ in range(self.steps):
            known = numbers | dict(zip(self.rule.state, image, strict=True))
            image = expand(self.rule.rhs, known, order, number=read)
        return [f + x.times(as_rational(-1)) for f, x in zip(image, place, strict=True)]

    def slopes(self) -> tuple[list[Number], Matrix]:
        """phi and its Jacobian at x."""
        jets = self.phi([variable(j, 1) for j in range(len(self.at))])
        return [jet.value for jet in jets], [[jet[j,] for j in range(len(jets))] for jet in jets]


def _read(number: float | sp.Expr | arb, error: float) -> Number:
    if isinstance(number, (arb, fmpq)):
        return number
    exact = as_rational(number)
    return widened(exact, abs(arb(exact)) * arb(error)) if error and exact != 0 else exact


def _unit(n: int) -> Any:
    return arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
