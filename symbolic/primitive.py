"""The time function of a scalar autonomous field: F with F'(x) f(x) = 1, real wherever f has no zero or pole.

Along a solution F(x(t)) = F(x(0)) + t, so F is the solution up to an inversion. Logarithms stand as log|.|, so
that one formula holds on every basin.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from symbolic.errors import NoClosedFormError
from symbolic.roots import complex_roots
from symbolic.zero import residual

__all__ = ["Primitive", "primitive", "two_monomials"]

#: Digits of algebraic numbers that have no short exact form.
_DIGITS = 40


@dataclass(frozen=True)
class Primitive:
    """A real function F of x, and its derivative `slope`, found exactly along with it."""

    expression: sp.Expr
    slope: sp.Expr

    def residual(self, f: sp.Expr) -> sp.Expr:
        """F' f - 1 in normal form; 0 is the proof."""
        return residual(self.slope * f - 1)

    def __add__(self, other: Primitive) -> Primitive:
        return Primitive(self.expression + other.expression, self.slope + other.slope)


def primitive(f: sp.Expr, x: sp.Symbol) -> Primitive:
    """F with F' f = 1: through partial fractions for rational f, else by SymPy's integral; proven either way.

    Raises:
        NoClosedFormError: an integral was not found, is not real, or needs a sign that is not known.
    """
    if f.is_rational_function(x):
        scaled = two_monomials(f, x)
        if scaled is None:
            found = _rational(sp.cancel(1 / f), x)
        else:
            alpha, m, sigma, k, unit = scaled
            u = sp.Dummy("u", real=True)
            g = _rational(sp.cancel(1 / (u**m * (1 - sigma * u**k))), u)
            stretch, inner = unit ** (1 - m) / alpha, x / unit
            found = Primitive(stretch * g.expression.subs(u, inner), stretch / unit * g.slope.subs(u, inner))
    else:
        found = _quadrature(f, x)
    left = found.residual(f)
    if left != 0:
        raise NoClosedFormError(
            f"The integral of 1/({f}) that was found could not be proven: F' f - 1 = {left}.", left
        )
    return found


def two_monomials(f: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, int, int, int, sp.Expr] | None:
    """(alpha, m, sigma, k, v) with  f = alpha x^m (1 - sigma (x/v)^k),  sigma = +-1, k > 0, v > 0.

    None if f is no such sum, or if the ratio of its coefficients has no known sign. Measured in
    units of v the field has integer coefficients; SymPy's integral of the symbolic form drops complex roots.
    """
    powers = sp.collect(sp.expand(f), x, evaluate=False)
    if len(powers) != 2 or any(power.as_base_exp()[0] not in (1, x) for power in powers):
        return None
    exponents = {(power.as_base_exp()[1] if power.has(x) else sp.S.Zero): c for power, c in powers.items()}
    if not all(n.is_Integer for n in exponents) or any(c.has(x) for c in exponents.values()):
        return None
    m, n = sorted(exponents)
    alpha, ratio, k = sp.factor(exponents[m]), sp.factor(exponents[m] / exponents[n]), int(n - m)
    if not (ratio.is_positive or ratio.is_negative):
        return None
    sigma = 1 if ratio.is_negative else -1
    return alpha, int(m), sigma, k, (-sigma * ratio) ** sp.Rational(1, k)


def _rational(g: sp.Expr, x: sp.Symbol) -> Primitive:
    found = Primitive(sp.S.Zero, sp.S.Zero)
    for term in sp.Add.make_args(sp.apart(g, x)):
        found += _partial_fraction(term, x)
    return found


def _partial_fraction(term: sp.Expr, x: sp.Symbol) -> Primitive:
    numerator, denominator = sp.fraction(sp.together(term))
    _, factors = sp.factor_list(denominator, x)
    factors = [(base, power) for base, power in factors if base.has(x)]
    if not factors:
        return _differentiated(x, sp.integrate(sp.expand(numerator / denominator), x))
    (base, power), outer = factors[0], sp.cancel(denominator / sp.Mul(*(b**k for b, k in factors)))
    top, bottom = sp.Poly(sp.expand(numerator / outer), x), sp.Poly(base, x)
    if bottom.degree() == 1 and top.degree() == 0:
        slope, height = bottom.LC(), top.LC()
        if power > 1:
            return _differentiated(x, -height / (slope * (power - 1) * base ** (power - 1)))
        return _differentiated(x, height / slope * sp.log(sp.Abs(base)))
    if bottom.degree() == 2 and power == 1:
        return _over_quadratic(top, bottom, x)
    if base.free_symbols - {x}:
        raise NoClosedFormError(
            f"The partial fraction {term} of 1/f has an irreducible denominator with parameters, whose roots are "
            "not known. Give numbers for the parameters, or restrict the field to a case whose roots are known."
        )
    if power == 1:
        return _over_irreducible(top, bottom, x)
    return _real_logarithms(sp.integrate(term, x), x)


def _over_quadratic(top: sp.Poly, bottom: sp.Poly, x: sp.Symbol) -> Primitive:
    """The integral of (A x + B)/(a x^2 + b x + c): log|q| and, by the discriminant, arctan or log of a ratio."""
    a, b, c = (bottom.coeff_monomial(x**i) for i in (2, 1, 0))
    A, B = (top.coeff_monomial(x**i) for i in (1, 0))
    disc = sp.factor(b**2 - 4 * a * c)
    rest, q = sp.factor(B - A * b / (2 * a)), bottom.as_expr()
    if disc.is_negative:
        root = sp.sqrt(-disc)
        sign = -1 if a.is_negative else 1
        angle = 2 * rest / root * sp.atan((2 * a * x + b) / root)
        return _differentiated(x, A / (2 * a) * sp.log(sign * q) + angle)
    if disc.is_positive:
        root = sp.sqrt(disc)
        ends = [2 * a * x + b - root, 2 * a * x + b + root]
        weights = [A / (2 * a) + rest / root, A / (2 * a) - rest / root]
        return _differentiated(
            x, sp.Add(*(w * sp.log(sp.Abs(e)) for w, e in zip(weights, ends, strict=True)))
        )
    raise NoClosedFormError(
        f"The sign of {disc} decides whether the zeros of {q} are real, and it is not known. "
        "Declare the parameters' signs (positive=True), or give numbers."
    )


def _over_irreducible(top: sp.Poly, bottom: sp.Poly, x: sp.Symbol) -> Primitive:
    """Sum over the roots r of c_r log(x - r), c_r = P(r)/N'(r); conjugate roots add up to real terms.

    Radicals express such roots rarely and never readably: they stand as certified decimals.
    """
    residue, terms = top.as_expr() / bottom.diff(x).as_expr(), []
    for root in complex_roots(bottom, x):
        r = root.value(_DIGITS)
        centre, height = r.as_real_imag()
        real, imaginary = residue.evalf(_DIGITS, subs={x: r}).as_real_imag()
        if root.imaginary == (0, 0):
            terms.append(real * sp.log(sp.Abs(x - centre)))
        elif height > 0:
            terms.append(real * sp.log((x - centre) ** 2 + height**2))
            terms.append(-2 * imaginary * sp.atan((x - centre) / height))
    return Primitive(sp.Add(*terms), _sum_over_roots(top, bottom, x))


def _sum_over_roots(top: sp.Poly, bottom: sp.Poly, x: sp.Symbol) -> sp.Expr:
    """Sum over the roots r of N of  c(r)/(x - r),  c = P/N',  by exact arithmetic with power sums of the roots.

    N(x)/(x - r) = sum_j x^j sum_{i>j} n_i r^(i-1-j), and c(r) is a polynomial in r modulo N.
    """
    top, bottom = (sp.Poly(p.as_expr(), x, domain=sp.QQ) for p in (top, bottom))
    c = (top * bottom.diff(x).invert(bottom)).rem(bottom).all_coeffs()[::-1]
    n = bottom.all_coeffs()[::-1]
    degree, sums = bottom.degree(), [sp.Integer(bottom.degree())]
    for k in range(1, 2 * degree):  # Newton's identities
        recent = sp.Add(*(n[degree - i] * sums[k - i] for i in range(1, min(k, degree + 1))))
        sums.append(-(recent + (k * n[degree - k] if k <= degree else 0)) / n[degree])
    places = [(i, j, k) for j in range(degree) for i in range(j + 1, degree + 1) for k in range(len(c))]
    return sp.Add(*(x**j * n[i] * c[k] * sums[k + i - 1 - j] for i, j, k in places)) / bottom.as_expr()


def _quadrature(f: sp.Expr, x: sp.Symbol) -> Primitive:
    found = sp.integrate(1 / f, x)
    if found.has(sp.Integral, sp.Piecewise, sp.hyper, sp.meijerg, sp.I, sp.zoo, sp.nan):
        raise NoClosedFormError(f"No real elementary integral of 1/({f}) was found; SymPy gives {found}.")
    return _real_logarithms(found, x)


def _real_logarithms(found: sp.Expr, x: sp.Symbol) -> Primitive:
    if found.has(sp.RootSum):
        raise NoClosedFormError(f"The integral {found} has repeated factors without elementary roots.")
    return _differentiated(x, found.replace(sp.log, lambda g: sp.log(sp.Abs(g)) if g.has(x) else sp.log(g)))


def _differentiated(x: sp.Symbol, function: sp.Expr) -> Primitive:
    # log|g| and log(g) have the same derivative, and SymPy knows the second one's.
    plain = function.replace(
        lambda e: isinstance(e, sp.log) and isinstance(e.args[0], sp.Abs), lambda e: sp.log(e.args[0].args[0])
    )
    return Primitive(function, plain.diff(x))
