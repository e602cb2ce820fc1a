"""A softmax regression with numbers, without its flat directions; its rows on a face; f in balls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real
from typing import Any

import sympy as sp
from flint import arb, fmpq

from fixedpoints.points import FixedPoint
from odesys.system import ODESystem
from symbolic.softmax_regression.vector import SoftmaxRegression
from symbolic.zero import exact

__all__ = [
    "Reduced",
    "as_ball",
    "ball",
    "check",
    "logits",
    "on_face",
    "place_of",
    "probabilities",
    "reduced",
    "system_of",
    "vector",
]


def check(model: SoftmaxRegression) -> None:
    """Refuse what is no regression with rational numbers, exp and no ridge.

    Raises:
        TypeError: it is no vector softmax regression.
        ValueError: symbols are left in it, u is not exp, it has a ridge term, or an entry is not rational.
    """
    if not isinstance(model, SoftmaxRegression):
        raise TypeError(
            f"Fixed points of softmax regression are of a vector model with numbers; got {type(model).__name__}. "
            "Make one with symbolic.softmax_regression.vector.model(n=..., d=...).at(A, b)."
        )
    if model.parameters:
        raise ValueError(
            f"The parameters {[p.name for p in model.parameters]} have no numbers. Give them with `at(A, b)`."
        )
    if model.activation != "exp" or model.w is not None:
        raise ValueError(
            f"Only u = exp without ridge is understood at infinity; this model has {model.activation}"
            f"{' and a ridge term' if model.w is not None else ''}. Use fixedpoints.find for its flow."
        )
    irrational = [value for value in (*model.A, *model.b) if not value.is_Rational]
    if irrational:
        raise ValueError(f"A and b must be rational for exact answers; got {irrational}.")


def _rational(name: str, value: object) -> sp.Rational:
    """A finite number as the rational that it is.

    Raises:
        ValueError: it is not finite, or not rational.
    """
    number = exact(sp.sympify(float(value) if isinstance(value, Real) and not hasattr(value, "p") else value))
    if not number.is_Rational:
        raise ValueError(f"`{name}` must hold finite rational numbers; got {value!r}.")
    return number


def vector(name: str, values: Sequence | Mapping[str, Any], model: SoftmaxRegression) -> sp.Matrix:
    """d rational numbers as a column, given in order or by the names of the weights.

    Raises:
        ValueError: there are more or fewer, or one is not finite and rational.
    """
    if isinstance(values, Mapping):
        names = [x.name for x in model.x]
        if set(values) != set(names):
            raise ValueError(f"`{name}` must give exactly {names}; got {sorted(values)}.")
        values = [values[key] for key in names]
    entries = list(values)
    if len(entries) != model.A.cols:
        raise ValueError(f"`{name}` must have d = {model.A.cols} entries; got {len(entries)}.")
    return sp.Matrix([_rational(name, value) for value in entries])


@dataclass(frozen=True)
class Reduced:
    """The same loss as a function of y = R x, which has no flat direction.

    Args:
        whole: the model in x, d weights.
        R: shape (r, d); its columns `kept` are the unit matrix.
        kept: the r columns of A that the reduced model keeps.
    """

    whole: SoftmaxRegression
    R: sp.ImmutableMatrix
    kept: tuple[int, ...]

    @property
    def dim(self) -> int:
        return len(self.kept)

    @property
    def model(self) -> SoftmaxRegression:
        """The model in y, r weights of the names x_i, i in `kept`."""
        A = self.whole.A.extract(list(range(self.whole.A.rows)), list(self.kept))
        return replace(self.whole, A=sp.ImmutableMatrix(A))

    def drop(self, x: sp.MatrixBase) -> sp.Matrix:
        """y = R x."""
        return sp.Matrix(self.R * x)

    def lift(self, y: sp.MatrixBase) -> sp.Matrix:
        """The x with R x = y whose other entries are zero."""
        x = sp.zeros(self.whole.A.cols, 1)
        for entry, k in zip(y, self.kept, strict=True):
            x[k] = entry
        return x


@lru_cache(maxsize=128)
def reduced(model: SoftmaxRegression) -> Reduced:
    """Without the directions v with A v = t 1 (normalized) or A v = 0 (rescaled), along which the loss is constant."""
    M = sp.Matrix(model.A)
    if model.normalization == "normalized":
        M = sp.Matrix([model.A.row(i) - model.A.row(0) for i in range(model.A.rows)])
    R, kept = M.rref()
    return Reduced(model, sp.ImmutableMatrix(R[: len(kept), :]), tuple(kept))


@lru_cache(maxsize=128)
def system_of(model: SoftmaxRegression) -> ODESystem:
    """The flow x' = -grad L."""
    return ODESystem(model.flow, {})


def on_face(model: SoftmaxRegression, rows: Sequence[int]) -> SoftmaxRegression:
    """The normalized problem of some rows alone: what is left of it where the others' f_j have gone to zero.

    The targets of the others add the constant (1/2) sum_j b_j^2 to its loss.
    """
    A = sp.ImmutableMatrix(model.A.extract(list(rows), list(range(model.A.cols))))
    return replace(model, A=A, b=tuple(model.b[i] for i in rows))


def ball(low: sp.Rational, high: sp.Rational) -> arb:
    """A ball that holds [low, high]."""
    low, high = (arb(fmpq(int(end.p), int(end.q))) for end in (low, high))
    return low.union(high)


def place_of(point: FixedPoint, model: SoftmaxRegression) -> list[arb]:
    """The coordinates of a certified fixed point in balls, in the order of the weights."""
    if point.enclosure is None:
        raise ValueError(f"The fixed point {dict(point.location)} has no certified enclosure.")
    return [ball(*point.enclosure[x.name]) for x in model.x]


def logits(A: sp.MatrixBase, x: Sequence[arb]) -> list[arb]:
    """A x in balls."""
    return [sum((as_ball(a) * y for a, y in zip(A.row(i), x, strict=True)), arb(0)) for i in range(A.rows)]


def probabilities(A: sp.MatrixBase, x: Sequence[arb]) -> list[arb]:
    """f = softmax(A x) in balls."""
    rows = logits(A, x)
    return [1 / sum(((s - t).exp() for s in rows), arb(0)) for t in rows]


def as_ball(value: sp.Rational) -> arb:
    """A rational number to the working precision."""
    return ball(value, value)
