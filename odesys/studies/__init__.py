"""The roof: whole studies, from the loss to the verdict.

Each module of this folder whose name has no leading underscore is a study, found by its file; to add one is
to add a file. It holds

    run(scale, seed, announce) -> StudyResult    the checks, with their figures and data
    FIGURES: {name: Drawing}                     optional; figures of a paper that can be drawn alone

`scale` is "quick" or "full", `seed` seeds every random number, and `announce("what is done now")` tells the
user about long steps. A study is imported when it is run, so that listing studies costs nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from odesys.check import Check

if TYPE_CHECKING:
    from xarray import Dataset

    from odesys.report import Picture

__all__ = ["Announce", "Drawing", "Scale", "Study", "StudyResult", "figures", "load", "names", "run"]

Scale = Literal["quick", "full"]
Announce = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a study found: checks, pictures, and the datasets behind them by name."""

    checks: Sequence[Check] = ()
    figures: Sequence[Picture] = ()
    data: Mapping[str, Dataset] = field(default_factory=dict)

    def __add__(self, other: StudyResult) -> StudyResult:
        """What two studies found together.

        Raises:
            ValueError: both have a dataset of one name.
        """
        repeated = sorted(self.data.keys() & other.data.keys())
        if repeated:
            raise ValueError(
                f"Two studies give the names {repeated} to their data; begin each with its study's name."
            )
        return StudyResult(
            (*self.checks, *other.checks), (*self.figures, *other.figures), {**self.data, **other.data}
        )


#: Draws one figure of a paper with the theory in it, and gives the data behind it by name.
Drawing = Callable[[Scale, int, Announce], "tuple[Picture, Mapping[str, Dataset]]"]


class Study(Protocol):
    """The module of a study."""

    def run(self, scale: Scale, seed: int, announce: Announce) -> StudyResult: ...


def names() -> tuple[str, ...]:
    """The names of all studies, in alphabetical order."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"))


def load(name: str) -> Study:
    """The module of a study.

    Raises:
        ValueError: there is no such study.
    """
    if name not in names():
        raise ValueError(f"There is no study {name!r}; the studies are {', '.join(names())}.")
    return importlib.import_module(f"{__name__}.{name}")


def run(name: str, scale: Scale, seed: int, announce: Announce) -> StudyResult:
    """Run a study; its checks bear its name.

    Raises:
        ValueError: there is no such study.
    """
    result = load(name).run(scale, seed, announce)
    return replace(result, checks=tuple(replace(check, study=check.study or name) for check in result.checks))


def figures(chosen: Sequence[str]) -> dict[str, Drawing]:
    """The figures that the chosen studies can draw, by name.

    Raises:
        ValueError: there is no such study, or two studies give one name to two figures.
    """
    found: dict[str, Drawing] = {}
    for study in chosen:
        for name, draw in getattr(load(study), "FIGURES", {}).items():
            if name in found:
                raise ValueError(f"The figure {name!r} of study {study!r} already belongs to another study.")
            found[name] = draw
    return found
