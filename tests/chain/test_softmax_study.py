"""The study that `odesys check softmax` runs, as a whole: every check holds, every planted fault is caught."""

from functools import cache

import pytest

from odesys import studies


@cache
def result(seed):
    return studies.run("softmax", "quick", seed, lambda _: None)


@pytest.fixture
def quick():
    return result(10)


def test_every_check_passes(quick):
    assert [check.name for check in quick.checks if not check.passed] == []


@pytest.mark.parametrize(
    "fault",
    [
        "gradient without the term <f, c> f",
        "the column-major factor A2 kron A1 on row-major weights",
        "the normalized loss taken for the rescaled one",
        "a minimum taken for a plateau",
        "eta_c of a loss without the 1/2",
        "another symmetry-breaking step",
        "autodiff of a library softmax, not centred",
        "unshifted softmax, wrong already at x = 400",
        "column-major blocks",
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
        "softmax-three-points",
        "softmax-rescaled",
        "softmax-two-minima",
        "softmax-orbits",
        "softmax-bounds",
    ]
    assert set(quick.data) == {"softmax-orbits"}


@pytest.mark.slow
def test_another_seed():
    assert [check.name for check in result(0).checks if not check.passed] == []
