"""The claims of a model file, proven or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from odesys.model_file.model import ModelFile
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

    What the process does not decide in BUDGET seconds is undecided.
    """
    if not model.conserved and not model.solution:
        return {}, None
    arguments = (model.rule, model.conserved, model.solution, model.clock, model.starts)
    try:
        return elsewhere(__name__, "_judged", arguments, Deadline(BUDGET))
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


def _judged(rule, conserved, solution, clock, starts) -> tuple[dict[str, Verdict], Verdict | None]:
    verdicts = {name: is_conserved(rule, expression) for name, expression in conserved.items()}
    return verdicts, is_solution(rule, solution, clock, starts) if solution else None


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
