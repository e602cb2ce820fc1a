"""A TOML file as sections, keys and exact values; every fault names the file, the section and the key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import sympy as sp

from symbolic.expressions import ExpressionError, closest, parse

__all__ = ["RULES", "Document", "ModelFileError", "load", "shown"]

#: What a file may hold: texts, and sections with these keys or, for the others, with names of the user's own.
TEXTS = ("name", "source")
RULES = ("flow", "map", "loss")
SECTIONS = ("parameters", "assume", *RULES, "conserved", "observables", "solution", "start", "run", "box")
KEYS = {
    "assume": ("positive", "nonnegative"),
    "loss": ("expression", "states", "time_constant", "step"),
    "run": ("end", "points", "method", "rtol", "rate", "steps"),
}

_LARGEST_FILE = 1_000_000


class ModelFileError(ValueError):
    """A model file that cannot be read; the message names the file, the section, the key and the way out."""


@dataclass(frozen=True, eq=False)
class Document:
    """The content of a file, with known sections and keys only."""

    path: Path
    content: Mapping[str, Any]

    def __post_init__(self):
        known = (*TEXTS, *SECTIONS)
        for name, value in self.content.items():
            if name not in known:
                where = f"[{name}]" if isinstance(value, dict) else name
                raise self.fault(
                    where,
                    f"is unknown; a file holds {', '.join(TEXTS)} and the sections {', '.join(SECTIONS)}."
                    f"{closest(name, known)}",
                )
            if name in SECTIONS and not isinstance(value, dict):
                raise self.fault(
                    name, f"must be a section, [{name}] with lines of keys below it; got {shown(value)}."
                )
            if name in KEYS:
                self.check_keys(name, KEYS[name])

    def fault(self, where: str, what: str) -> ModelFileError:
        """The error about a place."""
        return ModelFileError(f"{self.path}: {where} {what}")

    def __contains__(self, section: str) -> bool:
        return section in self.content

    def section(self, name: str) -> Mapping[str, Any]:
        """A section; one that is not there is empty."""
        return self.content.get(name, {})

    def check_keys(self, section: str, known: Sequence[str]) -> None:
        """Refuse keys that are not known."""
        for key in self.section(section):
            if key not in known:
                raise self.fault(
                    f"[{section}] {key}", f"is unknown; known are {', '.join(known)}.{closest(key, known)}"
                )

    def check_complete(self, section: str, names: Sequence[str], what: str) -> None:
        """Refuse a section that does not have these keys and no others."""
        self.check_keys(section, names)
        missing = [name for name in names if name not in self.section(section)]
        if missing:
            raise self.fault(
                f"[{section}] {missing[0]}", f"is missing; give {what} for each of {', '.join(names)}."
            )

    def text(self, key: str, default: str) -> str:
        """A text at the top of the file."""
        value = self.content.get(key, default)
        if not isinstance(value, str):
            raise self.fault(key, f"must be text in quotes; got {shown(value)}.")
        return value or default

    def names(self, section: str, key: str) -> list[str]:
        """A list of names."""
        value = self.section(section)[key]
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise self.fault(f"[{section}] {key}", f'must list names, like ["a", "b"]; got {shown(value)}.')
        return value

    def expression(self, section: str, key: str, symbols: Sequence[sp.Symbol]) -> sp.Expr:
        """An expression in these symbols, from text or from a number."""
        value = self.section(section)[key]
        if not isinstance(value, str):
            return self.number(section, key, value)
        try:
            return parse(value, symbols)
        except ExpressionError as error:
            raise self.fault(f"[{section}] {key}", f"is not understood: {error}") from error

    def number(self, section: str, key: str, value: object) -> sp.Expr:
        """An exact real number, from a number of TOML or from text without names."""
        where = f"[{section}] {key}"
        if isinstance(value, bool) or not isinstance(value, (int, Decimal, str)):
            raise self.fault(
                where, f'must be a number, or an exact one in quotes like "1/3"; got {shown(value)}.'
            )
        try:
            # By way of the text, whose size is judged before anything is computed.
            return parse(value if isinstance(value, str) else str(value))
        except ExpressionError as error:
            what = (
                "must be a finite number" if not isinstance(value, str) else "is not understood as a number"
            )
            raise self.fault(where, f"{what}: {error}") from error

    def positive(self, section: str, key: str) -> float:
        """A positive number."""
        value = float(self.number(section, key, self.section(section)[key]))
        if not value > 0:
            raise self.fault(f"[{section}] {key}", f"must be positive; got {value:g}.")
        return value

    def whole(self, section: str, key: str, least: int, most: int = 10**7) -> int:
        """A whole number in a range."""
        value = self.section(section)[key]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.fault(
                f"[{section}] {key}", f"must be a whole number from {least} to {most}; got {shown(value)}."
            )
        return value


def load(path: Path) -> Document:
    """The document in a file.

    Raises:
        ModelFileError: the file is missing, too large or no TOML, or holds unknown sections or keys.
    """

    def fault(what: str) -> ModelFileError:
        return ModelFileError(f"{path}: {what}")

    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise fault(f"cannot be read: {error.strerror or error}.") from error
    if len(content) > _LARGEST_FILE:
        raise fault(f"has more than {_LARGEST_FILE} bytes, which no model needs.")
    try:
        return Document(path, tomllib.loads(content.decode(), parse_float=Decimal))
    except ModelFileError:
        raise
    except UnicodeDecodeError as error:
        raise fault(f"is not text in UTF-8: {error.reason} at byte {error.start}.") from error
    except (ValueError, ArithmeticError) as error:
        advice = " Expressions stand in quotes." if "Invalid value" in str(error) else ""
        raise fault(f"is not TOML: {error}.{advice}") from error
    except RecursionError as error:
        raise fault("is nested too deeply.") from error


def shown(value: object) -> str:
    """A value as it stands in the file, shortened."""
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
