"""The largest Lipschitz ratio that can be found: a multi-start ascent over the data, the target and both points.

All rows of `symbolic.lipschitz.table` are ratios |q(now) - q(then)| / |what moved| of a matrix problem; a vector
problem is the one with a single row, A1 = 1. Only values of q enter, no derivatives: a ratio that is found refutes
a constant that is smaller, whoever derived it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from symbolic.lipschitz import Bound

__all__ = ["QUANTITIES", "Problems", "ascend"]

#: Searches side by side, and steps of each.
STARTS, STEPS = 32, 100
#: Rows of a matrix problem, and of its X.
ROWS = 2
#: Two points closer than this measure rounding.
NEAREST = 1e-4


@dataclass(frozen=True, eq=False)
class Problems:
    """S matrix problems side by side.

    Args:
        left: A1, shape (S, m, d1). right: A2, shape (S, n, d2). target: B, shape (S, m, n). weights: X, (S, d1, d2).
    """

    left: Float[np.ndarray, "S m d1"]
    right: Float[np.ndarray, "S n d2"]
    target: Float[np.ndarray, "S m n"]
    weights: Float[np.ndarray, "S d1 d2"]

    @cached_property
    def u(self) -> np.ndarray:
        return np.exp(self.left @ self.weights @ self.right.swapaxes(1, 2))

    @cached_property
    def alpha(self) -> np.ndarray:
        return self.u.sum(axis=2, keepdims=True)

    @cached_property
    def f(self) -> np.ndarray:
        return self.u / self.alpha

    @property
    def gradient(self) -> np.ndarray:
        """A1^T G A2 with the rows  f_i (c_i - <f, c>)  of G."""
        f, c = self.f, self.f - self.target
        return self._pulled_back(f * (c - _inner(f, c)))

    @property
    def hessian(self) -> np.ndarray:
        """Of a single row: the scatter form, sum_i f_i (f_i + c_i - <f, c>)(a_i - abar)(a_i - abar)^T."""
        f, c = self.f, self.f - self.target
        centred = self.right - f @ self.right
        weights = (f * (f + c - _inner(f, c)))[:, 0, :, None]
        return centred.swapaxes(1, 2) @ (weights * centred)

    @property
    def residual(self) -> np.ndarray:
        """u - alpha b of the rescaled loss."""
        return self.u - self.alpha * self.target

    @property
    def rescaled_gradient(self) -> np.ndarray:
        """A1^T G A2 with the rows  u (r - <b, r>)  of G."""
        r = self.residual
        return self._pulled_back(self.u * (r - _inner(self.target, r)))

    def _pulled_back(self, G: np.ndarray) -> np.ndarray:
        return self.left.swapaxes(1, 2) @ G @ self.right


def _inner(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sum(a * b, axis=2, keepdims=True)


def _difference(name: str) -> Callable[[Problems, Problems], np.ndarray]:
    return lambda now, then: getattr(then, name) - getattr(now, name)


#: By how much each quantity of `symbolic.lipschitz.Bound` moves.
QUANTITIES: dict[str, Callable[[Problems, Problems], np.ndarray]] = {
    "u": _difference("u"),
    "alpha": _difference("alpha"),
    "1/alpha": lambda now, then: 1 / then.alpha - 1 / now.alpha,
    "f": _difference("f"),
    "c": lambda now, then: (then.f - then.target) - (now.f - now.target),
    "gradient": _difference("gradient"),
    "Hessian": _difference("hessian"),
    "rescaled residual": _difference("residual"),
    "rescaled gradient": _difference("rescaled_gradient"),
    # b~ - b, of b~ = b + f_now - f_then  and of  b~ = (u_now - u_then + alpha_then b)/alpha_now.
    "target": lambda now, then: (now.target + now.f - then.f) - now.target,
    "rescaled target": lambda now, then: (now.u - then.u + then.alpha * now.target) / now.alpha - now.target,
}


def ascend(bound: Bound, size: tuple[int, int, float], seed: Sequence[int]) -> float:
    """The largest ratio found for a bound of the table, over problems of a size (n, d, R) and |b| <= 1.

    From each of 32 starts a step is taken if it leads up; steps grow with success and shrink without.

    Raises:
        NotImplementedError: the search does not know the bound's quantity, its move or its targets.
    """
    known = {"quantity": QUANTITIES, "moved": ("x", "A", "X", "A1", "A2"), "target": _TARGETS}
    for field, kinds in known.items():
        if getattr(bound, field) not in kinds:
            raise NotImplementedError(
                f"The search knows no `{field}` {getattr(bound, field)!r}, only {sorted(kinds)}. "
                "Teach it in odesys.studies.softmax.search."
            )
    (n, d, R), draw = size, np.random.default_rng(seed)
    here = _starts(ROWS if bound.of_matrix else 1, n, d, bound, draw)
    best = _ratio(bound, here, R)
    step = np.full(STARTS, 0.5)
    for _ in range(STEPS):
        trial = [
            part + _along(step, part) * (0.1 + np.abs(part)) * draw.standard_normal(part.shape)
            for part in here
        ]
        ratio = _ratio(bound, trial, R)
        better = ratio > best
        for part, new in zip(here, trial, strict=True):
            part[better] = new[better]
        best = np.where(better, ratio, best)
        step = np.minimum(1.0, step * np.where(better, 1.6, 0.88))
    return float(best.max())


def _starts(m: int, n: int, d: int, bound: Bound, draw: np.random.Generator) -> list[np.ndarray]:
    """Free numbers: A1, A2, B, X, and the move. As in the extremes, few rows of A2 are large, X looks their way, and
    a move of A2 or A1 is felt by X.
    """
    normal, large = draw.standard_normal, np.arange(n) < 1 + np.arange(STARTS)[:, None] % min(3, n)
    left, right = normal((STARTS, m, m)), normal((STARTS, n, d)) * np.where(large, 1.0, 0.1)[:, :, None]
    way = np.einsum("sn,sni->si", large, right)[:, None]
    weights = normal((STARTS, m, 1)) * way + 0.3 * normal((STARTS, m, d))
    move = {
        "A1": normal((STARTS, m, 1)) * (weights @ way.swapaxes(1, 2)).swapaxes(1, 2),
        "A2": (large * normal((STARTS, n)))[:, :, None] * weights[:, :1],
    }.get({"A": "A2"}.get(bound.moved, bound.moved), normal(weights.shape))
    return [left, right, 3 * normal((STARTS, m, n)), weights, move]


def _ratio(bound: Bound, parts: list[np.ndarray], R: float) -> np.ndarray:
    """At what the free numbers stand for: |A1| <= 1, |A2| <= R, |X|_F <= R, b where the bound has it."""
    left, right, target, weights, move = parts
    now = Problems(
        _in_ball(left), R * _in_ball(right), _TARGETS[bound.target](target), R * _flat_ball(weights)
    )
    # Moves of every size, small ones too: the supremum is often a derivative.
    move = 0.01 * np.sinh(np.clip(move, -6, 6))
    if bound.moved in ("x", "X"):
        then = replace(now, weights=R * _flat_ball(weights + move))
        distance = _length(then.weights - now.weights)
    elif bound.moved == "A1":
        then = replace(now, left=_in_ball(left + move))
        distance = _norm(then.left - now.left) * _norm(now.right)
    else:
        then = replace(now, right=R * _in_ball(right + move))
        distance = _norm(then.right - now.right) * _norm(now.left)
    gap = _length(QUANTITIES[bound.quantity](now, then))
    return np.where(distance > NEAREST, gap / np.maximum(distance, NEAREST), 0.0)


def _in_simplex(free: np.ndarray) -> np.ndarray:
    weights = np.exp(free - free.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True)


def _in_unit_ball(free: np.ndarray) -> np.ndarray:
    return free / np.maximum(1.0, np.linalg.norm(free, axis=2, keepdims=True))


#: Rows of B, where a bound has them.
_TARGETS = {"simplex": _in_simplex, "unit ball": _in_unit_ball, "ball": _in_unit_ball, "any": _in_simplex}


def _in_ball(A: np.ndarray) -> np.ndarray:
    """Matrices of spectral norm 1 at most."""
    return A / np.maximum(1.0, _norm(A))[:, None, None]


def _flat_ball(X: np.ndarray) -> np.ndarray:
    """Matrices of Frobenius norm 1 at most."""
    return X / np.maximum(1.0, _length(X))[:, None, None]


def _norm(A: np.ndarray) -> np.ndarray:
    """|A|, as the root of the largest eigenvalue of A^T A."""
    return np.sqrt(np.linalg.eigvalsh(A.swapaxes(1, 2) @ A)[:, -1])


def _length(X: np.ndarray) -> np.ndarray:
    return np.linalg.norm(X.reshape(len(X), -1), axis=1)


def _along(step: np.ndarray, part: np.ndarray) -> np.ndarray:
    return step.reshape(-1, *[1] * (part.ndim - 1))
