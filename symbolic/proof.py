"""What it takes to call an expression a solution: substituted exactly, started exactly, checked in numbers.

    dx/dt - f(x) = 0   identically,      x(0) = x_0   identically,      both again at fixed rational points

The numbers never prove anything; they catch a false simplification and a wrong real branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from symbolic.course import Course
from symbolic.errors import UndecidedError
from symbolic.normal_form import vanishes
from symbolic.spots import Spot, course_spots, primitive_spots
from symbolic.zero import residual

__all__ = ["Proof", "has_roots", "joined", "prove_course", "prove_primitive"]

#: Size up to which SymPy's simplification is asked, which is slow on large expressions.
_SIMPLIFY_OPS = 300


@dataclass(frozen=True)
class Proof:
    """The evidence for a closed form; `residual` and `initial_residual` are literally 0.

    `argument` says how the residual was found to vanish.
    """

    residual: sp.Expr
    initial_residual: sp.Expr
    spots: tuple[Spot, ...]
    argument: str

    def __str__(self) -> str:
        checks = "; ".join(str(spot) for spot in self.spots)
        return (
            f"residual {self.residual}, {self.argument}; initial residual {self.initial_residual}; "
            f"checked numerically: {checks}"
        )


def joined(proofs: Sequence[Proof]) -> Proof:
    """One proof of all."""
    arguments = dict.fromkeys(proof.argument for proof in proofs)
    spots = tuple(spot for proof in proofs for spot in proof.spots)
    return Proof(sp.S.Zero, sp.S.Zero, spots, "; ".join(arguments))


def prove_course(course: Course) -> Proof:
    """Prove that a candidate solves its equation from its start, or refuse.

    Raises:
        NotASolutionError: a number shows that it does not; carries the residual.
        UndecidedError: no number contradicts it, and no argument proves it.
    """
    spots = course_spots(course)
    arguments = []
    for x, f, path, start in zip(course.state, course.rhs, course.paths, course.starts, strict=True):
        if _square_solves(course, f, path):
            arguments.append("by substitution into the squared equation, its sign fixed by the initial slope")
        elif _solves(course, f, path):
            arguments.append("by substitution")
        else:
            left = path.diff(course.time) - course.along(f)
            raise UndecidedError(
                f"Could not prove that {x} = {path} solves d{x}/d{course.time} = {f}, although it does so at every "
                "point tried. Give a simpler form, or stronger assumptions on the symbols.",
                left,
            )
        left = _started(path, course) - start
        if not _vanishes(left, course):
            raise UndecidedError(f"Could not prove that {x} = {path} starts at {start}.", left)
    return Proof(sp.S.Zero, sp.S.Zero, spots, "; ".join(dict.fromkeys(arguments)))


def prove_primitive(f: sp.Expr, x: sp.Symbol, function: sp.Expr, left: sp.Expr) -> Proof:
    """The proof of an implicit law from the residual F' f - 1 of its primitive, checked on F itself.

    t = F(x) - F(x_0) meets its start by construction; that F is real and increases along the flow is checked.
    """
    if left != 0:
        raise UndecidedError(f"The derivative of {function} could not be shown to be 1/({f}): {left}.", left)
    spots = primitive_spots(f, x, function)
    return Proof(sp.S.Zero, sp.S.Zero, spots, "F' f - 1 = 0")


# --- exact arguments ----------------------------------------------------------------------------------------


def _vanishes(expression: sp.Expr, course: Course) -> bool:
    if vanishes(expression, course.relations):
        return True
    return sp.count_ops(expression) < _SIMPLIFY_OPS and residual(expression, course.relations) == 0


def _solves(course: Course, f: sp.Expr, path: sp.Expr) -> bool:
    """Whether x' - f(x) vanishes, the candidates and their rates being substituted."""
    paths, definitions = _collected(course)
    rates = [_rate(p, course.time, definitions) for p in paths]
    rate = rates[course.paths.index(path)] - f.subs(
        dict(zip(course.state, paths, strict=True)), simultaneous=True
    )
    shift = _shifted_exponents(f, course)
    rate = sp.expand_power_base(rate.xreplace(shift))
    if vanishes(rate, course.relations, {B: base.xreplace(shift) for B, base in definitions.items()}):
        return True
    return not definitions and _vanishes(_lambert(rate, course.time), course)


def _square_solves(course: Course, f: sp.Expr, path: sp.Expr) -> bool:
    """f = r sqrt(q): if x'^2 = f(x)^2 identically and x'(0) = f(x_0), then x' = f(x) until f(x) vanishes."""
    if len(course.state) != 1 or f.has(course.time):
        return False
    (x,), (start,) = course.state, course.starts
    square = sp.expand(f**2)
    if not has_roots(f, x) or has_roots(square, x):
        return False
    rate = path.diff(course.time)
    return vanishes(rate**2 - square.subs(x, path), course.relations) and _vanishes(
        rate.subs(course.time, 0) - f.subs(x, start), course
    )


def has_roots(f: sp.Expr, x: sp.Symbol) -> bool:
    """Whether f holds a broken power of something with x."""
    return any(p.base.has(x) and not p.exp.is_integer for p in f.atoms(sp.Pow))


def _collected(course: Course) -> tuple[list[sp.Expr], dict[sp.Symbol, sp.Expr]]:
    """The paths with the positive bases of their broken powers as symbols: (c B^q)^n is then c^n B^(q n)."""
    known = (*course.margins, *course.positive)
    bases = {
        p.base: sp.Dummy("B", positive=True)
        for path in course.paths
        for p in path.atoms(sp.Pow)
        if p.base.has(course.time) and (p.base in known or (p.base.is_positive and not p.exp.is_integer))
    }
    return [path.xreplace(bases) for path in course.paths], {B: base for base, B in bases.items()}


def _rate(path: sp.Expr, t: sp.Symbol, definitions: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    return path.diff(t) + sp.Add(*(path.diff(B) * base.diff(t) for B, base in definitions.items()))


def _shifted_exponents(f: sp.Expr, course: Course) -> dict[sp.Symbol, sp.Expr]:
    """Symbolic exponents n of f as 1 + m, since it is m = n - 1 by which Bernoulli's substitution divides."""
    exponents = {n for p in f.atoms(sp.Pow) for n in p.exp.free_symbols if p.base.has(*course.state)}
    return {n: 1 + sp.Dummy(n.name, real=True, nonzero=True) for n in exponents}


def _started(path: sp.Expr, course: Course) -> sp.Expr:
    return _inverse_lambert(path.subs(course.time, 0))


def _lambert(expression: sp.Expr, t: sp.Symbol) -> sp.Expr:
    """Write W(exp(T)) as w > 0 and T, linear in t, as w + log w, so that SymPy sees W exp(W) = exp(T)."""
    atoms = [a for a in expression.atoms(sp.LambertW) if isinstance(a.args[0], sp.exp) and len(a.args) == 1]
    if len(atoms) != 1:
        return expression
    (atom,), w = atoms, sp.Dummy("w", positive=True)
    exponent = atom.args[0].exp
    slope = exponent.diff(t)
    if slope == 0 or slope.has(t):
        return expression
    moment = (w + sp.log(w) - exponent.subs(t, 0)) / slope
    return sp.powsimp(sp.expand(expression.xreplace({atom: w}).subs(t, moment)))


def _inverse_lambert(expression: sp.Expr) -> sp.Expr:
    """W(y exp(y)) = y for y > 0, which SymPy does not see when it holds exp(log(y) + y)."""

    def undone(z, *branch):
        exponent = sp.expand(z.exp) if isinstance(z, sp.exp) else sp.S.Zero
        for y in exponent.atoms(sp.exp):
            if not branch and sp.expand(exponent - y - y.exp) == 0:
                return y
        return sp.LambertW(z, *branch)

    return expression.replace(sp.LambertW, undone)
