"""The gradient and the Hessian of one row in all their forms, proven equal to the derivative of the loss.

The proof is by polynomials. With f and alpha (or u and u') as letters, derivatives in the logits are a rule,

    df_i/ds_j = f_i (delta_ij - f_j),     d alpha/ds_j = alpha f_j,
    du_i/ds_j = delta_ij u'_i,            du'_i/ds_j = delta_ij u_i,

which SymPy's derivatives of the exponentials confirm entry by entry; then every form is a polynomial, and two
forms are equal when their difference is zero modulo sum f = 1. This is the general reason: no exponential is left.
It is also one for every n: made homogeneous with powers of sum f, the coefficient of a monomial depends on which of
its indices coincide and not on n, and no monomial has more than five different ones (u_i u_j f_k f_l b_m^2 of the
bridge), so that the identities of five rows are those of all. Each n is proven when it is first used all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple

import sympy as sp
from sympy.polys.rings import PolyRing

from symbolic.normal_form import vanishes

__all__ = [
    "ACTIVATIONS",
    "Parts",
    "gradient_forms",
    "hessian_forms",
    "pairs",
    "prove_gradient",
    "prove_hessian",
]

#: u, u' and u'' as functions of a logit.
ACTIVATIONS = {
    "exp": (sp.exp, sp.exp, sp.exp),
    "cosh": (sp.cosh, sp.sinh, sp.cosh),
    "sinh": (sp.sinh, sp.cosh, sp.sinh),
}


class Parts(NamedTuple):
    """What the forms are made of: u, u', u'', f and b, n entries each; f is empty for cosh and sinh."""

    normalization: str
    u: tuple[sp.Expr, ...]
    slopes: tuple[sp.Expr, ...]
    bends: tuple[sp.Expr, ...]
    f: tuple[sp.Expr, ...]
    target: tuple[sp.Expr, ...]


def pull_back(
    parts: Parts, scales: Sequence[sp.Expr], ratios: sp.MatrixBase, rows: sp.MatrixBase
) -> sp.ImmutableMatrix:
    """A^T S c as J^T c with J = df/dx, in factors of f_j = scale_i ratio_ij, such as f_i and u_j/u_i:

        sum_i f_i scale_i^2 [sum_l (delta_il - b_i) ratio_il] [sum_j ratio_ij (a_i - a_j)]

    The form to compute with: J consists of differences of rows, and c_i = f_i - b_i sum_l f_l loses nothing near a
    vertex, even if b is that vertex. (The sum over i cancels when f tends to e_k while 1 - b_k + b_j = 0, for a b
    outside the simplex; `pairs` keeps its digits there too.)

    Args:
        scales, ratios: n and (n, n) factors. rows: A, shape (n, d).
    Returns:
        A column of d entries.
    """
    size, total = len(parts.f), sp.zeros(rows.cols, 1)
    for i, (f, b, scale) in enumerate(zip(parts.f, parts.target, scales, strict=True)):
        c = sp.Add(*((int(i == l) - b) * ratios[i, l] for l in range(size)))
        for k in range(rows.cols):
            slope = sp.Add(*(ratios[i, j] * (rows[i, k] - rows[j, k]) for j in range(size)))
            total[k] += f * scale**2 * c * slope
    return sp.ImmutableMatrix(total)


def pairs(f: Sequence[sp.Expr], target: Sequence[sp.Expr]) -> dict[tuple[int, int], sp.Expr]:
    """h_ij = f_i f_j (c_i - c_j) for i < j, with  c_i - c_j = sum_l f_l (delta_il - delta_jl - b_i + b_j).

    The derivative in logit i is sum_j h_ij with h_ji = -h_ij. Exact to rounding for every b, but long.
    """
    size = len(f)
    gaps = {
        (i, j): sp.Add(*((int(i == l) - int(j == l) - target[i] + target[j]) * f[l] for l in range(size)))
        for i, j in combinations(range(size), 2)
    }
    return {(i, j): f[i] * f[j] * gap for (i, j), gap in gaps.items()}


def gradient_forms(parts: Parts) -> dict[str, tuple[sp.Expr, ...]]:
    """The gradient in the logits in every form but the derivative itself, by name."""
    if parts.normalization == "normalized":
        size = len(parts.f)
        pulled = pull_back(parts, [1] * size, sp.ones(size, 1) * sp.Matrix([parts.f]), sp.eye(size))
        return _normalized_gradient(parts.f, parts.target) | {"J^T c": tuple(pulled)}
    forms = {"u' Qu": tuple(v * q for v, q in zip(parts.slopes, _quadratic(parts), strict=True))}
    if parts.f:
        alpha, loss = sp.Add(*parts.u), _normalized_loss(parts)
        rows = zip(_normalized_gradient(parts.f, parts.target)["Cov_f"], parts.f, strict=True)
        forms["bridge"] = tuple(alpha**2 * (g + 2 * loss * f) for g, f in rows)
    return forms


def hessian_forms(parts: Parts) -> dict[str, sp.ImmutableMatrix]:
    """The Hessian in the logits in every form but the derivative itself, by name."""
    if parts.normalization == "normalized":
        return _normalized_hessian(parts.f, parts.target)
    size, slopes = len(parts.u), sp.diag(*parts.slopes)
    spread = sp.eye(size) - sp.Matrix(parts.target) * sp.ones(1, size)
    bends = sp.diag(*(w * q for w, q in zip(parts.bends, _quadratic(parts), strict=True)))
    forms = {"u' Q u'": sp.ImmutableMatrix(slopes * spread.T * spread * slopes + bends)}
    if parts.f:
        alpha, loss, f = sp.Add(*parts.u), _normalized_loss(parts), sp.Matrix(parts.f)
        g = sp.Matrix(_normalized_gradient(parts.f, parts.target)["Cov_f"])
        H = _normalized_hessian(parts.f, parts.target)["S^2 + T"]
        curved = H + 2 * (g * f.T + f * g.T) + 2 * loss * (_covariance(parts.f) + 2 * f * f.T)
        forms["bridge"] = sp.ImmutableMatrix(alpha**2 * curved)
    return forms


@lru_cache(maxsize=64)
def prove_gradient(size: int, normalization: str, activation: str) -> None:
    """Prove for all rows of one size that every form of the gradient is the derivative of the loss."""
    letters, parts = _lettered(size, normalization, activation)
    loss = _loss(parts)
    for name, form in gradient_forms(parts).items():
        for j in range(size):
            if not letters.vanishes(letters.derivative(loss, j) - form[j], parts.target):
                raise AssertionError(f"entry {j} of the gradient in the form {name!r} is not the derivative")


@lru_cache(maxsize=64)
def prove_hessian(size: int, normalization: str, activation: str) -> None:
    """Prove for all rows of one size that every form of the Hessian is the second derivative of the loss."""
    letters, parts = _lettered(size, normalization, activation)
    loss, forms = _loss(parts), hessian_forms(parts)
    for i, j in combinations_with_replacement(range(size), 2):
        second = letters.derivative(letters.derivative(loss, i), j)
        for name, form in forms.items():
            if any(not letters.vanishes(second - form[place], parts.target) for place in {(i, j), (j, i)}):
                raise AssertionError(
                    f"entry {i, j} of the Hessian in the form {name!r} is not the derivative"
                )


@lru_cache(maxsize=64)
def _lettered(size: int, normalization: str, activation: str) -> tuple[_Letters, Parts]:
    letters = _exponential_letters(size) if activation == "exp" else _hyperbolic_letters(size, activation)
    letters.confirm()
    target = tuple(sp.Dummy(f"b_{i + 1}", real=True) for i in range(size))
    return letters, Parts(normalization, letters.u, letters.slopes, letters.u, letters.f, target)


def _loss(parts: Parts) -> sp.Expr:
    numbers, total = (parts.f, 1) if parts.normalization == "normalized" else (parts.u, sp.Add(*parts.u))
    return sp.Add(*((u - total * b) ** 2 for u, b in zip(numbers, parts.target, strict=True))) / 2


@dataclass(frozen=True, eq=False)
class _Letters:
    """Letters for the transcendental parts of a row, with their meanings in the logits and their derivatives.

    `rules[letter][j]` is the derivative in logit j, a polynomial in letters; `f` are the letters that sum to 1.
    """

    logits: tuple[sp.Symbol, ...]
    meanings: dict[sp.Symbol, sp.Expr]
    rules: dict[sp.Symbol, tuple[sp.Expr, ...]]
    u: tuple[sp.Expr, ...]
    slopes: tuple[sp.Expr, ...]
    f: tuple[sp.Symbol, ...]

    def confirm(self) -> None:
        """The rules are SymPy's derivatives of the meanings."""
        for letter, rates in self.rules.items():
            for s, rate in zip(self.logits, rates, strict=True):
                if not vanishes(self.meanings[letter].diff(s) - rate.xreplace(self.meanings)):
                    raise AssertionError(f"d{letter}/d{s} is not {rate}")

    def derivative(self, polynomial: sp.Expr, j: int) -> sp.Expr:
        return sp.Add(*(polynomial.diff(letter) * rates[j] for letter, rates in self.rules.items()))

    def vanishes(self, polynomial: sp.Expr, others: tuple[sp.Symbol, ...]) -> bool:
        if self.f:
            polynomial = polynomial.xreplace({self.f[-1]: 1 - sp.Add(*self.f[:-1])})
        return not PolyRing([*self.meanings, *others], sp.QQ, "grevlex").from_expr(polynomial)


def _exponential_letters(size: int) -> _Letters:
    """f and alpha; u = alpha f is its own slope."""
    s, f = (tuple(sp.Dummy(f"{name}_{i + 1}", real=True) for i in range(size)) for name in "sf")
    alpha = sp.Dummy("alpha", positive=True)
    total = sp.Add(*map(sp.exp, s))
    meanings = dict(zip(f, (sp.exp(x) / total for x in s), strict=True)) | {alpha: total}
    rules = {f[i]: tuple(f[i] * (int(i == j) - f[j]) for j in range(size)) for i in range(size)}
    rules[alpha] = tuple(alpha * f[j] for j in range(size))
    u = tuple(alpha * x for x in f)
    return _Letters(s, meanings, rules, u, u, f)


def _hyperbolic_letters(size: int, activation: str) -> _Letters:
    """u and u', which are each other's derivatives for cosh and sinh."""
    s, u, v = (tuple(sp.Dummy(f"{name}_{i + 1}", real=True) for i in range(size)) for name in "suv")
    function, slope, _ = ACTIVATIONS[activation]
    meanings = dict(zip(u, map(function, s), strict=True)) | dict(zip(v, map(slope, s), strict=True))
    rules = {u[i]: tuple(v[i] if i == j else sp.S.Zero for j in range(size)) for i in range(size)}
    rules |= {v[i]: tuple(u[i] if i == j else sp.S.Zero for j in range(size)) for i in range(size)}
    return _Letters(s, meanings, rules, u, v, ())


def _quadratic(parts: Parts) -> list[sp.Expr]:
    """Qu = r - <b, r> 1, with r_i = sum_l (delta_il - b_i) u_l: r keeps its digits when b is a vertex."""
    residual = [
        sp.Add(*((int(i == l) - b) * u for l, u in enumerate(parts.u))) for i, b in enumerate(parts.target)
    ]
    mean = _inner(parts.target, residual)
    return [r - mean for r in residual]


def _normalized_loss(parts: Parts) -> sp.Expr:
    return sp.Add(*((f - b) ** 2 for f, b in zip(parts.f, parts.target, strict=True))) / 2


def _normalized_gradient(f: Sequence[sp.Expr], target: Sequence[sp.Expr]) -> dict[str, tuple[sp.Expr, ...]]:
    c = [x - b for x, b in zip(f, target, strict=True)]
    mean = _inner(f, c)
    entries: list[list[sp.Expr]] = [[] for _ in f]
    for (i, j), h in pairs(f, target).items():
        entries[i].append(h)
        entries[j].append(-h)
    return {
        "S c": tuple(_covariance(f) * sp.Matrix(c)),
        "Cov_f": tuple(x * (y - mean) for x, y in zip(f, c, strict=True)),
        "pairs": tuple(sp.Add(*terms) for terms in entries),
    }


def _normalized_hessian(f: Sequence[sp.Expr], target: Sequence[sp.Expr]) -> dict[str, sp.ImmutableMatrix]:
    c = [x - b for x, b in zip(f, target, strict=True)]
    mean, S, column = _inner(f, c), _covariance(f), sp.Matrix(f)
    fc = column.multiply_elementwise(sp.Matrix(c))
    T = sp.diag(*fc) - mean * sp.diag(*f) - fc * column.T - column * fc.T + 2 * mean * column * column.T
    scatter = sp.zeros(len(f))
    for i, (x, y) in enumerate(zip(f, c, strict=True)):
        deviation = sp.eye(len(f))[:, i] - column
        scatter += x * (x + y - mean) * deviation * deviation.T
    return {"S^2 + T": sp.ImmutableMatrix(S * S + T), "scatter": sp.ImmutableMatrix(scatter)}


def _covariance(f: Sequence[sp.Expr]) -> sp.Matrix:
    """S = diag(f) - f f^T."""
    return sp.diag(*f) - sp.Matrix(f) * sp.Matrix([f])


def _inner(first: Sequence[sp.Expr], second: Sequence[sp.Expr]) -> sp.Expr:
    return sp.Add(*(p * q for p, q in zip(first, second, strict=True)))
