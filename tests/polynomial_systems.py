"""Polynomial systems for tests: from SymPy expressions, with the answer as plain numbers."""

import sympy as sp

from symbolic.varieties.variety import PolynomialSystem


def system(equations, symbols, nonzero=(), signs=()):
    """The expressions' integer multiples, in the unknowns `symbols`."""
    return PolynomialSystem(
        len(symbols),
        tuple(_terms(e, symbols) for e in equations),
        tuple(_terms(e, symbols) for e in nonzero),
        signs,
    )


def _terms(expression, symbols):
    polynomial = sp.Poly(sp.sympify(expression), *symbols).clear_denoms(convert=True)[1]
    return {m: int(c) for m, c in polynomial.terms() if c}


def rational_points(variety):
    """(coordinates as SymPy rationals, multiplicity) of points that are all rational."""
    return [
        (
            tuple(sp.Rational(x.rational.numerator, x.rational.denominator) for x in p.coordinates),
            p.multiplicity,
        )
        for p in variety.points
    ]


def float_points(variety):
    return [tuple(float(x) for x in p.coordinates) for p in variety.points]
