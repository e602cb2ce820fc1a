"""The study that `odesys check logistic` runs, as a whole: every check holds, every planted fault is caught."""

import pytest
from study_suite import StudySuite

from odesys.studies import logistic


class TestLogistic(StudySuite):
    name = "logistic"
    # Growth is along a line whose two ends need no finder.
    rooms = frozenset({"derive", "flow", "closed-form", "descent"})
    faults = (
        "rate 1.01 instead of 1",
        "absolute tolerance 1e-6 for a start of 1e-12",
        "clock 10 % too fast",
    )
    figures = ("logistic", "logistic-order")
    data = frozenset({"logistic-closed-form", "logistic-DOP853", "logistic-Tsit5", "logistic-descent"})
    slow_runs = (("full", 10),)

    def test_the_faults_are_caught_by_a_wide_margin(self, quick):
        # 27.6 (1 - 1/1.01) = 0.274, and a tenth of ln 9 at the slope 1/4, against tolerances of 1e-8 and 0.02.
        faults = {check.name: abs(check.measured - check.expected) for check in quick.checks if check.planted}
        assert faults["control: rate 1.01 instead of 1"] == pytest.approx(0.27357, abs=1e-4)
        assert faults["control: clock 10 % too fast"] > 0.05
        assert faults["control: absolute tolerance 1e-6 for a start of 1e-12"] > 0.1

    def test_it_would_fail_if_the_half_time_were_another(self, quick, monkeypatch):
        # The last digit of ln(1e12 - 1) = 27.6310211159 that a tolerance of 1e-8 resolves.
        monkeypatch.setattr(logistic, "HALF_TIME", 27.6310212)
        assert not logistic.half_time("flow: half time", quick.data["logistic-DOP853"]).passed
