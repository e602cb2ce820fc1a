"""How a flow gets smaller: restricted to an invariant manifold, or projected on observables that close.

Both are proven by substitution or refused; the residual is on the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from symbolic.conservation import FirstIntegral
from symbolic.errors import NotClosedError, NotInvariantError, UndecidedError
from symbolic.field import VectorField
from symbolic.zero import exact, is_zero, residual, witness_points

__all__ = ["Reduction", "project", "restrict", "specialise"]


@dataclass(frozen=True, eq=False)
class Reduction:
    """A proven reduced field together with what it says about the model.

    `field` is the reduced flow, `observables` maps names (such as "loss") to expressions in its state and
    parameters, and `exact_on` states in words the starts on which it is exact.
    """

    field: VectorField
    observables: dict[str, sp.Expr]
    exact_on: str


def specialise(field: VectorField, values: Mapping[sp.Symbol, sp.Expr]) -> VectorField:
    """The same field with some parameters replaced by expressions in the others or in new parameters.

    Args:
        values: parameter -> expression, e.g. {lambda_1: lam, lambda_2: lam} for a white covariance.
    Raises:
        ValueError: a key is not a parameter, or an expression uses a state or the time.
    """
    strangers = sorted(str(p) for p in values if p not in field.parameters)
    if strangers:
        raise ValueError(
            f"{strangers} are not parameters of the field; it has {[p.name for p in field.parameters]}."
        )
    values = {p: sp.sympify(value) for p, value in values.items()}
    moving = {*field.state, field.time}
    if any(value.free_symbols & moving for value in values.values()):
        raise ValueError(
            f"Parameters are constants; {values} uses the state or the time. Use `restrict` instead."
        )
    rhs = tuple(f.xreplace(values) for f in field.rhs)
    return VectorField(field.state, rhs, _parameters(rhs, field, field.state), field.time, field.source)


def restrict(
    field: VectorField,
    embedding: Mapping[sp.Symbol, sp.Expr],
    *,
    state: Sequence[sp.Symbol],
    relations: Sequence[sp.Expr] = (),
    source: str = "",
) -> VectorField:
    """The flow on the manifold x = E(z) of an ansatz, proven invariant.

    The reduced field g is the solution of  E'(z) g(z) = f(E(z)), n equations for k unknowns: k independent
    ones determine g, and the residual of all n is proven to vanish identically (modulo the relations).

    Args:
        field: the flow dx/dt = f(x), n states.
        embedding: old state -> expression in the new state and in parameters, old or new. A state that is not
            a
            key keeps its name and must then be part of `state`.
        state: the k coordinates z of the manifold.
        relations: polynomials in the parameters that are zero by assumption, e.g. r_1**2 + r_2**2 - 1 for a
            unit vector r.
        source: where the ansatz comes from; the field's own source when empty.
    Returns:
        The field dz/dt = g(z).
    Raises:
        ValueError: the embedding is not one of this field's, or its coordinates are redundant.
        NotInvariantError: the flow leaves the manifold; `residual` maps the offending states to what is left.
        UndecidedError: a residual could be shown neither zero nor non-zero.
    """
    state = tuple(state)
    image = _image(field, embedding, state)
    pushed = [f.xreplace(image) for f in field.rhs]
    jacobian = sp.Matrix([[image[x].diff(z) for z in state] for x in field.state])
    rows = _independent_rows(jacobian, state)
    try:
        rates = list(
            jacobian.extract(rows, list(range(len(state)))).LUsolve(sp.Matrix([pushed[i] for i in rows]))
        )
    except ValueError:
        raise ValueError(
            f"The coordinates {[z.name for z in state]} are redundant on the ansatz {image}."
        ) from None
    reduced = tuple(_plainest(g, state, relations) for g in rates)
    leftovers = {}
    for x, row, f in zip(field.state, jacobian.tolist(), pushed, strict=True):
        gap = sp.Add(*(e * g for e, g in zip(row, reduced, strict=True))) - f
        verdict = is_zero(gap, relations)
        if verdict is None:
            left = residual(gap, relations)
            raise UndecidedError(
                f"Could not decide whether the ansatz is invariant: d{x}/dt leaves {left}.", left
            )
        if not verdict:
            leftovers[x] = residual(gap, relations)
    if leftovers:
        shown = {x.name: left for x, left in list(leftovers.items())[:4]}
        more = f" and {len(leftovers) - 4} more" if len(leftovers) > 4 else ""
        raise NotInvariantError(
            f"The flow leaves the manifold {_shown(image, field)}: residual {shown}{more}. "
            "Add the missing coordinates, or the relation that makes the residual zero.",
            leftovers,
        )
    return VectorField(state, reduced, _parameters(reduced, field, state), field.time, source or field.source)


def project(
    field: VectorField,
    observables: Mapping[sp.Symbol, sp.Expr],
    *,
    given: Mapping[sp.Symbol, FirstIntegral] | None = None,
    source: str = "",
) -> VectorField:
    """The flow of observables P = o(x) when it depends on x through P (and first integrals C = I(x)) alone.

    Each rate dP/dt = f . grad o is written as a function of (P, C) by eliminating x from the polynomial ideal
    <P - o(x), C - I(x), Q - rate(x)>. A square root is taken only of a factor whose sign is proven.

    Args:
        field: the flow dx/dt = f(x), rational in its state.
        observables: new state -> polynomial or rational expression in the old state.
        given: new parameter -> a proven first integral of this field; the parameter is the integral's value.
        source: where the observables come from; the field's own source when empty.
    Returns:
        The field of the observables; its parameters are those of `field` and the values of the integrals
        used.
    Raises:
        ValueError: a name is taken, an integral belongs to another field, or something is not rational.
        NotClosedError: a rate needs more than (P, C), or an unproven sign; `residual` is that rate.
    """
    observables = {p: sp.sympify(o) for p, o in observables.items()}
    given = dict(given or {})
    _check_projection(field, observables, given)
    known = {**observables, **{c: integral.expression for c, integral in given.items()}}
    rhs = tuple(_closed_rate(field, p, field.lie_derivative(o), known) for p, o in observables.items())
    state = tuple(observables)
    return VectorField(state, rhs, _parameters(rhs, field, state), field.time, source or field.source)


def _image(field: VectorField, embedding: Mapping, state: tuple[sp.Symbol, ...]) -> dict[sp.Symbol, sp.Expr]:
    strangers = sorted(str(x) for x in embedding if x not in field.state)
    if strangers:
        raise ValueError(
            f"The embedding sets {strangers}, which are not states {list(field.names)} of the field."
        )
    missing = [x.name for x in field.state if x not in embedding and x not in state]
    if missing:
        raise ValueError(
            f"The embedding says nothing about the states {missing}. "
            "Give each an expression, or list it in `state`."
        )
    image = {x: sp.sympify(embedding.get(x, x)) for x in field.state}
    used = set().union(*(e.free_symbols for e in image.values()))
    unused = [z.name for z in state if z not in used]
    if unused:
        raise ValueError(
            f"The new coordinates {unused} do not occur in the embedding {_shown(image, field)}."
        )
    return image


def _independent_rows(jacobian: sp.Matrix, state: tuple[sp.Symbol, ...]) -> list[int]:
    """k rows whose minor does not vanish identically, the plainest first; found at a rational point."""
    point = next(witness_points(jacobian.free_symbols | set(state)))
    order = sorted(range(jacobian.rows), key=lambda i: (sp.count_ops(jacobian.row(i)), i))
    rows: list[int] = []
    chosen = sp.zeros(0, jacobian.cols)
    for i in order:
        if all(entry == 0 for entry in jacobian.row(i)):
            continue
        candidate = chosen.col_join(jacobian.row(i).subs(point))
        if candidate.rank() > len(rows):
            rows, chosen = [*rows, i], candidate
        if len(rows) == len(state):
            return rows
    raise ValueError(
        f"The new coordinates {[z.name for z in state]} are redundant: the embedding has rank {len(rows)}. "
        "Use as many coordinates as the manifold has dimensions."
    )


def _plainest(expression: sp.Expr, state: tuple[sp.Symbol, ...], relations: Sequence[sp.Expr]) -> sp.Expr:
    """The shortest of a few equal forms of a reduced right-hand side, with the relations used."""
    expression = sp.cancel(sp.together(exact(expression)))
    if relations:
        expression = residual(expression, relations)
    forms = [expression, sp.factor(expression)]
    if expression.is_polynomial(*state):
        terms = sp.Poly(expression, *state).terms()
        monomials = [sp.Mul(*(z**k for z, k in zip(state, powers, strict=True))) for powers, _ in terms]
        forms.append(sp.Add(*(sp.factor(c) * m for (_, c), m in zip(terms, monomials, strict=True))))
    return min(forms, key=sp.count_ops)


def _shown(image: Mapping[sp.Symbol, sp.Expr], field: VectorField) -> str:
    return (
        "{" + ", ".join(f"{x}: {image[x]}" for x in field.state[:6]) + (", ...}" if len(image) > 6 else "}")
    )


def _check_projection(field: VectorField, observables: Mapping, given: Mapping) -> None:
    taken = {s.name for s in (*field.state, *field.parameters)}
    new = [s.name for s in (*observables, *given)]
    clash = sorted({name for name in new if name in taken or new.count(name) > 1})
    if clash or not observables:
        raise ValueError(f"The new names {new} must be non-empty, new and distinct; {clash} are taken.")
    for c, integral in given.items():
        if not isinstance(integral, FirstIntegral):
            raise ValueError(
                f"`given` must hold proven first integrals; {c} is {integral!r}. Use conservation.verify."
            )
        if integral.field != field:
            raise ValueError(
                f"The first integral {integral.expression} was proven for another field, not for this one."
            )
    for expression in (*observables.values(), *(i.expression for i in given.values()), *field.rhs):
        if not expression.is_rational_function(*field.state):
            raise ValueError(
                f"`project` wants expressions that are rational in {list(field.names)}; got {expression}."
            )


def _closed_rate(field: VectorField, name: sp.Symbol, rate: sp.Expr, known: Mapping) -> sp.Expr:
    """`rate` as a function of the known symbols: as a whole if it is rational in them, else factor by
    factor."""
    numerator, denominator = sp.fraction(sp.cancel(sp.together(exact(rate))))
    if numerator == 0:
        return sp.Integer(0)
    top = _eliminated(numerator, field, known, roots=False)
    bottom = _eliminated(denominator, field, known, roots=False)
    if top is not None and bottom is not None:
        return sp.factor(top / bottom)
    closed = sp.Integer(1)
    for part, sign in ((numerator, 1), (denominator, -1)):
        constant, factors = sp.factor_list(part, *field.state)
        closed *= constant**sign
        for base, power in factors:
            value = _eliminated(base**power, field, known, roots=False)
            if value is None:
                root = _eliminated(base, field, known, roots=True)
                value = None if root is None else root**power
            if value is None:
                raise NotClosedError(
                    f"The flow of {name} does not close: its rate {rate} holds {base}, which is not a "
                    f"function of {[s.name for s in known]} with a proven sign. "
                    "Add an observable or a first integral.",
                    rate,
                )
            closed *= value**sign
    return closed


def _eliminated(part: sp.Expr, field: VectorField, known: Mapping, *, roots: bool) -> sp.Expr | None:
    """The polynomial `part` of the state as a function of the known symbols; None when there is none.

    With `roots`, a relation Q**2 = R(known) is accepted too, if `part` is non-negative on all of state space.
    """
    if not part.free_symbols & set(field.state):
        return part
    target = sp.Dummy("Q")
    equations = [target - part]
    for symbol, expression in known.items():
        top, bottom = sp.fraction(sp.together(exact(expression)))
        equations.append(symbol * bottom - top)
    basis = sp.groebner(equations, *field.state, target, *known, order="lex")
    candidates = []
    for element in basis.exprs:
        if element.has(target) and not element.free_symbols & set(field.state):
            candidates.append(sp.Poly(element, target))
    for relation in sorted(candidates, key=sp.Poly.degree):
        value = None
        if relation.degree() == 1:
            value = -relation.nth(0) / relation.nth(1)
        elif roots and relation.degree() == 2 and relation.nth(1) == 0 and _nonnegative(part, field):
            value = sp.sqrt(sp.factor(-relation.nth(0) / relation.nth(2)))
        if value is not None and _holds(relation, target, part, known):
            return value
    return None


def _holds(relation: sp.Poly, target: sp.Symbol, part: sp.Expr, known: Mapping) -> bool:
    """The relation between Q and the known symbols, checked by substitution: the proof of the elimination."""
    return residual(relation.as_expr().xreplace({target: part, **known})) == 0


def _nonnegative(polynomial: sp.Expr, field: VectorField) -> bool:
    """True if every term is an even monomial with a non-negative coefficient: a sum of squares, plainly."""
    return all(
        coefficient.is_nonnegative and all(power % 2 == 0 for power in powers)
        for powers, coefficient in sp.Poly(polynomial, *field.state).terms()
    )


def _parameters(
    rhs: Sequence[sp.Expr], field: VectorField, state: Sequence[sp.Symbol]
) -> tuple[sp.Symbol, ...]:
    """Old parameters that are still used, in their order, then new ones by name."""
    used = set().union(*(f.free_symbols for f in rhs)) - {*state, field.time}
    old = [p for p in field.parameters if p in used]
    return (*old, *sorted(used - set(old), key=lambda symbol: symbol.name))
