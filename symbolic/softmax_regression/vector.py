"""Softmax regression with one target: find x with softmax(A x) = b, by gradient flow or gradient descent.

    normalized   L(x)  = (1/2) |f - b|^2           f = u / <u, 1>,  u = exp(A x)
    rescaled     Lr(x) = (1/2) |u - <u, 1> b|^2    u = exp, cosh or sinh of A x
    ridge        + (1/2) |W A x|^2                 W = diag(w)

A has n rows a_i of length d. The logits s = A x are linear in x, so gradient and Hessian are those of one row
(`row`), pulled back: A^T dL/ds and A^T (d2L/ds2) A. Flow x' = -grad L without a time constant, and the map
x -> x - eta grad L.

Source: Deng, Li, Song, arXiv:2304.10411; Li, Song, Xia, Yu, Zhou, arXiv:2304.13276; Gao, Song, Yin, arXiv:2305.00660.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import sympy as sp

from symbolic import closed_form
from symbolic.closed_form import ClosedForm
from symbolic.conservation import FirstIntegral
from symbolic.field import IteratedMap, VectorField
from symbolic.reduction import Reduction, restrict
from symbolic.softmax_regression import rules
from symbolic.softmax_regression.data import column, interpolating_point, letters, matrix, symbols_of, where
from symbolic.softmax_regression.forms import pairs
from symbolic.softmax_regression.joint import JointRegression
from symbolic.softmax_regression.row import Row
from symbolic.zero import is_zero

__all__ = ["SoftmaxRegression", "model"]

_SOURCES = {
    "normalized": "Li et al. 2023, arXiv:2304.13276",
    "rescaled": "Gao, Song, Yin 2023, arXiv:2305.00660",
}

#: exp(g x), the state of the reduction to one exponential.
_w = sp.Symbol("w", positive=True)


@lru_cache(maxsize=32, typed=True)
def model(
    *, n: int, d: int, loss: str = "normalized", activation: str = "exp", ridge: bool = False
) -> SoftmaxRegression:
    """Softmax regression of n targets on d weights, with letters A_<i>_<j>, b_<i> (and w_<i>) for the data.

    Numbers take their place with `model(...).at(A, b)`.

    Args:
        n, d: the shape of A.
        loss: "normalized" or "rescaled".
        activation: "exp"; for the rescaled loss also "cosh" or "sinh".
        ridge: whether (1/2) |W A x|^2 is added.
    Raises:
        ValueError: n or d is not a positive integer, there is no such loss, or nothing is left to descend.
    """
    A, b = letters("A", n, d), tuple(letters("b", n))
    return SoftmaxRegression(A, b, loss, activation, tuple(letters("w", n)) if ridge else None)


@dataclass(frozen=True)
class SoftmaxRegression:
    """Vector softmax regression; A and b hold letters (`model`) or numbers (`at`). All derivatives are proven.

    Weights: x_1 ... x_d; parameters: the symbols of A row by row, then of b, then of w.

    Args:
        A: shape (n, d). b: n entries, any finite numbers: the papers ask for |b| <= 1, not for probabilities.
        normalization, activation: which loss, as in `model`.
        w: the n ridge weights, or None.
    Raises:
        ValueError: shapes do not match, an entry is not finite, or n = 1 with the normalized loss.
    """

    A: sp.ImmutableMatrix
    b: tuple[sp.Expr, ...]
    normalization: str = "normalized"
    activation: str = "exp"
    w: tuple[sp.Expr, ...] | None = None

    def __post_init__(self):
        A = matrix("A", self.A)
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "b", column("b", self.b, A.rows, "rows of A"))
        if self.w is not None:
            object.__setattr__(self, "w", column("w", self.w, A.rows, "rows of A"))
        if A.rows == 1 and self.normalization == "normalized":
            raise ValueError(
                "With n = 1 the softmax is f = 1 whatever x is, so that the normalized loss is the constant "
                "(1 - b_1)^2/2 and there is nothing to descend; got A with 1 row. Use n >= 2 or loss='rescaled'."
            )
        _ = self.row  # refuses a loss or an activation that does not exist

    # --- definition
    # -------------------------------------------------------------------------------------------

    @cached_property
    def x(self) -> tuple[sp.Symbol, ...]:
        return tuple(letters("x", self.A.cols))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights, (d, 1)."""
        return self.A.cols, 1

    @property
    def weights(self) -> tuple[sp.Symbol, ...]:
        """x_1 ... x_d."""
        return self.x

    @cached_property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        return symbols_of((*self.A, *self.b, *(self.w or ())))

    @cached_property
    def row(self) -> Row:
        """The loss as a function of the logits s = A x."""
        logits = tuple(self.A * sp.Matrix(self.x))
        return Row(logits, self.b, self.normalization, self.activation)

    @property
    def u(self) -> tuple[sp.Expr, ...]:
        """u = exp(A x), or cosh or sinh of it."""
        return self.row.u

    @property
    def alpha(self) -> sp.Expr:
        """alpha = <u, 1>."""
        return self.row.alpha

    @property
    def f(self) -> tuple[sp.Expr, ...]:
        """f = u / alpha."""
        return self.row.f

    @property
    def c(self) -> tuple[sp.Expr, ...]:
        """c = f - b."""
        return self.row.c

    @property
    def residual(self) -> tuple[sp.Expr, ...]:
        """What the loss squares: c, or r = u - alpha b of the rescaled loss."""
        return self.row.residual

    @cached_property
    def loss(self) -> sp.Expr:
        """(1/2) |residual|^2, with ridge + (1/2) |W A x|^2."""
        return self.row.loss + self._ridge

    @cached_property
    def label(self) -> str:
        """Where b lies: inside the simplex, on its boundary or outside; only inside can f = b."""
        return where(self.b)

    def at(self, A: Sequence | sp.MatrixBase, b: Sequence, w: Sequence | None = None) -> SoftmaxRegression:
        """The same problem with numbers, or expressions in new parameters, in the place of the letters.

        A float is the exact rational that it is.

        Args:
            A: n rows of d entries. b: n entries. w: the n ridge weights, exactly if the model has them.
        Raises:
            TypeError: A, b or w is no list of numbers or expressions.
            ValueError: a shape differs from the model's, an entry is not finite, or w is missing or not asked for.
        """
        A = matrix("A", A)
        if A.shape != self.A.shape:
            raise ValueError(f"`A` must have shape {self.A.shape}; got {A.shape}.")
        if (w is None) != (self.w is None):
            raise ValueError(
                "`w` must be given exactly if the model has a ridge term; "
                f"got w={w!r} for a model with ridge={self.w is not None}."
            )
        return replace(self, A=A, b=b, w=w)

    # --- derivatives
    # ------------------------------------------------------------------------------------------

    @cached_property
    def gradient(self) -> sp.ImmutableMatrix:
        """grad L, shape (d, 1), in the form to compute with, "J^T c" or "A^T (u' Qu)"."""
        return sp.ImmutableMatrix(self.row.pull_back(self.A) + self._ridge_slope)

    @cached_property
    def gradient_forms(self) -> dict[str, sp.ImmutableMatrix]:
        """grad L in every form, all proven equal; "chain" is SymPy's derivative of the loss in x.

        normalized: "A^T S c"; "Cov_f(a, c)" = sum_i f_i (c_i - <f, c>) (a_i - A^T f);
        "pairs" = sum_{i<j} f_i f_j (c_i - c_j) (a_i - a_j); "J^T c" = sum_i c_i f_i (a_i - A^T f), J = df/dx.
        rescaled: "A^T (u' Qu)", and for exp "bridge" = alpha^2 (grad L + 2 L A^T f).
        """
        in_logits, A_T = self.row.gradient_forms, self.A.T
        forms = {"chain": sp.Matrix([self.row.loss.diff(x) for x in self.x])}
        if self.normalization == "normalized":
            # The derivatives in the logits sum to zero, as pairs shows, so that the rows may be centred.
            centred = self.A - sp.ones(self.A.rows, 1) * (sp.Matrix([self.f]) * self.A)
            forms["A^T S c"] = A_T * sp.Matrix(in_logits["S c"])
            forms["Cov_f(a, c)"] = centred.T * sp.Matrix(in_logits["Cov_f"])
            forms["pairs"] = sp.zeros(self.A.cols, 1)
            for (i, j), h in pairs(self.f, self.b).items():
                forms["pairs"] += h * (self.A.row(i) - self.A.row(j)).T
            forms["J^T c"] = self.row.pull_back(self.A)
        else:
            forms["A^T (u' Qu)"] = self.row.pull_back(self.A)
            if "bridge" in in_logits:
                forms["bridge"] = A_T * sp.Matrix(in_logits["bridge"])
        return {name: sp.ImmutableMatrix(form + self._ridge_slope) for name, form in forms.items()}

    @cached_property
    def hessian(self) -> sp.ImmutableMatrix:
        """The Hessian, shape (d, d): A^T (S^2 + T) A, or A^T (diag(u') Q diag(u') + diag(u'' Qu)) A."""
        return self.hessian_forms[
            "A^T (S^2 + T) A" if self.normalization == "normalized" else "A^T (u' Q u') A"
        ]

    @cached_property
    def hessian_forms(self) -> dict[str, sp.ImmutableMatrix]:
        """The Hessian in every form, all proven equal; "chain" is SymPy's second derivative in the logits.

        normalized: "A^T (S^2 + T) A", "A^T (scatter) A" = sum_i w_i (a_i - A^T f)(a_i - A^T f)^T.
        rescaled: "A^T (u' Q u') A", and for exp "A^T (bridge) A".
        """
        ridge = sp.hessian(self._ridge, self.x) if self.w is not None else sp.zeros(self.A.cols)
        forms = {
            name if name == "chain" else f"A^T ({name}) A": self.A.T * form * self.A + ridge
            for name, form in self.row.hessian_forms.items()
        }
        return {name: sp.ImmutableMatrix(form) for name, form in forms.items()}

    @cached_property
    def flow(self) -> VectorField:
        """x' = -grad L."""
        return rules.flow(self.x, tuple(self.gradient), self.parameters, self.source)

    def gradient_map(self, *, step: sp.Expr) -> IteratedMap:
        """Gradient descent  x -> x - eta grad L  with eta = `step`.

        Raises:
            ValueError: eta is not positive or depends on a weight.
        """
        return rules.descent(self.x, tuple(self.gradient), self.parameters, step, self.source)

    @property
    def source(self) -> str:
        """The paper that defines the loss, and where b lies if that is not inside the simplex."""
        paper = _SOURCES[self.normalization]
        return f"{paper}; {self.label}" if self.label.startswith("b outside") else paper

    # --- structure
    # --------------------------------------------------------------------------------------------

    @cached_property
    def flat(self) -> tuple[sp.ImmutableMatrix, ...]:
        """A basis of the directions v along which the loss is constant because of A, whatever b is.

        normalized: A v = t 1 for some t, a shift of all logits; rescaled: A v = 0. With ridge also W A v = 0.
        For letters, those that exist for A in general position.
        """
        conditions = rules.flat_conditions([self.A], self.normalization)
        if self.w is not None:
            conditions = conditions.col_join(sp.diag(*self.w) * self.A)
        return rules.null_directions(conditions)

    @cached_property
    def conserved(self) -> tuple[FirstIntegral, ...]:
        """v^T x for each flat direction v, proven: constant along the flow and under gradient descent."""
        integrals = []
        for v in self.flat:
            shift = sp.factor((self.A.row(0) * v)[0])
            integrals.append(rules.conserved(self.flow, v, f"A v = {shift} (1, ..., 1) for v = {tuple(v)}"))
        return tuple(integrals)

    @cached_property
    def growth(self) -> sp.ImmutableMatrix:
        """The shortest v with A v = 1, for which Euler's identity  v^T grad Lr = 2 Lr  is proven.

        Along v the rescaled loss grows like Lr(x + t v) = exp(2 t) Lr(x): every stationary point has Lr = 0.

        Raises:
            ValueError: the loss is not the rescaled one with exp and without ridge, or 1 is not in range(A).
        """
        if self.normalization != "rescaled" or self.activation != "exp" or self.w is not None:
            raise ValueError(
                "Euler's identity holds for the rescaled loss with exp and without ridge; this is the "
                f"{self.normalization} loss with {self.activation} and {'with' if self.w else 'without'} ridge."
            )
        v = rules.shortest_growth(self.A)
        if not is_zero((v.T * self.gradient)[0] - 2 * self.loss):
            raise AssertionError(f"Euler's identity fails along {tuple(v)}")
        return v

    def decay(self, start: sp.Expr, time: sp.Expr) -> sp.Expr:
        """An upper bound of the rescaled loss along the flow from Lr(0) = `start`:  1/(1/Lr(0) + 4 t/|v|^2).

        By Euler's identity and Cauchy-Schwarz  dLr/dt = -|grad Lr|^2 <= -4 Lr^2/|v|^2,  which the bound solves as
        an equation. Lr -> 0 does not say that f -> b: alpha may go to 0 instead.

        Raises:
            ValueError: as for `growth`.
        """
        start, time = sp.sympify(start), sp.sympify(time)
        return 1 / (1 / start + 4 * time / (self.growth.T * self.growth)[0])

    @cached_property
    def joint(self) -> JointRegression:
        """The problem as a sum of one regression, the form in which fixed points and infinity are asked for.

        Raises:
            ValueError: u is not exp, or there is a ridge term.
        """
        if self.activation != "exp" or self.w is not None:
            raise ValueError(
                f"A sum of softmax regressions is one of u = exp without ridge; this model has {self.activation}"
                f"{' and a ridge term' if self.w is not None else ''}. Use fixedpoints.find for its flow."
            )
        places = (tuple(range(1, self.A.rows + 1)),)
        return JointRegression(self.x, (self.A,), (self.b,), self.normalization, places, self.source)

    def interpolation(self) -> dict[sp.Symbol, sp.Expr]:
        """A point with f = b, where both losses (without ridge) vanish; unique up to the `flat` directions.

        It exists if and only if b > 0, sum b = 1 and log b lies in range(A) + span(1). With letters in b, the
        answer holds where all b_i are positive.

        Raises:
            ValueError: no such point exists, and why; or u is not exp.
            UndecidedError: whether log b lies in that space could not be decided.
        """
        if self.activation != "exp":
            raise ValueError(f"`interpolation` needs u = exp; this model has {self.activation}.")
        return dict(zip(self.x, interpolating_point([self.A], [self.b]), strict=True))

    # --- one weight
    # -------------------------------------------------------------------------------------------

    @cached_property
    def reductions(self) -> dict[str, Reduction]:
        """ "exponential": w = exp(g x), for d = 1, u = exp and rational A without ridge; otherwise nothing.

        g is the largest number of which all a_i (normalized: all a_i - a_1) are multiples; the flow of w is
        rational, so that its fixed points are counted exactly and its time course is a closed form.
        """
        if (
            self.A.cols != 1
            or self.activation != "exp"
            or self.w is not None
            or not all(a.is_Rational for a in self.A)
        ):
            return {}
        shift = self.A[0] if self.normalization == "normalized" else 0
        unit = sp.gcd_list([a - shift for a in self.A])
        if unit == 0:
            return {}
        image = {self.x[0]: sp.log(_w) / unit}
        field = restrict(self.flow, image, state=(_w,))
        loss = sp.factor(self.loss.xreplace(image))
        return {
            "exponential": Reduction(field, {"loss": loss}, f"every start, w = {sp.exp(unit * self.x[0])}")
        }

    @cached_property
    def closed_forms(self) -> dict[str, ClosedForm]:
        """The proven time course of "exponential", t as a function of w.

        Raises:
            NoClosedFormError: the flow of w could not be integrated.
        """
        return {name: closed_form.solve(reduction.field) for name, reduction in self.reductions.items()}

    # --- what users ask every model
    # ---------------------------------------------------------------------------

    @property
    def observables(self) -> dict[str, sp.Expr]:
        """loss, alpha and f_<i> (for exp) as expressions in the weights."""
        entries = {f"f_{i + 1}": f for i, f in enumerate(self.f)} if self.activation == "exp" else {}
        return {"loss": self.loss, "alpha": self.alpha, **entries}

    @property
    def defaults(self) -> Mapping[str, object]:
        """Empty: the papers train nothing, so there are no authors' numbers."""
        return {}

    @cached_property
    def _ridge(self) -> sp.Expr:
        if self.w is None:
            return sp.S.Zero
        return sp.Add(*(w**2 * s**2 for w, s in zip(self.w, self.row.logits, strict=True))) / 2

    @property
    def _ridge_slope(self) -> sp.Matrix:
        return sp.Matrix([self._ridge.diff(x) for x in self.x])
