"""The cycles of a map: every one, or those that were found, with the certificate that says which."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from fixedpoints.arguments import Box, box_sides, seconds, whole
from fixedpoints.maps.arguments import autonomous
from fixedpoints.maps.copies import Ring, composed, copies, ring
from fixedpoints.maps.leaves import conserved_functionals
from fixedpoints.maps.natures import nature
from fixedpoints.maps.orbits import Cycle, Cycles
from fixedpoints.maps.returns import return_equations
from fixedpoints.near.balls import Number, as_ball, as_rational
from fixedpoints.points import Certificate, Component, NotAFixedPointError, OpenBox
from odesys.lambdify import compile_field
from odesys.system import MapSystem
from symbolic.zero import exact

__all__ = ["cycles"]

#: The parts of the time for exact algebra where a box or a search can still answer, and for the proof in a box.
_EXACT_SHARE, _BOX_SHARE = 0.5, 0.7
#: More open boxes than this are told as the one box around them.
_MOST_OPEN = 64
#: Points closer than this, relative to 1 + |x|, are tried once.
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Points that f^p leaves where they are, each with its p images in a row, and what is known of others.

    `box` is where the certificate says that there are no others; None is everywhere.
    """

    orbits: tuple[Sequence[Sequence[float]], ...]
    certificate: Certificate
    box: Box | None = None
    components: tuple[Component, ...] = ()
    excluded: tuple[sp.Basic, ...] = ()
    unresolved: tuple[OpenBox, ...] = ()
    rejected: tuple[tuple[Mapping[str, float], str], ...] = ()


def cycles(
    system: MapSystem,
    period: int = 2,
    box: Mapping[str | sp.Symbol, tuple[float, float]] | None = None,
    budget: float = 60.0,
) -> Cycles:
    """The cycles of a map,  f^p(x) = x  and no fewer steps, with their multipliers and what may be missing.

    Polynomial and rational maps are solved exactly, and the answer is complete on the whole space. For others
    interval arithmetic proves every point of period p in the box, and that there is no other; the map and its
    slopes are followed step by step, so that no formula of f^p is needed. Without a box, or where the proof
    stays open, a numerical search adds what it finds. Where a map that is not rational conserves a linear
    functional, cycles are not isolated, and the certificate says so.

    Args:
        system: a map with its numbers.
        period: p, at least 1; cycles of proper divisors of p are found on the way and told apart.
        box: (low, high) for each state: only cycles with a point in this closed box are wanted.
        budget: seconds for the search; when they are over, the certificate is "unknown" and says what is open.
    Raises:
        TypeError: the system is no map, or the box no mapping to pairs.
        ValueError: the period is no whole number of at least 1, the map counts its steps or lacks numbers, a
            side of the box is missing, unknown or not increasing, or the budget is not positive.
    """
    system = autonomous(system, "Cycles are")
    period = whole(period, "period")
    sides = None if box is None else box_sides(system.map.state, box)
    deadline = time.monotonic() + seconds(budget)
    candidates = _candidates(system, period, sides, deadline)
    rings, rejected = _distinct(system, candidates.orbits)
    certificate = _audited(candidates, rings, rejected)
    visiting = [r for r in rings if sides is None or any(_touches(at, sides) for at in r.balls)]
    found = sorted(map(_cycle, visiting), key=lambda c: tuple(c.points[0].values()))
    longest = tuple(c for c in found if c.period == period)
    return Cycles(
        period,
        longest,
        tuple(c for c in found if c.period < period),
        replace(certificate, found=len(longest)),
        candidates.components,
        candidates.excluded,
        candidates.unresolved,
        (*candidates.rejected, *rejected),
    )


def _candidates(system: MapSystem, period: int, box: Box | None, deadline: float) -> _Candidates:
    exact, doubt = _exact(system, period, box, deadline)
    if exact is not None and exact.certificate.kind == "complete":
        if box is None:
            return exact
        return replace(exact, certificate=replace(exact.certificate, kind="complete in box"))
    flat = conserved_functionals(system)
    if flat:
        named = (sum((k * x for k, x in zip(row, system.map.state, strict=True)), sp.S.Zero) for row in flat)
        reason = (
            f"the map conserves {', '.join(map(str, named))}, so that its cycles come in families; ask on one leaf, "
            "with fixedpoints.on_leaf"
        )
        doubtful = Certificate("unknown", reason)
        return _Candidates((), doubtful) if exact is None else replace(exact, certificate=doubtful)
    inside = None if box is None else _in_box(system, period, box, deadline)
    if inside is not None and inside.certificate.kind == "complete in box":
        return inside
    before = [answer for answer in (exact, inside) if answer is not None]
    return _searched(system, period, box, deadline, doubt, before)


# Exact algebra


def _exact(
    system: MapSystem, period: int, box: Box | None, deadline: float
) -> tuple[_Candidates | None, str]:
    """What algebra answers for a map that is rational, or whose fixed points are wanted; else why it does not."""
    from fixedpoints.algebraic import BudgetExceeded, NotAlgebraic, algebraic

    rule = system.map
    if period > 1 and not all(f.is_rational_function(*rule.state) for f in rule.rhs):
        return None, "exact algebra does not apply (the map is not rational)"
    # One unknown of a high degree is better than many of a low one; several unknowns are better in a ring.
    copied = composed(rule, period) if len(rule.state) == 1 or period == 1 else copies(rule, period)
    share = _EXACT_SHARE if box is not None else 0.8
    try:
        found = algebraic(MapSystem(copied, dict(system.parameters)), share * (deadline - time.monotonic()))
    except NotAlgebraic:
        return None, "exact algebra does not apply"
    except BudgetExceeded:
        return None, "exact algebra needs more time than the budget gave it"
    if found.periods:
        return None, "exact algebra tells the points only up to shifts by the periods of sines and cosines"
    n, orbits = len(rule.state), []
    for point in found.points:
        at = [float(x) for x in point.location.values()]
        orbits.append(_rows(at, n) if len(at) > n else _followed(system, at, period))
    answer = _Candidates(
        tuple(orbits),
        found.certificate,
        components=found.components,
        excluded=_poles(system, found.excluded, dict(zip(copied.names, rule.state * period, strict=False))),
    )
    return answer, found.certificate.reason


def _poles(
    system: MapSystem, met: Sequence[sp.Basic], names: Mapping[str, sp.Symbol]
) -> tuple[sp.Basic, ...]:
    """The poles of f, which may cancel in the formula of f^p, and those that were met, in the states of f."""
    from fixedpoints.algebraic import poles
    from symbolic.varieties.form import polynomial_form

    numbers = {p: sp.Rational(v) for p, v in zip(system.map.parameters, system.args, strict=True)}
    once = poles(polynomial_form([exact(f.xreplace(numbers)) for f in system.map.rhs], system.map.state))
    written = (e.xreplace({s: names.get(s.name, s) for s in e.free_symbols}) for e in met)
    return tuple(dict.fromkeys((*once, *written)))


def _rows(flat: Sequence[float], n: int) -> list[list[float]]:
    return [list(flat[k : k + n]) for k in range(0, len(flat), n)]


def _followed(system: MapSystem, start: Sequence[float], period: int) -> list[list[float]]:
    """The orbit of a point over one period, as floats; Newton's method sharpens it later."""
    step, at, orbit = compile_field(system).rhs, np.array(start, dtype=float), []
    for k in range(period):
        orbit.append(at.tolist())
        at = step(k, at, system.args)
    return orbit


# A box


def _in_box(system: MapSystem, period: int, box: Box, deadline: float) -> _Candidates | None:
    """The answer of interval arithmetic; None if the map holds a function that it cannot bound."""
    from fixedpoints.boxes.krawczyk import explore
    from fixedpoints.boxes.ranges import NoRangeError

    until = time.monotonic() + _BOX_SHARE * (deadline - time.monotonic())
    try:
        seen = explore(return_equations(system, period), [box], until)  # type: ignore
    except NoRangeError:
        return None
    # Tests of existence reach a little beyond the box.
    inside = [z for z in seen.zeros if _touches([_hull(*bounds) for bounds in z.bounds], box)]
    orbits = tuple(_followed(system, zero.location, period) for zero in inside)
    if seen.finished and not seen.open:
        reason = (
            f"interval arithmetic proves each point of period {period}, and that the rest of the box holds none "
            f"({seen.boxes} parts tested)"
        )
        return _Candidates(orbits, Certificate("complete in box", reason), box)
    why = "stays open at every scale" if seen.finished else "was not searched through: the budget ran out"
    boxes = list(seen.open)
    if len(boxes) > _MOST_OPEN:
        low, high = np.moveaxis(np.array(boxes), 2, 0)
        boxes = [tuple(zip(low.min(axis=0).tolist(), high.max(axis=0).tolist(), strict=True))]
    unresolved = tuple(OpenBox(dict(zip(system.map.names, b, strict=True)), why) for b in boxes)
    return _Candidates(orbits, Certificate("unknown", f"a box {why}"), box, unresolved=unresolved)


def _hull(low: sp.Rational, high: sp.Rational) -> Number:
    return as_ball(as_rational(low)).union(as_ball(as_rational(high)))


# A search


def _searched(
    system: MapSystem,
    period: int,
    box: Box | None,
    deadline: float,
    doubt: str,
    before: Sequence[_Candidates],
) -> _Candidates:
    """What other methods left, completed by Newton iterations of the ring; nothing is claimed to be complete."""
    from fixedpoints.search import search

    n = len(system.map.state)
    orbits = [orbit for answer in before for orbit in answer.orbits]
    known = [[x for at in orbit for x in at] for orbit in orbits]
    copied = MapSystem(copies(system.map, period), dict(system.parameters))
    around = None if box is None else box * period
    seen = search(copied, around, max(0.0, deadline - time.monotonic()), known)
    orbits += [_rows([float(x) for x in found.location], n) for found in seen.found]
    last = before[-1] if before else _Candidates((), Certificate("unknown", doubt))
    reason = last.certificate.reason
    if box is None or not before:
        ended = "" if seen.finished else ", which the budget ended,"
        advice = "; give a `box` to have one searched completely" if box is None else ""
        reason = (
            f"{doubt}, and a search from {seen.starts} starts{ended} cannot show that none is missing{advice}"
        )
    return replace(
        last,
        orbits=tuple(orbits),
        certificate=Certificate("unknown", reason),
        components=last.components or seen.components,
        rejected=seen.rejected,
    )


# From points to cycles


def _distinct(
    system: MapSystem, orbits: Sequence[Sequence[Sequence[float]]]
) -> tuple[list[Ring], list[tuple[Mapping[str, float], str]]]:
    """Each cycle once, at its minimal period, in balls; and the orbits that are none."""
    rings: list[Ring] = []
    rejected = []
    for orbit in orbits:
        if any(_near(r, orbit[0]) for r in rings):
            continue
        try:
            if not np.isfinite(orbit).all():
                raise NotAFixedPointError("its orbit meets a pole or leaves the finite numbers", np.inf)
            found = ring(system, orbit)
            shortest = found.shortest()
            if shortest < found.period:
                found = ring(system, orbit[:shortest])
        except NotAFixedPointError as error:
            rejected.append((dict(zip(system.map.names, orbit[0], strict=True)), str(error)))
            continue
        if not any(r.holds(found.balls[0]) for r in rings):
            rings.append(found)
    return rings, rejected


def _near(known: Ring, point: Sequence[float]) -> bool:
    return any(
        all(abs(a - b) <= _SAME * (1 + abs(a)) for a, b in zip(at.values(), point, strict=True))
        for at in known.points
    )


def _touches(at: Sequence[Number], box: Box) -> bool:
    """Whether a point, as balls, is not proven to lie outside the box."""
    return not any(
        x < as_rational(low) or x > as_rational(high) for x, (low, high) in zip(at, box, strict=True)
    )


def _audited(candidates: _Candidates, rings: Sequence[Ring], rejected: Sequence) -> Certificate:
    """The certificate, unless the cycles do not account for every point that was proven to exist."""
    certificate, box = candidates.certificate, candidates.box
    told = sum(box is None or _touches(at, box) for r in rings for at in r.balls)
    if certificate.kind == "unknown" or (told >= len(candidates.orbits) and not rejected):
        return certificate
    missing = len(rejected) or len(candidates.orbits) - told
    return Certificate("unknown", f"{missing} points of the answer could not be followed round their cycles")


def _cycle(known: Ring) -> Cycle:
    here, points = nature(known), known.points
    first = min(range(known.period), key=lambda k: tuple(points[k].values()))
    return Cycle(
        tuple(points[first:] + points[:first]),
        tuple(e.value for e in here.spectrum.eigenvalues),
        tuple(e.error for e in here.spectrum.eigenvalues),
        here.spectrum.dims,
        here.stability,
        here.evidence,
        known.place.residual,
    )
