"""EXPLAIN: where a flow stops and what it does there.

Reading order: `points` (what is found), `finding`, `stability`, `connections` and `itineraries` (how flows leave
and visit fixed points), `maps` (cycles, flips, orbit diagrams, Lyapunov exponents), `pictures` (with all that they
show as data); `linear_attention` (a model's 2^D points),
`softmax_regression` (finite points, and what happens at infinity).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fixedpoints import linear_attention as linear_attention
    from fixedpoints import softmax_regression as softmax_regression
    from fixedpoints.connections import Escape, unstable_manifold
    from fixedpoints.finding import find
    from fixedpoints.itineraries import Itinerary, Visit, itinerary
    from fixedpoints.maps.cycles import cycles
    from fixedpoints.maps.diagrams import orbit_diagram
    from fixedpoints.maps.exponents import LyapunovExponents, lyapunov
    from fixedpoints.maps.flips import critical_step, flip_formula
    from fixedpoints.maps.leaves import on_leaf
    from fixedpoints.maps.orbits import Cycle, Cycles, Flip, NoFlipError
    from fixedpoints.pictures.cobwebs import Cobweb, cobweb
    from fixedpoints.pictures.orbit_diagrams import orbit_diagram_plot
    from fixedpoints.pictures.phase_lines import PhaseLine, phase_line
    from fixedpoints.pictures.portraits import Portrait, portrait
    from fixedpoints.points import Certificate, Component, FixedPoint, FixedPoints, NotAFixedPointError
    from fixedpoints.stability import classify

__all__ = [
    # what is found
    "find",
    "FixedPoint",
    "Component",
    "FixedPoints",
    "Certificate",
    "NotAFixedPointError",
    # what happens there
    "classify",
    "unstable_manifold",
    "Escape",
    "itinerary",
    "Itinerary",
    "Visit",
    # maps
    "cycles",
    "Cycle",
    "Cycles",
    "critical_step",
    "flip_formula",
    "Flip",
    "NoFlipError",
    "on_leaf",
    "orbit_diagram",
    "lyapunov",
    "LyapunovExponents",
    # pictures
    "portrait",
    "Portrait",
    "phase_line",
    "PhaseLine",
    "cobweb",
    "Cobweb",
    "orbit_diagram_plot",
    # models
    "linear_attention",
    "softmax_regression",
]

_HOMES = {
    "Certificate": "fixedpoints.points",
    "Cobweb": "fixedpoints.pictures.cobwebs",
    "Component": "fixedpoints.points",
    "Cycle": "fixedpoints.maps.orbits",
    "Cycles": "fixedpoints.maps.orbits",
    "Escape": "fixedpoints.connections",
    "FixedPoint": "fixedpoints.points",
    "FixedPoints": "fixedpoints.points",
    "Flip": "fixedpoints.maps.orbits",
    "Itinerary": "fixedpoints.itineraries",
    "LyapunovExponents": "fixedpoints.maps.exponents",
    "NoFlipError": "fixedpoints.maps.orbits",
    "NotAFixedPointError": "fixedpoints.points",
    "PhaseLine": "fixedpoints.pictures.phase_lines",
    "Portrait": "fixedpoints.pictures.portraits",
    "Visit": "fixedpoints.itineraries",
    "classify": "fixedpoints.stability",
    "cobweb": "fixedpoints.pictures.cobwebs",
    "critical_step": "fixedpoints.maps.flips",
    "cycles": "fixedpoints.maps.cycles",
    "find": "fixedpoints.finding",
    "flip_formula": "fixedpoints.maps.flips",
    "itinerary": "fixedpoints.itineraries",
    "lyapunov": "fixedpoints.maps.exponents",
    "on_leaf": "fixedpoints.maps.leaves",
    "orbit_diagram": "fixedpoints.maps.diagrams",
    "orbit_diagram_plot": "fixedpoints.pictures.orbit_diagrams",
    "phase_line": "fixedpoints.pictures.phase_lines",
    "portrait": "fixedpoints.pictures.portraits",
    "unstable_manifold": "fixedpoints.connections",
}
_SUBMODULES = ("linear_attention", "softmax_regression")


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs nothing."""
    if name in _SUBMODULES:
        return import_module(f"fixedpoints.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fixedpoints' has no attribute {name!r}; it has {', '.join(__all__)}.")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
