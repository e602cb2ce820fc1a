"""Seeds side by side: each is the run that it would be alone; one compilation; who diverged."""

import numpy as np
import pytest
import xarray as xr

from odesys.simulation import DescentError, descend, descent, networks, tasks

NET = networks.SeparateAttention(heads=2)
RUN = {"init": 0.5, "rate": 0.02, "steps": 101}


@pytest.fixture(scope="module")
def task():
    return tasks.linear_regression(dim=2, context=6, sequences=60, seed=3, rotate=True)


@pytest.mark.parametrize("gradient", ["restricted", "raw"])
def test_each_seed_is_the_run_alone(task, gradient):
    together = descend(NET, task, seed=[4, 0, 7], gradient=gradient, every=20, **RUN)
    assert together["loss"].dims == ("step", "seed")
    assert together["KQ"].dims == ("step", "seed", "head", "row", "col")
    assert together["seed"].values.tolist() == together.attrs["seed"] == [4, 0, 7]
    alone = descend(NET, task, seed=0, gradient=gradient, every=20, **RUN)
    for name in alone.data_vars:
        np.testing.assert_allclose(together[name].sel(seed=0), alone[name], rtol=0, atol=1e-12)  # rounding
    assert np.abs(together["v"].sel(seed=4) - alone["v"]).min() > 0


def test_one_seed_in_a_list_keeps_its_dim(task):
    assert descend(NET, task, seed=[3], **RUN).sizes["seed"] == 1


def test_other_seeds_do_not_compile_again(task):
    descend(NET, task, seed=range(3), **RUN)
    compiled = descent._descend._cache_size()
    descend(NET, task, seed=np.array([5, 6, 8]), **{**RUN, "rate": 0.01})
    assert descent._descend._cache_size() == compiled


def test_it_can_be_stored(task, tmp_path):
    run = descend(NET, task, seed=[0, 1], **{**RUN, "steps": 3})
    run.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as stored:
        xr.testing.assert_equal(stored, run)
        assert stored.attrs["seed"].tolist() == [0, 1]


def test_divergence_names_the_seed_and_keeps_the_others(task):
    settings = {**RUN, "rate": 3.0, "init": 0.4, "steps": 201}
    lone = {}
    for seed in range(4):
        try:
            descend(NET, task, seed=seed, **settings)
        except DescentError as error:
            lone[seed] = error.step
    assert len(lone) > 0
    first = min(lone, key=lone.get)
    message = f"diverged for seed {first}: .* not finite at step {lone[first]};"
    with pytest.raises(DescentError, match=message) as caught:
        descend(NET, task, seed=range(4), **settings)
    assert caught.value.step == lone[first]
    assert caught.value.partial.sizes == {**caught.value.partial.sizes, "step": lone[first], "seed": 4}
    assert np.isfinite(caught.value.partial["loss"]).all()


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        ([], "Several seeds must differ, and there must be one at least; got \\[\\]"),
        ([1, 1], "Several seeds must differ.*got \\[1, 1\\]"),
        ([0, -1], "`seed` is the seed of the initial weights.*got -1"),
        ([0.5], "`seed` .*got 0.5"),
    ],
)
def test_impossible_seeds_are_refused(task, seed, message):
    with pytest.raises(ValueError, match=message):
        descend(NET, task, seed=seed, **RUN)


def test_the_saddle_at_zero_is_refused_as_a_start(task):
    message = "gradient vanishes: descent would stay at that saddle. Start beside it"
    with pytest.raises(
        ValueError, match=f"`init` is the standard deviation.*got 0.0. At zero weights the {message}"
    ):
        descend(NET, task, seed=0, **{**RUN, "init": 0.0})
    weights = NET.init(np.random.default_rng(0), 0.0, 2)
    with pytest.raises(ValueError, match=f"All `weights` are zero. At zero weights the {message}"):
        descend(NET, task, weights=weights, rate=0.1, steps=2)
