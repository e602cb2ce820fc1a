"""One row of softmax regression as a function of its n logits s; the vector and matrix problems are made of rows.

    normalized   L(s)  = (1/2) |f - b|^2,            f = u / alpha,  u = exp(s),  alpha = <u, 1>
    rescaled     Lr(s) = (1/2) |u - alpha b|^2,      u = exp, cosh or sinh of s

The papers' abstracts write these losses without the 1/2, their analysis with it; here it is always there.
With S = diag(f) - f f^T, c = f - b, r = u - alpha b, and Q = (I - b 1^T)^T (I - b 1^T), so that Qu = r - <b, r> 1:

    dL/ds  = S c                       = f * (c - <f, c>)             = sum_j f_i f_j (c_i - c_j)
    dLr/ds = u' * Qu                   = alpha^2 (dL/ds + 2 L f)                              (last: exp only)
    d2L/ds2  = S^2 + T                 = sum_i w_i (e_i - f)(e_i - f)^T,  w_i = f_i (f_i + c_i - <f, c>)
    d2Lr/ds2 = diag(u') Q diag(u') + diag(u'' * Qu)
             = alpha^2 (H + 2 (g f^T + f g^T) + 2 L (S + 2 f f^T)),  g = dL/ds, H = d2L/ds2   (last: exp only)

Source: Deng, Li, Song, arXiv:2304.10411 and Li, Song, Xia, Yu, Zhou, arXiv:2304.13276 (normalized); Gao, Song, Yin,
arXiv:2305.00660 (rescaled); Gao, Song, Xie, arXiv:2307.02419 (both, several rows). The letters are defined here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import sympy as sp

from symbolic.softmax_regression.forms import (
    ACTIVATIONS,
    Parts,
    gradient_forms,
    hessian_forms,
    prove_gradient,
    prove_hessian,
    pull_back,
)

__all__ = ["LOSSES", "Row"]

LOSSES = ("normalized", "rescaled")


@dataclass(frozen=True)
class Row:
    """The loss of one row, its gradient and Hessian in the logits, each form proven equal to SymPy's derivative.

    Args:
        logits: s_1 ... s_n, any expressions; derivatives are taken as if each was a variable.
        target: b_1 ... b_n.
        normalization: "normalized" or "rescaled".
        activation: "exp"; for the rescaled loss also "cosh" or "sinh".
    Raises:
        ValueError: the lengths differ, or there is no such loss or activation.
    """

    logits: tuple[sp.Expr, ...]
    target: tuple[sp.Expr, ...]
    normalization: str = "normalized"
    activation: str = "exp"

    def __post_init__(self):
        if len(self.logits) != len(self.target) or not self.logits:
            raise ValueError(
                f"A row has as many targets as logits, at least one; got {len(self.logits)} logits and "
                f"{len(self.target)} targets."
            )
        if self.normalization not in LOSSES:
            raise ValueError(f"`loss` must be one of {list(LOSSES)}; got {self.normalization!r}.")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"`activation` must be one of {sorted(ACTIVATIONS)}; got {self.activation!r}.")
        if self.activation != "exp" and self.normalization != "rescaled":
            raise ValueError(
                f"The normalized loss needs positive u, activation 'exp'; got {self.activation!r}. "
                "Use loss='rescaled', as arXiv:2305.00660 does."
            )

    # --- definition
    # -------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return len(self.logits)

    @cached_property
    def u(self) -> tuple[sp.Expr, ...]:
        """u_i = exp(s_i), or cosh or sinh of it."""
        return tuple(ACTIVATIONS[self.activation][0](s) for s in self.logits)

    @cached_property
    def alpha(self) -> sp.Expr:
        """alpha = <u, 1>."""
        return sp.Add(*self.u)

    @cached_property
    def f(self) -> tuple[sp.Expr, ...]:
        """f = u / alpha, written 1/sum_j exp(s_j - s_i): no exponential of a logit, only of differences."""
        return tuple(1 / sp.Add(*(sp.exp(t - s) for t in self.logits)) for s in self.logits)

    @cached_property
    def c(self) -> tuple[sp.Expr, ...]:
        """c = f - b."""
        return tuple(f - b for f, b in zip(self.f, self.target, strict=True))

    @cached_property
    def residual(self) -> tuple[sp.Expr, ...]:
        """What the loss squares: c of the normalized, r = u - alpha b of the rescaled loss."""
        if self.normalization == "normalized":
            return self.c
        return tuple(u - self.alpha * b for u, b in zip(self.u, self.target, strict=True))

    @cached_property
    def loss(self) -> sp.Expr:
        """(1/2) |residual|^2."""
        return sp.Add(*(r**2 for r in self.residual)) / 2

    # --- gradient
    # ---------------------------------------------------------------------------------------------

    @property
    def gradient(self) -> tuple[sp.Expr, ...]:
        """dL/ds, n entries, in the form to compute with; proven equal to the derivative."""
        return tuple(self.pull_back(sp.eye(self.size)))

    def pull_back(self, rows: sp.MatrixBase) -> sp.ImmutableMatrix:
        """A^T dL/ds, shape (d, 1), for the rows of A, shape (n, d), in the form to compute with; proven.

        normalized: J^T c = sum_i f_i^3 (1 - b_i sum_l u_l/u_i) sum_j (u_j/u_i) (a_i - a_j); rescaled: A^T (u' * Qu).
        """
        prove_gradient(self.size, self.normalization, self.activation)
        if self.normalization == "rescaled":
            return sp.ImmutableMatrix(rows.T * sp.Matrix(gradient_forms(self._parts)["u' Qu"]))
        ratios = sp.Matrix(self.size, self.size, lambda i, j: sp.exp(self.logits[j] - self.logits[i]))
        return pull_back(self._parts, self.f, ratios, rows)

    @cached_property
    def gradient_forms(self) -> dict[str, tuple[sp.Expr, ...]]:
        """dL/ds in every form, by name, all proven equal; "chain" is SymPy's derivative of the loss."""
        prove_gradient(self.size, self.normalization, self.activation)
        return {"chain": self._chain(1)} | gradient_forms(self._parts)

    # --- Hessian
    # ----------------------------------------------------------------------------------------------

    @cached_property
    def hessian(self) -> sp.ImmutableMatrix:
        """d2L/ds2, shape (n, n), in the form "S^2 + T" or "u' Q u'", proven equal to the second derivative."""
        return self.hessian_forms["S^2 + T" if self.normalization == "normalized" else "u' Q u'"]

    @cached_property
    def hessian_forms(self) -> dict[str, sp.ImmutableMatrix]:
        """d2L/ds2 in every form, by name, all proven equal; "chain" is SymPy's second derivative of the loss."""
        prove_hessian(self.size, self.normalization, self.activation)
        chain = sp.ImmutableMatrix(self.size, self.size, self._chain(2))
        return {"chain": chain} | hessian_forms(self._parts)

    @property
    def _parts(self) -> Parts:
        _, first, second = ACTIVATIONS[self.activation]
        slopes, bends = (tuple(map(function, self.logits)) for function in (first, second))
        f = self.f if self.activation == "exp" else ()
        return Parts(self.normalization, self.u, slopes, bends, f, self.target)

    def _chain(self, order: int) -> tuple[sp.Expr, ...]:
        """All derivatives of an order, row by row, taken in letters that then become the logits."""
        letters = tuple(sp.Dummy(f"s_{i + 1}", real=True) for i in range(self.size))
        loss = replace(self, logits=letters).loss
        back = dict(zip(letters, self.logits, strict=True))
        return tuple(loss.diff(*place).xreplace(back) for place in product(letters, repeat=order))
