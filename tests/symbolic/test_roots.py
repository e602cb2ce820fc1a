"""Roots are complete, in order, enclosed, and have the right multiplicities."""

import math
from itertools import pairwise

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic.roots import complex_roots, real_roots

x = sp.Symbol("x")


def test_quintic_that_radicals_cannot_solve():
    # Case fp-unsolvable-quintic-1d: the one real equilibrium of x' = x^5 - x + 1.
    (root,) = real_roots(x**5 - x + 1, x)
    assert float(root) == pytest.approx(-1.16730397826, abs=5e-12)  # the file gives 12 digits
    lower, upper = root.interval(60)
    p = sp.Poly(x**5 - x + 1, x)
    assert p.eval(lower) * p.eval(upper) < 0  # exact arithmetic: a sign change proves the enclosure
    assert upper - lower < sp.Rational(1, 10**59)


def test_value_to_many_digits():
    (_, root) = real_roots(x**2 - 2, x)
    assert str(root.value(50)) == str(sp.sqrt(2).evalf(50))


def test_multiplicities_are_exact_and_rational_roots_are_points():
    roots = real_roots((x - sp.Rational(1, 3)) ** 4 * (x**2 - 2) ** 2 * x * (x**2 + 1) ** 3, x)
    assert [r.multiplicity for r in roots] == [2, 1, 4, 2]
    assert [(r.lower, r.upper) for r in roots[1:3]] == [(0, 0), (sp.Rational(1, 3), sp.Rational(1, 3))]
    assert all(a.upper < b.lower for a, b in pairwise(roots))


def test_close_roots_are_told_apart():
    # Two roots 1e-40 apart, far below double precision, in different irreducible factors.
    gap = sp.Rational(1, 10**40)
    roots = real_roots((x - 1) * (x - 1 - gap) * (x**2 - 2), x)
    assert len(roots) == 4
    assert roots[2].lower - roots[1].upper == gap
    # The same with irrational roots, whose enclosures must be refined until they are disjoint.
    roots = real_roots((x**2 - 2) * (x**2 - 2 - gap), x)
    assert len(roots) == 4
    assert all(a.upper < b.lower for a, b in pairwise(roots))


def test_floats_are_the_rationals_that_they_are():
    # 0.1 is not 1/10: x = 0.1 in binary is the root of x - 0.1, and 10 x - 1 has another one.
    roots = real_roots((x - 0.1) * (10 * x - 1), x)
    assert len(roots) == 2
    assert {r.lower for r in roots} == {sp.Rational(1, 10), sp.Rational(0.1)}


def test_no_real_roots():
    assert real_roots(x**2 + 1, x) == ()
    assert real_roots(sp.Integer(3), x) == ()


def test_complex_roots_come_in_conjugate_pairs():
    roots = complex_roots((x**3 - 1) ** 2 * (x - 5), x)
    assert [r.multiplicity for r in roots] == [2, 2, 2, 1]
    assert [r.imaginary == (0, 0) for r in roots] == [False, False, True, True]
    assert complex(roots[0]) == pytest.approx(complex(-0.5, -math.sqrt(3) / 2), abs=1e-15)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=7).filter(lambda c: c[0] != 0))
def test_roots_agree_with_another_algorithm(coefficients):
    """SymPy counts by Sturm sequences, mpmath iterates in floating point; neither uses ball arithmetic."""
    p = sp.Poly(coefficients, x)
    roots = real_roots(p, x)
    assert sum(r.multiplicity for r in roots) == len(sp.real_roots(p, x)) if p.degree() > 0 else roots == ()
    assert sum(r.multiplicity for r in complex_roots(p, x)) == p.degree()
    for root in roots:
        value = mpmath.polyval([int(c) for c in root.minimal.all_coeffs()], mpmath.mpf(float(root)))
        # |p(x)| at the nearest double is at most |p'| |x| 2^-53 plus the rounding of the evaluation.
        assert abs(value) < 1e-11 * max(1, abs(float(root))) ** 7


@pytest.mark.parametrize(
    ("polynomial", "message"),
    [
        (sp.exp(x), "not a polynomial in x"),
        (x**2 - sp.Symbol("a"), "need rational coefficients"),
        (x - sp.sqrt(2), "need rational coefficients"),
        (sp.Integer(0), "zero polynomial vanishes everywhere"),
    ],
)
def test_refusals(polynomial, message):
    with pytest.raises(ValueError, match=message):
        real_roots(polynomial, x)
