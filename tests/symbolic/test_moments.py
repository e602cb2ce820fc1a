"""Isserlis' theorem against known moments, generating functions and brute force over indices."""

from itertools import product

import pytest
import sympy as sp

from symbolic.moments import GaussianTensor, GaussianVector, contract, expectation

x, y, z = sp.symbols("x y z")
r, s, t = sp.symbols("r s t")
PAIR = GaussianVector((x, y), sp.Matrix([[s, r], [r, t]]))


@pytest.mark.parametrize("k", range(1, 6))
def test_even_moments_are_double_factorials(k):
    assert expectation(x ** (2 * k), PAIR) == sp.factorial2(2 * k - 1) * s**k


def test_odd_moments_vanish():
    assert expectation(x**3 + x * y**2 + y, PAIR) == 0


def test_mixed_moments_from_the_generating_function():
    # E[x^m y^n] is a derivative of exp((s p^2 + 2 r p q + t q^2)/2) at zero: another algorithm.
    p, q = sp.symbols("p q")
    generator = sp.exp((s * p**2 + 2 * r * p * q + t * q**2) / 2)
    for m, n in product(range(5), repeat=2):
        expected = sp.diff(generator, *[p] * m, *[q] * n).subs({p: 0, q: 0}) if m + n else sp.Integer(1)
        assert sp.expand(expectation(x**m * y**n, PAIR) - expected) == 0


def test_independent_families_factorise():
    other = GaussianVector((z,), sp.Matrix([[3]]))
    assert sp.expand(expectation(x**2 * z**2 + x * z, PAIR, other)) == 3 * s


def test_constants_pass_through():
    assert expectation(t**2 + sp.sin(r) * x**2, PAIR) == t**2 + sp.sin(r) * s


@pytest.mark.parametrize("bad", [sp.exp(x), 1 / x, sp.sqrt(x * y), x**r])
def test_refuses_what_is_not_polynomial(bad):
    with pytest.raises(ValueError, match="is for polynomials in the Gaussian variables"):
        expectation(bad, PAIR)


@pytest.mark.parametrize(
    ("symbols", "matrix", "message"),
    [
        ((x, x), sp.eye(2), "must be distinct"),
        ((x, y), sp.eye(3), "symmetric 2 x 2 matrix"),
        ((x, y), sp.Matrix([[1, 2], [0, 1]]), "not symmetric"),
    ],
)
def test_refuses_bad_covariances(symbols, matrix, message):
    with pytest.raises(ValueError, match=message):
        GaussianVector(symbols, matrix)


def test_contract_agrees_with_brute_force_for_every_small_range():
    # sum_{n,m} sum_{a,b} delta_nm delta_ab lam_a + delta_na-free terms, against plain loops over numbers.
    n, m, a, b = sp.symbols("n m a b", integer=True)
    N, D = sp.symbols("N D", integer=True, positive=True)
    lam = sp.IndexedBase("lambda")
    delta = sp.KroneckerDelta
    summand = delta(n, m) * delta(a, b) * lam[a] + lam[a] * lam[b] + delta(a, b) ** 2 * lam[a] ** 2 + 1
    closed = contract(summand, (n, 1, N), (m, 1, N), (a, 1, D), (b, 1, D))
    for size, dim in product((1, 2, 3), (1, 2, 3)):
        loops = sum(
            summand.subs({n: i, m: j, a: k, b: q})
            for i, j in product(range(1, size + 1), repeat=2)
            for k, q in product(range(1, dim + 1), repeat=2)
        )
        assert sp.expand(closed.subs({N: size, D: dim}).doit() - loops) == 0


def test_contract_refuses_a_delta_between_different_ranges():
    n, a = sp.symbols("n a", integer=True)
    with pytest.raises(ValueError, match="equates indices with the ranges"):
        contract(sp.KroneckerDelta(n, a), (n, 1, 3), (a, 1, 4))


def test_tensor_moments_of_a_sample_covariance():
    # (1/N) sum_n x_n^2 has variance 2 s^2/N: hand value, N symbolic.
    n, m = sp.symbols("n m", integer=True)
    N, base = sp.Symbol("N", integer=True, positive=True), sp.IndexedBase("x")
    sample = GaussianTensor(base, lambda i, j: sp.KroneckerDelta(i[0], j[0]) * s)
    square = contract(expectation(base[n] ** 2 * base[m] ** 2 / N**2, sample), (n, 1, N), (m, 1, N))
    assert sp.simplify(square - s**2 - 2 * s**2 / N) == 0
