"""`odesys simulate` of softmax regression and of model files: descent by autodiff, and what its end is."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from odesys.cli import main

MODELS = Path(__file__).parent.parent / "models"

#: L = (x - 3)^2/2 + y^2: every step takes x - 3 to (1 - eta)(x - 3) and y to (1 - 2 eta) y.
BOWL = (
    '[parameters]\nc = 3\n[loss]\nexpression = "(x - c)^2/2 + y^2"\nstates = ["x", "y"]\n'
    '[observables]\nd = "x - c"\n[start]\nx = 1\ny = 1\n'
)


@pytest.fixture
def simulated(tmp_path, monkeypatch, capsys):
    """Run the command in a folder of its own; its exit code, and its JSON or the last line of its faults."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, text=None):
        if text is not None:
            Path("model.toml").write_text(text)
        code = main(["simulate", *arguments])
        out, err = capsys.readouterr()
        return code, json.loads(out) if code == 0 else err.splitlines()[-1]

    return run


def test_a_loss_of_ones_own_descends(simulated, tmp_path):
    code, found = simulated("model.toml", "--rate", "0.1", "--steps", "21", "-o", "run.nc", text=BOWL)
    assert code == 0
    # By hand: 20 updates from x - 3 = -2 and y = 1.
    assert found["end"]["x"] == pytest.approx(3 - 2 * 0.9**20, rel=1e-13)
    assert found["end"]["y"] == pytest.approx(0.8**20, rel=1e-13)
    assert found["end"]["d"] == pytest.approx(-2 * 0.9**20, rel=1e-13)
    assert (found["model"], found["steps"], found["first_loss"]) == ("model", 20, 3.0)
    with xr.open_dataset(tmp_path / "run.nc") as run:
        assert np.allclose(run["loss"], 2 * 0.9 ** (2 * run["step"]) + 0.8 ** (2 * run["step"]), rtol=1e-12)


def test_the_file_says_rate_and_steps_and_options_take_their_place(simulated):
    text = BOWL + "[run]\nrate = 0.2\nsteps = 5\n"
    assert simulated("model.toml", text=text)[1]["end"]["y"] == pytest.approx(0.6**5, rel=1e-13)
    found = simulated("model.toml", "--rate", "0.1", "--start", "x=3,y=2", text=text)[1]
    assert found["end"] == {"x": 3.0, "y": pytest.approx(2 * 0.8**5, rel=1e-13), "d": 0.0}


def test_without_steps_descent_reaches_the_end_of_the_flow(simulated):
    text = BOWL.replace('states = ["x", "y"]', 'states = ["x", "y"]\ntime_constant = 2') + "[run]\nend = 3\n"
    # Step k is at the time k rate tau: 3 = 15 * 0.1 * 2.
    assert simulated("model.toml", "--rate", "0.1", text=text)[1]["steps"] == 15


def test_the_step_of_a_gradient_map_is_its_rate(simulated):
    text = BOWL.replace('states = ["x", "y"]', 'states = ["x", "y"]\nstep = "c/10"') + "[run]\nsteps = 4\n"
    assert simulated("model.toml", text=text)[1]["end"]["y"] == pytest.approx(0.4**4, rel=1e-13)
    assert "leave --rate out" in simulated("model.toml", "--rate", "0.1", text=text)[1]


def test_softmax_ends_with_a_verdict(simulated, tmp_path):
    arguments = ["--case", "two-minima", "--rate", "0.5", "--steps", "2001", "--start", "x_1=.5,x_2=.2"]
    code, found = simulated("softmax", *arguments, "-o", "run.nc")
    assert (code, found["verdict"]) == (0, "fixed point")
    # The minimum by independent 50-digit arithmetic.
    assert found["end"] == pytest.approx(
        {"x_1": -0.033239091624645438, "x_2": -0.10126145389898047}, abs=1e-14
    )
    assert found["sentence"].startswith("a certified fixed point (stable node)")
    with xr.open_dataset(tmp_path / "run.nc") as run:
        assert run.attrs["verdict"] == "fixed point"
        assert [float(run[x][0]) for x in ("x_1", "x_2")] == [0.5, 0.2]


def test_a_matrix_of_weights_keeps_what_it_conserves(simulated):
    # A2 e_1 = 1 conserves X e_1; by hand X_22 = log 3 and X_12 = -2 log 3.
    start = "X_1_1=0.5,X_1_2=-0.1,X_2_1=-0.25,X_2_2=0.2"
    arguments = ("--case", "reference-matrix", "--start", start, "--rate", "0.5", "--steps", "20001")
    code, found = simulated("softmax", *arguments)
    assert (code, found["verdict"]) == (0, "interpolation")
    assert (found["end"]["X_1_1"], found["end"]["X_2_1"]) == (0.5, -0.25)
    assert found["end"]["X_1_2"] == pytest.approx(-2 * math.log(3), abs=1e-9)
    assert found["end"]["X_2_2"] == pytest.approx(math.log(3), abs=1e-9)


def test_softmax_can_escape(simulated):
    found = simulated("softmax", "--case", "three-points-rescaled", "--steps", "1001")[1]
    assert found["verdict"] == "escape"
    # By hand: at x = 0 all u are 1, so that Lr = |1 - 3 b|^2/2 with b = (1/3, 0, 2/3).
    assert found["first_loss"] == pytest.approx(1.0, rel=1e-14)
    assert found["last_loss"] > 4 / 9
    assert math.isfinite(found["end"]["x_1"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["softmax", "--case", "nosuch"], "There is no case 'nosuch' of softmax; the cases are three-points"),
        (["softmax", "--start", "x_1=inf,x_2=0"], "--start must hold finite numbers; got 'x_1=inf,x_2=0'"),
        (["softmax", "--heads", "2"], "--heads means nothing for softmax"),
        (["softmax", "--plain"], "--plain means nothing for softmax"),
        (["softmax", "--seed", "3"], "--seed means nothing for softmax"),
        (["softmax", "--start", "x_1=1"], "--start must name each of x_1, x_2 once; got x_1"),
        (["softmax", "--start", "x_1"], "--start must look like x_1=.5,x_2=.2; got 'x_1'"),
        (["separate", "--start", "x_1=1"], "--start means nothing for separate"),
        (["merged", "--case", "two-minima"], "--case means nothing for merged"),
        (["model.toml"], "model.toml: [run] rate is missing. Say the learning rate, here or with --rate."),
        (["model.toml", "--rate", "0.1"], "model.toml: [run] end is missing. Say how long to descend, or --steps."),
        (["model.toml", "--rate", "-1", "--steps", "3"], "`rate`"),
        (["model.toml", "--rate", "0.1", "--heads", "2"], "--heads means nothing for a model file"),
        (["model.toml", "--rate", "0.1", "--start", "z=1"], "--start must name each of x, y once; got z"),
        ([str(MODELS / "van_der_pol.toml")], "has no [loss] to descend; `odesys solve` runs the rule as it is."),
    ],
    ids=lambda value: None if isinstance(value, list) else value[:30],
)  # fmt: skip
def test_faults_are_one_line_and_exit_code_2(simulated, arguments, message):
    code, fault = simulated(*arguments, text=BOWL)
    assert code == 2
    assert fault.startswith("odesys: ")
    assert message in fault


def test_divergence_exits_with_1_and_leaves_no_file(simulated, tmp_path):
    code, fault = simulated("model.toml", "--rate", "30", "--steps", "900", "-o", "run.nc", text=BOWL)
    assert code == 1
    assert "diverged" in fault
    assert [path.name for path in tmp_path.iterdir()] == ["model.toml"]
