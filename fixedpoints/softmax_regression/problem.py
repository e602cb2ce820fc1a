"""Softmax regression with numbers: a sum of single regressions without its flat directions, and f in balls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real
from typing import Any, TypeVar

import sympy as sp
from flint import arb, fmpq

from fixedpoints.points import FixedPoint
from odesys.system import ODESystem
from symbolic.softmax_regression.joint import JointRegression, Place
from symbolic.softmax_regression.matrix import MatrixSoftmaxRegression
from symbolic.softmax_regression.vector import SoftmaxRegression
from symbolic.zero import exact

__all__ = [
    "Model",
    "Reduced",
    "Rows",
    "as_ball",
    "as_given",
    "ball",
    "joint",
    "logits",
    "losses",
    "named",
    "noun",
    "place_of",
    "probabilities",
    "projection",
    "reduced",
    "system_of",
    "vector",
    "winners",
]

Model = SoftmaxRegression | MatrixSoftmaxRegression
Entry = TypeVar("Entry")

#: Some rows, from 0, of each A_p.
Rows = tuple[tuple[int, ...], ...]


def joint(model: Model) -> JointRegression:
    """The sum of single regressions that a model with rational numbers, exp and no ridge is.

    Raises:
        TypeError: it is no softmax regression.
        ValueError: symbols are left in it, u is not exp, it has a ridge term, or an entry is not rational.
    """
    if not isinstance(model, Model):
        raise TypeError(
            "Fixed points of softmax regression are of a vector or matrix model with numbers; "
            f"got {type(model).__name__}. Make one with vector.model(n=..., d=...).at(A, b) or "
            "matrix.model(n=..., d=...).at(A1, A2, B) of symbolic.softmax_regression."
        )
    data = "at(A, b)" if isinstance(model, SoftmaxRegression) else "at(A1, A2, B)"
    if model.parameters:
        raise ValueError(
            f"The parameters {[p.name for p in model.parameters]} have no numbers. Give them with `{data}`."
        )
    problem = model.joint
    entries = [
        *(a for block in problem.blocks for a in block),
        *(b for target in problem.targets for b in target),
    ]
    irrational = [value for value in entries if not value.is_Rational]
    if irrational:
        raise ValueError(f"The data of `{data}` must be rational for exact answers; got {irrational}.")
    return problem


def vector(name: str, values: Sequence | Mapping[str, Any], model: Model) -> sp.Matrix:
    """d rational numbers as a column: in order, by the names of the weights, or as the rows of a matrix X.

    Raises:
        TypeError: this is no row of numbers.
        ValueError: there are more or fewer, or one is not finite and rational.
    """
    if isinstance(values, Mapping):
        names = [x.name for x in model.weights]
        if set(values) != set(names):
            raise ValueError(f"`{name}` must give exactly {names}; got {sorted(values)}.")
        values = [values[key] for key in names]
    entries = values.tolist() if hasattr(values, "tolist") else values  # type: ignore
    if not isinstance(entries, Iterable):
        raise TypeError(f"`{name}` must be d = {len(model.weights)} numbers in a row; got {values!r}.")
    entries = list(entries)
    if any(isinstance(row, Iterable) for row in entries):
        rows = [list(row) for row in entries]
        if (len(rows), *{len(row) for row in rows}) != model.shape:
            raise ValueError(
                f"`{name}` must have the shape {model.shape} of the weights; got rows of "
                f"{[len(row) for row in rows]} entries."
            )
        entries = [value for row in rows for value in row]
    if len(entries) != len(model.weights):
        raise ValueError(f"`{name}` must have d = {len(model.weights)} entries; got {len(entries)}.")
    return sp.Matrix([_rational(name, value) for value in entries])


def _rational(name: str, value: object) -> sp.Rational:
    """A finite number as the rational that it is.

    Raises:
        ValueError: it is not finite, or not rational.
    """
    number = exact(sp.sympify(float(value) if isinstance(value, Real) and not hasattr(value, "p") else value))
    if not number.is_Rational:
        raise ValueError(f"`{name}` must hold finite rational numbers; got {value!r}.")
    return number


@dataclass(frozen=True)
class Reduced:
    """The same loss as a function of y = R x, which has no flat direction.

    Args:
        whole: the problem in x, d weights.
        R: shape (r, d); its columns `kept` are the unit matrix.
        kept: the r columns of every A_p that the reduced problem keeps.
    """

    whole: JointRegression
    R: sp.ImmutableMatrix
    kept: tuple[int, ...]

    @property
    def dim(self) -> int:
        return len(self.kept)

    @property
    def problem(self) -> JointRegression:
        """The problem in y, whose r weights keep their names."""
        return replace(
            self.whole,
            weights=tuple(self.whole.weights[k] for k in self.kept),
            blocks=tuple(block.extract(range(block.rows), self.kept) for block in self.whole.blocks),
        )

    def drop(self, x: sp.MatrixBase) -> sp.Matrix:
        """y = R x."""
        return sp.Matrix(self.R * x)

    def lift(self, y: Iterable[Entry], zero: Entry) -> list[Entry]:
        """The x with R x = y whose other entries are `zero`."""
        x = [zero] * len(self.whole.weights)
        for entry, k in zip(y, self.kept, strict=True):
            x[k] = entry
        return x


@lru_cache(maxsize=128)
def reduced(problem: JointRegression) -> Reduced:
    """Without the directions along which the loss is constant, whatever the targets are."""
    R, kept = problem.flat_conditions.rref()
    return Reduced(problem, sp.ImmutableMatrix(R[: len(kept), :]), tuple(kept))


@lru_cache(maxsize=128)
def system_of(problem: JointRegression) -> ODESystem:
    """The flow x' = -grad L."""
    return ODESystem(problem.flow, {})


def winners(problem: JointRegression, v: sp.MatrixBase) -> Rows:
    """The rows of each A_p that are largest in a direction."""
    heights = [list(block * v) for block in problem.blocks]
    return tuple(tuple(i for i, height in enumerate(part) if height == max(part)) for part in heights)


def as_given(problem: JointRegression, parts: Iterable[Sequence[Entry]]) -> tuple:
    """An entry for each f_i of a vector problem, or a row of entries for each row of a matrix problem."""
    rows = tuple(map(tuple, parts))
    first: Place = problem.places[0][0]
    return rows[0] if isinstance(first, int) else rows


def named(problem: JointRegression, rows: Rows) -> tuple[Place, ...]:
    """What the model calls these rows."""
    return tuple(names[i] for names, part in zip(problem.places, rows, strict=True) for i in part)


def noun(places: Sequence[Place], *, listed: bool = False) -> str:
    """What these are: "row" of A or "entry" of P, in the plural if they are several or written as a list."""
    one, several = ("row", "rows") if isinstance(places[0], int) else ("entry", "entries")
    return several if listed or len(places) > 1 else one


def projection(conditions: sp.MatrixBase) -> sp.Matrix:
    """The orthogonal projection on the null space."""
    basis = conditions.nullspace()
    if not basis:
        return sp.zeros(conditions.cols)
    N = sp.Matrix.hstack(*basis)
    return N * (N.T * N).LUsolve(N.T)


# --- in balls
# ----------------------------------------------------------------------------------------------------


def ball(low: sp.Rational, high: sp.Rational) -> arb:
    """A ball that holds [low, high]."""
    low, high = (arb(fmpq(int(end.p), int(end.q))) for end in (low, high))
    return low.union(high)


def as_ball(value: sp.Rational) -> arb:
    """A rational number to the working precision."""
    return ball(value, value)


def place_of(point: FixedPoint, problem: JointRegression) -> list[arb]:
    """The coordinates of a certified fixed point in balls, in the order of the weights."""
    if point.enclosure is None:
        raise ValueError(f"The fixed point {dict(point.location)} has no certified enclosure.")
    return [ball(*point.enclosure[x.name]) for x in problem.weights]


def logits(A: sp.MatrixBase, x: Sequence[arb]) -> list[arb]:
    """A x in balls."""
    return [sum((as_ball(a) * y for a, y in zip(A.row(i), x, strict=True)), arb(0)) for i in range(A.rows)]


def probabilities(problem: JointRegression, x: Sequence[arb]) -> list[list[arb]]:
    """f_p = softmax(A_p x) in balls, for each p."""
    found = []
    for block in problem.blocks:
        rows = logits(block, x)
        found.append([1 / sum(((s - t).exp() for s in rows), arb(0)) for t in rows])
    return found


def losses(problem: JointRegression, x: Sequence[arb]) -> list[arb]:
    """L_p in balls, for each p."""
    found = []
    for block, target, f in zip(problem.blocks, problem.targets, probabilities(problem, x), strict=True):
        loss = sum(((p - as_ball(b)) ** 2 for p, b in zip(f, target, strict=True)), arb(0)) / 2
        if problem.normalization == "rescaled":
            loss *= sum((s.exp() for s in logits(block, x)), arb(0)) ** 2
        found.append(loss)
    return found
