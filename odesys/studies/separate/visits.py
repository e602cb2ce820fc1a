"""Saddle to saddle in the modes: the itinerary of an aligned start over the lattice of fixed points."""

from __future__ import annotations

from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from fixedpoints import find, itinerary
from odesys.check import Check
from odesys.studies.separate.setting import DIM, EIGENVALUES, PAPER, numbers
from odesys.system import ODESystem
from symbolic.linear_attention import separate

if TYPE_CHECKING:
    from fixedpoints import FixedPoints, Itinerary

#: Equal starts of all modes, which are then learned in the order of their eigenvalues, and an end after the last.
START, END = 0.02, 6000.0

__all__ = ["balanced", "checks", "learned", "way"]


def balanced(modes: int) -> ODESystem:
    """The uncoupled equations of v_1 ... on the first modes, one a head, at the paper's numbers."""
    field = separate.model(dim=DIM, heads=modes).reductions["balanced"].field
    return ODESystem(field, {p.name: numbers()[p.name] for p in field.parameters})


@lru_cache(maxsize=2)
def way() -> tuple[Itinerary, FixedPoints]:
    """Which of the 2^D points the aligned start of the study comes near, in order."""
    system = balanced(DIM)
    found = find(system)
    start = {f"v_{d}": START for d in range(1, DIM + 1)}
    return itinerary(system, start, np.linspace(0.0, END, 2401), found, radius=0.2), found


def learned(location: dict[str, float]) -> tuple[int, ...]:
    """The modes (from 1) that have reached their end at a fixed point of `balanced`."""
    return tuple(d for d, v in enumerate(location.values(), 1) if v > 0.5)


def checks() -> list[Check]:
    """The points of the lattice by the general finder, and those that are visited."""
    visited, found = way()
    if found.certificate.kind != "complete":
        raise AssertionError(str(found.certificate))
    sets = [learned(visit.place.location) for visit in visited.visits]
    nested = [tuple(range(1, m + 1)) for m in range(DIM + 1)]
    # The visit of a saddle ends, however slow it was; the last point alone may be called settled.
    words = [visit.verdict.split(":")[0] for visit in visited.visits]
    wrong = sum(a != b for a, b in zip_longest(sets, nested))
    wrong += sum(a != b for a, b in zip_longest(words, ["passage"] * DIM + ["settles"]))
    reason = "exact: a count"
    return [
        Check(
            "fixed-points: points of the four uncoupled equations by the general finder, complete",
            len(found.points),
            2**DIM,
            0,
            f"{PAPER}, section 4: each mode at 0 or at v*",
            reason,
        ),
        Check(
            "fixed-points: departures of the itinerary from M_0, M_1, ..., M_4 in this order",
            wrong,
            0,
            0,
            f"{PAPER}, Fig. 3: eigenvalues {EIGENVALUES} are learned in falling order",
            f"{reason} of visits",
        ),
    ]
