"""Reduced equations against formulas from the literature and against hand calculation."""

import pytest
import sympy as sp
from flint import ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from fixedpoints.near.balls import as_float, is_exact
from fixedpoints.near.centre_manifold import (
    NotSemisimpleError,
    along,
    focal_values,
    kernel,
    on_centre_plane,
    on_kernel,
)
from fixedpoints.near.local import located
from symbolic.field import IteratedMap, VectorField

x, y, z = sp.symbols("x y z")


@pytest.fixture(autouse=True)
def digits():
    with ctx.workprec(256):
        yield


def local(*rhs, rule=VectorField):
    state = (x, y, z)[: len(rhs)]
    return located(rule(state, rhs), dict.fromkeys((u.name for u in state), 0)).nominal


def first_coefficient(*rhs):
    g, squared, pace = on_centre_plane(local(*rhs), 3)
    ((_, eta, _),) = focal_values(g, squared, 4)
    return eta * pace / 2


numbers = st.fractions(min_value=-3, max_value=3, max_denominator=3).map(sp.Rational)
MONOMIALS = [x**i * y**j for d in (2, 3) for i in range(d, -1, -1) for j in (d - i,)]


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    st.lists(numbers, min_size=7, max_size=7), st.lists(numbers, min_size=7, max_size=7), st.integers(1, 3)
)
def test_first_lyapunov_coefficient_by_its_formula(p, q, omega):
    # Guckenheimer and Holmes 1983, equation 3.4.11, for x' = -omega y + f, y' = omega x + g.
    f = sp.Add(*(c * m for c, m in zip(p, MONOMIALS, strict=True)))
    g = sp.Add(*(c * m for c, m in zip(q, MONOMIALS, strict=True)))

    def at0(e, *along_):
        return e.diff(*along_).subs({x: 0, y: 0})

    cubic = at0(f, x, x, x) + at0(f, x, y, y) + at0(g, x, x, y) + at0(g, y, y, y)
    square = (
        at0(f, x, y) * (at0(f, x, x) + at0(f, y, y))
        - at0(g, x, y) * (at0(g, x, x) + at0(g, y, y))
        - at0(f, x, x) * at0(g, x, x)
        + at0(f, y, y) * at0(g, y, y)
    )
    expected = cubic / 16 + square / (16 * omega)
    got = first_coefficient(-omega * y + f, omega * x + g)
    assert is_exact(got)
    assert sp.Rational(int(got.p), int(got.q)) == expected


def test_an_irrational_frequency_beside_a_stable_direction():
    # Eigenvalues +-i sqrt(2). The rotation keeps r^2 = x^2 + 2 y^2, so z = r^2 and r' = -r z = -r^3.
    got = first_coefficient(-2 * y - x * z, x - y * z, -z + x**2 + 2 * y**2)
    assert got == -1


def test_the_highest_coefficient_asked_for_has_all_its_terms():
    # x' = y - a x^3, y' = -x averages to r' = -3/8 a r^3; the last order must not be cut short.
    for power, average in ((3, fmpq(3, 8)), (5, fmpq(5, 16)), (7, fmpq(35, 128))):
        g, squared, pace = on_centre_plane(local(y - x**power, -x), power)
        *lower, (m, eta, _) = focal_values(g, squared, power + 1)
        assert not any(e for _, e, _ in lower)
        assert (2 * m, eta * pace) == (power + 1, -2 * average)


def test_carrs_coefficients():
    # u' = (a + c) u^3 + (c d + b c^2) u^5 with a = -1, b = 2, c = 1, d = 3: cubic 0, quintic 5.
    flow = local(x * y - x**3 + 2 * x * y**2, -y + x**2 + 3 * x**2 * y)
    terms = {k: g for k, (g,) in along(flow, kernel(flow, 1), [fmpq(1)], 5)}
    assert terms == {2: 0, 3: 0, 4: 0, 5: 5}


def test_two_degenerate_directions_with_a_slave():
    # z = x y to second order, so x' = x z = x^2 y and y' = -y z = -x y^2.
    flow = local(x * z, -y * z, -z + x * y)
    parts = dict(on_kernel(flow, kernel(flow, 2), 3))
    assert not any(parts[2][0].values())
    null = kernel(flow, 2)
    assert [[as_float(c) for c in row] for row in null.right] == [[1, 0, 0], [0, 1, 0]]
    assert {p: c for p, c in parts[3][0].items() if c != 0} == {(0, 0, 1): 1}
    assert {p: c for p, c in parts[3][1].items() if c != 0} == {(0, 1, 1): -1}


def test_maps_reduce_like_their_displacement():
    # y settles at 2 x^2, so x -> x + 2 x^3.
    step = local(x + x * y, y / 2 + x**2, rule=IteratedMap)
    terms = {k: g for k, (g,) in along(step, kernel(step, 1), [fmpq(1)], 3)}
    assert terms == {2: 0, 3: 2}


def test_a_jordan_block_has_too_few_null_vectors():
    with pytest.raises(NotSemisimpleError, match="1 null vectors for an eigenvalue 0 of multiplicity 2"):
        kernel(local(y, x**2), 2)
    with pytest.raises(NotSemisimpleError, match="orthogonal"):
        kernel(local(y, 0 * x), 1)
