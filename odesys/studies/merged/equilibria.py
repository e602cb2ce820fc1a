"""Where the flow stops: the two sets of fixed points, and the phase line of the white reduction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fixedpoints import phase_line
from odesys.check import Check, control
from odesys.lambdify import compile_field
from odesys.report import Picture
from odesys.studies.merged.setting import EIGENVALUES, PAPER, WHITE, WHITE_END, numbers
from odesys.system import ODESystem

if TYPE_CHECKING:
    from fixedpoints.pictures.phase_lines import PhaseLine
    from odesys.studies.merged.flow import Flow
    from symbolic.linear_attention.merged import MergedAttention

__all__ = ["checks", "picture"]

#: An eigenvalue of the Hessian counts as zero below this fraction of the largest.
ZERO = 1e-9


def checks(flow: Flow, small: Flow) -> list[Check]:
    """All checks of fixed points; Jacobians are compiled for the smaller flow."""
    line = _line(flow)
    (end,) = (p for p in line.points if p.stability == "stable")
    judge = partial(_stops, flow)
    true = judge(_on_zero_set(flow, balanced=True))
    return [
        true,
        control(
            judge, _on_zero_set(flow, balanced=False), name="v = 0 alone, tr(Lambda^2 U_i) not 0", true=true
        ),
        *(_nullity(small.model, k) for k in (0, 1)),
        Check(
            "fixed-points: end of the white time course",
            measured=end.location["sigma"],
            expected=WHITE_END,
            tolerance=1e-15,
            source=f"{PAPER}, sigma = 1/a = 31/36",
            reason="a certified root, rounded to float64",
        ),
        Check(
            "fixed-points: points on the phase line of the white reduction",
            measured=len(line.points),
            expected=2,
            tolerance=0,
            source="by hand: sigma (1 - a sigma) = 0",
            reason="exact: a count, complete on the interval",
        ),
    ]


def picture(flow: Flow) -> Picture:
    """The phase line of the white reduction."""
    line = _line(flow)
    return Picture(
        "merged-phase-line",
        line.axes.figure,
        "Phase line of the white reduction: the flow leaves the saddle at 0 and ends at sigma = 31/36.",
        "The velocity of sigma as a parabola over sigma, with an open circle at 0 and a filled one at 31/36.",
    )


def _line(flow: Flow) -> PhaseLine:
    return phase_line(flow.reduced("white", WHITE), (-0.2, 1.1))


def _on_zero_set(flow: Flow, *, balanced: bool) -> np.ndarray:
    """Weights with v = 0 and random U_i, with tr(Lambda^2 U_i) = 0 if `balanced`: far from the origin either
    way."""
    H, D = flow.model.heads, flow.model.dim
    U = np.random.default_rng(flow.seed).standard_normal((H, D, D))
    squares = np.diag(np.square(EIGENVALUES))
    if balanced:
        U -= np.einsum("hab,ab->h", U, squares)[:, None, None] * squares / np.sum(squares**2)
    return np.concatenate([np.zeros(H), U.ravel()])


def _stops(flow: Flow, weights: np.ndarray) -> Check:
    field = compile_field(flow.system(EIGENVALUES))
    return Check(
        "fixed-points: the zero set is a linear manifold, not the origin alone",
        measured=float(np.abs(field.rhs(0.0, weights, field.args)).max()),
        expected=0.0,
        tolerance=1e-14,
        source="v = 0 and tr(Lambda^2 U_i) = 0",
        reason="rounding of sums of 16 terms of order one",
    )


def _nullity(model: MergedAttention, which: int) -> Check:
    """Zero eigenvalues of the flow's Jacobian at a point of a set, against the set's dimension."""
    fixed = model.fixed_points[which]
    spectrum = (2 / 3, 1 / 3)
    field = compile_field(ODESystem(model.flow, numbers(spectrum)))
    values = {p: numbers(spectrum)[p.name] for p in model.parameters}
    root = np.sqrt(np.array(model.optimum.subs(values).tolist(), dtype=float).diagonal() / model.heads)
    size = root.max() if fixed.name == "optimum" else 0.0
    # At the optimum every head carries the same share of M*, v = size and U = M*/(H size).
    U = np.diag(root**2) / size if size else np.zeros((model.dim, model.dim))
    weights = np.concatenate([np.full(model.heads, size), np.tile(U.ravel(), model.heads)])
    spectrum_of_flow = np.linalg.eigvalsh(field.jacobian(0.0, weights, field.args))
    return Check(
        f"fixed-points: nullity of the Hessian on the {fixed.name} set, D = 2, H = 2",
        measured=int(np.sum(np.abs(spectrum_of_flow) < ZERO * np.abs(spectrum_of_flow).max())),
        expected=fixed.dimension,
        tolerance=0,
        source="dimension of the derived set",
        reason="exact: a count of eigenvalues below 1e-9 of the largest",
    )
