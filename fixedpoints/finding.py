"""Where a system stops: every fixed point, or those that were found, with the certificate that says which."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp

from fixedpoints.arguments import Box, Rule, System, box_sides, rule_and_numbers, seconds
from fixedpoints.points import Certificate, FixedPoint, FixedPoints, NotAFixedPointError
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

__all__ = ["find"]

#: The part of the time that is left for the proof in a box; the rest is for a numerical search.
_INTERVAL_SHARE = 0.8


def find(
    system: System, box: Mapping[str | sp.Symbol, tuple[float, float]] | None = None, budget: float = 60.0
) -> FixedPoints:
    """The fixed points of a system, f(x) = 0 (for a map, f(x) = x), what it does there, and what may be missing.

    Exact algebra comes first: for polynomial and rational systems, and those that a substitution makes so, the
    answer is complete on the whole space. Other systems are searched in the box by interval arithmetic, which
    proves every point and that there is no other; or, without a box, numerically, which proves nothing about
    what is missing. The certificate says which it was.

    Args:
        system: a system with numbers; or a bare rule, whose parameters stay symbols.
        box: (low, high) for each state, by name or by symbol: only fixed points in this closed box are wanted.
        budget: seconds; when they are over, the certificate is "unknown" and says what is open.
    Raises:
        TypeError: the system or the box is of another type.
        ValueError: the rule depends on time; a side of the box is missing, of an unknown state, not finite or
            not increasing; the budget is not positive; or a bare rule with parameters is not algebraic.
    """
    rule, _ = rule_and_numbers(system)
    sides = None if box is None else box_sides(rule.state, box)
    deadline = time.monotonic() + seconds(budget)
    found, doubt = _algebraic(system, _exact_share(system, box) * budget)
    if found is not None and found.certificate.kind == "complete":
        return _classified(system, found if sides is None else _within(found, rule, sides))
    numeric = _with_numbers(system, doubt)
    answer = None if sides is None else _in_box(numeric, sides, deadline)
    if answer is None or answer.certificate.kind == "unknown":
        exact = found if found is None or sides is None else _within(found, rule, sides)
        answer = _searched(numeric, sides, deadline, doubt, [a for a in (exact, answer) if a is not None])
    return _classified(numeric, answer)


def _exact_share(system: System, box: Mapping | None) -> float:
    """The part of the budget for exact algebra: what other methods would need is left to them."""
    if isinstance(system, (VectorField, IteratedMap)) and system.parameters:
        return 1.0
    return 0.8 if box is None else 0.5


def _algebraic(system: System, budget: float) -> tuple[FixedPoints | None, str]:
    """The exact answer, and why it is none or not complete."""
    from fixedpoints.algebraic import BudgetExceeded, NotAlgebraic, algebraic

    try:
        found = algebraic(system, budget)
    except NotAlgebraic as error:
        return None, f"exact algebra does not apply ({_clause(error)})"
    except BudgetExceeded:
        return None, "exact algebra needs more time than the budget gave it"
    return found, found.certificate.reason


def _clause(error: Exception) -> str:
    """An error's first sentence, as part of another."""
    text = str(error).split(". ")[0].rstrip(".")
    return text[:1].lower() + text[1:]


def _with_numbers(system: System, doubt: str) -> ODESystem | MapSystem:
    if isinstance(system, (ODESystem, MapSystem)):
        return system
    if system.parameters:
        name = "ODESystem" if isinstance(system, VectorField) else "MapSystem"
        raise ValueError(
            f"With the parameters {[p.name for p in system.parameters]} as symbols there is no answer: {doubt}. "
            f"Give each a number, with odesys.{name}."
        )
    return ODESystem(system) if isinstance(system, VectorField) else MapSystem(system)


def _within(found: FixedPoints, rule: Rule, box: Box) -> FixedPoints:
    """The part of an answer for the whole space that lies in a box."""
    if found.periods:
        from fixedpoints.shifts import points_within

        points = points_within(found, dict(zip(rule.names, box, strict=True)))
    else:
        points = tuple(p for p in found.points if _touches(p, rule.names, box))
    certificate = replace(found.certificate, found=len(points))
    if certificate.kind == "complete":
        certificate = replace(certificate, kind="complete in box")
    return replace(found, points=points, certificate=certificate, periods={})


def _touches(point: FixedPoint, names: Sequence[str], box: Box) -> bool:
    """Whether a point is not proven to lie outside the box."""
    if point.enclosure is None:
        places = [(float(point.location[name]),) * 2 for name in names]
    else:
        places = [point.enclosure[name] for name in names]
    return all(
        sp.Rational(low) <= sp.Rational(high_end) and sp.Rational(low_end) <= sp.Rational(high)
        for (low_end, high_end), (low, high) in zip(places, box, strict=True)
    )


def _in_box(system: ODESystem | MapSystem, box: Box, deadline: float) -> FixedPoints | None:
    """The answer of interval arithmetic; None if the field holds a function that it cannot bound."""
    from fixedpoints.boxes.ranges import NoRangeError
    from fixedpoints.interval import in_box

    try:
        inside = in_box(system, box, _INTERVAL_SHARE * (deadline - time.monotonic()))
    except NoRangeError:
        return None
    names = rule_and_numbers(system)[0].names
    points = tuple(_point(names, zero) for zero in inside.zeros)
    answer = FixedPoints(
        points,
        inside.components,
        Certificate("unknown", _open_in_words(inside), len(points)),
        excluded=inside.excluded,
        unresolved=inside.unresolved,
    )
    if inside.unresolved or not inside.finished:
        return answer
    return _audited(system, box, deadline, answer, inside.tests)


def _open_in_words(inside: Any) -> str:
    reasons = dict.fromkeys(f"a box {open_.reason}" for open_ in inside.unresolved)
    return "; ".join(reasons) or "the budget ran out"


def _audited(
    system: ODESystem | MapSystem, box: Box, deadline: float, answer: FixedPoints, tests: int
) -> FixedPoints:
    """The answer as complete, unless a numerical search, with arithmetic of its own, meets more."""
    from fixedpoints.search import DISPUTED, search

    known = [tuple(point.location.values()) for point in answer.points]
    met = [] if answer.components else _met(search(system, box, deadline - time.monotonic(), known), DISPUTED)
    if met:
        reason = f"a numerical search met fixed points that the proof did not: {'; '.join(map(str, met))}"
        return replace(answer, certificate=Certificate("unknown", reason, len(answer.points)))
    reason = f"interval arithmetic proves each point, and that the rest of the box holds none ({tests} parts tested)"
    return replace(answer, certificate=Certificate("complete in box", reason, len(answer.points)))


def _met(seen: Any, disputed: str) -> list:
    """Where a search found what is, or may be, a fixed point."""
    return [found.location.tolist() for found in seen.found] + [
        list(place.values()) for place, reason in seen.rejected if reason == disputed
    ]


def _point(names: Sequence[str], zero: Any) -> FixedPoint:
    location = dict(zip(names, zero.location, strict=True))
    enclosure = dict(zip(names, zero.bounds, strict=True))
    return FixedPoint(location, (), "", enclosure=enclosure, multiplicity=zero.multiplicity)


def _searched(
    system: ODESystem | MapSystem,
    box: Box | None,
    deadline: float,
    doubt: str,
    before: Sequence[FixedPoints],
) -> FixedPoints:
    """What other methods left, completed by a numerical search; nothing is claimed to be complete."""
    from fixedpoints.search import search

    names = rule_and_numbers(system)[0].names
    points: list[FixedPoint] = []
    for point in (point for answer in before for point in answer.points):
        if not any(_close(point, other) for other in points):
            points.append(point)
    known = [tuple(map(float, point.location.values())) for point in points]
    seen = search(system, box, max(0.0, deadline - time.monotonic()), known)
    for found in seen.found:
        place = dict(zip(names, map(float, found.location), strict=True))
        points.append(FixedPoint(place, (), "") if found.zero is None else _point(names, found.zero))
    last = before[-1] if before else FixedPoints((), seen.components, Certificate("unknown", doubt))
    reason = _why(doubt, box, last, seen) if box is None or not before else last.certificate.reason
    return replace(
        last,
        points=tuple(points),
        components=last.components or seen.components,
        certificate=Certificate("unknown", reason, len(points)),
        rejected=seen.rejected,
    )


def _why(doubt: str, box: Box | None, last: FixedPoints, seen: Any) -> str:
    if seen.components:
        return (
            f"{doubt}, and the right-hand sides depend on each other, so that fixed points are not isolated"
        )
    advice = "; give a `box` to have one searched completely" if box is None else ""
    ended = "" if seen.finished else ", which the budget ended,"
    return f"{doubt}, and a numerical search from {seen.starts} starts{ended} cannot show that none is missing{advice}"


def _close(first: FixedPoint, second: FixedPoint) -> bool:
    return all(
        abs(float(first.location[name]) - float(second.location[name]))
        <= 1e-7 * (1 + abs(float(second.location[name])))
        for name in first.location
    )


def _classified(system: Rule, found: FixedPoints) -> FixedPoints:
    """With what the system does at each point, in lexicographic order of the locations."""
    from fixedpoints.near.jets import NotSmoothError
    from fixedpoints.stability import classify

    points = []
    for point in found.points:
        try:
            known = classify(
                system, point.location, enclosure=point.enclosure, multiplicity=point.multiplicity
            )
        except (NotAFixedPointError, NotSmoothError) as error:
            # It exists only under its conditions, lies on a jump, or a second look did not settle what it is.
            known = replace(point, stability="undecided", evidence=str(error))
        conditions = tuple(dict.fromkeys((*point.conditions, *known.conditions)))
        points.append(replace(known, location=point.location, conditions=conditions))
    if all(isinstance(x, float) for point in points for x in point.location.values()):
        points.sort(key=lambda point: tuple(point.location.values()))
    certificate = replace(found.certificate, found=len(points))
    return replace(found, points=tuple(points), certificate=certificate)
