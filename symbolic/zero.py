"""Is an expression identically zero? Three answers: proven, disproven by a numerical witness, undecided.

Every proof of this package ends here, so the rule stands in one place: algebra proves (a normal form that is
literally 0), numbers only disprove. A value is never taken for zero because it is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import sympy as sp

__all__ = ["exact", "is_zero", "residual", "witness_points"]

#: Digits with which a witness is evaluated, and the size above which a value is certainly not rounding.
_WITNESS_DIGITS = 40
_WITNESS_FLOOR = sp.Float("1e-25")


def exact(expression: sp.Expr) -> sp.Expr:
    """Every float replaced by the rational number that it is (0.1 becomes 3602879701896397/2**55)."""
    return expression.xreplace({f: sp.Rational(f) for f in expression.atoms(sp.Float)})


def residual(expression: sp.Expr, relations: Sequence[sp.Expr] = ()) -> sp.Expr:
    """Normal form of an expression that must vanish: literally 0 exactly when that is proven.

    Args:
        expression: any expression in real symbols.
        relations: polynomials that are zero by assumption; the proof is modulo the ideal that they generate.
    Returns:
        0, or the simplest form found of what is left over.
    """
    expression = exact(sp.sympify(expression))
    # Most residuals cancel term by term, which is far cheaper to see than a common denominator.
    if expression == 0 or _expanded(expression) == 0:
        return sp.Integer(0)
    numerator, denominator = sp.fraction(sp.together(expression))
    numerator = _expanded(numerator)
    if relations and numerator != 0:
        numerator = _modulo(numerator, relations)
    if numerator == 0:
        return sp.Integer(0)
    if numerator.is_rational_function(*numerator.free_symbols) and not numerator.has(sp.Pow, sp.Function):
        return _tidy(numerator / denominator)
    simplified = sp.simplify(numerator)
    if simplified == 0:
        return sp.Integer(0)
    return _tidy(simplified / denominator)


def is_zero(expression: sp.Expr, relations: Sequence[sp.Expr] = ()) -> bool | None:
    """True: proven to vanish identically. False: a witness point shows that it does not. None: undecided."""
    left = residual(expression, relations)
    if left == 0:
        return True
    if relations:
        # A witness must satisfy the relations, so points in general position prove nothing; a polynomial's
        # normal form modulo a Groebner basis is unique, hence a non-zero remainder is itself the disproof.
        numerator = sp.fraction(sp.together(left))[0]
        return False if numerator.is_polynomial(*numerator.free_symbols) else None
    for point in witness_points(left.free_symbols):
        value = left.subs(point).evalf(_WITNESS_DIGITS, strict=False)
        if value.is_comparable and abs(value) > _WITNESS_FLOOR:
            return False
        if value.is_number and value.is_finite and not value.is_real and abs(value) > _WITNESS_FLOOR:
            return False
    return None


def witness_points(symbols: Iterable[sp.Symbol], count: int = 3) -> Iterator[dict[sp.Symbol, sp.Rational]]:
    """Fixed rational points in general position that respect the symbols' sign assumptions."""
    ordered = sorted(symbols, key=lambda symbol: symbol.name)
    for k in range(count):
        point = {}
        for i, symbol in enumerate(ordered):
            size = sp.Rational(sp.prime(3 + 2 * i + 5 * k), sp.prime(4 + 3 * i + 2 * k))
            if symbol.is_integer:
                size = sp.Integer(2 + i + k)
            elif symbol.is_nonpositive:
                size = -size
            elif k == 1 and symbol.is_nonnegative is None:
                size = size if i % 2 else -size
            point[symbol] = size
        yield point


def _expanded(expression: sp.Expr) -> sp.Expr:
    """Expand until nothing changes: products of square roots merge only after the first pass."""
    while True:
        expanded = sp.expand(expression)
        if expanded == expression:
            return expanded
        expression = expanded


def _modulo(numerator: sp.Expr, relations: Sequence[sp.Expr]) -> sp.Expr:
    """The remainder modulo the ideal of the relations: unique, since it is taken by a Groebner basis."""
    basis = _basis(tuple(exact(sp.sympify(r)) for r in relations))
    return _expanded(sp.reduced(numerator, basis.exprs, *basis.gens, order="grevlex")[1])


@lru_cache(maxsize=64)
def _basis(relations: tuple[sp.Expr, ...]) -> sp.GroebnerBasis:
    generators = sorted(set().union(*(r.free_symbols for r in relations)), key=lambda symbol: symbol.name)
    return sp.groebner(relations, *generators, order="grevlex")


def _tidy(expression: sp.Expr) -> sp.Expr:
    """A readable form for error messages; never larger than what came in."""
    factored = sp.factor(expression) if sp.count_ops(expression) < 2000 else expression
    return factored if sp.count_ops(factored) <= sp.count_ops(expression) else expression
