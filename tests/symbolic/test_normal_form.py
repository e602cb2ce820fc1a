"""What `vanishes` says is zero is zero, and it sees through exponentials, roots and symbolic powers."""

import pytest
import sympy as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symbolic.normal_form import vanishes
from symbolic.zero import witness_points

x, y = sp.symbols("x y", real=True)
p, q = sp.symbols("p q", positive=True)
m = sp.Symbol("m", real=True, nonzero=True)
B = sp.Symbol("B", positive=True)


@pytest.mark.parametrize(
    "identity",
    [
        sp.exp(x / 2) ** 2 - sp.exp(x),
        sp.exp(x / 3) * sp.exp(x / 2) - sp.exp(5 * x / 6),
        sp.exp(x + y) - sp.exp(x) * sp.exp(y),
        sp.sqrt(4 * x**2 + 4) - 2 * sp.sqrt(x**2 + 1),
        sp.sqrt(6) - sp.sqrt(2) * sp.sqrt(3),
        1 / (sp.sqrt(2) - 1) - sp.sqrt(2) - 1,
        (p + 1) ** sp.Rational(1, 3) * (p + 1) ** sp.Rational(2, 3) - p - 1,
        sp.cosh(x) ** 2 - sp.sinh(x) ** 2 - 1,
        sp.sin(x) ** 4 - sp.cos(x) ** 4 - 2 * sp.sin(x) ** 2 + 1,
        p ** (m + 1) / p - p**m,
        sp.Abs(x) ** 2 - x**2,
        sp.sqrt(1 + sp.sqrt(p)) ** 4 - 1 - 2 * sp.sqrt(p) - p,
        sp.Integer(0),
    ],
)
def test_identities(identity):
    assert vanishes(identity)


@pytest.mark.parametrize(
    "expression",
    [
        sp.sqrt(x**2) - x,
        sp.Abs(x) - x,
        sp.exp(x) - 1 - x,
        sp.sqrt(x + 1) - sp.sqrt(x) - 1,
        sp.cosh(x) - sp.sinh(x) - 1,
        sp.exp(2 * x) - sp.exp(x),
        p**m - p,
        sp.sqrt(2) + sp.sqrt(3) - sp.Rational(314626, 100000),
        sp.Integer(1),
    ],
)
def test_what_is_not_zero_is_never_proven(expression):
    assert not vanishes(expression)


def test_relations_and_definitions():
    assert vanishes(x**2 - 4 * y, (x**2 - 4 * y,))
    assert not vanishes(x**2 - 4 * y, (x**2 - 3 * y,))
    # B^(-1/m - 1) B - B^(-1/m), and only B's meaning makes the rest vanish.
    assert vanishes(B ** (-1 / m) * (B - 1 - q), definitions={B: 1 + q})
    assert not vanishes(B ** (-1 / m) * (B - 1 - q), definitions={B: 1 + p})


terms = st.lists(
    st.tuples(
        st.integers(-3, 3),
        st.sampled_from([sp.exp(x), sp.exp(-x / 2), sp.sqrt(p), sp.sqrt(1 + x**2), sp.cosh(y), x, p**m]),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40, deadline=None, derandomize=True)
@example([(1, sp.exp(x))], [(1, sp.exp(-x / 2))])
@given(terms, terms)
def test_expanded_products_vanish_and_disturbed_ones_do_not(left, right):
    a, b = (sp.Add(*(c * f for c, f in factors)) for factors in (left, right))
    assert vanishes(a * b - sp.expand(a * b))
    assert vanishes((a + b) ** 2 - a**2 - 2 * a * b - b**2)
    disturbed = a * b - sp.expand(a * b) + x * sp.sqrt(p)
    assert not vanishes(disturbed)
    assert any(disturbed.subs(point).evalf() != 0 for point in witness_points(disturbed.free_symbols))
