"""`odesys check FILE.toml`: the study that is made from a model file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from odesys.commands.faults import BrokenRun, UsageFault
from odesys.commands.own_models import loaded

if TYPE_CHECKING:
    from odesys.model_file import ModelFile
    from odesys.studies import StudyResult

__all__ = ["checked", "models"]


def models(paths: Sequence[str]) -> list[ModelFile]:
    """The models in some files, ready to be checked.

    Raises:
        UsageFault: one cannot be read, or does not say where runs begin and end, or two files share their name.
    """
    found = [loaded(path) for path in paths]
    stems = [model.path.stem for model in found]
    repeated = sorted({stem for stem in stems if stems.count(stem) > 1})
    if repeated:
        raise UsageFault(
            f"Two files are called {repeated[0]}, and so would be their figures. Rename one of them."
        )
    for model in found:
        _check_ready(model)
    return found


def checked(model: ModelFile, announce: Callable[[str], None]) -> StudyResult:
    """All checks, figures and data of a model.

    Raises:
        UsageFault: it asks for what cannot be run.
        BrokenRun, IntegrationError, DescentError: a run did not reach its end.
    """
    from odesys.studies import _model_file

    try:
        return _model_file.run(model, announce)
    except OverflowError as error:
        raise BrokenRun(f"{model.path}: {error}") from error
    except ValueError as error:
        raise UsageFault(f"{model.path}: {error}") from error


def _check_ready(model: ModelFile) -> None:
    from odesys.model_file import ModelFileError
    from symbolic.field import VectorField

    try:
        model.required("start", "The check runs from there")
        if isinstance(model.rule, VectorField):
            model.required("end", "Say how long to integrate")
        else:
            model.required("steps", "Say how often to apply the map")
    except ModelFileError as error:
        raise UsageFault(str(error)) from error
