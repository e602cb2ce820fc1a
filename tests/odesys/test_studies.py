"""The registry of studies: found by their files, their results added up, their checks named after them."""

from types import SimpleNamespace

import pytest

from odesys import studies
from odesys.check import Check


def silent(text):
    assert text


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
