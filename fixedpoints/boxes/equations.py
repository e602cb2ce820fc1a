"""The zeros that are searched for in a box: equations without poles, with proven bounds of values and slopes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import sympy as sp
from flint import arb, arb_mat, ctx, fmpq

from fixedpoints.boxes.branches import branches, independent
from fixedpoints.boxes.ranges import Program, Range
from fixedpoints.boxes.singular import Condition, Kind, cases, conditions, prepared, without_poles
from odesys.system import MapSystem, ODESystem
from symbolic.zero import exact

__all__ = [
    "Box",
    "Equations",
    "Task",
    "equations_of",
    "halves",
    "ranges_of",
    "task_in",
    "velocity",
    "widened",
]

#: Sides (low, high), one for each state.
Box = tuple[tuple[float, float], ...]

#: Working precision on the narrow enclosures of zeros.
_FINE_BITS = 256

#: How far a box is widened for the test of existence.
_WIDER = 1 / 8

#: Boxes spent on the proof that a denominator or the argument of a root or logarithm has one sign.
_SIGN_BOXES = 64


@dataclass(frozen=True)
class Equations:
    """f_i(x) = 0 for i = 1..n, where all conditions hold.

    Args:
        symbols: the n unknowns x, real.
        functions: f; where the field has a pole, f is its numerator and the conditions keep the pole out.
        conditions: what must hold at x for the field to be defined there.
        obstacles: what must hold around x for f itself to be smooth.
    """

    symbols: tuple[sp.Symbol, ...]
    functions: tuple[sp.Expr, ...]
    conditions: tuple[Condition, ...]
    obstacles: tuple[Condition, ...]

    @cached_property
    def _values(self) -> Program:
        return Program([*self.functions, *_expressions(self.conditions)], self.symbols)

    @cached_property
    def _slopes(self) -> Program:
        slopes = [prepared(e) for e in self.jacobian]
        return Program([*slopes, *_expressions(self.obstacles)], self.symbols, across=False)

    @cached_property
    def jacobian(self) -> sp.ImmutableMatrix:
        """d f_i / d x_j, shape (n, n)."""
        return sp.ImmutableMatrix([[f.diff(x) for x in self.symbols] for f in self.functions])

    def values(self, ranges: Sequence[Range]) -> tuple[list[Range], list[Range]]:
        """Ranges of the functions, and of the conditions' expressions."""
        found = self._values(ranges)
        return found[: len(self.functions)], found[len(self.functions) :]

    @cached_property
    def _cases(self) -> list[Program]:
        """For each function that may jump, a program of all that it may be on either side."""
        told = map(cases, self.functions)
        return [Program(each, self.symbols) for each in told if len(each) > 1]

    def empty(self, ranges: Sequence[Range]) -> bool:
        """Whether a box is proven to hold no zero at which the field is defined, from ranges alone."""
        functions, limits = self.values(ranges)
        if any(map(_impossible, self.conditions, limits)) or any(map(_nonzero, functions)):
            return True
        return any(all(map(_nonzero, program(ranges))) for program in self._cases)

    def slopes(self, ranges: Sequence[Range]) -> Any:
        """The Jacobian's range as an Arb matrix; None where it is unbounded or a function is not smooth."""
        n = len(self.symbols)
        found = self._slopes(ranges)
        if not all(map(_smooth, self.obstacles, found[n * n :])):
            return None
        balls = [low.union(high) for low, high in found[: n * n]]
        return arb_mat(n, n, balls) if all(ball.is_finite() for ball in balls) else None

    def undefined(self, limits: Sequence[Range]) -> bool:
        """Whether the field is defined nowhere in a box, from the conditions' ranges there."""
        return any(map(_impossible, self.conditions, limits))

    def doubts(self, limits: Sequence[Range]) -> list[Condition]:
        """The conditions that are not certain to hold everywhere in a box."""
        return [c for c, limit in zip(self.conditions, limits, strict=True) if not _certain(c, limit)]

    def hindrances(self, ranges: Sequence[Range]) -> list[Condition]:
        """The obstacles to smoothness that may lie in a box."""
        found = Program(_expressions(self.obstacles), self.symbols)(ranges)
        return [c for c, limit in zip(self.obstacles, found, strict=True) if not _certain(c, limit)]

    def may_hold(self, bounds: Sequence[tuple[sp.Rational, sp.Rational]]) -> bool:
        """Whether a box, given by rational bounds, may hold a zero of all functions."""
        with ctx.workprec(_FINE_BITS):
            found, _ = self.values([(_ball(low), _ball(high)) for low, high in bounds])
            return not any(map(_nonzero, found))

    def regular(self, bounds: Sequence[tuple[sp.Rational, sp.Rational]]) -> bool:
        """Whether the Jacobian is proven to be invertible all over a box."""
        with ctx.workprec(_FINE_BITS):
            slopes = self.slopes([(_ball(low), _ball(high)) for low, high in bounds])
            return slopes is not None and not slopes.det().contains(0)

    def shifted(self, centre: Sequence[sp.Rational]) -> Equations:
        """The same equations in the unknowns x - centre."""
        move = {x: c + x for x, c in zip(self.symbols, centre, strict=True)}
        conditions, obstacles = (
            tuple(Condition(c.expression.xreplace(move), c.kind) for c in group)
            for group in (self.conditions, self.obstacles)
        )
        return Equations(self.symbols, tuple(f.xreplace(move) for f in self.functions), conditions, obstacles)


def velocity(system: ODESystem | MapSystem) -> tuple[sp.Expr, ...]:
    """What vanishes at a fixed point, f(x) or for a map f(x) - x, with its numbers put in exactly."""
    rule = system.field if isinstance(system, ODESystem) else system.map
    numbers = {p: sp.Rational(v) for p, v in zip(rule.parameters, system.args, strict=True)}
    rhs = [exact(f.xreplace(numbers)) for f in rule.rhs]
    if isinstance(system, MapSystem):
        rhs = [f - x for f, x in zip(rhs, rule.state, strict=True)]
    return tuple(rhs)


@dataclass(frozen=True, eq=False)
class Task:
    """What must vanish at a system's fixed points in a box, in one of several ways.

    Args:
        whole: the numerators of all right-hand sides that do not follow from others.
        full: systems of n equations, whose zeros are isolated as a rule.
        fewer: systems of fewer equations, whose zeros are not.
        singular: the conditions that may fail in the box itself.
    """

    whole: Equations
    full: tuple[Equations, ...]
    fewer: tuple[Equations, ...]
    singular: tuple[Condition, ...]


def task_in(system: ODESystem | MapSystem, box: Box) -> Task:
    """The equations to solve for a system's fixed points in a box; conditions that hold all over it are left out.

    Raises:
        NoRangeError: a right-hand side holds a function whose range on a box is not known.
    """
    rule = system.field if isinstance(system, ODESystem) else system.map
    # Plain real symbols: what the user assumes about signs must not hide that a box reaches further.
    real = {x: sp.Symbol(x.name, real=True) for x in rule.state}
    symbols = tuple(real.values())
    functions = [prepared(f.xreplace(real)) for f in velocity(system)]
    functions = [functions[i] for i in independent(functions)]

    # Tests of existence reach a little beyond the box, and what they rest on must hold there too.
    reach = widened(box)

    @cache
    def holds(condition: Condition) -> bool:
        return _holds(condition, symbols, reach)

    limits = [c for c in conditions(functions) if c.kind is not Kind.NONZERO and not holds(c)]
    numerators, poles = [], {}
    for f in functions:
        numerator, below = without_poles(f, lambda base: not holds(Condition(base, Kind.NONZERO)))
        numerators.append(_stripped(numerator, limits))
        poles.update(below)
    limits += [Condition(base, Kind.POLE) for base in poles]
    limits += [c for c in conditions(numerators) if c not in limits and not holds(c)]
    full, fewer = branches(numerators, lambda factor: not holds(Condition(factor, Kind.NONZERO)))
    if len(functions) < len(symbols):
        full, fewer = [], [*full, *fewer]

    domain = tuple(c for c in limits if c.kind is not Kind.JUMP)

    def equations(chosen: Sequence[sp.Expr]) -> Equations:
        return Equations(symbols, tuple(chosen), domain, tuple(c for c in conditions(chosen) if not holds(c)))

    full, fewer = (tuple(map(equations, group)) for group in (full, fewer))
    singular = tuple(c for c in domain if not _holds(c, symbols, box))
    return Task(equations(numerators), full, fewer, singular)


def equations_of(system: ODESystem | MapSystem) -> Equations:
    """The equations of a system's fixed points anywhere, with all their conditions.

    Raises:
        NoRangeError: a right-hand side holds a function whose range on a box is not known.
    """
    rule = system.field if isinstance(system, ODESystem) else system.map
    real = {x: sp.Symbol(x.name, real=True) for x in rule.state}
    functions = tuple(prepared(f.xreplace(real)) for f in velocity(system))
    limits = conditions(functions)
    domain = tuple(c for c in limits if c.kind is not Kind.JUMP)
    return Equations(tuple(real.values()), functions, domain, limits)


def halves(box: Box, side: int) -> tuple[Box, Box]:
    """The box cut across one side, near the middle: where symmetric systems have their zeros is no good cut."""
    low, high = box[side]
    cut = low + (high - low) * (31 / 64)
    left, right = list(box), list(box)
    left[side], right[side] = (low, cut), (cut, high)
    return tuple(left), tuple(right)


def widened(box: Box) -> Box:
    """The box a little larger, so that zeros on its edges lie inside."""
    wide = []
    for low, high in box:
        # A side no longer than the spacing of floats is widened by a few of them.
        more = (high - low) * _WIDER + 4 * max(math.ulp(low), math.ulp(high))
        wide.append((low - more, high + more))
    return tuple(wide)


def ranges_of(box: Box) -> list[Range]:
    """The sides of a box as ranges."""
    return [(arb(low), arb(high)) for low, high in box]


def _expressions(group: Sequence[Condition]) -> list[sp.Expr]:
    return [condition.expression for condition in group]


def _ball(number: sp.Rational) -> Any:
    return arb(fmpq(int(number.p), int(number.q)))


def _holds(condition: Condition, symbols: Sequence[sp.Symbol], box: Box) -> bool:
    """Whether a condition is proven to hold all over the box."""
    program = Program([condition.expression], symbols)
    boxes = [box]
    for _ in range(_SIGN_BOXES):
        if not boxes:
            return True
        current = boxes.pop()
        (limit,) = program(ranges_of(current))
        if not _certain(condition, limit):
            widths = [high - low for low, high in current]
            boxes += halves(current, widths.index(max(widths)))
    return False


def _stripped(numerator: sp.Expr, conditions: Sequence[Condition]) -> sp.Expr:
    """Without the factors that cannot vanish where the field is defined, such as x in x log(x)."""
    nonzero = set()
    for condition in conditions:
        if condition.kind is Kind.POSITIVE:
            for part in sp.fraction(sp.together(condition.expression)):
                nonzero |= {factor.as_base_exp()[0] for factor in sp.Mul.make_args(part)}
    kept = [f for f in sp.Mul.make_args(numerator) if f.as_base_exp()[0] not in nonzero]
    return sp.Mul(*kept)


def _nonzero(limit: Range) -> bool:
    return limit[0] > 0 or limit[1] < 0


def _certain(condition: Condition, limit: Range) -> bool:
    """The condition holds all over the box."""
    if condition.kind is Kind.POSITIVE:
        return limit[0] > 0
    if condition.kind in (Kind.NONNEGATIVE, Kind.SOFT):
        return limit[0] >= 0
    return _nonzero(limit)


def _impossible(condition: Condition, limit: Range) -> bool:
    """The condition holds nowhere in the box."""
    if condition.kind is Kind.POSITIVE:
        return limit[1] <= 0
    if condition.kind in (Kind.NONNEGATIVE, Kind.SOFT):
        return limit[1] < 0
    return limit[0] == 0 and limit[1] == 0


def _smooth(condition: Condition, limit: Range) -> bool:
    """f is continuously differentiable, or Lipschitz with its slopes in the Jacobian's range, all over the box."""
    if condition.kind is Kind.SOFT:
        return True
    if condition.kind in (Kind.POSITIVE, Kind.NONNEGATIVE):
        return limit[0] > 0
    return _nonzero(limit)
