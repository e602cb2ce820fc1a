"""What may stand in the text of an expression: functions with their values at floats, and constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import sympy as sp

__all__ = ["CHOICES", "CONSTANTS", "FUNCTIONS", "Function"]


@dataclass(frozen=True)
class Function:
    """A function with its number of arguments (None: one or more) and its value at floats."""

    symbolic: Callable[..., sp.Expr]
    value: Callable[..., float]
    arguments: int | None = 1


def _lambertw(x: float) -> float:
    """The real branch through 0; nan where it is not real."""
    return float(mpmath.lambertw(x).real) if x >= -math.exp(-1) else math.nan


def _unevaluated(function: Callable[..., sp.Expr]) -> Callable[..., sp.Expr]:
    """The function left as it stands: to simplify it, SymPy compares arguments, which can take any time."""
    return lambda *arguments: function(*arguments, evaluate=False)


_SINGLE: dict[str, tuple[Callable[..., sp.Expr], Callable[..., float]]] = {
    "exp": (sp.exp, math.exp),
    "log": (sp.log, math.log),
    "ln": (sp.log, math.log),
    "sqrt": (sp.sqrt, math.sqrt),
    "sin": (sp.sin, math.sin),
    "cos": (sp.cos, math.cos),
    "tan": (sp.tan, math.tan),
    "asin": (sp.asin, math.asin),
    "acos": (sp.acos, math.acos),
    "atan": (sp.atan, math.atan),
    "sinh": (sp.sinh, math.sinh),
    "cosh": (sp.cosh, math.cosh),
    "tanh": (sp.tanh, math.tanh),
    "asinh": (sp.asinh, math.asinh),
    "acosh": (sp.acosh, math.acosh),
    "atanh": (sp.atanh, math.atanh),
    "erf": (sp.erf, math.erf),
    "erfc": (sp.erfc, math.erfc),
    "abs": (sp.Abs, abs),
    "Abs": (sp.Abs, abs),
    "sign": (_unevaluated(sp.sign), lambda x: math.copysign(1, x) if x else 0),
    "Heaviside": (_unevaluated(sp.Heaviside), lambda x: (1 + math.copysign(1, x)) / 2 if x else 0.5),
    "LambertW": (sp.LambertW, _lambertw),
    "lambertw": (sp.LambertW, _lambertw),
}

#: What may be called, by name.
FUNCTIONS: dict[str, Function] = {
    **{name: Function(*both) for name, both in _SINGLE.items()},
    "atan2": Function(sp.atan2, math.atan2, 2),
    "min": Function(_unevaluated(sp.Min), lambda *values: min(values), None),
    "Min": Function(_unevaluated(sp.Min), lambda *values: min(values), None),
    "max": Function(_unevaluated(sp.Max), lambda *values: max(values), None),
    "Max": Function(_unevaluated(sp.Max), lambda *values: max(values), None),
}

#: Functions that compare their arguments.
CHOICES = ("min", "Min", "max", "Max", "sign", "Heaviside")

#: Names of numbers, unless a symbol bears the name.
CONSTANTS: dict[str, sp.Expr] = {"pi": sp.pi, "E": sp.E}
