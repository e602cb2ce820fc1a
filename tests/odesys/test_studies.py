"""The registry of studies, and the logistic one from its loss to its verdicts."""

from types import SimpleNamespace

import pytest

from odesys import studies
from odesys.check import Check


def silent(text):
    assert text


@pytest.fixture(scope="module")
def logistic():
    return studies.run("logistic", "quick", 0, silent)


def test_a_study_is_found_by_its_file():
    assert "logistic" in studies.names()
    assert all(callable(studies.load(name).run) for name in studies.names())


def test_an_unknown_study_is_refused():
    with pytest.raises(ValueError, match=r"There is no study 'lojistic'; the studies are .*logistic"):
        studies.load("lojistic")


def test_two_studies_cannot_draw_one_figure(monkeypatch):
    monkeypatch.setattr(studies, "load", lambda name: SimpleNamespace(FIGURES={"1": None}))
    assert studies.figures(["one"]) == {"1": None}
    with pytest.raises(ValueError, match="The figure '1' of study 'two' already belongs to another study"):
        studies.figures(["one", "two"])


def test_results_add_up_unless_names_meet():
    one = studies.StudyResult([Check("flow: a", 0, 0, 0)], data={"one": None})
    two = studies.StudyResult([Check("flow: b", 0, 0, 0)], data={"two": None})
    both = studies.StudyResult() + one + two
    assert [check.name for check in both.checks] == ["flow: a", "flow: b"]
    assert list(both.data) == ["one", "two"]
    with pytest.raises(ValueError, match=r"give the names \['one'\] to their data"):
        both + one


def test_checks_bear_the_name_of_their_study(monkeypatch):
    result = studies.StudyResult([Check("flow: a", 0, 0, 0), Check("flow: b", 0, 0, 0, study="other")])
    monkeypatch.setattr(studies, "load", lambda name: SimpleNamespace(run=lambda *given: result))
    assert [check.study for check in studies.run("one", "quick", 0, silent).checks] == ["one", "other"]


def test_the_logistic_study_holds_in_every_room(logistic):
    failed = [check.name for check in logistic.checks if not check.passed]
    assert failed == []
    kinds = {check.name.partition(":")[0] for check in logistic.checks}
    assert kinds == {"derive", "closed-form", "flow", "descent", "control"}
    assert all(check.reason for check in logistic.checks)


def test_its_faults_are_caught_by_a_wide_margin(logistic):
    # 27.6 (1 - 1/1.01) = 0.274, and a tenth of ln 9 at the slope 1/4, against tolerances of 1e-8 and 0.02.
    faults = {check.name: abs(check.measured - check.expected) for check in logistic.checks if check.planted}
    assert faults["control: rate 1.01 instead of 1"] == pytest.approx(0.27357, abs=1e-4)
    assert faults["control: clock 10 % too fast"] > 0.05
    assert faults["control: absolute tolerance 1e-6 for a start of 1e-12"] > 0.1


def test_it_would_fail_if_the_half_time_were_another(monkeypatch, logistic):
    from odesys.studies import logistic as module

    monkeypatch.setattr(module, "HALF_TIME", 27.6310212)
    assert not module.half_time("flow: half time", logistic.data["logistic-DOP853"]).passed


def test_it_brings_pictures_and_their_data(logistic):
    assert [picture.name for picture in logistic.figures] == ["logistic", "logistic-order"]
    assert {"logistic-closed-form", "logistic-descent"} <= set(logistic.data)
    for dataset in logistic.data.values():
        assert dataset.sizes
