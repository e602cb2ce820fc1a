"""What the end of a run is: a fixed point with its certificate, an escape to infinity, or a plateau. Never a guess.

A small gradient proves nothing: far out all gradients are small. A fixed point is a root that Krawczyk's test proves,
next to the end of the run; an escape is a face of infinity that is proven to attract, with the end of the run next to
its own halt. With one weight (without flat ones) all fixed points are known and the side decides. The rescaled loss
has its own proofs: Euler's identity (`growth`), and terms that lower each other (`falling`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import sympy as sp

from fixedpoints.points import FixedPoint
from fixedpoints.softmax_regression.ends import Halt, halt_at
from fixedpoints.softmax_regression.faces import Face
from fixedpoints.softmax_regression.falling import limit_of_falling
from fixedpoints.softmax_regression.growth import unmet_growth
from fixedpoints.softmax_regression.nearby import REACH, fixed_point_near
from fixedpoints.softmax_regression.points import located
from fixedpoints.softmax_regression.problem import (
    Model,
    Reduced,
    Rows,
    joint,
    projection,
    reduced,
    system_of,
    vector,
)
from fixedpoints.softmax_regression.rays import Escape, along
from symbolic.softmax_regression.joint import JointRegression
from symbolic.softmax_regression.rules import flat_conditions

__all__ = ["Kind", "Verdict", "verdict"]

Kind = Literal["fixed point", "interpolation", "escape", "plateau", "moving"]

#: f off a face must be this small in sum before the end of a run is said to lie near the face.
_OUTSIDE = 0.01


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the end x of a descent or a flow is.

    Args:
        kind: "fixed point" or "interpolation" (one with f = b), both certified; "escape" to infinity; "plateau",
            saturated where the flow returns or nothing is proven; "moving", none of these.
        sentence: why.
        point: the certified fixed point (in the weights without flat ones), if there is an isolated one nearby.
        distance: to it, in those weights.
        ray: what the loss does outwards from x, for an escape or a plateau.
        limit: of the loss, for an escape.
        smallest: the smallest f_i at x, or entry of P at X.
    """

    kind: Kind
    sentence: str
    smallest: float
    point: FixedPoint | None = None
    distance: float | None = None
    ray: Escape | None = None
    limit: float | None = None

    @property
    def settled(self) -> bool:
        """Whether the run has ended at a certified fixed point."""
        return self.kind in ("fixed point", "interpolation")


def verdict(model: Model, end: Any, tolerance: float = 1e-6) -> Verdict:
    """Whether a run has settled, escapes or lies on a plateau.

    Args:
        model: a vector or matrix problem with rational data, u = exp and no ridge.
        end: x, as d numbers, by weight name, or a run with a variable for each weight (its last state is taken), or
            with the array `w`, as `odesys.simulation.descend` returns it; X also as d1 rows of d2 numbers.
        tolerance: how near to a certified root x must be, relative to 1 + |x|.
    Raises:
        TypeError, ValueError: the model has no numbers, or the end has another length or is not finite; the
            tolerance is not between 0 and 0.1.
    """
    core = reduced(joint(model))
    if not 0 < tolerance <= REACH:
        raise ValueError(f"`tolerance` must lie between 0 and {REACH}; got {tolerance!r}.")
    x = vector("end", _last(model, end), model)
    if core.dim == 0:
        raise ValueError("The loss is constant: every point is a fixed point, and none is settled on.")
    y = core.drop(x)
    f = _probabilities(core.problem, y)
    smallest = _smallest(f)
    met = _met_along_shifts(core.problem, y, smallest, tolerance)
    if met is not None:
        return met
    if core.dim == 1:
        return _on_a_line(core, y, f, tolerance)
    near = fixed_point_near(system_of(core.problem), y)
    if near is None:
        nothing = Verdict("moving", "no fixed point is proven nearby, and f is not near a face", smallest)
        return _without_rest(core.problem, y, smallest) or _far_out(core.problem, y, f) or nothing
    gap = _distance(near, y)
    if gap <= tolerance * _size(y):
        return _rested(core.problem, near, y, smallest)
    told = (
        f"a certified fixed point ({near.stability}) lies at a distance of {gap:.3g}, "
        f"more than `tolerance` = {tolerance:g} allows"
    )
    return Verdict("moving", told, smallest, near, gap)


def _on_a_line(core: Reduced, y: sp.Matrix, f: Sequence[np.ndarray], tolerance: float) -> Verdict:
    """One weight: all fixed points are known, and between them the flow has one direction."""
    problem = core.problem
    found = located(core)
    smallest, name = _smallest(f), problem.weights[0].name
    for point in found.points:
        if _distance(point, y) <= tolerance * _size(y):
            return _rested(problem, point, y, smallest)
    if found.certificate.kind != "complete":
        return Verdict("moving", f"{found.certificate}", smallest)
    above = [p for p in found.points if p.location[name] > y[0]]
    # The direction of the flow far out on the right, turned round at each simple point on the way to y.
    right = sp.Matrix([1])
    upwards = along(problem, right).attracts ^ (sum(_turns(p) for p in above) % 2 == 1)
    ahead = above if upwards else [p for p in found.points if p.location[name] < y[0]]
    forwards = right if upwards else -right
    if not ahead:
        ray = along(problem, forwards, y)
        told = f"no fixed point lies ahead: {ray}"
        return Verdict("escape", told, smallest, ray=ray, limit=float(ray.limit))
    target = ahead[0] if upwards else ahead[-1]
    gap = _distance(target, y)
    told = f"the flow heads for the certified fixed point at {target.location[name]:.8g}, {gap:.3g} away"
    if _mass(f) - _mass(f, Face(problem, -forwards).rows) < _OUTSIDE:
        behind = along(problem, -forwards, y)
        return Verdict("plateau", f"{told}; behind it, {behind}", smallest, target, gap, behind)
    return Verdict("moving", told, smallest, target, gap)


def _turns(point: FixedPoint) -> bool:
    """Whether the flow has opposite directions on the two sides of a point."""
    return point.attracts is None or point.attracts[0] == point.attracts[1]


def _met_along_shifts(
    problem: JointRegression, y: sp.Matrix, smallest: float, tolerance: float
) -> Verdict | None:
    """The rescaled loss where A_p v = t_p 1 for some v: it vanishes on x + c v with x, so that no root is isolated."""
    onto = projection(flat_conditions(problem.blocks, "normalized"))
    if problem.normalization != "rescaled" or not any(onto):
        return None
    try:
        best = sp.Matrix(list(problem.interpolation().values()))
    except ValueError:
        return None
    gap = max(map(abs, (sp.eye(len(y)) - onto) * (y - best).evalf(30)))
    if gap > tolerance * _size(y):
        return None
    told = f"f = b on an affine set of dimension {onto.rank()} at a distance of {float(gap):.3g}"
    return Verdict("interpolation", told, smallest, distance=float(gap))


def _rested(problem: JointRegression, point: FixedPoint, y: sp.Matrix, smallest: float) -> Verdict:
    gap = _distance(point, y)
    told = f"a certified fixed point ({point.stability}) at a distance of {gap:.3g}"
    try:
        best = problem.interpolation()
    except ValueError:
        best = None
    bounds = point.enclosure or {}
    if best is not None and all(bounds[s.name][0] <= best[s] <= bounds[s.name][1] for s in problem.weights):
        return Verdict("interpolation", f"{told}, where f = b", smallest, point, gap)
    return Verdict("fixed point", told, smallest, point, gap)


def _far_out(problem: JointRegression, y: sp.Matrix, f: Sequence[np.ndarray]) -> Verdict | None:
    """What a saturated end is: f lives on some rows, those that win in the direction of y across them."""
    logits = [np.array(block * y, dtype=float).ravel() for block in problem.blocks]
    below = [s.max() - s for s in logits]
    for cut in np.unique(np.concatenate(below)):
        rows = tuple(tuple(np.flatnonzero(gap <= cut).tolist()) for gap in below)
        if _mass(f) - _mass(f, rows) > _OUTSIDE:
            continue
        face = Face(problem, _across(problem, rows, y))
        if face.rows == rows and face.gaps:
            return _at_face(face, y, _smallest(f))
    return None


def _across(problem: JointRegression, rows: Rows, y: sp.Matrix) -> sp.Matrix:
    """y projected on the directions in which these rows of each A_p tie."""
    ties = [
        A.row(i) - A.row(chosen[0]) for A, chosen in zip(problem.blocks, rows, strict=True) for i in chosen
    ]
    return projection(sp.Matrix.vstack(*ties)) * y


def _at_face(face: Face, y: sp.Matrix, smallest: float) -> Verdict | None:
    """The verdict near a face; None where its own problem is not at rest near y."""
    v = face.direction
    ray = along(face.problem, v / max(abs(entry) for entry in v), y)
    if face.problem.normalization == "rescaled":
        return _rescaled(face, ray, y, smallest)
    halt: Halt | None = None
    if face.is_vertex:
        halt = halt_at(face)
    elif rest := fixed_point_near(system_of(face.inside.problem), face.inside.drop(y)):
        halt = halt_at(face, rest)
    if halt is None:
        return Verdict("moving", f"near {face}, whose own problem is not at rest here", smallest, ray=ray)
    if halt.behaviour == "attracts" and halt.is_minimum:
        told = f"{face} attracts: f decays off it ({_slopes(halt)}); {ray}"
        return Verdict("escape", told, smallest, ray=ray, limit=halt.loss)
    told = f"saturated at {face}, which {_WORDS[halt.behaviour]} ({_slopes(halt)})"
    return Verdict("plateau", told, smallest, ray=ray)


def _rescaled(face: Face, ray: Escape, y: sp.Matrix, smallest: float) -> Verdict:
    limit = limit_of_falling(face.problem, face.direction, y)
    if limit is not None:
        told = f"proven to fall to {limit:.6g} towards {face}: the terms that lead lower each other; {ray}"
        return Verdict("escape", told, smallest, ray=ray, limit=limit)
    told = f"near {face}, where nothing is proven for the rescaled loss; {ray}"
    return Verdict("plateau", told, smallest, ray=ray)


def _without_rest(problem: JointRegression, y: sp.Matrix, smallest: float) -> Verdict | None:
    """An escape by Euler's identity, wherever x is; None if the identity does not force it."""
    if problem.normalization != "rescaled" or (v := unmet_growth(problem)) is None:
        return None
    ray = along(problem, -v / max(abs(entry) for entry in v), y)
    told = f"by Euler's identity the loss goes to 0 from everywhere, and f = b nowhere; {ray}"
    return Verdict("escape", told, smallest, ray=ray, limit=0.0)


_WORDS = {
    "repels": "repels: the flow returns, slowly",
    "attracts": "attracts, but at no minimum of its own problem",
    "mixed": "attracts in some directions and repels in others",
    "undecided": "is not decided",
}


def _slopes(halt: Halt) -> str:
    return ", ".join(f"dL/df_{j} = {slope:.4g}" for j, slope in halt.slopes.items())


def _last(model: Model, end: Any) -> Any:
    """The last state of a run, or the point itself."""
    if not isinstance(end, Mapping):
        return end
    if "w" in end:
        return np.asarray(end["w"])[-1].tolist()
    missing = [x.name for x in model.weights if x.name not in end]
    if missing:
        raise ValueError(f"`end` lacks the weights {missing}; it has {list(end)}.")
    return {x.name: _final(end[x.name]) for x in model.weights}


def _final(values: Any) -> Any:
    """The last entry of an array, or the number itself."""
    return float(np.asarray(values)[-1]) if np.ndim(values) else values


def _probabilities(problem: JointRegression, y: sp.Matrix) -> list[np.ndarray]:
    """f_p at y."""
    found = []
    for block in problem.blocks:
        s = np.array(block * y, dtype=float).ravel()
        u = np.exp(s - s.max())
        found.append(u / u.sum())
    return found


def _smallest(f: Sequence[np.ndarray]) -> float:
    return float(min(part.min() for part in f))


def _mass(f: Sequence[np.ndarray], rows: Rows | None = None) -> float:
    """The sum of all f_i, or of those of some rows."""
    chosen = f if rows is None else [part[list(some)] for part, some in zip(f, rows, strict=True)]
    return float(sum(part.sum() for part in chosen))


def _distance(point: FixedPoint, y: sp.Matrix) -> float:
    return max(abs(float(value) - float(at)) for value, at in zip(point.location.values(), y, strict=True))


def _size(y: Sequence) -> float:
    return 1 + max(abs(float(value)) for value in y)
