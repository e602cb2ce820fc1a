"""Reductions are proven by substitution or refused with the residual."""

import pytest
import sympy as sp

import symbolic
from symbolic import conservation

a, b, s, u, v, C = sp.symbols("a b s u v C")
p = sp.Symbol("p")
NETWORK = symbolic.gradient_flow((s - a * b) ** 2 / 2, (a, b))
BALANCE = conservation.verify(NETWORK, a**2 - b**2)


def same(left, right):
    return sp.simplify(left - right) == 0


class TestRestrict:
    def test_balanced_network(self):
        reduced = symbolic.restrict(NETWORK, {a: u, b: u}, state=(u,))
        assert reduced.state == (u,)
        assert reduced.parameters == (s,)
        assert same(reduced.rhs[0], u * (s - u**2))

    def test_nonlinear_manifold(self):
        # Polar coordinates of x' = -y + x(1 - r^2), y' = x + y(1 - r^2): r' = r(1 - r^2), theta' = 1.
        x, y, r, theta = sp.symbols("x y r theta")
        field = symbolic.VectorField((x, y), (-y + x * (1 - x**2 - y**2), x + y * (1 - x**2 - y**2)))
        reduced = symbolic.restrict(field, {x: r * sp.cos(theta), y: r * sp.sin(theta)}, state=(r, theta))
        assert same(reduced.rhs[0], r * (1 - r**2))
        assert same(reduced.rhs[1], 1)

    def test_states_may_keep_their_names(self):
        field = symbolic.VectorField((a, b, u), (a * u, b * u, -u))
        reduced = symbolic.restrict(field, {a: v, b: 3 * v}, state=(v, u))
        assert reduced.rhs == (u * v, -u)

    def test_modulo_a_relation(self):
        r1, r2 = sp.symbols("r_1 r_2")
        w1, w2 = sp.symbols("w_1 w_2")
        field = symbolic.VectorField((w1, w2), (-w1 * (w1**2 + w2**2), -w2 * (w1**2 + w2**2)))
        reduced = symbolic.restrict(
            field, {w1: r1 * u, w2: r2 * u}, state=(u,), relations=(r1**2 + r2**2 - 1,)
        )
        assert reduced.rhs == (-(u**3),)
        assert reduced.parameters == ()

    def test_refuses_a_manifold_that_the_flow_leaves(self):
        with pytest.raises(symbolic.NotInvariantError, match="leaves the manifold") as refusal:
            symbolic.restrict(NETWORK, {a: u, b: 2 * u}, state=(u,))
        # From a: u' = 2u(s - 2u^2); then b' - 2u' = u(s - 2u^2) - 4u(s - 2u^2), by hand.
        assert same(refusal.value.residual[b], 3 * u * (s - 2 * u**2))

    def test_a_relation_that_is_missing_is_missed(self):
        r1, r2 = sp.symbols("r_1 r_2")
        field = symbolic.VectorField((a, b), (-a * (a**2 + b**2), -(b**3)))
        with pytest.raises(symbolic.NotInvariantError):
            symbolic.restrict(field, {a: r1 * u, b: r2 * u}, state=(u,), relations=(r1**2 + r2**2 - 1,))

    @pytest.mark.parametrize(
        ("embedding", "state", "message"),
        [
            ({v: u, a: u, b: u}, (u,), r"sets \['v'\], which are not states"),
            ({a: u}, (u,), r"says nothing about the states \['b'\]"),
            ({a: u, b: u}, (u, v), r"\['v'\] do not occur in the embedding"),
            ({a: u * v, b: u * v}, (u, v), "are redundant"),
        ],
    )
    def test_refuses_bad_embeddings(self, embedding, state, message):
        with pytest.raises(ValueError, match=message):
            symbolic.restrict(NETWORK, embedding, state=state)


class TestProject:
    def test_product_of_an_unbalanced_network(self):
        # Case dsolve-empty-list: p' = sqrt((a0^2 - b0^2)^2 + 4 p^2) (s - p).
        reduced = symbolic.project(NETWORK, {p: a * b}, given={C: BALANCE})
        assert same(reduced.rhs[0], sp.sqrt(C**2 + 4 * p**2) * (s - p))
        assert reduced.parameters == (s, C)

    def test_balanced_product_is_logistic(self):
        q = sp.Symbol("q", positive=True)
        reduced = symbolic.specialise(symbolic.project(NETWORK, {q: a * b}, given={C: BALANCE}), {C: 0})
        assert same(reduced.rhs[0], 2 * q * (s - q))

    def test_two_substrates_with_a_conserved_difference(self):
        # Case implicit-two-substrate, A' = B' = -v A B/(A B + kB A + kA B).
        A, B, rate, kA, kB = sp.symbols("A B v k_A k_B")
        f = -rate * A * B / (A * B + kB * A + kA * B)
        field = symbolic.VectorField((A, B), (f, f), (rate, kA, kB))
        reduced = symbolic.project(field, {p: A}, given={C: conservation.verify(field, A - B)})
        assert same(reduced.rhs[0], f.subs({A: p, B: p - C}))

    def test_change_of_variable(self):
        reduced = symbolic.project(symbolic.VectorField((a,), (a * (1 - a**2),)), {p: a**2})
        assert same(reduced.rhs[0], 2 * p * (1 - p))

    def test_needs_the_integral(self):
        with pytest.raises(symbolic.NotClosedError, match="does not close") as refusal:
            symbolic.project(NETWORK, {p: a * b})
        assert same(refusal.value.residual, (a**2 + b**2) * (s - a * b))

    def test_does_not_guess_the_sign_of_a_root(self):
        # a' = 1, p = a^2: p' = 2 a = +-2 sqrt(p), and nothing fixes the sign of a.
        with pytest.raises(symbolic.NotClosedError, match="proven sign"):
            symbolic.project(symbolic.VectorField((a,), (1,)), {p: a**2})

    @pytest.mark.parametrize(
        ("observables", "given", "message"),
        [
            ({}, {}, "must be non-empty"),
            ({a: b}, {}, r"\['a'\] are taken"),
            ({p: a}, {p: BALANCE}, r"\['p'\] are taken"),
            ({p: sp.sin(a)}, {}, "rational in"),
            ({p: a}, {C: a - b}, "must hold proven first integrals"),
        ],
    )
    def test_refuses_bad_input(self, observables, given, message):
        with pytest.raises(ValueError, match=message):
            symbolic.project(NETWORK, observables, given=given)

    def test_refuses_an_integral_of_another_field(self):
        other = conservation.verify(symbolic.VectorField((a, b), (b, a)), a**2 - b**2)
        with pytest.raises(ValueError, match="proven for another field"):
            symbolic.project(NETWORK, {p: a * b}, given={C: other})


class TestSpecialise:
    def test_replaces_parameters(self):
        field = symbolic.specialise(NETWORK, {s: 2 * C})
        assert field.parameters == (C,)
        assert same(field.rhs[0], b * (2 * C - a * b))

    @pytest.mark.parametrize(
        ("values", "message"), [({u: 1}, "are not parameters"), ({s: a}, "Parameters are constants")]
    )
    def test_refuses(self, values, message):
        with pytest.raises(ValueError, match=message):
            symbolic.specialise(NETWORK, values)
