"""Linear attention with separate key and query, from its definition to a staircase predicted and trained.

Reading order: `setting` (the numbers), `derivation` (SymPy), `flow` (what is exact), `escape` and `cascade` (when the
loss drops), `staircase` (random starts), `equilibria` and `visits` (fixed points), `training` (the judge), `pictures`.

Source: Zhang, Singh, Latham, Saxe, arXiv:2501.16265v2, sections 4 and 5, Figs. 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odesys.studies import Announce, Scale, StudyResult

if TYPE_CHECKING:
    from xarray import Dataset

    from odesys.report import Picture
    from odesys.studies.separate.training import Training

__all__ = ["FIGURES", "run"]

#: Seeds of Fig. 3a, and ranks of Fig. 4.
SEEDS, RANKS = tuple(range(6)), (1, 2, 4, 8)


def run(scale: Scale, seed: int, announce: Announce) -> StudyResult:
    """All checks, figures and data of separate attention; "full" adds six seeds and the ranks of Fig. 4."""
    from odesys.studies.separate import (
        derivation,
        equilibria,
        flow,
        pictures,
        ranks,
        staircase,
        training,
        visits,
    )
    from symbolic.linear_attention import separate

    announce("deriving and proving at D = 2, H = 2")
    checks = derivation.checks(separate.model(dim=2, heads=2))
    announce("integrating the full flow against its reductions and closed form")
    checks += flow.checks(seed).checks
    announce("random starts against the escape-time integral and the cascade")
    found = staircase.checks(scale)
    checks += found.checks
    announce("fixed points")
    checks += equilibria.checks(scale) + visits.checks()
    announce("training the real network")
    trained = training.Training(seed)
    checks += training.checks(trained)
    figures = [
        pictures.figure_3a([trained]),
        pictures.figure_3b(trained),
        pictures.figure_3c(trained),
        pictures.lattice(),
        pictures.two_heads(),
        pictures.merged_plane(),
        pictures.small_starts(found.errors),
    ]
    data = {"separate-training": trained.run}
    if scale == "full":
        announce("training six seeds")
        seeds = [training.Training(other) for other in SEEDS]
        checks += training.seed_checks(seeds)
        announce("training four ranks at D = 8")
        ranked = _ranked(seed)
        checks += ranks.checks(ranked)
        figures[0] = pictures.figure_3a([trained, *seeds])
        figures.append(pictures.figure_4(ranked))
        data |= {f"separate-rank-{rank}": training.run for rank, training in ranked.items()}
    return StudyResult(checks, figures, data)


def _ranked(seed: int) -> dict[int, Training]:
    from odesys.studies.separate.training import Training

    return {rank: Training(seed, dim=8, heads=9, rank=rank, init=5e-3, steps=20_001) for rank in RANKS}


def _seeds(scale: Scale, seed: int, announce: Announce) -> tuple[Picture, Mapping[str, Dataset]]:
    from odesys.studies.separate import pictures, training

    announce("training")
    seeds = [training.Training(other) for other in (SEEDS if scale == "full" else (seed,))]
    return pictures.figure_3a(seeds), {f"separate-3a-seed-{each.seed}": each.run for each in seeds}


def _values(scale: Scale, seed: int, announce: Announce) -> tuple[Picture, Mapping[str, Dataset]]:
    from odesys.studies.separate import pictures, training

    announce("training")
    trained = training.Training(seed)
    return pictures.figure_3b(trained), {"separate-3b": trained.run}


def _plateaus(scale: Scale, seed: int, announce: Announce) -> tuple[Picture, Mapping[str, Dataset]]:
    from odesys.studies.separate import pictures, training

    announce("training")
    trained = training.Training(seed)
    return pictures.figure_3c(trained), {"separate-3c": trained.run}


def _ranks(scale: Scale, seed: int, announce: Announce) -> tuple[Picture, Mapping[str, Dataset]]:
    from odesys.studies.separate import pictures

    announce("training four ranks at D = 8")
    ranked = _ranked(seed)
    return pictures.figure_4(ranked), {f"separate-4-rank-{rank}": each.run for rank, each in ranked.items()}


def _still(name: str):
    """A figure that needs no training."""

    def draw(scale: Scale, seed: int, announce: Announce) -> tuple[Picture, Mapping[str, Dataset]]:
        from odesys.studies.separate import pictures

        announce("drawing")
        return getattr(pictures, name)(), {}

    return draw


#: Figures of the paper by their own names, and ours by theirs.
FIGURES = {
    "3a": _seeds,
    "3b": _values,
    "3c": _plateaus,
    "4": _ranks,
    "lattice": _still("lattice"),
    "two-heads": _still("two_heads"),
    "merged-plane": _still("merged_plane"),
}
