"""Functions of one real number: values, exact where they are rational, and Taylor coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import arb, arb_series, ctx, fmpq, fmpq_series

from fixedpoints.near.balls import Number, as_ball, as_rational, is_exact, to_rational

__all__ = [
    "LowerLambertW",
    "NotSmoothError",
    "UndefinedHereError",
    "constant_value",
    "function_value",
    "taylor",
]


class NotSmoothError(ArithmeticError):
    """An expression has no Taylor polynomial of the wanted order here."""


class UndefinedHereError(ArithmeticError):
    """An expression has no real value here."""


class LowerLambertW:
    """The branch -1 of Lambert's function."""


def taylor(
    function: type, c: Number, order: int, evaluate: Callable[[sp.Expr, sp.Symbol, Number], Number]
) -> list[Number]:
    """Coefficients of f(c + z) in z, up to an order.

    Args:
        function: the SymPy class of f.
        evaluate: (expression, symbol, c) -> its value at c, for functions known by their derivatives only.
    Raises:
        UndefinedHereError, NotSmoothError: f or a derivative has no value at c, or none that is known.
    """
    value = function_value(function, [c])
    if order == 0:
        return [value]
    if isinstance(value, fmpq) and (function, c) in _RATIONAL_SERIES:
        series = fmpq_series
    elif function in _SERIES:
        series, value = arb_series, None
    else:
        return _taylor_by_derivatives(function, c, order, value, evaluate)
    outer = ctx.cap
    ctx.cap = order + 1
    try:
        coefficients = _SERIES[function](series([c if value is not None else as_ball(c), 1])).coeffs()
    finally:
        ctx.cap = outer
    return [*coefficients, *([fmpq(0)] * (order + 1 - len(coefficients)))]


def _taylor_by_derivatives(function: type, c: Number, order: int, value: Number, evaluate) -> list[Number]:
    series, factorial = [value], 1
    for k in range(1, order + 1):
        factorial *= k
        series.append(evaluate(_derivative(function, k), _ARGUMENT, c) / fmpq(factorial))
    return series


#: Power series of functions, by FLINT; those of odd names by their exponentials.
_SERIES: dict[type, Callable[[Any], Any]] = {
    sp.exp: lambda z: z.exp(),
    sp.log: lambda z: z.log(),
    sp.sin: lambda z: z.sin(),
    sp.cos: lambda z: z.cos(),
    sp.tan: lambda z: z.tan(),
    sp.atan: lambda z: z.atan(),
    sp.asin: lambda z: z.asin(),
    sp.acos: lambda z: z.acos(),
    sp.sinh: lambda z: (z.exp() - (-z).exp()) / 2,
    sp.cosh: lambda z: (z.exp() + (-z).exp()) / 2,
    sp.tanh: lambda z: 1 - 2 / (1 + (2 * z).exp()),
    sp.erf: lambda z: z.erf(),
    sp.gamma: lambda z: z.gamma(),
    sp.loggamma: lambda z: z.lgamma(),
    sp.LambertW: lambda z: z.lambertw(),
    LowerLambertW: lambda z: z.lambertw(-1),
}
#: Where their coefficients are rational.
_RATIONAL_SERIES = {
    *((f, 0) for f in (sp.exp, sp.sin, sp.cos, sp.tan, sp.atan, sp.asin, sp.sinh, sp.cosh, sp.tanh)),
    (sp.log, 1),
}

_ARGUMENT = sp.Dummy("z", real=True)


@lru_cache(maxsize=512)
def _derivative(function: type, k: int) -> sp.Expr:
    derivative = function(_ARGUMENT).diff(_ARGUMENT, k)
    if derivative.has(sp.Derivative, sp.Subs):
        raise NotSmoothError(f"no derivative of {function.__name__} is known")
    return derivative


#: Functions of one real argument in ball arithmetic.
_BALLS: dict[type, Callable[[arb], arb]] = {
    sp.exp: arb.exp,
    sp.log: arb.log,
    sp.sin: arb.sin,
    sp.cos: arb.cos,
    sp.tan: arb.tan,
    sp.cot: arb.cot,
    sp.sec: arb.sec,
    sp.csc: arb.csc,
    sp.asin: arb.asin,
    sp.acos: arb.acos,
    sp.atan: arb.atan,
    sp.sinh: arb.sinh,
    sp.cosh: arb.cosh,
    sp.tanh: arb.tanh,
    sp.coth: arb.coth,
    sp.sech: arb.sech,
    sp.csch: arb.csch,
    sp.asinh: arb.asinh,
    sp.acosh: arb.acosh,
    sp.atanh: arb.atanh,
    sp.erf: arb.erf,
    sp.erfc: arb.erfc,
    sp.erfi: arb.erfi,
    sp.gamma: arb.gamma,
    sp.loggamma: arb.lgamma,
    sp.digamma: arb.digamma,
    sp.LambertW: arb.lambertw,
    LowerLambertW: lambda z: z.lambertw(-1),
    sp.sinc: arb.sinc,
}


def function_value(function: type, at: Sequence[Number]) -> Number:
    """f at numbers: exact where SymPy knows it to be rational."""
    if is_exact(list(at)) and function is not LowerLambertW:
        known = function(*(to_rational(c) for c in at))
        if known.is_Rational:
            return as_rational(known)
        if known.is_infinite or known is sp.nan or known.is_real is False:
            raise UndefinedHereError(f"{function.__name__}({', '.join(map(str, at))}) is not a real number")
    if len(at) == 1 and function in _BALLS:
        value = _BALLS[function](as_ball(at[0]))
    elif is_exact(list(at)):
        # Correct to all but the last digits that are asked for.
        digits = known.evalf(80)
        if not digits.is_Float:
            raise UndefinedHereError(f"{known} is not a real number")
        value = as_ball(as_rational(digits)) * arb(1, arb("1e-78"))
    else:
        raise NotSmoothError(f"{function.__name__} is not known in ball arithmetic")
    if not value.is_finite():
        raise UndefinedHereError(f"{function.__name__} is not finite at {at[0]}")
    return value


def constant_value(e: sp.Expr) -> arb:
    """A constant such as pi, as a ball."""
    constants = {
        sp.pi: arb.pi,
        sp.E: arb.const_e,
        sp.EulerGamma: arb.const_euler,
        sp.Catalan: arb.const_catalan,
    }
    if e in constants:
        return constants[e]()
    if e.is_number and e.is_finite and e.is_real:
        return as_ball(as_rational(e.evalf(80))) * arb(1, arb("1e-78"))
    raise UndefinedHereError(f"{e} is not a real number")
