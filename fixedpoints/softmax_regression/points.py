"""Every finite fixed point of a softmax regression, with the index sum and infinity as a second witness.

The field is polynomial in exp(x_1) ... exp(x_d) for rational A, so that `fixedpoints.find` answers for the whole
space. The second witness is Poincare and Hopf's: the indices of nondegenerate points, +1 for a minimum of the loss, -1
for a saddle, +1 for a maximum of two weights (-1 for one), sum to what infinity says,

    one weight     (out_+ + out_-)/2,   out = 1 where the loss rises outwards, -1 where it falls
    two weights    1 - (minima of faces that attract) + (maxima of faces that attract),   if all others repel
                   1 for the rescaled loss if it grows in every direction (`fans.grows_everywhere`)
    any number     0 for the rescaled loss if Euler's identity demands f = b, which is impossible (`growth`)

Weights are counted without flat directions. All this is about a sum of regressions, so of a matrix problem too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import sympy as sp
from flint import arb, ctx

from fixedpoints.arguments import seconds
from fixedpoints.finding import find
from fixedpoints.points import Certificate, FixedPoint, FixedPoints
from fixedpoints.softmax_regression.ends import all_ends
from fixedpoints.softmax_regression.fans import grows_everywhere
from fixedpoints.softmax_regression.growth import growth, unmet_growth
from fixedpoints.softmax_regression.problem import (
    Model,
    Reduced,
    as_ball,
    joint,
    losses,
    noun,
    place_of,
    probabilities,
    reduced,
    system_of,
)
from fixedpoints.softmax_regression.rays import along
from symbolic.conservation import FirstIntegral
from symbolic.errors import UndecidedError
from symbolic.softmax_regression.data import logarithmic_basis
from symbolic.softmax_regression.joint import JointRegression

__all__ = ["Interpolation", "Stops", "interpolation", "points"]

_BITS = 200

#: How far f may be from b in a numeric interpolation: rounding of the float targets and of their sum.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Interpolation:
    """A point with f = b (P = B), where both losses vanish.

    Args:
        location: weight -> expression, or float where it is numeric.
        exact: whether log b is proven to lie in range(A) + span(1); else `gap` is what the certificate says.
        gap: a proven bound of max |f - b| at the location; 0 if exact.
    """

    location: dict[str, sp.Expr | float]
    exact: bool
    gap: float


@dataclass(frozen=True, eq=False)
class Stops:
    """Where the flow of a softmax regression stops.

    Args:
        found: as `fixedpoints.find` says it, in the weights x with the flat ones at zero.
        losses: of each point.
        smallest: the smallest f_i (entry of P) at each point, which a plateau has not bounded below.
        flat: the conserved quantities v^T x (or <Y, X>) along which every point is a whole line; empty if none.
        interpolation: the point with f = b, or None; `no_interpolation` then says why.
        index_sum: of the points, None if one is degenerate.
        expected: what infinity says that it is, None where it does not; `witness` is the sentence.
    """

    found: FixedPoints
    losses: tuple[float, ...]
    smallest: tuple[float, ...]
    flat: tuple[FirstIntegral, ...]
    interpolation: Interpolation | None
    no_interpolation: str
    index_sum: int | None
    expected: int | None
    witness: str

    @property
    def points(self) -> tuple[FixedPoint, ...]:
        return self.found.points

    @property
    def certificate(self) -> Certificate:
        return self.found.certificate


def points(model: Model, budget: float = 60.0) -> Stops:
    """Every fixed point of the flow x' = -grad L, its loss, and two witnesses of completeness.

    Flat directions are taken out first and named by what they conserve.

    Args:
        model: a vector or matrix problem with rational data, u = exp and no ridge.
        budget: seconds for `fixedpoints.find`.
    Raises:
        TypeError, ValueError: the model has no numbers; or every direction is flat, so that the loss is constant.
    """
    joint(model)
    return _points(model, seconds(budget))


@lru_cache(maxsize=64)
def _points(model: Model, budget: float) -> Stops:
    core = reduced(joint(model))
    if core.dim == 0:
        raise ValueError("The loss is constant: every direction is flat, and all weights are fixed points.")
    found = located(core, budget)
    values = [_values(core.problem, point) for point in found.points]
    expected, witness = _infinity(core)
    try:
        fit, why = interpolation(model), ""
    except ValueError as reason:
        fit, why = None, str(reason)
    return Stops(
        replace(found, points=tuple(_lifted(point, core) for point in found.points)),
        tuple(loss for loss, _ in values),
        tuple(smallest for _, smallest in values),
        model.conserved,
        fit,
        why,
        _index_sum(found, core.dim),
        expected,
        witness,
    )


@lru_cache(maxsize=64)
def located(core: Reduced, budget: float = 60.0) -> FixedPoints:
    """The fixed points of a problem without flat directions; in doubt if infinity contradicts their indices."""
    found = find(system_of(core.problem), budget=budget)
    total, (expected, witness) = _index_sum(found, core.dim), _infinity(core)
    if None in (total, expected) or total == expected or found.certificate.kind != "complete":
        return found
    doubt = f"the indices sum to {total}, while infinity demands {expected}: {witness}"
    return replace(found, certificate=Certificate("unknown", doubt, len(found.points)))


def interpolation(model: Model) -> Interpolation:
    """The point with f = b (P = B): exact if the logarithms of b allow it, numeric with a proven gap for rounded b.

    Raises:
        ValueError: there is none, and why.
        UndecidedError: it could not be decided.
    """
    problem = joint(model)
    try:
        return Interpolation({x.name: value for x, value in problem.interpolation().items()}, True, 0.0)
    except UndecidedError:
        raise
    except ValueError as reason:
        rounded = _rounded(problem)
        if rounded is None or rounded.gap > _ROUNDING:
            raise ValueError(str(reason)) from None
        return rounded


def _rounded(problem: JointRegression) -> Interpolation | None:
    """The least-squares solution of  r_p 1 + A_p x = log b_p  with a ball around f - b; None if some b_i <= 0."""
    target = [value for part in problem.targets for value in part]
    if any(value <= 0 for value in target):
        return None
    basis = logarithmic_basis(problem.blocks)
    columns = list(basis.rref()[1])
    chosen = basis.extract(list(range(basis.rows)), columns)
    logs = sp.Matrix([sp.Rational(float(sp.log(value).evalf(17))) for value in target])
    solved = dict(zip(columns, (chosen.T * chosen).LUsolve(chosen.T * logs), strict=True))
    place = [sp.Rational(float(solved.get(k, 0))) for k in range(len(problem.blocks), basis.cols)]
    with ctx.workprec(_BITS):
        f = [p for part in probabilities(problem, [as_ball(x) for x in place]) for p in part]
        gap = max(float(abs(p - as_ball(q)).upper()) for p, q in zip(f, target, strict=True))
    return Interpolation({x.name: float(v) for x, v in zip(problem.weights, place, strict=True)}, False, gap)


def _values(problem: JointRegression, point: FixedPoint) -> tuple[float, float]:
    """The loss and the smallest f at a point of a reduced problem."""
    with ctx.workprec(_BITS):
        place = place_of(point, problem)
        loss = sum(losses(problem, place), arb(0))
        smallest = min(float(p) for part in probabilities(problem, place) for p in part)
        return 0.0 if loss.contains(0) else float(loss), smallest


def _index_sum(found: FixedPoints, dim: int) -> int | None:
    """The sum of the points' indices; None if one is degenerate or there are components."""
    if found.components:
        return None
    total = 0
    for point in found.points:
        if dim == 1 and point.attracts is not None:
            total += (sum(point.attracts) - sum(not side for side in point.attracts)) // 2
        elif point.dims is not None and not point.dims[1]:
            total += (-1) ** point.dims[0]
        else:
            return None
    return total


@lru_cache(maxsize=64)
def _infinity(core: Reduced) -> tuple[int | None, str]:
    """What infinity says of the index sum, and why."""
    problem = core.problem
    if core.dim == 1:
        outwards = [along(problem, sp.Matrix([sign])) for sign in (-1, 1)]
        return sum(-1 if ray.attracts else 1 for ray in outwards) // 2, "; ".join(map(str, outwards))
    if problem.normalization == "rescaled" and unmet_growth(problem) is not None:
        return 0, "by Euler's identity every fixed point has f = b, which none has"
    if core.dim > 2:
        return None, f"infinity is not enumerated for {core.dim} weights"
    if problem.normalization == "normalized":
        return _faces(core)
    if grows_everywhere(problem):
        return 1, "the rescaled loss grows everywhere: in each direction some alpha does, and f -> b in none"
    if growth(problem) is not None:
        return None, "by Euler's identity every fixed point has f = b"
    return None, "the rescaled loss does not grow in all directions"


def _faces(core: Reduced) -> tuple[int | None, str]:
    """The same for the normalized loss of two weights, from its faces at infinity."""
    faces = all_ends(core)
    expected, followed = 1, []
    for end in faces:
        for halt in end.halts:
            if halt.behaviour == "repels":
                continue
            decided = end.complete and halt.behaviour == "attracts"
            if not decided or halt.is_minimum is None:
                place = f"{noun(end.rows, listed=True)} {end.rows}"
                return None, f"the end at {place} {halt.behaviour}, which does not fix the sum"
            expected += -1 if halt.is_minimum else 1
            followed.append(end.rows)
        if not end.complete:
            return None, f"the halts at {noun(end.rows, listed=True)} {end.rows} are not all known"
    if followed:
        word = noun(followed[0], listed=True)
        return expected, f"the flow leaves for the faces of {word} {followed}, and every other end repels"
    return expected, f"all {len(faces)} ends at infinity repel"


def _lifted(point: FixedPoint, core: Reduced) -> FixedPoint:
    """In the weights of the whole problem, the flat ones zero and with an enclosure of no width."""
    names = [x.name for x in core.whole.weights]
    zeros = [name for k, name in enumerate(names) if k not in core.kept]
    location = {**point.location, **dict.fromkeys(zeros, 0.0)}
    bounds = point.enclosure
    if bounds is not None:
        bounds = {**bounds, **dict.fromkeys(zeros, (sp.S.Zero, sp.S.Zero))}
        bounds = {name: bounds[name] for name in names}
    return replace(point, location={name: location[name] for name in names}, enclosure=bounds)
