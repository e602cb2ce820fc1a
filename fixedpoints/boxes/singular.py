"""Where a field is not what calculus wants: domains, poles, kinks and jumps, found in its expressions.

`prepared` writes an expression with functions whose values and slopes can be bounded on any box; `conditions`
collects what a point must satisfy for the expression to be defined (and smooth) there; `without_poles`
multiplies out denominators, so that a pole is no obstacle to bounding the zeros next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sympy as sp

from odesys.rewriting import RealLambertW

__all__ = [
    "Condition",
    "Jump",
    "Kind",
    "Magnitude",
    "Side",
    "conditions",
    "plain",
    "prepared",
    "without_poles",
]


class Jump(sp.Function):
    """The slope of a step: zero away from it, unbounded at it."""

    nargs = 1

    def fdiff(self, argindex=1):
        return Jump(self.args[0])


class Side(sp.Function):
    """The sign of a real number."""

    nargs = 1

    def fdiff(self, argindex=1):
        return Jump(self.args[0])


class Magnitude(sp.Function):
    """The absolute value of a real number; its slope at 0 is anything between -1 and 1."""

    nargs = 1

    def fdiff(self, argindex=1):
        return Side(self.args[0])


class Kind(Enum):
    """What a condition on u(x) says; the values are the sentences that name its failure."""

    POSITIVE = "the field is undefined where it is not positive"
    NONNEGATIVE = "the field is undefined where it is negative"
    SOFT = "the field is undefined where it is negative, and smooth up to the edge"
    NONZERO = "the field is undefined where it vanishes"
    POLE = "the field has a pole where it vanishes"
    JUMP = "the field may jump where it vanishes"


@dataclass(frozen=True)
class Condition:
    """A condition on the value u of an expression, for the field to be defined and smooth."""

    expression: sp.Expr
    kind: Kind

    @property
    def failure(self) -> sp.Basic:
        """What is named as excluded: u itself where it must not vanish, else the relation that must not hold."""
        # Unevaluated: a state that is declared to be positive would turn it into False.
        if self.kind in (Kind.NONNEGATIVE, Kind.SOFT):
            return sp.StrictLessThan(self.expression, 0, evaluate=False)
        if self.kind is Kind.POSITIVE:
            return sp.LessThan(self.expression, 0, evaluate=False)
        return self.expression


_REWRITTEN: dict[type, Callable[..., Any]] = {
    sp.Abs: Magnitude,
    sp.sign: Side,
    sp.Heaviside: lambda u, *_: (1 + Side(u)) / 2,
    sp.tan: lambda u: sp.sin(u) / sp.cos(u),
    sp.cot: lambda u: sp.cos(u) / sp.sin(u),
    sp.sec: lambda u: 1 / sp.cos(u),
    sp.csc: lambda u: 1 / sp.sin(u),
    sp.coth: lambda u: sp.cosh(u) / sp.sinh(u),
    sp.sech: lambda u: 1 / sp.cosh(u),
    sp.csch: lambda u: 1 / sp.sinh(u),
    sp.LambertW: lambda z, k=sp.S.Zero: RealLambertW(z, k),
}

_PLAIN: dict[type, Callable[..., Any]] = {Magnitude: sp.Abs, Side: sp.sign, RealLambertW: sp.LambertW}


def prepared(expression: sp.Expr) -> sp.Expr:
    """The same real function, written with what `fixedpoints.boxes.ranges` can bound."""
    written: Any = expression
    for head, form in _REWRITTEN.items():
        if written.has(head):
            written = written.replace(head, form)
    return written


def plain(expression: sp.Basic) -> Any:
    """A prepared expression with SymPy's own functions again, which know their values at exact numbers."""
    written: Any = expression
    for head, form in _PLAIN.items():
        if written.has(head):
            written = written.replace(head, form)
    return written


def conditions(expressions: Sequence[sp.Expr]) -> tuple[Condition, ...]:
    """All that must hold at a point for prepared expressions to be defined there, and smooth around it."""
    found: dict[Condition, None] = {}
    for expression in expressions:
        for part in sp.preorder_traversal(expression):
            for condition in _conditions_of(part):
                if condition.expression.free_symbols and not _always(condition):
                    found[condition] = None
    return tuple(found)


def cases(expression: sp.Expr, most: int = 16) -> tuple[sp.Expr, ...]:
    """Expressions of which one has the value of a prepared expression at each point, without its jumps.

    Where they are more than `most`, the expression itself.
    """
    steps = sorted(expression.atoms(Side, sp.Piecewise), key=sp.default_sort_key)
    if not steps:
        return (expression,)
    step = steps[-1]
    values = (-1, 0, 1) if isinstance(step, Side) else [value for value, _ in step.args]
    found: dict[sp.Expr, None] = {}
    for value in values:
        found.update(dict.fromkeys(cases(expression.xreplace({step: sp.sympify(value)}), most)))
    return tuple(found) if len(found) <= most else (expression,)


def without_poles(
    expression: sp.Expr, may_vanish: Callable[[sp.Expr], bool]
) -> tuple[sp.Expr, dict[sp.Expr, sp.Rational]]:
    """A numerator and denominators with  expression = numerator / prod base^exponent.

    Only denominators that may vanish are multiplied out, and no bracket is expanded.
    """
    if isinstance(expression, sp.Add):
        parts = [without_poles(term, may_vanish) for term in expression.args]
        common: dict[sp.Expr, sp.Rational] = {}
        for _, below in parts:
            for base, exponent in below.items():
                common[base] = max(exponent, common.get(base, sp.S.Zero))
        terms = [top * _product(common, less=below) for top, below in parts]
        return sp.Add(*terms), common
    if isinstance(expression, sp.Mul):
        parts = [without_poles(factor, may_vanish) for factor in expression.args]
        common = {}
        for _, below in parts:
            for base, exponent in below.items():
                common[base] = exponent + common.get(base, sp.S.Zero)
        return sp.Mul(*(top for top, _ in parts)), common
    if isinstance(expression, sp.Pow) and expression.exp.is_Rational:
        return _power_without_poles(expression, may_vanish)
    return expression, {}


def _power_without_poles(power: sp.Pow, may_vanish) -> tuple[sp.Expr, dict[sp.Expr, sp.Rational]]:
    base, exponent = power.args
    if not exponent.is_Integer:
        if exponent < 0 and may_vanish(base):
            return sp.S.One, {base: -exponent}
        return power, {}
    top, below = without_poles(base, may_vanish)
    if exponent > 0:
        return top**exponent, {b: e * exponent for b, e in below.items()}
    numerator, poles = _product(below) ** -exponent, {}
    for factor in sp.Mul.make_args(top):
        root, order = factor.as_base_exp() if factor.is_Pow and factor.exp.is_Rational else (factor, sp.S.One)
        if may_vanish(root):
            poles[root] = poles.get(root, sp.S.Zero) - order * exponent
        else:
            numerator *= factor**exponent
    return numerator, poles


def _product(powers: dict[sp.Expr, sp.Rational], less: dict[sp.Expr, sp.Rational] | None = None) -> sp.Expr:
    less = less or {}
    return sp.Mul(*(base ** (exponent - less.get(base, sp.S.Zero)) for base, exponent in powers.items()))


def _conditions_of(part: sp.Basic) -> list[Condition]:
    if isinstance(part, sp.Pow) and not isinstance(part, sp.exp):
        return _conditions_of_power(*part.args)
    if isinstance(part, sp.Piecewise):
        return [
            Condition(relation.lhs - relation.rhs, Kind.JUMP)
            for _, truth in part.args
            for relation in truth.atoms(sp.core.relational.Relational)
        ]
    if not isinstance(part, sp.Function):
        return []
    u = part.args[0]
    if isinstance(part, sp.log):
        return [Condition(u, Kind.POSITIVE)]
    if isinstance(part, Side):
        return [Condition(u, Kind.JUMP)]
    if isinstance(part, (sp.asin, sp.acos)):
        return [Condition(1 - u**2, Kind.NONNEGATIVE)]
    if isinstance(part, sp.atanh):
        return [Condition(1 - u**2, Kind.POSITIVE)]
    if isinstance(part, sp.acosh):
        return [Condition(u - 1, Kind.NONNEGATIVE)]
    if isinstance(part, RealLambertW):
        edge = Condition(u + sp.exp(-1), Kind.NONNEGATIVE)
        return [edge] if part.args[1] == 0 else [edge, Condition(-u, Kind.POSITIVE)]
    return []


def _conditions_of_power(base: sp.Expr, exponent: sp.Expr) -> list[Condition]:
    if not exponent.is_Rational:
        return [Condition(base, Kind.POSITIVE)]
    if exponent.is_Integer:
        return [Condition(base, Kind.NONZERO)] if exponent < 0 else []
    if exponent < 0:
        return [Condition(base, Kind.POSITIVE)]
    return [Condition(base, Kind.SOFT if exponent > 1 else Kind.NONNEGATIVE)]


def _always(condition: Condition) -> bool:
    """Whether the condition holds for every real argument, as far as SymPy sees."""
    u, kind = condition.expression, condition.kind
    if kind is Kind.POSITIVE:
        return u.is_positive is True
    if kind in (Kind.NONNEGATIVE, Kind.SOFT):
        return u.is_nonnegative is True
    return u.is_nonzero is True
