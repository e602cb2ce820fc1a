"""Leading terms of sums of quotients of exponentials, by hand: ties that cancel, sums that are zero, signs."""

from fractions import Fraction as F

import sympy as sp

from fixedpoints.softmax_regression.exponentials import Quotient, leading, plus, scaled, sign, times

ONE = {F(0): {F(0): F(1)}}
#: u = exp(-s), and the number e.
U, E = {F(-1): {F(0): F(1)}}, {F(0): {F(1): F(1)}}


def less(a, b):
    return plus(a, scaled(b, F(-1)))


def test_sums_and_products_forget_what_cancels():
    # (1 + u)(1 - u) = 1 - u^2
    assert times(plus(ONE, U), less(ONE, U)) == less(ONE, times(U, U))
    assert less(times(E, U), times(U, E)) == {}


def test_the_slowest_term_leads():
    # u/(1 + u) + u^2/e
    rate, coefficient = leading([Quotient(times(U, U), E), Quotient(U, plus(ONE, U))])
    assert (rate, coefficient) == (-1, 1)


def test_ties_add_on_a_common_denominator():
    # u/(1 + e) + u/e = u (1 + 2 e)/(e + e^2)
    rate, coefficient = leading([Quotient(U, plus(ONE, E)), Quotient(U, E)])
    e = sp.E
    assert rate == -1
    assert sp.simplify(coefficient - (1 + 2 * e) / (e + e**2)) == 0


def test_ties_that_cancel_leave_the_next_order():
    # u/(1 + u) - u/(1 + 2 u) = u^2/((1 + u)(1 + 2 u)), which leads before 5 u^3
    minus = Quotient(scaled(U, F(-1)), plus(ONE, scaled(U, F(2))))
    third = Quotient(scaled(times(U, times(U, U)), F(5)), ONE)
    assert leading([Quotient(U, plus(ONE, U)), minus, third]) == (-2, 1)


def test_cancelling_twice():
    # 1/(1 - u) - 1 - u = u^2/(1 - u), and with - u^2 also that goes: u^3/(1 - u)
    terms = [Quotient(ONE, less(ONE, U)), Quotient(scaled(ONE, F(-1)), ONE), Quotient(scaled(U, F(-1)), ONE)]
    assert leading(terms) == (-2, 1)
    assert leading([*terms, Quotient(scaled(times(U, U), F(-1)), ONE)]) == (-3, 1)


def test_a_sum_that_is_zero_has_no_leading_term():
    # 1/(1 + u) + u/(1 + u) - 1
    below = plus(ONE, U)
    assert leading([Quotient(ONE, below), Quotient(U, below), Quotient(scaled(ONE, F(-1)), ONE)]) is None
    assert leading([]) is None


def test_signs_of_numbers_that_nearly_vanish():
    # e^(22/7) is 23.1738..., from both sides to 40 digits
    close = sp.Rational(str(sp.exp(sp.Rational(22, 7)).evalf(60)))
    assert sign(sp.exp(sp.Rational(22, 7)) - close - sp.Rational(1, 10**50)) == -1
    assert sign(sp.exp(sp.Rational(22, 7)) - close + sp.Rational(1, 10**50)) == 1
    assert sign(sp.S.Zero) == 0
