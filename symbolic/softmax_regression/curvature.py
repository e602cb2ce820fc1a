"""How strongly the normalized loss curves in its logits: exact extremes of its second and third derivatives.

    d2L/ds2 = S^2 + T,  a scatter of two rows:  with f = (p, 1 - p) and e = b_1 - b_2 one eigenvalue that is not zero,
    2 p (1 - p) (2 p (1 - p) + (1 - 2 p) (2 p - 1 - e)) .

That no further row makes the extremes larger is an observation (numerical optima for n = 3, 4, 6 have two active
rows), not a theorem.

Source: derived here; the Hessian's forms are those of `symbolic.softmax_regression.forms`.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from symbolic.softmax_regression.forms import Parts, hessian_forms

__all__ = ["kappa", "kappa3"]


@lru_cache(maxsize=8)
def kappa(*, target: str = "simplex", side: str = "largest") -> sp.Expr:
    """The extreme eigenvalue of d2L/ds2 for two rows: the gradient is kappa |A|^2-Lipschitz, exactly.

    With f = (p, 1 - p) and e = b_1 - b_2 the only non-zero eigenvalue is 2 p (1 - p) (2 p (1 - p) + (1 - 2 p)
    (2 p - 1 - e)). It is linear in e, so that an extreme e is best: |e| <= 1 in the simplex, sqrt(2) in the ball.

    Args:
        target: "simplex" for probabilities b, "ball" for |b| <= 1.
        side: "largest" (step sizes) or "smallest" (how far the loss is from convex).
    Raises:
        ValueError: there is no such target or side.
    """
    choices = _choices(target, side)
    p, eigenvalue = _curvature(_reach(target))
    values = [sp.radsimp(sp.expand(eigenvalue.subs(p, root))) for root in _stationary(eigenvalue, p, target)]
    return choices(values, key=lambda value: value.evalf(30))


@lru_cache(maxsize=1)
def kappa3() -> sp.Expr:
    """The largest third derivative of L along a unit direction of the logits, for two rows and b in the simplex.

    The Hessian is kappa3 |A|^3-Lipschitz. Along (1, -1)/sqrt(2) the derivative of p is sqrt(2) p (1 - p).
    """
    p, eigenvalue = _curvature(_reach("simplex"))
    third = sp.expand(eigenvalue.diff(p) * p * (1 - p))
    inside = [root for root in sp.Poly(third.diff(p), p).real_roots() if 0 <= root <= 1]
    best = max(inside, key=lambda root: abs(third.subs(p, root).evalf(30)))
    return sp.sqrt(2) * sp.Abs(third.subs(p, best))


def _choices(target: str, side: str):
    if target not in ("simplex", "ball"):
        raise ValueError(f"`target` must be 'simplex' or 'ball'; got {target!r}.")
    if side not in ("largest", "smallest"):
        raise ValueError(f"`side` must be 'largest' or 'smallest'; got {side!r}.")
    return max if side == "largest" else min


def _reach(target: str) -> sp.Expr:
    """The largest |b_1 - b_2|."""
    return sp.S.One if target == "simplex" else sp.sqrt(2)


def _curvature(reach: sp.Expr) -> tuple[sp.Symbol, sp.Expr]:
    """p and v^T (d2L/ds2) v along v = (1, -1)/sqrt(2), for f = (p, 1 - p) and b_1 - b_2 = -reach."""
    p, b = sp.Dummy("p", real=True), sp.symbols("b_1 b_2")
    f = (p, 1 - p)
    H = hessian_forms(Parts("normalized", f, f, f, f, b))["S^2 + T"]
    form = sp.expand((H[0, 0] - 2 * H[0, 1] + H[1, 1]) / 2).subs(b[0], b[1] - reach)
    return p, sp.expand(form)


def _stationary(polynomial: sp.Expr, p: sp.Symbol, target: str) -> list[sp.Expr]:
    """The ends of [0, 1] and the points between where the derivative vanishes; all are expressed by roots."""
    extension = {} if target == "simplex" else {"extension": sp.sqrt(2)}
    points = [sp.S.Zero, sp.S.One]
    for factor, _ in sp.factor_list(polynomial.diff(p), p, **extension)[1]:
        points += [root for root in sp.roots(factor, p) if root.is_real and 0 <= root <= 1]
    return points
