"""What SymPy derives: every form of the gradient, the tensor trick, what is conserved, the in-context theorem."""

from __future__ import annotations

from functools import partial

import sympy as sp

from odesys.check import Check, control
from odesys.comparison import identity
from odesys.studies.softmax.setting import PAPERS, SEED_PAPER
from symbolic.softmax_regression import in_context, matrix, vector

__all__ = ["checks"]


def checks() -> list[Check]:
    """All checks of the exact half."""
    return [*_gradients(), *_tensor_trick(), _bridge(), *_structure(), _in_context()]


def _gradients() -> list[Check]:
    """The gradient of the normalized loss in all forms, letters for A and b, against SymPy's derivative."""
    model = vector.model(n=2, d=2)
    forms = dict(model.gradient_forms)
    chain = forms.pop("chain")

    def judge(candidates) -> Check:
        return identity(
            "derive: gradient of the normalized loss in every form, n = 2, d = 2",
            [entry for form in candidates for entry in form - chain],
            source=f"{PAPERS}; SymPy's derivative of the loss",
        )

    true = judge(forms.values())
    half = sp.Matrix([f * c for f, c in zip(model.f, model.c, strict=True)])
    return [true, control(judge, [model.A.T * half], name="gradient without the term <f, c> f", true=true)]


def _tensor_trick() -> list[Check]:
    """vec(A1 X A2^T) = (A1 kron A2) vec(X), row by row, for A1 and A2 that are not symmetric."""
    model = matrix.model(n=3, d=2)
    A1 = sp.Matrix(3, 2, sp.symbols("l_1:7"))
    A2 = sp.Matrix(3, 2, sp.symbols("r_1:7"))
    X = model.X
    flat = sp.Matrix(list(A1 * X * A2.T))

    def judge(first: sp.Matrix, second: sp.Matrix) -> Check:
        product = sp.kronecker_product(first, second) * sp.Matrix(list(X))
        return identity(
            "derive: vec(A1 X A2^T) = (A1 kron A2) vec(X), row by row",
            list(product - flat),
            source=f"{SEED_PAPER}, the tensor trick",
        )

    true = judge(A1, A2)
    small = matrix.model(n=2, d=1)
    return [
        true,
        identity(
            "derive: the flow of the matrix problem is that of the sum of its rows",
            [one - other for one, other in zip(small.joint.flow.rhs, small.flow.rhs, strict=True)],
            source=f"{SEED_PAPER}, the tensor trick",
        ),
        control(
            partial(judge, A2), A1, name="the column-major factor A2 kron A1 on row-major weights", true=true
        ),
    ]


def _bridge() -> Check:
    """Lr = alpha^2 L and grad Lr = alpha^2 (grad L + 2 L abar)."""
    one, other = vector.model(n=2, d=1), vector.model(n=2, d=1, loss="rescaled")
    abar = (sp.Matrix([one.f]) * one.A).T
    gaps = [other.loss - one.alpha**2 * one.loss]
    gaps += list(other.gradient - one.alpha**2 * (one.gradient + 2 * one.loss * abar))
    return identity(
        "derive: the rescaled loss is alpha^2 times the normalized one", gaps, source="derived here"
    )


def _structure() -> list[Check]:
    """A constant column of A is conserved; Euler's identity where 1 is in range(A)."""
    shifted = vector.model(n=3, d=2).at([[1, 0], [1, 2], [1, 5]], sp.symbols("b_1:4"))
    grown = vector.model(n=2, d=1, loss="rescaled").at([[2], [2]], sp.symbols("b_1:3"))
    (integral,) = shifted.conserved
    return [
        identity(
            "derive: with a constant column of A its weight is conserved",
            [shifted.flow.lie_derivative(integral.expression), integral.expression - shifted.x[0]],
            source="A v in span(1), derived here",
        ),
        identity(
            "derive: Euler's identity v^T grad Lr = 2 Lr for A v = 1",
            [(grown.growth.T * grown.gradient)[0] - 2 * grown.loss],
            source="derived here",
        ),
    ]


def _in_context() -> Check:
    """b~ has at x_now the residual that b has at x_then, and sums to the same."""
    model = vector.model(n=3, d=1).at([[0], [1], [3]], sp.symbols("b_1:4"))
    now, then = sp.Rational(1, 3), sp.Rational(5, 7)
    found = in_context.move(model, [now], [then])
    f_now, f_then = (sp.Matrix(model.f).subs(model.x[0], x) for x in (now, then))
    target = sp.Matrix(list(found.target))
    gaps = [*((f_now - target) - (f_then - sp.Matrix(model.b))), sum(target) - sum(model.b)]
    return identity(
        "derive: b~ of the in-context theorem has the moved residual", gaps, source=f"{PAPERS}, theorem"
    )
