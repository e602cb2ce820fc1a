"""The command line: exit codes, what goes to which stream, and no half-written report."""

import json
import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import xarray as xr

from odesys import cli, studies
from odesys.integrators.errors import IntegrationError
from odesys.plotting import new_axes
from odesys.report import Check, Picture
from odesys.studies import StudyResult
from symbolic import NotInvariantError


def found(measured: float) -> StudyResult:
    picture = Picture("line", new_axes().figure, "A line.", "A line.")
    return StudyResult(
        [Check("flow: x", measured, 1.0, 0.1)], [picture], {"run": xr.Dataset({"x": ("t", [1.0])})}
    )


@pytest.fixture
def study(monkeypatch, tmp_path):
    """A study named `toy` stands in for the real ones; set its `run` to what the test needs."""
    toy = SimpleNamespace(run=lambda scale, seed, announce: found(1.0), FIGURES={})
    monkeypatch.setattr(studies, "names", lambda: ("toy",))
    monkeypatch.setattr(studies, "load", lambda name: toy)
    monkeypatch.chdir(tmp_path)
    return toy


def test_all_checks_hold(study, tmp_path, capsys):
    assert cli.main(["check"]) == 0
    shown = capsys.readouterr()
    assert re.search(r"flow: x +1 +1 +0\.1 +holds", shown.out)
    assert "1 check holds." in shown.out
    assert str(cli.DEFAULT_FOLDER / "report.html") in shown.out
    assert (tmp_path / "odesys-report" / "report.html").exists()


def test_a_failing_check_exits_with_one_and_is_reported(study, tmp_path, capsys):
    study.run = lambda scale, seed, announce: found(2.0)
    assert cli.main(["check", "toy", "--out", "elsewhere"]) == 1
    assert re.search(r"flow: x +2 +1 +0\.1 +FAILS", capsys.readouterr().out)
    assert json.loads((tmp_path / "elsewhere" / "report.json").read_text())["passed"] is False


def test_json_is_one_object_on_standard_output(study, capfd):
    study.run = lambda scale, seed, announce: announce("working") or found(float("nan"))
    assert cli.main(["check", "--json"]) == 1
    shown = capfd.readouterr()
    document = json.loads(shown.out)
    assert document["passed"] is False
    (check,) = document["checks"]
    assert (check["measured"], check["study"]) == ("nan", "toy")
    assert "toy: working" in shown.err


def test_options_reach_the_study(study):
    seen = []
    study.run = lambda scale, seed, announce: seen.append((scale, seed)) or found(1.0)
    cli.main(["check"])
    cli.main(["check", "--full", "--seed", "3"])
    assert seen == [("quick", 10), ("full", 3)]


def test_a_study_named_twice_runs_once(study):
    seen = []
    study.run = lambda scale, seed, announce: seen.append(1) or found(1.0)
    assert cli.main(["check", "toy", "toy"]) == 0
    assert seen == [1]


def test_float64_is_on_in_studies(study):
    program = (
        "import sys; from types import SimpleNamespace; from odesys import cli, studies\n"
        "def run(scale, seed, announce):\n"
        "    import jax.numpy as jnp; print(jnp.ones(1).dtype); raise KeyboardInterrupt\n"
        "studies.names = lambda: ('toy',); studies.load = lambda name: SimpleNamespace(run=run)\n"
        "sys.exit(cli.main(['check']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["float64"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nosuch"], "There is no study 'nosuch'; the studies are toy."),
        (["check", "--figure", "9z"], "There is no figure '9z'; the figures are 1."),
        (["check", "--seed", "x"], "Invalid value for '--seed'"),
        (["check", "--seed", "-1"], "Invalid value for '--seed'"),
        (["check", "--bogus"], "No such option: --bogus"),
        (["chekc"], "No such command 'chekc'"),
        (["check", "--out", "file"], "`file` is a file, not a folder"),
        (["check", "--out", "file/report"], "`file/report` cannot be written: Not a directory"),
        (["check", "--out", "thesis"], "`thesis` is not empty and holds no report of ours"),
        (["check", "--out", "."], "`.` holds the working folder"),
    ],
)
def test_wrong_usage_exits_with_two_and_one_line(study, tmp_path, capsys, arguments, message):
    study.FIGURES = {"1": None}
    study.run = lambda scale, seed, announce: pytest.fail("the long work started all the same")
    (tmp_path / "file").write_text("")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("")
    before = sorted(os.listdir(tmp_path))
    assert cli.main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("odesys: ")
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    "error",
    [
        IntegrationError("x became infinite at t = 1", time=1.0, reason="blow-up", partial=xr.Dataset()),
        NotInvariantError("x became infinite at t = 1"),
    ],
)
def test_a_run_that_breaks_off_exits_with_one_and_its_message(study, tmp_path, capsys, error):
    def run(scale, seed, announce):
        raise error

    study.run = run
    assert cli.main(["check"]) == 1
    assert capsys.readouterr().err == "odesys: x became infinite at t = 1\n"
    assert os.listdir(tmp_path) == []


def test_a_fault_of_the_program_is_not_hidden(study):
    study.run = lambda scale, seed, announce: 1 / 0
    with pytest.raises(ZeroDivisionError):
        cli.main(["check"])


def test_a_figure_is_drawn_beside_the_report(study, tmp_path, capsys):
    assert cli.main(["check"]) == 0
    page = (tmp_path / "odesys-report" / "report.html").read_text()
    picture = Picture("toy-1", new_axes().figure, "A line.", "A line.")
    study.FIGURES = {"1": lambda scale, seed, announce: (picture, {"toy-1": xr.Dataset({"y": ("t", [2.0])})})}
    study.run = lambda scale, seed, announce: pytest.fail("a figure alone was asked for")
    capsys.readouterr()
    assert cli.main(["check", "--figure", "1"]) == 0
    path = os.path.join("odesys-report", "figures", "toy-1.png")
    assert capsys.readouterr().out == f"{path}\n"
    with open(path, "rb") as stream:
        assert stream.read(4) == b"\x89PNG"
    with xr.open_dataset(tmp_path / "odesys-report" / "data" / "toy-1.nc", engine="h5netcdf") as data:
        assert data["y"].values.tolist() == [2.0]
    assert (tmp_path / "odesys-report" / "report.html").read_text() == page


def test_a_figure_answers_in_json_too(study, capfd):
    picture = Picture("toy-1", new_axes().figure, "A line.", "A line.")
    study.FIGURES = {"1": lambda scale, seed, announce: (picture, {})}
    assert cli.main(["check", "--figure", "1", "--json", "--out", "new"]) == 0
    assert json.loads(capfd.readouterr().out) == {
        "figures": [os.path.join("new", "figures", "toy-1.png")],
        "data": [],
    }


def test_version_and_help(capsys):
    assert cli.main(["--version"]) == 0
    assert re.fullmatch(r"odesys \d+\.\d+\.\d+\n", capsys.readouterr().out)
    assert cli.main(["check", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("--full", "--figure", "--seed", "--out", "--json"))
    assert cli.main([]) == 2
    assert "Usage" in capsys.readouterr().out


SLOW = """
import sys, time
from types import SimpleNamespace
from odesys import cli, studies
from odesys.report import Picture
from odesys.check import Check
from odesys.plotting import new_axes

def run(scale, seed, announce):
    picture = Picture("line", new_axes().figure, "A line.", "A line.")
    return studies.StudyResult([Check("flow: x", 1, 1, 0)], [picture])

def slow_png(picture):
    print("writing", flush=True)
    time.sleep(60)

if "slow" in sys.argv:
    Picture.png = slow_png
studies.names = lambda: ("toy",)
studies.load = lambda name: SimpleNamespace(run=run)
sys.exit(cli.main(["check"]))
"""


def test_ctrl_c_leaves_the_old_report_and_nothing_half_written(tmp_path):
    subprocess.run([sys.executable, "-c", SLOW], cwd=tmp_path, check=True, capture_output=True)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "slow"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "writing\n"
    assert len(os.listdir(tmp_path)) == 2  # the old report, and the new one in the making
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("odesys: interrupted; no half-written report is left.\n")
    assert "Traceback" not in err
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
