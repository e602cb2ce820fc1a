"""The answer of `odesys fixed-points`, as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from fixedpoints.points import FixedPoints

__all__ = ["Answer", "ComponentRow", "PointRow", "general"]


@dataclass(frozen=True)
class PointRow:
    """One fixed point.

    Args:
        place: its coordinates by name, or the numbers of the learned modes.
        eigenvalues: of the flow's Jacobian (maps: multipliers), by falling real part.
        stability: in words.
        index: (negative, zero, positive) eigenvalues of the Hessian; None for systems that descend no loss.
        loss: at the point, where there is one.
    """

    place: Mapping[str, float] | Sequence[int]
    eigenvalues: Sequence[complex]
    stability: str
    index: tuple[int, int, int] | None = None
    loss: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The row in JSON's types."""
        named = isinstance(self.place, Mapping)
        return {
            "location" if named else "modes": dict(self.place) if named else list(self.place),
            "loss": self.loss,
            "eigenvalues": [_plain(value) for value in self.eigenvalues],
            "index": _named_index(self.index),
            "stability": self.stability,
        }

    @property
    def where(self) -> str:
        """The place as a cell of the table."""
        if isinstance(self.place, Mapping):
            return ", ".join(f"{name} = {value:.6g}" for name, value in self.place.items())
        return "{" + ", ".join(map(str, self.place)) + "}"


@dataclass(frozen=True)
class ComponentRow:
    """A set of fixed points: the equations that hold on it, its dimension, and what else is known of it."""

    equations: Sequence[str]
    dimension: int
    known: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The row in JSON's types."""
        return {**self.known, "equations": list(self.equations), "dimension": self.dimension}


@dataclass(frozen=True)
class Answer:
    """Where a model stops.

    Args:
        title: which model, with its numbers.
        certificate: "complete", "complete in box" or "unknown".
        evidence: the sentence behind the certificate.
        points: those that are shown.
        total: how many there are.
        components, excluded, exceptions: as in `fixedpoints.FixedPoints`.
        notes: what a reader of the numbers must know.
    """

    title: str
    certificate: str
    evidence: str
    points: Sequence[PointRow]
    total: int
    components: Sequence[ComponentRow] = ()
    excluded: Sequence[str] = ()
    exceptions: Sequence[str] = ()
    notes: Sequence[str] = ()

    def to_json(self) -> str:
        """One object; a key without an answer is null, numbers are never NaN, complex numbers are [re, im]."""
        document = {
            "model": self.title,
            "certificate": self.certificate,
            "evidence": self.evidence,
            "total": self.total,
            "points": [row.to_dict() for row in self.points],
            "components": [row.to_dict() for row in self.components],
            "excluded": list(self.excluded),
            "exceptions": list(self.exceptions),
            "notes": list(self.notes),
        }
        return json.dumps(document, allow_nan=False)

    def table(self) -> Table:
        """The points, one a row; a column that would be empty is left out."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        by_name = any(isinstance(row.place, Mapping) for row in self.points)
        table.add_column("point" if by_name else "learned modes", overflow="fold")
        columns = {
            "loss": [f"{row.loss:.6g}" if row.loss is not None else "" for row in self.points],
            "index -, 0, +": [", ".join(map(str, row.index)) if row.index else "" for row in self.points],
            "largest eigenvalue": [
                _shown(row.eigenvalues[0]) if row.eigenvalues else "" for row in self.points
            ],
        }
        columns = {heading: cells for heading, cells in columns.items() if any(cells)}
        for heading in columns:
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("stability", overflow="fold")
        for i, row in enumerate(self.points):
            cells = [row.where, *(cells[i] for cells in columns.values())]
            style = "green" if row.stability.startswith("stable") else ""
            table.add_row(*map(Text, cells), Text(row.stability, style=style))
        return table

    @property
    def lines(self) -> list[str]:
        """What stands below the table."""
        found = [f"Certificate: {self.evidence}."]
        for row in self.components:
            of = ", ".join(f"{name} {value}" for name, value in row.known.items() if name != "index")
            index = row.known.get("index")
            found.append(
                f"Component of dimension {row.dimension}{f' ({of})' if of else ''}: {_joined(row.equations)}"
                + (f"; index {', '.join(map(str, index.values()))}" if index else "")
            )
        found += [f"Excluded: {text}" for text in self.excluded]
        found += [f"The answer changes where {text}" for text in self.exceptions]
        return [*found, *self.notes]


def general(
    title: str, found: FixedPoints, loss: Callable[[Mapping[str, float]], float] | None = None
) -> Answer:
    """What `fixedpoints.find` says of a system with numbers, as an answer; `loss` is that of a place."""
    notes = [f"Open: the box {dict(box)}, since {box.reason}" for box in found.unresolved]
    notes += [f"{name} has the period {period}" for name, period in found.periods.items()]
    return Answer(
        title,
        found.certificate.kind,
        str(found.certificate),
        [
            PointRow(
                {name: float(value) for name, value in p.location.items()},
                [complex(value) for value in p.eigenvalues],
                p.stability,
                p.index,
                None if loss is None else loss(p.location),
            )
            for p in found.points
        ],
        len(found.points),
        [ComponentRow([f"{e} = 0" for e in c.equations], c.dimension, {}) for c in found.components],
        [str(e) for e in found.excluded],
        [str(e) for e in found.exceptions],
        notes,
    )


def _named_index(index: Iterable[int] | None) -> dict[str, int] | None:
    return None if index is None else dict(zip(("negative", "zero", "positive"), index, strict=True))


def _plain(value: complex) -> float | list[float]:
    number = complex(value)
    return number.real if number.imag == 0 else [number.real, number.imag]


def _shown(value: complex) -> str:
    number = complex(value)
    return f"{number.real:.6g}" if number.imag == 0 else f"{number.real:.6g}{number.imag:+.6g}i"


def _joined(equations: Sequence[str], most: int = 6) -> str:
    rest = len(equations) - most
    return "; ".join(equations[:most]) + (f"; and {rest} more" if rest > 0 else "")
