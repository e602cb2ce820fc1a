"""Real algebraic numbers: equality, order and bounds are exact."""

from fractions import Fraction

import pytest

from symbolic.varieties.numbers import AlgebraicNumber, fraction_number, roots_of

#: x^2 - 2, x^3 - x - 1 (one real root), x^2 + 1
SQUARE, PLASTIC, CIRCLE = (-2, 0, 1), (-1, -1, 0, 1), (1, 0, 1)


def test_order_and_sign():
    low, high = AlgebraicNumber(SQUARE, 0), AlgebraicNumber(SQUARE, 1)
    assert low < high
    assert not high < low
    assert not low < low
    assert (low.sign(), high.sign(), fraction_number(Fraction(0)).sign()) == (-1, 1, 0)


def test_numbers_that_doubles_cannot_tell_apart():
    # The sixtieth continued-fraction convergent of sqrt 2 is closer to it than 2^-140.
    p, q = 1, 1
    for _ in range(60):
        p, q = p + 2 * q, p + q
    near = fraction_number(Fraction(p, q))
    root = AlgebraicNumber(SQUARE, 1)
    assert float(near) == float(root)
    # p^2 - 2 q^2 = +-1 decides on which side the convergent lies.
    assert (near < root) == (p * p - 2 * q * q < 0)


def test_bounds_hold_the_root_and_are_points_for_rationals():
    low, high = AlgebraicNumber(PLASTIC, 0).bounds(200)
    value = [b**3 - b - 1 for b in (low, high)]
    assert value[0] < 0 < value[1]
    assert high - low < Fraction(1, 2**150)
    assert fraction_number(Fraction(-2, 3)).bounds(64) == (Fraction(-2, 3), Fraction(-2, 3))


def test_real_and_complex_roots_are_told_apart():
    roots = roots_of(((SQUARE, 1), (PLASTIC, 2), (CIRCLE, 3)), 64)
    assert [r.multiplicity for r in roots if r.number] == [1, 1, 2]
    assert [r.multiplicity for r in roots if not r.number] == [2, 2, 3, 3]


@pytest.mark.parametrize(("minimal", "index"), [(SQUARE, 0), (PLASTIC, 0), ((-1, 3), 0)])
def test_balls_shrink(minimal, index):
    number = AlgebraicNumber(minimal, index)
    assert number.ball(400).rad() < number.ball(60).rad() or number.degree == 1
    assert number.ball(60).contains(number.ball(400))
