"""Certified fixed points: the rule stands still there, and what is near moves as the eigenvalues say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from odesys.check import Check, control
from odesys.integrators.contract import IntegrationError, solve
from odesys.lambdify import compile_field
from odesys.model_file import ModelFile
from odesys.system import MapSystem, ODESystem

__all__ = ["checks"]

#: Points that are checked, and seconds to find them.
_MOST, _BUDGET = 6, 20.0

#: How far beside a point its neighbours start, relative to its size: as near as it takes until nearer ones agree.
_ASIDE = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
_AGREE = 1e-6


@dataclass(frozen=True, eq=False)
class _Point:
    """A fixed point in floats, with the eigenvalues that are claimed of it; `size` is that of the states there."""

    system: ODESystem | MapSystem
    place: np.ndarray
    eigenvalues: Sequence[complex]
    name: str
    size: float


def checks(model: ModelFile) -> list[Check]:
    """Both checks at each isolated point, with a planted fault each at the first one that shows it."""
    from fixedpoints import find

    if model.rule.time is not None:
        return []
    found = find(model.exact, box=model.box, budget=_BUDGET)
    names = model.rule.names
    places = [np.array([float(point.location[name]) for name in names]) for point in found.points[:_MOST]]
    points = [
        _Point(
            model.exact,
            place,
            [complex(value) for value in point.eigenvalues],
            ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, place, strict=True)),
            _size(place, [*places, np.array(list((model.start or {}).values()))]),
        )
        for point, place in zip(found.points, places, strict=False)
    ]
    still, growth = [], []
    for point in points:
        still.append(_standing(point))
        if _distinct(point):
            growth.append((point, _moving(point)))
    return [*still, *_displaced(points, still), *(check for _, check in growth), *_misjudged(growth)]


def _size(place: np.ndarray, known: Sequence[np.ndarray]) -> float:
    """The size of the states at a point; at 0 that of the smallest other state that is known."""
    sizes = [float(np.abs(other).max()) for other in known if other.size and other.any()]
    return float(np.abs(place).max()) or min(sizes, default=1.0)


def _displaced(points: Sequence[_Point], still: Sequence[Check]) -> list[Check]:
    if not points:
        return []
    aside = replace(points[0], place=points[0].place + 0.01 * points[0].size)
    return [control(_standing, aside, name=f"a place 1 % beside {points[0].name}", true=still[0])]


def _misjudged(growth: Sequence[tuple[_Point, Check]]) -> list[Check]:
    if not growth:
        return []
    point, true = growth[0]
    wrong = replace(point, eigenvalues=[1.01 * value for value in point.eigenvalues])
    return [control(_moving, wrong, name=f"eigenvalues 1 % too large at {point.name}", true=true)]


def _standing(point: _Point) -> Check:
    """|f(x*)| (for a map |f(x*) - x*|) relative to what rounding of x* can make of it."""
    field = compile_field(point.system)
    value, slopes = (f(0.0, point.place, ()) for f in (field.rhs, field.jacobian))
    if isinstance(point.system, MapSystem):
        value = value - point.place
    scale = np.abs(slopes).sum(axis=1).max() * point.size or 1.0
    return Check(
        f"fixed-points: the rule stands still at {point.name}",
        measured=float(np.abs(value).max() / scale),
        expected=0.0,
        tolerance=1e-12,
        source="certified by fixedpoints.find",
        reason="the rounding of the coordinates, times the slopes",
    )


def _moving(point: _Point) -> Check:
    """Rates at which neighbours on either side of the point part from it, in its left eigenvectors."""
    slopes = compile_field(point.system).jacobian(0.0, point.place, ())
    values, left = np.linalg.eig(slopes.T)
    claimed = np.array(point.eigenvalues)
    largest = np.abs(values).max()
    errors = []
    for place, vector in zip(values, left.T, strict=True):
        mine = claimed[np.argmin(np.abs(claimed - place))]
        errors.append(abs(_rate(point, vector, 1.0 / largest) - mine) / largest)
    sort = "multipliers" if isinstance(point.system, MapSystem) else "eigenvalues"
    return Check(
        f"fixed-points: neighbours of {point.name} move as its {sort} say, largest error",
        measured=float(max(errors)),
        expected=0.0,
        tolerance=1e-4,
        source="measured along the flow" if sort == "eigenvalues" else "measured in one step",
        reason=f"100 times the change, below {_AGREE:g}, of the rates when neighbours start ten times nearer",
    )


def _rate(point: _Point, vector: np.ndarray, time: float) -> complex:
    """The rate of neighbours, as near as needed for it to be that of the linear flow."""
    rate = np.nan + 0j
    for part in _ASIDE:
        before = rate
        try:
            rate = _rate_at(point, vector, time, part * point.size)
        except IntegrationError:
            continue  # too far aside: it runs away
        if abs(rate - before) * time < _AGREE:
            break
    return rate


def _rate_at(point: _Point, vector: np.ndarray, time: float, aside: float) -> complex:
    """The rate of  w . (x_+ - x_-)  along the flow (for a map, its factor in one step), w a left eigenvector."""
    direction = np.real(vector) if np.abs(np.real(vector)).max() > 0 else np.imag(vector)
    apart = aside * direction / np.abs(direction).max()
    ends = [_after(point, point.place + sign * apart, time, aside) for sign in (1, -1)]
    factor = vector @ (ends[0] - ends[1]) / (vector @ (2 * apart))
    return factor if isinstance(point.system, MapSystem) else np.log(complex(factor)) / time


def _after(point: _Point, start: np.ndarray, time: float, aside: float) -> np.ndarray:
    if isinstance(point.system, MapSystem):
        return compile_field(point.system).rhs(0.0, start, ())
    names = point.system.field.names
    run = solve(
        point.system,
        dict(zip(names, start.tolist(), strict=True)),
        [0.0, time],
        method="DOP853",
        rtol=1e-12,
        atol=1e-12 * aside,
    )
    return np.array([float(run[name][-1]) for name in names])


def _distinct(point: _Point) -> bool:
    """Whether the eigenvalues are known and apart, so that each has a direction of its own to be measured in."""
    values = np.array(point.eigenvalues)
    if not values.size or not np.abs(values).max() > 0:
        return False
    gaps = np.abs(values[:, None] - values[None, :])[~np.eye(values.size, dtype=bool)]
    return bool(values.size == 1 or gaps.min() > 1e-3 * np.abs(values).max())
