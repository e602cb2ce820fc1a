"""Expressions made fit for floating point: the same real functions without overflow, cancellation or NaN.

Three rewritings, each of which leaves an expression alone unless it holds what the rewriting is about:

* `filled`: a Piecewise that fills a removable singularity carries the derivatives there, not only the value.
* `balanced`: quotients of exponential sums (logistic curves, softmax) neither overflow nor cancel.
* `guarded`: a branch of a Piecewise that is not taken is evaluated at a harmless point, so that neither its
  value nor its derivative can be NaN or raise a floating-point warning.
"""

from __future__ import annotations

from collections import defaultdict

import sympy as sp

from symbolic.zero import is_zero

__all__ = ["balanced", "filled", "guarded"]

#: Terms of the Taylor polynomial that replaces the value at a removable singularity: f, f' and f'' are right.
_TAYLOR_TERMS = 3


class Largest(sp.Function):
    """The largest of its arguments, as a shift that cancels: constant for every derivative."""

    def _eval_derivative(self, symbol):
        return sp.S.Zero


class RealLambertW(sp.Function):
    """RealLambertW(z, k), the real solution of  w exp(w) = z  on branch k = 0 or -1."""

    nargs = 2

    def fdiff(self, argindex=1):
        return sp.exp(-self) / (1 + self)  # SymPy's W / (z (1 + W)) is 0/0 at z = 0


class WrightOmega(sp.Function):
    """omega(u), the real solution of  w + log w = u;  LambertW(exp(u)) without computing exp(u)."""

    nargs = 1

    def fdiff(self, argindex=1):
        return self / (1 + self)


class Guarded(sp.Function):
    """Guarded(x, condition, safe) is x where the condition holds and `safe` elsewhere."""

    nargs = 3

    def _eval_derivative(self, symbol):
        return sp.Piecewise((self.args[0].diff(symbol), self.args[1]), (0, True))


def filled(expression: sp.Expr) -> sp.Expr:
    """Replace the value at a removable singularity, Piecewise((f, x != c), (g, True)), by f's Taylor sum.

    At x = c nothing changes, yet derivatives are those of f's continuation instead of those of g.
    A Piecewise whose g is not the limit of f really jumps and stays as it is.
    """
    if not expression.has(sp.Piecewise):
        return expression
    return expression.replace(lambda e: isinstance(e, sp.Piecewise) and len(e.args) == 2, _fill)


def balanced(expression: sp.Expr) -> sp.Expr:
    """Divide exponential sums in quotients by their largest exponential; write exp(u) - 1 as expm1(u).

    sum_i c_i exp(u_i) = exp(m) * sum_i c_i exp(u_i - m)  with  m = max_i u_i,  and the factors exp(m) of
    numerator and denominator are merged into one, so that exp(2000) / (1 + exp(2000)) is 1 and not NaN.
    LambertW(exp(u)) becomes WrightOmega(u) for the same reason.
    """
    if not expression.has(sp.exp, sp.LambertW):
        return expression
    if isinstance(expression, sp.LambertW):
        return _real_lambertw(*expression.args)
    if isinstance(expression, (sp.Mul, sp.Pow)) and not isinstance(expression, sp.exp):
        product = _balanced_product(expression)
        if product is not None:
            return product
    if isinstance(expression, sp.Add):
        terms = _exponential_terms(expression)
        if len(terms) == 2 and sp.S.Zero in terms and _coefficients_cancel(terms):
            return sp.Add(*(balanced(c) * _expm1(balanced(u)) for u, c in terms.items() if u != 0))
    return expression.func(*(balanced(a) if isinstance(a, sp.Basic) else a for a in expression.args))


def guarded(expression: sp.Expr) -> sp.Expr:
    """Let every symbol of a branch that is not taken have a harmless value instead of its own."""
    if not expression.has(sp.Piecewise):
        return expression
    return expression.replace(lambda e: isinstance(e, sp.Piecewise), _guard)


def _fill(piecewise: sp.Piecewise) -> sp.Expr:
    (first, condition), (second, _) = piecewise.args
    if isinstance(condition, sp.Ne):
        function, value = first, second
    elif isinstance(condition, sp.Eq):
        function, value = second, first
    else:
        return piecewise
    difference = condition.lhs - condition.rhs
    for symbol in sorted(difference.free_symbols, key=lambda s: s.name):
        centre = symbol - difference / difference.diff(symbol)
        if symbol in centre.free_symbols or symbol in sp.simplify(difference.diff(symbol)).free_symbols:
            continue
        polynomial = _taylor(function, symbol, sp.simplify(centre))
        if polynomial is not None and is_zero(polynomial.subs(symbol, centre) - value.subs(symbol, centre)):
            near = (polynomial, sp.Eq(condition.lhs, condition.rhs))
            return sp.Piecewise(near, (function, True), evaluate=False)
    return piecewise


def _taylor(function: sp.Expr, symbol: sp.Symbol, centre: sp.Expr) -> sp.Expr | None:
    step = sp.Dummy("h", real=True)
    try:
        series = function.subs(symbol, centre + step).series(step, 0, _TAYLOR_TERMS).removeO()
    except Exception:  # SymPy's series raises many kinds of error; without a series the value stays as it is
        return None
    if not series.is_polynomial(step) or series.has(sp.zoo, sp.nan, sp.oo):
        return None
    return series.subs(step, symbol - centre)


def _balanced_product(product: sp.Expr) -> sp.Expr | None:
    """The product with its exponential sums divided by their largest terms; None if no denominator is one."""
    factors = [factor.as_base_exp() for factor in sp.Mul.make_args(product)]
    sums = {
        base: _exponential_terms(base) for base, _ in factors if isinstance(base, sp.Add) and base.has(sp.exp)
    }
    sums = {base: terms for base, terms in sums.items() if len(terms) > 1 and not _is_bounded(terms)}
    if not any(base in sums and power.could_extract_minus_sign() for base, power in factors):
        return None
    exponent, rest = sp.S.Zero, sp.S.One
    for base, power in factors:
        power = balanced(power)
        if base == sp.E:
            exponent += power
        elif base in sums:
            shift, scaled = _scaled_sum(sums[base])
            exponent += power * shift
            rest *= scaled**power
        else:
            rest *= balanced(base) ** power
    return sp.exp(exponent) * rest


def _is_bounded(terms: dict[sp.Expr, sp.Expr]) -> bool:
    """Whether a sum is already a constant and decaying exponentials: multiplying it out could only cancel."""
    return sp.S.Zero in terms and all(exponent.is_nonpositive for exponent in terms)


def _scaled_sum(terms: dict[sp.Expr, sp.Expr]) -> tuple[sp.Expr, sp.Expr]:
    """m and sum_i c_i exp(u_i - m)  for the sum with coefficients c_i at exponents u_i."""
    terms = {balanced(u): balanced(c) for u, c in terms.items()}
    shift = Largest(*terms)
    power = _expm1 if _coefficients_cancel(terms) else sp.exp
    return shift, sp.Add(*(c * power(u - shift) for u, c in terms.items()))


def _exponential_terms(total: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """{u_i: c_i} with  total = sum_i c_i exp(u_i)."""
    terms = defaultdict(lambda: sp.S.Zero)
    for term in sp.Add.make_args(sp.expand_mul(total)):
        factors = sp.Mul.make_args(term)
        exponent = sp.Add(*(f.exp for f in factors if isinstance(f, sp.exp)))
        # Put together from the other factors: dividing would leave exp(u + v) exp(-u - v), which SymPy does not merge.
        terms[exponent] += sp.Mul(*(f for f in factors if not isinstance(f, sp.exp)))
    return dict(terms)


def _coefficients_cancel(terms: dict[sp.Expr, sp.Expr]) -> bool:
    return sp.expand(sp.Add(*terms.values())) == 0


def _expm1(exponent: sp.Expr) -> sp.Expr:
    from sympy.codegen.cfunctions import expm1

    return expm1(exponent)


def _real_lambertw(argument: sp.Expr, branch: sp.Expr = sp.S.Zero) -> sp.Expr:
    if branch not in (0, -1):
        raise ValueError(
            f"LambertW({argument}, {branch}) is complex: only its branches 0 and -1 are real; got {branch}."
        )
    logarithm = _log_of_positive(argument) if branch == 0 else None
    if logarithm is not None:
        return WrightOmega(balanced(logarithm))
    return RealLambertW(balanced(argument), branch)


def _log_of_positive(expression: sp.Expr) -> sp.Expr | None:
    """log of  c * exp(u)  with c > 0, as  u + log(c); None for anything else."""
    factors = sp.Mul.make_args(expression)
    exponent = sp.Add(*(f.exp for f in factors if isinstance(f, sp.exp)))
    rest = sp.Mul(*(f for f in factors if not isinstance(f, sp.exp)))
    return exponent + sp.log(rest) if exponent != 0 and rest.is_positive else None


def _guard(piecewise: sp.Piecewise) -> sp.Expr:
    branches, before = [], []
    for value, condition in piecewise.args:
        taken = sp.And(condition, *(sp.Not(c) for c in before))
        before.append(condition)
        safe = {} if value.is_polynomial(*value.free_symbols) else _harmless_point(value)
        branches.append((value.xreplace({x: Guarded(x, taken, safe[x]) for x in safe}), condition))
    return sp.Piecewise(*branches, evaluate=False)


def _harmless_point(expression: sp.Expr) -> dict[sp.Symbol, sp.Rational]:
    """A point at which the expression and its gradient are finite real numbers; {} if none is found."""
    symbols = sorted((s for s in expression.free_symbols), key=lambda s: s.name)
    gradient = [expression.diff(x) for x in symbols]
    for scale in (sp.Rational(1, 2), 2, sp.Rational(-1, 2), sp.Rational(1, 16), -2, 7, -7):
        point = {x: scale * (1 + sp.Rational(j, 7)) for j, x in enumerate(symbols)}
        values = [e.subs(point).evalf() for e in (expression, *gradient)]
        if all(value.is_real and abs(value) < 1e100 for value in values):
            return point
    return {}
