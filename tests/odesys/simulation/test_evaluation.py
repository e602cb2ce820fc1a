"""Fresh sequences: principal component regression by hand, and a network that predicts as it at each plateau."""

import numpy as np
import pytest
from references import reference

from odesys.simulation import descend, evaluate_loss, evaluation, in_context_test, networks, tasks
from odesys.simulation.observables import weights_of

LAM, N = (0.4, 0.3, 0.2, 0.1), 31


@pytest.fixture(scope="module")
def task():
    return tasks.linear_regression(
        dim=4, context=N, eigenvalues=LAM, sequences=20_000, seed=0, rotate=True, whiten_tasks=True
    )


def components(heads, learned):
    """v_i = |k_i| = |q_i| = (lambda_i a_i)^(-1/3) along e_i in the first heads, zero in the others."""
    lam = np.array(LAM)
    size = (lam * (1 + (1 + 1 / lam) / N)) ** (-1 / 3) * (np.arange(4) < learned)
    v, k = np.zeros(heads), np.zeros((heads, 1, 4))
    v[:4], k[range(4), 0, range(4)] = size, size
    return {"v": v, "k": k, "q": k}


def test_component_predictions_are_the_definition(task):
    prompts = task.fresh(1, sequences=5).data().prompts
    got = evaluation.component_predictions(task, prompts)
    assert got.shape == (5, 5)
    for X, predictions in zip(prompts, got, strict=True):
        beta = sum(X[4, n] * X[:4, n] for n in range(N)) / N
        for m in range(5):
            M = sum(
                (
                    np.outer(task.basis[:, d], task.basis[:, d]) / (LAM[d] * (1 + (1 + 1 / LAM[d]) / N))
                    for d in range(m)
                ),
                np.zeros((4, 4)),
            )
            assert predictions[m] == pytest.approx(beta @ M @ X[:4, N], rel=1e-12, abs=1e-15)


def test_components_come_in_falling_order_however_the_eigenvalues_stand():
    rising = tasks.linear_regression(dim=2, context=5, eigenvalues=(0.2, 0.8), sequences=3, seed=0)
    prompts = rising.data().prompts
    first = evaluation.component_predictions(rising, prompts)[:, 1]
    beta = np.einsum("pn,pn->p", prompts[:, 1, :-1], prompts[:, 2, :-1]) / 5
    excess = 1 + (1 + 1 / 0.8) / 5
    np.testing.assert_allclose(first, beta * prompts[:, 1, -1] / (0.8 * excess), rtol=1e-12)


@pytest.mark.parametrize("learned", range(5))
def test_a_network_of_m_components_is_recognised(task, learned):
    net = networks.SeparateAttention(5)
    fresh = task.fresh(2, sequences=2000)
    result = in_context_test(net, weights_of(net, task, components(5, learned)), fresh)
    assert result.attrs["closest"] == learned
    assert result["distance"].sel(components=learned) < 1e-25  # rounding, squared
    assert (result["distance"].drop_sel(components=learned) > 1e-3).all()
    assert result["loss"].item() == pytest.approx(result["component_loss"].values[learned], rel=1e-10)


def test_fresh_losses_agree_with_theory_at_every_plateau(task):
    # L(M_m) = 1 - sum_{d<=m} lambda_d/a_d
    published = [1, 0.640579710145, 0.377372162975, 0.209804595408, 0.135995071598]
    net = networks.SeparateAttention(4)
    for learned, expected in enumerate(published):
        if learned == 0:
            continue
        loss, error = evaluate_loss(net, weights_of(net, task, components(4, learned)), task.fresh(3))
        assert abs(loss - expected) < 4 * error
        assert error < 0.02


def test_a_trained_network_regresses_on_one_component_after_the_other(task):
    net = networks.SeparateAttention(5)
    run = descend(net, task, init=0.01, rate=0.02, steps=8001, seed=0, every=100)
    fresh = task.fresh(4, sequences=5000)
    # half way between two published plateaus, then 500 steps on
    levels = reference("linear_attention_variants")["random_start_ends"]
    first, second = levels[0]["loss"], levels[1]["loss"]
    for m, middle in ((1, (1 + first) / 2), (2, (first + second) / 2)):
        step = int(np.argmax(run["loss"].values < middle)) + 3
        result = in_context_test(net, weights_of(net, task, run.isel(step=step)), fresh)
        assert result.attrs["closest"] == m
        distance = result["distance"].values
        assert distance[m] < 0.2 * np.delete(distance, m).min()


def test_predictions_are_in_float64(task):
    net = networks.SeparateAttention(4)
    prompts = task.fresh(5, sequences=7).data().prompts
    got = evaluation.predictions(net, weights_of(net, task, components(4, 4)), prompts)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, evaluation.component_predictions(task, prompts)[:, 4], rtol=1e-12)


def test_a_single_sequence_is_refused(task):
    net = networks.SeparateAttention(4)
    weights = weights_of(net, task, components(4, 4))
    with pytest.raises(ValueError, match="needs at least 2 sequences"):
        evaluate_loss(net, weights, task.fresh(1, sequences=1, whiten_tasks=False))
