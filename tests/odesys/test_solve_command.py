"""`odesys solve`: a model file integrated or iterated, one JSON object, and one line for every fault."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from odesys.cli import main

MODELS = Path(__file__).parent.parent / "models"

GROWTH = '[flow]\nx = "x^2"\n[start]\nx = 1\n'
ROTATION = (
    '[parameters]\nc = "3/5"\ns = "4/5"\n[map]\nx = "c*x - s*y"\ny = "s*x + c*y"\n'
    '[conserved]\nR = "x^2 + y^2"\n[observables]\nd = "x - y"\n[start]\nx = 1\ny = 0\n[run]\nsteps = 50\n'
)


@pytest.fixture
def solved(tmp_path, monkeypatch, capsys):
    """Run the command on a text in a folder of its own; its exit code, and its JSON or its fault."""
    monkeypatch.chdir(tmp_path)

    def run(text, *arguments):
        Path("model.toml").write_text(text)
        code = main(["solve", "model.toml", *arguments])
        out, err = capsys.readouterr()
        assert out.count("\n") == (1 if code == 0 else 0)
        return code, json.loads(out) if code == 0 else err

    return run


def test_the_two_layer_network_keeps_what_it_conserves(solved, tmp_path):
    text = (MODELS / "two_layer_network.toml").read_text()
    code, found = solved(text, "-o", "run.nc", "--end", "2", "--rtol", "1e-11")
    assert code == 0
    # a*b at time 2 by quadrature of dp/sqrt(C^2 + 4 p^2)/(1 - p), as in odesys.textbook.
    assert found["observables"]["p"] == pytest.approx(0.8502916657834493, rel=1e-9)
    assert found["drift"]["C"] < 1e-12
    assert (found["method"], found["time"], found["file"]) == ("DOP853", 2.0, "run.nc")
    with xr.open_dataset(tmp_path / "run.nc") as run:
        assert run["a"].sizes == {"time": 201}
        assert run["invariant"].values.tolist() == ["C"]
        assert run.attrs["model"] == "two-layer network"
        assert run["b"].values[-1] == found["end"]["b"]


def test_options_take_the_place_of_the_file(solved, tmp_path):
    text = (MODELS / "logistic.toml").read_text()
    code, found = solved(text, "--method", "Tsit5", "--end", "4", "--points", "5", "-o", "run.nc")
    assert (code, found["method"]) == (0, "Tsit5")
    # By hand: K/(1 + (K/x_0 - 1) exp(-r t)) with K = 2, x_0 = 1/1000, r t = 2; the tolerance is 100 rtol.
    assert found["end"]["x"] == pytest.approx(2 / (1 + 1999 * math.exp(-2)), rel=1e-6)
    with xr.open_dataset(tmp_path / "run.nc") as run:
        assert run["time"].values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_map_is_iterated(solved, tmp_path):
    code, found = solved(ROTATION, "-o", "run.nc")
    angle = 50 * math.atan2(4, 3)
    assert code == 0
    assert found["step"] == 50
    assert found["end"]["x"] == pytest.approx(math.cos(angle), abs=1e-13)
    assert found["observables"]["d"] == pytest.approx(math.cos(angle) - math.sin(angle), abs=1e-13)
    assert found["drift"]["R"] < 1e-13
    with xr.open_dataset(tmp_path / "run.nc") as run:
        steps = run["step"].values
        assert np.allclose(run["y"], np.sin(steps * math.atan2(4, 3)), atol=1e-13)


def test_a_blow_up_exits_with_1_its_time_and_its_reason(solved, tmp_path):
    code, fault = solved(GROWTH, "--end", "2", "-o", "run.nc")
    assert code == 1
    # By hand: x = 1/(1 - t).
    assert "the integration stopped at time 1.0000" in fault
    assert "blow-up" in fault
    assert not (tmp_path / "run.nc").exists()
    code, fault = solved('[map]\nx = "x^2"\n[start]\nx = 10', "--steps", "20")
    assert code == 1
    assert "leaves the finite numbers at step 9 of 20" in fault


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (GROWTH, [], "model.toml: [run] end is missing. Say how long to integrate, here or with --end."),
        (GROWTH, ["--end", "-1"], "--end must be positive and finite; got -1.0."),
        (GROWTH, ["--end", "nan"], "--end must be positive and finite"),
        (GROWTH, ["--rtol", "0", "--end", "1"], "--rtol must be positive"),
        (GROWTH, ["--rtol", "1e-20", "--end", "1"], "rtol"),
        (GROWTH, ["--method", "Euler", "--end", "1"], "`method` must be one of"),
        (GROWTH, ["--steps", "3", "--end", "1"], "--steps is of maps; model.toml holds a flow."),
        (ROTATION, ["--end", "3"], "--end is of flows; model.toml holds a map."),
        ('[flow]\nx = "-x"', ["--end", "1"], "[start] is missing. A run begins there: give a number"),
        ('[flow]\nx = "-z"', [], "there is no name 'z'"),
        (GROWTH, ["-o", "/no/such/folder/run.nc", "--end", ".1"], "cannot be written"),
    ],
)
def test_faults_are_one_line_and_exit_code_2(solved, tmp_path, text, arguments, message):
    code, fault = solved(text, *arguments)
    assert code == 2
    assert fault.startswith("odesys: ")
    assert fault.count("\n") == 1
    assert message in fault
    assert [path.name for path in tmp_path.iterdir()] == ["model.toml"]


def test_files_are_not_overwritten_unasked(solved, tmp_path):
    (tmp_path / "run.nc").write_text("precious")
    assert solved(GROWTH, "--end", ".5", "-o", "run.nc")[0] == 2
    assert (tmp_path / "run.nc").read_text() == "precious"
    assert solved(GROWTH, "--end", ".5", "-o", "run.nc", "--force")[0] == 0


def test_only_files_are_solved(capsys):
    assert main(["solve", "merged"]) == 2
    assert "runs a model of your own, FILE.toml; got 'merged'" in capsys.readouterr().err
    assert main(["solve", "none.toml"]) == 2
    assert "none.toml: cannot be read: No such file" in capsys.readouterr().err
