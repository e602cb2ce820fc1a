"""Softmax regression by the name of its data, `--case NAME` or `--case NAME-rescaled`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odesys.commands.faults import UsageFault

if TYPE_CHECKING:
    from odesys.studies.softmax.setting import Case, Matrix

__all__ = ["Chosen", "chosen", "split"]

_RESCALED = "-rescaled"


@dataclass(frozen=True)
class Chosen:
    """The data of a case and its loss, "normalized" or "rescaled"."""

    name: str
    loss: str
    data: Case | Matrix

    @property
    def title(self) -> str:
        """For example "softmax regression, normalized loss, two-minima"."""
        return f"softmax regression, {self.loss} loss, {self.name}"


def split(case: str) -> tuple[str, str]:
    """The name of the data, and the loss."""
    return case.removesuffix(_RESCALED), "rescaled" if case.endswith(_RESCALED) else "normalized"


def chosen(case: str, beside: Sequence[str] = ()) -> Chosen:
    """The data of the study by name; `beside` are further names that the command knows by itself.

    Raises:
        UsageFault: there are no such data.
    """
    from odesys.studies.softmax.setting import CASES, MATRICES

    name, loss = split(case)
    known = CASES | MATRICES
    if name not in known:
        raise UsageFault(
            f"There is no case {case!r} of softmax; the cases are {', '.join((*beside, *known))}, each also with "
            f"{_RESCALED}."
        )
    return Chosen(name, loss, known[name])
