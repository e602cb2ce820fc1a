"""What the end of a run is: a fixed point with its certificate, an escape to infinity, or a plateau. Never a guess.

A small gradient proves nothing: far out all gradients are small. A fixed point is a root that Krawczyk's test proves,
next to the end of the run; an escape is a face of infinity that is proven to attract, with the end of the run next to
its own halt. With one weight (without flat ones) all fixed points are known and the side decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import sympy as sp
from flint import arb, ctx

from fixedpoints.boxes.equations import equations_of
from fixedpoints.boxes.krawczyk import certified
from fixedpoints.newton import vanishing
from fixedpoints.points import FixedPoint, NotAFixedPointError
from fixedpoints.softmax_regression.ends import Halt, halt_at
from fixedpoints.softmax_regression.faces import Face
from fixedpoints.softmax_regression.points import located
from fixedpoints.softmax_regression.problem import (
    Model,
    Reduced,
    Rows,
    joint,
    losses,
    place_of,
    reduced,
    system_of,
    vector,
)
from fixedpoints.softmax_regression.rays import Escape, along
from fixedpoints.stability import classify
from symbolic.softmax_regression.joint import JointRegression

__all__ = ["Kind", "Verdict", "verdict"]

Kind = Literal["fixed point", "interpolation", "escape", "plateau", "moving"]

#: f off a face must be this small in sum before the end of a run is said to lie near the face.
_OUTSIDE = 0.01
#: How far Newton's method may lead, relative to 1 + |x|, and still be about this point.
_REACH = 0.1
_STEPS = 40
_BITS = 200


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
    if not 0 < tolerance <= _REACH:
        raise ValueError(f"`tolerance` must lie between 0 and {_REACH}; got {tolerance!r}.")
    x = vector("end", _last(model, end), model)
    if core.dim == 0:
        raise ValueError("The loss is constant: every point is a fixed point, and none is settled on.")
    y = core.drop(x)
    f = _probabilities(core.problem, y)
    if core.dim == 1:
        return _on_a_line(core, y, f, tolerance)
    smallest = _smallest(f)
    near = _root(core.problem, y)
    if near is None:
        nothing = Verdict("moving", "no fixed point is proven nearby, and f is not near a face", smallest)
        return _far_out(core.problem, y, f) or nothing
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


def _root(problem: JointRegression, y: sp.Matrix) -> FixedPoint | None:
    """The fixed point to which Newton's method leads nearby, with Krawczyk's proof; None if there is none."""
    system = system_of(problem)
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
    names = [x.name for x in problem.weights]
    bounds = dict(zip(names, zero.bounds, strict=True))
    try:
        return classify(
            system, dict(zip(names, zero.location, strict=True)), enclosure=bounds, multiplicity=1
        )
    except NotAFixedPointError:
        return None


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
    return _projection(sp.Matrix.vstack(*ties)) * y


def _projection(conditions: sp.MatrixBase) -> sp.Matrix:
    """The orthogonal projection on the null space."""
    basis = conditions.nullspace()
    if not basis:
        return sp.zeros(conditions.cols)
    N = sp.Matrix.hstack(*basis)
    return N * (N.T * N).LUsolve(N.T)


def _at_face(face: Face, y: sp.Matrix, smallest: float) -> Verdict | None:
    """The verdict near a face; None where its own problem is not at rest near y."""
    v = face.direction
    ray = along(face.problem, v / max(abs(entry) for entry in v), y)
    if face.problem.normalization == "rescaled":
        return _rescaled(face, ray, y, smallest)
    halt: Halt | None = None
    if face.is_vertex:
        halt = halt_at(face)
    elif rest := _root(face.inside.problem, face.inside.drop(y)):
        halt = halt_at(face, rest)
    if halt is None:
        return Verdict("moving", f"near {face}, whose own problem is not at rest here", smallest, ray=ray)
    if halt.behaviour == "attracts" and halt.is_minimum:
        told = f"{face} attracts: every D_j > 0 ({_slopes(halt)}), or f = b there; {ray}"
        return Verdict("escape", told, smallest, ray=ray, limit=halt.loss)
    told = f"saturated at {face}, which {_WORDS[halt.behaviour]} ({_slopes(halt)})"
    return Verdict("plateau", told, smallest, ray=ray)


def _rescaled(face: Face, ray: Escape, y: sp.Matrix, smallest: float) -> Verdict:
    limit = _limit_of_falling(face, y)
    if limit is not None:
        return Verdict("escape", f"all u go to zero towards {face}; {ray}", smallest, ray=ray, limit=limit)
    told = f"near {face}, where nothing is proven for the rescaled loss; {ray}"
    return Verdict("plateau", told, smallest, ray=ray)


def _limit_of_falling(face: Face, y: sp.Matrix) -> float | None:
    """The limit of the rescaled loss where some A_p are proven to lose all their u; None if that is not proven.

    Far out each of these has the loss C_p u_k^2, C_p > 0, of its winner k, so that the flow follows -a_k, without
    what would disturb the other A_p, which v leaves alone and which must be at rest at a minimum near y. It stays
    there if each such -a_k lowers all winners' logits, the losers' no less, its own strictly.
    """
    problem, falling, still = face.problem, [], []
    for p, (A, rows) in enumerate(zip(problem.blocks, face.rows, strict=True)):
        heights = A * face.direction
        alike = all(A.row(i) == A.row(rows[0]) for i in rows)
        fitted = all(b == (sp.Rational(i in rows) / len(rows)) for i, b in enumerate(problem.targets[p]))
        if not any(heights):
            still.append(p)
        elif alike and not fitted and heights[rows[0]] < 0:
            falling.append(p)
        else:
            return None
    limit = _limit_at_rest(_chosen(problem, still), y) if still else 0.0
    kept = [sp.zeros(1, len(problem.weights)), *(problem.blocks[p] for p in still)]
    onto = _projection(sp.Matrix.vstack(*map(sp.Matrix, kept)))
    winner = {p: onto * problem.blocks[p].row(face.rows[p][0]).T for p in falling}
    for p, w in winner.items():
        lost = [onto * problem.blocks[p].row(j).T - w for q, j in face.gaps if q == p]
        if (
            not any(w)
            or any(w.dot(other) < 0 for other in winner.values())
            or any(gap.dot(other) < 0 for gap in lost for other in winner.values())
            or any(gap.dot(w) == 0 for gap in lost)
        ):
            return None
    return limit


def _limit_at_rest(problem: JointRegression, y: sp.Matrix) -> float | None:
    """The loss at the certified minimum near y of a part of the problem; None if there is none."""
    core = reduced(problem)
    rest = _root(core.problem, core.drop(y))
    if rest is None or rest.dims is None or rest.dims[:2] != (0, 0):
        return None
    with ctx.workprec(_BITS):
        loss = sum(losses(core.problem, place_of(rest, core.problem)), arb(0))
        return 0.0 if loss.contains(0) else float(loss)


def _chosen(problem: JointRegression, parts: Sequence[int]) -> JointRegression:
    """The sum of some of the regressions."""
    blocks, targets, places = (
        tuple(entries[p] for p in parts) for entries in (problem.blocks, problem.targets, problem.places)
    )
    return replace(problem, blocks=blocks, targets=targets, places=places)


_WORDS = {
    "repels": "repels: the flow returns, slowly",
    "attracts": "attracts, but at no minimum of its own problem",
    "mixed": "attracts in some directions and repels in others",
    "undecided": "is not decided",
}


def _slopes(halt: Halt) -> str:
    return ", ".join(f"D_{j} = {slope:.4g}" for j, slope in halt.slopes.items())


def _last(model: Model, end: Any) -> Any:
    """The last state of a run, or the point itself."""
    if not isinstance(end, Mapping):
        return end
    if "w" in end:
        return np.asarray(end["w"])[-1].tolist()
    return {x.name: _final(end[x.name]) if x.name in end else math.nan for x in model.weights}


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
