"""Time is kept: between steps by the clock, inside one step by ending its process."""

import time

import pytest

from symbolic.varieties import deadline
from symbolic.varieties.deadline import BudgetExceeded, Deadline, TooLargeError, elsewhere


def test_the_clock_is_looked_at():
    Deadline(60).check()
    with pytest.raises(BudgetExceeded, match=r"more than the 0 s that it was given. Raise `budget`"):
        Deadline(0).check()


def test_long_steps_are_refused_where_only_short_ones_are_allowed():
    Deadline(60).allow(1e9, 10)
    brief = Deadline(60).brief()
    brief.allow(10, 10)
    with pytest.raises(TooLargeError):
        brief.allow(11, 10)


def test_a_value_and_an_error_come_back_from_another_process():
    assert elsewhere("math", "gcd", (12, 18), Deadline(60)) == 6
    with pytest.raises(ValueError, match=r"expected a nonnegative input|math domain error"):
        elsewhere("math", "sqrt", (-1,), Deadline(60))


def test_a_process_is_ended_in_time():
    start = time.monotonic()
    with pytest.raises(BudgetExceeded, match="Raise `budget`"):
        elsewhere("time", "sleep", (60,), Deadline(0.5))
    assert time.monotonic() - start < 5


def test_a_process_that_ends_early_says_why(monkeypatch):
    monkeypatch.setattr(deadline, "_PROGRAM", "raise SystemExit('no memory left')")
    with pytest.raises(BudgetExceeded, match="ended early: no memory left"):
        elsewhere("math", "gcd", (12, 18), Deadline(60))
