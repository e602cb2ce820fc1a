"""What is derived of any flow or map: claims, what is found without being told, fixed points in symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import sympy as sp

from odesys.commands.derivation import Derivation, Formula, Section, rate, step, value
from odesys.model_file import ModelFile
from odesys.model_file.claims import Verdict, judged
from odesys.textbook import Problem
from symbolic.closed_form import ClosedForm
from symbolic.discovery import DEGREE, Discovery
from symbolic.errors import NoClosedFormError
from symbolic.field import IteratedMap, VectorField
from symbolic.varieties.deadline import BudgetExceeded, Deadline, elsewhere

__all__ = ["closed_form", "of_file", "of_problem", "rule"]

Announce = Callable[[str], None]

#: Seconds for each search: for what is found without being told, for time courses, for fixed points.
BUDGET = 20.0

#: The largest Jacobian that is shown.
_LARGEST_JACOBIAN = 3


def of_problem(problem: Problem, announce: Announce) -> Derivation:
    """What is derived of a textbook system."""
    field, numbers = problem.system.field, problem.system.parameters
    model = ModelFile(
        Path(problem.name),
        problem.name,
        field.source,
        field,
        {name: sp.nsimplify(number, rational=True) for name, number in numbers.items()},
        conserved={f"I_{i}": expression for i, expression in enumerate(problem.invariants, 1)},
    )
    return of_file(model, announce)


def of_file(model: ModelFile, announce: Announce) -> Derivation:
    """What is derived of a model file, in reading order."""
    announce("proving the claims")
    verdicts, solution = judged(model)
    sections = [*_rule_of(model), *_claims(model, verdicts, solution)]
    if isinstance(model.rule, VectorField):
        proven = {name: v.evidence for name, v in verdicts.items() if v.evidence is not None}
        announce("looking for first integrals and smaller flows")
        found = _searched(model.rule, model.observables, proven)
        announce("looking for time courses")
        sections += [_integrals(found), *_reductions(model.rule, model.observables, found)]
    announce("looking for fixed points")
    return Derivation(model.name, model.source, [*sections, _fixed_points(model)])


def rule(rule: VectorField | IteratedMap, heading: str = "") -> Section:
    """A flow or a map."""
    if isinstance(rule, VectorField):
        time = str(rule.time) if rule.time is not None else "t"
        return Section(
            heading or "Flow", [rate(x, f, time) for x, f in zip(rule.state, rule.rhs, strict=True)]
        )
    return Section(heading or "Map", [step(x, f) for x, f in zip(rule.state, rule.rhs, strict=True)])


def closed_form(law: ClosedForm) -> list[Formula | str]:
    """A time course with its proof and its domain."""
    if law.explicit is not None:
        formulas: list[Formula | str] = [value(f"{x}({law.time})", path) for x, path in law.explicit.items()]
    else:
        formulas = [value(str(law.time), law.implicit.rhs)]
    return [*formulas, f"proven: {law.proof.argument}.", f"holds for {law.domain}."]


# --- the sections of a file
# -----------------------------------------------------------------------------------------------


def _rule_of(model: ModelFile) -> list[Section]:
    sections = []
    if model.loss is not None:
        scale = {"time constant": model.time_constant, "step": model.step}
        sections.append(
            Section(
                "Loss",
                [
                    value("L", model.loss),
                    *(value(name, s) for name, s in scale.items() if s is not None and s != 1),
                ],
            )
        )
    sections.append(rule(model.rule))
    if model.rule.parameters:
        numbers = ", ".join(f"{p} = {model.numbers[p.name]}{_assumed(p)}" for p in model.rule.parameters)
        sections.append(
            Section("Parameters", [f"{numbers}. What follows holds for all values, unless it says so."])
        )
    if len(model.rule.state) <= _LARGEST_JACOBIAN:
        names = model.rule.names
        entries = [
            Formula(
                f"d f_{names[i]}/d {names[j]}",
                rf"\frac{{\partial f_{{{sp.latex(sp.Symbol(names[i]))}}}}}{{\partial {sp.latex(sp.Symbol(names[j]))}}}",
                model.rule.jacobian[i, j],
            )
            for i in range(len(names))
            for j in range(len(names))
        ]
        sections.append(Section("Jacobian of the right-hand side f", entries))
    return sections


def _assumed(symbol: sp.Symbol) -> str:
    word = "positive" if symbol.is_positive else "nonnegative" if symbol.is_nonnegative else ""
    return f" ({word})" if word else ""


def _claims(model: ModelFile, verdicts: Mapping[str, Verdict], solution: Verdict | None) -> list[Section]:
    sections = []
    if verdicts:
        formulas = [
            value(name, model.conserved[name], verdict.sentence) for name, verdict in verdicts.items()
        ]
        sections.append(Section("Conserved, as claimed", formulas))
    if solution is not None:
        paths = [value(f"{x}({model.clock})", path) for x, path in model.solution.items()]
        sections.append(Section("Time course, as claimed", [*paths, f"{solution.sentence}."]))
    return sections


def _searched(field: VectorField, observables, integrals) -> Discovery | None:
    """What was found in time."""
    try:
        return elsewhere("symbolic.discovery", "discover", (field, observables, integrals), Deadline(BUDGET))
    except BudgetExceeded:
        return None


def _integrals(found: Discovery | None) -> Section:
    heading = f"Polynomial conserved quantities up to degree {DEGREE}"
    if found is None:
        return Section(heading, [f"not found: the search was not over after {BUDGET:g} s."])
    if found.no_integrals:
        return Section(heading, [f"not looked for: {found.no_integrals}."])
    if not found.integrals:
        return Section(heading, ["not found: there is none, for parameters in general position."])
    return Section(
        heading,
        [
            *(value(f"I_{i}", one.expression) for i, one in enumerate(found.integrals, 1)),
            "proven: these span all of them, for parameters in general position.",
        ],
    )


def _reductions(
    field: VectorField, observables: Mapping[str, sp.Expr], found: Discovery | None
) -> list[Section]:
    """Smaller flows, and the time courses of all that are scalar."""
    reductions = {} if found is None else dict(found.reductions)
    scalar = {name: r.field for name, r in reductions.items() if len(r.field.state) == 1}
    if len(field.state) == 1 and field.time is None:
        scalar[""] = field
    known = _laws(scalar)
    sections = [
        Section(
            f"Smaller flow: {name}",
            [
                *rule(r.field).entries,
                f"exact for {r.exact_on}; proven by substitution.",
                *_course(known, name),
            ],
        )
        for name, r in reductions.items()
    ]
    if "" in scalar:
        return [Section("Time course", _course(known, ""))]
    if not sections:
        return [Section("Smaller flows", [_nothing_smaller(field, observables, found)])]
    return sections


def _nothing_smaller(field: VectorField, observables: Mapping[str, sp.Expr], found: Discovery | None) -> str:
    if found is None:
        return f"not found: the search was not over after {BUDGET:g} s."
    if field.time is not None:
        return "not looked for: the flow depends on time."
    lines = (
        "none of the lines x = 0, y = 0, x = y, x = -y is invariant, and " if len(field.state) == 2 else ""
    )
    named = (
        f"the flow of no observable ({', '.join(observables)}) closes"
        if observables
        else "no observables are named whose flow could close"
    )
    return f"not found: {lines}{named}."


def _laws(fields: Mapping[str, VectorField]) -> Mapping[str, ClosedForm | NoClosedFormError] | None:
    if not fields:
        return {}
    try:
        return elsewhere("symbolic.discovery", "laws", (dict(fields),), Deadline(BUDGET))
    except BudgetExceeded:
        return None


def _course(known: Mapping[str, ClosedForm | NoClosedFormError] | None, name: str) -> list[Formula | str]:
    if known is None:
        return [f"time course not found: the search was not over after {BUDGET:g} s."]
    if name not in known:
        return []
    law = known[name]
    return closed_form(law) if isinstance(law, ClosedForm) else [f"time course not found: {law}"]


def _fixed_points(model: ModelFile) -> Section:
    if model.rule.time is not None:
        return Section("Fixed points", ["not looked for: the rule depends on time."])
    heading = "Fixed points"
    try:
        try:
            found = elsewhere("fixedpoints", "find", (model.rule, None, BUDGET), Deadline(2 * BUDGET))
        except ValueError:
            heading = "Fixed points at the numbers of the file"
            found = elsewhere("fixedpoints", "find", (model.exact, model.box, BUDGET), Deadline(2 * BUDGET))
    except BudgetExceeded:
        return Section(heading, [f"not found: the search was not over after {2 * BUDGET:g} s."])
    entries: list[Formula | str] = []
    for point in found.points:
        place = ", ".join(f"{name} = {sp.sstr(x)}" for name, x in point.location.items())
        conditions = f", if {' and '.join(map(_said, point.conditions))}" if point.conditions else ""
        evidence = f" ({point.evidence})" if point.evidence else ""
        entries.append(f"{place}{conditions}: {point.stability}{evidence}")
    for part in found.components:
        equations = ", ".join(f"{e} = 0" for e in part.equations)
        entries.append(f"a set of dimension {part.dimension}: {equations}")
    entries += [f"the answer changes where {_said(relation)}" for relation in found.exceptions]
    return Section(heading, [*entries, f"{found.certificate}."])


def _said(relation: sp.Basic) -> str:
    """A relation as one writes it."""
    return f"{relation.lhs} = {relation.rhs}" if isinstance(relation, sp.Eq) else sp.sstr(relation)
