"""The data: definition, reproducibility, the corrections of the authors' data, moments against theory."""

import numpy as np
import pytest
from scipy.stats import norm

from odesys.simulation import tasks
from odesys.simulation._random import Stream, generator
from odesys.simulation.features import cubic_features
from odesys.simulation.statistics import estimate


def make(**changes):
    return tasks.linear_regression(**{"dim": 3, "context": 5, "sequences": 20, "seed": 1, **changes})


COVARIANCE = np.array([[0.5, 0.2, 0.0], [0.2, 0.4, -0.1], [0.0, -0.1, 0.3]])


def test_labels_are_the_tasks_answers_and_the_querys_slot_is_zero():
    task = make()
    prompts, labels = task.data()
    assert prompts.shape == (20, 4, 6)
    for p in range(20):
        w = task.tasks[p]
        for n in range(5):
            assert prompts[p, 3, n] == pytest.approx(w @ prompts[p, :3, n], rel=1e-13, abs=1e-15)
        assert prompts[p, 3, 5] == 0
        assert labels[p] == pytest.approx(w @ prompts[p, :3, 5], rel=1e-13, abs=1e-15)


def test_a_seed_fixes_the_data():
    for a, b in zip(make().data(), make().data(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_more_sequences_extend_the_data():
    # across the border of a batch as well
    few, many = make(sequences=4100).data(), make(sequences=9000).data()
    np.testing.assert_array_equal(few.prompts, many.prompts[:4100])
    np.testing.assert_array_equal(few.labels, many.labels[:4100])


def test_batches_are_bounded_and_complete():
    sizes = [len(batch.labels) for batch in make(sequences=9000).batches()]
    assert sum(sizes) == 9000
    assert max(sizes) <= 4096  # the memory of a large data set is that of a batch


def test_seeds_positions_and_streams_are_independent():
    n = 4096
    first, second = make(sequences=2 * n), make(sequences=2 * n, seed=2)
    x, other = first.data().prompts[:, 0], second.data().prompts[:, 0]
    weights = generator(1, Stream.WEIGHTS).standard_normal(n)
    pairs = [
        (x[:n, 0], other[:n, 0]),  # two seeds
        (x[:n, 0], x[n:, 0]),  # two batches
        (x[:n, 0], x[:n, 1]),  # two positions
        (x[:n, 0], first.tasks[:n, 0]),  # tokens and tasks
        (first.tasks[:n, 0], weights),  # tasks and the weights of a run with the same seed
        (x[:n, 0], weights),
    ]
    for a, b in pairs:
        # correlations of independent samples are N(0, 1/n); 4 sigma for six: false alarm 4e-4, seed fixed
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(n)


def test_whitened_tasks_are_white_exactly():
    task = make(whiten_tasks=True, sequences=50)
    # rounding of 50 sums
    np.testing.assert_allclose(task.tasks.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(task.tasks.T @ task.tasks / 50, np.eye(3), atol=1e-13)


def test_centred_inputs_are_centred_at_every_position():
    prompts, _ = make(centre_inputs=True, sequences=5000).data()
    np.testing.assert_allclose(prompts[:, :3].mean(axis=0), 0, atol=1e-14)
    uncentred, _ = make(sequences=5000).data()
    assert np.abs(uncentred[:, :3].mean(axis=0)).min() > 1e-6


def test_centring_moves_the_answers_too():
    task = make(centre_inputs=True)
    prompts, labels = task.data()
    np.testing.assert_allclose(labels, np.einsum("pd,pd->p", task.tasks, prompts[:, :3, -1]), rtol=1e-13)


def test_a_covariance_is_kept_and_its_eigenvalues_come_downwards():
    task = make(covariance=COVARIANCE)
    np.testing.assert_allclose(task.covariance, COVARIANCE, atol=1e-15)
    assert (np.diff(task.eigenvalues) < 0).all()


def test_rotation_keeps_the_eigenvalues():
    task = make(eigenvalues=(0.5, 0.3, 0.2), rotate=True)
    np.testing.assert_allclose(task.basis.T @ task.basis, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(np.linalg.eigvalsh(task.covariance), (0.2, 0.3, 0.5), rtol=1e-14)
    assert np.abs(task.covariance - np.diag(np.diag(task.covariance))).max() > 0.01


def test_default_eigenvalues_fall_linearly_with_trace_one():
    np.testing.assert_allclose(make(dim=4).eigenvalues, (0.4, 0.3, 0.2, 0.1), rtol=1e-15)


def test_a_task_does_not_change_afterwards():
    with pytest.raises(ValueError, match="read-only"):
        make().eigenvalues[0] = 2.0


@pytest.mark.parametrize(
    "covariance",
    [np.diag([0.5, 1 / 3, 1 / 6]), COVARIANCE],
    ids=["diagonal", "full"],
)
def test_sampled_moments_agree_with_isserlis(covariance):
    """E[y z] = vec(L^2),  E[z z^T] = S kron L (row-major),  S = L^2 + L (L + tr L)/N,  E[y^2] = tr L."""
    context, dim = 5, 3
    task = make(covariance=covariance, sequences=40_000, context=context)
    L, trace = covariance, np.trace(covariance)
    S = L @ L + L @ (L + trace * np.eye(dim)) / context
    upper = np.triu_indices(dim**2)

    def quantities(prompts, labels):
        z = cubic_features(prompts)
        zz = z[:, upper[0]] * z[:, upper[1]]
        return np.column_stack([labels[:, None] * z, zz, labels**2])

    expected = np.concatenate([(L @ L).reshape(-1), np.kron(S, L)[upper], [trace]])
    mean, error = estimate(task, quantities)
    # Bonferroni: all 55 z-scores are within the bound with probability 0.99; the seed is fixed.
    bound = norm.ppf(1 - 0.01 / (2 * expected.size))
    assert np.abs((mean - expected) / error).max() < bound
    # and the test has teeth: the other order of the Kronecker product is far out
    swapped = np.concatenate([(L @ L).reshape(-1), np.kron(L, S)[upper], [trace]])
    assert np.abs((mean - swapped) / error).max() > 3 * bound


def test_estimate_is_mean_and_standard_error():
    task = make(sequences=9000)  # three batches
    labels = task.data().labels
    mean, error = estimate(task, lambda prompts, labels: labels)
    assert mean == pytest.approx(labels.mean(), rel=1e-12)
    assert error == pytest.approx(labels.std(ddof=1) / np.sqrt(9000), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 0}, "`dim` is the dimension D of x and must be a whole number >= 1; got 0"),
        ({"context": 0}, "`context` is the number N of context pairs.*>= 1; got 0"),
        ({"context": 2.5}, "`context` .*got 2.5"),
        ({"sequences": 0}, "`sequences` is the number P of sequences and must be a whole number >= 1; got 0"),
        ({"seed": -1}, "`seed` is the seed of the data and must be a whole number >= 0; got -1"),
        ({"seed": -1, "rotate": True}, "`seed` is the seed of the data"),
        ({"eigenvalues": (0.5, 0.5)}, r"`eigenvalues` must hold dim = 3 numbers; got shape \(2,\)"),
        ({"eigenvalues": (0.5, 0.5, 0.0)}, "must be positive and finite; got .*0.0"),
        ({"eigenvalues": (0.5, 0.5, -1.0)}, "must be positive and finite; got .*-1.0"),
        ({"eigenvalues": (0.5, 0.5, np.nan)}, "must be positive and finite; got .*nan"),
        ({"covariance": np.eye(2)}, r"`covariance` must have shape \(3, 3\).*got \(2, 2\)"),
        ({"covariance": np.diag([1.0, 1.0, 0.0])}, "must be positive definite; its smallest eigenvalue is 0"),
        ({"covariance": np.triu(np.ones((3, 3)))}, "`covariance` must be finite and symmetric"),
        ({"covariance": np.full((3, 3), np.inf)}, "`covariance` must be finite and symmetric"),
        ({"covariance": np.eye(3), "eigenvalues": (0.5, 0.3, 0.2)}, "not both"),
        ({"whiten_tasks": True, "sequences": 3}, "`whiten_tasks` needs more sequences than dimensions"),
    ],
)
def test_impossible_data_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_two_sequences_have_a_standard_error():
    # Half their difference.
    one, other = make(sequences=2).data().labels
    mean, error = estimate(make(sequences=2), lambda prompts, labels: labels)
    assert mean == pytest.approx((one + other) / 2, rel=1e-14)
    assert error == pytest.approx(abs(one - other) / 2, rel=1e-14)


def test_a_single_sequence_has_no_standard_error():
    with pytest.raises(ValueError, match="needs at least 2 sequences; the task has 1"):
        estimate(make(sequences=1), lambda prompts, labels: labels)
