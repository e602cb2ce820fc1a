"""A Check is one measured number held to one expected number; a control is a check that must fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

__all__ = ["COLUMNS", "Check", "control", "format_number", "row"]

Input = TypeVar("Input")

#: The rooms of the staircase in which a check can live; a control plants a fault in any of them.
KINDS = ("derive:", "flow:", "descent:", "fixed-points:", "closed-form:", "control:")


@dataclass(frozen=True)
class Check:
    """One claim and its receipt:  |measured - expected| <= tolerance.

    Args:
        name: what is checked; begins with derive:, flow:, descent:, fixed-points:, closed-form: or control:.
        measured, expected: real numbers in the same units; nan and infinity are allowed, and never agree.
        tolerance: the largest departure that counts as agreement, in the same units, finite and >= 0.
        source: where the expected value comes from (paper and equation).
        reason: why that tolerance.
        study: the study that made the check.
        planted: True for a negative control, whose input was made wrong on purpose (see `control`).
    Raises:
        ValueError: an unknown kind of name, a tolerance that is negative or not finite, or only one of
            `planted` and the name of a control.
        TypeError: a value that is not one real number.
    """

    name: str
    measured: float
    expected: float
    tolerance: float
    source: str = ""
    reason: str = ""
    study: str = ""
    planted: bool = False

    def __post_init__(self):
        kind, _, subject = self.name.partition(":")
        if f"{kind}:" not in KINDS or not subject.strip():
            raise ValueError(f"A check's name is one of {', '.join(KINDS)} and a subject; got {self.name!r}.")
        if self.planted != (kind == "control"):
            raise ValueError(
                f"`planted` and a name that starts with control: belong together; got {self.name!r} with "
                f"planted={self.planted}. Make negative controls with odesys.report.control."
            )
        for name in ("measured", "expected", "tolerance"):
            object.__setattr__(self, name, _real(getattr(self, name), name))
        if not (math.isfinite(self.tolerance) and self.tolerance >= 0):
            raise ValueError(f"`tolerance` must be finite and >= 0; got {self.tolerance!r} in {self.name!r}.")

    @property
    def within(self) -> bool:
        """Does the measurement agree with what was expected? Never when one of the two is nan or infinite."""
        return math.isfinite(self.expected) and abs(self.measured - self.expected) <= self.tolerance

    @property
    def passed(self) -> bool:
        """An ordinary check holds when it is `within`; a control passes when its fault was caught, so is not.

        A difference of nan measures nothing: it neither holds nor catches.
        """
        return self.within != self.planted and not math.isnan(self.measured - self.expected)

    @property
    def verdict(self) -> str:
        """In a word: holds or FAILS; for a control, caught or NOT CAUGHT."""
        if self.planted:
            return "caught" if self.passed else "NOT CAUGHT"
        return "holds" if self.passed else "FAILS"


def control(check_function: Callable[[Input], Check], fault: Input, *, name: str, true: Check) -> Check:
    """A negative control: the same check function, the same tolerance, on an input made wrong on purpose.

    Args:
        check_function: the function that made the true check; it is called again, with the fault.
        fault: the faulty input.
        name: what was made wrong, for example "wrong rate coefficient".
        true: the check that `check_function` made of the right input.
    Returns:
        A check that passes when the fault is caught.
    Raises:
        ValueError: the two checks differ in name or tolerance, so that the one says nothing about the other.
    """
    if true.planted:
        raise ValueError(f"`true` must be the check of the right input; got the control {true.name!r}.")
    found = check_function(fault)
    if (found.name, found.tolerance) != (true.name, true.tolerance):
        raise ValueError(
            f"A control must repeat the true check: {true.name!r} with tolerance {true.tolerance!r}; "
            f"the fault gave {found.name!r} with tolerance {found.tolerance!r}. "
            "Pass the function that made the true check, and let its tolerance not depend on its input."
        )
    return replace(
        found,
        name=f"control: {name}",
        planted=True,
        reason=f"must break '{true.name}', whose tolerance it shares",
        study=true.study,
    )


#: The headings of a check's row, wherever it is shown.
COLUMNS = ("check", "measured", "expected", "tolerance", "verdict", "source")


def row(check: Check) -> tuple[str, ...]:
    """A check as text, in the order of COLUMNS."""
    return (
        check.name,
        format_number(check.measured, check.tolerance),
        format_number(check.expected, check.tolerance),
        f"{check.tolerance:.3g}",
        check.verdict,
        check.source,
    )


def format_number(value: float, tolerance: float = 0.0) -> str:
    """A number with as many digits as the tolerance makes meaningful, plus one; at least 3 and at most 10."""
    if not math.isfinite(value):
        return str(value)
    if value == 0 or tolerance == 0:
        return f"{value:.12g}"
    digits = math.floor(math.log10(abs(value) / tolerance)) + 2 if tolerance < abs(value) else 0
    return f"{value:.{min(max(digits, 3), 10)}g}"


def _real(value: object, name: str) -> float:
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"`{name}` must be one real number; got {value!r} of type {type(value).__name__}."
        ) from None
