"""Planar systems whose fixed points are known by hand, for pictures that must not depend on how points are found."""

from dataclasses import dataclass

import numpy as np
import sympy as sp

from fixedpoints.points import Certificate, Component, FixedPoint, FixedPoints
from odesys.system import ODESystem
from symbolic.field import VectorField

x, y = sp.symbols("x y")

DIMS = {
    "saddle": (1, 0, 1),
    "stable node": (0, 0, 2),
    "unstable node": (2, 0, 0),
    "unstable focus": (2, 0, 0),
    "centre": (0, 2, 0),
    "saddle-node": (0, 1, 1),
}


@dataclass(frozen=True, eq=False)
class Planar:
    """A system, the box in which it is looked at, and its fixed points there."""

    system: ODESystem
    box: dict
    points: FixedPoints


def planar(rhs, xs, ys, points=(), components=()):
    """Points are triples (x, y, what the point is)."""
    known = tuple(FixedPoint({"x": a, "y": b}, (), kind, dims=DIMS[kind]) for a, b, kind in points)
    answer = FixedPoints(known, tuple(components), Certificate("unknown", "by hand", len(known)))
    return Planar(ODESystem(VectorField((x, y), rhs)), {"x": xs, "y": ys}, answer)


#: Case portrait-separatrix (scipy-dev thread 3D7RHEBV2CPGLCR4UPN4CYQPRAC5KZ3J).
COMPETITION = planar(
    (x * (3 - x - 2 * y), y * (2 - y - x)),
    (0, 4),
    (0, 4),
    [(0.0, 0.0, "unstable node"), (0.0, 2.0, "stable node"), (1.0, 1.0, "saddle"), (3.0, 0.0, "stable node")],
)
VAN_DER_POL = planar((y, (1 - x**2) * y - x), (-3, 3), (-3, 3), [(0.0, 0.0, "unstable focus")])
PENDULUM = planar(
    (y, -sp.sin(x)),
    (-7, 7),
    (-3, 3),
    [(k * np.pi, 0.0, "saddle" if k % 2 else "centre") for k in (-2, -1, 0, 1, 2)],
)
#: x y is conserved: x' = x g, y' = -y g.
LINE_OF_POINTS = planar(
    (x * (1 - x - y), -y * (1 - x - y)),
    (-1, 2),
    (-1, 2),
    [(0.0, 0.0, "saddle")],
    [Component((x + y - 1,), 1)],
)
POLE = planar((y / (1 + x + y), x - y**2), (-2, 2), (-2, 2), [(0.0, 0.0, "saddle")])
#: Defined for x >= -1 and y > -1. At (1, 0) the Jacobian is upper triangular with -sqrt 2 and 1/2.
UNDEFINED = planar(
    (sp.sqrt(x + 1) * (1 - x - y), y * (x - sp.Rational(1, 2) + sp.log(y + 1))),
    (-2, 2),
    (-2, 2),
    [(1.0, 0.0, "saddle")],
)
#: x' = x^2: half-stable along x, attracting across.
SADDLE_NODE = planar((x**2, -y), (-1, 1), (-1, 1), [(0.0, 0.0, "saddle-node")])
