"""The study that `odesys check separate` runs, as a whole: every check holds, every planted fault is caught."""

from functools import cache

import pytest

from odesys import studies


@cache
def result(seed):
    return studies.run("separate", "quick", seed, lambda _: None)


@pytest.fixture
def quick():
    return result(10)


def test_every_check_passes(quick):
    assert [check.name for check in quick.checks if not check.passed] == []


@pytest.mark.parametrize(
    "fault",
    [
        "the paper's (C3) as necessary",
        "two heads on one eigenvector as independent",
        "index of the structured weights for others of the same M",
        "scalar ODE from max |v_i(0)|, not shifted",
        "t = tau/(lambda_1^2 max |v_i(0)|)",
        "comparing rows of K where only K^T Q has a meaning",
        "clock without the authors' factor N^{2/3}",
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
        "separate-3a",
        "separate-3b",
        "separate-3c",
        "separate-lattice",
        "separate-two-heads",
        "separate-merged-plane",
        "separate-small-starts",
    ]
    assert set(quick.data) == {"separate-training"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_other_seeds(seed):
    assert [check.name for check in result(seed).checks if not check.passed] == []


@pytest.mark.slow
def test_paper_size():
    full = studies.run("separate", "full", 10, lambda _: None)
    assert [check.name for check in full.checks if not check.passed] == []
