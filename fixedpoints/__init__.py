"""EXPLAIN: where a flow stops and what it does there.

Reading order: `points` (what is found), `pictures` (with all that they show as data).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fixedpoints.pictures.phase_lines import PhaseLine, phase_line
    from fixedpoints.points import Certificate, Component, FixedPoint, FixedPoints, NotAFixedPointError
    from fixedpoints.stability import classify

__all__ = [
    # what is found
    "FixedPoint",
    "Component",
    "FixedPoints",
    "Certificate",
    "NotAFixedPointError",
    # what happens there
    "classify",
    # pictures
    "phase_line",
    "PhaseLine",
]

_HOMES = {
    "Certificate": "fixedpoints.points",
    "Component": "fixedpoints.points",
    "FixedPoint": "fixedpoints.points",
    "FixedPoints": "fixedpoints.points",
    "NotAFixedPointError": "fixedpoints.points",
    "PhaseLine": "fixedpoints.pictures.phase_lines",
    "classify": "fixedpoints.stability",
    "phase_line": "fixedpoints.pictures.phase_lines",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fixedpoints' has no attribute {name!r}; it has {', '.join(__all__)}.")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
