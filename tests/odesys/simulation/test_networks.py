"""Forward passes against the definitions written out; gradients from statistics against raw autodiff."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from odesys.simulation import networks, tasks
from odesys.simulation.statistics import mean_squared_error, moments

DIM, CONTEXT, HEADS = 3, 6, 2
NORMALISERS = {"sum": 1, "mean": CONTEXT, "tokens": CONTEXT + 1}


@pytest.fixture(scope="module")
def task():
    return tasks.linear_regression(dim=DIM, context=CONTEXT, sequences=40, seed=3)


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def all_blocks(net):
    return net.init(np.random.default_rng(7), 0.5, DIM, all_blocks=True)


def attention_written_out(X, weights, normaliser):
    """X + (1/normaliser) sum_i W^V_i X (X^T W^KQ_i X), the attention matrix formed token by token."""
    tokens = X.shape[1]
    output = X.copy()
    for V, KQ in zip(*weights, strict=True):
        for q in range(tokens):
            for n in range(tokens):
                output[:, q] += (X[:, n] @ KQ @ X[:, q]) * (V @ X[:, n]) / normaliser
    return output


@pytest.mark.parametrize("normalization", NORMALISERS)
def test_forward_is_the_definition(task, normalization):
    net = networks.MergedAttention(HEADS, normalization)
    prompts = task.data().prompts
    weights = all_blocks(net)
    got = net.forward(weights, prompts)
    for X, output in zip(prompts, got, strict=True):
        np.testing.assert_allclose(
            output, attention_written_out(X, weights, NORMALISERS[normalization]), rtol=1e-12, atol=1e-13
        )
    np.testing.assert_array_equal(net.predict(weights, prompts), got[:, -1, -1])


@pytest.mark.parametrize("normalization", NORMALISERS)
def test_cubic_network_is_the_definition(task, normalization):
    net = networks.CubicFeatureNetwork(HEADS, normalization)
    prompts = task.data().prompts
    outer, inner = weights = net.init(np.random.default_rng(7), 0.5, DIM)
    for X, got in zip(prompts, net.predict(weights, prompts), strict=True):
        beta = sum(X[DIM, n] * X[:DIM, n] for n in range(CONTEXT)) / NORMALISERS[normalization]
        expected = sum(outer[h] * beta @ inner[h] @ X[:DIM, CONTEXT] for h in range(HEADS))
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("normalization", NORMALISERS)
@pytest.mark.parametrize("kind", [networks.MergedAttention, networks.CubicFeatureNetwork])
def test_statistics_give_the_gradient_of_the_raw_sequences(task, kind, normalization):
    net = kind(HEADS, normalization)
    is_attention = isinstance(net, networks.MergedAttention)
    weights = all_blocks(net) if is_attention else net.init(np.random.default_rng(7), 0.5, DIM)
    prompts, labels = task.data()
    data = moments(task, net.features, normalization)

    raw = jax.value_and_grad(lambda w: jnp.mean((labels - net.predict(w, prompts)) ** 2))
    fast = jax.value_and_grad(lambda w: mean_squared_error(net.coefficients(w), data))
    (raw_loss, raw_gradient), (loss, gradient) = raw(weights), fast(weights)
    assert loss == pytest.approx(float(raw_loss), rel=1e-12)
    for expected, got in zip(raw_gradient, gradient, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_the_rest_of_the_weights_never_reaches_the_prediction(task):
    net = networks.MergedAttention(HEADS)
    prompts, labels = task.data()
    gradient = jax.grad(lambda w: jnp.mean((labels - net.predict(w, prompts)) ** 2))(all_blocks(net))
    assert not np.any(gradient.value[:, :-1, :])
    assert not np.any(gradient.key_query[:, :, -1])
    assert np.all(gradient.value[:, -1, :])
    assert np.all(gradient.key_query[:, :, :-1])


def test_restriction_keeps_the_prediction(task):
    net = networks.MergedAttention(HEADS)
    prompts = task.data().prompts
    weights = net.init(np.random.default_rng(7), 0.5, DIM)
    held, same = net.restricted(weights)
    np.testing.assert_allclose(held.predict(same, prompts), net.predict(weights, prompts), rtol=1e-12)


def test_restriction_refuses_blocks_that_it_would_drop():
    net = networks.MergedAttention(HEADS)
    with pytest.raises(ValueError, match=r"holds the blocks vv_i and u_i at zero.*max\|vv\| = "):
        net.restricted(all_blocks(net))


def test_initial_weights():
    net = networks.MergedAttention(heads=2000)
    value, key_query = net.init(np.random.default_rng(0), 1e-3, 2)
    # standard deviation of 2000 and 8000 draws: relative error 1/sqrt(2n), five of them
    assert value[:, -1, -1].std() == pytest.approx(1e-3, rel=5 / np.sqrt(4000))
    assert key_query[:, :-1, :-1].std() == pytest.approx(1e-3, rel=5 / np.sqrt(16000))
    value[:, -1, -1] = 0
    key_query[:, :-1, :-1] = 0
    assert not value.any()
    assert not key_query.any()
    everywhere = net.init(np.random.default_rng(0), 1e-3, 2, all_blocks=True)
    assert all(block.all() for block in everywhere)


def test_attention_and_cubic_network_draw_the_same_numbers():
    attention = networks.MergedAttention(4).init(np.random.default_rng(5), 0.1, 3)
    cubic = networks.CubicFeatureNetwork(4).init(np.random.default_rng(5), 0.1, 3)
    np.testing.assert_array_equal(attention.value[:, -1, -1], cubic.outer)
    np.testing.assert_array_equal(attention.key_query[:, :-1, :-1], cubic.inner)


@pytest.mark.parametrize("kind", [networks.MergedAttention, networks.CubicFeatureNetwork])
def test_impossible_networks_are_refused(kind):
    with pytest.raises(
        ValueError, match="`heads` is the number H of heads and must be a whole number >= 1; got 0"
    ):
        kind(heads=0)
    with pytest.raises(ValueError, match='`normalization` must be "sum"'):
        kind(heads=1, normalization="1/N")


def test_the_shape_annotations_are_live():
    """Canary: under the jaxtyping hook a wrong shape raises, so the annotations are no decoration."""
    code = """
from jaxtyping import TypeCheckError, install_import_hook
with install_import_hook("odesys.simulation", "beartype.beartype"):
    from odesys.simulation import features
import numpy as np
assert features.cubic_features(np.ones((2, 3, 4))).shape == (2, 4)
try:
    features.cubic_features(np.ones((3, 4)))
except TypeCheckError:
    print("caught")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "caught\n"
