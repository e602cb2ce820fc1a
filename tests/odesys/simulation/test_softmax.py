"""Softmax attention: the definition in loops, no statistics, raw gradients piece by piece in bounded memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from odesys.simulation import descend, losses, networks, tasks

DIM, CONTEXT, HEADS = 2, 4, 2


@pytest.fixture(scope="module")
def task():
    return tasks.linear_regression(dim=DIM, context=CONTEXT, sequences=30, seed=3)


def softmax_written_out(X, value, key_query):
    """X + sum_i W^V_i X softmax(X^T W^KQ_i X), the softmax over the tokens that are looked at."""
    output = X.copy()
    for V, KQ in zip(value, key_query, strict=True):
        for q in range(X.shape[1]):
            weight = [np.exp(X[:, n] @ KQ @ X[:, q]) for n in range(X.shape[1])]
            for n in range(X.shape[1]):
                output[:, q] += weight[n] / sum(weight) * (V @ X[:, n])
    return output


@pytest.mark.parametrize("rank", [2, None])
def test_forward_is_the_definition(task, rank):
    net = networks.SoftmaxAttention(HEADS, rank)
    weights = net.init(np.random.default_rng(7), 2.0, DIM, all_blocks=True)
    if rank is None:
        key_query = weights.key_query
    else:
        key_query = [K.T @ Q for K, Q in zip(weights.key, weights.query, strict=True)]
    prompts = task.data().prompts
    got = net.forward(weights, prompts)
    for X, output in zip(prompts, got, strict=True):
        np.testing.assert_allclose(
            output, softmax_written_out(X, weights.value, key_query), rtol=1e-12, atol=1e-13
        )
    np.testing.assert_allclose(net.predict(weights, prompts), got[:, -1, -1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("gradient", ["full", "restricted"])
def test_statistics_are_refused(task, gradient):
    message = f'sufficient statistics of gradient="{gradient}" do not apply. Use gradient="raw"'
    with pytest.raises(ValueError, match=message):
        descend(
            networks.SoftmaxAttention(HEADS), task, init=0.5, rate=0.1, steps=2, seed=0, gradient=gradient
        )


def test_it_has_no_linear_form():
    net = networks.SoftmaxAttention(HEADS)
    weights = net.init(np.random.default_rng(7), 0.5, DIM)
    for refused in (net.coefficients, net.restricted):
        with pytest.raises(ValueError, match="not linear in any features of the sequence"):
            refused(weights)


@pytest.mark.parametrize("rank", [1, None])
def test_it_learns_by_raw_gradients(task, rank):
    net = networks.SoftmaxAttention(HEADS, rank)
    run = descend(net, task, init=0.5, rate=0.2, steps=301, seed=0, gradient="raw", every=100)
    assert run["loss"][-1] < 0.9 * run["loss"][0]
    assert run.attrs["gradient"] == "raw"
    assert run.attrs["weight_scale"] == 1
    assert ("KQ" in run) == (rank is not None)


@pytest.mark.parametrize("vary_context", [False, True])
@pytest.mark.parametrize("size", [7, 512])
def test_pieces_sum_to_the_whole(size, vary_context):
    """Whatever the piece, filled up or not: the loss and its gradient are those of a plain mean."""
    task = tasks.linear_regression(
        dim=DIM, context=CONTEXT - 2 * vary_context, sequences=30, seed=3, vary_context=vary_context
    )
    net = networks.SoftmaxAttention(HEADS)
    weights = net.init(np.random.default_rng(7), 1.0, DIM)
    batches = list(task.batches())

    def plain(w):
        errors = [jnp.mean((labels - net.predict(w, prompts)) ** 2) for prompts, labels in batches]
        return sum(errors) / len(errors)

    (expected, slope), (got, same) = (
        jax.jit(jax.value_and_grad(plain))(weights),
        jax.jit(jax.value_and_grad(losses.SequenceLoss(net)))(weights, losses.pieces(task, size)),
    )
    assert got == pytest.approx(float(expected), rel=1e-13)
    for one, other in zip(slope, same, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


def test_memory_does_not_grow_with_the_number_of_sequences():
    net = networks.SoftmaxAttention(HEADS)
    weights = net.init(np.random.default_rng(7), 1.0, DIM)
    gradient = jax.jit(jax.grad(losses.SequenceLoss(net)))

    def temporary_bytes(sequences):
        task = tasks.linear_regression(dim=DIM, context=20, sequences=sequences, seed=0)
        return gradient.lower(weights, losses.pieces(task)).compile().memory_analysis().temp_size_in_bytes

    few, many = temporary_bytes(1024), temporary_bytes(8192)
    # eight times the data; what grows is at most a number for each piece, against megabytes for a piece
    assert many < 1.05 * few
    # the control: without pieces it would hold P H (N+1) attention weights and more at once
    assert few < 8192 * HEADS * 21 * 8


def test_impossible_networks_are_refused():
    with pytest.raises(ValueError, match=r"`heads` is the number H of heads.*got 0"):
        networks.SoftmaxAttention(0)
    with pytest.raises(ValueError, match=r"`rank` is the rank R.*got 0"):
        networks.SoftmaxAttention(2, rank=0)
    with pytest.raises(ValueError, match="`rank` must not exceed the dimension D"):
        networks.SoftmaxAttention(2, rank=3).init(np.random.default_rng(0), 1.0, DIM)
