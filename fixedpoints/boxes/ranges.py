"""Expressions as programs that bound their values on a box, proven by FLINT's ball arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import sympy as sp
from flint import ctx

from fixedpoints.boxes.bounds import (
    FUNCTIONS,
    LAMBERT,
    NUMBERS,
    RELATIONS,
    Range,
    chosen,
    exponential,
    flipped,
    integer_power,
    larger,
    negative,
    plus,
    rational,
    real_power,
    reciprocal,
    smaller,
    stretched,
    times,
)
from odesys.rewriting import RealLambertW

__all__ = ["NoRangeError", "Program", "Range"]


class NoRangeError(ValueError):
    """An expression holds a function whose range on a box is not known here."""


class Program:
    """Expressions as straight-line code over ranges, with common subexpressions computed once.

    Calling it with one range for each argument gives one range for each expression; the precision is that of
    FLINT's context. Outside an expression's domain the range is that of its values on the rest of the box
    (of nothing at all: any range).

    Args:
        expressions: prepared expressions (`fixedpoints.boxes.singular.prepared`) of the arguments.
        arguments: their symbols.
        across: whether a Piecewise whose branch is undecided is bounded by all its branches (right for
            values) or not at all (right for slopes, which do not exist at a jump).
    Raises:
        NoRangeError: an expression holds something that has no range here.
    """

    def __init__(
        self, expressions: Sequence[sp.Expr], arguments: Sequence[sp.Symbol], *, across: bool = True
    ):
        build = _Builder(arguments, across)
        results = [build.position(sp.sympify(e)) for e in expressions]
        self._fixed, self._steps, place = build.ordered()
        self._results = [place[r] for r in results]
        self._known: dict[int, list[Range]] = {}

    def __call__(self, ranges: Sequence[Range]) -> list[Range]:
        values = [*self._constants(), *ranges]
        for function, operands in self._steps:
            values.append(function(*[values[k] for k in operands]))
        return [values[k] for k in self._results]

    def _constants(self) -> list[Range]:
        if ctx.prec not in self._known:
            values: list[Range] = []
            for function, operands in self._fixed:
                values.append(function(*[values[k] for k in operands]))
            self._known[ctx.prec] = values
        return self._known[ctx.prec]


class _Builder:
    """Steps (function, operands) in the order of computation; a position is the step's number."""

    def __init__(self, arguments: Sequence[sp.Symbol], across: bool):
        self._across = across
        self._count = len(arguments)
        self._steps: list[tuple[Callable, tuple[int, ...]]] = []
        self._varies: list[bool] = [True] * self._count
        self._seen: dict[sp.Basic, int] = {x: k for k, x in enumerate(arguments)}

    def position(self, expression: sp.Basic) -> int:
        if expression not in self._seen:
            self._seen[expression] = self._append(*self._step(expression))
        return self._seen[expression]

    def ordered(self):
        """Steps without arguments, steps with, and the place of each position when the former come first."""
        arguments = range(self._count)
        steps = list(enumerate(self._steps, start=self._count))
        order = [k for k, _ in steps if not self._varies[k]]
        order += [*arguments, *(k for k, _ in steps if self._varies[k])]
        place = {k: i for i, k in enumerate(order)}
        moved = [(k, (function, tuple(place[j] for j in operands))) for k, (function, operands) in steps]
        fixed = [step for k, step in moved if not self._varies[k]]
        return fixed, [step for k, step in moved if self._varies[k]], place

    def _append(self, function: Callable, operands: Sequence[int]) -> int:
        self._steps.append((function, tuple(operands)))
        self._varies.append(any(self._varies[k] for k in operands))
        return self._count + len(self._steps) - 1

    def _step(self, e: sp.Basic) -> tuple[Callable, Sequence[int]]:
        if isinstance(e, sp.Rational):
            return partial(rational, int(e.p), int(e.q)), ()
        if e in NUMBERS:
            return NUMBERS[e], ()
        if isinstance(e, sp.Add):
            return self._folded(plus, e.args)
        if isinstance(e, sp.Mul):
            return self._product(e)
        if isinstance(e, sp.exp):
            return exponential, (self.position(e.args[0]),)
        if isinstance(e, sp.Pow):
            return self._power(*e.args)
        if isinstance(e, sp.Max):
            return self._folded(larger, e.args)
        if isinstance(e, sp.Min):
            return self._folded(smaller, e.args)
        if isinstance(e, sp.Piecewise):
            return partial(chosen, self._across), [self.position(p) for branch in e.args for p in branch.args]
        if isinstance(e, RealLambertW):
            return LAMBERT[int(e.args[1])], (self.position(e.args[0]),)
        if type(e) in RELATIONS:
            return RELATIONS[type(e)], (self.position(e.lhs - e.rhs),)
        if e.func in FUNCTIONS:
            return FUNCTIONS[e.func], [self.position(a) for a in e.args]
        if isinstance(e, (sp.And, sp.Or)):
            return self._folded(smaller if isinstance(e, sp.And) else larger, e.args)
        raise NoRangeError(
            f"No proven range is known for {e.func.__name__}, which stands in {e}. Rewrite it with elementary "
            "functions; without it the field can only be searched numerically."
        )

    def _folded(self, function: Callable, args: Sequence[sp.Basic]) -> tuple[Callable, Sequence[int]]:
        position = self.position(args[0])
        for argument in args[1:-1]:
            position = self._append(function, (position, self.position(argument)))
        return function, (position, self.position(args[-1]))

    def _product(self, e: sp.Mul) -> tuple[Callable, Sequence[int]]:
        number, rest = e.as_coeff_Mul()
        if number is sp.S.One:
            return self._folded(times, e.args)
        if number is sp.S.NegativeOne:
            return negative, (self.position(rest),)
        stretch = stretched if number > 0 else flipped
        return stretch, (self.position(number), self.position(rest))

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> tuple[Callable, Sequence[int]]:
        if not exponent.is_Rational:
            return exponential, (self.position(exponent * sp.log(base)),)
        if exponent < 0:
            return reciprocal, (self.position(base**-exponent),)
        if exponent.is_Integer:
            return partial(integer_power, int(exponent)), (self.position(base),)
        return partial(real_power, int(exponent.p), int(exponent.q)), (self.position(base),)
