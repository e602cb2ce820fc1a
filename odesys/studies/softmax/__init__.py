"""Softmax regression, vector and matrix, normalized and rescaled: from the losses to a verdict by descent.

Reading order: `setting` (the problems), `derivation` (SymPy), `flow` (integrators and closed forms), `equilibria`
(fixed points and infinity), `maps` (large steps), `numerics` (gradients in float64), `training` (the judge), `search`
and `bounds`, `pictures`.

Sources: Li et al., arXiv:2304.13276; Gao, Song, Yin, arXiv:2305.00660; Gao, Song, Xie, arXiv:2307.02419.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odesys.studies import Announce, Scale, StudyResult

if TYPE_CHECKING:
    from xarray import Dataset

    from odesys.report import Picture

__all__ = ["FIGURES", "run"]


def run(scale: Scale, seed: int, announce: Announce) -> StudyResult:
    """All checks, figures and data of softmax regression; both scales are the same."""
    from odesys.studies.softmax import (
        bounds,
        derivation,
        equilibria,
        flow,
        maps,
        numerics,
        pictures,
        training,
    )

    del scale
    announce("deriving and proving")
    checks = derivation.checks()
    announce("integrating the flows")
    checks += flow.checks()
    announce("fixed points and infinity")
    checks += equilibria.checks()
    announce("gradient descent as a map")
    checks += maps.checks()
    announce("gradients of saturated softmax")
    checks += numerics.checks()
    announce("descending")
    checks += training.checks()
    announce("searching for the largest Lipschitz ratios")
    checks += bounds.checks(seed)
    announce("drawing")
    figures = [
        pictures.three_points(),
        pictures.rescaled(),
        pictures.two_minima(),
        pictures.orbits(),
        pictures.bounds_table(bounds.rows(seed)),
    ]
    data = {"softmax-orbits": maps.diagram(), "softmax-bounds": bounds.dataset(bounds.rows(seed))}
    return StudyResult(checks, figures, data)


def _still(name: str):
    """A figure that depends on neither scale nor seed."""

    def draw(scale: Scale, seed: int, announce: Announce) -> tuple[Picture, Mapping[str, Dataset]]:
        from odesys.studies.softmax import pictures

        announce("drawing")
        return getattr(pictures, name)(), {}

    return draw


def _bounds(scale: Scale, seed: int, announce: Announce) -> tuple[Picture, Mapping[str, Dataset]]:
    """The figure of the bounds, with all sizes as its data."""
    from odesys.studies.softmax import bounds, pictures

    del scale
    announce("searching for the largest Lipschitz ratios")
    rows = bounds.rows(seed)
    return pictures.bounds_table(rows), {"softmax-bounds": bounds.dataset(rows)}


FIGURES = {
    "three-points": _still("three_points"),
    "rescaled": _still("rescaled"),
    "two-minima": _still("two_minima"),
    "orbits": _still("orbits"),
    "bounds": _bounds,
}
