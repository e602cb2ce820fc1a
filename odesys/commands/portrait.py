"""`odesys portrait`: the phase portrait, or on a line the phase line, of a model by name, as a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odesys import textbook
from odesys.commands.faults import UsageFault
from odesys.commands.files import check_free, written

if TYPE_CHECKING:
    from odesys.report import Picture

__all__ = ["MODELS", "draw"]

Box = Mapping[str, tuple[float, float]]


def draw(model: str, case: str | None, box: Box | None, target: Path, force: bool) -> str:
    """Draw a model into a file; returns the picture's caption.

    Raises:
        UsageFault: there is no such model or case, it needs a box or takes none, or the file cannot be written.
    """
    if model not in MODELS:
        raise UsageFault(f"There is no model {model!r}; the models are {', '.join(MODELS)}.")
    if target.suffix.lower() != ".png":
        raise UsageFault(f"The picture is a PNG; `{target}` must end with .png.")
    check_free(target, force)
    try:
        picture = MODELS[model](case, box)
    except UsageFault:
        raise
    except ValueError as error:
        raise UsageFault(str(error)) from error
    with written(target) as fresh:
        fresh.write_bytes(picture.png())
    return picture.caption


def merged(case: str | None, box: Box | None) -> Picture:
    """The (s, u) plane of merged key and query with a white covariance."""
    from odesys.studies.separate import pictures

    _refuse("merged", case=case, box=box)
    return pictures.merged_plane()


def separate(case: str | None, box: Box | None) -> Picture:
    """The (v_1, v_2) plane of two heads of separate key and query."""
    from odesys.studies.separate import pictures

    _refuse("separate", case=case, box=box)
    return pictures.two_heads()


def softmax(case: str | None, box: Box | None) -> Picture:
    """Softmax regression of one or two weights, by the name of its data."""
    from odesys.studies.softmax import pictures

    _refuse("softmax", box=box)
    known = {
        "two-minima": pictures.two_minima,
        "three-points": pictures.three_points,
        "three-points-rescaled": pictures.rescaled,
    }
    if case is not None and case not in known:
        raise UsageFault(f"There is no case {case!r} of softmax; the cases are {', '.join(known)}.")
    return known[case or "two-minima"]()


def book(name: str, problem: Callable[[], textbook.Problem], case: str | None, box: Box | None) -> Picture:
    """A system of `odesys.textbook` in a box."""
    from fixedpoints import phase_line, portrait
    from odesys.report import Picture

    _refuse(name, case=case)
    system = problem().system
    if box is None:
        example = ",".join(f"{x}=-2:2" for x in system.field.names)
        raise UsageFault(f"Say where to look: --box {example}.")
    if len(system.field.state) == 1:
        (side,) = box.values()
        axes = phase_line(system, side).axes
    else:
        axes = portrait(system, box).axes
    return Picture(name, axes.figure, f"Phase portrait of {name}.", f"The flow of {name} in a box.")


def _refuse(model: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageFault(f"--{name} means nothing for {model}; leave it out.")


MODELS: dict[str, Callable[[str | None, Box | None], Picture]] = {
    "merged": merged,
    "separate": separate,
    "softmax": softmax,
    **{
        name: partial(book, name, problem)
        for problem in textbook.PROBLEMS
        for name in [problem.__name__.replace("_", "-")]
    },
}
