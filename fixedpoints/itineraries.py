"""Saddle to saddle: which fixed points a trajectory comes near, when, in which order, and whether it stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from fixedpoints.points import Component, FixedPoint, FixedPoints
from fixedpoints.shifts import points_within
from odesys.lambdify import compile_expressions, compile_field
from odesys.system import ODESystem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Itinerary", "Visit", "itinerary"]

#: Places between two requested times at which distances are looked at.
_BETWEEN = 16
#: A neighbourhood's radius, as a part of the distance to the nearest other place.
_PART = 0.2
#: The same, as a part of the trajectory's largest distance, where there is no other place.
_ALONE = 0.1
#: Steps to the nearest point of a set of fixed points, each of which halves what is missing.
_STEPS = 50
#: A speed this small, against the largest on the way, is the rounding of a standstill.
_STANDSTILL = 1e-9


@dataclass(frozen=True, eq=False)
class Visit:
    """A stay of a trajectory in the neighbourhood of a fixed point.

    Args:
        place: the fixed point, or the set of fixed points.
        entered, left: times; `entered` is the first time of all if the trajectory starts inside, `left` is
            None if it is still inside at the last.
        distance, closest: the smallest distance from the place, and when.
        speed: the smallest |dx/dt| during the visit.
        loss: the value of the given loss when closest, or None.
        verdict: "passage", "settles" or "lingers", and why.
    """

    place: FixedPoint | Component
    entered: float
    left: float | None
    distance: float
    closest: float
    speed: float
    loss: float | None
    verdict: str

    def __str__(self) -> str:
        until = "the end" if self.left is None else f"{self.left:.6g}"
        return (
            f"{_named(self.place)}: {self.entered:.6g} to {until}, closest {self.distance:.3g} at {self.closest:.6g}, "
            f"speed down to {self.speed:.3g}: {self.verdict}"
        )


@dataclass(frozen=True, eq=False)
class Itinerary:
    """The visits of a trajectory, in order.

    Args:
        visits: in the order in which they begin.
        run: the trajectory, dim "time".
        found: the fixed points that were looked for, with their certificate.
        radii: how far each place's neighbourhood reaches: those of the points that are not far from the
            trajectory, in order of their coordinates, then those of the sets.
    """

    visits: tuple[Visit, ...]
    run: xr.Dataset
    found: FixedPoints
    radii: tuple[float, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.visits)) or "no fixed point comes near"


def itinerary(
    system: ODESystem,
    start: Mapping[str | sp.Symbol, float],
    times: Iterable[float],
    points: FixedPoints | None = None,
    *,
    radius: float | None = None,
    loss: sp.Expr | None = None,
) -> Itinerary:
    """Which fixed points' neighbourhoods  |x - x*| < r  a trajectory visits, in order, and whether it stays.

    A visit that ends is a passage, however slow. One that lasts to the end "settles" only if the point is
    classified as stable and the speed goes on falling; else it "lingers", and the verdict says why: a saddle is
    never called an attractor.

    Args:
        system: an autonomous flow.
        start: one number for each state, by name or symbol.
        times: increasing; distances are looked at at 16 places between two of them, on cubics through the states
            and their velocities.
        points: the fixed points to look for; by default `fixedpoints.find(system)`.
        radius: r, in units of the state; by default a fifth of the distance from the nearest other fixed point,
            and a tenth of the trajectory's largest distance where there is no other.
        loss: an expression in states and parameters, to be reported with each visit.
    Raises:
        TypeError: the system is no ODESystem.
        ValueError: the radius is not positive, or `odesys.solve` refuses start, times or loss.
        odesys.IntegrationError: the trajectory does not reach the last time.
    """
    from odesys.integrators.contract import solve

    if not isinstance(system, ODESystem):
        raise TypeError(f"An itinerary is of an ODESystem; got {type(system).__name__}.")
    if radius is not None and not radius > 0:
        raise ValueError(f"`radius` must be a positive distance; got {radius!r}.")
    run = solve(system, start, times)
    found = _find(system) if points is None else points
    course = _course(system, run, loss)
    near = points_within(found, _reach(system, course))
    places = [*near, *(c for c in found.components if c.dimension > 0)]
    distances = [_distances(system, place, course.states) for place in places]
    size = float(np.max(np.abs(course.states)))
    radii = _radii(system, places, distances, size) if radius is None else [float(radius)] * len(places)
    stays = [(first, last, k) for k, d in enumerate(distances) for first, last in _runs(d < radii[k])]
    visits = [
        _visit(system, course, places[k], distances[k], radii[k], first, last)
        for first, last, k in sorted(stays)
    ]
    return Itinerary(tuple(visits), run, found, tuple(radii))


@dataclass(frozen=True, eq=False)
class _Course:
    """A trajectory in small steps: times (m,), states (n, m), speeds |dx/dt| (m,), and the loss (m,) if given."""

    times: np.ndarray
    states: np.ndarray
    speeds: np.ndarray
    losses: np.ndarray | None


def _find(system: ODESystem) -> FixedPoints:
    from fixedpoints.finding import find

    return find(system)


def _course(system: ODESystem, run: xr.Dataset, loss: sp.Expr | None) -> _Course:
    compiled, field = compile_field(system), system.field
    coarse, ends = run["time"].values, np.stack([run[name].values for name in field.names])
    slopes = compiled.rhs(0.0, ends, compiled.args)
    u = np.linspace(0.0, 1.0, _BETWEEN, endpoint=False)
    size = np.diff(coarse)
    left, right = ends[:, :-1, None], ends[:, 1:, None]
    rise, fall = ((size * s)[:, :, None] for s in (slopes[:, :-1], slopes[:, 1:]))
    inner = left + u**2 * (3 - 2 * u) * (right - left) + u * (1 - u) * ((1 - u) * rise - u * fall)
    states = np.column_stack([inner.reshape(len(ends), -1), ends[:, -1]])
    times = np.append((coarse[:-1, None] + size[:, None] * u).ravel(), coarse[-1])
    speeds = np.linalg.norm(compiled.rhs(0.0, states, compiled.args), axis=0)
    if loss is None:
        return _Course(times, states, speeds, None)
    (losses,) = compile_expressions([loss], (*field.state, *field.parameters))(*states, *system.args)
    return _Course(times, states, speeds, losses)


def _reach(system: ODESystem, course: _Course) -> dict[str, tuple[float, float]]:
    """The box of the trajectory, with as much again on every side."""
    low, high = course.states.min(axis=1), course.states.max(axis=1)
    margin = 3 * np.max(high - low) + np.max(np.abs(course.states))
    return dict(zip(system.field.names, zip(low - margin, high + margin, strict=True), strict=True))


def _distances(system: ODESystem, place: FixedPoint | Component, states: np.ndarray) -> np.ndarray:
    """Distances (m,) of states (n, m) from a place; infinite where a set was not found."""
    if isinstance(place, FixedPoint):
        return np.linalg.norm(states - _coordinates(place), axis=0)
    return np.linalg.norm(states - _nearest_on(system, place, states, states), axis=0)


def _coordinates(point: FixedPoint) -> np.ndarray:
    """A column (n, 1)."""
    return np.array([[float(value)] for value in point.location.values()])


def _nearest_on(
    system: ODESystem, component: Component, states: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """Points (n, m) of a set of fixed points nearest to states (n, m), followed from starts (n, m).

    Each step goes half the way to the point nearest to the state among those where the equations hold to first
    order. Infinite where they do not hold in the end.
    """
    field = system.field
    symbols = (*field.state, *field.parameters)
    equations = compile_expressions(component.equations, symbols)
    slopes = compile_expressions([e.diff(x) for e in component.equations for x in field.state], symbols)
    target, here = states.T, starts.T.copy()  # (m, n)
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            values = np.stack(equations(*here.T, *system.args), axis=-1)  # (m, k)
            jacobian = np.stack(slopes(*here.T, *system.args), axis=-1).reshape(
                *values.shape, len(field.state)
            )
            back = values - np.einsum("mkn,mn->mk", jacobian, here - target)
            here = (here + target - _shortest(jacobian, back)) / 2
        size = np.linalg.norm(jacobian, axis=(1, 2))
        off = np.linalg.norm(np.stack(equations(*here.T, *system.args), axis=-1), axis=-1)
        reached = off <= 1e-6 * size * (1e-3 + np.linalg.norm(here - target, axis=1))
    return np.where(reached, here.T, np.inf)


def _shortest(jacobian: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The shortest solutions d (m, n) of  J d = v,  J (m, k, n), v (m, k), in the sense of least squares."""
    square = jacobian @ jacobian.transpose(0, 2, 1)
    damping = 1e-14 * np.trace(square, axis1=1, axis2=2)[:, None, None] + 1e-300
    solved = np.linalg.solve(square + damping * np.eye(square.shape[-1]), values[..., None])
    return (jacobian.transpose(0, 2, 1) @ solved)[..., 0]


def _radii(system: ODESystem, places: Sequence, distances: Sequence[np.ndarray], size: float) -> list[float]:
    """A fifth of the distance from the nearest other place, or a tenth of the largest distance on the way."""
    radii = []
    for place, on_the_way in zip(places, distances, strict=True):
        gaps = [_gap(system, place, other, size) for other in places if other is not place]
        gaps = [gap for gap in gaps if np.isfinite(gap)]
        far = np.max(on_the_way, where=np.isfinite(on_the_way), initial=0.0)
        radii.append(_PART * min(gaps) if gaps else _ALONE * float(far))
    return radii


def _gap(system: ODESystem, one: FixedPoint | Component, other: FixedPoint | Component, size: float) -> float:
    """The distance between two places; infinite between two sets, which is not looked for."""
    if isinstance(one, Component):
        one, other = other, one
    if isinstance(one, Component):
        return np.inf
    at = _coordinates(one)
    if isinstance(other, FixedPoint):
        return float(_distances(system, other, at)[0])
    spread = np.cos(
        np.outer(np.sqrt(np.arange(2.0, len(at) + 2.0)), np.arange(64)) + np.arange(len(at))[:, None]
    )
    starts = at + np.hstack([0.1 * size * spread, size * spread])
    targets = np.repeat(at, starts.shape[1], axis=1)
    return float(np.min(np.linalg.norm(targets - _nearest_on(system, other, targets, starts), axis=0)))


def _runs(inside: np.ndarray) -> list[tuple[int, int]]:
    """First and last place of each stretch where the condition holds."""
    turns = np.flatnonzero(np.diff(inside, prepend=False, append=False))
    return [(int(a), int(b) - 1) for a, b in zip(turns[::2], turns[1::2], strict=True)]


def _visit(
    system, course: _Course, place, distances: np.ndarray, radius: float, first: int, last: int
) -> Visit:
    span = slice(first, last + 1)
    closest = first + int(np.argmin(distances[span]))
    entered = course.times[0] if first == 0 else _crossing(course.times, distances - radius, first - 1)
    stays = last == len(course.times) - 1
    left = None if stays else _crossing(course.times, distances - radius, last)
    return Visit(
        place,
        float(entered),
        left,
        float(distances[closest]),
        float(course.times[closest]),
        float(np.min(course.speeds[span])),
        None if course.losses is None else float(course.losses[closest]),
        _verdict(system, course, place, span) if stays else "passage: it leaves again",
    )


def _crossing(times: np.ndarray, height: np.ndarray, at: int) -> float:
    """The time between two places at which the height, taken as linear, is zero."""
    low, high = height[at], height[at + 1]
    return float(times[at] + (times[at + 1] - times[at]) * low / (low - high))


def _verdict(system: ODESystem, course: _Course, place: FixedPoint | Component, span: slice) -> str:
    """Whether a trajectory that is still there at the end settles."""
    stability = _stability(system, course, place)
    if not stability.startswith(("stable", "sink")):
        return f"lingers: still there at the last time, but the place is classified as {stability}"
    if not _slows_down(course.speeds[span], float(np.max(course.speeds))):
        return f"lingers: {stability}, but the speed does not go on falling"
    return f"settles: {stability}, and the speed goes on falling"


def _stability(system: ODESystem, course: _Course, place: FixedPoint | Component) -> str:
    if isinstance(place, FixedPoint):
        return place.stability
    from fixedpoints.stability import classify

    last = course.states[:, -1:]
    here = _nearest_on(system, place, last, last)[:, 0]
    return classify(system, dict(zip(system.field.names, here.tolist(), strict=True))).stability


def _slows_down(speeds: np.ndarray, largest: float) -> bool:
    """Whether the fastest moment of the second half is slower than that of the first, or all is at rest."""
    half = len(speeds) // 2
    later = np.max(speeds[half:])
    return bool(later <= _STANDSTILL * largest or (half > 0 and later < np.max(speeds[:half])))


def _named(place: FixedPoint | Component) -> str:
    if isinstance(place, Component):
        return ", ".join(f"{e} = 0" for e in place.equations)
    coordinates = ", ".join(f"{name} = {float(value):.6g}" for name, value in place.location.items())
    return f"({coordinates}), {place.stability}"
