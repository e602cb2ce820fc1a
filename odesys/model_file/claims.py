"""The claims of a model file, proven or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from odesys.model_file.model import ModelFile
from odesys.system import ODESystem
from symbolic import closed_form, conservation
from symbolic.closed_form import ClosedForm
from symbolic.errors import NotASolutionError, NotConservedError, UndecidedError
from symbolic.field import IteratedMap, VectorField
from symbolic.varieties.deadline import BudgetExceeded, Deadline, elsewhere
from symbolic.zero import is_zero, residual

__all__ = ["Verdict", "is_conserved", "is_solution", "judged"]

#: Seconds for the proofs of one file.
BUDGET = 60.0


@dataclass(frozen=True, eq=False)
class Verdict:
    """What became of a claim.

    Args:
        proven: True, False (a number shows it), or None where neither could be shown.
        sentence: why.
        evidence: the `FirstIntegral` or `ClosedForm` that holds the proof, if there is one.
    """

    proven: bool | None
    sentence: str
    evidence: conservation.FirstIntegral | ClosedForm | None = None


def judged(model: ModelFile) -> tuple[dict[str, Verdict], Verdict | None]:
    """The verdicts on the conserved quantities, by name, and on the solution; computed in a process of their own.

    A claim is judged for all values of the parameters and, if it is not true of them all, at the file's. What the
    process does not decide in BUDGET seconds is undecided.
    """
    if not model.conserved and not model.solution:
        return {}, None
    try:
        return elsewhere(__name__, "_judged", (model,), Deadline(BUDGET))
    except BudgetExceeded:
        late = Verdict(None, f"not decided in {BUDGET:g} s; give it in a simpler form")
        return dict.fromkeys(model.conserved, late), late if model.solution else None


def is_conserved(rule: VectorField | IteratedMap, expression: sp.Expr) -> Verdict:
    """Whether an expression is constant along a flow,  dI/dt + f . grad I = 0,  or a map,  I(f(x)) = I(x)."""
    if isinstance(rule, IteratedMap):
        return _kept_by_map(rule, expression)
    try:
        proof = conservation.verify(rule, expression)
    except NotConservedError as error:
        return Verdict(False, f"refused: along the flow it changes at rate {error.residual}")
    except UndecidedError as error:
        return Verdict(None, f"undecided: {error}")
    return Verdict(True, "proven: its rate of change vanishes identically", proof)


def is_solution(
    field: VectorField,
    paths: Mapping[sp.Symbol, sp.Expr],
    clock: sp.Symbol,
    starts: Mapping[sp.Symbol, sp.Symbol],
) -> Verdict:
    """Whether x(t) solves a flow from x(0) = x_0."""
    try:
        law = closed_form.verify(field, paths, time=clock, initial=starts)
    except NotASolutionError as error:
        return Verdict(False, f"refused: {error}")
    except UndecidedError as error:
        return Verdict(None, f"undecided: {error}")
    return Verdict(True, f"proven {law.proof.argument}; holds for {law.domain}", law)


def _judged(model: ModelFile) -> tuple[dict[str, Verdict], Verdict | None]:
    """For all values of the parameters or, where that fails, at the numbers of the file."""
    exact = model.exact
    at_numbers = exact.field if isinstance(exact, ODESystem) else exact.map
    verdicts = {
        name: _or_at_numbers(
            is_conserved(model.rule, expression),
            model,
            lambda expression=expression: is_conserved(at_numbers, model.at_numbers(expression)),
        )
        for name, expression in model.conserved.items()
    }
    if not model.solution:
        return verdicts, None
    paths = {x: model.at_numbers(path) for x, path in model.solution.items()}
    return verdicts, _or_at_numbers(
        is_solution(model.rule, model.solution, model.clock, model.starts),
        model,
        lambda: is_solution(at_numbers, paths, model.clock, model.starts),
    )


def _or_at_numbers(general: Verdict, model: ModelFile, special: Callable[[], Verdict]) -> Verdict:
    if general.proven or not model.rule.parameters:
        return general
    found = special()
    if not found.proven:
        return general
    return replace(found, sentence=f"{found.sentence}, at the numbers of the file (not for all)")


def _kept_by_map(rule: IteratedMap, expression: sp.Expr) -> Verdict:
    image: dict[sp.Expr, sp.Expr] = dict(zip(rule.state, rule.rhs, strict=True))
    if rule.time is not None:
        image[rule.time] = rule.time + 1
    change = expression.xreplace(image) - expression
    verdict = is_zero(change)
    if verdict is None:
        return Verdict(None, f"undecided: a step changes it by {residual(change)}, zero wherever tried")
    if not verdict:
        return Verdict(False, f"refused: a step changes it by {residual(change)}")
    return Verdict(True, "proven: I(f(x)) - I(x) vanishes identically")
