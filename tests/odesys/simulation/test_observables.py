"""The coordinates of theory: recorded blocks predict as the network does, in every gauge, and back to weights."""

import numpy as np
import pytest

from odesys.simulation import descend, networks, tasks
from odesys.simulation.observables import leakage, weights_of

DIM, CONTEXT, HEADS = 3, 6, 2
RUN = {"init": 0.5, "rate": 0.02, "steps": 201, "seed": 1}


@pytest.fixture(scope="module")
def task():
    return tasks.linear_regression(
        dim=DIM, context=CONTEXT, sequences=60, seed=3, eigenvalues=(0.5, 0.3, 0.2), rotate=True
    )


def test_they_predict_in_the_papers_normalisation_and_the_eigenbasis(task):
    """yhat = sum_{ir} (vv_i, v_i)^T (X X^T / N) (k_ir; kk_ir) q_ir^T x_q, from recorded blocks alone."""
    net = networks.SeparateAttention(HEADS, 2, init_rule="entry")
    weights = net.init(np.random.default_rng(7), 0.3, DIM, all_blocks=True)
    run = descend(net, task, weights=weights, rate=1e-3, steps=1).isel(step=0)
    prompts, labels = task.data()
    turned = prompts.copy()
    turned[:, :DIM] = task.basis.T @ prompts[:, :DIM]
    sigma = turned @ turned.transpose(0, 2, 1) / CONTEXT
    value = np.concatenate([run["vv"], run["v"].values[:, None]], axis=1)
    key = np.concatenate([run["k"], run["kk"].values[..., None]], axis=2)
    yhat = np.einsum("ha,pab,hrb,hrc,pc->p", value, sigma, key, run["q"], turned[:, :DIM, -1])
    assert run["loss"].item() == pytest.approx(np.mean((labels - yhat) ** 2), rel=1e-12)
    assert run["KQ"].dims == ("head", "row", "col")
    np.testing.assert_allclose(run["KQ"], np.einsum("hra,hrb->hab", run["k"], run["q"]), rtol=1e-12)
    np.testing.assert_allclose(run["M"], np.einsum("h,hab->ab", run["v"], run["KQ"]), rtol=1e-12)


def test_the_gauge_moves_rows_but_not_their_product(task):
    net = networks.SeparateAttention(HEADS, 2)
    weights = net.init(np.random.default_rng(2), 0.5, DIM)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    turned = networks.SeparateWeights(weights.value, turn @ weights.key, turn @ weights.query)
    one, other = (descend(net, task, weights=w, rate=0.02, steps=101) for w in (weights, turned))
    for name in ("loss", "v", "KQ", "M"):
        np.testing.assert_allclose(one[name], other[name], rtol=0, atol=1e-12)
    # the control: comparing raw rows would call these two equal networks different
    assert np.abs(one["k"] - other["k"]).max() > 0.1
    assert "compare KQ" in one["k"].attrs["gauge"]
    assert "gauge" not in one["KQ"].attrs


def test_on_finite_data_the_other_blocks_leak(task):
    net = networks.SeparateAttention(HEADS)
    full = descend(net, task, **RUN)
    norms = leakage(full)
    assert set(norms) == {"vv", "kk"}
    assert norms["vv"].dims == ("step",)
    assert norms["vv"][0] == norms["kk"][0] == 0
    assert norms["vv"][-1] > 1e-2
    assert norms["kk"][-1].item() == pytest.approx(np.linalg.norm(full["kk"].values[-1]), rel=1e-14)
    restricted = descend(net, task, gradient="restricted", **RUN)
    assert not leakage(restricted).data_vars


@pytest.mark.parametrize(
    ("kind", "gradient"), [(networks.MergedAttention, "full"), (networks.SeparateAttention, "restricted")]
)
def test_a_run_can_be_resumed_from_its_observables(task, kind, gradient):
    net = kind(HEADS)
    run = descend(net, task, **RUN, gradient=gradient)
    weights = weights_of(net, task, run.sel(step=50))
    rest = descend(net, task, weights=weights, rate=RUN["rate"], steps=151, gradient=gradient)
    np.testing.assert_allclose(rest["loss"], run["loss"][50:], rtol=1e-10)  # rounding, amplified a little


def test_blocks_that_do_not_fit_are_refused(task):
    net = networks.SeparateAttention(HEADS)
    blocks = {"v": np.ones(HEADS), "k": np.ones((HEADS, 1, DIM)), "q": np.ones((HEADS, 1, DIM))}
    with pytest.raises(
        ValueError, match=r"The block `q` of SeparateAttention.* is missing; got \['k', 'v'\]"
    ):
        weights_of(net, task, {"v": blocks["v"], "k": blocks["k"]})
    with pytest.raises(ValueError, match=r"The block `v` of .* has shape \(2,\); got \(3,\)"):
        weights_of(net, task, {**blocks, "v": np.ones(3)})
