"""Fields that become polynomial by substitution, and the way back from the unknowns to the states.

    x in exp(c_1 x), exp(c_2 x), ... with rational c_j / c_k    u = exp(c x) > 0
    x in cos(m_1 x), sin(m_2 x), ...                            c = cos(m x), s = sin(m x), c^2 + s^2 = 1
    x^(p/q)                                                     u = x^(1/q) >= 0
    B^(p/q), |B| for any other expression B                     w^q = B, or w^2 = B^2, w >= 0

Each is one-to-one between real states and wanted values of the unknowns (modulo the period of an angle), and
smooth both ways except where a root or absolute value is zero; so nothing is lost and multiplicities stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import gcd, lcm
from typing import Any

import sympy as sp

from symbolic.varieties.deadline import Deadline
from symbolic.varieties.polynomials import Exponents, distinct
from symbolic.varieties.quotients import NotAlgebraic, Quotients
from symbolic.zero import exact

__all__ = ["NotAlgebraic", "PolynomialForm", "StateForm", "polynomial_form"]

#: Powers beyond which a substitution is not worth its degree.
_HIGHEST = 120


@dataclass(frozen=True)
class StateForm:
    """How a state is written: kind "plain", "exponential", "angle" or "power", its unknowns, and its unit.

    plain: x = u. exponential: x = log(u) / unit. angle: x = atan2(s, c) / unit. power: x = u^unit.
    """

    state: sp.Symbol
    kind: str
    unknowns: tuple[sp.Symbol, ...]
    unit: sp.Expr = sp.S.One


@dataclass(frozen=True)
class PolynomialForm:
    """The field's zeros as zeros of polynomials in `unknowns`.

    Args:
        unknowns: the letters; for each, `signs` says "positive", "nonnegative" or "", and `meanings` what it
            stands for in terms of the states.
        parameters: symbols that the coefficients may hold.
        equations: polynomial numerators and relations, as many as unknowns, in unknowns and parameters.
        nonzero: polynomials that are zero where the field has a pole.
        states: how each state is written.
        kinks: unknowns at whose zeros the substitution is not smooth.
        undefined: relations between the states under which the field is not a real number.
    """

    unknowns: tuple[sp.Symbol, ...]
    signs: tuple[str, ...]
    meanings: dict[sp.Symbol, sp.Expr]
    parameters: tuple[sp.Symbol, ...]
    equations: tuple[Exponents, ...]
    nonzero: tuple[Exponents, ...]
    states: tuple[StateForm, ...]
    kinks: frozenset[sp.Symbol] = frozenset()
    undefined: tuple[sp.Basic, ...] = ()

    def expression(self, polynomial: Exponents) -> sp.Expr:
        """A polynomial in the unknowns, and perhaps parameters, in terms of the states."""
        letters = [*self.unknowns, *self.parameters]
        size = len(next(iter(polynomial), letters))
        zero = {(0,) * size: 0}
        return sp.Poly.from_dict(dict(polynomial) or zero, *letters[:size]).as_expr().xreplace(self.meanings)


def polynomial_form(
    rhs: Sequence[sp.Expr],
    state: Sequence[sp.Symbol],
    parameters: Sequence[sp.Symbol] = (),
    deadline: Deadline | None = None,
) -> PolynomialForm:
    """The polynomial system whose wanted solutions are the zeros of the right-hand sides.

    Args:
        rhs: n expressions f; a float is the rational that it is.
        state: the n unknowns x.
        parameters: symbols that stay; the polynomials have coefficients in them.
        deadline: until when; by default there is no end.
    Raises:
        BudgetExceeded: the time is over.
        NotAlgebraic: some function of the state is not known to become polynomial, a state occurs in ways
            that do not go together, or a transcendental constant cannot be divided out.
    """
    real = {s: sp.Symbol(s.name, real=True) for s in (*state, *parameters) if s.is_real is None}
    given = {dummy: symbol for symbol, dummy in real.items()}
    written = [_rewritten(exact(sp.sympify(f)).xreplace(real)) for f in rhs]
    atoms = _Atoms(tuple(real.get(x, x) for x in state))
    for f in written:
        atoms.scan(f)
    letters = _Letters(atoms)
    translated = [letters.write(f) for f in written]
    form = letters.form(translated, tuple(real.get(p, p) for p in parameters), deadline)
    return _renamed(form, given)


def _renamed(form: PolynomialForm, names: dict[sp.Symbol, sp.Symbol]) -> PolynomialForm:
    """With the user's symbols in the place of real ones."""
    return replace(
        form,
        meanings={u: meaning.xreplace(names) for u, meaning in form.meanings.items()},
        parameters=tuple(names.get(p, p) for p in form.parameters),
        states=tuple(
            replace(s, state=names.get(s.state, s.state), unit=s.unit.xreplace(names)) for s in form.states
        ),
        undefined=tuple(r.xreplace(names) for r in form.undefined),
    )


def _rewritten(expression: Any) -> sp.Expr:
    """Hyperbolic functions by exponentials, all trigonometric ones by sine and cosine."""
    for function in (sp.sinh, sp.cosh, sp.tanh, sp.coth, sp.sech, sp.csch):
        expression = expression.replace(function, lambda a, f=function: f(a).rewrite(sp.exp))
    for function, written in (
        (sp.tan, lambda a: sp.sin(a) / sp.cos(a)),
        (sp.cot, lambda a: sp.cos(a) / sp.sin(a)),
        (sp.sec, lambda a: 1 / sp.cos(a)),
        (sp.csc, lambda a: 1 / sp.sin(a)),
    ):
        expression = expression.replace(function, written)
    return expression


@dataclass
class _Atoms:
    """What occurs: which states plainly, which coefficients in exponentials and angles, which roots."""

    state: tuple[sp.Symbol, ...]
    plain: set[sp.Symbol] = field(default_factory=set)
    exponents: dict[sp.Symbol, list[sp.Expr]] = field(default_factory=dict)
    angles: dict[sp.Symbol, list[sp.Expr]] = field(default_factory=dict)
    powers: dict[sp.Symbol, int] = field(default_factory=dict)
    roots: dict[sp.Expr, int] = field(default_factory=dict)
    seen: set[sp.Expr] = field(default_factory=set)

    def scan(self, e: sp.Expr) -> None:
        if e in self.seen:
            return
        self.seen.add(e)
        if e in self.state:
            self.plain.add(e)
        elif (exponent := exponent_of(e, self.state)) is not None:
            self._linear(exponent, self.exponents, e)
        elif isinstance(e, (sp.sin, sp.cos)) and self._moves(e):
            self._linear(e.args[0], self.angles, e)
        elif isinstance(e, sp.Pow) and e.exp.is_Rational and not e.exp.is_Integer:
            if e.base in self.state:
                self.powers[e.base] = lcm(self.powers.get(e.base, 1), int(e.exp.q))
            else:
                self.roots[e.base] = lcm(self.roots.get(e.base, 1), int(e.exp.q))
                self.scan(e.base)
        else:
            for part in e.args:
                self.scan(part)

    def _moves(self, e: sp.Expr) -> bool:
        return bool(e.free_symbols & set(self.state))

    def _linear(self, argument: sp.Expr, into: dict[sp.Symbol, list[sp.Expr]], whole: sp.Expr) -> None:
        for x, coefficient in linear_parts(argument, self.state, whole).items():
            into.setdefault(x, []).append(coefficient)


def exponent_of(e: sp.Expr, state: Sequence[sp.Symbol]) -> sp.Expr | None:
    """a, if the expression is exp(a), or b^s = exp(s log b) for a constant b > 0, and a holds a state."""
    if isinstance(e, sp.exp):
        exponent = e.args[0]
    elif isinstance(e, sp.Pow) and e.base.is_positive and not e.base.free_symbols & set(state):
        exponent = e.exp * sp.log(e.base)
    else:
        return None
    return exponent if exponent.free_symbols & set(state) else None


def linear_parts(argument: sp.Expr, state: Sequence[sp.Symbol], whole: sp.Expr) -> dict[sp.Symbol, sp.Expr]:
    """c_i for each state in an argument c_1 x_1 + ... + c_n x_n.

    Raises:
        NotAlgebraic: the argument is not linear in the states, or has a constant term.
    """
    argument = sp.expand(argument)
    parts = {x: argument.coeff(x) for x in state if argument.has(x)}
    rest = sp.expand(argument - sp.Add(*(c * x for x, c in parts.items())))
    moving = set(state)
    if any(c.free_symbols & moving for c in parts.values()) or rest.free_symbols & moving:
        raise NotAlgebraic(f"{whole} is not of a linear combination of the states.")
    if rest != 0:
        raise NotAlgebraic(f"{whole} has the constant {rest} in its argument, which is not algebraic.")
    return parts


def common_unit(coefficients: Sequence[sp.Expr], x: sp.Symbol) -> sp.Expr:
    """The largest unit of which all coefficients are integer multiples.

    Raises:
        NotAlgebraic: a ratio of two coefficients is not rational.
    """
    first = coefficients[0]
    ratios = [sp.simplify(c / first) for c in coefficients]
    if not all(r.is_Rational for r in ratios):
        raise NotAlgebraic(
            f"The multiples {sorted(set(coefficients), key=str)} of {x} in exponentials or angles "
            "have no common unit."
        )
    numerator = reduce(gcd, (int(r.p) for r in ratios))
    denominator = reduce(lcm, (int(r.q) for r in ratios))
    unit = first * sp.Rational(abs(numerator), denominator)
    return -unit if unit.is_negative else unit


class _Letters:
    """The letters of one field, and expressions written with them."""

    def __init__(self, atoms: _Atoms):
        self.atoms = atoms
        self.meanings: dict[sp.Symbol, sp.Expr] = {}
        self.signs: dict[sp.Symbol, str] = {}
        self.relations: list[sp.Expr] = []
        self.undefined: list[sp.Basic] = []
        self.kinks: set[sp.Symbol] = set()
        self.constants: dict[sp.Expr, sp.Symbol] = {}
        self._roots: dict[tuple, sp.Symbol] = {}
        self._written: dict[sp.Expr, sp.Expr] = {}
        self.states = {x: self._state(x) for x in atoms.state}

    def _new(self, name: str, meaning: sp.Expr, sign: str) -> sp.Symbol:
        letter = sp.Dummy(name)
        self.meanings[letter], self.signs[letter] = meaning, sign
        return letter

    def _state(self, x: sp.Symbol) -> StateForm:
        atoms = self.atoms
        kinds = [
            kind
            for kind, group in (("exponentials", atoms.exponents), ("angles", atoms.angles))
            if x in group
        ]
        if x in atoms.plain or x in atoms.powers:
            kinds.append("powers")
        if len(kinds) > 1:
            raise NotAlgebraic(
                f"{x} occurs in {' and in '.join(kinds)}; no substitution makes both polynomial."
            )
        if x in atoms.exponents:
            unit = common_unit(atoms.exponents[x], x)
            return StateForm(x, "exponential", (self._new("u", sp.exp(unit * x), "positive"),), unit)
        if x in atoms.angles:
            unit = common_unit(atoms.angles[x], x)
            c, s = self._new("c", sp.cos(unit * x), ""), self._new("s", sp.sin(unit * x), "")
            self.relations.append(c**2 + s**2 - 1)
            return StateForm(x, "angle", (c, s), unit)
        if x in atoms.powers:
            q = atoms.powers[x]
            u = self._new("u", x ** sp.Rational(1, q), "nonnegative")
            self.kinks.add(u)
            self.undefined.append(sp.Lt(x, 0))
            return StateForm(x, "power", (u,), sp.Integer(q))
        sign = "nonnegative" if x.is_nonnegative else ""
        return StateForm(x, "plain", (self._new("u", x, sign),))

    def write(self, e: sp.Expr) -> sp.Expr:
        """The expression in letters, parameters and constants: rational in them."""
        if e not in self._written:
            self._written[e] = self._write(e)
        return self._written[e]

    def _write(self, e: sp.Expr) -> sp.Expr:
        state = self.atoms.state
        if e in state:
            form = self.states[e]
            return form.unknowns[0] ** (form.unit if form.kind == "power" else 1)
        if e.is_Rational or isinstance(e, sp.Symbol):
            return e
        if isinstance(e, (sp.Add, sp.Mul)):
            return e.func(*map(self.write, e.args))
        if (exponent := exponent_of(e, state)) is not None:
            return self._exponential(exponent, e)
        if isinstance(e, (sp.sin, sp.cos)) and e.free_symbols & set(state):
            return self._angle(e)
        if isinstance(e, sp.Pow) and e.exp.is_Integer:
            return self.write(e.base) ** e.exp
        if isinstance(e, sp.Pow) and e.exp.is_Rational:
            return self._power(e.base, e.exp)
        if isinstance(e, sp.Abs):
            return self._absolute(e.args[0])
        if not e.free_symbols & set(state) and e.is_number and e.is_real:
            return self.constants.setdefault(e, sp.Dummy("k"))
        raise NotAlgebraic(f"{e} is not algebraic in the state, and no substitution for it is known.")

    def _exponential(self, exponent: sp.Expr, whole: sp.Expr) -> sp.Expr:
        product = sp.S.One
        for x, coefficient in linear_parts(exponent, self.atoms.state, whole).items():
            form = self.states[x]
            product *= form.unknowns[0] ** _multiple(coefficient, form.unit, whole)
        return product

    def _angle(self, e: sp.Expr) -> sp.Expr:
        """cos or sin of m_1 t_1 + ... + m_k t_k, by the powers of c + i s."""
        cosine, sine = sp.S.One, sp.S.Zero
        for x, coefficient in linear_parts(e.args[0], self.atoms.state, e).items():
            form = self.states[x]
            c, s = form.unknowns
            m = _multiple(coefficient, form.unit, e)
            one = sp.chebyshevt(abs(m), c)
            other = sp.sign(m) * s * sp.chebyshevu(abs(m) - 1, c) if m else sp.S.Zero
            cosine, sine = cosine * one - sine * other, sine * one + cosine * other
        return cosine if isinstance(e, sp.cos) else sine

    def _power(self, base: sp.Expr, exponent: sp.Rational) -> sp.Expr:
        if base in self.atoms.state:
            form = self.states[base]
            return form.unknowns[0] ** (exponent * form.unit)
        q = self.atoms.roots[base]
        return self._root(base, q) ** (exponent * q)

    def _root(self, base: sp.Expr, q: int) -> sp.Symbol:
        if base.is_negative:
            raise NotAlgebraic(f"The root of {base} is not real.")
        key = (base, q)
        if key not in self._roots:
            inner = self.write(base)
            letter = self._new(
                "w", base ** sp.Rational(1, q), "positive" if base.is_positive else "nonnegative"
            )
            self._roots[key] = letter
            self.relations.append(letter**q - inner)
            if base.free_symbols & set(self.atoms.state):
                self.kinks.add(letter)
                if not base.is_nonnegative:
                    self.undefined.append(sp.Lt(base, 0))
        return self._roots[key]

    def _absolute(self, inside: sp.Expr) -> sp.Symbol:
        key = (inside, "absolute")
        if key not in self._roots:
            letter = self._new("w", sp.Abs(inside), "nonnegative")
            self._roots[key] = letter
            self.relations.append(letter**2 - self.write(inside) ** 2)
            self.kinks.add(letter)
        return self._roots[key]

    def form(
        self, translated: Sequence[sp.Expr], parameters: tuple[sp.Symbol, ...], deadline: Deadline | None
    ) -> PolynomialForm:
        unknowns = tuple(self.meanings)
        constants = tuple(self.constants.values())
        quotients = Quotients((*unknowns, *parameters, *constants), deadline)
        equations, nonzero = [], []
        for expression in (*translated, *self.relations):
            numerator, denominator = quotients.of(expression)
            equations.append(numerator)
            nonzero += [f for f in quotients.factors(denominator) if quotients.holds(f, unknowns)]
        hidden = {letter: value for value, letter in self.constants.items()}
        return PolynomialForm(
            unknowns,
            tuple(self.signs.values()),
            self.meanings,
            parameters,
            tuple(quotients.without(p, unknowns, constants, hidden) for p in equations),
            tuple(quotients.without(p, unknowns, constants, hidden) for p in distinct(nonzero)),
            tuple(self.states.values()),
            frozenset(self.kinks),
            tuple(r for r in dict.fromkeys(self.undefined) if r != sp.false),
        )


def _multiple(coefficient: sp.Expr, unit: sp.Expr, whole: sp.Expr) -> int:
    m = sp.simplify(coefficient / unit)
    if abs(m) > _HIGHEST:
        raise NotAlgebraic(
            f"The exponents have a common unit so small that {whole} becomes a power of {abs(m)}. "
            "Write numbers as fractions if floats stand for them."
        )
    return int(m)
