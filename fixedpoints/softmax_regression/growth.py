"""Where the rescaled loss leaves no fixed point at all: Euler's identity for a sum of regressions.

If A_p v = t_p 1 with t_p >= t > 0 for every p, then  <v, grad Lr> = 2 sum_p t_p Lr_p >= 2 t Lr,  so that every fixed
point has Lr = 0, f_p = b_p, and along the flow from anywhere

    dLr/dtau = -|grad Lr|^2 <= -(2 t Lr/|v|)^2,        Lr(tau) <= 1/(1/Lr(0) + 4 t^2 tau/|v|^2).

Lr goes to 0, and if no x has f_p = b_p for all p, then x goes to infinity.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from symbolic.errors import UndecidedError
from symbolic.softmax_regression.joint import JointRegression

__all__ = ["growth", "unmet_growth"]

#: Of the perceptron; a direction that needs more is not looked for.
_MOST_STEPS = 1000


@lru_cache(maxsize=128)
def growth(problem: JointRegression) -> sp.ImmutableMatrix | None:
    """Some v with A_p v = t_p 1 and t_p > 0 for every p; None if none was found."""
    first = sp.Matrix.vstack(*(block[0, :] for block in problem.blocks))
    differences = [A[i, :] - A[0, :] for A in problem.blocks for i in range(1, A.rows)]
    level = sp.Matrix.vstack(sp.zeros(1, first.cols), *differences).nullspace()
    if not level:
        return None
    N = sp.Matrix.hstack(*level)
    heights = first * N
    # The perceptron: it ends if some c has heights c > 0.
    c = sum((heights.row(p).T for p in range(heights.rows)), sp.zeros(N.cols, 1))
    for _ in range(_MOST_STEPS):
        t = heights * c
        if all(value > 0 for value in t):
            return sp.ImmutableMatrix(N * c)
        c += heights.row(list(t).index(min(t))).T
    return None


@lru_cache(maxsize=128)
def unmet_growth(problem: JointRegression) -> sp.ImmutableMatrix | None:
    """The same v if f_p = b_p is proven to be impossible, so that nothing stops; None otherwise."""
    v = growth(problem)
    if v is None:
        return None
    try:
        problem.interpolation()
    except UndecidedError:
        return None
    except ValueError:
        return v
    return None
