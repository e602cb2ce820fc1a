"""What is studied: an ordinary differential equation dx/dt = f(x) or a map x -> f(x), exact and validated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import sympy as sp

__all__ = ["IteratedMap", "VectorField"]


@dataclass(frozen=True)
class VectorField:
    """The rule of a flow,  dx_i/dt = f_i(x; p)  or, with `time`,  dx_i/dt = f_i(t, x; p).

    Args:
        state: the n coordinates x; their order is the order of every array in the package.
        rhs: the n right-hand sides f, exact expressions in state, parameters and time.
        parameters: every other symbol that the right-hand sides may use.
        time: the symbol of time, for a non-autonomous field.
        source: where the equations come from (paper and equation).
    Raises:
        TypeError: an entry is not a symbol or not an expression.
        ValueError: lengths differ, a name stands for two things, a right-hand side uses an undeclared symbol,
            or it is not a finite number for any argument.

    All symbols denote real numbers; stronger assumptions are kept.
    """

    state: tuple[sp.Symbol, ...]
    rhs: tuple[sp.Expr, ...]
    parameters: tuple[sp.Symbol, ...] = ()
    time: sp.Symbol | None = None
    source: str = field(default="", compare=False)

    def __post_init__(self):
        _validate(self)

    @cached_property
    def jacobian(self) -> sp.ImmutableMatrix:
        """J[i, j] = d f_i / d x_j, shape (n, n)."""
        return _jacobian(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the state coordinates, in order."""
        return tuple(symbol.name for symbol in self.state)

    def lie_derivative(self, expression: sp.Expr) -> sp.Expr:
        """d/dt of g(t, x) along the flow:  dg/dt + sum_i f_i dg/dx_i."""
        expression = sp.sympify(expression)
        drift = sp.Add(*(f * expression.diff(x) for x, f in zip(self.state, self.rhs, strict=True)))
        return drift if self.time is None else drift + expression.diff(self.time)

    def _latex_equations(self) -> list[str]:
        clock = sp.latex(self.time) if self.time is not None else "t"
        return [
            rf"\frac{{d {sp.latex(x)}}}{{d {clock}}} &= {sp.latex(f)}"
            for x, f in zip(self.state, self.rhs, strict=True)
        ]

    def _repr_latex_(self) -> str:
        return _aligned(self._latex_equations())


@dataclass(frozen=True)
class IteratedMap:
    """The rule of a discrete dynamical system,  x_i -> f_i(x; p).

    Args, validation and errors are those of `VectorField`; `time`, if given, is the symbol of the step count.
    """

    state: tuple[sp.Symbol, ...]
    rhs: tuple[sp.Expr, ...]
    parameters: tuple[sp.Symbol, ...] = ()
    time: sp.Symbol | None = None
    source: str = field(default="", compare=False)

    def __post_init__(self):
        _validate(self)

    @cached_property
    def jacobian(self) -> sp.ImmutableMatrix:
        """J[i, j] = d f_i / d x_j, shape (n, n)."""
        return _jacobian(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the state coordinates, in order."""
        return tuple(symbol.name for symbol in self.state)

    def _repr_latex_(self) -> str:
        return _aligned(
            [rf"{sp.latex(x)} &\mapsto {sp.latex(f)}" for x, f in zip(self.state, self.rhs, strict=True)]
        )


def _validate(rule: VectorField | IteratedMap) -> None:
    state = _symbols(rule.state, "state")
    parameters = _symbols(rule.parameters, "parameters")
    if rule.time is not None and not isinstance(rule.time, sp.Symbol):
        raise TypeError(f"`time` must be a sympy Symbol or None; got {rule.time!r}.")
    if not state:
        raise ValueError("`state` is empty; a system needs at least one state symbol.")
    try:
        rhs = tuple(sp.sympify(f, strict=True) for f in _listed(rule.rhs, "rhs"))
    except sp.SympifyError as error:
        raise TypeError(
            f"`rhs` must hold SymPy expressions or numbers; got {error.expr!r}. "
            "Text becomes an expression with symbolic.expressions.parse."
        ) from None
    if len(rhs) != len(state):
        raise ValueError(
            f"`rhs` must hold one right-hand side per state: {len(state)} states {[s.name for s in state]} "
            f"but {len(rhs)} right-hand sides."
        )
    declared = (*state, *parameters, *((rule.time,) if rule.time is not None else ()))
    repeated = sorted(name for name, n in Counter(symbol.name for symbol in declared).items() if n > 1)
    if repeated:
        raise ValueError(
            f"The names {repeated} stand for more than one symbol among state, parameters and time. "
            "Declare each name once; symbols of one name with different assumptions are different symbols."
        )
    for x, f in zip(state, rhs, strict=True):
        if not isinstance(f, sp.Expr) or f.is_Matrix:
            raise TypeError(f"The right-hand side of {x} must be a scalar expression; got {f!r}.")
        if f.has(sp.zoo, sp.nan, sp.oo, -sp.oo):
            raise ValueError(f"The right-hand side of {x} is not finite: {f}.")
        if f.has(sp.I):
            raise ValueError(
                f"The right-hand side of {x} is complex: {f}. Split it into real and imaginary parts."
            )
    undeclared = sorted({s.name for f in rhs for s in f.free_symbols} - {s.name for s in declared})
    if undeclared:
        raise ValueError(
            f"`rhs` uses {undeclared}, which are neither states {[s.name for s in state]} nor parameters "
            f"{[p.name for p in parameters]}. Add them to `parameters`."
        )
    alien = sorted({s.name for f in rhs for s in f.free_symbols if s not in declared})
    if alien:
        raise ValueError(
            f"`rhs` uses symbols named {alien} with other assumptions than the declared ones. "
            "Create each symbol once and pass it on."
        )
    for name, value in (("state", state), ("rhs", rhs), ("parameters", parameters)):
        object.__setattr__(rule, name, value)


def _listed(values: object, name: str) -> tuple:
    if isinstance(values, (str, sp.Basic)) or not isinstance(values, Iterable):
        raise TypeError(f"`{name}` must be a tuple; got {values!r}. One entry is written ({values},).")
    return tuple(values)


def _symbols(values: object, name: str) -> tuple[sp.Symbol, ...]:
    values = _listed(values, name)
    wrong = [value for value in values if not isinstance(value, sp.Symbol)]
    if wrong:
        raise TypeError(
            f"`{name}` must hold sympy Symbols; got {wrong[0]!r} of type {type(wrong[0]).__name__}."
        )
    unreal = [value.name for value in values if value.is_real is False or not value.is_commutative]
    if unreal:
        raise ValueError(f"`{name}` must hold real commutative symbols; {unreal} are assumed otherwise.")
    return values


def _jacobian(rule: VectorField | IteratedMap) -> sp.ImmutableMatrix:
    return sp.ImmutableMatrix([[f.diff(x) for x in rule.state] for f in rule.rhs])


def _aligned(lines: list[str]) -> str:
    return r"$\displaystyle \begin{aligned}" + r"\\ ".join(lines) + r"\end{aligned}$"
