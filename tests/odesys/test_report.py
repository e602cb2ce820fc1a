"""Checks, negative controls, and the report folder that is replaced whole."""

import json
import math
import os
import pickle
import re
import signal
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from odesys.check import format_number
from odesys.folder import ReportFolderError, check_writable, replacing
from odesys.plotting import new_axes
from odesys.report import Check, Picture, Report, add_pictures, control


def half_time(value: float) -> Check:
    return Check("flow: half time", value, 27.6, 0.5, source="by hand", reason="a guess", study="logistic")


def picture(name: str = "line") -> Picture:
    axes = new_axes()
    axes.plot([0, 1], [0, 1])
    return Picture(name, axes.figure, "A <line>.", 'A "straight" line.')


def report(*checks: Check, title: str = "a study") -> Report:
    data = {
        "run": xr.Dataset({"x": ("time", [1.0, 2.0])}, coords={"time": [0.0, 1.0]}, attrs={"method": "RK45"})
    }
    return Report(title, checks or (half_time(27.5),), [picture()], data)


def fetch(folder: Path) -> dict:
    return json.loads((folder / "report.json").read_text())


# --- Check -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "within"),
    [(27.6, True), (28.1, True), (28.2, False), (math.nan, False), (math.inf, False), (-math.inf, False)],
)
def test_a_check_holds_within_its_tolerance_bound_included(measured, within):
    # 28.1 - 27.6 is one rounding error above 0.5 in floats, so the bound is tested with exact halves as well.
    assert Check("flow: x", 1.5, 1.0, 0.5).passed
    tolerance = 0.5 + 1e-12
    check = Check("flow: x", measured, 27.6, tolerance)
    assert (check.within, check.passed) == (within, within)


def test_an_exact_check_has_tolerance_zero():
    assert Check("derive: x", 0, 0, 0).passed
    assert not Check("derive: x", 1, 0, 0).passed


def test_numbers_become_floats():
    check = Check("flow: x", np.float64(1), np.array(2), True)
    assert (check.measured, check.expected, check.tolerance) == (1.0, 2.0, 1.0)
    assert all(type(v) is float for v in (check.measured, check.expected, check.tolerance))


def test_infinity_never_agrees_with_infinity():
    assert not Check("flow: x", math.inf, math.inf, 1.0).passed


@pytest.mark.parametrize("name", ["half time", "flow", "flow:", "flow:  ", "Flow: x", "flux: x", ""])
def test_the_name_tells_the_room(name):
    with pytest.raises(ValueError, match=re.escape(f"and a subject; got {name!r}")):
        Check(name, 1, 1, 1)


@pytest.mark.parametrize("tolerance", [-1e-9, math.nan, math.inf])
def test_the_tolerance_is_finite_and_not_negative(tolerance):
    with pytest.raises(ValueError, match="`tolerance` must be finite and >= 0; got"):
        Check("flow: x", 1, 1, tolerance)


@pytest.mark.parametrize("value", ["1", None, 1j, np.array([1.0, 2.0])])
def test_a_measurement_is_one_real_number(value):
    with pytest.raises(TypeError, match="`measured` must be one real number; got"):
        Check("flow: x", value, 1, 1)


@pytest.mark.parametrize(("name", "planted"), [("control: x", False), ("flow: x", True)])
def test_controls_are_named_so(name, planted):
    with pytest.raises(ValueError, match="belong together; got"):
        Check(name, 1, 1, 1, planted=planted)


# --- control -----------------------------------------------------------------------------------------------


def test_a_control_passes_when_its_fault_is_caught():
    caught = control(half_time, 30.7, name="wrong tolerance", true=half_time(27.5))
    assert caught.name == "control: wrong tolerance"
    assert (caught.measured, caught.expected, caught.tolerance) == (30.7, 27.6, 0.5)
    assert (caught.planted, caught.within, caught.passed, caught.verdict) == (True, False, True, "caught")
    assert caught.study == "logistic"


def test_a_control_fails_when_its_fault_is_not_caught():
    missed = control(half_time, 27.7, name="too small a fault", true=half_time(27.5))
    assert (missed.passed, missed.verdict) == (False, "NOT CAUGHT")


def test_nan_catches_nothing():
    # A fault that breaks the measurement itself shows nothing about the tolerance.
    assert not control(half_time, math.nan, name="broken", true=half_time(27.5)).passed
    assert control(half_time, math.inf, name="blow-up", true=half_time(27.5)).passed
    # Nor does infinity where infinity is expected: their difference is nan.
    assert not Check("control: endless", math.inf, math.inf, 0.5, planted=True).passed


def test_a_control_cannot_use_another_tolerance():
    def judge(value):
        return Check("flow: half time", value, 27.6, 0.5 if value < 29 else 1e-3)

    with pytest.raises(ValueError, match=r"tolerance 0\.5; the fault gave .* tolerance 0\.001"):
        control(judge, 30.0, name="wrong", true=judge(27.5))


def test_a_control_cannot_use_another_check():
    with pytest.raises(ValueError, match="A control must repeat the true check: 'flow: x'"):
        control(half_time, 30.0, name="wrong", true=Check("flow: x", 1, 1, 0.5))


def test_a_control_is_not_controlled():
    fault = control(half_time, 30.7, name="wrong", true=half_time(27.5))
    with pytest.raises(ValueError, match="got the control 'control: wrong'"):
        control(half_time, 30.7, name="wrong", true=fault)


# --- numbers as text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "tolerance", "text"),
    [
        (27.6310211159, 1e-6, "27.6310211"),
        (27.6310211159, 0.5, "27.6"),
        (3.21e-12, 1e-9, "3.21e-12"),
        (0.0, 1e-9, "0"),
        (1.0, 0.0, "1"),
        (0.135995071598, 1e-15, "0.1359950716"),
        (-123456.789, 1.0, "-123456.8"),
        (math.nan, 1e-9, "nan"),
        (math.inf, 1e-9, "inf"),
    ],
)
def test_digits_follow_the_tolerance(value, tolerance, text):
    assert format_number(value, tolerance) == text


# --- Report ------------------------------------------------------------------------------------------------


def test_a_report_passes_when_all_checks_do():
    good, bad = half_time(27.5), half_time(30.7)
    assert Report("x", [good]).passed
    assert not Report("x", [good, bad]).passed
    assert not Report("x", []).passed  # nothing was shown to hold


def test_summaries_count():
    good, bad = half_time(27.5), half_time(30.7)
    fault = control(half_time, 30.7, name="wrong", true=good)
    assert Report("x", [good]).summary == "1 check holds."
    assert Report("x", [good, good, fault]).summary == "2 checks hold, and 1 planted fault was caught."
    assert Report("x", [good, bad]).summary == "1 of 2 checks failed, first 'flow: half time'."
    assert Report("x", []).summary == "No checks were run."


def test_the_table_shows_every_verdict():
    fault = control(half_time, 27.7, name="too small", true=half_time(27.5))
    console = Console(width=110, file=StringIO())
    console.print(report(half_time(27.5), half_time(30.7), fault).table())
    text = console.file.getvalue()
    for word in ("check", "measured", "expected", "tolerance", "verdict", "source"):
        assert word in text
    assert re.search(r"flow: half time +27\.5 +27\.6 +0\.5 +holds +by hand", text)
    assert re.search(r"flow: half time +30\.7 +27\.6 +0\.5 +FAILS", text)
    assert re.search(r"control: too small +27\.7 +27\.6 +0\.5 +NOT CAUGHT", text)


def test_json_holds_numbers_or_strings_but_never_nan():
    document = json.loads(
        report(half_time(27.5), half_time(math.nan), half_time(-math.inf)).to_json(),
        parse_constant=lambda name: pytest.fail(f"the JSON holds {name}"),
    )
    assert document["passed"] is False
    assert [check["measured"] for check in document["checks"]] == [27.5, "nan", "-inf"]
    assert document["checks"][0] == {
        "name": "flow: half time",
        "measured": 27.5,
        "expected": 27.6,
        "tolerance": 0.5,
        "passed": True,
        "source": "by hand",
        "reason": "a guess",
        "study": "logistic",
    }


def test_a_report_holds_checks_and_pictures_only():
    with pytest.raises(TypeError, match="`checks` must hold Check objects; got str"):
        Report("x", ["flow: x"])
    with pytest.raises(TypeError, match="`figures` must hold Picture objects; got Figure"):
        Report("x", [half_time(1)], figures=[new_axes().figure])


def test_names_become_file_names():
    with pytest.raises(ValueError, match=r"becomes a file name .* got '\.\./line'"):
        picture("../line")
    with pytest.raises(ValueError, match=r"becomes a file name .* got 'a/b'"):
        Report("x", [half_time(1)], data={"a/b": xr.Dataset()})
    with pytest.raises(ValueError, match=r"\['line'\] come twice"):
        Report("x", [half_time(1)], figures=[picture(), picture()])
    with pytest.raises(ValueError, match="needs both a caption and an alternative text"):
        Picture("line", new_axes().figure, "caption", " ")


def test_checks_travel_between_processes():
    assert pickle.loads(pickle.dumps(half_time(27.5))) == half_time(27.5)


def test_notebooks_show_the_verdicts():
    html = report(half_time(30.7), title="<b>")._repr_html_()
    assert "FAILS" in html
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


# --- the folder --------------------------------------------------------------------------------------------


def test_a_saved_report_is_whole(tmp_path):
    page = report().save(tmp_path / "deep" / "report")
    assert page == tmp_path / "deep" / "report" / "report.html"
    html = page.read_text(encoding="utf-8")
    assert 'alt="A &quot;straight&quot; line."' in html
    assert "A &lt;line&gt;." in html
    assert 'src="data:image/png;base64,' in html
    # Self-contained: nothing is fetched, and the only links lead to the data beside the page.
    assert re.findall(r'(?:src|href)="(?!data:image)([^"]*)"', html) == ["data/run.nc"]
    assert "http" not in html
    assert fetch(page.parent)["passed"] is True
    assert (page.parent / "figures" / "line.png").read_bytes().startswith(b"\x89PNG")
    with xr.open_dataset(page.parent / "data" / "run.nc", engine="h5netcdf") as run:
        assert run["x"].values.tolist() == [1.0, 2.0]
        assert run.attrs["method"] == "RK45"


def test_an_earlier_report_is_replaced_whole(tmp_path):
    folder = tmp_path / "report"
    report(half_time(30.7)).save(folder)
    Report("second", [half_time(27.5)]).save(folder)
    assert fetch(folder)["passed"] is True
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json"]
    assert os.listdir(tmp_path) == ["report"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError, SystemExit])
def test_an_interruption_leaves_the_old_report_and_no_litter(tmp_path, monkeypatch, interruption):
    folder = tmp_path / "report"
    report(half_time(30.7)).save(folder)
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))

    def interrupted(self, *args, **kwargs):
        raise interruption

    monkeypatch.setattr(xr.Dataset, "to_netcdf", interrupted)
    with pytest.raises(interruption):
        report(half_time(27.5)).save(folder)
    assert fetch(folder)["passed"] is False
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before
    assert os.listdir(tmp_path) == ["report"]


def test_an_interruption_of_the_first_report_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(Picture, "png", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        report().save(tmp_path / "report")
    assert os.listdir(tmp_path) == []


def test_a_failing_swap_puts_the_old_folder_back(tmp_path, monkeypatch):
    folder = tmp_path / "report"
    report(half_time(30.7)).save(folder)
    rename = Path.rename

    def second_rename_fails(self, target):
        if Path(target) == folder and fetch(self)["passed"]:
            raise OSError("disk full")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", second_rename_fails)
    with pytest.raises(OSError, match="disk full"):
        report(half_time(27.5)).save(folder)
    assert fetch(folder)["passed"] is False
    assert os.listdir(tmp_path) == ["report"]


def test_ctrl_c_between_the_two_renames_waits_for_the_second(tmp_path, monkeypatch):
    folder = tmp_path / "report"
    report(half_time(30.7)).save(folder)
    rename = Path.rename

    def interrupted(self, target):
        signal.raise_signal(signal.SIGINT)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        report(half_time(27.5)).save(folder)
    assert fetch(folder)["passed"] is True
    assert os.listdir(tmp_path) == ["report"]


def test_a_foreign_folder_is_never_replaced(tmp_path):
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    (tmp_path / "data").mkdir()
    with pytest.raises(ReportFolderError, match=r"holds no report of ours .* Name a new or empty folder"):
        report().save(tmp_path)
    (tmp_path / "report.json").write_text('{"passed": "by someone else"}')
    with pytest.raises(ReportFolderError, match="holds no report of ours"):
        report().save(tmp_path)
    assert thesis.read_text() == "years of work"


def test_an_empty_folder_may_be_used(tmp_path):
    (tmp_path / "report").mkdir()
    report().save(tmp_path / "report")
    assert fetch(tmp_path / "report")["passed"] is True


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "report").write_text("")
    with pytest.raises(ReportFolderError, match="is a file, not a folder"):
        check_writable(tmp_path / "report")


def test_a_folder_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportFolderError, match="cannot be written: Not a directory"):
        check_writable(tmp_path / "file" / "report")


def test_an_unwritable_place_is_found_before_the_work(tmp_path, monkeypatch):
    # Permission bits do not stop an administrator, who may run these tests; a refusing system call does.
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(
        ReportFolderError, match=r"cannot be written: Permission denied\. Name another output folder"
    ):
        check_writable(tmp_path / "report")


def test_the_working_folder_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReportFolderError, match="holds the working folder"):
        check_writable(".")


def test_checking_leaves_no_trace(tmp_path):
    assert check_writable(tmp_path / "a" / "b") == (tmp_path / "a" / "b").resolve()
    assert os.listdir(tmp_path) == []


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "report").symlink_to(tmp_path / "disk")
    report().save(tmp_path / "report")
    assert (tmp_path / "report").is_symlink()
    assert fetch(tmp_path / "disk")["passed"] is True


def test_writing_waits_for_the_end_of_the_block(tmp_path):
    with replacing(tmp_path / "report") as fresh:
        (fresh / "report.json").write_text("{}")
        assert not (tmp_path / "report").exists()
    assert (tmp_path / "report" / "report.json").exists()


def test_pictures_are_added_beside_a_report(tmp_path):
    folder = tmp_path / "report"
    report().save(folder)
    html = (folder / "report.html").read_text()
    added = add_pictures(folder, [picture("fig1")], {"fig1": xr.Dataset({"y": ("t", [1.0])})})
    assert added == [folder / "figures" / "fig1.png"]
    assert sorted(path.name for path in folder.glob("*/*")) == ["fig1.nc", "fig1.png", "line.png", "run.nc"]
    assert (folder / "report.html").read_text() == html


def test_pictures_alone_make_a_folder_that_may_be_replaced(tmp_path):
    folder = tmp_path / "report"
    add_pictures(folder, [picture("fig1")], {})
    assert fetch(folder) == {"passed": False, "checks": []}
    report().save(folder)
    assert not (folder / "figures" / "fig1.png").exists()
