"""Streamlines that are evenly spaced, all integrated in one go; closed orbits close."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fixedpoints.pictures.closed_orbits import RESOLUTION, closed_orbits
from fixedpoints.pictures.direction_field import DirectionField
from fixedpoints.pictures.spacing import Spacing, without_rewinding
from odesys.integrators.bundle import Bundle, Line, trace

__all__ = ["Streamline", "streamlines", "trace_both_ways"]

#: How far a line is followed to either side, in sizes of the window, and how far it may turn.
_LENGTH, _TURNS = 5.0, 8 * np.pi
#: The longest step, and the distance within which a line that returns to its seed stops to be looked at.
_STEP, _BESIDE = 0.05, 2e-3
#: A line whose steps have to be shorter than this has met an edge, a jump or a pole.
_SMALLEST, _MOST_STEPS = 1e-5, 1_000
#: Seeds tried; about a fifth of them become lines at the usual spacing.
_SEEDS = 400
#: About so many lines that do not end are followed further, to see whether they have run into a closed orbit.
_LOST = 20
#: The length below which a piece of a line is not worth drawing.
_SHORTEST = 0.05


@dataclass(frozen=True, eq=False)
class Streamline:
    """A solution curve in the window.

    `points` (2, k) are states in the direction of time, `seed` (2,) is the one at which it began to be
    traced, and `closed` says that it is a whole closed orbit: the last point is where it came back to the
    first. `limit` marks closed orbits that other lines were seen to run into, forward or backward in time.
    """

    points: np.ndarray
    closed: bool
    seed: np.ndarray
    limit: bool = False


def streamlines(
    field: DirectionField, spacing: float = 0.05, avoid: Iterable[np.ndarray] = ()
) -> tuple[Streamline, ...]:
    """Streamlines about `spacing` apart that cover the window, each closed orbit once.

    Args:
        field: the directions.
        spacing: the distance of a new line from all earlier ones, as a part of the window; lines end where
            they come nearer than 0.4 of it.
        avoid: curves (2, k) of states that are drawn already, from which lines keep the same distances.
    """
    seeds = _seeds(field)
    count = seeds.shape[1]
    lines = trace_both_ways(field, seeds)
    orbits = closed_orbits(field, lines, np.arange(count))
    room = Spacing(spacing)
    for curve in avoid:
        room.occupy(field.window.to_unit(curve))
    state = field.window.to_state
    cycles = [state(cycle) for cycle in _limit_cycles(field, lines, room)]
    chosen = [Streamline(cycle, True, cycle[:, 0], limit=True) for cycle in cycles]
    for place, seed in enumerate(seeds.T):
        if room.admits(seed):
            closed = place in orbits
            line = orbits[place] if closed else _open_line(lines[place], lines[count + place], room)
            if np.sum(np.hypot(*np.diff(line))) > _SHORTEST:
                room.occupy(line)
                chosen.append(Streamline(state(line), closed, state(seed)))
    return tuple(chosen)


def trace_both_ways(field: DirectionField, seeds: np.ndarray) -> Bundle:
    """The lines through seeds (2, m) in unit coordinates, m along the flow and m against it, in one solve.

    A line ends at the window's edge, at a fixed point, where the field stops, on its return to the seed, and
    after five sizes of the window or four turns.
    """
    lengths = np.repeat([_LENGTH, -_LENGTH], seeds.shape[1])
    return _trace(field, np.hstack([seeds, seeds]), lengths)


def _trace(field: DirectionField, starts: np.ndarray, lengths: np.ndarray) -> Bundle:
    ends = _Ends(field, starts, lengths)
    bounds = {"largest": _STEP, "smallest": _SMALLEST, "max_steps": _MOST_STEPS}
    return trace(field.directions, starts, lengths, ends, **bounds)


class _Ends:
    """Where lines end; remembers where each was a step ago, and how far it has turned."""

    def __init__(self, field: DirectionField, starts: np.ndarray, lengths: np.ndarray):
        self._field = field
        self._starts, self._units = starts, starts.copy()
        self._normals = np.sign(lengths) * field.directions(starts)
        self._slopes = self._normals.copy()
        self._turned = np.zeros(len(lengths))

    def __call__(self, place: np.ndarray, units: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        self._turned[place] += _angle(self._slopes[:, place], slopes)
        ends = (
            self._returned(place, units)
            | np.any((units < 0) | (units > 1), axis=0)
            | (np.abs(self._turned[place]) > _TURNS)
            | self._field.arrived(units)
        )
        self._units[:, place], self._slopes[:, place] = units, slopes
        return ends

    def _returned(self, place: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Which lines have, with this step, crossed the normal at their seeds right beside them."""
        normals = self._normals[:, place]
        before, after = (point - self._starts[:, place] for point in (self._units[:, place], units))
        low, high = np.sum(before * normals, axis=0), np.sum(after * normals, axis=0)
        crossing = (low < 0) & (high >= 0)
        share = np.where(crossing, low / np.where(crossing, low - high, 1.0), 0.0)
        return crossing & (np.hypot(*(before + share * (after - before))) < _BESIDE)


def _angle(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """From one direction to another, counterclockwise, shape (m,)."""
    return np.arctan2(before[0] * after[1] - before[1] * after[0], np.sum(before * after, axis=0))


def _seeds(field: DirectionField) -> np.ndarray:
    """Points (2, m) of a sequence whose every beginning covers the window evenly.

    The additive recurrence with the plastic number, x^3 = x + 1, generalises the golden section to the plane.
    """
    plastic = 1.324717957244746
    steps = np.array([[1 / plastic], [1 / plastic**2]])
    units = (0.5 + steps * np.arange(_SEEDS)) % 1.0
    return units[:, np.all(np.isfinite(field.directions(units)), axis=0) & ~field.arrived(units)]


def _limit_cycles(field: DirectionField, lines: Bundle, room: Spacing) -> list[np.ndarray]:
    """Closed orbits (2, k) that lines have run into, each once; they take their room first."""
    ends = lines.ends
    lost = np.all((ends > 0) & (ends < 1), axis=0) & ~field.arrived(ends)
    lost &= (np.hypot(*(ends - lines.starts)) > _STEP) & np.isin(
        lines.stops.astype(str), ["halted", "length"]
    )
    cycles = []
    for places, backward in zip(np.split(np.arange(len(lines)), 2), (False, True), strict=True):
        places = places[lost[places]]
        places = places[:: 1 + places.size // _LOST]
        again = _trace(field, ends[:, places], np.full(places.size, -_LENGTH if backward else _LENGTH))
        for orbit in closed_orbits(field, again, np.arange(places.size), backward).values():
            if room.admits(orbit[:, 0]):
                room.occupy(orbit)
                cycles.append(orbit[:, ::-1] if backward else orbit)
    return cycles


def _open_line(forward: Line, backward: Line, room: Spacing) -> np.ndarray:
    """Both halves as far as there is room for them, in the direction of time, in unit coordinates."""
    ahead, behind = (
        without_rewinding(room.free(_inside(line.evenly(RESOLUTION))), room.distance)
        for line in (forward, backward)
    )
    return np.column_stack([behind[:, :0:-1], ahead])


def _inside(units: np.ndarray) -> np.ndarray:
    """The beginning of a line (2, k) up to where it leaves the window."""
    inside = np.all((units >= 0) & (units <= 1), axis=0)
    return units if inside.all() else units[:, : np.argmin(inside)]
