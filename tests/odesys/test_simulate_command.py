"""`odesys simulate` from the outside: a run in a file, one JSON object, and one line for every fault."""

import json

import numpy as np
import pytest
import xarray as xr

from odesys.cli import main
from odesys.simulation import descend, networks, tasks

SMALL = ["--sequences", "50", "--context", "7", "--dim", "2", "--heads", "2", "--steps", "21", "--every", "5"]


def simulated(capsys, *arguments):
    code = main(["simulate", *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out) if code == 0 else err.splitlines()[-1]


def test_the_file_holds_what_the_library_returns(tmp_path, capsys):
    target = tmp_path / "run.nc"
    options = ["--rank", "2", "--init", "0.1", "--rate", "0.05", "--seed", "3", "--plain", "-o", str(target)]
    code, summary = simulated(capsys, "separate", *SMALL, *options)
    assert code == 0
    task = tasks.linear_regression(dim=2, context=7, sequences=50, seed=3)
    network = networks.SeparateAttention(2, 2)
    expected = descend(network, task, init=0.1, rate=0.05, steps=21, every=5, seed=3)
    with xr.open_dataset(target) as run:
        for name in expected.data_vars:
            np.testing.assert_array_equal(run[name], expected[name])
    assert summary["file"] == str(target)
    assert summary["steps"] == 20
    assert summary["last_loss"] == float(expected["loss"][-1])


def test_several_seeds_share_the_data_of_the_first(capsys):
    code, summary = simulated(capsys, "merged", *SMALL, "--seed", "1", "--seed", "2", "--init", "0.1")
    _, first = simulated(capsys, "merged", *SMALL, "--seed", "1", "--init", "0.1")
    assert code == 0
    assert summary["seeds"] == [1, 2]
    assert summary["last_loss"][0] == pytest.approx(first["last_loss"], rel=1e-12)
    assert summary["file"] is None


def test_the_default_spacing_keeps_the_last_step(tmp_path, capsys):
    target = tmp_path / "run.nc"
    arguments = [*SMALL[:8], "--steps", "2003", "--init", "0.01", "--rate", "0.001", "-o", str(target)]
    assert simulated(capsys, "merged", *arguments)[0] == 0
    with xr.open_dataset(target) as run:
        # 2002 = 2 * 7 * 11 * 13: the smallest divisor from 3 on is 7.
        assert run["step"].values[[0, 1, -1]].tolist() == [0, 7, 2002]


def test_a_file_is_not_overwritten_unasked(tmp_path, capsys):
    target = tmp_path / "run.nc"
    target.write_text("precious")
    code, fault = simulated(capsys, "merged", *SMALL, "-o", str(target))
    assert (code, target.read_text()) == (2, "precious")
    assert "--force" in fault
    assert simulated(capsys, "merged", *SMALL, "-o", str(target), "--force")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "the models are merged, separate"),
        (["merged", "--rank", "2"], "--rank means nothing for merged"),
        (["separate", "--rank", "9"], "Use rank = 4"),
        (["separate", "--rank", "0"], "rank"),
        (["separate", "--heads", "0"], "heads"),
        (["separate", "--context", "0"], "context"),
        (["separate", "--init", "0"], "would stay at that saddle"),
        (["separate", "--init-rule", "mine"], "per-head"),
        (["separate", "--eigenvalues", ".4,-.1"], "positive"),
        (["separate", "--eigenvalues", ".4,.1", "--dim", "3"], "disagree"),
        (["separate", "--every", "3", "--steps", "21"], "divide"),
        (["merged", "-o", "/"], "is a folder"),
        (["merged", "-o", "/no/such/folder/run.nc"], "cannot be written"),
    ],
)
def test_faults_are_one_line_and_exit_code_2(capsys, arguments, message):
    code, fault = simulated(capsys, *arguments, "--sequences", "50")
    assert code == 2
    assert fault.startswith("odesys: ")
    assert message in fault


def test_divergence_exits_with_1_and_leaves_no_file(tmp_path, capsys):
    target = tmp_path / "run.nc"
    code, fault = simulated(capsys, "separate", *SMALL, "--rate", "500", "--init", "1", "-o", str(target))
    assert code == 1
    assert "diverged" in fault
    assert list(tmp_path.iterdir()) == []
