"""Linear attention with merged key and query, from its definition to a verdict by training.

Reading order: `setting` (the numbers), `derivation` (SymPy), `flow` (integrators and closed forms),
`equilibria` (fixed points), `training` (the judge), `pictures`.

Source: Zhang, Singh, Latham, Saxe, arXiv:2501.16265v2, section 3 and Fig. 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odesys.studies import Announce, Scale, StudyResult

if TYPE_CHECKING:
    from xarray import Dataset

    from odesys.report import Picture

__all__ = ["FIGURES", "run"]

#: Sequences of the training run and of the moment check, by scale.
SEQUENCES = {"quick": 5000, "full": 80000}


def run(scale: Scale, seed: int, announce: Announce) -> StudyResult:
    """All checks, figures and data of merged attention."""
    from odesys.studies.merged import derivation, equilibria, flow, pictures, population, training
    from odesys.studies.merged.setting import DIM, HEADS
    from symbolic.linear_attention import merged

    announce("deriving and proving at D = 2, H = 2")
    small = flow.Flow(merged.model(dim=2, heads=2), merged.model(dim=2, heads=1), seed)
    checks = derivation.checks(small.model)
    announce(f"deriving the flow of all weights at D = {DIM}, H = {HEADS}")
    full = flow.Flow(merged.model(dim=DIM, heads=HEADS), merged.model(dim=DIM, heads=1), seed)
    checks += flow.half_times(full.scalar)
    announce("integrating the full flow against its reductions and closed forms")
    found = flow.checks(full)
    checks += found.checks
    announce("fixed points")
    checks += equilibria.checks(full, small)
    announce("descending the derived population loss")
    checks += population.checks(small)
    announce("training the real network")
    trained = training.Training(SEQUENCES[scale], seed)
    theory = flow.from_run(full, trained)
    checks += training.checks(trained, flow.optimum(full), theory)
    announce("sampling moments")
    checks += [training.moment_scores(SEQUENCES[scale], seed, flow.features(full))]
    figures = [
        pictures.figure_one(trained, theory),
        pictures.white_course(*found.white),
        pictures.small_starts(found.errors),
        equilibria.picture(full),
    ]
    data = {"merged-training": trained.run, "merged-theory": theory}
    return StudyResult(checks, figures, data)


def _figure_one(scale: Scale, seed: int, announce: Announce) -> tuple[Picture, Mapping[str, Dataset]]:
    """Fig. 1 of the paper at its own seed 10 unless another is asked for."""
    from odesys.studies.merged import flow, pictures, training
    from odesys.studies.merged.setting import DIM
    from symbolic.linear_attention import merged

    announce("training the real network")
    trained = training.Training(SEQUENCES[scale], seed)
    announce("deriving and integrating the reduced flow")
    scalar = merged.model(dim=DIM, heads=1)
    theory = flow.from_run(flow.Flow(scalar, scalar, seed), trained)
    return pictures.figure_one(trained, theory), {"merged-1-training": trained.run, "merged-1-theory": theory}


#: Figures of the paper by their own names.
FIGURES = {"1": _figure_one}
