"""The one judge of proofs: it proves, disproves with a witness, or says that it cannot decide."""

import pytest
import sympy as sp

from symbolic.zero import exact, is_zero, residual

x, y, t = sp.symbols("x y t")
p = sp.Symbol("p", positive=True)


@pytest.mark.parametrize(
    "zero",
    [
        (x + y) ** 2 - x**2 - 2 * x * y - y**2,
        x / (x + y) + y / (x + y) - 1,
        sp.sqrt(2) * x * (x + sp.sqrt(2)) - sp.sqrt(2) * x**2 - 2 * x,
        sp.sqrt(p**2 + 1) ** 2 - p**2 - 1,
        sp.exp(2 * t) - sp.exp(t) ** 2,
        sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1,
        sp.log(p**2) - 2 * sp.log(p),
        0.5 * x - x / 2,
    ],
)
def test_proves(zero):
    assert is_zero(zero) is True
    assert residual(zero) == 0


@pytest.mark.parametrize(
    "alive",
    [
        x - y,
        # Zero to 17 digits, yet not zero (Ramanujan's near-integer is 1e-12 away from one).
        sp.exp(sp.pi * sp.sqrt(163)) - 262537412640768744,
        sp.sqrt(x**2) - x,
        x * 10**-20,
    ],
)
def test_a_small_number_is_not_zero(alive):
    assert is_zero(alive) is False
    assert residual(alive) != 0


def test_a_float_is_the_rational_that_it_is():
    assert exact(sp.Float(0.1) * x) == sp.Rational(3602879701896397, 2**55) * x


def test_admits_when_it_does_not_know():
    # An unknown function has no value at a witness point, so nothing is claimed.
    assert is_zero(sp.Function("f")(x)) is None


def test_modulo_relations():
    r1, r2 = sp.symbols("r_1 r_2")
    unit = r1**2 + r2**2 - 1
    assert is_zero(x * r1**4 + 2 * x * r1**2 * r2**2 + x * r2**4 - x, (unit,)) is True
    assert is_zero(x * r1**2 - x, (unit,)) is False
    assert residual(x * r1**2 + x * r2**2, (unit,)) == x
