"""Options that are written as text: boxes, starts, rows of numbers."""

from __future__ import annotations

import math

from odesys.commands.faults import UsageFault

__all__ = ["box_of", "numbers_of", "start_of"]


def box_of(text: str | None) -> dict[str, tuple[float, float]] | None:
    """x=-2:2,y=0:1 as a mapping."""
    if text is None:
        return None
    sides = {}
    try:
        for part in text.split(","):
            name, ends = part.split("=")
            low, high = ends.split(":")
            sides[name.strip()] = (float(low), float(high))
    except ValueError:
        raise UsageFault(f"--box must look like x=-2:2,y=0:1; got {text!r}.") from None
    return sides


def start_of(text: str | None) -> dict[str, float] | None:
    """x_1=.5,x_2=.2 as a mapping."""
    if text is None:
        return None
    try:
        start = {
            name.strip(): float(number) for name, number in (part.split("=") for part in text.split(","))
        }
    except ValueError:
        raise UsageFault(f"--start must look like x_1=.5,x_2=.2; got {text!r}.") from None
    if not all(map(math.isfinite, start.values())):
        raise UsageFault(f"--start must hold finite numbers; got {text!r}.")
    return start


def numbers_of(option: str, text: str | None) -> tuple[float, ...] | None:
    """.4,.3,.2 as numbers; a fault names the option."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageFault(
            f"{option} must be numbers with commas between them, like .4,.3,.2; got {text!r}."
        ) from None
