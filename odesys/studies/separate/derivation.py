"""What SymPy derives, held to the paper's formulas, to independent numbers and to the paper's condition (C3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import sympy as sp

from odesys.check import Check, control
from odesys.comparison import identity
from odesys.studies.separate.setting import (
    CONTEXT,
    EIGENVALUES,
    FORTY_DIGITS,
    MODE_END,
    MODE_HALF_TIME,
    MODE_START,
    PAPER,
    PLATEAUS,
)
from symbolic.linear_attention import separate, task

if TYPE_CHECKING:
    from symbolic.linear_attention.separate import SeparateAttention

__all__ = ["checks"]


def checks(model: SeparateAttention) -> list[Check]:
    """All checks of the exact half, on a model small enough to prove everything anew."""
    independent = partial(_independent_heads, model)
    distinct = independent([(1,), (2,)])
    return [
        _prediction(model),
        Check(
            "derive: conserved quantities proven",
            measured=len(model.conserved),
            expected=model.heads * (1 + model.rank * (model.rank + 1) / 2),
            tolerance=0,
            source="per head v^2 - |K|^2 and the symmetric R x R matrix K K^T - Q Q^T",
            reason="exact: a count",
        ),
        distinct,
        control(independent, [(1,), (1,)], name="two heads on one eigenvector as independent", true=distinct),
        _scalar(),
        *_condition_three(model),
        *_plateaus(),
        *_one_mode(),
    ]


def _prediction(model: SeparateAttention) -> Check:
    x, q = (sp.Matrix(sp.symbols(f"{name}_1:{model.dim + 1}")) for name in ("x", "xq"))
    y = sp.Symbol("y")
    gap = model.token_contribution(x, y, q) - (y * x.T * model.M * q)[0]
    return identity(
        "derive: the literal attention layer predicts beta^T M x_q", [gap], source=f"{PAPER}, section 2"
    )


def _independent_heads(model: SeparateAttention, placement: list[tuple[int, ...]]) -> Check:
    """How many of the equations of v_1, v_2 on k_i = q_i = v_i e_d(i) are not the scalar equation of their own mode."""
    embedding = model.balanced([modes[0] for modes in placement])
    rates = dict(zip(model.flow.state, model.flow.rhs, strict=True))
    wrong = 0
    for head, (mode,) in zip(model.v, placement, strict=False):
        value, size = model.eigenvalues[mode - 1], model.a[mode - 1]
        paper = (value**2 * head**2 - value**3 * size * head**5) / task.tau
        wrong += sp.simplify(rates[head].xreplace(embedding) - paper) != 0
    return Check(
        "derive: every head on an eigenvector of its own obeys the scalar equation",
        measured=wrong,
        expected=0,
        tolerance=0,
        source=f"{PAPER}, section 4: tau dv/dt = lambda^2 v^2 - lambda^3 a v^5",
        reason="exact: equations whose residual is not zero",
    )


def _scalar() -> Check:
    """The scalar equation, which the model proves for a symbolic dimension, and its a_d in three dimensions."""
    model = separate.model(dim=3, heads=1)
    (f,) = model.reductions["scalar"].field.rhs
    paper = (separate.lam**2 * separate.v**2 - separate.lam**3 * separate.a * separate.v**5) / task.tau
    trace = sp.Add(*model.eigenvalues)
    sizes = [b - (1 + (1 + trace / x) / task.N) for b, x in zip(model.a, model.eigenvalues, strict=True)]
    return identity(
        "derive: the scalar equation, a_d = 1 + (1 + tr/lambda_d)/N",
        [f - paper, *sizes],
        source=f"{PAPER}, section 4",
    )


def _condition_three(model: SeparateAttention) -> list[Check]:
    """A fixed point that the paper's (C3) denies: v = 0, k = e_2, q = e_3 beside a head that has learned mode 1."""
    three = separate.model(dim=3, heads=2)
    weights = dict.fromkeys(three.weights, sp.Integer(0)) | three.point([1]).weights
    spare = three.heads - 1
    key, query = three.K[spare], three.Q[spare]
    weights |= dict.fromkeys((list(key)[1], list(query)[2]), sp.Integer(1))
    stops = all(sp.simplify(f.xreplace(weights)) == 0 for f in three.flow.rhs)

    def judge(condition: str) -> Check:
        outside = [d for d in range(three.dim) if d != 0]
        K, Q = three.K[spare].xreplace(weights), three.Q[spare].xreplace(weights)
        values = three.eigenvalues
        if condition == "C3'":
            allowed = sp.Add(*(values[d] ** 2 * K[0, d] * Q[0, d] for d in outside)) == 0
        else:
            allowed = any(all(row[0, d] == 0 for d in outside) for row in (K, Q))
        return Check(
            "derive: the condition on heads with v = 0 agrees with the flow at v = 0, k = e_2, q = e_3",
            measured=float(allowed),
            expected=float(stops),
            tolerance=0,
            source="(C3') sum over d not in S of lambda_d^2 k_d q_d = 0, derived here",
            reason="exact: a truth value",
        )

    true = judge("C3'")
    count = len(model.conditions([1], [1]))
    vanish = [e.xreplace(model.point([1]).weights) for e in model.conditions([1], [1])]
    return [
        true,
        control(judge, "C3", name="the paper's (C3) as necessary", true=true),
        identity(
            f"derive: the {count} conditions (C1), (C2), (C3') hold at the structured point",
            vanish,
            source=f"{PAPER}, appendix on fixed points",
        ),
    ]


def _plateaus() -> list[Check]:
    """L(M_m) at the paper's numbers."""
    model = separate.model(dim=len(EIGENVALUES), heads=len(EIGENVALUES))
    known = dict(zip(model.eigenvalues, (sp.Rational(str(x)) for x in EIGENVALUES), strict=True))
    measured = [
        float(model.moments.loss(model.predictor(m)).subs(known).subs(task.N, CONTEXT))
        for m in range(len(PLATEAUS))
    ]
    return [
        Check(
            "derive: largest error of the plateau losses L(M_0) ... L(M_D)",
            measured=max(abs(x - y) for x, y in zip(measured, PLATEAUS, strict=True)),
            expected=0.0,
            tolerance=1e-15,
            source=FORTY_DIGITS,
            reason="rounding of one float64 evaluation of numbers up to 1",
        )
    ]


def _one_mode() -> list[Check]:
    """Where mode 1 ends and when it has made half its drop, at the paper's numbers."""
    model = separate.model(dim=1, heads=1)
    value, trace = sp.Rational(str(EIGENVALUES[0])), sp.Rational(str(sum(EIGENVALUES)))
    here = {separate.lam: value, separate.a: 1 + (1 + trace / value) / CONTEXT, task.tau: 1}
    (start,) = model.closed_forms["scalar"].initial.values()
    half = model.half_time.subs(here).subs(start, sp.Rational(str(MODE_START)))
    reason = "1e-13 relative: the expression is evaluated to 20 digits, then rounded"
    return [
        Check(
            "closed-form: where mode 1 ends, v* = (lambda a)^(-1/3)",
            float(model.v_star.subs(here).evalf(20)),
            MODE_END,
            1e-13 * MODE_END,
            FORTY_DIGITS,
            reason,
        ),
        Check(
            "closed-form: half-drop time of mode 1 from v_0 = 0.01",
            float(half.evalf(20)),
            MODE_HALF_TIME,
            1e-13 * MODE_HALF_TIME,
            FORTY_DIGITS,
            reason,
        ),
    ]
