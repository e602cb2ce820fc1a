"""What can be found about a rule without being told: polynomial first integrals, smaller flows, time courses.

Everything is proven by those who make it (`conservation`, `reduction`, `closed_form`); here is only the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from symbolic import closed_form, conservation
from symbolic.closed_form import ClosedForm
from symbolic.conservation import FirstIntegral
from symbolic.errors import NoClosedFormError, NotClosedError, NotInvariantError, UndecidedError
from symbolic.field import VectorField
from symbolic.reduction import Reduction, project, restrict

__all__ = ["DEGREE", "Discovery", "discover", "invariant_lines", "laws", "observed", "polynomial_integrals"]

#: The largest total degree of the polynomial first integrals that are looked for.
DEGREE = 2


@dataclass(frozen=True, eq=False)
class Discovery:
    """What was found about a flow.

    Args:
        integrals: a basis of all polynomial first integrals up to degree DEGREE.
        no_integrals: why they were not looked for; empty if they were.
        reductions: smaller flows by name, each with the starts on which it is exact.
    """

    integrals: tuple[FirstIntegral, ...]
    no_integrals: str
    reductions: Mapping[str, Reduction]


def discover(
    field: VectorField,
    observables: Mapping[str, sp.Expr] | None = None,
    integrals: Mapping[str, FirstIntegral] | None = None,
) -> Discovery:
    """Look for polynomial first integrals, invariant lines of a plane, and observables whose flow closes.

    Args:
        field: the flow.
        observables: expressions in states and parameters, by name.
        integrals: first integrals that are known already, by the names that their values shall bear.
    """
    known = dict(integrals or {})
    refusal = ""
    if field.time is not None:
        refusal = "the flow depends on time"
    elif not all(f.is_rational_function(*field.state) for f in field.rhs):
        refusal = "the right-hand sides are not rational in the state"
    found = () if refusal else polynomial_integrals(field)
    if not known:
        known = {f"C_{i}": integral for i, integral in enumerate(found, 1)}
    reductions = {**invariant_lines(field), **observed(field, observables or {}, known)}
    return Discovery(found, refusal, reductions)


def polynomial_integrals(field: VectorField) -> tuple[FirstIntegral, ...]:
    """A basis of all polynomial first integrals of degree at most DEGREE.

    Raises:
        ValueError: the field depends on time, or is not rational in its state.
    """
    return conservation.find(field, degree=DEGREE)


def invariant_lines(field: VectorField) -> dict[str, Reduction]:
    """The flow on those of the lines x = 0, y = 0, x = y and x = -y of a plane that it never leaves.

    Lines on which nothing moves are left out: their points are fixed.
    """
    if len(field.state) != 2 or field.time is not None:
        return {}
    x, y = field.state
    found = {}
    for on, image, state in ((y, 0, x), (x, 0, y), (y, x, x), (y, -x, x)):
        try:
            line = restrict(field, {on: sp.sympify(image)}, state=(state,))
        except (NotInvariantError, UndecidedError):
            continue
        if line.rhs[0] != 0:
            where = f"{on} = {image}"
            found[where] = Reduction(line, {}, f"starts with {where}")
    return found


def observed(
    field: VectorField, observables: Mapping[str, sp.Expr], integrals: Mapping[str, FirstIntegral]
) -> dict[str, Reduction]:
    """The flow of each observable that closes by itself, or once the values of the first integrals are known.

    Args:
        field: an autonomous flow.
        observables: expressions in states and parameters, by name.
        integrals: first integrals by the names that their values shall bear.
    """
    if field.time is not None:
        return {}
    taken = {symbol.name for symbol in (*field.state, *field.parameters)}
    values = {
        sp.Symbol(name, real=True): integral for name, integral in integrals.items() if name not in taken
    }
    found = {}
    for name, expression in observables.items():
        for given in ({}, values):
            try:
                flow = project(field, {sp.Symbol(name, real=True): expression}, given=given)
            except (NotClosedError, UndecidedError, ValueError):
                continue
            known = ", ".join(f"{value} = {integral.expression}" for value, integral in given.items())
            found[name] = Reduction(flow, {}, f"every start{f', given {known}' if known else ''}")
            break
    return found


def laws(fields: Mapping[str, VectorField]) -> dict[str, ClosedForm | NoClosedFormError]:
    """The time course of each scalar field, or why none was found."""
    found: dict[str, ClosedForm | NoClosedFormError] = {}
    for name, field in fields.items():
        try:
            found[name] = closed_form.solve(field)
        except NoClosedFormError as refusal:
            found[name] = refusal
    return found
