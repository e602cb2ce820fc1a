"""Varying context length and mixtures: the data by hand, population formulas, statistics against raw autodiff."""

import numpy as np
import pytest
from references import reference

from odesys import clock
from odesys.simulation import descend, evaluate_loss, networks, tasks
from odesys.simulation.features import cubic_features
from odesys.simulation.observables import weights_of
from odesys.simulation.statistics import estimate

VARIANTS = reference("linear_attention_variants")
LAM = np.array([0.4, 0.3, 0.2, 0.1])


def make(**changes):
    return tasks.linear_regression(**{"dim": 3, "context": 5, "sequences": 20, "seed": 1, **changes})


def population_loss(M, lam, weight=1.0, second=None, context=None):
    """tr L - 2 weight tr(L^2 M) + tr(S M L M^T),  S = L^2 + L (L + tr L)/N."""
    if second is None:
        second = np.diag(lam**2 + lam * (lam + lam.sum()) / context)
    L = np.diag(lam)
    return lam.sum() - 2 * weight * np.trace(L @ L @ M) + np.trace(second @ M @ L @ M.T)


class TestVaryingContext:
    def test_each_sequence_asks_at_each_position(self):
        prompts, labels = make().data()
        x, w = prompts[:, :3], make().tasks
        batches = list(make(vary_context=True).batches())
        assert [batch.prompts.shape for batch in batches] == [(20, 4, n + 1) for n in range(1, 6)]
        for n, batch in enumerate(batches, start=1):
            np.testing.assert_array_equal(batch.prompts[:, :3], x[:, :, : n + 1])
            np.testing.assert_array_equal(batch.prompts[:, 3, :n], prompts[:, 3, :n])
            assert not batch.prompts[:, 3, n].any()
            np.testing.assert_allclose(batch.labels, np.einsum("pd,pd->p", w, x[:, :, n]), rtol=1e-13)
        np.testing.assert_array_equal(batches[-1].labels, labels)

    def test_effective_context(self):
        # 1, 1/2, 1/3 have the mean 11/18
        assert make(context=3, vary_context=True).effective_context == pytest.approx(18 / 11, rel=1e-15)
        assert make().effective_context == 5
        assert make(vary_context=True).examples == 100
        published = VARIANTS["varying_length"]["effective N"]
        assert make(context=31, vary_context=True).effective_context == pytest.approx(published, rel=1e-14)

    def test_a_sequence_counts_once_in_a_standard_error(self):
        task = make(sequences=5000, vary_context=True)
        mean, error = estimate(task, lambda prompts, labels: labels + 10)
        batches = [batch.labels for batch in task.batches()]  # two pieces, five lengths each
        own = np.concatenate([np.mean(batches[:5], axis=0), np.mean(batches[5:], axis=0)]) + 10
        assert mean == pytest.approx(own.mean(), rel=1e-13)
        assert error == pytest.approx(own.std(ddof=1) / np.sqrt(5000), rel=1e-12)

    def test_population_loss_with_the_mean_of_1_over_n(self):
        published = VARIANTS["varying_length"]
        M = np.array(published["test M"])
        theory = population_loss(M, LAM, context=published["effective N"])
        assert theory == pytest.approx(published["theory"], rel=1e-12)
        task = make(dim=4, context=31, sequences=20_000, vary_context=True)
        mean, error = estimate(task, lambda X, y: (y - cubic_features(X) @ M.reshape(-1)) ** 2)
        assert abs(mean - theory) < 4 * error
        # a fixed N = 31 in its place is far out
        assert abs(mean - population_loss(M, LAM, context=31)) > 8 * error

    def test_population_loss_of_the_authors_token_count(self):
        M, n = np.array(VARIANTS["varying_length"]["test M"]), np.arange(1, 9)
        share = n / (n + 1)
        second = np.diag(np.mean(share**2) * LAM**2 + np.mean(share**2 / n) * LAM * (LAM + 1))
        theory = population_loss(M, LAM, weight=np.mean(share), second=second)
        task = make(dim=4, context=8, sequences=20_000, vary_context=True)
        net = networks.MergedAttention(1, "tokens")
        weights = weights_of(net, task, {"v": np.ones(1), "U": M[None]})
        mean, error = evaluate_loss(net, weights, task)
        assert abs(mean - theory) < 4 * error
        assert abs(mean - population_loss(M, LAM, context=task.effective_context)) > 8 * error

    @pytest.mark.parametrize("normalization", ["mean", "tokens"])
    def test_statistics_train_as_raw_sequences_do(self, normalization):
        task = make(sequences=60, vary_context=True, context=3)
        net = networks.SeparateAttention(2, normalization=normalization)
        run = {"init": 0.7, "rate": 0.3, "steps": 101, "seed": 0}
        fast, raw = (descend(net, task, gradient=each, **run) for each in ("full", "raw"))
        assert fast["loss"][-1] < 0.9 * fast["loss"][0]
        np.testing.assert_allclose(fast["loss"], raw["loss"], rtol=1e-12)  # rounding

    def test_training_ends_at_the_optimum_of_the_effective_context(self):
        task = make(dim=4, context=31, sequences=2000, vary_context=True)
        run = descend(networks.MergedAttention(8, "mean"), task, init=1e-3, rate=0.1, steps=4001, seed=0)
        a = 1 + (1 + 1 / LAM) / task.effective_context
        optimum = 1 - np.sum(LAM / a)
        _, error = estimate(
            task, lambda X, y: (y - cubic_features(X) @ np.diag(1 / (LAM * a)).reshape(-1)) ** 2
        )
        # sampling, and the 60 coefficients fitted to the sample
        assert run["loss"].values[-1] == pytest.approx(optimum, abs=4 * error)
        assert run.attrs["vary_context"] == "True"

    def test_without_a_factor_there_is_no_theory(self):
        task = make(vary_context=True)
        with pytest.raises(ValueError, match="no fixed theory where the context length varies: long"):
            descend(networks.MergedAttention(2), task, init=0.1, rate=0.1, steps=2, seed=0)
        with pytest.raises(ValueError, match="no fixed theory where the context length varies"):
            clock.separate(task, 0.1)
        assert (
            clock.separate(task, 0.1, "tokens").step_time == clock.merged(task, 0.1, "mean").step_time == 0.2
        )

    def test_prompts_of_several_lengths_are_no_array(self):
        with pytest.raises(ValueError, match=r"Prompts of several lengths fit no one array.*`batches\(\)`"):
            make(vary_context=True).data()


class TestMixture:
    def test_the_first_tasks_are_random_and_the_rest_is_one(self):
        task = make(in_context=0.3)
        assert (task.tasks[6:] == task.fixed_task).all()
        np.testing.assert_array_equal(task.tasks[:6], make().tasks[:6])
        assert np.linalg.norm(task.fixed_task) == pytest.approx(np.sqrt(3), rel=1e-15)
        prompts, labels = task.data()
        np.testing.assert_allclose(labels, np.einsum("pd,pd->p", task.tasks, prompts[:, :3, -1]), rtol=1e-13)

    def test_without_random_tasks_the_context_tells_nothing(self):
        task = make(in_context=0.0, sequences=20_000)
        prompts, labels = task.data()
        np.testing.assert_allclose(labels, prompts[:, :3, -1] @ task.fixed_task, rtol=1e-12, atol=1e-14)
        context = prompts[:, 3, :-1]
        assert context.std() == pytest.approx(1, rel=4 / np.sqrt(2 * context.size))  # 4 standard errors
        told = np.einsum("pn,pn->p", prompts[:, 0, :-1], context) / 5
        assert abs(told.mean()) < 4 * told.std() / np.sqrt(told.size)

    def test_fresh_sequences_keep_the_fixed_task_and_the_covariance(self):
        task = make(in_context=0.4, rotate=True)
        other = task.fresh(9, sequences=50, in_context=0.0)
        np.testing.assert_array_equal(other.fixed_task, task.fixed_task)
        np.testing.assert_array_equal(other.basis, task.basis)
        assert other.sequences == 50
        assert not np.isin(other.data().prompts[:, 0], task.data().prompts[:, 0]).any()
        np.testing.assert_array_equal(task.fresh(task.seed).data().prompts, task.data().prompts)

    @pytest.mark.parametrize("in_context", [0.0, 0.5])
    def test_statistics_train_as_raw_sequences_do(self, in_context):
        task = make(sequences=60, in_context=in_context)
        net = networks.MergedAttention(2, "mean")
        run = {"init": 0.3, "rate": 0.1, "steps": 51, "seed": 0}
        fast, raw = (descend(net, task, gradient=each, **run) for each in ("full", "raw"))
        assert fast["loss"][-1] < 0.9 * fast["loss"][0]
        np.testing.assert_allclose(fast["loss"], raw["loss"], rtol=1e-12)  # rounding
        np.testing.assert_array_equal(fast.attrs["fixed_task"], task.fixed_task)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"in_context": 1.5}, "`in_context` is the fraction of sequences with a random task.*got 1.5"),
            ({"in_context": -0.1}, "`in_context` .*got -0.1"),
            ({"in_context": float("nan")}, "`in_context` .*got nan"),
            ({"in_context": "half"}, "`in_context` .*got 'half'"),
            (
                {"in_context": 0.5, "whiten_tasks": True},
                "`whiten_tasks` is for data whose tasks are all random",
            ),
            ({"fixed_task": (1.0, 2.0)}, r"`fixed_task` must hold dim = 3 finite numbers; got \[1.0, 2.0\]"),
            ({"fixed_task": (1.0, 2.0, np.inf)}, "`fixed_task` must hold dim = 3 finite numbers"),
        ],
    )
    def test_impossible_mixtures_are_refused(self, changes, message):
        with pytest.raises(ValueError, match=message):
            make(**changes)


@pytest.mark.slow
class TestPublishedMixtures:
    @pytest.mark.parametrize(("number", "in_context"), [(0, 0.0), (1, 0.2), (3, 0.6), (5, 1.0)])
    def test_the_courses_of_in_context_and_in_weight_errors(self, number, in_context):
        published = VARIANTS["mixture_runs"][number]
        assert published["icl"] == in_context
        task = tasks.linear_regression(
            dim=4,
            context=31,
            eigenvalues=(0.25,) * 4,
            sequences=5000,
            seed=5,
            in_context=in_context,
            fixed_task=published["w"],
            centre_inputs=True,
        )
        net = networks.MergedAttention(8)
        run = descend(net, task, init=1e-6, rate=5e-4, steps=5001, seed=0, every=500)
        tests = {
            "testIW": task.fresh(6, in_context=0.0),
            "testIC": task.fresh(7, in_context=1.0, whiten_tasks=True),
        }
        last = dict(zip(published["columns"], published["curve"][-1], strict=True))
        assert run["loss"].values[-1] == pytest.approx(last["train"], rel=0.12)  # another sample of 5000
        courses = {}
        for name, test in tests.items():
            courses[name] = [
                evaluate_loss(net, weights_of(net, task, run.isel(step=k)), test).mean for k in range(11)
            ]
            # another sample of 5000, for training and test; what one did not train grows with its noise
            assert courses[name][-1] == pytest.approx(last[name], rel=0.2)
        if 0 < in_context < 1:  # the in-weight solution comes first and is given up
            assert min(courses["testIW"]) < 0.6 * courses["testIW"][-1]
            assert courses["testIC"][-1] < 0.5 * courses["testIC"][0]
