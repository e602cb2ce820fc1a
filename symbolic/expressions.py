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
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

from symbolic.vocabulary import CHOICES, CONSTANTS, FUNCTIONS, Function

__all__ = ["ExpressionError", "closest", "parse"]

#: Bounds on what a model needs, so that no text can keep the reader busy.
LONGEST, DEEPEST, MOST_BITS = 10_000, 60, 8_192
LARGEST_EXPONENT, LARGEST_FACTOR, LARGEST_DENOMINATOR = 100, 10**4, 10**6


class ExpressionError(ValueError):
    """A text that is no expression in the known names; the message says where it stops being one."""


_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*|<=|>=|[-+*/^(),<>])"
)
_RELATIONS = {
    "<": (sp.Lt, operator.lt),
    "<=": (sp.Le, operator.le),
    ">": (sp.Gt, operator.gt),
    ">=": (sp.Ge, operator.ge),
}


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
        if token.text in CHOICES:
            return self._chosen(function, arguments, token.place)
        return self._applied(function.symbolic, function.value, arguments, token.place)

    def _chosen(self, function: Function, arguments: list[_Term], place: int) -> _Term:
        """One of finitely many values, or of the arguments: known numbers are compared as floats, by nobody else."""
        known = [term for term in arguments if term.value is not None]
        rest = [term for term in arguments if term.value is None]
        if function.arguments == 1:
            if rest:
                return self._applied(function.symbolic, function.value, arguments, place)
            value = function.value(known[0].value)
            return _Term(sp.Rational(value), value)
        if known:
            value = function.value(*(term.value for term in known))
            rest.append(next(term for term in known if term.value == value))
        return rest[0] if len(rest) == 1 else self._applied(function.symbolic, function.value, rest, place)

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
        # Cases that are known to hold or not to hold leave nothing to compare.
        cases = [case for case in cases if case[1].value is not False]
        sure = next((place for place, (_, condition) in enumerate(cases) if condition.value), len(cases))
        cases = cases[: sure + 1]
        if not cases:
            raise self._fault("no case of this Piecewise can hold", token.place)
        if cases[0][1].value:
            return cases[0][0]
        pairs = [_Term(sp.Tuple(value.expression, condition.expression)) for value, condition in cases]
        return self._applied(lambda *given: sp.Piecewise(*given), max, pairs, token.place)

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
            if left.expression.has(sp.Piecewise) or right.expression.has(sp.Piecewise):
                raise self._fault("a condition holds no Piecewise of its own", place)
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
        symbolic, compared = _RELATIONS[relation]
        if left.value is not None and right.value is not None:
            value = compared(left.value, right.value)
            return _Term(sp.true if value else sp.false, value)
        return _Term(symbolic(left.expression, right.expression, evaluate=False))

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
        if base.value is not None and base.value < 0 and not e.is_Integer:
            raise self._fault("a negative number to a power that is not whole is not real", place)
        if e.has(sp.Piecewise):
            raise self._fault(
                "a Piecewise cannot stand in an exponent", place, " Put the powers into its cases."
            )
        if base.value is not None and any(abs(number) > LARGEST_FACTOR for number in e.atoms(sp.Rational)):
            raise self._fault(
                f"numbers in the exponent of a number are at most {LARGEST_FACTOR}",
                place,
                " Write exp for larger ones.",
            )
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
        try:
            expression = build(*(term.expression for term in terms))
            if number is None and not expression.free_symbols:
                number = float(expression)  # names cancelled: what is left is made of small parts
        except Exception as error:  # of many kinds, from the depths of SymPy
            raise self._fault("SymPy finds no real expression in this part", place) from error
        if expression.is_Rational and _bits(expression) > MOST_BITS:
            raise self._fault("this number has too many digits", place)
        if expression.has(sp.zoo, sp.nan, sp.oo, -sp.oo, sp.I):
            raise self._fault("this part is not a finite real expression", place)
        return _Term(expression, number)


_MINUS = _Term(sp.Integer(-1), -1.0)


def _bits(number: sp.Rational) -> int:
    return max(abs(int(number.p)).bit_length(), int(number.q).bit_length())
