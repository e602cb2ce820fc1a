"""What a closed form is: the formula, the proof that it is one, and the domain on which it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from symbolic import basins
from symbolic.field import VectorField
from symbolic.proof import Proof
from symbolic.zero import exact

__all__ = ["ClosedForm", "Domain"]


@dataclass(frozen=True)
class Domain:
    """Where a closed form holds: for t >= 0 as long as every condition does.

    A condition that holds at some t >= 0 held at all earlier times, so that one look at t is enough.
    `boundaries` are the zeros and singularities of the field that have an expression: no solution crosses them.
    """

    conditions: tuple[sp.Basic, ...] = ()
    boundaries: tuple[sp.Expr, ...] = ()
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = ["t >= 0", *(f"as long as {condition}" for condition in self.conditions)]
        if self.boundaries:
            words.append("between the zeros and singularities " + ", ".join(map(str, self.boundaries)))
        return "; ".join([*words, *self.remarks])


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """A proven solution of  dx/dt = f(x; p),  x(0) = x_0.

    Either `explicit` maps each state to its time course x(t; x_0, p), or `implicit` is the equation
    t = F(x) - F(x_0), where the `primitive` F has F' f = 1 and is real on every basin. `initial` maps each
    state to the symbol of its initial value. Made by `solve` and `verify`, which hold the proof.
    """

    field: VectorField
    time: sp.Symbol
    initial: dict[sp.Symbol, sp.Symbol]
    explicit: dict[sp.Symbol, sp.Expr] | None
    implicit: sp.Eq | None
    primitive: sp.Expr | None
    proof: Proof
    domain: Domain

    def basin(
        self, start: float | sp.Expr, parameters: Mapping[str | sp.Symbol, object] | None = None
    ) -> tuple[float, float]:
        """The largest open interval around a start that has no zero and no singularity of the field, certified.

        Args:
            start: x_0, a number; a float is the exact rational that it is.
            parameters: a number for each parameter, by name or by symbol.
        Raises:
            ValueError: the field is not scalar and autonomous, a number is missing, the start is itself a zero
                or a singularity, or the zeros of the field cannot be certified.
        """
        f, y, _ = self._at(parameters)
        return basins.basin(f, y, sp.sympify(start))

    def arrival(
        self, start: float | sp.Expr, parameters: Mapping[str | sp.Symbol, object] | None = None
    ) -> float:
        """The time at which x, started at t = 0, blows up or reaches the end of its basin; infinite if it never does.

        Args, Raises: as `basin`; ValueError also for a law without `primitive`, whose domain tells it.
        """
        if self.primitive is None:
            raise ValueError(f"This law is explicit; where it ends, its domain tells: {self.domain}.")
        f, y, numbers = self._at(parameters)
        (x,) = self.field.state
        return basins.arrival(f, y, self.primitive.subs(numbers).subs(x, y), sp.sympify(start))

    def _at(self, parameters) -> tuple[sp.Expr, sp.Symbol, dict[sp.Symbol, sp.Expr]]:
        """The right-hand side with numbers for the parameters, in a real symbol, and these numbers."""
        if len(self.field.state) != 1 or self.field.time is not None:
            raise ValueError("Only a scalar autonomous field has basins that are intervals.")
        (x,), (f,) = self.field.state, self.field.rhs
        given = {getattr(key, "name", key): value for key, value in (parameters or {}).items()}
        missing = [p.name for p in self.field.parameters if p.name not in given]
        if missing:
            raise ValueError(f"No number for the parameters {missing}; got {sorted(given)}.")
        numbers = {p: exact(sp.sympify(given[p.name])) for p in self.field.parameters}
        y = sp.Dummy(x.name, real=True)
        return f.subs(numbers).subs(x, y), y, numbers

    def _repr_latex_(self) -> str:
        if self.implicit is not None:
            return rf"$\displaystyle {sp.latex(self.implicit)}$"
        lines = [
            rf"{sp.latex(x)}({sp.latex(self.time)}) &= {sp.latex(e)}"
            for x, e in (self.explicit or {}).items()
        ]
        return r"$\displaystyle \begin{aligned}" + r"\\ ".join(lines) + r"\end{aligned}$"
