"""The escape of merged attention from zero: published rates, Isserlis' theorem, the growth of a run."""

import numpy as np
import pytest
from references import reference
from scipy.stats import norm

from odesys import clock
from odesys.simulation import descend, networks, tasks
from odesys.simulation.escape import escape_matrix, escape_rate


def make(**changes):
    return tasks.linear_regression(**{"dim": 3, "context": 5, "sequences": 20, "seed": 1, **changes})


def population_escape_matrix(c, w, lam, N):
    """E[y_q Sigma_ab x_qc] by Isserlis: a fraction c of random tasks, the rest with the task w."""
    D, L = len(w), np.diag(lam)
    Lw = L @ w
    B = np.zeros((D + 1, D + 1, D))
    three = np.einsum("a,bc->abc", Lw, L) + np.einsum("b,ac->abc", Lw, L) + np.einsum("c,ab->abc", Lw, L)
    B[:D, :D] = (1 - c) * (np.einsum("ab,c->abc", L, Lw) + three / N)
    B[D, :D] = B[:D, D] = c * L @ L + (1 - c) * np.outer(Lw, Lw)
    B[D, D] = (1 - c) * (w @ Lw) * Lw
    return B


@pytest.mark.parametrize(
    "published",
    reference("linear_attention_variants")["mixture_escape_rates"],
    ids=lambda entry: f"c={entry['icl']}",
)
def test_the_population_formula_gives_the_published_rates(published):
    # |w| = 2; the direction does not matter under a white covariance
    w, lam = np.array([1.0, -1.0, 1.0, 1.0]), np.full(4, published["lambda"])
    B = population_escape_matrix(published["icl"], w, lam, published["context"])
    rate = np.linalg.svd(B.reshape(5, -1), compute_uv=False)[0]
    assert rate == pytest.approx(published["rate"], rel=1e-12)


def test_the_sampled_matrix_agrees_with_isserlis():
    task = make(eigenvalues=(0.5, 0.3, 0.2), in_context=0.4, sequences=40_000)
    mean, error = escape_matrix(task)
    scores = np.abs(mean - population_escape_matrix(0.4, task.fixed_task, task.eigenvalues, 5)) / error
    # Bonferroni over the 30 different entries at level 0.01
    bound = norm.ppf(1 - 0.01 / (2 * 30))
    assert scores.max() < bound
    # and the test has teeth: without the query's own token
    wrong = population_escape_matrix(0.4, task.fixed_task, task.eigenvalues, 1e9)
    assert (np.abs(mean - wrong) / error).max() > 3 * bound


def test_small_weights_grow_at_that_rate():
    """All blocks of a mixture's run, projected on the leading singular vectors of the data's own B."""
    task = make(in_context=0.2, eigenvalues=(1 / 3, 1 / 3, 1 / 3), sequences=400)
    rate, steps, net = 1e-4, 401, networks.MergedAttention(2)
    weights = net.init(np.random.default_rng(0), 1e-7, 3, all_blocks=True)
    run = descend(net, task, weights=weights, rate=rate, steps=steps)
    left, _, right = np.linalg.svd(escape_matrix(task).mean.reshape(4, -1))
    value = np.concatenate([run["vv"], run["v"].values[..., None]], axis=-1)
    key_query = np.concatenate([run["U"], run["u"].values[..., None, :]], axis=-2).reshape(steps, 2, -1)
    part = value @ left[:, 0] + key_query @ right[0]
    times = clock.merged(task, rate).time(run["step"])
    growth = np.log(np.linalg.norm(part[-1]) / np.linalg.norm(part[0])) / times[-1]
    expected = escape_rate(task)
    # a step multiplies by 1 + x where the flow has e^x: relative error x/2
    assert growth == pytest.approx(expected, rel=expected * times[1])
    assert escape_rate(task, time_constant=2.0) == pytest.approx(expected / 2, rel=1e-15)
