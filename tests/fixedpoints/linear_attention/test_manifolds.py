"""The two sets of fixed points of merged attention, by number: against autodiff, the derivation and references."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import reference

from fixedpoints.linear_attention import Modes, inertia, merged
from symbolic.linear_attention import merged as derived
from symbolic.linear_attention import task as derivation


def code_spectrum(dim):
    return [2 * d / (dim * (dim + 1)) for d in range(dim, 0, -1)]


def two_layer_loss(v, hidden, spectrum, context):
    """E(y_q - w . z)^2 - E[y_q^2] of the two-layer network, with E[z z^T] = S kron Lambda."""
    covariance = jnp.diag(spectrum)
    S = (
        covariance @ covariance
        + covariance @ (covariance + spectrum.sum() * jnp.eye(len(spectrum))) / context
    )
    w = v @ hidden
    return w @ jnp.kron(S, covariance) @ w - 2 * (covariance @ covariance).ravel() @ w


curvature = jax.jit(
    lambda x, spectrum, context: jax.hessian(lambda x: two_layer_loss(x[:, 0], x[:, 1:], spectrum, context))(
        x
    )
)


def autodiff_hessian(v, U, spectrum, context):
    """JAX's Hessian, head by head."""
    x = np.column_stack([v, np.reshape(U, (len(v), -1))])
    return np.reshape(curvature(x, np.array(spectrum), float(context)), (x.size, x.size))


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_derivation_gives_the_same_dimensions_and_losses(dim, heads):
    spectrum = code_spectrum(dim)
    model = derived.model(dim=dim, heads=heads)
    values = {**dict(zip(derivation.eigenvalues(dim), spectrum, strict=True)), derivation.N: 31}
    for found, expected in zip(merged(spectrum, 31, heads), model.fixed_points, strict=True):
        assert (found.name, found.dimension) == (expected.name, expected.dimension)
        assert found.loss == pytest.approx(float(expected.loss.subs(values)), rel=1e-14)


def test_reference_indices():
    for case in reference("linear_attention_merged")["hessian_inertia_merged"]:
        zero, optimum = merged(code_spectrum(case["D"]), 31, case["H"])
        at = optimum if case["point"].startswith("global") else zero
        assert list(at.index) == case["inertia"], case


@pytest.mark.parametrize(("dim", "heads"), [(1, 1), (2, 3), (3, 2)])
def test_eigenvalues_of_the_representatives(dim, heads):
    spectrum = code_spectrum(dim)
    zero, optimum = merged(spectrum, 31, heads)
    origin = autodiff_hessian(np.zeros(heads), np.zeros((heads, dim, dim)), spectrum, 31)
    r = np.random.default_rng(0).standard_normal(heads)
    r /= np.linalg.norm(r)
    M = np.diag(Modes(spectrum, 31).optimum)
    size = np.sqrt(np.linalg.norm(M))
    balanced = autodiff_hessian(size * r, r[:, None, None] * M / size, spectrum, 31)
    for at, matrix in ((zero, origin), (optimum, balanced)):
        # Rounding of eigvalsh for matrices of order one.
        np.testing.assert_allclose(at.hessian_eigenvalues, np.linalg.eigvalsh(matrix), atol=1e-14)
        assert inertia(matrix) == at.index
        np.testing.assert_allclose(at.eigenvalues(2.0), -at.hessian_eigenvalues / 4, atol=0)


def test_the_index_is_the_same_all_over_both_sets():
    generator, spectrum, H = np.random.default_rng(2), code_spectrum(3), 2
    zero, optimum = merged(spectrum, 31, H)
    squares, M = np.diag(np.square(spectrum)), np.diag(Modes(spectrum, 31).optimum)
    for _ in range(5):
        U = generator.standard_normal((H, 3, 3))
        balanced = U - np.einsum("hab,ab->h", U, squares)[:, None, None] * squares / np.sum(squares**2)
        assert inertia(autodiff_hessian(np.zeros(H), balanced, spectrum, 31)) == zero.index
        # v = 0 alone is not on the set: there the gradient does not vanish, and the index may differ.
        v = generator.standard_normal(H)
        U[1] = (M - v[0] * U[0]) / v[1]
        assert inertia(autodiff_hessian(v, U, spectrum, 31)) == optimum.index


def test_the_growth_rate_at_the_origin_is_the_norm_of_the_squared_covariance():
    # |Lambda^2|_F / tau, by hand for (0.8, 0.6): sqrt(0.4096 + 0.1296).
    zero, _ = merged((0.8, 0.6), 31, heads=2)
    np.testing.assert_allclose(zero.eigenvalues()[:2], np.sqrt(0.4096 + 0.1296), rtol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0.1, 0.2), 31, 1), "must fall"),
        (((0.2,), 0.5, 1), "`context` .* got 0.5"),
        (((0.2,), 31, 0), "`heads` .* got 0"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        merged(*arguments)


def test_a_time_constant_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="`time_constant` must be positive; got -1"):
        merged((0.2,), 31, 1)[0].eigenvalues(-1)
