"""Where a scalar field vanishes or stops being smooth: the ends of the basins that solutions never leave."""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy as sp

from symbolic.primitive import two_monomials
from symbolic.roots import real_roots
from symbolic.zero import exact

__all__ = ["Boundary", "arrival", "basin", "boundaries", "smooth_factors"]

#: Digits that decide whether a root of a polynomial's norm is one of the polynomial itself.
_DIGITS = 60


@dataclass(frozen=True)
class Boundary:
    """A zero or singularity of f:  f ~ |x - location|^order  there, order > 0 for a zero.

    At a zero of order below one solutions are not unique: 1/f can be integrated up to it.
    """

    location: sp.Expr
    order: sp.Expr

    @property
    def is_unique(self) -> bool:
        return not (self.order.is_positive and (1 - self.order).is_positive)


def boundaries(f: sp.Expr, x: sp.Symbol) -> tuple[tuple[Boundary, ...], tuple[sp.Expr, ...]]:
    """The zeros and singularities of f that have an expression, and the factors of f whose zeros have none."""
    found, unknown = [], []
    g, y, q = _without_roots(f, x)
    for base, order in smooth_factors(g, y):
        roots = _roots(base, y)
        if roots is None:
            unknown.append(base.subs(y, x ** sp.Rational(1, q)))
        for root, multiplicity in roots or ():
            if q == 1 or not root.is_negative:
                found.append(Boundary(root**q, order * multiplicity / (q if root == 0 else 1)))
    if all(b.location.is_number for b in found):
        found.sort(key=lambda b: b.location.evalf())
    return tuple(found), tuple(unknown)


def basin(f: sp.Expr, x: sp.Symbol, start: sp.Expr) -> tuple[float, float]:
    """The largest open interval around a start in which f, a function of x alone, has no zero or singularity.

    Proven by isolating every real root of every factor in exact arithmetic; the ends are the floats next to
    the roots, inside the interval, and infinite where there is no root.

    Raises:
        ValueError: the start is itself a zero or a singularity, f is not real there, or a factor of f is neither
            a polynomial (in x, or in a root of x) with algebraic coefficients nor known to be positive.
    """
    start = exact(sp.sympify(start))
    lower, upper = _ends(exact(f), x, start)
    return (
        _rounded(lower.root, up=True, inside=start) if lower else -math.inf,
        _rounded(upper.root, up=False, inside=start) if upper else math.inf,
    )


def arrival(f: sp.Expr, x: sp.Symbol, F: sp.Expr, start: sp.Expr) -> float:
    """The time at which x' = f(x) reaches the end of its basin from a start; infinite if it never does.

    That time is F(end) - F(start) with F' f = 1. It is infinite at a zero of f of order one or more, and at
    infinity unless F has a limit there, which is judged at 10^20 and 10^40.

    Raises:
        ValueError: as `basin`.
    """
    start, f, F = exact(sp.sympify(start)), exact(f), exact(F)
    lower, upper = _ends(f, x, start)
    forward = f.subs(x, start).evalf() > 0
    end = upper if forward else lower
    if end is not None:
        return math.inf if end.order >= 1 else float(_difference(F, x, end.root, start))
    near, far = (_difference(F, x, sp.Integer(10) ** k * (1 if forward else -1), start) for k in (20, 40))
    return float(far) if far.is_finite and abs(far - near) <= 10**-15 * abs(far) else math.inf


@dataclass(frozen=True)
class _End:
    root: sp.Rational  # to 25 digits
    order: sp.Expr


def _ends(f: sp.Expr, x: sp.Symbol, start: sp.Rational) -> tuple[_End | None, _End | None]:
    """The zero or singularity of f next below a start, and the one next above."""
    g, y, q = _without_roots(f, x)
    inner, below, above = start ** sp.Rational(1, q), [], []
    for base, order in smooth_factors(g, y):
        for low, high in _certified(base, y):
            if q > 1 and high < 0:
                continue
            inside = low**q <= start <= high**q
            if inside and base.subs(y, inner).equals(0):
                what = "a zero" if order.is_positive else "a singularity"
                raise ValueError(f"The start {x} = {float(start):.12g} is {what} of the field {f}.")
            order = order / q if low == 0 == high else order
            if high**q < start or (inside and base.subs(y, inner) * base.subs(y, high) > 0):
                below.append(_End(high**q, order))
            else:
                above.append(_End(low**q, order))
    if f.subs(x, start).is_real is False:
        raise ValueError(f"The field {f} is not real at the start {x} = {float(start):.12g}.")
    return max(below, key=lambda end: end.root, default=None), min(
        above, key=lambda end: end.root, default=None
    )


def _difference(F: sp.Expr, x: sp.Symbol, end: sp.Rational, start: sp.Rational) -> sp.Expr:
    return F.evalf(_DIGITS, subs={x: end}, maxn=400) - F.evalf(_DIGITS, subs={x: start}, maxn=400)


def smooth_factors(f: sp.Expr, x: sp.Symbol) -> list[tuple[sp.Expr, sp.Expr]]:
    """(base, exponent) of the factors of f that depend on x and may vanish; positive ones are left out."""
    orders: dict[sp.Expr, sp.Expr] = {}
    for factor in sp.Mul.make_args(sp.factor(sp.together(f))):
        base, order = factor.as_base_exp()
        inner, power = base.as_base_exp()
        if power != 1:
            base, order = inner, power * order
        if base.has(x) and not base.is_positive:
            orders[base] = orders.get(base, sp.S.Zero) + order
    return list(orders.items())


def _without_roots(f: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, sp.Symbol, int]:
    """(g, y, q) with f(x) = g(y), x = y^q, so that broken powers of x become whole ones of y; else q = 1."""
    exponents = [p.exp for p in f.atoms(sp.Pow) if p.base == x]
    if all(e.is_Integer for e in exponents) or not all(e.is_Rational for e in exponents):
        y = sp.Dummy(x.name, real=True)
        return f.subs(x, y), y, 1
    q, y = math.lcm(*(e.q for e in exponents)), sp.Dummy(x.name, positive=True)
    # Real again: a positive symbol would itself count as a factor without zeros.
    return f.subs(x, y**q).subs(y, z := sp.Dummy(x.name, real=True)), z, q


def _roots(base: sp.Expr, x: sp.Symbol) -> list[tuple[sp.Expr, int]] | None:
    if not base.is_polynomial(x):
        return None
    poly = sp.Poly(base, x)
    if poly.degree() == 1:
        return [(sp.factor(-poly.nth(0) / poly.nth(1)), 1)]
    if poly.degree() == 2:
        disc = sp.factor(poly.nth(1) ** 2 - 4 * poly.nth(2) * poly.nth(0))
        if disc.is_nonpositive and disc != 0:
            return []
        if disc == 0:
            return [(sp.factor(-poly.nth(1) / (2 * poly.nth(2))), 2)]
        # Where the sign of the discriminant is open, the pair exists for those parameters that make it real.
        ends = (sp.factor((-poly.nth(1) + sign * sp.sqrt(disc)) / (2 * poly.nth(2))) for sign in (-1, 1))
        return [(end, 1) for end in ends]
    scaled = two_monomials(base, x)
    if scaled is not None:
        _, m, sigma, k, unit = scaled
        roots = [(sp.S.Zero, m)] if m else []
        if sigma > 0 or k % 2:
            roots.append((sigma * unit, 1))
        return [*roots, (-unit, 1)] if sigma > 0 and k % 2 == 0 else roots
    if poly.free_symbols == {x} and (poly.domain.is_ZZ or poly.domain.is_QQ):
        counted = sp.roots(poly, multiple=False) if poly.degree() < 3 else {}
        return list(counted.items()) or [(root, 1) for root in poly.real_roots()]
    return None


def _certified(base: sp.Expr, x: sp.Symbol) -> list[tuple[sp.Rational, sp.Rational]]:
    """Isolating intervals of the real zeros of a factor, narrower than neighbouring floats."""
    strangers = base.free_symbols - {x}
    if strangers:
        raise ValueError(f"A basin needs a number for each of {sorted(s.name for s in strangers)}.")
    if not base.is_polynomial(x):
        raise ValueError(
            f"The zeros of the factor {base} of the field cannot be certified: it is no polynomial in {x}. "
            "Choose the basin by hand, or use an integrator."
        )
    poly = sp.Poly(base, x, extension=True)
    if poly.domain.is_ZZ or poly.domain.is_QQ:
        return [root.interval(25) for root in real_roots(poly, x)]
    # The norm is rational and has every root of the polynomial, and more, which the values tell apart.
    candidates = [root.interval(_DIGITS) for root in real_roots(poly.norm(), x)]
    return [ends for ends in candidates if abs(base.subs(x, ends[0]).evalf(_DIGITS)) < sp.Float(10) ** -40]


def _rounded(bound: sp.Rational, *, up: bool, inside: sp.Rational) -> float:
    """The float next to a root on the start's side, or the one beyond if the start is that float."""
    value = float(bound)
    if (sp.Rational(value) < bound) if up else (sp.Rational(value) > bound):
        value = math.nextafter(value, math.inf if up else -math.inf)
    if sp.Rational(value) == inside:
        value = math.nextafter(value, -math.inf if up else math.inf)
    return value
