"""Gradient descent against hand solutions, against the flow it discretises, one gradient against another."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from odesys import clock
from odesys.simulation import DescentError, descend, descent, networks, tasks
from odesys.simulation.features import attention_features, cubic_features
from odesys.simulation.observables import effective_start
from odesys.simulation.statistics import estimate, moments


@pytest.fixture(scope="module")
def task():
    return tasks.linear_regression(
        dim=3, context=6, sequences=300, seed=3, eigenvalues=(0.5, 0.3, 0.2), rotate=True
    )


NET = networks.MergedAttention(heads=3)
# 400 steps of rate 0.02 pass the transition of this data set: the loss falls from 1.19 to 0.29
RUN = {"init": 0.02, "rate": 0.02, "steps": 401, "seed": 3}


def half_square(w):
    return jnp.sum(w**2) / 2


class TestAnyLoss:
    def test_a_quadratic_shrinks_geometrically(self):
        # w_k = (1 - eta)^k w_0, L_k = w_k^2 / 2
        run = descend(half_square, np.array([2.0]), rate=0.1, steps=11)
        expected = 2 * 0.9 ** np.arange(11)
        np.testing.assert_allclose(run["w"][:, 0], expected, rtol=1e-14)
        np.testing.assert_allclose(run["loss"], expected**2 / 2, rtol=1e-14)
        assert run["step"].values.tolist() == list(range(11))

    def test_weights_are_named_by_their_path(self):
        run = descend(
            lambda w: half_square(w["a"]) + half_square(w["b"][0]),
            {"a": np.ones((2, 3)), "b": [np.array(1.0)]},
            rate=0.5,
            steps=2,
        )
        assert run["a"].dims == ("step", "a_1", "a_2")
        assert run["a"].shape == (2, 2, 3)
        assert run["b.0"].values.tolist() == [1.0, 0.5]

    def test_float64_without_touching_the_process(self):
        before = jax.config.jax_enable_x64
        run = descend(half_square, np.float32(1.0), rate=0.1, steps=3)
        assert run["w"].dtype == np.float64
        assert run["w"].values[2] == pytest.approx(0.81, rel=1e-15)
        assert jax.config.jax_enable_x64 == before

    def test_the_error_against_the_flow_is_of_first_order(self):
        """White covariance, unbalanced start: descent converges to the exact solution of the flow."""
        dim, context, size, heads = 2, 3, 0.8, 2
        excess = 1 + (1 + dim) / context  # a = 1 + (1 + tr/lambda)/N
        chat = np.eye(dim) / np.sqrt(dim)
        v0, along = np.array([0.3, -0.1]), np.array([0.1, 0.2])

        def population_loss(w):
            M = jnp.einsum("h,hab->ab", w["v"], w["U"])
            return dim * size - 2 * size**2 * jnp.trace(M) + size**3 * excess * jnp.sum(M**2)

        def flow(t):
            P, Q = np.sum((v0 + along) ** 2) / 4, np.sum((v0 - along) ** 2) / 4
            c, kappa = np.sqrt(dim) * size**2, size**3 * excess
            s = np.sqrt(c**2 + 4 * kappa**2 * P * Q)
            upper, lower = (c + s) / (2 * kappa * P), -2 * kappa * Q / (c + s)
            K = (1 - lower) / (upper - 1)
            decay = np.exp(-2 * s * t)  # tau = 1
            y = (upper * K + lower * decay) / (K + decay)
            return (P * y - Q / y) / np.sqrt(dim)

        start = {"v": v0, "U": along[:, None, None] * chat}
        assert len(v0) == heads
        horizon, errors = 2.0, []
        for steps in (200, 400, 800):
            # the theory's  tau dW/dt = -(1/2) dL/dW  is  2 tau dW/dt = -dL/dW
            ticks = clock.gradient_flow(rate=horizon / (2 * steps), time_constant=2.0)
            run = descend(population_loss, start, rate=horizon / (2 * steps), steps=steps + 1)
            M = np.einsum("kh,khab->kab", run["v"], run["U"])
            errors.append(np.abs(M[:, 0, 0] - flow(ticks.time(run["step"]))).max())
        # first order with a remainder of relative size 1/steps
        np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2, rtol=0.01)

    @pytest.mark.parametrize(
        ("loss", "weights", "message"),
        [
            (lambda w: w, np.ones(2), "The loss must be one number; it returned"),
            (half_square, {}, "`weights` holds no array"),
            (lambda w: half_square(w["loss"]), {"loss": np.ones(2)}, "bear names that the result needs"),
        ],
    )
    def test_impossible_losses_are_refused(self, loss, weights, message):
        with pytest.raises(ValueError, match=message):
            descend(loss, weights, rate=0.1, steps=3)

    def test_what_belongs_to_networks_is_refused(self):
        with pytest.raises(ValueError, match="belong to networks"):
            descend(half_square, np.ones(2), rate=0.1, steps=3, init=1e-3)

    def test_neither_network_nor_function(self):
        with pytest.raises(TypeError, match="a network and a task, or a loss function and weights; got 3"):
            descend(3, np.ones(2), rate=0.1, steps=3)


class TestGradients:
    @pytest.mark.parametrize("normalization", ["sum", "mean"])
    def test_full_equals_raw_through_the_transition(self, task, normalization):
        net = networks.MergedAttention(3, normalization)
        # the same motion in both normalisations: rate * N, init * sqrt(N)
        factor = 1 if normalization == "sum" else task.context
        settings = {**RUN, "rate": RUN["rate"] * factor, "init": RUN["init"] * np.sqrt(factor)}
        fast, raw = (descend(net, task, gradient=g, **settings) for g in ("full", "raw"))
        assert fast["loss"][-1] < 0.3 * fast["loss"][0]
        # rounding only: measured 1e-15, which other machines and libraries may multiply
        np.testing.assert_allclose(fast["loss"], raw["loss"], rtol=1e-12)
        for name in ("v", "U", "vv", "u"):
            np.testing.assert_allclose(fast[name], raw[name], rtol=0, atol=1e-11)

    def test_restricted_attention_is_the_network_on_cubic_features(self, task):
        restricted = descend(NET, task, gradient="restricted", **RUN)
        cubic = networks.CubicFeatureNetwork(3)
        np.testing.assert_allclose(
            descend(cubic, task, gradient="raw", **RUN)["loss"], restricted["loss"], rtol=1e-10
        )
        np.testing.assert_allclose(descend(cubic, task, **RUN)["loss"], restricted["loss"], rtol=1e-10)

    def test_restricted_is_raw_attention_with_the_other_blocks_frozen(self, task):
        prompts, labels = task.data()
        start = NET.init(descent.generator(RUN["seed"], descent.Stream.WEIGHTS), RUN["init"], 3)
        v, U = start.value[:, -1, -1], start.key_query[:, :-1, :-1]

        def frozen(w):
            value = jnp.zeros((3, 4, 4)).at[:, 3, 3].set(w["v"])
            key_query = jnp.zeros((3, 4, 4)).at[:, :3, :3].set(w["U"])
            return jnp.mean((labels - NET.predict(networks.MergedWeights(value, key_query), prompts)) ** 2)

        expected = descend(frozen, {"v": v, "U": U}, rate=RUN["rate"], steps=RUN["steps"])
        restricted = descend(NET, task, gradient="restricted", **RUN)
        np.testing.assert_allclose(restricted["loss"], expected["loss"], rtol=1e-12)

    def test_on_finite_data_the_full_gradient_leaves_the_subspace(self, task):
        full, restricted = (descend(NET, task, gradient=g, **RUN) for g in ("full", "restricted"))
        assert not full["vv"][0].any()
        assert np.abs(full["vv"][-1]).max() > 1e-3
        assert "vv" not in restricted

    def test_every_records_the_same_run(self, task):
        one, ten = descend(NET, task, **RUN), descend(NET, task, every=10, **RUN)
        xr.testing.assert_allclose(one.isel(step=slice(None, None, 10)), ten, rtol=1e-12)
        assert ten["step"].values[-1] == 400

    def test_numbers_do_not_compile_again(self, task):
        descend(NET, task, **RUN)
        compiled = descent._descend._cache_size()
        other = tasks.linear_regression(dim=3, context=9, sequences=77, seed=4)
        descend(networks.MergedAttention(heads=3), other, **{**RUN, "rate": 0.01, "seed": 9, "init": 0.1})
        assert descent._descend._cache_size() == compiled

    @pytest.mark.parametrize("gradient", ["full", "restricted"])
    def test_moments_are_gathered_once_for_a_data_set(self, task, gradient):
        descend(NET, task, gradient=gradient, **{**RUN, "steps": 2})
        gathered = moments.cache_info().misses
        descend(networks.MergedAttention(heads=3), task, gradient=gradient, **{**RUN, "steps": 2})
        assert moments.cache_info().misses == gathered
        # All runs share them, so that nobody may write to them.
        features = attention_features if gradient == "full" else cubic_features
        with pytest.raises(ValueError, match="read-only"):
            moments(task, features, "sum").gram[0, 0] = 7.0

    def test_a_seed_fixes_the_start(self, task):
        first, again, other = (descend(NET, task, **{**RUN, "steps": 2, "seed": s}) for s in (1, 1, 2))
        xr.testing.assert_identical(first, again)
        assert np.abs(first["U"][0] - other["U"][0]).min() > 0


class TestObservables:
    def test_they_predict_in_the_papers_normalisation_and_the_eigenbasis(self, task):
        """yhat = beta^T M x_q,  beta = (1/N) sum y x,  whatever the normalisation and the data's basis."""
        prompts, labels = task.data()
        for normalization in ("sum", "mean"):
            net = networks.MergedAttention(3, normalization)
            run = descend(net, task, init=0.3, rate=1e-3, steps=1, seed=0)
            M = task.basis @ run["M"].values[0] @ task.basis.T
            beta = np.einsum("pdn,pn->pd", prompts[:, :-1], prompts[:, -1]) / task.context
            residual = labels - np.einsum("pa,ab,pb->p", beta, M, prompts[:, :-1, -1])
            assert run["loss"].values[0] == pytest.approx(np.mean(residual**2), rel=1e-12)
            np.testing.assert_allclose(
                run["M"][0], np.einsum("h,hab->ab", run["v"][0], run["U"][0]), rtol=1e-12, atol=1e-15
            )

    def test_all_four_blocks_reach_the_prediction(self, task):
        """yhat = sum_i (vv_i, v_i)^T (X X^T / N) (U_i; u_i^T) x_q, from the recorded blocks alone."""
        weights = NET.init(np.random.default_rng(0), 0.3, 3, all_blocks=True)
        run = descend(NET, task, weights=weights, rate=1e-3, steps=1).isel(step=0)
        prompts, labels = task.data()
        turned = prompts.copy()
        turned[:, :3] = task.basis.T @ prompts[:, :3]
        sigma = turned @ turned.transpose(0, 2, 1) / task.context
        left = np.concatenate([run["vv"], run["v"].values[:, None]], axis=1)
        right = np.concatenate([run["U"], run["u"].values[:, None, :]], axis=1)
        predictions = np.einsum("ha,pab,hbc,pc->p", left, sigma, right, turned[:, :3, -1])
        assert run["loss"].item() == pytest.approx(np.mean((labels - predictions) ** 2), rel=1e-12)
        assert run.attrs["init"] == "given"

    def test_both_normalisations_are_one_motion_on_one_clock(self, task):
        rate, N = RUN["rate"], task.context
        weights = NET.init(np.random.default_rng(0), 0.02, 3)
        scaled = networks.MergedWeights(*(np.sqrt(N) * block for block in weights))
        code = descend(NET, task, weights=weights, rate=rate, steps=401)
        paper = descend(networks.MergedAttention(3, "mean"), task, weights=scaled, rate=rate * N, steps=401)
        assert clock.merged(task, rate).step_time == pytest.approx(
            clock.merged(task, rate * N, "mean").step_time, rel=1e-15
        )
        for name in code.data_vars:  # identical but for rounding
            np.testing.assert_allclose(code[name], paper[name], rtol=0, atol=1e-11)

    def test_small_weights_grow_on_the_clock(self, task):
        """Near zero  tau d(v + U chat)/dt = |E[y z]| (v + U chat):  only the right clock gives this rate."""
        rate, steps = 1e-4, 201
        run = descend(NET, task, gradient="restricted", init=1e-7, rate=rate, steps=steps, seed=1)
        cross = task.basis.T @ moments(task, cubic_features).cross.reshape(3, 3) @ task.basis
        size = np.linalg.norm(cross)
        part = run["v"] + np.einsum("khab,ab->kh", run["U"], cross / size)
        times = clock.merged(task, rate).time(run["step"])
        growth = np.log(np.linalg.norm(part[-1]) / np.linalg.norm(part[0])) / times[-1]
        # a step multiplies by 1 + x, x = size * step_time, where the flow has e^x: relative error x/2 = 2e-4
        assert growth == pytest.approx(size, rel=size * times[1])

    def test_effective_start_of_an_aligned_start_is_its_size(self):
        eigenvalues, direction = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.8])
        diagonal = 0.01 * eigenvalues**2 / np.linalg.norm(eigenvalues**2)
        U = direction[:, None, None] * np.diag(diagonal)
        assert effective_start(0.01 * direction, U, eigenvalues) == pytest.approx(0.01, rel=1e-14)
        assert effective_start(0.01 * direction, 0 * U, eigenvalues) == pytest.approx(0.005, rel=1e-14)
        assert effective_start(-0.01 * direction, U, eigenvalues) == pytest.approx(0, abs=1e-17)

    def test_a_run_can_be_stored(self, task, tmp_path):
        run = descend(NET, task, **{**RUN, "steps": 3})
        run.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
        with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as stored:
            xr.testing.assert_equal(stored, run)
            assert stored.attrs["gradient"] == "full"
            assert stored.attrs["weight_scale"] == np.sqrt(6)
            assert stored.attrs["sequences"] == 300
            assert stored.attrs["whiten_tasks"] == "False"
            assert stored["head"].values.tolist() == [1, 2, 3]


class TestErrors:
    def test_divergence_names_the_step_and_keeps_the_run(self, task):
        with pytest.raises(
            DescentError, match=r"diverged: the loss is not finite at step .*Lower `rate` = 5"
        ) as caught:
            descend(NET, task, **{**RUN, "rate": 5.0})
        error = pickle.loads(pickle.dumps(caught.value))
        assert error.partial.sizes["step"] == error.step > 1
        assert np.isfinite(error.partial["loss"]).all()
        assert error.partial.attrs["rate"] == 5.0

    def test_divergence_between_recorded_steps(self, task):
        with pytest.raises(DescentError) as caught:
            descend(NET, task, every=100, **{**RUN, "rate": 5.0})
        assert caught.value.partial["step"].values.tolist() == [0]
        assert 0 < caught.value.step < 100

    def test_a_start_without_a_finite_loss(self, task):
        weights = NET.init(np.random.default_rng(0), np.nan, 3)
        with pytest.raises(DescentError, match="not finite at the start") as caught:
            descend(NET, task, weights=weights, rate=0.1, steps=3)
        assert caught.value.partial.sizes["step"] == 0

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"rate": 0.0}, "`rate` is the learning rate eta and must be positive and finite; got 0.0"),
            ({"rate": float("inf")}, "`rate` .*got inf"),
            ({"steps": 0}, "`steps` is the number of steps to record.*>= 1; got 0"),
            ({"steps": 10.5}, "`steps` .*got 10.5"),
            ({"every": 0}, "`every` is the distance of recorded steps.*got 0"),
            ({"every": 7}, "`every` must divide steps - 1.*got every = 7, steps = 401. Use steps = 400"),
            ({"init": 0.0}, "`init` is the standard deviation of the initial weights.*got 0.0"),
            ({"seed": -1}, "`seed` is the seed of the initial weights.*got -1"),
            ({"seed": None}, "A network needs a start: give `init`"),
            ({"init": None}, "A network needs a start: give `init`"),
            (
                {"gradient": "exact"},
                r"`gradient` must be one of \['full', 'raw', 'restricted'\]; got 'exact'",
            ),
            ({"weights": NET.init(np.random.default_rng(0), 1.0, 3)}, "The start is given twice"),
            (
                {"weights": NET.init(np.random.default_rng(0), 1.0, 4), "init": None, "seed": None},
                r"`weights` must be like those of `network.init`, .*\(3, 4, 4\).*got .*\(3, 5, 5\)",
            ),
            (
                {"weights": (np.ones((3, 4, 4)), np.ones((3, 4, 4))), "init": None, "seed": None},
                r"`weights` must be like those of `network.init`, MergedWeights\(.*got \(",
            ),
        ],
    )
    def test_impossible_runs_are_refused(self, task, changes, message):
        with pytest.raises(ValueError, match=message):
            descend(NET, task, **{**RUN, **changes})

    def test_a_network_needs_a_task(self):
        with pytest.raises(TypeError, match="A network descends on a task"):
            descend(NET, np.ones(3), **RUN)


def test_paper_size_run_ends_at_the_theorys_optimum():
    """Figure 1 at its own size: P = 5000, H = 8, init 1e-6, 6001 steps of rate 1e-3."""
    eigenvalues = np.array([0.4, 0.3, 0.2, 0.1])
    task = tasks.linear_regression(dim=4, context=31, eigenvalues=eigenvalues, sequences=5000, seed=10)
    run = descend(networks.MergedAttention(heads=8), task, init=1e-6, rate=1e-3, steps=6001, seed=10)
    final = run["loss"].values[-1]

    optimum = 0.1359950715980246  # reference: L* = tr - sum lambda_d / a_d
    M = np.diag(1 / (eigenvalues + (eigenvalues + 1) / 31))
    at_optimum, error = estimate(task, lambda X, y: (y - cubic_features(X) @ M.reshape(-1)) ** 2)
    data = moments(task, attention_features)
    least = data.power - data.cross @ np.linalg.solve(data.gram, data.cross)
    # The data set's loss of the optimal predictor is an unbiased sample of L*; four standard errors.
    assert abs(at_optimum - optimum) < 4 * error
    # Training on these data ends below that, and no predictor in the 60 features gets below `least`:
    # the two leave 2 % of L* to the descent (60 coefficients fitted to 5000 heavy-tailed residuals).
    assert least < final < at_optimum
    assert at_optimum - least < 0.03 * optimum
    assert abs(final - optimum) < 4 * error + (at_optimum - least)
    # One abrupt drop; the reference's runs of other draws cross 1/2 at steps 1150 and 1100.
    assert 700 < np.argmax(run["loss"].values < 0.5) < 1600
