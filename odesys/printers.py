"""How expressions are written down as NumPy or JAX code, and the functions that such code may call."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import sympy as sp
from sympy.printing.codeprinter import PrintMethodNotImplementedError
from sympy.printing.numpy import JaxPrinter, NumPyPrinter

from odesys import special

__all__ = ["SCALAR_FUNCTIONS", "UnsupportedExpressionError", "namespace", "printer", "unsupported"]

#: SymPy's name and the name in scipy.special and jax.scipy.special.
_SPECIAL = {
    "Ei": "expi",
    "beta": "beta",
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "gamma": "gamma",
    "loggamma": "gammaln",
    "polygamma": "polygamma",
}


class UnsupportedExpressionError(ValueError):
    """An expression uses a function that has no numerical form."""


class _Spelling:
    """What both backends write in the same way: real arithmetic on arrays that broadcast."""

    def _print_Piecewise(self, expr):
        text = "nan"
        for value, condition in reversed(expr.args):
            text = self._print(value) if condition == sp.true else self._where(condition, value, text)
        return text

    def _print_Guarded(self, expr):
        symbol, condition, safe = expr.args
        return self._where(condition, symbol, self._print(safe))

    def _where(self, condition, value, otherwise: str):
        return f"where({self._print(condition)}, {self._print(value)}, {otherwise})"

    def _print_Pow(self, expr, rational=False):
        # Integer powers hold for negative bases too; all others are real functions, never complex ones.
        if expr.exp.is_Integer or abs(expr.exp) == sp.S.Half:
            return self._hprint_Pow(expr, rational=rational, sqrt=self._module + ".sqrt")
        return f"power({self._print(expr.base)}, {self._print(expr.exp)})"

    def _nested(self, name, args):
        text = self._print(args[0])
        for arg in args[1:]:
            text = f"{name}({text}, {self._print(arg)})"
        return text

    def _print_Max(self, expr):
        return self._nested("maximum", expr.args)

    def _print_Min(self, expr):
        return self._nested("minimum", expr.args)

    def _print_And(self, expr):
        return self._nested("logical_and", expr.args)

    def _print_Or(self, expr):
        return self._nested("logical_or", expr.args)

    def _print_Largest(self, expr):
        return f"fixed({self._print_Max(expr)})"

    def _print_Heaviside(self, expr):
        return self._call("heaviside", expr.args)

    def _print_WrightOmega(self, expr):
        return self._call("wrightomega", expr.args)

    def _print_RealLambertW(self, expr):
        return self._call("lambertw", expr.args)

    def _call(self, name, args):
        return f"{name}({', '.join(self._print(arg) for arg in args)})"

    def _print_special(self, expr):
        return self._call(_SPECIAL[type(expr).__name__], expr.args)


for _name in _SPECIAL:
    setattr(_Spelling, f"_print_{_name}", _Spelling._print_special)


class _NumPySpelling(_Spelling, NumPyPrinter):
    pass


class _JaxSpelling(_Spelling, JaxPrinter):
    pass


def printer(backend: str) -> NumPyPrinter:
    """The code printer of a backend; it raises for what it cannot write."""
    spelling = {"numpy": _NumPySpelling, "jax": _JaxSpelling}[backend]
    settings = {
        "fully_qualified_modules": False,
        "inline": True,
        "allow_unknown_functions": False,
        "strict": True,
    }
    return spelling(settings)


def namespace(backend: str, expressions: Iterable[sp.Expr]) -> dict[str, Any]:
    """What printed code calls beyond the array module's functions; SciPy only if the expressions need it."""
    if backend == "jax":
        from odesys import jax_functions

        return jax_functions.NAMESPACE
    heads = {type(e).__name__ for expression in expressions for e in sp.preorder_traversal(expression)}
    if heads.isdisjoint(_SPECIAL):
        return _NUMPY_FUNCTIONS
    import scipy.special

    return {**_NUMPY_FUNCTIONS, **{name: getattr(scipy.special, name) for name in _SPECIAL.values()}}


def unsupported(error: Exception, expressions: Iterable[sp.Expr], backend: str) -> UnsupportedExpressionError:
    """The error that names the function that has no numerical form."""
    for expression in expressions:
        for part in sp.postorder_traversal(expression):
            try:
                printer(backend).doprint(part)
            except (PrintMethodNotImplementedError, NotImplementedError, TypeError, ValueError):
                return UnsupportedExpressionError(
                    f"{type(part).__name__} has no {backend} form; got {part} in {expression}. "
                    "Write it with elementary functions, Piecewise, or a function listed in odesys.printers."
                )
    return UnsupportedExpressionError(f"No {backend} form: {error}")


def _quiet(function):
    def evaluate(*args):
        with np.errstate(all="ignore"):
            return function(*args, np)

    return evaluate


_NUMPY_FUNCTIONS = {
    **{name: getattr(np, name) for name in ("heaviside", "logical_and", "logical_or", "maximum", "minimum")},
    **{name: getattr(np, name) for name in ("nan", "power", "where")},
    "fixed": lambda shift: shift,
    "lambertw": _quiet(special.lambertw),
    "wrightomega": _quiet(special.wrightomega),
}

#: The same names for Python floats: several times faster than NumPy's on numbers. They raise where NumPy's
#: return inf or NaN with a warning, so that the caller can turn to arrays.
SCALAR_FUNCTIONS = {
    **{
        name: getattr(math, name)
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "log")
    },
    **{
        name: getattr(math, name)
        for name in ("log1p", "log2", "log10", "sqrt", "floor", "ceil", "erf", "erfc")
    },
    **{
        f"arc{name}": getattr(math, f"a{name}")
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")
    },
    "power": math.pow,
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "logical_and": lambda a, b: a and b,
    "logical_or": lambda a, b: a or b,
    "logical_not": operator.not_,
    "where": lambda condition, a, b: a if condition else b,
    "maximum": lambda a, b: b if b > a or b != b else a,
    "minimum": lambda a, b: b if b < a or b != b else a,
    "sign": lambda a: math.copysign(1.0, a) if a else a,
    "heaviside": lambda a, middle: middle if a == 0 else float(a > 0),
}
