"""A fixed point next to a place: Newton's method leads there, Krawczyk's test proves it."""

from __future__ import annotations

import numpy as np
import sympy as sp

from fixedpoints.boxes.equations import equations_of
from fixedpoints.boxes.krawczyk import certified
from fixedpoints.newton import vanishing
from fixedpoints.points import FixedPoint, NotAFixedPointError
from fixedpoints.stability import classify
from odesys.system import ODESystem

__all__ = ["REACH", "fixed_point_near"]

#: How far Newton's method may lead, relative to 1 + |x|, and still be about this point.
REACH = 0.1
_STEPS = 40


def fixed_point_near(system: ODESystem, y: sp.MatrixBase) -> FixedPoint | None:
    """The fixed point to which Newton's method leads nearby, with a proven enclosure; None if there is none."""
    slope, start = vanishing(system), np.array(y, dtype=float).ravel()
    at = start
    for _ in range(_STEPS):
        try:
            step = np.linalg.solve(slope.slope(at[:, None])[:, :, 0], slope.value(at[:, None])[:, 0])
        except np.linalg.LinAlgError:
            return None
        at = at - step
        if not np.all(np.abs(at - start) <= REACH * (1 + np.abs(start).max())):
            return None
        if np.abs(step).max() <= 1e-14 * (1 + np.abs(at).max()):
            break
    zero = certified(equations_of(system), tuple(map(float, at)))
    if zero is None:
        return None
    names = system.field.names
    bounds = dict(zip(names, zero.bounds, strict=True))
    try:
        return classify(
            system, dict(zip(names, zero.location, strict=True)), enclosure=bounds, multiplicity=1
        )
    except NotAFixedPointError:
        return None
