"""Every finite fixed point of a softmax regression, with the index sum and infinity as a second witness.

The field is polynomial in exp(x_1) ... exp(x_d) for rational A, so that `fixedpoints.find` answers for the whole
space. The second witness is Poincare and Hopf's: the indices of nondegenerate points, +1 for a minimum of the loss, -1
for a saddle, +1 for a maximum of two weights (-1 for one), sum to what infinity says,

    one weight     (out_+ + out_-)/2,   out = 1 where the loss rises outwards, -1 where it falls
    two weights    1 - (minima of faces that attract) + (maxima of faces that attract),   if every vertex repels
                   1 for the rescaled loss if b > 0 and 0 lies inside the hull of the rows: then it grows everywhere
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import sympy as sp
from flint import arb, ctx

from fixedpoints.finding import find
from fixedpoints.points import Certificate, FixedPoint, FixedPoints
from fixedpoints.softmax_regression.ends import NoHullError, ends, inside_hull
from fixedpoints.softmax_regression.problem import (
    as_ball,
    check,
    logits,
    place_of,
    probabilities,
    reduced,
    system_of,
)
from fixedpoints.softmax_regression.rays import escape
from symbolic.conservation import FirstIntegral
from symbolic.errors import UndecidedError
from symbolic.softmax_regression.vector import SoftmaxRegression

__all__ = ["Interpolation", "Stops", "interpolation", "points"]

_BITS = 200

#: How far f may be from b in a numeric interpolation: rounding of the float targets and of their sum.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Interpolation:
    """A point with f = b, where both losses vanish.

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
        losses: of each point. smallest: min_i f_i at each point, which a plateau has not bounded below.
        flat: the conserved quantities v^T x along which every point is a whole line; empty if there are none.
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


def points(model: SoftmaxRegression, budget: float = 60.0) -> Stops:
    """Every fixed point of the flow x' = -grad L, its loss, and two witnesses of completeness.

    Flat directions are taken out first and named by what they conserve.

    Args:
        model: a vector problem with rational A and b, u = exp and no ridge.
        budget: seconds for `fixedpoints.find`.
    Raises:
        TypeError, ValueError: the model has no numbers; or all rows of A are equal (zero for the rescaled loss),
            so that the loss is constant.
    """
    check(model)
    if isinstance(budget, bool) or not budget > 0:
        raise ValueError(f"`budget` must be a positive number of seconds; got {budget!r}.")
    return _points(model, budget)


@lru_cache(maxsize=64)
def _points(model: SoftmaxRegression, budget: float) -> Stops:
    core = reduced(model)
    if core.dim == 0:
        raise ValueError(
            f"The loss is constant: every direction is flat for A = {model.A.tolist()}, and every x is a fixed point."
        )
    found = find(system_of(core.model), budget=budget)
    values = [_values(core.model, point) for point in found.points]
    total = _index_sum(found, core.dim)
    expected, witness = _infinity(model)
    if None not in (total, expected) and total != expected and found.certificate.kind == "complete":
        doubt = f"the indices sum to {total}, while infinity demands {expected}: {witness}"
        found = replace(found, certificate=Certificate("unknown", doubt, len(found.points)))
    try:
        fit, why = interpolation(model), ""
    except ValueError as reason:
        fit, why = None, str(reason)
    names = {x.name: model.x[k].name for x, k in zip(core.model.x, core.kept, strict=True)}
    others = [x.name for x in model.x if x.name not in names.values()]
    return Stops(
        replace(found, points=tuple(_lifted(point, names, others) for point in found.points)),
        tuple(loss for loss, _ in values),
        tuple(smallest for _, smallest in values),
        model.conserved,
        fit,
        why,
        total,
        expected,
        witness,
    )


def interpolation(model: SoftmaxRegression) -> Interpolation:
    """The point with f = b: exact if log b lies in range(A) + span(1), numeric with a proven gap for rounded b.

    Raises:
        ValueError: there is none, and why.
        UndecidedError: it could not be decided.
    """
    check(model)
    try:
        return Interpolation({x.name: value for x, value in model.interpolation().items()}, True, 0.0)
    except UndecidedError:
        raise
    except ValueError as reason:
        rounded = _rounded(model)
        if rounded is None or rounded.gap > _ROUNDING:
            raise ValueError(str(reason)) from None
        return rounded


def _rounded(model: SoftmaxRegression) -> Interpolation | None:
    """The least-squares solution of  A x + r 1 = log b  with a ball around f - b; None if b is not positive."""
    if any(value <= 0 for value in model.b):
        return None
    basis = sp.Matrix(model.A.row_join(sp.ones(model.A.rows, 1)))
    columns = list(basis.rref()[1])
    chosen = basis.extract(list(range(basis.rows)), columns)
    logs = sp.Matrix([sp.Rational(float(sp.log(value).evalf(17))) for value in model.b])
    solved = dict(zip(columns, (chosen.T * chosen).LUsolve(chosen.T * logs), strict=True))
    place = [sp.Rational(float(solved.get(k, 0))) for k in range(model.A.cols)]
    with ctx.workprec(_BITS):
        f = probabilities(model.A, [as_ball(x) for x in place])
        gap = max(float(abs(p - as_ball(q)).upper()) for p, q in zip(f, model.b, strict=True))
    return Interpolation({x.name: float(value) for x, value in zip(model.x, place, strict=True)}, False, gap)


def _values(model: SoftmaxRegression, point: FixedPoint) -> tuple[float, float]:
    """The loss and min f at a point of a reduced model."""
    with ctx.workprec(_BITS):
        place = place_of(point, model)
        f = probabilities(model.A, place)
        loss = sum(((p - as_ball(b)) ** 2 for p, b in zip(f, model.b, strict=True)), arb(0)) / 2
        if model.normalization == "rescaled":
            loss *= sum((s.exp() for s in logits(model.A, place)), arb(0)) ** 2
        return 0.0 if loss.contains(0) else float(loss), min(float(p) for p in f)


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


def _infinity(model: SoftmaxRegression) -> tuple[int | None, str]:
    """What infinity says of the index sum, and why."""
    core = reduced(model)
    if core.dim == 1:
        outwards = [escape(core.model, [sign]) for sign in (-1, 1)]
        return sum(-1 if ray.attracts else 1 for ray in outwards) // 2, "; ".join(map(str, outwards))
    if core.dim > 2:
        return None, f"infinity is not enumerated for {core.dim} weights"
    if model.normalization == "rescaled":
        if all(value > 0 for value in model.b) and inside_hull(core.model):
            return (
                1,
                "0 lies inside the hull of the rows of A and b > 0, so that the rescaled loss grows everywhere",
            )
        if _grows_along(core.model):
            return None, "1 lies in range(A), so that by Euler's identity every fixed point has f = b"
        return None, "the rescaled loss does not grow in all directions"
    try:
        faces = ends(model)
    except NoHullError as reason:
        return None, str(reason)
    expected, followed = 1, []
    for end in faces:
        for halt in end.halts:
            if halt.behaviour == "repels":
                continue
            decided = end.complete and end.dimension == 1 and halt.behaviour == "attracts"
            if not decided or halt.is_minimum is None:
                return None, f"the end at rows {end.rows} {halt.behaviour}, which does not fix the sum"
            expected += -1 if halt.is_minimum else 1
            followed.append(end.rows)
        if not end.complete:
            return None, f"the halts at rows {end.rows} are not all known"
    if followed:
        return expected, f"the flow leaves for the faces of rows {followed}, and every other end repels"
    return expected, f"all {len(faces)} ends at infinity repel"


def _grows_along(model: SoftmaxRegression) -> bool:
    """Whether some v has A v = 1."""
    ones = sp.ones(model.A.rows, 1)
    return sp.Matrix(model.A).rank() == sp.Matrix(model.A.row_join(ones)).rank()


def _lifted(point: FixedPoint, names: dict[str, str], others: list[str]) -> FixedPoint:
    """In the weights of the whole model, the flat ones zero and with an enclosure of no width."""
    zero = dict.fromkeys(others, sp.S.Zero)
    location = {names[name]: value for name, value in point.location.items()} | dict.fromkeys(others, 0.0)
    enclosure = None
    if point.enclosure is not None:
        enclosure = {names[name]: value for name, value in point.enclosure.items()}
        enclosure |= {name: (value, value) for name, value in zero.items()}
    order = sorted(location, key=lambda name: int(name.split("_")[1]))
    return replace(
        point,
        location={name: location[name] for name in order},
        enclosure=None if enclosure is None else {name: enclosure[name] for name in order},
    )
