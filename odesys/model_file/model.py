"""What a model file holds, as exact expressions and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import sympy as sp

from odesys.model_file.document import ModelFileError
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

__all__ = ["ModelFile", "Run"]


@dataclass(frozen=True)
class Run:
    """How long and how to run; None where the file says nothing.

    Args:
        end: the last time of a flow, which starts at 0. points: how many times to keep.
        method, rtol: as in `odesys.solve`.
        rate, steps: of gradient descent; of a map, steps alone.
    """

    end: float | None = None
    points: int = 201
    method: str | None = None
    rtol: float = 1e-8
    rate: float | None = None
    steps: int | None = None


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model as its file states it; nothing in it is proven.

    Args:
        path: the file, as it was named. name, source: from the file; the name is else the file's stem.
        rule: the flow or the map.
        numbers: one exact real number for each parameter of the rule, by name.
        loss: what the rule descends, or None. time_constant: of the flow of a loss; step: of the map of a loss.
        conserved, observables: expressions by name.
        solution: x(t) for each state, in `clock`, the symbols of `starts` and the parameters, or nothing.
        starts: for each state the symbol of its initial value in `solution`.
        start: one number for each state, or None.
        run: how long and how to run.
        box: (low, high) for each state, or None.
        clock: the symbol of time.
    """

    path: Path
    name: str
    source: str
    rule: VectorField | IteratedMap
    numbers: Mapping[str, sp.Expr]
    loss: sp.Expr | None = None
    time_constant: sp.Expr | None = None
    step: sp.Expr | None = None
    conserved: Mapping[str, sp.Expr] = field(default_factory=dict)
    observables: Mapping[str, sp.Expr] = field(default_factory=dict)
    solution: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    starts: Mapping[sp.Symbol, sp.Symbol] = field(default_factory=dict)
    start: Mapping[str, float] | None = None
    run: Run = Run()
    box: Mapping[str, tuple[float, float]] | None = None
    clock: sp.Symbol = field(default_factory=lambda: sp.Symbol("t", real=True))

    @cached_property
    def system(self) -> ODESystem | MapSystem:
        """The rule with its numbers as floats, for running."""
        kind = ODESystem if isinstance(self.rule, VectorField) else MapSystem
        return kind(self.rule, self.numbers)

    @cached_property
    def exact(self) -> ODESystem | MapSystem:
        """The rule with its exact numbers put in and no parameters left, for finding fixed points."""
        kind = ODESystem if isinstance(self.rule, VectorField) else MapSystem
        return kind(replace(self.rule, rhs=tuple(map(self.at_numbers, self.rule.rhs)), parameters=()))

    def at_numbers(self, expression: sp.Expr) -> sp.Expr:
        """An expression with the exact numbers in place of the parameters."""
        return expression.xreplace({p: self.numbers[p.name] for p in self.rule.parameters})

    def fault(self, where: str, what: str) -> ModelFileError:
        """The error about a place of this file."""
        return ModelFileError(f"{self.path}: {where} {what}")

    def required(self, what: str, why: str) -> Any:
        """The start, or an entry of the run, which a command needs.

        Raises:
            ModelFileError: the file does not have it.
        """
        if what == "start":
            if self.start is None:
                example = ", ".join(f"{name} = 1" for name in self.rule.names)
                raise self.fault("[start]", f"is missing. {why}: give a number for each state ({example}).")
            return self.start
        value = getattr(self.run, what)
        if value is None:
            raise self.fault("[run]", f"{what} is missing. {why}.")
        return value
