"""Softmax regression from the papers' definition, for gradient descent: its losses, differentiated by autodiff.

    vector   f = softmax(A x)                        target b
    matrix   P = softmax(A1 X A2^T), row by row      target B

    normalized   L  = (1/2) |f - b|^2                    rescaled   Lr = (1/2) |u - <u, 1> b|^2,  u = exp(A x)

The papers write these losses with and without the 1/2; here it is always there, and this is where it stands.

How the normalized loss is written decides what autodiff of it is worth. u/<u, 1> as it stands has a wrong gradient
long before u overflows: the backward pass squares <u, 1>. Subtracting the largest logit (a library's softmax) cures
that, but grad = A^T [f (c - <f, c>)], c = f - b, still cancels: where one f_k is nearly 1, its entry is rounding,
which the exponentially small rest does not survive. Here the logits are those relative to the largest, A x - (A x)_k,
and 0 by definition for the rows of A that equal a_k. Autodiff of that is the row-centred gradient

    sum_j f_j (c_j - <f, c>) (a_j - a_k) = (A - 1 abar^T)^T [f (c - <f, c>)],    abar = A^T f,

with what belongs to a_k exactly absent: each term has the relative error of f_j. Centring on abar itself leaves
rounding times rounding, 1e-32, where three equal rows win: it fails beyond a gap of 75. (What is left to cancel
is c_j - <f, c> itself, where 1 - b_k + b_j = 0 for a b outside the simplex: there a vertex neither repels nor attracts
to first order.)

f_j = exp(-gap) is a normal number up to a gap of 708.396 = -log(2^-1022). Beyond it XLA flushes to zero on CPUs (it
runs with flush-to-zero and denormals-are-zero, where NumPy goes on to 745): a gradient that is exactly 0 there is a
saturated plateau and no fixed point.

Source: Gao, Song, Xie, arXiv:2307.02419; Li, Song, Xia, Yu, Zhou, arXiv:2304.13276; Gao, Song, Yin, arXiv:2305.00660.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

__all__ = ["LossOverflowError", "Normalization", "SoftmaxRegression", "matrix", "vector"]

Normalization = Literal["normalized", "rescaled"]


class LossOverflowError(OverflowError):
    """The rescaled loss or its gradient is beyond float64; `log_loss` is the loss's logarithm, which is not."""

    def __init__(self, message: str, log_loss: float):
        super().__init__(message)
        self.log_loss = log_loss

    def __reduce__(self):
        return type(self), (self.args[0], self.log_loss)


@dataclass(frozen=True, eq=False)
class SoftmaxRegression:
    """A loss of weights w: of x, shape (d,), with logits A x; or of X, shape (d1, d2), with logits A1 X A2^T.

    As a function it is what JAX differentiates and `descend` takes; made by `vector` or `matrix`.

    Args:
        left: A1, shape (m, d1); None for a vector problem.
        right: A or A2, shape (n, d).
        target: b, shape (n,), or B, shape (m, n); any finite numbers, see `label`.
        loss: "normalized" or "rescaled".
    Raises:
        TypeError: an array holds something else than real numbers, or rows of several lengths.
        ValueError: an array has the wrong shape or no entry, an entry is not finite, there is no such loss, or
            n = 1 with the normalized loss.
    """

    left: Float[np.ndarray, "m d1"] | None
    right: Float[np.ndarray, "n d"]
    target: Float[np.ndarray, "*rows n"]
    loss: Normalization = "normalized"

    def __post_init__(self):
        if self.loss not in _ROWS:
            raise ValueError(f"`loss` must be one of {sorted(_ROWS)}; got {self.loss!r}.")
        if self.n == 1 and self.loss == "normalized":
            raise ValueError(
                "With n = 1 the softmax is 1 whatever the weights are, so that the normalized loss is constant and "
                "there is nothing to descend. Use n >= 2 or loss='rescaled'."
            )

    @property
    def n(self) -> int:
        """The number of targets in a row."""
        return len(self.right)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, (d,) or (d1, d2)."""
        columns = self.right.shape[1]
        return (columns,) if self.left is None else (self.left.shape[1], columns)

    def __call__(self, weights: Float[Array | np.ndarray, "*shape"]) -> Float[Array, ""]:
        """The loss as JAX differentiates it, for `descend`.

        Raises:
            TypeError: the weights are no array of float64.
            ValueError: they have another shape.
        """
        if (kind := getattr(weights, "dtype", type(weights).__name__)) != np.float64:
            raise TypeError(
                "Comparisons need float64: in float32 a softmax loses all digits at a gap of 17 between logits; "
                f"got weights of {kind}. Give one array, and open `jax.enable_x64`, as `descend` does."
            )
        if weights.shape != self.shape:
            raise ValueError(f"The weights must have shape {self.shape}; got {weights.shape}.")
        return _loss(jnp.asarray(weights), self._data, self.loss)

    def value(self, weights: ArrayLike) -> float:
        """The loss at given weights.

        Raises:
            LossOverflowError: the rescaled loss is beyond float64.
            TypeError: the weights are no real numbers.
            ValueError: they have another shape, or they or their logits are not finite.
        """
        return float(self._evaluated(_compiled_loss, weights))

    def gradient(self, weights: ArrayLike) -> Float[np.ndarray, "*shape"]:
        """dL/dx or dL/dX, in the shape of the weights: for a matrix A1^T (dL/dZ) A2, which takes O(n^2 d).

        Raises:
            LossOverflowError, TypeError, ValueError: as for `value`.
        """
        return self._evaluated(_compiled_gradient, weights)

    def hessian_times(self, weights: ArrayLike, direction: ArrayLike) -> Float[np.ndarray, "*shape"]:
        """The Hessian applied to a direction, both in the shape of the weights, at the cost of a few gradients.

        Raises:
            LossOverflowError, TypeError, ValueError: as for `value`.
        """
        return self._evaluated(_compiled_product, weights, self._numbers("direction", direction))

    def log_loss(self, weights: ArrayLike) -> float:
        """The logarithm of the loss; of the rescaled one also where the loss itself over- or underflows.

        Raises:
            TypeError, ValueError: as for `value`.
        """
        with jax.enable_x64(True):
            return float(_compiled_log(self._place(weights), self._data, self.loss))

    @property
    def label(self) -> str:
        """Where the target lies: inside the simplex, on its boundary or outside; only inside can f = b."""
        b = self.target
        rounded = 1e-12  # sums of fractions such as 1/3
        if np.any(b < 0) or np.any(np.abs(b.sum(axis=-1) - 1) > rounded):
            return "target outside the simplex"
        return "target inside the simplex" if np.all(b > 0) else "target on the boundary of the simplex"

    @cached_property
    def _data(self) -> _Data:
        groups = np.unique(self.right, axis=0, return_inverse=True)[1].reshape(-1)
        return _Data(self.left, self.right, self.target, groups)

    def _numbers(self, name: str, values: ArrayLike) -> Float[np.ndarray, "*shape"]:
        array = _reals(name, values)
        if array.shape != self.shape:
            raise ValueError(f"`{name}` must have shape {self.shape}; got {array.shape}.")
        if not np.isfinite(array).all():
            raise ValueError(f"`{name}` must be finite; got {array.tolist()}.")
        return array

    def _place(self, weights: ArrayLike) -> Float[np.ndarray, "*shape"]:
        """Weights at which every logit is a number: compiled for CPUs, exp(nan) can be 0."""
        at = self._numbers("weights", weights)
        with np.errstate(over="ignore", invalid="ignore"):
            z = _logits(at, self._data)
        if not np.isfinite(z).all():
            raise ValueError(
                f"The logits must be finite; they are beyond float64 for weights of size {np.abs(at).max():.3g}. "
                "Take smaller ones."
            )
        return at

    def _evaluated(self, function: Callable, weights: ArrayLike, *more: np.ndarray) -> np.ndarray:
        """A function of the weights, in float64."""
        at = self._place(weights)
        with jax.enable_x64(True):
            result = np.asarray(function(at, *more, self._data, self.loss))
        if np.isfinite(result).all():
            return result
        log = self.log_loss(at)
        raise LossOverflowError(
            f"The rescaled loss is exp({log:.6g}) at these weights; it or a derivative is beyond float64, "
            f"exp({math.log(np.finfo(np.float64).max):.6g}). Take `log_loss`, or smaller weights.",
            log,
        )


class _Data(NamedTuple):
    """The arrays of a problem, and a number for each row of `right` that is the same for equal rows."""

    left: np.ndarray | None
    right: np.ndarray
    target: np.ndarray
    group: np.ndarray


def vector(A: ArrayLike, b: ArrayLike, loss: Normalization = "normalized") -> SoftmaxRegression:
    """Find x with softmax(A x) = b.

    Args:
        A: shape (n, d). b: shape (n,), any finite numbers.
        loss: "normalized", (1/2) |f - b|^2, or "rescaled", (1/2) |u - <u, 1> b|^2.
    Raises:
        ValueError: as for `SoftmaxRegression`.
    """
    right, target = _array("A", A, 2), _array("b", b, 1)
    _agree(target.shape, right.shape[:1], "`b` must have an entry for each row of A")
    return SoftmaxRegression(None, right, target, loss)


def matrix(
    A1: ArrayLike, A2: ArrayLike, B: ArrayLike, loss: Normalization = "normalized"
) -> SoftmaxRegression:
    """Find X with softmax(A1 X A2^T) = B, the softmax row by row.

    Args:
        A1: shape (m, d1). A2: shape (n, d2). B: shape (m, n), any finite numbers.
        loss: "normalized", (1/2) |P - B|_F^2, or "rescaled", (1/2) |U - diag(U 1) B|_F^2.
    Raises:
        ValueError: as for `SoftmaxRegression`.
    """
    left, right, target = _array("A1", A1, 2), _array("A2", A2, 2), _array("B", B, 2)
    rule = "`B` must have a row for each row of A1 and a column for each row of A2"
    _agree(target.shape, (len(left), len(right)), rule)
    return SoftmaxRegression(left, right, target, loss)


def _logits(
    weights: Float[Array | np.ndarray, "*shape"], data: _Data
) -> Float[Array | np.ndarray, "*rows n"]:
    return data.right @ weights if data.left is None else data.left @ weights @ data.right.T


def _loss(weights: Float[Array, "*shape"], data: _Data, loss: str, shift=0.0) -> Float[Array, ""]:
    """The sum over rows, with `shift` taken from all logits."""
    row, z = _ROWS[loss], _logits(weights, data) - shift
    if data.left is None:
        return row(z, data.target, data.group)
    return jnp.sum(jax.vmap(row, in_axes=(0, 0, None))(z, data.target, data.group))


def _log_loss(weights: Float[Array, "*shape"], data: _Data, loss: str) -> Float[Array, ""]:
    """log L; of the rescaled loss  2 m + log of that of the logits less m, their largest."""
    if loss == "normalized":
        return jnp.log(_loss(weights, data, loss))
    top = jnp.max(_logits(weights, data))
    return 2 * top + jnp.log(_loss(weights, data, loss, shift=top))


def _product(weights, direction, data: _Data, loss: str) -> Float[Array, "*shape"]:
    """The Hessian applied to a direction, as the derivative of the gradient along it."""
    return jax.jvp(lambda w: jax.grad(_loss)(w, data, loss), (weights,), (direction,))[1]


# Compiled once for each shape and loss; the data are arguments.
_compiled_loss, _compiled_gradient, _compiled_product, _compiled_log = (
    jax.jit(function, static_argnames="loss") for function in (_loss, jax.grad(_loss), _product, _log_loss)
)


def _normalized(
    z: Float[Array, " n"], b: Float[Array | np.ndarray, " n"], group: Int[Array | np.ndarray, " n"]
) -> Float[Array, ""]:
    """(1/2) |softmax(z) - b|^2; rows of one group have the same logit."""
    group = jnp.asarray(group)
    k = jnp.argmax(jax.lax.stop_gradient(z))
    u = jnp.exp(jnp.where(group == group[k], 0.0, z - z[k]))
    winner = jnp.arange(z.size) == k
    # f_k - b_k = (1 - b_k) - the sum of the others: for b_k = 1 the sum alone, where f_k - 1 would round to 0.
    others = jnp.sum(jnp.where(winner, 0.0, u)) / jnp.sum(u)
    c = jnp.where(winner, (1 - b) - others, u / jnp.sum(u) - b)
    return jnp.where(jnp.isfinite(z).all(), jnp.sum(c**2) / 2, jnp.nan)


def _rescaled(
    z: Float[Array, " n"], b: Float[Array | np.ndarray, " n"], group: Int[Array | np.ndarray, " n"]
) -> Float[Array, ""]:
    """(1/2) |u - <u, 1> b|^2 with u = exp(z): no shift of the logits leaves it what it is."""
    del group
    u = jnp.exp(z)
    return jnp.sum((u - jnp.sum(u) * b) ** 2) / 2


_ROWS = {"normalized": _normalized, "rescaled": _rescaled}


def _array(name: str, values: ArrayLike, axes: int) -> np.ndarray:
    """A read-only copy in float64, with so many axes and finite entries."""
    array = _reals(name, values)
    if array.ndim != axes or 0 in array.shape:
        raise ValueError(f"`{name}` must have {axes} axes, none of length 0; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` must hold finite numbers; got {array.tolist()}.")
    array.setflags(write=False)
    return array


def _reals(name: str, values: ArrayLike) -> np.ndarray:
    """A copy in float64; of complex numbers NumPy would drop a part, and texts it would read."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass  # rows of several lengths, or entries without a value in float64
    raise TypeError(f"`{name}` must be an array of real numbers; got {values!r}.")


def _agree(got: tuple[int, ...], wanted: tuple[int, ...], rule: str) -> None:
    if got != wanted:
        raise ValueError(f"{rule}, shape {wanted}; got {got}.")
