"""From a document to a model: names, the rule, claims, and how to run it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sympy as sp

from odesys.model_file.document import RULES, Document, load
from odesys.model_file.model import ModelFile, Run
from symbolic.expressions import closest
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_flow, gradient_map
from symbolic.vocabulary import FUNCTIONS

__all__ = ["read"]

#: What datasets call their dimensions and what they hold beside the states.
_TAKEN = ("loss", "time", "step", "start", "seed", "invariant", "invariant_drift")
#: What means something else in expressions.
_WORDS = (*FUNCTIONS, "Piecewise", "True")

_MOST_NAMES = 200


def read(path: str | Path) -> ModelFile:
    """Read a model from a TOML file; `odesys.model_file` says what it looks like.

    Raises:
        ModelFileError: the file is missing or no TOML, or a section, key, expression or number is not as described.
    """
    return _Reader(load(Path(path))).model()


class _Reader:
    """One document; a method for each part of the model."""

    def __init__(self, document: Document):
        self._document, self._fault = document, document.fault
        self._kind = self._which_rule()
        self._states = self._state_names()
        self._parameters = list(document.section("parameters"))
        self._check_names()
        self._symbols = self._declared()
        self._clock = self._symbols.get("t", sp.Symbol("t", real=True))
        self._numbers = {name: self._signed("parameters", name) for name in self._parameters}

    def model(self) -> ModelFile:
        rule, of_loss = self._descent() if self._kind == "loss" else (self._equations(), {})
        conserved, observables = (self._claims(section, rule) for section in ("conserved", "observables"))
        twice = sorted(conserved.keys() & observables.keys())
        if twice:
            raise self._fault(
                f"[observables] {twice[0]}", "bears the name of a conserved quantity. Rename it."
            )
        starts = self._start_symbols(rule)
        solution = self._solution(rule, starts)
        claims = (*conserved.values(), *observables.values(), *solution.values(), *of_loss.values())
        return ModelFile(
            self._document.path,
            self._document.text("name", self._document.path.stem),
            rule.source,
            self._with_parameters(rule, claims),
            self._numbers,
            **of_loss,
            conserved=conserved,
            observables=observables,
            solution=solution,
            starts=starts,
            start=self._start(),
            run=self._run(),
            box=self._box(),
            clock=self._clock,
        )

    # --- names
    # -------------------------------------------------------------------------------------------

    def _which_rule(self) -> str:
        given = [name for name in RULES if name in self._document]
        if len(given) != 1:
            got = " and ".join(f"[{name}]" for name in given) or "none"
            raise self._fault("The model", f"needs exactly one of [flow], [map] and [loss]; got {got}.")
        return given[0]

    def _state_names(self) -> list[str]:
        if self._kind != "loss":
            names = list(self._document.section(self._kind))
            if not names:
                raise self._fault(
                    f"[{self._kind}]", 'is empty; write a line such as x = "-x" for each state.'
                )
            return names
        for key in ("expression", "states"):
            if key not in self._document.section("loss"):
                raise self._fault(
                    f"[loss] {key}",
                    'is missing; a loss looks like expression = "(s - a*b)^2/2" and states = ["a", "b"].',
                )
        return self._document.names("loss", "states")

    def _check_names(self) -> None:
        seen: set[str] = set()
        for what, names in (("state", self._states), ("parameter", self._parameters)):
            for name in names:
                where = f"The {what} {name!r}"
                if not (name.isidentifier() and name.isascii()):
                    raise self._fault(where, "is no name: a name is made of letters, digits and _, in ASCII.")
                if name in _WORDS or (what == "state" and name in _TAKEN):
                    raise self._fault(where, "bears a name that has a meaning of its own. Rename it.")
                if name in seen:
                    raise self._fault(where, "is named twice among states and parameters.")
                seen.add(name)
        if len(seen) > _MOST_NAMES:
            raise self._fault(
                "The model", f"has {len(seen)} states and parameters; at most {_MOST_NAMES} are read."
            )

    def _declared(self) -> dict[str, sp.Symbol]:
        """The symbols of states and parameters, with what is assumed of them."""
        names, assumed = [*self._states, *self._parameters], {}
        for assumption in self._document.section("assume"):
            where = f"[assume] {assumption}"
            for name in self._document.names("assume", assumption):
                if name not in names:
                    raise self._fault(
                        where, f"names {name!r}, which is neither state nor parameter.{closest(name, names)}"
                    )
                if name in assumed:
                    raise self._fault(where, f"names {name!r}, of which something is assumed already.")
                assumed[name] = assumption
        return {name: sp.Symbol(name, **{assumed.get(name, "real"): True}) for name in names}

    @property
    def _state(self) -> tuple[sp.Symbol, ...]:
        return tuple(self._symbols[name] for name in self._states)

    def _constants(self) -> list[sp.Symbol]:
        return [self._symbols[name] for name in self._parameters]

    # --- the rule
    # -------------------------------------------------------------------------------------------

    def _equations(self) -> VectorField | IteratedMap:
        symbols = list({**self._symbols, self._clock.name: self._clock}.values())
        rhs = tuple(self._document.expression(self._kind, name, symbols) for name in self._states)
        moving = self._clock.name not in self._symbols and any(f.has(self._clock) for f in rhs)
        build = VectorField if self._kind == "flow" else IteratedMap
        return self._built(
            build, self._state, rhs, self._used(rhs), self._clock if moving else None, self._source
        )

    def _descent(self) -> tuple[VectorField | IteratedMap, dict[str, sp.Expr]]:
        """The rule of a loss, and the loss with its scale."""
        loss = self._document.expression("loss", "expression", list(self._symbols.values()))
        keys = [key for key in ("time_constant", "step") if key in self._document.section("loss")]
        if len(keys) > 1:
            raise self._fault(
                "[loss]", "has time_constant, for the flow, and step, for gradient descent; give one of them."
            )
        key, scale = "time_constant", sp.Integer(1)
        if keys:
            (key,) = keys
            scale = self._document.expression("loss", key, self._constants())
        if not scale.xreplace(self._values()) > 0:
            raise self._fault(f"[loss] {key}", f"must be positive; got {scale}.")
        build = gradient_flow if key == "time_constant" else gradient_map
        rule = self._built(build, loss, self._state, source=self._source, **{key: scale})
        return rule, {"loss": loss, key: scale}

    def _built(self, build, *arguments, **named) -> VectorField | IteratedMap:
        try:
            return build(*arguments, **named)
        except ValueError as error:
            raise self._fault(f"[{self._kind}]", f"makes no rule: {error}") from error

    @property
    def _source(self) -> str:
        return self._document.text("source", "")

    def _used(self, expressions: Iterable[sp.Expr]) -> tuple[sp.Symbol, ...]:
        """The parameters that some expressions use, in the file's order."""
        used = set().union(*(e.free_symbols for e in expressions))
        return tuple(p for p in self._constants() if p in used)

    def _with_parameters(self, rule: VectorField | IteratedMap, claims: Sequence[sp.Expr]):
        """The rule that also declares what only claims use."""
        used = self._used((*rule.rhs, *claims))
        idle = [p.name for p in self._constants() if p not in used]
        if idle:
            raise self._fault(f"[parameters] {idle[0]}", "is used nowhere. Use it, or leave it out.")
        return replace(rule, parameters=used)

    # --- claims
    # -------------------------------------------------------------------------------------------

    def _claims(self, section: str, rule: VectorField | IteratedMap) -> dict[str, sp.Expr]:
        symbols = [*self._symbols.values(), *([] if rule.time is None else [rule.time])]
        found = {}
        for name in self._document.section(section):
            where = f"[{section}] {name}"
            if not name.isidentifier() or name in (*self._symbols, *_TAKEN, *_WORDS):
                raise self._fault(
                    where, "is no free name: states, parameters and functions have theirs already."
                )
            found[name] = self._document.expression(section, name, symbols)
            if not found[name].free_symbols & set(self._state):
                raise self._fault(where, f"depends on no state; got {found[name]}.")
        return found

    def _start_symbols(self, rule: VectorField | IteratedMap) -> dict[sp.Symbol, sp.Symbol]:
        """x_0 for a state x, with the assumptions of x; none where no solution is claimed."""
        if "solution" not in self._document:
            return {}
        if isinstance(rule, IteratedMap):
            raise self._fault("[solution]", "is x(t) of a flow; this model is a map.")
        starts = {x: sp.Symbol(f"{x.name}_0", **x.assumptions0) for x in self._state}
        taken = [name for name in ("t", *(s.name for s in starts.values())) if name in self._symbols]
        if taken:
            raise self._fault(
                "[solution]",
                f"needs the name {taken[0]} for {'the time' if taken[0] == 't' else 'a start'}, which is a "
                "state or a parameter. Rename that one.",
            )
        return starts

    def _solution(self, rule, starts: dict[sp.Symbol, sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
        if not starts:
            return {}
        self._document.check_complete("solution", self._states, "x(t)")
        symbols = [self._clock, *starts.values(), *self._constants()]
        return {x: self._document.expression("solution", x.name, symbols) for x in rule.state}

    # --- numbers
    # -------------------------------------------------------------------------------------------

    def _values(self) -> dict[sp.Symbol, sp.Expr]:
        return {self._symbols[name]: number for name, number in self._numbers.items()}

    def _signed(self, section: str, name: str) -> sp.Expr:
        """The number of a state or a parameter, with the sign that it is assumed to have."""
        value = self._document.number(section, name, self._document.section(section)[name])
        symbol = self._symbols[name]
        if (symbol.is_positive and not value > 0) or (symbol.is_nonnegative and not value >= 0):
            assumed = "positive" if symbol.is_positive else "nonnegative"
            raise self._fault(f"[{section}] {name}", f"is {value}, but {assumed} by [assume].")
        return value

    def _start(self) -> dict[str, float] | None:
        if "start" not in self._document:
            return None
        self._document.check_complete("start", self._states, "a number")
        return {name: float(self._signed("start", name)) for name in self._states}

    def _box(self) -> dict[str, tuple[float, float]] | None:
        if "box" not in self._document:
            return None
        self._document.check_complete("box", self._states, "[low, high]")
        return {name: self._side(name, self._document.section("box")[name]) for name in self._states}

    def _side(self, name: str, ends: object) -> tuple[float, float]:
        if isinstance(ends, list) and len(ends) == 2:
            low, high = (float(self._document.number("box", name, end)) for end in ends)
            if low < high:
                return low, high
        raise self._fault(f"[box] {name}", "must be two increasing numbers, like [-2, 2].")

    def _run(self) -> Run:
        document, section, given = self._document, self._document.section("run"), dict[str, Any]()
        for key in ("end", "rtol", "rate"):
            if key in section:
                given[key] = document.positive("run", key)
        for key, least in (("points", 2), ("steps", 1)):
            if key in section:
                given[key] = document.whole("run", key, least)
        if "method" in section:
            given["method"] = self._method(section["method"])
        return Run(**given)

    def _method(self, method: object) -> str:
        from odesys.integrators.contract import METHODS

        if not isinstance(method, str) or method not in METHODS:
            advice = closest(method, METHODS) if isinstance(method, str) else ""
            raise self._fault("[run] method", f"must be one of {', '.join(METHODS)}.{advice}")
        return method
