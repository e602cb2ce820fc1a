"""What the command line refuses."""

from __future__ import annotations

__all__ = ["UsageFault"]


class UsageFault(ValueError):
    """What the user asked for cannot be done as asked; the message says why and what to do."""
