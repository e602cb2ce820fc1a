"""Scalar autonomous equations  x' = f(x)  that are solved by a formula: one family, one function.

Every formula is written so that floating point can follow it: exponentials decay, 1 - E stands as one
quantity, and what would cancel is replaced by a quotient, for the signs that the symbols' assumptions tell.
All symbols are real here and t >= 0. Nothing is trusted: `closed_form.solve` proves each case by substitution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import sympy as sp

from symbolic.basins import boundaries
from symbolic.primitive import Primitive, primitive

__all__ = ["FAMILIES", "Case", "Solution"]


@dataclass(frozen=True)
class Case:
    """x(t) under a condition on the parameters; `margins` are positive exactly on the time course's domain.

    Each margin is monotone in t between its sign changes, so that a positive value at t means that it was
    positive ever since 0. `positive` are expressions in the path that are positive anyway, for a reason that SymPy
    does not see; `vanishing` is an expression that is zero in this case.
    """

    path: sp.Expr
    margins: tuple[sp.Expr, ...] = ()
    condition: sp.Basic = sp.true
    positive: tuple[sp.Expr, ...] = ()
    vanishing: sp.Expr | None = None


@dataclass(frozen=True)
class Solution:
    """What a family found: the cases of an explicit time course, or the primitive F of 1/f.

    `starts` are relations that the initial value must satisfy.
    """

    cases: tuple[Case, ...] = ()
    primitive: Primitive | None = None
    starts: tuple[sp.Basic, ...] = ()


def linear(f: sp.Expr, x: sp.Symbol, t: sp.Symbol, start: sp.Symbol) -> Solution | None:
    """x' = a + b x:   x = x_0 exp(b t) + a (exp(b t) - 1)/b."""
    coefficients = _quadratic(f, x)
    if coefficients is None or coefficients[2] != 0:
        return None
    a, b, _ = coefficients
    growth = sp.exp(b * t)
    moving = Case(start * growth + a * (growth - 1) / b) if b != 0 else Case(start)
    return Solution(_split(b, moving, Case(start + a * t, vanishing=b)))


def riccati(f: sp.Expr, x: sp.Symbol, t: sp.Symbol, start: sp.Symbol) -> Solution | None:
    """x' = a + b x + c x^2, with  s^2 = b^2 - 4 a c,  p = (s + b)/2,  q = (s - b)/2,  E = exp(-s t):

        x = (x_0 (s E + p (1 - E)) + a (1 - E)) / (s E + (q - c x_0) (1 - E)),

    its limit at s = 0 and its real form for s^2 < 0. p q = -a c gives the smaller of p and q from the larger.
    The denominator is affine in E and positive at t = 0, so its first zero, the blow-up, is its only one.
    """
    coefficients = _quadratic(f, x)
    if coefficients is None:
        return None
    a, b, c = coefficients
    disc = sp.factor(b**2 - 4 * a * c)
    s = sp.sqrt(disc)
    p, q = _halves(s, b, a * c)
    E, unit = sp.exp(-s * t), next((size for size in (b, -b) if size.is_positive), s)
    s, p, q, a1, c1 = (_ratio(value, unit) for value in (s, p, q, a, c))
    top = start * _mixed(s, p, E) + a1 * (1 - E)
    bottom = _mixed(s, q, E) - c1 * start * (1 - E)
    real = Case(top / bottom, _unless_nonnegative(q - c1 * start, bottom))
    k = sp.factor(b / 2) + c * start
    double = Case(
        (start + t * (sp.factor(b / 2) * start + a)) / (1 - t * k),
        _unless_nonnegative(-k, 1 - t * k),
        vanishing=disc,
    )
    w = sp.sqrt(-disc)
    cos, sin = sp.cos(w * t / 2), sp.sin(w * t / 2)
    turning = Case(
        (start * w * cos + (2 * a + b * start) * sin) / (w * cos - 2 * k * sin),
        (sp.pi / 2 - sp.atan(2 * k / w) - w * t / 2,),
    )
    return Solution(_split(disc, real, double, turning))


def bernoulli(f: sp.Expr, x: sp.Symbol, t: sp.Symbol, start: sp.Symbol) -> Solution | None:
    """x' = a x + b x^n:   x = x_0 B^(1/(1-n)),  B = E + k (1 - E),  k = -(b/a) x_0^(n-1),  E = exp(-(n-1) a t).

    B is affine in E and 1 at the start; where it vanishes the solution blows up (n > 1) or reaches 0 (n < 1).
    """
    powers = _powers(f, x)
    if powers is None:
        return None
    a, b, n = powers
    m, root = n - 1, 1 / (1 - n)
    starts: list[sp.Basic] = [] if n.is_integer else [sp.Gt(start, 0)]
    if n.is_integer and n.is_negative:
        starts.append(sp.Ne(start, 0))
    if n.is_number is False:
        starts.append(sp.Ne(n, 1))
    if not n.is_integer and m.is_negative:  # x^(1-n) moves on a line, and is finite at x_0 = 0 too
        moved, push = start ** (-m) - m * b * t, -m * b
        still = Case(moved**root, _unless_nonnegative(push, moved), positive=(moved,), vanishing=a)
    else:
        push = -m * b * start**m
        moved = 1 + push * t
        still = Case(start * moved**root, _unless_nonnegative(push, moved), positive=(moved,), vanishing=a)
    if a == 0:
        return Solution((replace(still, vanishing=None),), starts=tuple(starts))
    rate, k = sp.factor(m * a), sp.factor(-b / a) * start**m
    decayed, shrunk = sp.exp(-rate * t), sp.exp(rate * t)
    falling, rising = _mixed(sp.S.One, k, decayed), 1 - k * (1 - shrunk)
    down = Case(start * falling**root, _unless_nonnegative(k, falling), positive=(falling,))
    up = Case(start * sp.exp(a * t) * rising**root, _unless_nonnegative(-k, rising), positive=(rising,))
    cases = _split(rate, down, still, up)
    if len(cases) == 3 and a.is_nonzero:
        cases = (cases[0], replace(up, condition=sp.true))
    return Solution(cases, starts=tuple(starts))


def square_root(f: sp.Expr, x: sp.Symbol, t: sp.Symbol, start: sp.Symbol) -> Solution | None:
    """x' = kappa sqrt(x^2 + d):   x = x_0 cosh(kappa t) + h sinh(kappa t),  h = sqrt(x_0^2 + d)  (x shifted).

    It holds until x^2 + d, that is  h + x_0 tanh(kappa t),  vanishes: there solutions are not unique.
    """
    parts = _under_root(f, x)
    if parts is None or parts[1].degree() != 0:
        return None
    centre, slope, d = parts
    kappa, y = slope.as_expr(), start - centre
    h = sp.sqrt(y**2 + d)
    path = centre + y * sp.cosh(kappa * t) + h * sp.sinh(kappa * t)
    if d.is_positive:
        return Solution((Case(path),))
    return Solution((Case(path, (h + y * sp.tanh(kappa * t),)),), starts=(sp.Gt(y**2 + d, 0),))


def linear_network(f: sp.Expr, x: sp.Symbol, t: sp.Symbol, start: sp.Symbol) -> Solution | None:
    """x' = 2 kappa sqrt(x^2 + d) (r - x),  d >= 0  (x shifted): the product of a two-layer linear network's weights.

    x = P y - Q/y with P - Q = x_0, P + Q = h = sqrt(x_0^2 + d) and 4 P Q = d turns it into the Riccati equation
    y' = 2 kappa (r y - P y^2 + Q), y(0) = 1. Eliminating P, Q and y, with s = 2 sqrt(r^2 + d), E = exp(-kappa s t),
    X = s E, W = 1 - E and l = 2 r x_0 + s h + 2 d:

        x = (x_0 X^2 + (s x_0 + 2 r h) X W + r l W^2) / (X^2 + (s + 2 h) X W + l W^2)
    """
    parts = _under_root(f, x)
    if parts is None or parts[1].degree() != 1 or not parts[2].is_nonnegative:
        return None
    centre, slope, d = parts
    kappa = sp.factor(-slope.LC() / 2)
    r, y = sp.factor(-slope.nth(0) / slope.LC()) - centre, start - centre
    h, s = sp.sqrt(y**2 + d), 2 * sp.sqrt(sp.factor(r**2 + d))
    E = sp.exp(-kappa * s * t) if not kappa.is_negative else sp.exp(kappa * s * t)
    X, W = (s * E, 1 - E) if not kappa.is_negative else (s, E - 1)
    last = 2 * r * y + s * h + 2 * d
    top = y * X**2 + (s * y + 2 * r * h) * X * W + r * last * W**2
    bottom = X**2 + (s + 2 * h) * X * W + last * W**2
    ends = () if kappa.is_positive else (X + W * (s / 2 + r + h - y), X + W * (s / 2 - r + h + y))
    starts = () if s.is_positive else (sp.Gt(s, 0),)  # r = d = 0 leaves x' = -2 kappa |x| x
    return Solution((Case(centre + top / bottom, ends),), starts=starts)


def separable(f: sp.Expr, x: sp.Symbol, t: sp.Symbol, start: sp.Symbol) -> Solution | None:
    """t = F(x) - F(x_0) with F' f = 1;  x = G(t + F(x_0)) where f has one basin and SymPy finds the inverse G.

    If F is finite at the end of the basin towards which x moves, that end is reached at that finite time.
    """
    found = primitive(f, x)
    implicit = Solution(primitive=found)
    if f.is_rational_function(x):
        return implicit
    basin = _only_basin(f, x)
    if basin is None:
        return implicit
    (lower, sample, upper), w = basin, sp.Dummy("w", real=True)
    try:
        inverses = sp.solve(sp.Eq(found.expression, w), x)
        ahead = upper if f.subs(x, sample).evalf() > 0 else lower
        limit = sp.limit(found.expression, x, ahead, "-" if ahead == upper else "+")
    except (NotImplementedError, ValueError):
        return implicit
    inverses = [g for g in inverses if _meets(g.subs(w, found.expression.subs(x, sample)), sample)]
    if len(inverses) != 1 or not (limit.is_infinite or limit.is_finite):
        return implicit
    moment = t + found.expression.subs(x, start)
    margins = () if limit.is_infinite else (limit - moment,)
    starts = [sp.Gt(start, lower)] if lower.is_finite else []
    starts += [sp.Lt(start, upper)] if upper.is_finite else []
    return Solution((Case(inverses[0].subs(w, moment), margins),), found, tuple(starts))


FAMILIES: tuple[tuple[str, Callable[..., Solution | None]], ...] = (
    ("linear", linear),
    ("Riccati with constant coefficients", riccati),
    ("Bernoulli", bernoulli),
    ("square root of a quadratic", square_root),
    ("product of a two-layer linear network", linear_network),
    ("separable", separable),
)


# --- reading the coefficients -------------------------------------------------------------------------------


def _quadratic(f: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
    """(a, b, c) with f = a + b x + c x^2."""
    f = sp.expand(sp.cancel(f)) if f.is_rational_function(x) else f
    if not f.is_polynomial(x) or sp.degree(f, x) > 2:
        return None
    a, b, c = (sp.factor(f.coeff(x, i)) for i in range(3))
    return a, b, c


def _powers(f: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
    """(a, b, n) with f = a x + b x^n, n a constant other than one."""
    coefficients: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.powsimp(sp.expand(f))):
        coefficient, power = term.as_independent(x)
        base, n = power.as_base_exp()
        if base != x or n.has(x):
            return None
        coefficients[n] = coefficients.get(n, sp.S.Zero) + coefficient
    a = coefficients.pop(sp.S.One, sp.S.Zero)
    if len(coefficients) != 1:
        return None
    ((n, b),) = coefficients.items()
    return sp.factor(a), sp.factor(b), n


def _under_root(f: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, sp.Poly, sp.Expr] | None:
    """(x_c, slope, d) with  f = slope(x) sqrt((x - x_c)^2 + d),  slope a polynomial of degree at most one."""
    root, rest = sp.S.One, sp.S.One
    for factor in sp.Mul.make_args(sp.factor(f)):
        base, power = factor.as_base_exp()
        if power == sp.S.Half and base.has(x) and base.is_polynomial(x):
            root *= base
        else:
            rest *= factor
    if root == 1 or not rest.is_polynomial(x) or sp.degree(root, x) != 2 or sp.degree(rest, x) > 1:
        return None
    q = sp.Poly(root, x)
    if not q.LC().is_positive:
        return None
    centre = sp.factor(-q.nth(1) / (2 * q.LC()))
    d = sp.factor(q.nth(0) / q.LC() - centre**2)
    return centre, sp.Poly(rest * sp.sqrt(q.LC()), x), d


def _only_basin(f: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
    """(lower end, a point inside, upper end) of the one interval where f is real and has no zero or singularity."""
    ends, unknown = boundaries(f, x)
    if unknown or f.free_symbols != {x}:
        return None
    marks = [-sp.oo, *(end.location for end in ends), sp.oo]
    found = []
    for lower, upper in pairwise(marks):
        if lower.is_infinite and upper.is_infinite:
            sample = sp.S.Half
        elif lower.is_infinite or upper.is_infinite:
            sample = upper - sp.Rational(1, 3) if lower.is_infinite else lower + sp.Rational(1, 3)
        else:
            sample = lower + (upper - lower) / 3
        if f.subs(x, sample).evalf().is_real:
            found.append((lower, sample, upper))
    return found[0] if len(found) == 1 else None


def _meets(value: sp.Expr, wanted: sp.Expr) -> bool:
    gap = (value - wanted).evalf(30)
    return bool(gap.is_number and gap.is_finite and abs(gap) < sp.Float("1e-20"))


# --- writing the formulas -----------------------------------------------------------------------------------


def _mixed(early: sp.Expr, late: sp.Expr, E: sp.Expr) -> sp.Expr:
    """early E + late (1 - E), which goes from `early` to `late` as E decays."""
    return early if early == late else early * E + late * (1 - E)


def _halves(s: sp.Expr, b: sp.Expr, product: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """(s + b)/2 and (s - b)/2 for s >= 0, whose product is `-product`: no difference of nearly equal numbers."""
    if product == 0 and b.is_nonnegative is None and b.is_nonpositive is None:
        return (s + b) / 2, (s - b) / 2  # s = |b|: exact in floating point
    upper, lower = (s + b) / 2, (s - b) / 2
    if b.is_nonnegative:
        return upper, -product / upper if product != 0 else sp.S.Zero
    if b.is_nonpositive:
        return -product / lower if product != 0 else sp.S.Zero, lower
    return (
        sp.Piecewise((upper, b >= 0), (-product / lower, True)),
        sp.Piecewise((-product / upper, b >= 0), (lower, True)),
    )


def _ratio(value: sp.Expr, unit: sp.Expr) -> sp.Expr:
    if value.has(sp.Piecewise):
        return value.func(*((_ratio(branch, unit), condition) for branch, condition in value.args))
    return sp.S.One if value == unit else sp.factor(sp.cancel(value / unit))


def _unless_nonnegative(push: sp.Expr, margin: sp.Expr) -> tuple[sp.Expr, ...]:
    """The margin, which only a negative `push` can use up."""
    return () if push.is_nonnegative else (margin,)


def _split(quantity: sp.Expr, positive: Case, zero: Case, negative: Case | None = None) -> tuple[Case, ...]:
    """The cases by the sign of a quantity, as far as it is not known; `negative=None` if `positive` covers it."""
    if quantity.is_Pow and quantity.exp == 2 and negative is not None:
        quantity, negative = quantity.base, None  # a square is never negative, and zero where its root is
        zero = replace(zero, vanishing=quantity)
    if quantity.is_Symbol:
        zero = replace(
            zero, path=zero.path.subs(quantity, 0), margins=tuple(m.subs(quantity, 0) for m in zero.margins)
        )
    if quantity.is_zero:
        return (replace(zero, vanishing=None),)
    if quantity.is_positive or (negative is None and quantity.is_nonzero):
        return (positive,)
    if negative is None or quantity.is_nonnegative:
        return replace(positive, condition=sp.Ne(quantity, 0)), zero
    if quantity.is_negative:
        return (negative,)
    above, below = sp.Gt(quantity, 0), sp.Lt(quantity, 0)
    return replace(positive, condition=above), replace(negative, condition=below), zero
