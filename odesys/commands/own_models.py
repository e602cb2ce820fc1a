"""Models of the user's own: which arguments name files, and what is in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from odesys.commands.faults import UsageFault

if TYPE_CHECKING:
    from odesys.model_file import ModelFile

__all__ = ["is_file", "loaded", "refuse", "unknown"]


def is_file(model: str) -> bool:
    """Whether an argument names a model file, not a model."""
    return model.lower().endswith(".toml")


def loaded(path: str) -> ModelFile:
    """The model in a file.

    Raises:
        UsageFault: it cannot be read.
    """
    from odesys.model_file import ModelFileError, read

    try:
        return read(path)
    except ModelFileError as error:
        raise UsageFault(str(error)) from error


def refuse(model: ModelFile, **given: object) -> None:
    """Raise a UsageFault if an option was given that means nothing for a model file."""
    for name, value in given.items():
        if value is not None:
            raise UsageFault(
                f"--{name.replace('_', '-')} means nothing for a model file; say it in {model.path} or leave it out."
            )


def unknown(model: str, known: Iterable[str]) -> UsageFault:
    """The refusal of a name that is neither a model nor a file."""
    return UsageFault(
        f"There is no model {model!r}; the models are {', '.join(known)}, and FILE.toml for one of your own."
    )
