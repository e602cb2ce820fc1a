"""A candidate solution of anybody's, proven or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from symbolic.course import Course, branches, moment, positive_starts, real_symbols
from symbolic.field import VectorField
from symbolic.law import ClosedForm, Domain
from symbolic.proof import has_roots, joined, prove_course
from symbolic.zero import exact

__all__ = ["verify"]


def verify(
    field: VectorField,
    candidate: Mapping[sp.Symbol, sp.Expr],
    *,
    time: sp.Symbol,
    initial: Mapping[sp.Symbol, sp.Symbol],
    conditions: Sequence[sp.Basic] = (),
) -> ClosedForm:
    """Prove that a candidate x(t; x_0, p) solves a field, with any number of states, from x(0) = x_0.

    Args:
        field: the flow; if it depends on time, its `time` must be the candidate's.
        candidate: for each state its time course, in time, initial values and parameters.
        time: the symbol of time in the candidate.
        initial: for each state the symbol of its initial value.
        conditions: strict inequalities in time, initial values and parameters under which it is claimed to hold; one
            that holds at t must hold at all earlier times too. Where the candidate divides by a function of time
            that could vanish, the condition that it has not is added.
    Raises:
        TypeError, ValueError: states, symbols or conditions are not as described.
        NotASolutionError: it does not solve the field, or starts elsewhere; carries the residual.
        UndecidedError: it could be neither proven nor disproven.
    """
    paths = _checked(field, candidate, time, initial, conditions)
    starts = tuple(initial[x] for x in field.state)
    derived, remarks = _derived_margins(field, paths, time, starts)
    real = real_symbols((*field.state, *field.parameters, *starts)) | {time: moment(time)}
    bounds = real | positive_starts(starts, conditions)
    course = Course(
        tuple(real[x] for x in field.state),
        tuple(exact(f.xreplace(real)) for f in field.rhs),
        bounds[time],
        tuple(bounds[s] for s in starts),
        tuple(exact(path.xreplace(bounds)) for path in paths),
        tuple(m.xreplace(bounds) for m in (*(c.gts - c.lts for c in conditions), *derived)),
    )
    proof = joined([prove_course(branch) for branch in branches(course)])
    domain = Domain((*conditions, *(sp.Gt(m, 0) for m in derived)), (), remarks)
    explicit = dict(zip(field.state, paths, strict=True))
    return ClosedForm(field, time, dict(initial), explicit, None, None, proof, domain)


def _derived_margins(field, paths, time, starts) -> tuple[tuple[sp.Expr, ...], tuple[str, ...]]:
    """Expressions that are positive until the candidate divides by zero, or turns where f vanishes."""
    margins, remarks = [], []
    for denominator in _denominators(paths, time):
        margins.append(sp.factor(denominator / denominator.subs(time, 0)))
        if not _is_monotone(denominator, time):
            remarks.append(f"whether {denominator} vanished before t and came back is not certified")
    (x, f), *others = zip(field.state, field.rhs, strict=True)
    if not others and has_roots(f, x):
        # Where a root in f vanishes, a candidate may run on along the other branch: its slope then changes sign.
        slope = sp.simplify(paths[0].diff(time) / f.subs(x, starts[0]))
        if slope.subs(time, 0) == 1 and _is_monotone(slope, time):
            margins.append(slope)
    margins = [margin for margin in dict.fromkeys(margins) if not margin.subs(time, moment(time)).is_positive]
    return tuple(margins), tuple(remarks)


def _denominators(paths: Sequence[sp.Expr], time: sp.Symbol) -> list[sp.Expr]:
    found = {}
    for path in paths:
        for power in path.atoms(sp.Pow):
            if power.base.has(time) and power.exp.could_extract_minus_sign():
                found[power.base] = None
    t = sp.Dummy("t", positive=True)
    return [d for d in found if not d.subs(time, t).is_nonzero]


def _is_monotone(expression: sp.Expr, time: sp.Symbol) -> bool:
    """Whether an expression is affine in t or in one exponential exp(k t)."""
    rate = expression.diff(time)
    if not rate.has(time):
        return True
    growth = sp.simplify(rate.diff(time) / rate)
    return not growth.has(time)


def _checked(field, candidate, time, initial, conditions) -> tuple[sp.Expr, ...]:
    if not isinstance(time, sp.Symbol):
        raise TypeError(f"`time` must be a sympy Symbol; got {time!r}.")
    for name, given in (("candidate", candidate), ("initial", initial)):
        if not isinstance(given, Mapping):
            raise TypeError(f"`{name}` must be a mapping from state to expression; got {given!r}.")
        missing, unknown = (
            [x for x in field.state if x not in given],
            [x for x in given if x not in field.state],
        )
        if missing or unknown:
            raise ValueError(
                f"`{name}` must name exactly the states {list(field.names)}; missing {missing}, unknown {unknown}."
            )
    starts = list(initial.values())
    taken = {*field.state, *field.parameters, time}
    if (
        not all(isinstance(s, sp.Symbol) for s in starts)
        or len(set(starts)) < len(starts)
        or taken & set(starts)
    ):
        raise ValueError(
            f"`initial` must give each state its own symbol, none of {sorted(map(str, taken))}; got {starts}."
        )
    if field.time is not None and field.time != time:
        raise ValueError(f"The field's time is {field.time}, the candidate's {time}. Use the same symbol.")
    if time in (*field.state, *field.parameters):
        raise ValueError(f"`time` is {time}, which is a state or a parameter of the field.")
    paths = tuple(sp.sympify(candidate[x]) for x in field.state)
    allowed = {*field.parameters, time, *starts}
    used = {s for e in (*paths, *conditions) for s in e.free_symbols}
    if used - allowed:
        raise ValueError(
            f"The candidate uses {sorted(map(str, used - allowed))}; it may use the time {time}, initial values "
            f"{starts} and parameters {list(field.parameters)}."
        )
    if not all(isinstance(c, (sp.Gt, sp.Lt)) for c in conditions):
        raise ValueError(f"`conditions` must be strict inequalities such as x_0 > 0; got {list(conditions)}.")
    return paths
