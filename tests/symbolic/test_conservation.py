"""First integrals are proven or refused; the polynomial ones are all found."""

import pytest
import sympy as sp

import symbolic
from symbolic import conservation

a, b, s, t = sp.symbols("a b s t")
NETWORK = symbolic.gradient_flow((s - a * b) ** 2 / 2, (a, b))


def span(basis, symbols):
    """Row-reduced coefficients: two bases span one space exactly when these agree."""
    polys = [sp.Poly(f.expression, *symbols) for f in basis]
    monomials = sorted({m for p in polys for m in p.monoms()})
    return sp.Matrix([[p.coeff_monomial(m) for m in monomials] for p in polys]).rref()[0], monomials


def test_verifies_the_balance_of_a_two_layer_network():
    first = conservation.verify(NETWORK, a**2 - b**2)
    assert first.field == NETWORK
    assert first.expression == a**2 - b**2
    assert "const" in first._repr_latex_()


def test_refuses_and_shows_the_rate():
    with pytest.raises(symbolic.NotConservedError, match=r"a \+ b is not conserved") as refusal:
        conservation.verify(NETWORK, a + b)
    # d(a + b)/dt = (a + b)(s - a b) by hand.
    assert sp.expand(refusal.value.residual - (a + b) * (s - a * b)) == 0


def test_transcendental_integral_of_lotka_volterra():
    x, y = sp.symbols("x y", positive=True)
    field = symbolic.VectorField((x, y), (x * (1 - y), y * (x - 1)))
    assert conservation.verify(field, x - sp.log(x) + y - sp.log(y))


def test_time_dependent_integral():
    decay = symbolic.VectorField((a,), (-a,), time=t)
    assert conservation.verify(decay, a * sp.exp(t))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (a + sp.Symbol("q"), r"uses \['q'\], which the field does not have"),
        (s, "does not depend on the state"),
    ],
)
def test_refuses_foreign_quantities(expression, message):
    with pytest.raises(ValueError, match=message):
        conservation.verify(NETWORK, expression)


def test_finds_the_balance_and_nothing_else():
    (found,) = conservation.find(NETWORK, degree=3)
    assert found.expression == a**2 - b**2


def test_counts_of_a_linear_network_case_ml_conservation_count():
    # sibyllema/Conservation_laws: any loss l(U V^T), U 2x2, V 1x2, has exactly three: U^T U - V^T V.
    U, V = sp.Matrix(2, 2, sp.symbols("u0:4")), sp.Matrix(1, 2, sp.symbols("v0:2"))
    target = sp.symbols("y0:2")
    gap = U * V.T - sp.Matrix(target)
    field = symbolic.gradient_flow(gap[0] ** 2 + 2 * gap[1] ** 2 + gap[0] ** 4, (*U, *V))
    found = conservation.find(field, degree=2)
    known = U.T * U - V.T * V
    entries = [conservation.FirstIntegral(field, e) for e in (known[0, 0], known[0, 1], known[1, 1])]
    assert len(found) == 3
    assert span(found, (*U, *V)) == span(entries, (*U, *V))


def test_conserved_total_of_a_reaction():
    # SciML/Catalyst.jl #147: A <-> B conserves A + B.
    A, B, k1, k2 = sp.symbols("A B k_1 k_2")
    field = symbolic.VectorField((A, B), (-k1 * A + k2 * B, k1 * A - k2 * B), (k1, k2))
    (found,) = conservation.find(field, degree=1)
    assert found.expression == A + B


def test_rational_fields_are_cleared_of_denominators():
    A, B, v, kA, kB = sp.symbols("A B v k_A k_B")
    rate = -v * A * B / (A * B + kB * A + kA * B)
    (found,) = conservation.find(symbolic.VectorField((A, B), (rate, rate), (v, kA, kB)), degree=1)
    assert found.expression == A - B


def test_nothing_to_find_is_an_empty_basis():
    assert conservation.find(symbolic.VectorField((a,), (-a,)), degree=4) == ()


@pytest.mark.parametrize(
    ("field", "degree", "message"),
    [
        (NETWORK, 0, "at least 1"),
        (symbolic.VectorField((a,), (sp.sin(a),)), 2, "rational in"),
        (symbolic.VectorField((a,), (a,), time=t), 2, "autonomous"),
    ],
)
def test_find_refuses(field, degree, message):
    with pytest.raises(ValueError, match=message):
        conservation.find(field, degree=degree)
