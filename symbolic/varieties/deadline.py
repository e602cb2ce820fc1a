"""Time is a resource of every exact method: a clock to look at between steps, and a process that can be ended.

Short steps run here, with a look at the clock between them. What might take long inside one library call runs
in a process of its own, which is ended when the time is over; so nothing hangs.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from copy import copy
from typing import Any

__all__ = ["BudgetExceeded", "Deadline", "TooLargeError", "elsewhere"]

_PROGRAM = "from symbolic.varieties.deadline import _serve; _serve()"


class BudgetExceeded(RuntimeError):
    """The time given to an exact method is over before the answer is complete."""


class TooLargeError(Exception):
    """A step that might take long was met where only short ones are allowed."""


class Deadline:
    """A moment until which an answer is wanted; `short` allows only steps that are known to be short.

    Args:
        seconds: the time from now.
        short: whether a step that might take long raises `TooLargeError` instead of starting.
    """

    def __init__(self, seconds: float, short: bool = False):
        self.seconds = seconds
        self.short = short
        self._end = time.monotonic() + seconds

    def brief(self) -> Deadline:
        """The same moment, with only short steps allowed."""
        other = copy(self)
        other.short = True
        return other

    @property
    def left(self) -> float:
        """Seconds left."""
        return self._end - time.monotonic()

    def check(self) -> None:
        """Raise `BudgetExceeded` if the time is over."""
        if self.left <= 0:
            raise BudgetExceeded(
                f"The exact method needs more than the {self.seconds:.3g} s that it was given. "
                "Raise `budget`, or give a `box` to search."
            )

    def allow(self, cost: float, most: float) -> None:
        """Raise `TooLargeError` where only short steps are allowed and this one costs more than `most`."""
        self.check()
        if self.short and cost > most:
            raise TooLargeError


def elsewhere(module: str, function: str, arguments: tuple, deadline: Deadline) -> Any:
    """The value of a module's function, computed in another process until the deadline.

    Raises:
        BudgetExceeded: the time is over; the process is ended.
        Exception: whatever the function raised.
    """
    deadline.check()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            input=pickle.dumps((module, function, arguments)),
            capture_output=True,
            timeout=max(deadline.left, 0.01),
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BudgetExceeded(
            f"The exact method needs more than the {deadline.seconds:.3g} s that it was given. "
            "Raise `budget`, or give a `box` to search."
        ) from None
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise BudgetExceeded(f"The process of the exact method ended early: {reason[0]}.")
    succeeded, value = pickle.loads(done.stdout)
    if not succeeded:
        raise value
    return value


def _serve() -> None:
    """Answer one call that arrives on standard input."""
    from importlib import import_module

    module, function, arguments = pickle.loads(sys.stdin.buffer.read())
    try:
        answer = (True, getattr(import_module(module), function)(*arguments))
    except Exception as error:
        answer = (False, error)
    sys.stdout.buffer.write(pickle.dumps(answer))
