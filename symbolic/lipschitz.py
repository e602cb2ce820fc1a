"""How far the pieces of softmax regression can move: the papers' Lipschitz constants beside the best that we know.

The papers assume |A| <= R and |x| <= R, so that |A x| <= R^2, |b| <= 1 and alpha >= beta, and multiply the bounds
of u, alpha and 1/alpha up to  M = n^{3/2} exp(10 R^2)  for f. But S(f) = diag(f) - f f^T has |S| <= 1/2, since
v^T S v = Var_f(v) <= (max v - min v)^2/4 <= |v|^2/2: f is |A|/2-Lipschitz on the whole space, whatever n is, and
the gradient is kappa |A|^2-Lipschitz there, both attained. Only the rescaled loss, a quadratic form of u, really
grows exponentially.

`kappa` and `kappa3` are exact for two rows. For more rows that they stay the extremes is an observation (numerical
optima for n = 3, 4, 6 always have two active rows), not a theorem; what is proven for every n has a row of its own.

Source: Li et al., arXiv:2304.13276 (M, normalized); Gao, Song, Yin, arXiv:2305.00660 (rescaled); Gao, Song, Xie,
arXiv:2307.02419 (both, matrix; M = exp(O(R^2 + log n))). Of the papers' steps only M was read; the constants of the
single steps are recalled and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import sympy as sp

from symbolic.softmax_regression.forms import Parts, hessian_forms
from symbolic.zero import exact

__all__ = ["Bound", "R", "b_norm", "beta", "kappa", "kappa3", "n", "of_softmax", "table"]

#: The number of targets; the bound of |A| and |x|; the floor of alpha; |b|.
n = sp.Symbol("n", positive=True, integer=True)
R, beta = sp.symbols("R beta", positive=True)
b_norm = sp.Symbol("b", nonnegative=True)
_SYMBOLS = {"n": n, "R": R, "beta": beta, "b_norm": b_norm}

_M = n ** sp.Rational(3, 2) * sp.exp(10 * R**2)
_THEOREM = "Li et al., arXiv:2304.13276, in-context theorem"
_STEPS = "recalled: a chain of steps in the manner of the papers"
_NONE = "arXiv:2307.02419: exp(O(R^2 + log n)), without constants"

_READ, _RECALLED, _ABSENT = "published: read", "published: recalled, not verified", "published: no constant"
_BEST, _PROVEN = "sharp: proven, best possible", "sharp: proven, can be improved"
_PAIR = "sharp: proven, attained for n = 2, approached for n > 2 when two rows take all of f"
_TWO_ROWS = "sharp: proven and attained for n = 2, numerical optimum for n > 2"


@dataclass(frozen=True)
class Bound:
    """|quantity moves| <= constant * |what moves|, by a paper and by the best constant known here.

    `published` is a paper's constant, or where `status` says "recalled" one in the papers' manner that nobody should
    quote, and None where there is none; `sharp` is oo where no finite constant exists. `source` is that of
    `published`; `status` says how well both are known.
    """

    name: str
    quantity: str
    published: sp.Expr | None
    sharp: sp.Expr
    source: str
    status: str


def table(
    *,
    n: int | sp.Expr = n,
    R: sp.Expr | float = R,
    beta: sp.Expr | float = beta,
    b_norm: sp.Expr | float = b_norm,
) -> tuple[Bound, ...]:
    """Every building block's bound, as expressions in n, R, beta and |b|, or with values in their place.

    No bound depends on d. The usual floor is beta = exp(-R^2); alpha >= n exp(-R^2/sqrt(n)) holds and is attained.

    Args:
        n: the number of targets. R: the bound of |A| and |x|. beta: the floor of alpha. b_norm: |b|.
    Raises:
        ValueError: n is not a positive integer, R or beta not positive, or |b| negative.
    """
    given = zip(_SYMBOLS, (n, R, beta, b_norm), strict=True)
    values = {name: exact(sp.sympify(value)) for name, value in given}
    for name, value in values.items():
        if value.is_finite is False or not (value.is_nonnegative if name == "b_norm" else value.is_positive):
            kind = "non-negative" if name == "b_norm" else "positive"
            raise ValueError(f"`{name}` must be a {kind} number or symbol; got {value}.")
    if values["n"].is_integer is not True:
        raise ValueError(f"`n` must be an integer; got {values['n']}.")
    here = {_SYMBOLS[name]: value for name, value in values.items()}
    return tuple(
        replace(
            bound,
            published=None if bound.published is None else bound.published.xreplace(here),
            sharp=bound.sharp.xreplace(here),
        )
        for bound in _bounds()
    )


def of_softmax(A: Sequence | sp.MatrixBase) -> sp.Expr:
    """The best constant of s = A x -> f for one A with f free in the simplex:  (sqrt(2)/4) max_ij |a_i - a_j|.

    For unit w,  w^T S A v = Cov_f(w, A v) <= (range of w/2)(range of A v/2)  and the range of w is at most sqrt(2).
    Attained at f = (e_i + e_j)/2; at most |A|/2, and unchanged if all rows of A are shifted.
    """
    rows = sp.Matrix(A).applyfunc(exact)
    gaps = [(rows.row(i) - rows.row(j)).norm() for i, j in combinations(range(rows.rows), 2)]
    return sp.sqrt(2) / 4 * sp.Max(0, *gaps)


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


@lru_cache(maxsize=1)
def _bounds() -> tuple[Bound, ...]:
    return (*_pieces("x", "y", "x"), *_pieces("A", "A'", "A"), *_gradients(), *_rescaled(), *_targets())


def _pieces(first: str, second: str, moved: str) -> tuple[Bound, ...]:
    """u, alpha, 1/alpha, f and c: the constants for moves of x and of A are the same, as |A| and |x| have one bound.

    The chain: |du| <= 2 sqrt(n) R exp(R^2) |dx|, if also |A dx|_oo < 1/100; |d alpha| <= sqrt(n) |du|;
    |d(1/alpha)| <= |d alpha|/beta^2; |df| <= |du|/beta + |d(1/alpha)| |u|. Here instead |du| = |diag(u) A dx|,
    |d alpha| = |u^T A dx|, d(1/alpha) = -f^T A dx/alpha, df = S A dx.
    """
    u = 2 * sp.sqrt(n) * R * sp.exp(R**2)
    alpha = sp.sqrt(n) * u
    inverse = alpha / beta**2
    f = u / beta + inverse * sp.sqrt(n) * sp.exp(R**2)
    move = f"|{first} - {second}|"
    rows = (
        ("u", u, R * sp.exp(R**2), _STEPS, f"{_RECALLED}; {_BEST}"),
        ("alpha", alpha, sp.sqrt(n) * R * sp.exp(R**2), _STEPS, f"{_RECALLED}; {_PROVEN}"),
        ("1/alpha", inverse, R / beta, _STEPS, f"{_RECALLED}; {_PROVEN}"),
        ("f", f, R / 2, _STEPS, f"{_RECALLED}; {_PAIR}"),
        ("c = f - b", _M, R / 2, _THEOREM, f"{_READ}; {_PAIR}"),
    )
    return tuple(
        Bound(
            f"{name}, {moved}-move",
            f"|{name.split()[0]}({first}) - {name.split()[0]}({second})| / {move}",
            *rest,
        )
        for name, *rest in rows
    )


def _gradients() -> tuple[Bound, ...]:
    """The gradient and the Hessian of the normalized loss.

    For every n and b: the weights of the scatter form are |f_i + c_i - <f, c>| <= |2 f_i - |f|^2| + |<e_i - f, b>|
    <= 1 + sqrt(2) |b|, or 2 for b in the simplex, and the variance of v is at most |v|^2/2. For a move of A,
    d(A^T S c) = dA^T S c + A^T d(S c) with |S c| <= |c|/2 <= (1 + |b|)/2.
    """
    every = (1 + sp.sqrt(2) * b_norm) / 2
    ratio = "|grad L(x) - grad L(y)| / |x - y|"
    hessian = sp.exp(20 * R**2) * n ** sp.Rational(3, 2) / beta**2
    return (
        Bound("gradient, b in the simplex", ratio, None, kappa() * R**2, _NONE, f"{_ABSENT}; {_TWO_ROWS}"),
        Bound(
            "gradient, |b| <= 1", ratio, None, kappa(target="ball") * R**2, _NONE, f"{_ABSENT}; {_TWO_ROWS}"
        ),
        Bound("gradient, b in the simplex, every n", ratio, None, R**2, _NONE, f"{_ABSENT}; {_PROVEN}"),
        Bound("gradient, every b and n", ratio, None, every * R**2, _NONE, f"{_ABSENT}; {_PROVEN}"),
        Bound(
            "gradient, A-move, every b and n",
            "|grad L(A) - grad L(A')| / |A - A'|",
            None,
            (1 + b_norm) / 2 + every * R**2,
            _NONE,
            f"{_ABSENT}; {_PROVEN}",
        ),
        Bound(
            "Hessian, b in the simplex",
            "|H(x) - H(y)| / |x - y|",
            hessian,
            kappa3() * R**3,
            _STEPS,
            f"{_RECALLED}; {_TWO_ROWS}",
        ),
    )


def _rescaled() -> tuple[Bound, ...]:
    """r = (I - b 1^T) u with |I - b 1^T| <= 1 + sqrt(n) |b|, and the Hessian diag(u) Q diag(u) + diag(u * Qu)."""
    spread = 1 + sp.sqrt(n) * b_norm
    residual = spread * R * sp.exp(R**2)
    bend = (sp.sqrt(n) + n * b_norm) * (1 + b_norm)
    gradient = R**2 * sp.exp(2 * R**2) * (spread**2 + bend)
    ratio = "|grad Lr(x) - grad Lr(y)| / |x - y|"
    status = f"{_ABSENT}; {_PROVEN}"
    return (
        Bound("rescaled residual, x-move", "|r(x) - r(y)| / |x - y|", None, residual, _NONE, status),
        Bound("rescaled residual, A-move", "|r(A) - r(A')| / |A - A'|", None, residual, _NONE, status),
        Bound("rescaled gradient", ratio, None, gradient, _NONE, status),
        Bound("rescaled gradient, any x", ratio, None, sp.oo, _NONE, f"{_ABSENT}; sharp: no constant exists"),
    )


def _targets() -> tuple[Bound, ...]:
    """b~ of an x-move and b^ of an A-move in the in-context theorem: f moves as far as the target does.

    Rescaled: b~ - b = -(r(y) - r(x))/alpha. A matrix of targets moves as far as A1 kron A2 lets it, without sqrt(n).
    """
    residual = (1 + sp.sqrt(n) * b_norm) * R * sp.exp(R**2) / beta
    return (
        Bound("b~, x-move", "|b~ - b| / |x - y|", _M, R / 2, _THEOREM, f"{_READ}; {_PAIR}"),
        Bound("b^, A-move", "|b^ - b| / |A - A'|", _M, R / 2, _THEOREM, f"{_READ}; {_PAIR}"),
        Bound("rescaled b~, x-move", "|b~ - b| / |x - y|", None, residual, _NONE, f"{_ABSENT}; {_PROVEN}"),
        Bound(
            "B~, X-move, |A1| |A2| <= R",
            "|B~ - B|_F / |X - Y|_F",
            None,
            R / 2,
            _NONE,
            f"{_ABSENT}; {_PAIR}",
        ),
    )
