"""The claims of the file, proven by SymPy or refused; and false ones that the same proof must refuse."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import sympy as sp

from odesys.check import Check, control
from odesys.model_file import ModelFile
from odesys.model_file.claims import Verdict, judged
from symbolic.field import VectorField

__all__ = ["checks"]


def checks(model: ModelFile) -> tuple[list[Check], Verdict | None]:
    """A check of each claim with a planted fault; and the verdict on the solution."""
    found = [check for name in model.conserved for check in _conserved(model, name)]
    if not model.solution:
        return found, None
    true, verdict = _solution(model, model.solution)
    (x, path), *others = model.solution.items()
    # By uniqueness nothing else solves the flow from this start.
    wrong = {x: path + model.clock / 100, **dict(others)}
    fault = control(
        lambda paths: _solution(model, paths)[0], wrong, name=f"{x}(t) + t/100 claimed", true=true
    )
    return [*found, true, fault], verdict


def _conserved(model: ModelFile, name: str) -> list[Check]:
    judge = partial(_quantity, model, name)
    true = judge(model.conserved[name])
    moving = _moving(model)
    if moving is None:
        return [true]
    # If the claim is right, then this changes at a hundredth of the rate of the state, which is not zero.
    wrong = model.conserved[name] + moving / 100
    fault = control(judge, wrong, name=f"{name} + {moving}/100 claimed to be conserved", true=true)
    return [true, _planted(fault)]


def _planted(fault: Check) -> Check:
    """A control without the reason why its claim was refused, which is known."""
    return replace(fault, source=fault.source.partition(";")[0])


def _quantity(model: ModelFile, name: str, expression: sp.Expr) -> Check:
    verdicts, _ = judged(replace(model, conserved={name: expression}, solution={}))
    return _check(model, f"derive: {name} is conserved", verdicts[name])


def _solution(model: ModelFile, paths) -> tuple[Check, Verdict]:
    _, verdict = judged(replace(model, conserved={}, solution=paths))
    if verdict is None:
        raise AssertionError("a claimed solution has a verdict")
    names = ", ".join(f"{x}(t)" for x in model.rule.names)
    return _check(model, f"derive: the claimed {names} solves the flow", verdict), verdict


def _check(model: ModelFile, name: str, verdict: Verdict) -> Check:
    source = f"claimed in {model.path.name}" + ("" if verdict.proven else f"; {verdict.sentence}")
    return Check(
        name,
        0 if verdict.proven else 1,
        0,
        0,
        source,
        f"exact: counts what is not proven; {verdict.sentence}",
    )


def _moving(model: ModelFile) -> sp.Symbol | None:
    """The first state that does not stand still identically."""
    still = (lambda x, f: f == 0) if isinstance(model.rule, VectorField) else (lambda x, f: f == x)
    return next((x for x, f in zip(model.rule.state, model.rule.rhs, strict=True) if not still(x, f)), None)
