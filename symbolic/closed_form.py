"""Time courses as formulas, each with the proof that it is one and the domain on which it holds.

`solve` finds x(t; x_0, p) for scalar autonomous fields; `verify` takes any candidate for any field. SymPy's
integrals and solvers may propose, but nothing is returned that was not substituted back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy as sp

from symbolic import basins
from symbolic.candidate import verify
from symbolic.course import Course, branches, moment, positive_starts, real_symbols, where_zero
from symbolic.errors import NoClosedFormError, NotASolutionError, UndecidedError
from symbolic.families import FAMILIES, Case, Solution
from symbolic.field import VectorField
from symbolic.law import ClosedForm, Domain
from symbolic.proof import Proof, joined, prove_course, prove_primitive
from symbolic.zero import exact

__all__ = ["ClosedForm", "Domain", "Proof", "solve", "verify"]

#: What a symbol that stands for a coefficient must inherit from it.
_SIGNS = ("zero", "positive", "negative", "nonnegative", "nonpositive")


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


class _Scalar:
    """One scalar problem in real symbols, t > 0, and the way back to the user's."""

    def __init__(self, field: VectorField):
        (x,) = field.state
        taken = {s.name for s in (*field.state, *field.parameters)}
        self.field = field
        self.time = sp.Symbol(next(name for name in ("t", "time", "t_") if name not in taken))
        name = next(n for n in (f"{x.name}_0", f"{x.name}_start") if n not in taken)
        self.initial = sp.Symbol(name, **x.assumptions0)
        real = real_symbols((*field.state, *field.parameters, self.initial))
        self.x, self.start, self.t = real[x], real[self.initial], moment(self.time)
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
                proof = joined([p for case in solution.cases for p in self._proofs(case, solution.starts)])
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
        bounds = positive_starts((self.start,), starts)
        guards = [c.gts - c.lts for c in (*starts, case.condition) if isinstance(c, (sp.Gt, sp.Lt))]
        course = Course(
            (self.x,),
            (self.f,),
            self.t,
            (bounds.get(self.start, self.start),),
            (case.path.xreplace(bounds),),
            tuple(m.xreplace(bounds) for m in (*case.margins, *guards)),
            tuple(e.xreplace(bounds) for e in case.positive),
        )
        return [prove_course(branch) for branch in branches(where_zero(course, case.vanishing))]


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
