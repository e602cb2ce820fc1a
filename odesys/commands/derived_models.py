"""What is derived of the papers' models: loss, flow, conserved quantities, reductions, time courses, fixed points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from odesys.commands.derivation import Derivation, Formula, Section, value
from odesys.commands.derived_rules import closed_form, rule
from odesys.commands.faults import UsageFault
from odesys.commands.softmax_data import chosen, split

__all__ = ["merged", "separate", "softmax"]

Announce = Callable[[str], None]

#: Conserved quantities and fixed points that are shown; their number grows with the square of the heads, and as 2^D.
_MOST_SHOWN = 6


def merged(dim: int, heads: int, announce: Announce) -> Derivation:
    """Linear attention with merged key and query."""
    from symbolic.linear_attention.merged import model

    announce("deriving merged linear attention")
    made = model(dim=dim, heads=heads)
    points: list[Formula | str] = []
    for found in made.fixed_points:
        equations = [f"{e} = 0" for e in found.equations]
        points += [
            f"the set {found.name!r}, of dimension {found.dimension}: {'; '.join(equations[:_MOST_SHOWN])}"
            + (f"; and {len(equations) - _MOST_SHOWN} more" if len(equations) > _MOST_SHOWN else ""),
            value(f"L_{found.name}", found.loss),
        ]
    points.append("complete, proven: if some v_i is not zero then M = M*; else it is the first set.")
    return _derivation(
        f"linear attention with merged key and query, D = {dim}, H = {heads}",
        made,
        Section("Fixed points", points),
    )


def separate(dim: int, heads: int, rank: int, announce: Announce) -> Derivation:
    """Linear attention with separate key and query."""
    from symbolic.linear_attention.separate import model

    announce("deriving linear attention with separate key and query")
    made = model(dim=dim, heads=heads, rank=rank)
    most = min(dim, heads * rank)
    subsets = [modes for size in range(most + 1) for modes in combinations(range(1, dim + 1), size)]
    if len(subsets) > 2 * _MOST_SHOWN:
        subsets = [tuple(range(1, size + 1)) for size in range(most + 1)]
    losses: list[Formula | str] = [
        value(
            f"L_{{{','.join(map(str, modes))}}}" if modes else "L_0",
            made.point(modes).loss,
            f"learned modes {modes}",
        )
        for modes in subsets
    ]
    losses.append(
        "each proven to be a fixed point; all of them, with index and spectrum: odesys fixed-points separate."
    )
    title = f"linear attention with separate key and query, D = {dim}, H = {heads}, R = {rank}"
    return _derivation(title, made, Section("Fixed points, by their losses", losses))


def softmax(case: str, n: int | None, d: int | None, announce: Announce) -> Derivation:
    """Softmax regression of letters, or of the data of the study by name."""
    from symbolic.softmax_regression.vector import model

    name, loss = split(case)
    announce(f"deriving softmax regression, {loss} loss")
    if name == "letters":
        made = model(n=3 if n is None else n, d=1 if d is None else d, loss=loss)
        points = Section("Fixed points", ["not looked for: the data are letters. Name a --case for numbers."])
        return _derivation(f"softmax regression, {loss} loss, letters", made, points)
    if n is not None or d is not None:
        raise UsageFault(f"--n and --d are of the case letters; the case {case} has its own data.")
    known = chosen(case, beside=("letters",))
    made = known.data.derived(loss)
    return _derivation(known.title, made, _softmax_points(made))


def _softmax_points(made) -> Section:
    from fixedpoints.softmax_regression import points

    found = points(made).found
    places = [
        f"{', '.join(f'{x} = {float(at):.12g}' for x, at in p.location.items())}: {p.stability}"
        for p in found.points
    ]
    return Section("Fixed points", [*places, f"{found.certificate}."])


def _derivation(title: str, made: Any, points: Section) -> Derivation:
    """The sections that all models share; `points` comes last."""
    flow = made.flow
    return Derivation(
        title,
        flow.source,
        [
            Section("Loss", [value("L", made.loss)]),
            rule(flow),
            Section("Parameters", [", ".join(map(str, flow.parameters)) or "none"]),
            _conserved(made.conserved),
            *_reductions(made.reductions, made.closed_forms),
            points,
        ],
    )


def _conserved(integrals: Sequence[Any]) -> Section:
    shown = [value(f"I_{i}", one.expression) for i, one in enumerate(integrals[:_MOST_SHOWN], 1)]
    if not shown:
        return Section("Conserved", ["not found: no direction of the weights is flat."])
    more = len(integrals) - len(shown)
    return Section(
        "Conserved",
        [*shown, f"each proven to be constant along the flow{f'; and {more} more' if more else ''}."],
    )


def _reductions(reductions: Mapping[str, Any], laws: Mapping[str, Any]) -> list[Section]:
    if not reductions:
        return [Section("Smaller flows", ["not found: there is none for these data."])]
    sections = []
    for name, made in reductions.items():
        entries = list(rule(made.field).entries)
        entries.append(f"exact for {made.exact_on}; proven by substitution.")
        entries += [value(observable, e) for observable, e in made.observables.items()]
        entries += closed_form(laws[name]) if name in laws else []
        sections.append(Section(f"Smaller flow: {name}", entries))
    return sections
