"""What the end of a run is: a fixed point with its certificate, an escape to infinity, or a plateau. Never a guess.

A small gradient proves nothing: far out all gradients are small. A fixed point is a root that Krawczyk's test proves,
next to the end of the run; an escape is a face of infinity that is proven to attract, with the end of the run next to
its own halt. With one weight all fixed points are known and the side decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import sympy as sp

from fixedpoints.boxes.equations import equations_of
from fixedpoints.boxes.krawczyk import certified
from fixedpoints.newton import vanishing
from fixedpoints.points import FixedPoint, NotAFixedPointError
from fixedpoints.softmax_regression.ends import Halt, halt_at
from fixedpoints.softmax_regression.points import points
from fixedpoints.softmax_regression.problem import check, on_face, reduced, system_of, vector
from fixedpoints.softmax_regression.rays import Escape, escape
from fixedpoints.stability import classify
from symbolic.softmax_regression.vector import SoftmaxRegression

__all__ = ["Kind", "Verdict", "verdict"]

Kind = Literal["fixed point", "interpolation", "escape", "plateau", "moving"]

#: f off a face must be this small in sum before the end of a run is said to lie near the face.
_OUTSIDE = 0.01
#: How far Newton's method may lead, relative to 1 + |x|, and still be about this point.
_REACH = 0.1
_STEPS = 40


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the end x of a descent or a flow is.

    Args:
        kind: "fixed point" or "interpolation" (one with f = b), both certified; "escape" to infinity; "plateau",
            saturated where the flow returns or nothing is proven; "moving", none of these.
        sentence: why.
        point: the certified fixed point (in the weights without flat ones), if there is one nearby.
        distance: to it, in those weights.
        ray: what the loss does outwards from x, for an escape or a plateau.
        limit: of the loss, for an escape.
        smallest: min_i f_i at x.
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


def verdict(model: SoftmaxRegression, end: Any, tolerance: float = 1e-6) -> Verdict:
    """Whether a run has settled, escapes or lies on a plateau.

    Args:
        model: a vector problem with rational A and b, u = exp and no ridge.
        end: x, as d numbers, by weight name, or a run with a variable for each weight (its last state is taken), or
            with the array `w`, as `odesys.simulation.descend` returns it.
        tolerance: how near to a certified root x must be, relative to 1 + |x|.
    Raises:
        TypeError, ValueError: the model has no numbers, or the end has another length or is not finite; the
            tolerance is not between 0 and 0.1.
    """
    check(model)
    if not 0 < tolerance <= _REACH:
        raise ValueError(f"`tolerance` must lie between 0 and {_REACH}; got {tolerance!r}.")
    x = vector("end", _last(model, end), model)
    core = reduced(model)
    if core.dim == 0:
        raise ValueError("The loss is constant: every point is a fixed point, and none is settled on.")
    y = core.drop(x)
    f = _probabilities(core.model, y)
    if core.dim == 1:
        return _on_a_line(core.model, y, float(f.min()), tolerance)
    near = _root(core.model, y)
    if near is None:
        nothing = Verdict(
            "moving", "no fixed point is proven nearby, and f is not near a face", float(f.min())
        )
        return _far_out(core.model, y, f) or nothing
    gap = _distance(near, y)
    if gap <= tolerance * _size(y):
        return _rested(core.model, near, y, float(f.min()))
    told = (
        f"a certified fixed point ({near.stability}) lies at a distance of {gap:.3g}, "
        f"more than `tolerance` = {tolerance:g} allows"
    )
    return Verdict("moving", told, float(f.min()), near, gap)


def _on_a_line(model: SoftmaxRegression, y: sp.Matrix, smallest: float, tolerance: float) -> Verdict:
    """One weight: all fixed points are known, and between them the flow has one direction."""
    stops = points(model)
    name = model.x[0].name
    for point in stops.points:
        if _distance(point, y) <= tolerance * _size(y):
            return _rested(model, point, y, smallest)
    if stops.certificate.kind != "complete":
        return Verdict("moving", f"{stops.certificate}", smallest)
    above = [p for p in stops.points if p.location[name] > y[0]]
    # The direction of the flow far out on the right, turned round at each simple point on the way to y.
    upwards = escape(model, [1]).attracts ^ (sum(_turns(p) for p in above) % 2 == 1)
    ahead = above if upwards else [p for p in stops.points if p.location[name] < y[0]]
    sign = 1 if upwards else -1
    ray = escape(model, [sign], [y[0]])
    if not ahead:
        told = f"no fixed point lies ahead: {ray}"
        return Verdict("escape", told, smallest, ray=ray, limit=float(ray.limit))
    target = ahead[0] if upwards else ahead[-1]
    gap = _distance(target, y)
    outer = escape(model, [-sign], [y[0]])
    saturated = 1 - float(_probabilities(model, y).max()) < _OUTSIDE
    told = f"the flow heads for the certified fixed point at {target.location[name]:.8g}, {gap:.3g} away"
    if saturated:
        return Verdict("plateau", f"{told}; behind it, {outer}", smallest, target, gap, outer)
    return Verdict("moving", told, smallest, target, gap)


def _turns(point: FixedPoint) -> bool:
    """Whether the flow has opposite directions on the two sides of a point."""
    return point.attracts is None or point.attracts[0] == point.attracts[1]


def _rested(model: SoftmaxRegression, point: FixedPoint, y: sp.Matrix, smallest: float) -> Verdict:
    gap = _distance(point, y)
    told = f"a certified fixed point ({point.stability}) at a distance of {gap:.3g}"
    try:
        best = model.interpolation()
    except ValueError:
        best = None
    bounds = point.enclosure or {}
    if best is not None and all(bounds[s.name][0] <= best[s] <= bounds[s.name][1] for s in model.x):
        return Verdict("interpolation", f"{told}, where f = b", smallest, point, gap)
    return Verdict("fixed point", told, smallest, point, gap)


def _root(model: SoftmaxRegression, y: sp.Matrix) -> FixedPoint | None:
    """The fixed point to which Newton's method leads nearby, with Krawczyk's proof; None if there is none."""
    system = system_of(model)
    slope, start = vanishing(system), np.array(y, dtype=float).ravel()
    at = start
    for _ in range(_STEPS):
        try:
            step = np.linalg.solve(slope.slope(at[:, None])[:, :, 0], slope.value(at[:, None])[:, 0])
        except np.linalg.LinAlgError:
            return None
        at = at - step
        if not np.all(np.abs(at - start) <= _REACH * (1 + np.abs(start).max())):
            return None
        if np.abs(step).max() <= 1e-14 * (1 + np.abs(at).max()):
            break
    zero = certified(equations_of(system), tuple(map(float, at)))
    if zero is None:
        return None
    names = [x.name for x in model.x]
    bounds = dict(zip(names, zero.bounds, strict=True))
    try:
        return classify(
            system, dict(zip(names, zero.location, strict=True)), enclosure=bounds, multiplicity=1
        )
    except NotAFixedPointError:
        return None


def _far_out(model: SoftmaxRegression, y: sp.Matrix, f: np.ndarray) -> Verdict | None:
    """What a saturated end is: f lives on some rows, those that win in the direction of y across them."""
    order = np.argsort(-f, kind="stable")
    for count in range(1, len(order)):
        face = sorted(int(i) for i in order[:count])
        if float(f[order[count:]].sum()) > _OUTSIDE:
            continue
        v = _across(model, face, y)
        if v is not None:
            return _at_face(model, face, v, y, float(f.min()))
    return None


def _across(model: SoftmaxRegression, face: list[int], y: sp.Matrix) -> sp.Matrix | None:
    """y projected on the directions in which the rows of a face tie, if they win there; None otherwise."""
    ties = [model.A.row(i) - model.A.row(face[0]) for i in face[1:]]
    basis = (
        sp.Matrix(ties).nullspace() if ties else [sp.eye(model.A.cols).col(k) for k in range(model.A.cols)]
    )
    if not basis:
        return None
    N = sp.Matrix.hstack(*basis)
    v = sp.Matrix(N * (N.T * N).LUsolve(N.T * y))
    wins = all(
        ((model.A.row(face[0]) - model.A.row(j)) * v)[0] > 0 for j in range(model.A.rows) if j not in face
    )
    return v if wins else None


def _at_face(
    model: SoftmaxRegression, face: list[int], v: sp.Matrix, y: sp.Matrix, smallest: float
) -> Verdict | None:
    """The verdict near a face; None where its own problem is not at rest near y."""
    ray = escape(model, list(v / max(abs(entry) for entry in v)), list(y))
    vertex = all(model.A.row(i) == model.A.row(face[0]) for i in face)
    rows = f"the {'vertex' if vertex else 'face'} of rows {[i + 1 for i in face]}"
    if model.normalization == "rescaled":
        return _rescaled(model, face, vertex, ray, rows, smallest)
    if vertex:
        halt: Halt | None = halt_at(model, face, v)
    else:
        inside = reduced(on_face(model, face))
        rest = _root(inside.model, inside.drop(y))
        halt = None if rest is None else halt_at(model, face, v, (inside, rest))
    if halt is None:
        return Verdict("moving", f"near {rows}, whose own problem is not at rest here", smallest, ray=ray)
    if halt.behaviour == "attracts" and halt.is_minimum:
        told = f"{rows} attracts: every D_j > 0 ({_slopes(halt)}), or f = b there; {ray}"
        return Verdict("escape", told, smallest, ray=ray, limit=halt.loss)
    told = f"saturated at {rows}, which {_WORDS[halt.behaviour]} ({_slopes(halt)})"
    return Verdict("plateau", told, smallest, ray=ray)


def _rescaled(
    model: SoftmaxRegression, face: list[int], vertex: bool, ray: Escape, rows: str, smallest: float
) -> Verdict | None:
    """Escapes that are proven: all logits fall along -a_k, in which row k wins; Lr -> 0 with alpha -> 0."""
    k = model.A.row(face[0])
    inwards = [(model.A.row(j) * k.T)[0] - (k * k.T)[0] for j in range(model.A.rows) if j not in face]
    if vertex and any(k) and ray.attracts and ray.limit == 0 and all(gap > 0 for gap in inwards):
        return Verdict("escape", f"all u go to zero towards {rows}; {ray}", smallest, ray=ray, limit=0.0)
    return Verdict(
        "plateau", f"near {rows}, where nothing is proven for the rescaled loss; {ray}", smallest, ray=ray
    )


_WORDS = {
    "repels": "repels: the flow returns, slowly",
    "attracts": "attracts, but at no minimum of its own problem",
    "mixed": "attracts in some directions and repels in others",
    "undecided": "is not decided",
}


def _slopes(halt: Halt) -> str:
    return ", ".join(f"D_{j} = {slope:.4g}" for j, slope in halt.slopes.items())


def _last(model: SoftmaxRegression, end: Any) -> Any:
    """The last state of a run, or the point itself."""
    if not isinstance(end, Mapping):
        return end
    if "w" in end:
        return np.asarray(end["w"])[-1].tolist()
    return {x.name: _final(end[x.name]) if x.name in end else math.nan for x in model.x}


def _final(values: Any) -> Any:
    """The last entry of an array, or the number itself."""
    return float(np.asarray(values)[-1]) if np.ndim(values) else values


def _probabilities(model: SoftmaxRegression, y: sp.Matrix) -> np.ndarray:
    s = np.array(model.A * y, dtype=float).ravel()
    u = np.exp(s - s.max())
    return u / u.sum()


def _distance(point: FixedPoint, y: sp.Matrix) -> float:
    return max(abs(float(value) - float(at)) for value, at in zip(point.location.values(), y, strict=True))


def _size(y: Sequence) -> float:
    return 1 + max(abs(float(value)) for value in y)
