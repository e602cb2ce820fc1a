"""Text becomes an expression: a small grammar read by hand, so that text from strangers is never run as a program.

    sum      = product { ("+" | "-") product }           power   = atom [ ("^" | "**") signed ]
    product  = signed { ("*" | "/") signed }             atom    = number | name | name "(" sum, ... ")" | "(" sum ")"
    signed   = { "+" | "-" } power                       Piecewise((sum, sum < sum), ..., (sum, True))

Numbers are exact: 0.1 is 1/10. Whatever holds no name must be a finite real number of ordinary size, which keeps
9**9**9 and exp(exp(exp(9))) out.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import mpmath
import sympy as sp

__all__ = ["CONSTANTS", "FUNCTIONS", "ExpressionError", "closest", "parse"]

#: Bounds on what a model needs, so that no text can keep the reader busy.
LONGEST, DEEPEST, MOST_BITS = 10_000, 60, 8_192
LARGEST_EXPONENT, LARGEST_DENOMINATOR = 100, 10**6


class ExpressionError(ValueError):
    """A text that is no expression in the known names; the message says where it stops being one."""


@dataclass(frozen=True)
class _Function:
    """A function with its number of arguments (None: one or more) and its value at floats."""

    symbolic: Callable[..., sp.Expr]
    value: Callable[..., float]
    arguments: int | None = 1


def _of_sympy(function: Callable[..., sp.Expr]) -> Callable[..., float]:
    """The value at floats by SymPy itself, for functions that cannot become huge."""
    return lambda x: float(function(sp.Float(x)))


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
    "sign": (sp.sign, _of_sympy(sp.sign)),
    "Heaviside": (sp.Heaviside, _of_sympy(sp.Heaviside)),
    "LambertW": (sp.LambertW, lambda x: float(mpmath.lambertw(x).real)),
    "lambertw": (sp.LambertW, lambda x: float(mpmath.lambertw(x).real)),
}

#: What may be called, by name.
FUNCTIONS: dict[str, _Function] = {
    **{name: _Function(*both) for name, both in _SINGLE.items()},
    "atan2": _Function(sp.atan2, math.atan2, 2),
    "min": _Function(sp.Min, min, None),
    "Min": _Function(sp.Min, min, None),
    "max": _Function(sp.Max, max, None),
    "Max": _Function(sp.Max, max, None),
}

#: Names of numbers, unless a symbol bears the name.
CONSTANTS: dict[str, sp.Expr] = {"pi": sp.pi, "E": sp.E}

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*|<=|>=|[-+*/^(),<>])"
)
_RELATIONS = {"<": sp.Lt, "<=": sp.Le, ">": sp.Gt, ">=": sp.Ge}


def parse(text: str, symbols: Iterable[sp.Symbol] = ()) -> sp.Expr:
    """The expression that a text writes down, in the given symbols and no others.

    Operators are + - * / and ^ or ** for powers (from the right, before the sign: -x^2 is -(x^2)); functions are
    those of FUNCTIONS and Piecewise; constants pi and E. Numbers are exact rationals.

    Args:
        text: at most 10 000 characters, brackets at most 60 deep, number exponents at most 100.
        symbols: the known symbols, one of each name.
    Raises:
        ExpressionError: the text is no such expression, uses an unknown name or function, or a part without names
            is not a finite real number.
    """
    if not isinstance(text, str):
        raise TypeError(f"`parse` takes text; got {text!r} of type {type(text).__name__}.")
    if len(text) > LONGEST:
        raise ExpressionError(f"The expression has {len(text)} characters; at most {LONGEST} are read.")
    reader = _Reader(text, {symbol.name: symbol for symbol in symbols})
    return reader.whole().expression


def closest(name: str, known: Iterable[str]) -> str:
    """A question after the known name that is meant, with a space before it; empty if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


@dataclass(frozen=True)
class _Term:
    """An expression, or a condition, and its value if it holds no name."""

    expression: sp.Expr
    value: float | bool | None = None


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    place: int


class _Reader:
    """One pass over the tokens; a method for each line of the grammar."""

    def __init__(self, text: str, symbols: Mapping[str, sp.Symbol]):
        self._text, self._symbols = text, symbols
        self._tokens, self._next, self._depth = list(self._split()), 0, 0

    def _split(self) -> Iterable[_Token]:
        place = 0
        while place < len(self._text):
            match = _TOKEN.match(self._text, place)
            if match is None:
                raise self._fault(f"{self._text[place]!r} means nothing here", place)
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match.group(), place)
            place = match.end()
        yield _Token("end", "", place)

    def _fault(self, what: str, place: int, advice: str = "") -> ExpressionError:
        shown = self._text if len(self._text) <= 60 else f"{self._text[:57]}..."
        return ExpressionError(f"{what}, at character {place + 1} of {shown!r}.{advice}")

    # --- tokens
    # -------------------------------------------------------------------------------------------

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> str:
        """The next token if it is one of these, else nothing."""
        token = self._token
        if token.kind == "end" or token.text not in texts:
            return ""
        self._next += 1
        return token.text

    def _demand(self, text: str, after: str) -> None:
        if not self._take(text):
            raise self._fault(f"a {text!r} is missing after {after}", self._token.place)

    # --- the grammar
    # -------------------------------------------------------------------------------------------

    def whole(self) -> _Term:
        found = self._sum()
        if self._token.kind != "end":
            advice = ""
            if self._token.kind in ("name", "number") or self._token.text == "(":
                advice = " A product is written with *."
            raise self._fault(f"{self._token.text!r} is left over", self._token.place, advice)
        return found

    def _sum(self) -> _Term:
        place, terms = self._token.place, [self._product()]
        while sign := self._take("+", "-"):
            term = self._product()
            terms.append(term if sign == "+" else self._combined(sp.Mul, (_MINUS, term), place))
        return terms[0] if len(terms) == 1 else self._combined(sp.Add, terms, place)

    def _product(self) -> _Term:
        place, factors = self._token.place, [self._signed()]
        while sign := self._take("*", "/"):
            factor = self._signed()
            factors.append(factor if sign == "*" else self._power_of(factor, _MINUS, place))
        return factors[0] if len(factors) == 1 else self._combined(sp.Mul, factors, place)

    def _signed(self) -> _Term:
        place, negative = self._token.place, False
        while sign := self._take("+", "-"):
            negative ^= sign == "-"
        power = self._power()
        return self._combined(sp.Mul, (_MINUS, power), place) if negative else power

    def _power(self) -> _Term:
        base = self._atom()
        place = self._token.place
        if not self._take("^", "**"):
            return base
        return self._power_of(base, self._deeper(self._signed, place), place)

    def _atom(self) -> _Term:
        token = self._token
        self._next += 1
        if token.kind == "number":
            return self._number(token)
        if token.kind == "name":
            called = self._token.text == "("
            return self._call(token) if called else self._name(token)
        if token.text == "(":
            inside = self._deeper(self._sum, token.place)
            self._demand(")", "the bracket's content")
            return inside
        self._next -= 1
        found = "the end" if token.kind == "end" else repr(token.text)
        raise self._fault(f"a number, a name or a bracket is missing before {found}", token.place)

    def _deeper(self, part: Callable[[], _Term], place: int) -> _Term:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._fault(f"brackets and exponents lie more than {DEEPEST} deep", place)
        found = part()
        self._depth -= 1
        return found

    def _name(self, token: _Token) -> _Term:
        if token.text in self._symbols:
            return _Term(self._symbols[token.text])
        if token.text in CONSTANTS:
            constant = CONSTANTS[token.text]
            return _Term(constant, float(constant))
        known = [*self._symbols, *CONSTANTS]
        if token.text in FUNCTIONS:
            raise self._fault(f"the function {token.text!r} needs its argument in brackets", token.place)
        advice = f" Known are {', '.join(known)}.{closest(token.text, known)}"
        raise self._fault(f"there is no name {token.text!r}", token.place, advice)

    def _call(self, token: _Token) -> _Term:
        if token.text in self._symbols:
            raise self._fault(
                f"{token.text!r} is a name and no function", token.place, " A product is written with *."
            )
        if token.text == "Piecewise":
            return self._deeper(lambda: self._piecewise(token), token.place)
        if token.text not in FUNCTIONS:
            known = [*FUNCTIONS, "Piecewise"]
            advice = f" Known are {', '.join(known)}.{closest(token.text, known)}"
            raise self._fault(f"there is no function {token.text!r}", token.place, advice)
        function = FUNCTIONS[token.text]
        arguments = self._deeper(self._arguments, token.place)
        if len(arguments) != (function.arguments or len(arguments)):
            raise self._fault(
                f"{token.text} takes {function.arguments} argument(s) and got {len(arguments)}", token.place
            )
        return self._applied(function.symbolic, function.value, arguments, token.place)

    def _arguments(self) -> list[_Term]:
        self._demand("(", "the function")
        found = [self._sum()]
        while self._take(","):
            found.append(self._sum())
        self._demand(")", "the arguments")
        return found

    def _piecewise(self, token: _Token) -> _Term:
        self._demand("(", "Piecewise")
        cases = [self._case()]
        while self._take(","):
            cases.append(self._case())
        self._demand(")", "the cases of Piecewise")
        expression = sp.Piecewise(*((value.expression, condition.expression) for value, condition in cases))
        if expression is sp.nan:
            raise self._fault("no case of this Piecewise can hold", token.place)
        if expression.free_symbols:
            return _Term(expression)
        return _Term(expression, next(value.value for value, condition in cases if condition.value))

    def _case(self) -> tuple[_Term, _Term]:
        self._demand("(", "Piecewise( or a case; a case looks like (x, x > 0)")
        value = self._sum()
        self._demand(",", "the value of a case")
        place = self._token.place
        if self._token.text == "True":
            self._next += 1
            condition = _Term(sp.true, True)
        else:
            left = self._sum()
            relation = self._take(*_RELATIONS)
            if not relation:
                raise self._fault("a case's condition is an inequality such as x > 0, or True", place)
            right = self._sum()
            condition = self._compared(relation, left, right)
        self._demand(")", "the condition of a case")
        return value, condition

    # --- what they build
    # -------------------------------------------------------------------------------------------

    def _number(self, token: _Token) -> _Term:
        value = float(token.text)
        # A denominator as long as the exponent says would be built, before anybody could refuse it.
        exponent = token.text.lower().partition("e")[2] or "0"
        if not math.isfinite(value) or abs(int(exponent)) > 320:
            raise self._fault(f"{token.text} is not a number of ordinary size", token.place)
        return _Term(sp.Rational(token.text), value)

    def _compared(self, relation: str, left: _Term, right: _Term) -> _Term:
        expression = _RELATIONS[relation](left.expression, right.expression)
        known = expression in (sp.true, sp.false)
        return _Term(expression, bool(expression) if known else None)

    def _combined(self, build: Callable, terms: Iterable[_Term], place: int) -> _Term:
        """A sum or a product."""
        value = math.fsum if build is sp.Add else math.prod
        return self._applied(build, lambda *values: value(values), list(terms), place)

    def _power_of(self, base: _Term, exponent: _Term, place: int) -> _Term:
        e = exponent.expression
        if e.is_Rational and (abs(e) > LARGEST_EXPONENT or e.q > LARGEST_DENOMINATOR):
            raise self._fault(
                f"exponents are at most {LARGEST_EXPONENT}, with at most six decimals",
                place,
                " Write exp(n*log(x)) for others.",
            )
        b = base.expression
        if b.is_Pow and b.exp.is_Rational and e.is_Rational and abs(b.exp * e) > LARGEST_EXPONENT:
            raise self._fault(f"exponents are at most {LARGEST_EXPONENT}, also of powers of powers", place)
        if b.is_Rational and e.is_Rational and _bits(b) * abs(e) > MOST_BITS:
            raise self._fault("this power has too many digits", place)
        return self._applied(sp.Pow, math.pow, [base, exponent], place)

    def _applied(self, build: Callable, value: Callable, terms: list[_Term], place: int) -> _Term:
        """A function of terms; where none holds a name, its value comes first, since SymPy would compute any size."""
        number = None
        if all(term.value is not None for term in terms):
            try:
                number = float(value(*(term.value for term in terms)))
            except (ArithmeticError, ValueError):
                number = math.nan
            if not math.isfinite(number):
                raise self._fault("this part is not a finite real number of ordinary size", place)
        expression = build(*(term.expression for term in terms))
        if expression.is_Rational and _bits(expression) > MOST_BITS:
            raise self._fault("this number has too many digits", place)
        if expression.has(sp.zoo, sp.nan, sp.oo, -sp.oo, sp.I):
            raise self._fault("this part is not a finite real expression", place)
        if number is None and not expression.free_symbols:
            number = float(expression)  # names cancelled: what is left is made of small parts
        return _Term(expression, number)


_MINUS = _Term(sp.Integer(-1), -1.0)


def _bits(number: sp.Rational) -> int:
    return max(abs(int(number.p)).bit_length(), int(number.q).bit_length())
