"""Fixed points of a bare rule, as expressions of its parameters, with the conditions under which they exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any

import sympy as sp

from fixedpoints.algebraic import poles, sign_of
from fixedpoints.points import Certificate, Component, FixedPoint, FixedPoints
from symbolic.varieties.deadline import BudgetExceeded, Deadline, TooLargeError
from symbolic.varieties.expressions import (
    ExpressedPoint,
    NotExpressibleError,
    Writer,
    at_least_zero,
    condition,
    denominators,
)
from symbolic.varieties.form import PolynomialForm, polynomial_form
from symbolic.varieties.parametric import Generic, GenericSolver
from symbolic.varieties.polynomials import normal, ring
from symbolic.varieties.states import expression_of
from symbolic.zero import is_zero, witness_points

__all__ = ["generic_points", "parametric_points", "same"]


def parametric_points(
    rhs: Sequence[sp.Expr], state: Sequence[sp.Symbol], parameters: Sequence[sp.Symbol], deadline: Deadline
) -> FixedPoints:
    """Every real zero of right-hand sides with parameters.

    Points and components hold for all parameters under their conditions, but for the exceptions; those that
    exist only at an exception have it among their conditions.

    Args:
        deadline: until when an answer is wanted.
    Raises:
        NotAlgebraic: the field is not polynomial or rational and no known substitution makes it so.
        BudgetExceeded: the time is over, or the elimination grows too large.
    """
    from fixedpoints.exceptions import audited, followed

    # Real stand-ins: what is known of squares and signs then shows in the conditions.
    real = {p: sp.Symbol(p.name, real=True) for p in parameters if p.is_real is None}
    given = {dummy: p for p, dummy in real.items()}
    written = [sp.sympify(f.xreplace(real)) for f in rhs]
    letters = [real.get(p, p) for p in parameters]
    found = generic_points(written, state, letters, deadline)
    found = followed(found, written, state, letters, deadline)
    return _renamed(audited(found, written, state, letters, deadline), given)


def generic_points(
    rhs: Sequence[sp.Expr], state: Sequence[sp.Symbol], parameters: Sequence[sp.Symbol], deadline: Deadline
) -> FixedPoints:
    """The zeros for all parameters but exceptional ones; args and errors as in `parametric_points`."""
    form = polynomial_form(rhs, state, parameters, deadline)
    # The ring's last unknown is spare, as `ideals` wants it.
    symbols = (*form.unknowns, *parameters, sp.Dummy("spare"))
    context = ring([f"x{i}" for i in range(len(symbols))])
    signs = (*form.signs, *map(sign_of, parameters), "")
    equations, nonzero = (
        [normal(context.from_dict({(*m, 0): c for m, c in p.items()})) for p in group]
        for group in (form.equations, form.nonzero)
    )
    try:
        solver = GenericSolver(len(form.unknowns), signs, deadline.brief())
        branches = solver.solve(equations)
        return _Answer(form, Writer(symbols), solver, nonzero).of(branches)
    except TooLargeError:
        raise BudgetExceeded(
            "The elimination with symbolic parameters grows too large. Give numbers for some parameters."
        ) from None


def same(a: Sequence[sp.Expr], b: Sequence[sp.Expr]) -> bool:
    """Whether two points are the same for all parameters; numbers tell most of them apart."""
    differences = [x - y for x, y in zip(a, b, strict=True)]
    return not any(map(_differs, differences)) and all(
        is_zero(difference) is True for difference in differences
    )


@dataclass(frozen=True)
class _Place:
    """A fixed point in the making: the states' values, and the conditions."""

    values: tuple[sp.Expr, ...]
    conditions: tuple[sp.Basic, ...]


class _Answer:
    """From branches of the unknowns to points and components of the states."""

    def __init__(self, form: PolynomialForm, writer: Writer, solver: GenericSolver, nonzero: Sequence[Any]):
        self.form, self.writer, self.solver, self.nonzero = form, writer, solver, tuple(nonzero)

    def of(self, branches: Sequence[Generic]) -> FixedPoints:
        places: list[_Place] = []
        components = []
        for branch in branches:
            try:
                points = None if branch.dimension else self.writer.points(branch, self.solver)
            except NotExpressibleError:
                points = None
            if points is not None:
                places += [p for point in points for p in self._placed(point, branch)]
            elif self._is_possible(branch):
                components.append(self._component(branch))
        components = self._largest(components)
        places = self._distinct([p for p in places if not self._covered(p, components)])
        names = [s.state.name for s in self.form.states]
        points = tuple(
            FixedPoint(dict(zip(names, p.values, strict=True)), (), "", conditions=p.conditions)
            for p in sorted(places, key=lambda p: [sp.default_sort_key(v) for v in p.values])
        )
        reason = (
            "exact elimination over the rational functions of the parameters, for all but exceptional ones"
        )
        exceptions = [_equation(self.writer.plain(e)) for e in self.solver.exceptions]
        return FixedPoints(
            points,
            tuple(components),
            Certificate("complete", reason, len(points)),
            excluded=(*poles(self.form), *self.form.undefined),
            exceptions=tuple(dict.fromkeys(e for e in exceptions if e != sp.false)),
            periods={s.state.name: 2 * sp.pi / s.unit for s in self.form.states if s.kind == "angle"},
        )

    def _placed(self, point: ExpressedPoint, branch: Generic) -> list[_Place]:
        """The point's states, if it is one for all parameters but exceptional ones."""
        here = {self.writer.symbols[i]: value for i, value in point.values.items()}
        needed = list(point.conditions)
        for u, sign in zip(self.form.unknowns, self.form.signs, strict=True):
            if sign and _is_minus_root(here[u]):
                return []
            if sign:
                needed.append(sp.Gt(here[u], 0) if sign == "positive" else at_least_zero(here[u]))
                self._note([here[u]])
        for polynomial in (*branch.nonzero, *self.nonzero):
            value = self.writer.tidy(self.writer.plain(polynomial).subs(here))
            if self.writer.vanishes(value):
                return []
            # Where the value's denominator vanishes the point is at infinity, and its own conditions say so.
            needed += [sp.Ne(factor, 0) for factor in _factors(sp.numer(value))]
            self._note([value])
        values = tuple(expression_of(s, tuple(here[u] for u in s.unknowns)) for s in self.form.states)
        needed += [sp.Ne(below, 0) for value in values for below in denominators(value)]
        kept: list[sp.Basic] = []
        for relation in needed:
            holds = condition(relation)
            if holds is None:
                return []
            kept += [r for r in holds if r not in kept]
        return [_Place(values, tuple(kept))]

    def _is_possible(self, branch: Generic) -> bool:
        """Whether what must not vanish does not vanish all over a component."""
        return not any(self.solver.contains(branch.equations, p) for p in (*branch.nonzero, *self.nonzero))

    def _component(self, branch: Generic) -> Component:
        expressions = [self.writer.plain(e).xreplace(self.form.meanings) for e in branch.equations]
        kept = [sp.factor_terms(e) for e in expressions if _differs(e) or is_zero(e) is not True]
        return Component(tuple(sorted(kept, key=sp.default_sort_key)), branch.dimension)

    def _largest(self, components: Sequence[Component]) -> list[Component]:
        """Without those that have all the equations of another one."""
        kept: list[Component] = []
        for component in sorted(components, key=lambda c: (-c.dimension, str(c.equations))):
            if not any(set(other.equations) <= set(component.equations) for other in kept):
                kept.append(component)
        return kept

    def _covered(self, place: _Place, components: Sequence[Component]) -> bool:
        """Whether a point lies on a component for all parameters; where it does for some is an exception."""
        here = {s.state: v for s, v in zip(self.form.states, place.values, strict=True)}
        covered = False
        for component in components:
            left = [e.subs(here) for e in component.equations]
            covered |= same(left, [sp.S.Zero] * len(left))
            self._note(left)
        return covered

    def _distinct(self, places: Sequence[_Place]) -> list[_Place]:
        kept: list[_Place] = []
        for place in sorted(places, key=lambda p: len(p.conditions)):
            self.solver.deadline.check()
            if not any(same(place.values, other.values) for other in kept):
                kept.append(place)
        for a, b in combinations(kept, 2):
            self.solver.deadline.check()
            self._note([x - y for x, y in zip(a.values, b.values, strict=True)])
        return kept

    def _note(self, expressions: Sequence[sp.Expr]) -> None:
        """Remember where expressions of parameters vanish together."""
        numerators = [self.writer.numerator(_norm(e)) for e in expressions if e != 0]
        if numerators and None not in numerators:
            self.solver.note(reduce(lambda a, b: a.gcd(b), numerators))


def _factors(expression: sp.Expr) -> list[sp.Expr]:
    """The bases of a product's factors that are no numbers."""
    return [f.as_base_exp()[0] for f in sp.Mul.make_args(expression) if f.free_symbols]


def _is_minus_root(value: sp.Expr) -> bool:
    """Whether a value is minus an even root, hence negative for all parameters but exceptional ones."""
    return (-value).is_Pow and (-value).exp.is_Rational and not (-value).exp.is_Integer


def _differs(expression: sp.Expr) -> bool:
    """Whether numbers show that an expression of parameters is not zero."""
    if expression == 0:
        return False
    for numbers in witness_points(expression.free_symbols, 2):
        value = sp.N(expression.subs(numbers), 30)
        if value.is_number and abs(value) > sp.Float("1e-15"):
            return True
    return False


def _norm(expression: sp.Expr) -> sp.Expr:
    """The product over both signs of each square root in an expression: zero wherever one of them is."""
    for _ in range(3):
        roots = [p for p in expression.atoms(sp.Pow) if p.exp in (sp.S.Half, -sp.S.Half)]
        if not roots:
            break
        base = sp.Dummy("r")
        root = sp.sqrt(roots[0].base)
        plain = expression.subs(root, base)
        expression = sp.expand(sp.expand(plain * plain.subs(base, -base)).subs(base, root))
    return expression


def _equation(polynomial: sp.Expr) -> sp.Basic:
    """The relation p = 0, solved for its symbol where there is one and the equation is linear."""
    if len(polynomial.free_symbols) == 1:
        (symbol,) = polynomial.free_symbols
        p = sp.Poly(polynomial, symbol)
        if p.degree() == 1:
            return sp.Eq(symbol, -p.nth(0) / p.nth(1))
    return sp.Eq(polynomial, 0)


def _renamed(found: FixedPoints, names: dict[sp.Symbol, sp.Symbol]) -> FixedPoints:
    """With the user's parameters in the place of real ones."""

    def relations(group):
        return tuple(relation.xreplace(names) for relation in group)

    return replace(
        found,
        points=tuple(
            replace(
                p,
                location={name: value.xreplace(names) for name, value in p.location.items()},
                conditions=relations(p.conditions),
            )
            for p in found.points
        ),
        components=tuple(
            Component(relations(c.equations), c.dimension, relations(c.conditions)) for c in found.components
        ),
        excluded=relations(found.excluded),
        exceptions=relations(found.exceptions),
        periods={name: period.xreplace(names) for name, period in found.periods.items()},
    )
