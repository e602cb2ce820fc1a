"""Fixed points of periodic fields: a point stands for all its shifts, of which a picture shows some."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from fixedpoints.points import FixedPoint, FixedPoints

__all__ = ["points_within"]

#: Points closer than this part of the bounds are one.
_SAME = 1e-9


def points_within(found: FixedPoints, bounds: Mapping[str, tuple[float, float]]) -> tuple[FixedPoint, ...]:
    """The isolated fixed points, and their shifts by whole periods, inside bounds  low <= x <= high.

    Args:
        found: points with numbers as locations.
        bounds: (low, high) by the name of each state.
    Returns:
        In lexicographic order of the coordinates. A shifted point has no enclosure.
    """
    chosen = [point for point in found.points if _inside(point.location, bounds)]
    for point in found.points:
        for location in _shifted(point, found, bounds):
            if not any(_same(location, other.location, bounds) for other in chosen):
                chosen.append(replace(point, location=location, enclosure=None))
    return tuple(sorted(chosen, key=lambda point: [float(point.location[name]) for name in bounds]))


def _inside(location: Mapping, bounds: Mapping[str, tuple[float, float]]) -> bool:
    return all(low <= float(location[name]) <= high for name, (low, high) in bounds.items())


def _shifted(
    point: FixedPoint, found: FixedPoints, bounds: Mapping[str, tuple[float, float]]
) -> list[dict[str, float]]:
    if not found.periods:
        return []
    values = []
    for name, (low, high) in bounds.items():
        at = float(point.location[name])
        if name in found.periods:
            period = float(found.periods[name])
            slack = _SAME * (high - low)
            turns = range(
                math.ceil((low - slack - at) / period), math.floor((high + slack - at) / period) + 1
            )
            values.append([at + k * period for k in turns])
        else:
            values.append([at] if low <= at <= high else [])
    return [dict(zip(bounds, each, strict=True)) for each in product(*values)]


def _same(one: Mapping, other: Mapping, bounds: Mapping[str, tuple[float, float]]) -> bool:
    return all(
        abs(float(one[name]) - float(other[name])) <= _SAME * (high - low)
        for name, (low, high) in bounds.items()
    )
