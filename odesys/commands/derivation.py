"""What was derived, as text for terminals, as LaTeX that compiles, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

__all__ = ["Derivation", "Formula", "Section", "rate", "step", "value"]

#: Expressions longer than this, in characters, are told by their first terms in text.
_LONGEST = 400
_WIDTH = 110
#: Terms to a line of LaTeX.
_TERMS = 4


@dataclass(frozen=True)
class Formula:
    """One line,  left = right.

    Args:
        left, left_latex: what is given, as text and as LaTeX.
        right: what it is.
        relation: between the two, "=" or "->".
        note: what is known of it, in words, such as how it was proven.
    """

    left: str
    left_latex: str
    right: sp.Basic
    relation: str = "="
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """In JSON's types, with the whole expression."""
        return {"left": self.left, "relation": self.relation, "right": sp.sstr(self.right), "note": self.note}

    def lines(self) -> list[str]:
        """As text, wrapped; a long expression is told by its first terms and its length."""
        head = f"  {self.left} {self.relation} "
        shown = textwrap.wrap(
            _shortened(self.right),
            _WIDTH,
            initial_indent=head,
            subsequent_indent=" " * min(len(head), 12),
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [*shown, *(_wrapped(self.note, "      ") if self.note else ())]

    def latex(self) -> list[str]:
        """As lines of LaTeX."""
        relation = r"\mapsto" if self.relation == "->" else "="
        return [
            *_displayed(self.left_latex, relation, self.right),
            *([_escaped(self.note), ""] if self.note else []),
        ]


@dataclass(frozen=True)
class Section:
    """A heading with formulas and sentences below it."""

    heading: str
    entries: Sequence[Formula | str]


@dataclass(frozen=True)
class Derivation:
    """What was derived of a model, in reading order."""

    title: str
    source: str
    sections: Sequence[Section]

    def to_text(self) -> str:
        """For a terminal."""
        lines = [f"{self.title} ({self.source})" if self.source else self.title]
        for section in self.sections:
            lines += ["", section.heading]
            for entry in section.entries:
                lines += _wrapped(entry, "  ") if isinstance(entry, str) else entry.lines()
        return "\n".join(lines)

    def to_latex(self) -> str:
        """A document that compiles as it stands."""
        lines = [
            r"\documentclass{article}",
            r"\usepackage[a4paper, margin=2cm]{geometry}",
            r"\usepackage{amsmath, amssymb}",
            r"\allowdisplaybreaks",
            r"\begin{document}",
            rf"\section*{{{_escaped(self.title)}}}",
            *([_escaped(self.source)] if self.source else []),
        ]
        for section in self.sections:
            lines += ["", rf"\subsection*{{{_escaped(section.heading)}}}"]
            for entry in section.entries:
                lines += [_escaped(entry), ""] if isinstance(entry, str) else entry.latex()
        return "\n".join([*lines, r"\end{document}"])

    def to_json(self) -> str:
        """One object; formulas whole."""
        sections = [
            {
                "heading": section.heading,
                "entries": [{"text": e} if isinstance(e, str) else e.to_dict() for e in section.entries],
            }
            for section in self.sections
        ]
        return json.dumps(
            {"model": self.title, "source": self.source, "sections": sections}, ensure_ascii=False
        )


def rate(x: sp.Symbol, f: sp.Basic, time: str = "t", note: str = "") -> Formula:
    """dx/dt = f."""
    return Formula(f"d{x}/d{time}", rf"\frac{{d {sp.latex(x)}}}{{d {time}}}", f, note=note)


def step(x: sp.Symbol, f: sp.Basic) -> Formula:
    """x -> f."""
    return Formula(str(x), sp.latex(x), f, "->")


def value(name: str, expression: sp.Basic, note: str = "") -> Formula:
    """name = expression."""
    return Formula(name, _latex_of(name), expression, note=note)


def _latex_of(name: str) -> str:
    """LaTeX of a name, also of one with an argument, a(t)."""
    stem, bracket, rest = name.partition("(")
    return sp.latex(sp.Symbol(stem)) + bracket + rest


def _shortened(expression: sp.Basic) -> str:
    text = sp.sstr(expression)
    if len(text) <= _LONGEST:
        return text
    terms = expression.args if isinstance(expression, sp.Add) else ()
    first = ""
    for term in terms:
        more = f"{first} + {sp.sstr(term)}".replace("+ -", "- ") if first else sp.sstr(term)
        if len(more) > _LONGEST // 2:
            break
        first = more
    how_long = f"{len(terms)} terms, " if terms else ""
    return f"{first or text[: _LONGEST // 2]} ... ({how_long}{len(text)} characters; --latex or --json shows all)"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _displayed(left: str, relation: str, right: sp.Basic) -> list[str]:
    """A displayed equation; a long sum takes several lines."""
    if not isinstance(right, sp.Add) or len(right.args) <= _TERMS:
        return [r"\[", f"{left} {relation} {sp.latex(right)}", r"\]"]
    terms = [sp.latex(term) for term in right.args]
    rows = []
    for begin in range(0, len(terms), _TERMS):
        row = ""
        for place, term in enumerate(terms[begin : begin + _TERMS], begin):
            row += (f" {term}" if term.startswith("-") else f" + {term}") if place else term
        rows.append(f"{left} {relation} {{}}& {row}" if begin == 0 else f"& {row}")
    return [r"\begin{align*}", " \\\\\n".join(rows), r"\end{align*}"]


_SPECIAL = {
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", **{c: f"\\{c}" for c in "&%$#_{}"},
}  # fmt: skip


def _escaped(text: str) -> str:
    """Text for LaTeX; what its default fonts lack becomes a question mark."""
    plain = text.encode("latin-1", errors="replace").decode("latin-1")
    return "".join(_SPECIAL.get(c, c) for c in plain)
