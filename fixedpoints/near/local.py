"""A rule seen from one of its fixed points: that it is one, where exactly, and Taylor polynomials there.

A point may come as exact numbers or as floats. Floats are taken for an approximation: the fixed point that
they mean is found exactly where it is rational, else in a ball of some 70 digits.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import sympy as sp
from flint import arb, ctx, fmpq

from fixedpoints.arguments import System, coordinates, rule_and_numbers
from fixedpoints.near.balls import (
    BITS,
    FLOAT_ERROR,
    SLACK,
    Matrix,
    Number,
    as_ball,
    as_float,
    as_rational,
    dot,
    float_matrix,
    identity,
    is_exact,
    radius,
    solve,
    to_rational,
    vanishes,
    widened,
)
from fixedpoints.near.jets import Jet, NotSmoothError, UndefinedHereError, constant, expand, variable
from fixedpoints.near.refinement import iterated, newton_step, shortest_step
from fixedpoints.points import NotAFixedPointError
from symbolic.field import IteratedMap, VectorField

__all__ = ["REACH", "Local", "Located", "located"]

#: How far the floats of a point may lie from the fixed point: relative to its largest coordinate, and in the
#: units of the state for points at the origin.
REACH = (1e-8, 1e-14)

#: Rational coordinates are recognised up to this denominator.
_LARGEST_DENOMINATOR = 10**6
_WELL_CONDITIONED = 1e10


@dataclass(frozen=True, eq=False)
class Local:
    """The rule near x*:  phi(x* + u)  with phi = f for a flow and phi = f - id for a map; phi(x*) = 0.

    Args:
        rule: the flow or the map.
        values: a number for each parameter.
        at: x*, rational or in balls.
        error: relative radius of the balls as which floats in the rule are read; 0 reads them as they are.
        twice: whether the map is applied twice, phi = f(f(.)) - id.
    """

    rule: VectorField | IteratedMap
    values: Mapping[sp.Symbol, float]
    at: tuple[Number, ...]
    error: float = 0.0
    twice: bool = False

    @property
    def is_map(self) -> bool:
        """Whether time runs in steps."""
        return isinstance(self.rule, IteratedMap)

    def phi(self, displacement: Sequence[Jet]) -> list[Jet]:
        """The Taylor polynomials of phi(x* + u) for displacements u that vanish at 0."""
        order = displacement[0].order
        place = [u + constant(c, order) for u, c in zip(displacement, self.at, strict=True)]
        image = self._image(place, order)
        if not self.is_map:
            return image
        if self.twice:
            image = self._image(image, order)
        return [f + x.times(fmpq(-1)) for f, x in zip(image, place, strict=True)]

    def expansion(self, order: int) -> list[Jet]:
        """phi in all coordinates, u = (x_0, ..., x_{n-1})."""
        return self.phi([variable(j, order) for j in range(len(self.at))])

    def value(self) -> list[Number]:
        """phi(x*)."""
        return [jet.value for jet in self.expansion(0)]

    def slopes(self) -> tuple[list[Number], Matrix]:
        """phi(x*) and its Jacobian there."""
        return self._slopes

    @cached_property
    def _slopes(self) -> tuple[list[Number], Matrix]:
        jets = self.expansion(1)
        return [jet.value for jet in jets], [[jet[j,] for j in range(len(jets))] for jet in jets]

    def _image(self, place: Sequence[Jet], order: int) -> list[Jet]:
        read = partial(_ball, error=self.error) if self.error else as_rational
        values = {p: constant(read(v), order) for p, v in self.values.items()}
        return expand(
            self.rule.rhs, values | dict(zip(self.rule.state, place, strict=True)), order, number=read
        )


@dataclass(frozen=True, eq=False)
class Located:
    """A fixed point that is one.

    Args:
        nominal: seen with all floats read as the rationals that they are.
        location: by state name; floats, or what was given for a bare rule.
        residual: largest |phi_i| at the floats of the location.
        has_floats: whether the rule with its parameters holds floats at all.
    """

    nominal: Local
    location: dict[str, float | sp.Expr]
    residual: float
    has_floats: bool

    @cached_property
    def bounded(self) -> Local:
        """With floats uncertain by `FLOAT_ERROR`, and the point as uncertain as that makes it: for bounds."""
        return _loosened(self.nominal, FLOAT_ERROR) if self.has_floats else self.nominal

    @cached_property
    def loose(self) -> Local:
        """The same with `SLACK`: for decisions."""
        return _loosened(self.nominal, SLACK) if self.has_floats else self.nominal


def located(
    system: System,
    point: Mapping,
    enclosure: Mapping[str, tuple[sp.Rational, sp.Rational]] | None = None,
) -> Located:
    """The fixed point that a point means.

    Exact coordinates (integers, fractions, SymPy numbers without floats) of a rule without floats must make
    phi vanish exactly. Otherwise Newton's method with some 70 digits must end within `REACH` of the point.

    Raises:
        NotAFixedPointError: there is no fixed point within reach, or phi is not defined at the point.
    """
    with ctx.workprec(BITS):
        return _located(system, point, enclosure)


def _located(system, point: Mapping, enclosure) -> Located:
    rule, values = rule_and_numbers(system)
    given = coordinates(rule, point)
    start = [_number(value, name) for name, value in zip(rule.names, given, strict=True)]
    if enclosure is not None:
        start = _inside(start, [enclosure[name] for name in rule.names])
    has_floats = bool(values) or any(f.has(sp.Float) for f in rule.rhs)
    local = Local(rule, values, tuple(start))
    exact_point = all(_is_exact(value) for value in given)
    try:
        at = _settled(local, exact_point and not has_floats, enclosure)
    except UndefinedHereError as reason:
        raise NotAFixedPointError(
            f"The rule is not defined at {_named(rule, start)}: {reason}. A fixed point lies where it is.",
            math.nan,
        ) from None
    nominal = replace(local, at=at)
    bare = system is rule
    location = {
        name: sp.sympify(value) if bare and _is_exact(value) else as_float(x)
        for name, value, x in zip(rule.names, given, at, strict=True)
    }
    return Located(nominal, location, _residual(nominal), has_floats)


def _ball(number: float | sp.Float, error: float) -> Number:
    exact = as_rational(number)
    return exact if exact == 0 else widened(exact, abs(as_ball(exact)) * arb(error))


def _is_exact(value: object) -> bool:
    if isinstance(value, sp.Expr):
        return not value.has(sp.Float)
    return isinstance(value, numbers.Rational)


def _number(value: object, name: str) -> Number:
    """A coordinate as an exact number, or as a ball where it is irrational."""
    if isinstance(value, numbers.Rational) and not isinstance(value, bool):
        return fmpq(int(value.numerator), int(value.denominator))
    if isinstance(value, (sp.Expr, numbers.Real)) and not isinstance(value, (bool, str)):
        expression = sp.sympify(float(value)) if isinstance(value, np.floating) else sp.sympify(value)
        if expression.free_symbols:
            raise ValueError(
                f"The coordinate {name} must be a number for a rule without symbolic parameters; "
                f"got {expression}."
            )
        if expression.is_finite and expression.is_real is not False:
            if expression.is_Float or expression.is_Rational:
                return as_rational(expression)
            return expand([expression], {}, 0)[0].value
        raise ValueError(f"The coordinate {name} must be real and finite; got {value}.")
    raise TypeError(f"The coordinate {name} must be one real number; got {value!r}.")


def _inside(start: list[Number], bounds: Sequence[tuple[sp.Rational, sp.Rational]]) -> list[Number]:
    """Coordinates whose enclosure is a single rational are that rational."""
    return [as_rational(low) if low == high else x for x, (low, high) in zip(start, bounds, strict=True)]


def _named(rule: VectorField | IteratedMap, at: Sequence[Number]) -> str:
    return (
        "{" + ", ".join(f"{name}: {as_float(x):.10g}" for name, x in zip(rule.names, at, strict=True)) + "}"
    )


def _settled(local: Local, must_be_exact: bool, enclosure) -> tuple[Number, ...]:
    """x* to all the digits that can be had."""
    value = local.value()
    # A rational value is 0 or is not; a ball of 70 digits that holds 0 leaves no reasonable doubt.
    if all(vanishes(v) for v in value):
        return local.at
    if must_be_exact:
        raise _refusal(local, value, "Its coordinates are exact, so phi must vanish exactly.")
    for step in (newton_step, shortest_step):
        found = iterated(local, step)
        if found is not None and _near(local, found, enclosure):
            return _snapped(local, found, 2.0**-50, 0.0) or found
    snapped = _snapped(local, local.at, *REACH)
    if snapped is not None and _near(local, snapped, enclosure):
        return snapped
    if enclosure is not None:
        box = tuple(_hull(*enclosure[name]) for name in local.rule.names)
        if all(vanishes(v) for v in replace(local, at=box).value()):
            return box
    raise _refusal(local, value, _elsewhere(local))


def _refusal(local: Local, value: Sequence[Number], hint: str) -> NotAFixedPointError:
    worst = max(range(len(value)), key=lambda i: abs(as_float(value[i])))
    size = abs(as_float(value[worst]))
    name = local.rule.names[worst]
    what = f"moves {name} by" if local.is_map else f"has d{name}/dt ="
    return NotAFixedPointError(
        f"{_named(local.rule, local.at)} is not a fixed point: the {'map' if local.is_map else 'flow'} "
        f"{what} {as_float(value[worst]):.6g} there. {hint}",
        size,
    )


def _elsewhere(local: Local) -> str:
    found = iterated(local, newton_step)
    if found is None:
        return "Newton's method from there finds none. Search with fixedpoints.find."
    gap = max(abs(as_float(a) - as_float(b)) for a, b in zip(local.at, found, strict=True))
    return f"Newton's method from there leads to {_named(local.rule, found)}, {gap:.3g} away; classify that."


def _near(local: Local, found: Sequence[Number], enclosure) -> bool:
    """Whether a fixed point lies in the enclosure or, without one, within reach of the floats."""
    if enclosure is None:
        return _within(local, local.at, found, *REACH)
    return all(
        as_ball(x).overlaps(_hull(*enclosure[name])) for name, x in zip(local.rule.names, found, strict=True)
    )


def _within(local: Local, a: Sequence[Number], b: Sequence[Number], relative: float, absolute: float) -> bool:
    size = max(abs(as_float(x)) for x in local.at)
    return all(
        abs(as_float(x) - as_float(y)) <= relative * size + absolute for x, y in zip(a, b, strict=True)
    )


def _hull(low: sp.Rational, high: sp.Rational) -> arb:
    return arb(as_rational(low)).union(arb(as_rational(high)))


def _snapped(
    local: Local, start: Sequence[Number], relative: float, absolute: float
) -> tuple[Number, ...] | None:
    """A rational point next to the start where phi vanishes exactly."""
    near = tuple(as_rational(to_rational(x).limit_denominator(_LARGEST_DENOMINATOR)) for x in start)
    if not _within(local, start, near, relative, absolute):
        return None
    try:
        value = replace(local, at=near).value()
    except UndefinedHereError:
        return None
    return near if is_exact(value) and all(v == 0 for v in value) else None


def _loosened(nominal: Local, error: float) -> Local:
    spread = [arb(radius(v)) for v in replace(nominal, error=error).value()]
    moves = [abs(as_ball(x)).upper() * error for x in nominal.at]
    try:
        slopes = [[as_ball(x).mid() for x in row] for row in nominal.slopes()[1]]
        # On a set of fixed points the inverse says nothing about where on it a point lies.
        if np.linalg.cond(float_matrix(slopes)) < _WELL_CONDITIONED:
            inverse = solve(slopes, identity(len(spread)))
            shifts = [2 * dot([abs(x).upper() for x in row], spread) for row in inverse]
            size = max(abs(as_float(x)) for x in nominal.at) or 1.0
            moves = shifts if all(shift < 2.0**-10 * size for shift in shifts) else moves
    except (ZeroDivisionError, NotSmoothError):
        pass
    at = tuple(x if m == 0 else widened(x, m) for x, m in zip(nominal.at, moves, strict=True))
    return replace(nominal, at=at, error=error)


def _residual(nominal: Local) -> float:
    floats = tuple(as_rational(as_float(x)) for x in nominal.at)
    try:
        return max(abs(as_float(v)) for v in replace(nominal, at=floats).value())
    except UndefinedHereError:
        return math.nan


def rational_location(local: Local) -> tuple[sp.Rational, ...] | None:
    """x* where it is known exactly, else None."""
    return tuple(map(to_rational, local.at)) if is_exact(list(local.at)) else None
