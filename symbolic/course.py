"""A candidate for a time course and the equation it is to solve, all in real symbols, ready to be proven."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import sympy as sp

__all__ = ["Course", "branches", "moment", "positive_starts", "real_symbols", "where_zero"]


@dataclass(frozen=True)
class Course:
    """A candidate x(t) for dx/dt = f(t, x), all in real symbols: what is to be proven.

    `margins` are expressions in (t, x_0, p) that are positive wherever the candidate is claimed to hold, `positive`
    others that then follow; `relations` are polynomials in the parameters that vanish in this case.
    """

    state: tuple[sp.Symbol, ...]
    rhs: tuple[sp.Expr, ...]
    time: sp.Symbol
    starts: tuple[sp.Symbol, ...]
    paths: tuple[sp.Expr, ...]
    margins: tuple[sp.Expr, ...] = ()
    positive: tuple[sp.Expr, ...] = ()
    relations: tuple[sp.Expr, ...] = ()

    def along(self, expression: sp.Expr) -> sp.Expr:
        return expression.subs(dict(zip(self.state, self.paths, strict=True)), simultaneous=True)


def where_zero(course: Course, quantity: sp.Expr | None) -> Course:
    """The same where a parameter, or an expression in parameters, is zero; None leaves it as it is."""
    if quantity is None:
        return course
    if not quantity.is_Symbol:
        return replace(course, relations=(*course.relations, sp.numer(sp.together(quantity))))
    zero = {quantity: sp.S.Zero}
    rhs, paths, margins = (
        tuple(e.subs(zero) for e in part) for part in (course.rhs, course.paths, course.margins)
    )
    return replace(course, rhs=rhs, paths=paths, margins=margins)


def branches(course: Course) -> Iterator[Course]:
    """The course for each choice of branches of its Piecewise parts, each with what vanishes on that branch."""
    options = [_pieces(path) for path in course.paths]
    for quantity in dict.fromkeys(q for pieces in options for _, q in pieces):
        # A path without a branch of its own for this case is there what it is elsewhere.
        matching = [
            [e for e, q in pieces if q == quantity] or [e for e, q in pieces if q is None]
            for pieces in options
        ]
        for paths in product(*matching):
            yield where_zero(replace(course, paths=paths), quantity)


def real_symbols(symbols: Sequence[sp.Symbol]) -> dict[sp.Symbol, sp.Symbol]:
    """All symbols denote real numbers: the same ones, told so."""
    return {s: sp.Symbol(s.name, **{**s.assumptions0, "real": True}) for s in symbols}


def moment(time: sp.Symbol) -> sp.Symbol:
    """Time as formulas and proofs see it: t > 0, the start itself being checked separately."""
    return sp.Symbol(time.name, positive=True)


def positive_starts(
    starts: Sequence[sp.Symbol], conditions: Sequence[sp.Basic]
) -> dict[sp.Symbol, sp.Symbol]:
    """Initial values that the conditions declare positive, as positive symbols."""
    positive = {c.gts for c in conditions if isinstance(c, (sp.Gt, sp.Lt)) and c.lts.is_nonnegative}
    return {s: sp.Symbol(s.name, positive=True) for s in starts if s in positive}


def _pieces(path: sp.Expr) -> list[tuple[sp.Expr, sp.Expr | None]]:
    """(branch, what vanishes there) of an expression; a branch under an inequality must hold everywhere."""
    folded = sp.piecewise_fold(path) if path.has(sp.Piecewise) else path
    if not isinstance(folded, sp.Piecewise):
        return [(folded, None)]
    pieces, before = [], []
    for value, condition in folded.args:
        quantity = None
        if isinstance(condition, sp.Eq):
            quantity = condition.lhs - condition.rhs
        elif condition == sp.true and len(before) == 1 and isinstance(before[0], sp.Ne):
            quantity = before[0].lhs - before[0].rhs
        pieces.append((value, quantity))
        before.append(condition)
    return pieces
