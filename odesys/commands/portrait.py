"""`odesys portrait`: the phase portrait, or on a line the phase line, of a model by name, as a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odesys import textbook
from odesys.commands.faults import UsageFault, refuse
from odesys.commands.files import check_free, written
from odesys.commands.own_models import is_file, loaded, unknown
from odesys.system import MapSystem, ODESystem

if TYPE_CHECKING:
    from odesys.report import Picture

__all__ = ["MODELS", "draw"]

Box = Mapping[str, tuple[float, float]]

#: Steps of an orbit that is drawn as a cobweb.
_COBWEB_STEPS = 40


def draw(model: str, case: str | None, box: Box | None, target: Path, force: bool) -> str:
    """Draw a model into a file; returns the picture's caption.

    Raises:
        UsageFault: there is no such model or case, it needs a box or takes none, or the file cannot be written.
    """
    if not is_file(model) and model not in MODELS:
        raise unknown(model, MODELS)
    if target.suffix.lower() != ".png":
        raise UsageFault(f"The picture is a PNG; `{target}` must end with .png.")
    check_free(target, force)
    try:
        picture = own(model, case, box) if is_file(model) else MODELS[model](case, box)
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

    refuse("merged", case=case, box=box)
    return pictures.merged_plane()


def separate(case: str | None, box: Box | None) -> Picture:
    """The (v_1, v_2) plane of two heads of separate key and query."""
    from odesys.studies.separate import pictures

    refuse("separate", case=case, box=box)
    return pictures.two_heads()


def softmax(case: str | None, box: Box | None) -> Picture:
    """Softmax regression of one or two weights, by the name of its data."""
    from odesys.studies.softmax import pictures

    refuse("softmax", box=box)
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
    refuse(name, case=case)
    system = problem().system
    return _drawn(system, _given(box, system.field.names), name, name)


def own(path: str, case: str | None, box: Box | None) -> Picture:
    """A model file at its exact numbers, in its own box or another: a portrait, a phase line, or a map's cobweb."""
    refuse("a model file", case=case)
    model = loaded(path)
    return _drawn(
        model.exact, _given(box or model.box, model.rule.names), model.path.stem, model.name, model.start
    )


def _given(box: Box | None, names: Sequence[str]) -> Box:
    example = ",".join(f"{x}=-2:2" for x in names)
    if box is None:
        raise UsageFault(f"Say where to look: --box {example}.")
    if len(names) == 1 and set(box) != set(names):
        # A phase line takes a bare interval; a portrait checks the names itself.
        raise UsageFault(f"The box is of {', '.join(box)}, the model of {names[0]}: --box {example}.")
    return box


def _drawn(
    system: ODESystem | MapSystem, box: Box, stem: str, name: str, start: Mapping[str, float] | None = None
) -> Picture:
    """A flow on a line or a plane, or a map on a line."""
    from fixedpoints import cobweb, phase_line, portrait
    from odesys.report import Picture

    rule = system.map if isinstance(system, MapSystem) else system.field
    if isinstance(system, MapSystem):
        if start is None or len(rule.state) != 1:
            raise UsageFault("A map is drawn as a cobweb, which needs one state and a [start].")
        (side,) = box.values()
        axes = cobweb(system, start, _COBWEB_STEPS, interval=side).axes
        return Picture(
            stem,
            axes.figure,
            f"Cobweb of {name}.",
            f"The orbit of {name} between its graph and the diagonal.",
        )
    if len(rule.state) == 1:
        (side,) = box.values()
        axes = phase_line(system, side).axes
    else:
        axes = portrait(system, box).axes
    return Picture(stem, axes.figure, f"Phase portrait of {name}.", f"The flow of {name} in a box.")


MODELS: dict[str, Callable[[str | None, Box | None], Picture]] = {
    "merged": merged,
    "separate": separate,
    "softmax": softmax,
    **{name: partial(book, name, problem) for name, problem in textbook.BY_NAME.items()},
}
