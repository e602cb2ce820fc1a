"""Separatrices of a planar flow: stable and unstable manifolds of saddles, traced from eigenvectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fixedpoints.pictures.direction_field import DirectionField
from fixedpoints.points import FixedPoint
from odesys.integrators.bundle import Line, trace

__all__ = ["Separatrix", "separatrices"]

#: Where tracing starts, from the saddle along the eigenvector, in sizes of the window. The manifold bends
#: away from the vector by the square of this, and lines beside it come closer to it from there on.
_OFFSET = 1e-5
#: How far a branch is traced, in sizes of the window, and how far outside it.
_LENGTH, _MARGIN = 8.0, 0.5
_RESOLUTION, _STEP = 5e-3, 0.02
#: Where the drift on a centre manifold is looked at, from the fixed point, in sizes of the window.
_BESIDE = 1e-2
#: How long states there relax on to the manifold, in times of the strong eigenvalue: e^-16 is 1e-7.
_RELAXED = 16.0
#: A branch ends at a fixed point only after it has left its saddle behind by this.
_AWAY = 2e-2


@dataclass(frozen=True, eq=False)
class Separatrix:
    """One branch of the stable or unstable manifold of a saddle.

    `kind` is "stable" or "unstable". `points` (2, k) are states in the direction of time: from the saddle for
    an unstable branch, towards it for a stable one. A branch is followed half a window beyond the window.
    """

    saddle: FixedPoint
    kind: str
    points: np.ndarray


def separatrices(field: DirectionField, points: Sequence[FixedPoint]) -> tuple[Separatrix, ...]:
    """The branches of all saddles among the points.

    Of a saddle-node they are the manifold of its non-zero eigenvalue and the way by which it is left (or, if
    that eigenvalue is positive, reached), which bound its sectors.
    """
    rays = [(point, *ray) for point in points for ray in _rays(field, point)]
    if not rays:
        return ()
    centres = np.stack([_units(field, point) for point, _, _ in rays], axis=1)
    starts = np.stack([start for _, start, _ in rays], axis=1)
    lengths = np.array([_LENGTH if outward else -_LENGTH for _, _, outward in rays])
    left = np.zeros(len(rays), dtype=bool)

    def halt(place: np.ndarray, units: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        del slopes
        left[place] |= np.hypot(*(units - centres[:, place])) > _AWAY
        outside = np.any((units < -_MARGIN) | (units > 1 + _MARGIN), axis=0)
        return outside | (left[place] & field.arrived(units))

    lines = trace(field.directions, starts, lengths, halt, largest=_STEP)
    return tuple(
        Separatrix(point, "unstable" if outward else "stable", _states(field, centre, line, outward))
        for (point, _, outward), centre, line in zip(rays, centres.T, lines, strict=True)
    )


def _states(field: DirectionField, centre: np.ndarray, line: Line, outward: bool) -> np.ndarray:
    units = np.column_stack([centre, line.evenly(_RESOLUTION)])
    return field.window.to_state(units if outward else units[:, ::-1])


def _units(field: DirectionField, point: FixedPoint) -> np.ndarray:
    return field.window.to_unit(np.array([float(point.location[x.name]) for x in field.window.state]))


def _rays(field: DirectionField, point: FixedPoint) -> list[tuple[np.ndarray, bool]]:
    """States (2,) on the separatrices right beside a point, and whether the flow leads outward there."""
    if point.dims not in ((1, 0, 1), (0, 1, 1), (1, 1, 0)):
        return []
    at = _units(field, point)
    values, vectors = np.linalg.eig(field.jacobian(at))
    fast, slow = np.argsort(-np.abs(values.real))
    strong, weak = vectors[:, fast].real, vectors[:, slow].real
    outward = bool(values[fast].real > 0)
    strongly = [(at + side * _OFFSET * strong, outward) for side in (1, -1)]
    if point.dims == (1, 0, 1):
        weakly = [(at + side * _OFFSET * weak, not outward) for side in (1, -1)]
    else:
        weakly = [ray for ray in _drift(field, at, strong, weak, values[fast].real) if ray[1] != outward]
    return [*strongly, *weakly] if weakly else []


def _drift(
    field: DirectionField, at: np.ndarray, strong: np.ndarray, weak: np.ndarray, rate: float
) -> list[tuple[np.ndarray, bool]]:
    """States on the centre manifold of an eigenvalue zero, and whether the flow leads outward there.

    States beside the fixed point follow the strong direction on to the manifold, backward in time if it repels;
    the slow velocity that is left there tells.
    """
    sides = np.stack([weak, -weak], axis=1)
    times = np.full(2, -np.sign(rate) * _RELAXED / abs(rate))
    lines = trace(field.rates, at[:, None] + _BESIDE * sides, times, _never, tolerance=1e-10, smallest=1e-14)
    across = np.array([strong[1], -strong[0]])  # measures along the weak direction alone
    slow = (across @ field.rates(lines.ends)) * (across @ sides)
    size = abs(rate) * _BESIDE * (across @ weak) ** 2
    return [(end, bool(s > 0)) for end, s in zip(lines.ends.T, slow, strict=True) if abs(s) > 1e-8 * size]


def _never(place: np.ndarray, units: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    return np.zeros(place.shape, dtype=bool)
