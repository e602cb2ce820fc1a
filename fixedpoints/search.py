"""Fixed points by numerical search: what is found is checked, but nothing shows that none is missing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from fixedpoints.boxes.branches import independent
from fixedpoints.boxes.degenerate import belongs, settled
from fixedpoints.boxes.equations import Box, Equations, equations_of, ranges_of, velocity
from fixedpoints.boxes.krawczyk import Zero, certified
from fixedpoints.boxes.ranges import NoRangeError
from fixedpoints.newton import converged, crossings, starts, vanishing
from fixedpoints.points import Component
from odesys.system import MapSystem, ODESystem

__all__ = ["DISPUTED", "Found", "Searched", "search"]

#: Why a point is rejected that one of two arithmetics must be wrong about.
DISPUTED = "floats take this for a fixed point, and ball arithmetic denies it"

_STARTS, _ROUNDS = 128, 12

#: Points closer than this, relative to 1 + |x|, are one.
_SAME = 1e-7

#: A Jacobian of a smaller reciprocal condition number proves nothing about a zero.
_WELL_CONDITIONED = 1e-10

#: More states, or more operations in all derivatives, than this are not proven but only checked in floats.
_MOST_STATES, _MOST_OPERATIONS = 16, 30_000

#: Points with a singular Jacobian that are looked into at high precision; more lie on a curve of zeros.
_SECOND_LOOKS = 6

#: Half-width, relative to 1 + |x|, of the box around a point with a singular Jacobian that is looked into.
_AROUND = 1e-6


@dataclass(frozen=True, eq=False)
class Found:
    """A zero found numerically; `zero` is the proof that it is one and the only one near, or None."""

    location: np.ndarray
    zero: Zero | None


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search found, what it rejected and why, and components where the zeros are not isolated."""

    found: tuple[Found, ...]
    rejected: tuple[tuple[Mapping[str, float], str], ...]
    components: tuple[Component, ...]
    starts: int
    finished: bool


def search(
    system: ODESystem | MapSystem,
    box: Box | None = None,
    budget: float = 60.0,
    known: Sequence[Sequence[float]] = (),
) -> Searched:
    """Zeros of f (for a map, of f(x) - x) by damped Newton iterations from many starts, with deflation.

    Starts and rounds are fixed, so that every run gives the same answer unless the budget ends it. A point
    where the field is only small is rejected: ball arithmetic shows that it is not zero, or the Jacobian
    there is too near a singular one to show that it is.

    Args:
        system: a flow or a map.
        box: where the starts lie and fixed points are wanted; without it, cubes around the origin, and
            fixed points are wanted anywhere.
        budget: seconds.
        known: zeros to be led away from; they are not found again.
    """
    deadline = time.monotonic() + budget
    rule = system.field if isinstance(system, ODESystem) else system.map
    judge, rates = _Judge(system, box, deadline, known), velocity(system)
    grid = starts(_STARTS, len(rates), box)
    rest = independent(rates)
    if len(rest) < len(rates):
        component = Component(tuple(rates[i] for i in rest), len(rates) - len(rest))
        return Searched((), (), (component,), 0, True)
    scale = np.ptp(grid, axis=1) / 2 if box is not None else np.ones(len(grid))
    if len(rates) == 1:
        grid = np.concatenate([grid, crossings(judge.vanishing, box)], axis=1)
    rounds, fresh = 0, True
    while fresh and rounds < _ROUNDS and time.monotonic() < deadline:
        rounds += 1
        places = np.array(judge.places).reshape(-1, len(rates)).T
        arrived = converged(judge.vanishing, grid, places, scale, deadline)
        fresh = sum(judge.takes(point) for point in arrived.T) > 0
    rejected = [(dict(zip(rule.names, map(float, at), strict=True)), why) for at, why in judge.rejected]
    finished = time.monotonic() < deadline
    return Searched(tuple(judge.found), tuple(rejected), (), _STARTS, finished)


class _Judge:
    """Decides of each point that an iteration arrives at whether it is a zero, and a new one."""

    def __init__(self, system, box: Box | None, deadline: float, known: Sequence[Sequence[float]]):
        self.vanishing = vanishing(system)
        self.found: list[Found] = []
        self.rejected: list[tuple[np.ndarray, str]] = []
        self._known = [np.array(place, dtype=float) for place in known]
        self._box, self._deadline = box, deadline
        self._second_looks = _SECOND_LOOKS
        self._equations = _provable(system)

    @property
    def places(self) -> list[np.ndarray]:
        """Where the zeros lie that are known by now."""
        return [*self._known, *(found.location for found in self.found)]

    def takes(self, point: np.ndarray) -> bool:
        """Whether a point is a new zero; if so it is kept, if it is none, the reason is."""
        if self._seen(point) or self._is_far(point):
            return False
        verdict = self._proven(point) if self._equations is not None else self._checked(point)
        if isinstance(verdict, str):
            self.rejected.append((point, verdict))
            return False
        if self._seen(verdict.location) or not (self._box is None or _inside(verdict, self._box)):
            return False
        self.found.append(verdict)
        return True

    def _seen(self, point: np.ndarray) -> bool:
        places = [*self.places, *(place for place, _ in self.rejected)]
        return any(np.abs(point - place).max() <= _SAME * (1 + np.abs(place).max()) for place in places)

    def _is_far(self, point: np.ndarray) -> bool:
        if self._box is None:
            return False
        low, high = np.array(self._box).T
        slack = _SAME * (1 + np.abs(point))
        return bool(((point < low - slack) | (point > high + slack)).any())

    def _proven(self, point: np.ndarray) -> Found | str:
        zero = certified(self._equations, point.tolist())
        if zero is None:
            around = tuple((x - r, x + r) for x in point.tolist() for r in (_AROUND * (1 + abs(x)),))
            values, _ = self._equations.values(ranges_of(around))
            for (low, high), name in zip(values, self._equations.symbols, strict=True):
                if low > 0 or high < 0:
                    if isinstance(self._checked(point), Found):
                        return DISPUTED
                    least = (low if low > 0 else -high).str(3, radius=False)
                    return f"the rate of {name} is at least {least} in size all around, small but not zero"
            self._second_looks -= 1
            zeros = settled(self._equations, around, self._deadline)[0] if self._second_looks >= 0 else []
            if len(zeros) != 1:
                return "the Jacobian is singular here, and it could not be proven that the field vanishes"
            zero = zeros[0]
        if belongs(self._equations, zero) is False:
            return "the field is undefined here"
        return Found(np.array(zero.location), zero)

    def _checked(self, point: np.ndarray) -> Found | str:
        x = point[:, None]
        with np.errstate(all="ignore"):
            value, slope = self.vanishing.value(x)[:, 0], self.vanishing.slope(x)[:, :, 0]
        sizes = np.abs(slope).max(axis=1, keepdims=True)
        if not np.isfinite(sizes).all():
            return "the Jacobian is not finite here"
        if not sizes.all():
            return (
                "the field and its Jacobian are zero to all digits here: a plateau cannot be told from a zero"
            )
        if 1 / np.linalg.cond(slope / sizes) < _WELL_CONDITIONED:
            return "the Jacobian is nearly singular here, so that a small field does not show a zero"
        if not np.abs(np.linalg.solve(slope, value)).max() <= _SAME * (1 + np.abs(point).max()):
            return "the Newton iteration does not settle here"
        return Found(point, None)


def _provable(system: ODESystem | MapSystem) -> Equations | None:
    """The equations, if ball arithmetic can bound them and their derivatives in reasonable time."""
    try:
        equations = equations_of(system)
        n = len(equations.symbols)
        if n > _MOST_STATES or n * sum(f.count_ops() for f in equations.functions) > _MOST_OPERATIONS:
            return None
        origin = [(0.0, 1.0)] * n
        equations.values(ranges_of(tuple(origin)))
        equations.slopes(ranges_of(tuple(origin)))
    except NoRangeError:
        return None
    return equations


def _inside(found: Found, box: Box) -> bool:
    if found.zero is None:
        return all(low <= x <= high for x, (low, high) in zip(found.location, box, strict=True))
    return all(
        high >= sp.Rational(a) and low <= sp.Rational(b)
        for (low, high), (a, b) in zip(found.zero.bounds, box, strict=True)
    )
