"""What SymPy derives, held to the paper's formulas and to independent numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import sympy as sp

from odesys.check import Check, control
from odesys.comparison import identity
from odesys.studies.merged.setting import CONTEXT, EIGENVALUES, FORTY_DIGITS, OPTIMAL_LOSS, PAPER
from symbolic import NotInvariantError, restrict
from symbolic.linear_attention import merged, task

if TYPE_CHECKING:
    from symbolic.linear_attention.merged import MergedAttention

__all__ = ["checks"]


def checks(model: MergedAttention) -> list[Check]:
    """All checks of the exact half, on a model small enough to prove everything anew."""
    modes = sp.symbols(f"u_1:{model.dim + 1}")
    invariant = partial(_invariant, model)
    aligned = invariant(sp.diag(*modes))
    return [
        _moments(),
        _prediction(model),
        identity(
            "derive: the loss is that of a two-layer linear network on cubic features",
            [model.loss - model.two_layer_loss],
            source=f"{PAPER}, section 3",
        ),
        Check(
            "derive: conserved quantities proven",
            measured=len(model.conserved),
            expected=model.heads * (model.heads + 1) / 2,
            tolerance=0,
            source="H x H matrix <U_i, U_j> - v_i v_j",
            reason="exact: a count",
        ),
        _white_equation(model),
        _riccati_equation(model),
        aligned,
        control(
            invariant,
            modes[0] * sp.eye(model.dim),
            name="ansatz with equal modes under unequal eigenvalues",
            true=aligned,
        ),
        *_optimum(),
    ]


def _moments() -> Check:
    """The moments for symbolic D, specialised to D = 3, against the derivation with explicit coordinates."""
    general, explicit = task.eigenbasis_moments().at(3), task.explicit_moments(sp.diag(*task.eigenvalues(3)))
    pairs = [(getattr(general, name), getattr(explicit, name)) for name in ("S", "cross", "features")]
    return identity(
        "derive: moments for every D agree with explicit D = 3",
        [entry for one, other in pairs for entry in one - other],
        source="Isserlis' theorem",
    )


def _prediction(model: MergedAttention) -> Check:
    x, q = (sp.Matrix(sp.symbols(f"{name}_1:{model.dim + 1}")) for name in "xq")
    y = sp.Symbol("y")
    gap = model.token_contribution(x, y, q) - (y * x.T * model.M * q)[0]
    source = f"{PAPER}, section 2"
    return identity("derive: the literal attention layer predicts beta^T M x_q", [gap], source=source)


def _white_equation(model: MergedAttention) -> Check:
    field = model.reductions["white"].field
    (sigma,) = field.state
    c, a = sp.sqrt(model.dim) * merged.lam**2, 1 + sp.Integer(1 + model.dim) / task.N
    paper = 2 * c / merged.tau * sigma * (1 - a * merged.lam * sigma)
    source = f"{PAPER}, the flow behind Eq. 10"
    return identity("derive: white reduction is logistic", [field.rhs[0] - paper], source=source)


def _riccati_equation(model: MergedAttention) -> Check:
    field = model.reductions["white exact"].field
    (y,) = field.state
    c, kappa = sp.sqrt(model.dim) * merged.lam**2, merged.lam**3 * (1 + sp.Integer(1 + model.dim) / task.N)
    hand = 2 * (c * y - kappa * merged.P * y**2 + kappa * merged.Q) / merged.tau
    name = "derive: unbalanced white starts obey a Riccati equation"
    return identity(name, [field.rhs[0] - hand], source="by hand")


def _invariant(model: MergedAttention, block: sp.Matrix) -> Check:
    """How many weights leave the manifold v_i = r_i s, U_i = r_i B of the full flow, for a block B."""
    modes = sorted(block.free_symbols, key=str)
    try:
        restrict(model.flow, model.aligned(block), state=(merged.s, *modes), relations=(model.unit,))
        leaving = 0
    except NotInvariantError as refusal:
        leaving = len(refusal.residual)
    return Check(
        "derive: the aligned ansatz is invariant",
        measured=leaving,
        expected=0,
        tolerance=0,
        source=f"{PAPER}, section 3",
        reason="exact: weights whose residual is not zero",
    )


def _optimum() -> list[Check]:
    """L* at the paper's numbers, and the same with a wrong coefficient: S without its trace term."""
    model = merged.model(dim=len(EIGENVALUES), heads=1)
    spectrum = dict(zip(model.eigenvalues, (sp.Rational(str(x)) for x in EIGENVALUES), strict=True))
    lost = sp.Add(*(x - x / (1 + 1 / task.N) for x in model.eigenvalues))

    def judge(loss: sp.Expr) -> Check:
        return Check(
            "derive: smallest loss L*",
            measured=float(loss.subs(spectrum).subs(task.N, CONTEXT)),
            expected=OPTIMAL_LOSS,
            tolerance=1e-14,
            source=FORTY_DIGITS,
            reason="rounding of one float64 evaluation",
        )

    true = judge(model.optimal_loss)
    return [true, control(judge, lost, name="coefficient a_d without the trace", true=true)]
