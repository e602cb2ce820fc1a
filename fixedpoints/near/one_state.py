"""One state: the signs of the velocity on its two sides decide a fixed point, whatever its linearisation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import sympy as sp
from flint import fmpq

from fixedpoints.near.balls import is_exact, sign
from fixedpoints.near.jets import NotSmoothError, UndefinedHereError
from fixedpoints.near.local import Local, rational_location
from fixedpoints.points import FixedPoint
from symbolic.roots import RealRoot, real_roots
from symbolic.zero import exact

__all__ = ["Mark", "attraction", "marks", "point_on_line", "towards", "word"]

#: Terms of the Taylor series that are tried before a point is called undecided.
MOST_TERMS = 12


@dataclass(frozen=True)
class Mark:
    """A zero or a pole of a rational velocity, with rational points `left` and `right` of it.

    No other zero or pole lies between `left` and `right`.
    """

    root: RealRoot
    left: sp.Rational
    right: sp.Rational
    is_pole: bool


def word(attracts: tuple[bool, bool]) -> str:
    """What a point does, by whether it attracts from below and from above."""
    below, above = attracts
    return "half-stable" if below != above else "stable" if below else "unstable"


def towards(attracts: tuple[bool, bool]) -> str:
    """The same as a sentence."""
    below, above = ("towards it" if side else "away from it" for side in attracts)
    return f"{below} on both sides" if below == above else f"{below} from below and {above} from above"


def marks(velocity: sp.Expr, x: sp.Symbol) -> tuple[Mark, ...]:
    """All real zeros and poles of a rational function with rational coefficients, from left to right.

    One isolation serves both: their enclosures are disjoint, and the points between separate them.

    Raises:
        ValueError: as `symbolic.roots.real_roots`, on numerator times denominator.
    """
    numerator, denominator = (_monic(part, x) for part in sp.fraction(sp.cancel(sp.together(velocity))))
    roots = real_roots(numerator * denominator, x)
    cuts = [(a.upper + b.lower) / 2 for a, b in pairwise(roots)]
    ends = [roots[0].lower - 1, *cuts, roots[-1].upper + 1] if roots else []
    return tuple(
        Mark(root, left, right, sp.rem(denominator, root.minimal.as_expr(), x) == 0)
        for root, left, right in zip(roots, ends, ends[1:], strict=False)
    )


def attraction(velocity: sp.Expr, x: sp.Symbol, mark: Mark) -> tuple[bool, bool]:
    """Whether the flow moves towards a mark from below and from above, by exact signs."""
    return bool(velocity.subs(x, mark.left) > 0), bool(velocity.subs(x, mark.right) < 0)


def point_on_line(velocity: sp.Expr, x: sp.Symbol, mark: Mark) -> FixedPoint:
    """The fixed point of dx/dt = velocity at a mark, decided by the signs around it."""
    root, attracts = mark.root, attraction(velocity, x, mark)
    eigenvalue = float(velocity.diff(x).subs(x, root.value(30))) if root.multiplicity == 1 else 0.0
    return FixedPoint(
        {x.name: float(root)},
        (eigenvalue,),
        word(attracts),
        evidence=f"exact signs of the field below and above: moves {towards(attracts)}",
        enclosure={x.name: (root.lower, root.upper)},
        multiplicity=root.multiplicity,
        attracts=attracts,
    )


def decided_by_signs(local: Local) -> tuple[bool, bool] | None:
    """Attraction from below and above where the velocity phi is rational with rational coefficients."""
    if local.twice:
        return None
    (x,), (f,) = local.rule.state, local.rule.rhs
    values = {p: sp.Rational(v) for p, v in local.values.items()}
    velocity = exact(f.xreplace(values)) - (x if local.is_map else 0)
    if not velocity.is_rational_function(x):
        return None
    try:
        found = marks(velocity, x)
    except ValueError:
        return None
    here = rational_location(local)
    at = here[0] if here else None
    near = [m for m in found if _holds(m, at, local)]
    return attraction(velocity, x, near[0]) if len(near) == 1 and not near[0].is_pole else None


def decided_by_series(local: Local) -> tuple[int, int] | None:
    """Order and sign of the first term of phi(x* + s) that does not vanish, or None."""
    for order in range(1, MOST_TERMS + 1):
        try:
            (jet,) = local.expansion(order)
        except (NotSmoothError, UndefinedHereError):
            return None
        side = sign(jet[(0,) * order])
        if side:
            return order, side
    return None


def attraction_of_term(order: int, side: int) -> tuple[bool, bool]:
    """Attraction from below and above of  ds/dt = side * s^order."""
    return (side * (-1) ** order > 0, side < 0)


def _holds(mark: Mark, at: sp.Rational | None, local: Local) -> bool:
    if at is not None:
        return bool(mark.root.lower <= at <= mark.root.upper)
    ball = local.at[0]
    lower, upper = (fmpq(int(b.p), int(b.q)) for b in (mark.root.lower, mark.root.upper))
    return not (ball < lower or ball > upper) and not is_exact(ball)


def _monic(polynomial: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """With leading coefficient one, so that a common irrational factor does not hide rational ones."""
    poly = sp.Poly(polynomial, x)
    return sp.Add(*(sp.radsimp(c / poly.LC()) * x**k for (k,), c in poly.terms()))
