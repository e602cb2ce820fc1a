"""The study that `odesys check merged` runs, as a whole: every check holds, every planted fault is caught."""

from functools import cache

import pytest

from odesys import studies


@cache
def result(seed):
    return studies.run("merged", "quick", seed, lambda _: None)


@pytest.fixture
def quick():
    return result(0)


def test_every_check_passes(quick):
    assert [check.name for check in quick.checks if not check.passed] == []


@pytest.mark.parametrize(
    "fault",
    [
        "coefficient a_d without the trace",
        "w_init = |w2(0)| instead of w_eff",
        "ansatz with equal modes under unequal eigenvalues",
        "clock without the factor 2 of a squared loss",
        "clock without the authors' factor N",
        "clock of the flow without the 1/2 before dL/dW",
        "Q off by 0.1 %",
        "v = 0 alone, tr(Lambda^2 U_i) not 0",
    ],
)
def test_the_planted_faults_are_all_there_and_caught(quick, fault):
    (control,) = [check for check in quick.checks if check.name == f"control: {fault}"]
    assert control.planted
    assert control.passed


def test_every_room_is_checked(quick):
    kinds = {check.name.split(":")[0] for check in quick.checks}
    assert kinds == {"derive", "flow", "closed-form", "fixed-points", "descent", "control"}


def test_every_check_says_where_its_number_comes_from_and_why_its_tolerance(quick):
    assert [check.name for check in quick.checks if not (check.source and check.reason)] == []


def test_pictures_and_data(quick):
    assert [picture.name for picture in quick.figures] == [
        "merged-1",
        "merged-white-course",
        "merged-small-starts",
        "merged-phase-line",
    ]
    assert set(quick.data) == {"merged-training", "merged-theory"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_seeds(seed):
    assert [check.name for check in result(seed).checks if not check.passed] == []


@pytest.mark.slow
def test_paper_size():
    full = studies.run("merged", "full", 0, lambda _: None)
    assert [check.name for check in full.checks if not check.passed] == []
