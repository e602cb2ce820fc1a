"""A loss along a ray to infinity, exactly: which rows win, where the loss goes, how fast, and whether it falls.

On x = x_0 + s v every loss is a ratio of sums of exponentials of s, u_i = exp(a_i x_0) exp(a_i v s), and the loss of a
matrix problem is a sum of such ratios, whose leading terms may cancel. With rational data all of it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import sympy as sp

from fixedpoints.softmax_regression.exponentials import (
    ONE,
    Function,
    Number,
    Quotient,
    leading,
    plus,
    scaled,
    sign,
    times,
    written,
)
from fixedpoints.softmax_regression.problem import Model, as_given, joint, named, noun, vector, winners
from symbolic.softmax_regression.joint import JointRegression, Place

__all__ = ["Escape", "along", "escape"]

_T = sp.Symbol("t", positive=True)


@dataclass(frozen=True)
class Escape:
    """What a loss does on the ray x = start + s v for s -> oo:  L ~ limit + coefficient exp(-rate s).

    Args:
        direction: v. start: x_0.
        face: the rows with the largest a_i v, to the softmax over which f goes: i from 1 for a vector problem; (j, i)
            for a matrix, where some P_ji of each row of P do not go to zero.
        limit: of the loss, exact; oo if the rescaled loss grows, L ~ coefficient exp(-rate s) with rate < 0.
        rate, coefficient: of the approach, exact; coefficient is 0 where the loss is constant along the ray.
        limit_f: where f goes, n entries; where P goes, m rows of n entries.
    """

    direction: tuple[sp.Rational, ...]
    start: tuple[sp.Rational, ...]
    face: tuple[Place, ...]
    limit: sp.Expr
    rate: sp.Rational
    coefficient: sp.Expr
    limit_f: tuple[sp.Expr, ...] | tuple[tuple[sp.Expr, ...], ...]

    @cached_property
    def attracts(self) -> bool:
        """Whether the loss falls outwards, so that a flow on the ray goes to infinity."""
        return bool(self.rate > 0 and sign(self.coefficient) > 0)

    @cached_property
    def law(self) -> sp.Expr:
        """s ~ log(rate^2 coefficient t / |v|^2) / rate  for a flow on the ray and t -> oo: never exponential.

        Raises:
            ValueError: the ray does not attract.
        """
        if not self.attracts:
            raise ValueError(f"There is no law of escape where a flow does not escape: {self}.")
        length = sum(v**2 for v in self.direction)
        return sp.log(self.rate**2 * self.coefficient * _T / length) / self.rate

    @property
    def kind(self) -> str:
        """Where the ray leads: a "vertex" of the simplex of f, or of each row of P, or a "face"."""
        return "vertex" if len(self.face) == len({_part(place) for place in self.face}) else "face"

    def __str__(self) -> str:
        rows = ", ".join(map(str, self.face))
        place = (
            f"along ({', '.join(map(_shown, self.direction))}) to the {self.kind} of {noun(self.face)} {rows}"
        )
        if self.coefficient == 0:
            return f"{place} the loss stays {_shown(self.limit)}"
        if self.limit == sp.oo:
            return f"{place} the loss grows like exp({_shown(-self.rate)} s): repels"
        verdict = "falls: attracts" if self.attracts else "rises: repels"
        return f"{place} the loss goes to {_shown(self.limit)} like exp(-{_shown(self.rate)} s) and {verdict}"


def escape(
    model: Model,
    direction: Sequence | Mapping[str, Any],
    start: Sequence | Mapping[str, Any] | None = None,
) -> Escape:
    """What the loss does along the ray x = start + s direction, s -> oo, from its exact leading terms.

    Args:
        model: a vector or matrix problem with rational data, u = exp and no ridge.
        direction: v, d numbers, or d1 rows of d2 numbers for a matrix; a float is the rational that it is.
        start: x_0, the origin if None.
    Raises:
        TypeError, ValueError: the model has no numbers, a vector has another length or is not finite, or v = 0.
    """
    problem = joint(model)
    v = vector("direction", direction, model)
    x = vector("start", [0] * len(v) if start is None else start, model)
    if not any(v):
        raise ValueError("`direction` must not be zero: a ray leads somewhere.")
    return along(problem, v, x)


def along(problem: JointRegression, v: sp.MatrixBase, x: sp.MatrixBase | None = None) -> Escape:
    """The same for a sum of regressions, v and x columns of rational numbers; x = 0 if None."""
    x = sp.zeros(len(v), 1) if x is None else x
    parts = [_Part.along(block, b, v, x) for block, b in zip(problem.blocks, problem.targets, strict=True)]
    terms = _normalized if problem.normalization == "normalized" else _rescaled
    face = winners(problem, v)
    return Escape(
        tuple(v),
        tuple(x),
        named(problem, face),
        *terms(parts),
        as_given(problem, (part.limit_f(rows) for part, rows in zip(parts, face, strict=True))),
    )


@dataclass(frozen=True)
class _Part:
    """One regression on a ray: u_i, alpha, and S = (1/2) |u - alpha b|^2, so that L = S/alpha^2 or Lr = S."""

    u: list[Function]
    alpha: Function
    squares: Function

    @classmethod
    def along(cls, block: sp.MatrixBase, target: Sequence, v: sp.MatrixBase, x: sp.MatrixBase) -> _Part:
        rates, exponents, b = (
            [Fraction(int(value.p), int(value.q)) for value in values]
            for values in (block * v, block * x, target)
        )
        u: list[Function] = [{r: {e: Fraction(1)}} for r, e in zip(rates, exponents, strict=True)]
        alpha = plus(*u)
        residuals = [plus(ui, scaled(alpha, -bi)) for ui, bi in zip(u, b, strict=True)]
        return cls(u, alpha, scaled(plus(*(times(r, r) for r in residuals)), Fraction(1, 2)))

    def limit_f(self, winners: Sequence[int]) -> list[sp.Expr]:
        """u_i/alpha of the winners to leading order; nothing of the others is left."""
        below = written(self.alpha[max(self.alpha)])
        u = [written(number) for function in self.u for number in function.values()]
        return [u[i] / below if i in winners else sp.S.Zero for i in range(len(u))]


#: Limit, rate and coefficient.
Terms = tuple[sp.Expr, sp.Rational, sp.Expr]


def _normalized(parts: Sequence[_Part]) -> Terms:
    """With alpha^2 = D exp(top s) + ... and S = N exp(top s) + ..., the limit of S/alpha^2 is N/D, and the rest

    S/alpha^2 - N/D = (D S - N alpha^2)/(D alpha^2).
    """
    limit, rests = sp.S.Zero, []
    for part in parts:
        alpha2 = times(part.alpha, part.alpha)
        top = max(alpha2)
        D, N = _constant(alpha2[top]), _constant(part.squares.get(top, {}))
        limit += written(part.squares.get(top, {})) / written(alpha2[top])
        rest = plus(times(part.squares, D), scaled(times(alpha2, N), Fraction(-1)))
        if rest:
            rests.append(Quotient(rest, times(alpha2, D)))
    return _terms(limit, rests)


def _rescaled(parts: Sequence[_Part]) -> Terms:
    """The sum of S itself."""
    total = plus(*(part.squares for part in parts))
    limit = written(total.pop(Fraction(0), {}))
    found = _terms(limit, [Quotient(total, ONE)] if total else [])
    return (sp.oo, *found[1:]) if found[1] < 0 else found


def _terms(limit: sp.Expr, rests: Sequence[Quotient]) -> Terms:
    rate, coefficient = leading(rests) or (Fraction(0), sp.S.Zero)
    return limit, -sp.Rational(rate.numerator, rate.denominator), coefficient


def _constant(number: Number) -> Function:
    return {Fraction(0): number}


def _part(place: Place) -> int:
    """The row of P in which an entry is."""
    return 0 if isinstance(place, int) else place[0]


def _shown(number: sp.Expr) -> str:
    return str(number) if number.is_Rational and number.q < 10**6 else str(sp.N(number, 8))
