"""What the command line refuses, and how it says that a run broke off."""

from __future__ import annotations

__all__ = ["BrokenRun", "UsageFault"]


class UsageFault(ValueError):
    """What the user asked for cannot be done as asked; the message says why and what to do."""


class BrokenRun(RuntimeError):
    """A run that did not reach its end; the message says where and why."""
