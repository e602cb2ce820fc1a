"""What the command line refuses, and how it says that a run broke off."""

from __future__ import annotations

__all__ = ["BrokenRun", "UsageFault", "refuse"]


class UsageFault(ValueError):
    """What the user asked for cannot be done as asked; the message says why and what to do."""


class BrokenRun(RuntimeError):
    """A run that did not reach its end; the message says where and why."""


def refuse(model: str, **given: object) -> None:
    """Raise a UsageFault if one of these options, by name, has a value: it means nothing for the model."""
    for name, value in given.items():
        if value is not None:
            raise UsageFault(f"--{name.replace('_', '-')} means nothing for {model}; leave it out.")
