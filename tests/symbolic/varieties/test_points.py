"""Whether a polynomial vanishes at an algebraic point is decided exactly, however close to zero the value is."""

from fractions import Fraction

import pytest
import sympy as sp
from polynomial_systems import system

from symbolic.varieties.numbers import AlgebraicNumber, fraction_number
from symbolic.varieties.points import AlgebraicPoint, avoids, in_order, jacobian_rank, vanishes
from symbolic.varieties.polynomials import ring

x, y = sp.symbols("x y")
ROOT_2, ROOT_3 = AlgebraicNumber((-2, 0, 1), 1), AlgebraicNumber((-3, 0, 1), 1)
POINT = AlgebraicPoint((ROOT_2, ROOT_3), 1, 4)


def polynomial(expression):
    return ring(["x0", "x1"]).from_dict(system([expression], (x, y)).equations[0])


@pytest.mark.parametrize(
    ("expression", "zero"),
    [
        (x**2 * y**2 - 6, True),
        ((x**2 + y**2 - 5) * (x - 1), True),
        (x + y - 3, False),
        # (sqrt 2 + sqrt 3)^2 = 5 + 2 sqrt 6, so the conjugates of x + y are the roots of t^4 - 10 t^2 + 1.
        ((x + y) ** 4 - 10 * (x + y) ** 2 + 1, True),
        # 10^-60 away from zero, far below double precision.
        (x**2 * y**2 - 6 + sp.Rational(1, 10**60), False),
    ],
)
def test_vanishes(expression, zero):
    assert vanishes(polynomial(expression), POINT) is zero


def test_a_convergent_is_no_root():
    p, q = 1, 1
    for _ in range(100):
        p, q = p + 2 * q, p + q
    assert not vanishes(polynomial(q * x - p), POINT)


def test_rank_of_a_jacobian_is_a_lower_bound():
    point = AlgebraicPoint((ROOT_2, fraction_number(Fraction(0))), 1, 2)
    assert jacobian_rank([polynomial(x * y), polynomial(y)], point, (0, 1)) == 1
    assert jacobian_rank([polynomial(x**2 - 2), polynomial(y)], point, (0, 1)) == 2
    assert jacobian_rank([polynomial(y**2)], point, (0, 1)) == 0


def test_avoids_needs_enough_bits():
    close = system([10**30 * (x**2 - 2) - 1], (x, y)).equations
    assert not avoids(POINT, [close], 64)
    assert avoids(POINT, [close], 256)


def test_order_is_lexicographic():
    points = [AlgebraicPoint(pair, 1, 2) for pair in ((ROOT_3, ROOT_2), (ROOT_2, ROOT_3), (ROOT_2, ROOT_2))]
    assert in_order(points) == points[::-1]
