"""What every study must show, whatever it is about; tests/chain/test_*_study.py say what is each study's own."""

from functools import cache

import pytest

from odesys import studies

__all__ = ["StudySuite", "failed", "result"]


@cache
def result(name, scale, seed):
    """A study's result, run once in a process."""
    return studies.run(name, scale, seed, lambda text: None)


def failed(result):
    """The names of the checks that do not pass: claims that do not hold, and planted faults that were missed."""
    return [check.name for check in result.checks if not check.passed]


class StudySuite:
    """The tests of one study; a subclass says which, and what it must contain.

    Attributes:
        name, seed: the study, and the seed of the quick run that all tests share.
        rooms: the kinds of its checks, controls aside.
        faults: the faults that it plants, all of them.
        figures, data: the names of its pictures, in order, and of its datasets.
        slow_runs: each (scale, seed) for which it must hold too, with the slow tests.
    """

    name: str
    seed = 10
    rooms = frozenset({"derive", "flow", "closed-form", "fixed-points", "descent"})
    faults: tuple[str, ...]
    figures: tuple[str, ...]
    data: frozenset[str]
    slow_runs: tuple[tuple[str, int], ...]

    def pytest_generate_tests(self, metafunc):
        if "fault" in metafunc.fixturenames:
            metafunc.parametrize("fault", self.faults)
        if "scale" in metafunc.fixturenames:
            metafunc.parametrize(("scale", "seed"), self.slow_runs)

    @pytest.fixture
    def quick(self):
        return result(self.name, "quick", self.seed)

    def test_every_check_passes(self, quick):
        assert failed(quick) == []

    def test_every_room_is_checked(self, quick):
        assert {check.name.partition(":")[0] for check in quick.checks} == self.rooms | {"control"}

    def test_every_check_says_where_its_number_comes_from_and_why_its_tolerance(self, quick):
        assert [check.name for check in quick.checks if not (check.source and check.reason)] == []

    def test_the_planted_fault_is_there_and_caught(self, quick, fault):
        (control,) = [check for check in quick.checks if check.name == f"control: {fault}"]
        assert control.planted
        assert control.passed

    def test_no_other_fault_is_planted(self, quick):
        planted = [check.name.removeprefix("control: ") for check in quick.checks if check.planted]
        assert sorted(planted) == sorted(self.faults)

    def test_pictures_and_data(self, quick):
        assert [picture.name for picture in quick.figures] == list(self.figures)
        assert set(quick.data) == self.data

    @pytest.mark.slow
    def test_other_seeds_and_the_paper_size(self, scale, seed):
        assert failed(result(self.name, scale, seed)) == []
