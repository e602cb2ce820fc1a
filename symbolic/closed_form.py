"""Time courses as formulas, each with the proof that it is one and the domain on which it holds.

`solve` finds x(t; x_0, p) for scalar autonomous fields; `verify` takes any candidate for any field. SymPy's
integrals and solvers may propose, but nothing is returned that was not substituted back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sympy as sp

from symbolic import basins
from symbolic.errors import NoClosedFormError, NotASolutionError, UndecidedError
from symbolic.families import FAMILIES, Case, Solution
from symbolic.field import VectorField
from symbolic.proof import Course, Proof, prove_course, prove_primitive
from symbolic.zero import exact

__all__ = ["ClosedForm", "Domain", "Proof", "solve", "verify"]

#: What a symbol that stands for a coefficient must inherit from it.
_SIGNS = ("zero", "positive", "negative", "nonnegative", "nonpositive")


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


def solve(field: VectorField) -> ClosedForm:
    """Solve a scalar autonomous field  dx/dt = f(x; p).

    Explicit for linear, Bernoulli (logistic, power laws), constant-coefficient Riccati fields, for
    sqrt(quadratic) times a linear factor, and for separable fields whose time function SymPy inverts on their only
    basin; implicit,  t = F(x) - F(x_0),  for all others whose 1/f has a real elementary integral.

    Raises:
        NoClosedFormError: several states, time dependence, or no formula that could be found and proven.
    """
    if field.time is not None:
        raise NoClosedFormError(
            f"The field depends on the time {field.time}; closed forms are found for autonomous fields. "
            "Check a candidate with `verify`."
        )
    if len(field.state) != 1:
        raise NoClosedFormError(
            f"The field has {len(field.state)} states {list(field.names)}; closed forms are found for one. "
            "Make it scalar first with `restrict` (an invariant ansatz) or `project` (an observable whose flow "
            "closes), or check a candidate with `verify`."
        )
    coefficients = _compound_coefficients(field)
    if coefficients:
        return _specialised(solve(_with_symbols(field, coefficients)), field, coefficients)
    problem = _Scalar(field)
    refusals = []
    for name, family in FAMILIES:
        try:
            solution = family(problem.f, problem.x, problem.t, problem.start)
            if solution is not None:
                return problem.law(solution)
        except (NoClosedFormError, NotASolutionError, UndecidedError) as refusal:
            refusals.append(f"{name}: {refusal}")
    raise NoClosedFormError(
        f"No closed form was found for {field.state[0]}' = {field.rhs[0]}. " + " ".join(refusals)
    )


def verify(
    field: VectorField,
    candidate: Mapping[sp.Symbol, sp.Expr],
    *,
    time: sp.Symbol,
    initial: Mapping[sp.Symbol, sp.Symbol],
    conditions: Sequence[sp.Basic] = (),
) -> ClosedForm:
    """Prove that a candidate x(t; x_0, p) solves a field, with any number of states, from x(0) = x_0.

    Args:
        field: the flow; if it depends on time, its `time` must be the candidate's.
        candidate: for each state its time course, in time, initial values and parameters.
        time: the symbol of time in the candidate.
        initial: for each state the symbol of its initial value.
        conditions: strict inequalities in time, initial values and parameters under which it is claimed to hold; one
            that holds at t must hold at all earlier times too. Where the candidate divides by a function of time
            that could vanish, the condition that it has not is added.
    Raises:
        TypeError, ValueError: states, symbols or conditions are not as described.
        NotASolutionError: it does not solve the field, or starts elsewhere; carries the residual.
        UndecidedError: it could be neither proven nor disproven.
    """
    paths = _check_candidate(field, candidate, time, initial, conditions)
    starts = tuple(initial[x] for x in field.state)
    margins, remarks = [c.gts - c.lts for c in conditions], []
    for denominator in _denominators(paths, time):
        margins.append(sp.factor(denominator / denominator.subs(time, 0)))
        if not _is_monotone(denominator, time):
            remarks.append(f"whether {denominator} vanished before t and came back is not certified")
    real = _real_symbols((*field.state, *field.parameters, *starts)) | {time: _moment(time)}
    bounds = {**real, **_positive_starts(starts, conditions)}
    pieces = [_pieces(path.xreplace(bounds)) for path in paths]
    proofs = []
    for k in range(max(map(len, pieces))):
        course = Course(
            tuple(real[x] for x in field.state),
            tuple(exact(f.xreplace(real)) for f in field.rhs),
            bounds[time],
            tuple(bounds[s] for s in starts),
            tuple(exact(branches[min(k, len(branches) - 1)]) for branches in pieces),
            tuple(m.xreplace(bounds) for m in margins if not m.is_positive),
        )
        proofs.append(prove_course(course))
    shown = tuple(dict.fromkeys([*conditions, *(sp.Gt(m, 0) for m in margins[len(conditions) :])]))
    domain = Domain(tuple(c for c in shown if c != sp.true), (), tuple(remarks))
    explicit = dict(zip(field.state, paths, strict=True))
    return ClosedForm(field, time, dict(initial), explicit, None, None, _joined(proofs), domain)


class _Scalar:
    """One scalar problem in real symbols, t > 0, and the way back to the user's."""

    def __init__(self, field: VectorField):
        (x,) = field.state
        taken = {s.name for s in (*field.state, *field.parameters)}
        self.field = field
        self.time = sp.Symbol(next(name for name in ("t", "time", "t_") if name not in taken))
        name = next(n for n in (f"{x.name}_0", f"{x.name}_start") if n not in taken)
        self.initial = sp.Symbol(name, **x.assumptions0)
        real = _real_symbols((*field.state, *field.parameters, self.initial))
        self.x, self.start, self.t = real[x], real[self.initial], _moment(self.time)
        self.f = exact(field.rhs[0].xreplace(real))
        self._back = {new: old for old, new in real.items()} | {self.t: self.time}

    def law(self, solution: Solution) -> ClosedForm:
        """The closed form of a solution that a family found, once it is proven."""
        ends, _ = basins.boundaries(self.f, self.x)
        remarks = [
            f"solutions are not unique at {self.field.state[0]} = {self._shown(end.location)}"
            for end in ends
            if not end.is_unique
        ]
        boundaries = tuple(self._shown(end.location) for end in ends)
        if solution.cases:
            try:
                proof = _joined([p for case in solution.cases for p in self._proofs(case, solution.starts)])
            except (NotASolutionError, UndecidedError):
                if solution.primitive is None:
                    raise
            else:
                domain = Domain(self._conditions(solution), boundaries, tuple(remarks))
                path = _cases([(case.path, case.condition) for case in solution.cases])
                explicit = {self.field.state[0]: self._shown(path)}
                return self._made(explicit, None, None, proof, domain)
        F = solution.primitive
        proof = prove_primitive(self.f, self.x, F.expression, F.residual(self.f))
        remarks.append("if F is finite at the end towards which x moves, x arrives there in that finite time")
        primitive = self._shown(F.expression)
        change = primitive - primitive.subs(self.field.state[0], self.initial)
        return self._made(
            None, sp.Eq(self.time, change), primitive, proof, Domain((), boundaries, tuple(remarks))
        )

    def _made(self, explicit, implicit, primitive, proof, domain) -> ClosedForm:
        initial = {self.field.state[0]: self.initial}
        return ClosedForm(self.field, self.time, initial, explicit, implicit, primitive, proof, domain)

    def _shown(self, expression: sp.Basic) -> sp.Basic:
        return expression.xreplace(self._back)

    def _conditions(self, solution: Solution) -> tuple[sp.Basic, ...]:
        conditions = list(solution.starts)
        for k in range(max(len(case.margins) for case in solution.cases)):
            margins = [
                (case.margins[k] if k < len(case.margins) else sp.S.One, case) for case in solution.cases
            ]
            conditions.append(sp.Gt(_cases([(margin, case.condition) for margin, case in margins]), 0))
        return tuple(self._shown(c) for c in conditions if c != sp.true)

    def _proofs(self, case: Case, starts: Sequence[sp.Basic]) -> list[Proof]:
        f, relations = self.f, ()
        if case.vanishing is not None:
            if case.vanishing.is_Symbol:
                f = f.xreplace({case.vanishing: sp.S.Zero})
            else:
                relations = (sp.numer(sp.together(case.vanishing)),)
        bounds = _positive_starts((self.start,), starts)
        guards = [c.gts - c.lts for c in starts if isinstance(c, sp.core.relational._Inequality)]
        if isinstance(case.condition, (sp.Gt, sp.Lt)):
            guards.append(case.condition.gts - case.condition.lts)
        return [
            prove_course(
                Course(
                    (self.x,),
                    (f,),
                    self.t,
                    (bounds.get(self.start, self.start),),
                    (piece.xreplace(bounds),),
                    tuple(m.xreplace(bounds) for m in (*case.margins, *guards)),
                    tuple(e.xreplace(bounds) for e in case.positive),
                    relations,
                )
            )
            for piece in _pieces(case.path)
        ]


def _compound_coefficients(field: VectorField) -> dict[sp.Symbol, sp.Expr]:
    """Symbols for the coefficients of a full quadratic that are compound expressions, with their signs.

    What holds for every a, b, c holds for the given ones, and is proven a hundred times faster.
    """
    (x,), (f,) = field.state, field.rhs
    if not f.is_polynomial(x) or sp.degree(f, x) != 2:
        return {}
    values = [sp.factor(c) for c in reversed(sp.Poly(f, x).all_coeffs())]
    if values[0] == 0 or all(value.is_Atom or (-value).is_Atom for value in values):
        return {}
    taken = {symbol.name for symbol in (x, *field.parameters)}
    found = {}
    for name, value in zip("abc", values, strict=True):
        while name in taken:
            name += "_"
        signs = {sign: True for sign in _SIGNS if getattr(value, f"is_{sign}")}
        found[sp.Symbol(name, **signs)] = value
    return found


def _with_symbols(field: VectorField, coefficients: Mapping[sp.Symbol, sp.Expr]) -> VectorField:
    (x,) = field.state
    rhs = sp.Add(*(symbol * x**k for k, symbol in enumerate(coefficients)))
    # The field's own parameters stay declared, so that the law's new names avoid them.
    return VectorField((x,), (rhs,), (*coefficients, *field.parameters), source=field.source)


def _specialised(law: ClosedForm, field: VectorField, values: Mapping[sp.Symbol, sp.Expr]) -> ClosedForm:
    """A law with symbolic coefficients at the given ones."""
    names = ", ".join(f"{symbol} = {value}" for symbol, value in values.items())

    def at(expression):
        return None if expression is None else expression.xreplace(values)

    return replace(
        law,
        field=field,
        explicit={x: at(path) for x, path in law.explicit.items()} if law.explicit else None,
        implicit=at(law.implicit),
        primitive=at(law.primitive),
        proof=replace(
            law.proof, argument=f"{law.proof.argument}, for all coefficients with these signs: {names}"
        ),
        domain=replace(
            law.domain,
            conditions=tuple(c for c in map(at, law.domain.conditions) if c != sp.true),
            boundaries=tuple(map(at, law.domain.boundaries)),
        ),
    )


def _cases(values: list[tuple[sp.Expr, sp.Basic]]) -> sp.Expr:
    return values[0][0] if len(values) == 1 else sp.Piecewise(*values)


def _pieces(path: sp.Expr) -> list[sp.Expr]:
    """The branches of an expression with Piecewise parts: each must solve the equation by itself."""
    folded = sp.piecewise_fold(path) if path.has(sp.Piecewise) else path
    return [value for value, _ in folded.args] if isinstance(folded, sp.Piecewise) else [folded]


def _joined(proofs: Sequence[Proof]) -> Proof:
    arguments = dict.fromkeys(proof.argument for proof in proofs)
    spots = tuple(spot for proof in proofs for spot in proof.spots)
    return Proof(sp.S.Zero, sp.S.Zero, spots, "; ".join(arguments))


def _real_symbols(symbols: Sequence[sp.Symbol]) -> dict[sp.Symbol, sp.Symbol]:
    return {s: sp.Symbol(s.name, **{**s.assumptions0, "real": True}) for s in symbols}


def _moment(time: sp.Symbol) -> sp.Symbol:
    # Formulas and proofs are for t > 0; at t = 0 the start is checked separately.
    return sp.Symbol(time.name, positive=True)


def _positive_starts(
    starts: Sequence[sp.Symbol], conditions: Sequence[sp.Basic]
) -> dict[sp.Symbol, sp.Symbol]:
    """Initial values that the conditions declare positive, as positive symbols."""
    positive = {c.gts for c in conditions if isinstance(c, (sp.Gt, sp.Lt)) and c.lts.is_nonnegative}
    return {s: sp.Symbol(s.name, positive=True) for s in starts if s in positive}


def _denominators(paths: Sequence[sp.Expr], time: sp.Symbol) -> list[sp.Expr]:
    found = {}
    for path in paths:
        for power in path.atoms(sp.Pow):
            if power.base.has(time) and power.exp.could_extract_minus_sign():
                found[power.base] = None
    t = sp.Dummy("t", positive=True)
    return [d for d in found if not d.subs(time, t).is_nonzero]


def _is_monotone(expression: sp.Expr, time: sp.Symbol) -> bool:
    """Whether an expression is affine in t or in one exponential exp(k t)."""
    rate = expression.diff(time)
    if not rate.has(time):
        return True
    growth = sp.simplify(rate.diff(time) / rate)
    return not growth.has(time)


def _check_candidate(field, candidate, time, initial, conditions) -> tuple[sp.Expr, ...]:
    if not isinstance(time, sp.Symbol):
        raise TypeError(f"`time` must be a sympy Symbol; got {time!r}.")
    for name, given in (("candidate", candidate), ("initial", initial)):
        if not isinstance(given, Mapping):
            raise TypeError(f"`{name}` must be a mapping from state to expression; got {given!r}.")
        missing, unknown = (
            [x for x in field.state if x not in given],
            [x for x in given if x not in field.state],
        )
        if missing or unknown:
            raise ValueError(
                f"`{name}` must name exactly the states {list(field.names)}; missing {missing}, unknown {unknown}."
            )
    starts = list(initial.values())
    taken = {*field.state, *field.parameters, time}
    if (
        not all(isinstance(s, sp.Symbol) for s in starts)
        or len(set(starts)) < len(starts)
        or taken & set(starts)
    ):
        raise ValueError(
            f"`initial` must give each state its own symbol, none of {sorted(map(str, taken))}; got {starts}."
        )
    if field.time is not None and field.time != time:
        raise ValueError(f"The field's time is {field.time}, the candidate's {time}. Use the same symbol.")
    if time in (*field.state, *field.parameters):
        raise ValueError(f"`time` is {time}, which is a state or a parameter of the field.")
    paths = tuple(sp.sympify(candidate[x]) for x in field.state)
    allowed = {*field.parameters, time, *starts}
    used = {s for e in (*paths, *conditions) for s in e.free_symbols}
    if used - allowed:
        raise ValueError(
            f"The candidate uses {sorted(map(str, used - allowed))}; it may use the time {time}, initial values "
            f"{starts} and parameters {list(field.parameters)}."
        )
    if not all(isinstance(c, (sp.Gt, sp.Lt)) for c in conditions):
        raise ValueError(f"`conditions` must be strict inequalities such as x_0 > 0; got {list(conditions)}.")
    return paths
