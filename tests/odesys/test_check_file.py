"""`odesys check FILE.toml`: the study that is made from a model file, and how the command reports it."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from odesys import cli
from odesys.model_file import read
from odesys.studies import _model_file, names
from odesys.studies._model_file import courses, equilibria

MODELS = Path(__file__).parent.parent / "models"

DECAY = '[flow]\nx = "-x"\n[start]\nx = 1\n[run]\nend = 3\n'


def silent(text):
    assert text


@pytest.fixture
def model(tmp_path):
    def written(text, name="model.toml"):
        path = tmp_path / name
        path.write_text(text)
        return read(path)

    return written


@pytest.fixture(scope="module")
def network():
    return _model_file.run(read(MODELS / "two_layer_network.toml"), silent)


class TestTwoLayerNetwork:
    def test_it_holds_in_every_room(self, network):
        assert [check.name for check in network.checks if not check.passed] == []
        kinds = {check.name.partition(":")[0] for check in network.checks}
        assert kinds == {"derive", "flow", "closed-form", "fixed-points", "descent", "control"}
        assert all(check.reason and check.source for check in network.checks)
        assert {check.study for check in network.checks} == {"two_layer_network.toml"}

    def test_each_kind_of_check_has_a_fault_that_it_catches_by_a_wide_margin(self, network):
        faults = {
            c.name: abs(c.measured - c.expected) / max(c.tolerance, 1e-9) for c in network.checks if c.planted
        }
        assert set(faults) == {
            "control: C + a/100 claimed to be conserved",
            "control: the rate of a 1 % too large, seen by the other integrator",
            "control: the rate of a 1 % too large, seen by the closed form of p",
            "control: C plus 2 % of its size that move with a, seen by its drift",
            "control: a place 1 % beside a = 0, b = 0",
            "control: eigenvalues 1 % too large at a = 0, b = 0",
            "control: a loss 1 % too large, seen by descent",
        }
        assert min(faults.values()) > 5

    def test_descent_is_of_order_one(self, network):
        (order,) = (c for c in network.checks if c.name.startswith("descent: "))
        assert (order.expected, order.tolerance) == (1.0, 0.1)
        assert order.measured == pytest.approx(1.0, abs=0.02)

    def test_figures_and_data(self, network):
        assert [picture.name for picture in network.figures] == [
            "model-two_layer_network-course",
            "model-two_layer_network-plane",
        ]
        assert set(network.data) == {f"model-two_layer_network-{k}" for k in ("DOP853", "Tsit5", "descent")}
        # Saxe et al. 2014: the product ends at the target s = 1.
        last = network.data["model-two_layer_network-DOP853"].isel(time=-1)
        assert float(last["a"] * last["b"]) == pytest.approx(1.0, abs=1e-6)


def test_a_claimed_solution_is_held_against_the_integrator():
    found = _model_file.run(read(MODELS / "logistic.toml"), silent)
    checks = {check.name: check for check in found.checks}
    assert all(check.passed for check in found.checks)
    assert checks["derive: the claimed x(t) solves the flow"].source == "claimed in logistic.toml"
    assert checks["closed-form: x(t) against DOP853, error over the range"].measured < 1e-9
    assert {
        "control: x(t) + t/100 claimed",
        "control: the rate of x 1 % too large, seen by the closed form",
    } <= set(checks)
    assert sum(name.startswith("fixed-points: neighbours") for name in checks) == 2


def test_what_the_file_does_not_claim_is_found(model):
    found = _model_file.run(model(DECAY), silent)
    (check,) = (c for c in found.checks if c.name.startswith("closed-form"))
    assert check.source == "found and proven by SymPy"
    assert check.passed


def test_a_gradient_map(model):
    found = _model_file.run(
        model(
            '[parameters]\neta = 0.2\n[loss]\nexpression = "(1 - a*b)^2/2"\nstates = ["a", "b"]\nstep = "eta"\n'
            "[start]\na = 1.2\nb = 0.3\n[run]\nsteps = 40\n"
        ),
        silent,
    )
    assert all(check.passed for check in found.checks)
    kinds = [check.name.partition(":")[0] for check in found.checks if not check.planted]
    assert kinds == ["flow", "fixed-points", "fixed-points", "descent"]
    assert set(found.data) == {"model-model-orbit", "model-model-descent"}


def test_a_claim_that_holds_at_the_numbers_of_the_file(model):
    text = (
        '[parameters]\nc = "3/5"\ns = "4/5"\n[map]\nx = "c*x - s*y"\ny = "s*x + c*y"\n[conserved]\nR = "x^2 + y^2"\n'
        "[start]\nx = 1\ny = 0\n[run]\nsteps = 100\n"
    )
    rotation = _model_file.run(model(text), silent)
    assert all(check.passed for check in rotation.checks)
    assert any("at the numbers of the file (not for all)" in check.reason for check in rotation.checks)
    # 3/5 and 4/5 make a rotation; 3/5 and 0.8001 do not.
    wrong = _model_file.run(model(text.replace('"4/5"', "0.8001")), silent)
    failed = [check.name for check in wrong.checks if not check.passed]
    assert failed == ["derive: R is conserved", "flow: drift of R, relative to its terms"]


@pytest.mark.slow
def test_a_chaotic_flow_is_compared_as_far_as_it_can_be_foretold(model):
    text = (
        '[flow]\nx = "10*(y - x)"\ny = "x*(28 - z) - y"\nz = "x*y - 8*z/3"\n[start]\nx = 1\ny = 1\nz = 1\n'
        "[run]\nend = 40\n"
    )
    runs = courses.courses(model(text))
    # Errors of 1e-8 grow like exp(0.906 t) to 1e-5 in some 8 units; steps are made more exactly than asked for.
    assert 6 < runs.times[-1] < 30
    assert runs.upto.startswith(", up to t = ")
    assert courses.distance(runs.scipy, runs.diffrax, "xyz") < runs.tolerance < 1e-2


class TestFixedPoints:
    @pytest.mark.parametrize(
        ("rule", "points", "rates"),
        [
            ('[flow]\nx = "y"\ny = "-x - y/2"', 1, 1),
            ('[flow]\nx = "x*(1 - x)"\ny = "-y"', 2, 1),
            ('[flow]\nx = "x*(1e-6 - x)"', 2, 2),
            ('[flow]\nx = "-x^3"', 1, 0),
            ('[flow]\nx = "-x"\ny = "-y"', 1, 0),
            ('[map]\nx = "3.9*x*(1 - x)"', 2, 2),
            ('[map]\nx = "-y"\ny = "x"', 1, 1),
            ('[flow]\nx = "1 + x^2"', 0, 0),
            ('[flow]\nx = "-x + sin(t)"', 0, 0),
        ],
    )  # fmt: skip
    def test_points_stand_still_and_neighbours_move_as_eigenvalues_say(self, model, rule, points, rates):
        found = equilibria.checks(model(rule))
        assert all(check.passed for check in found)
        still, moving = (
            sum(check.name.startswith(f"fixed-points: {what}") for check in found)
            for what in ("the rule", "neighbours")
        )
        assert (still, moving) == (points, rates)
        assert sum(check.planted for check in found) == (points > 0) + (rates > 0)

    def test_wrong_eigenvalues_would_fail(self, model, monkeypatch):
        slopes = equilibria._rate_at
        monkeypatch.setattr(equilibria, "_rate_at", lambda *given: 1.01 * slopes(*given))
        found = equilibria.checks(model('[flow]\nx = "y"\ny = "-x - y/2"'))
        (rate,) = (c for c in found if c.name.startswith("fixed-points: neighbours"))
        assert not rate.passed
        # By hand: lambda = -1/4 +- i sqrt(15)/4 has modulus 1, so that 1 % of it is 0.01.
        assert rate.measured == pytest.approx(0.01, rel=1e-3)


class TestCommand:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    def test_a_report_like_that_of_a_study(self, capfd, tmp_path):
        Path("own.toml").write_text(DECAY)
        assert cli.main(["check", "own.toml", "--json"]) == 0
        shown = capfd.readouterr()
        document = json.loads(shown.out)
        assert document["passed"] is True
        assert {check["study"] for check in document["checks"]} == {"own.toml"}
        assert "own.toml: integrating with SciPy and diffrax" in shown.err
        report = tmp_path / "odesys-report"
        assert sorted(os.listdir(report / "figures")) == ["model-own-course.png", "model-own-plane.png"]
        assert sorted(os.listdir(report / "data")) == ["model-own-DOP853.nc", "model-own-Tsit5.nc"]

    def test_a_false_claim_exits_with_one(self, capfd):
        Path("own.toml").write_text(DECAY + '[solution]\nx = "x_0*exp(-2*t)"\n')
        assert cli.main(["check", "own.toml", "--json"]) == 1
        checks = {check["name"]: check for check in json.loads(capfd.readouterr().out)["checks"]}
        failed = [name for name, check in checks.items() if not check["passed"]]
        assert failed == [
            "derive: the claimed x(t) solves the flow",
            "closed-form: x(t) against DOP853, error over the range",
        ]
        # By hand: exp(-t) - exp(-2 t) is largest, 1/4, at t = ln 2; the range is 1 - exp(-6).
        assert checks[failed[1]]["measured"] == pytest.approx(0.25, rel=0.01)
        assert checks[failed[0]]["source"].startswith("claimed in own.toml; refused: x = x_0*exp(-2*t)")

    def test_a_blow_up_exits_with_one_and_no_report(self, capsys, tmp_path):
        Path("own.toml").write_text('[flow]\nx = "x^2"\n[start]\nx = 1\n[run]\nend = 2\n')
        assert cli.main(["check", "own.toml"]) == 1
        assert "stopped at time 1.0000" in capsys.readouterr().err
        assert os.listdir(tmp_path) == ["own.toml"]

    def test_an_orbit_that_leaves_the_finite_numbers_exits_with_one(self, capsys):
        Path("own.toml").write_text('[map]\nx = "x^2"\n[start]\nx = 10\n[run]\nsteps = 20\n')
        assert cli.main(["check", "own.toml"]) == 1
        assert "own.toml: The map leaves the finite numbers at step 9" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "arguments", "message"),
        [
            ('[flow]\nx = "-x"', ["own.toml"], "own.toml: [start] is missing. The check runs from there"),
            ('[flow]\nx = "-x"\n[start]\nx = 1', ["own.toml"], "own.toml: [run] end is missing"),
            ('[map]\nx = "-x"\n[start]\nx = 1', ["own.toml"], "own.toml: [run] steps is missing"),
            (DECAY, ["own.toml", "none.toml"], "none.toml: cannot be read"),
            (DECAY, ["own.toml", "--figure", "1"], "--figure draws figures of studies"),
            (DECAY, ["own.toml", "nosuch"], "There is no study 'nosuch'"),
            (DECAY, ["own.toml", "./own.toml"], "Two files are called own"),
        ],
    )  # fmt: skip
    def test_faults_are_one_line_and_exit_code_2(self, capsys, tmp_path, text, arguments, message):
        Path("own.toml").write_text(text)
        assert cli.main(["check", *arguments]) == 2
        fault = capsys.readouterr().err
        assert fault.startswith("odesys: ")
        assert fault.count("\n") == 1
        assert message in fault
        assert os.listdir(tmp_path) == ["own.toml"]


def test_the_study_of_files_is_no_study_by_name():
    assert not any("model_file" in name for name in names())


def test_a_start_that_stands_still_is_pushed(model):
    runs = courses.courses(model('[flow]\nx = "x*(1 - x)"\n[start]\nx = 1\n[run]\nend = 2\n'))
    assert runs.fault == "x pushed by 1 % of its size"
    assert courses.distance(runs.scipy, runs.diffrax, ["x"]) == 0
    # By hand: y' = 0.005 - y for small y = x - 1, so y(2) = 0.005 (1 - exp(-2)) up to y^2.
    assert np.isclose(runs.faulty["x"][-1] - 1, 0.005 * (1 - np.exp(-2)), atol=1e-4)
