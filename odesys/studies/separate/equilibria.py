"""Where the flow stops: the 2^D functions, and the index of the points of parameter space that compute them."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from fixedpoints import find
from fixedpoints.linear_attention import Lattice, Modes, Weights, conditions, hessian, inertia, losses
from odesys.check import Check, control
from odesys.integrators.contract import solve
from odesys.lambdify import compile_field
from odesys.studies.separate.setting import (
    CONTEXT,
    EIGENVALUES,
    FORTY_DIGITS,
    HEADS,
    PAPER,
    PLATEAUS,
    numbers,
    spectrum,
)
from odesys.system import ODESystem
from symbolic.linear_attention import separate

__all__ = ["checks"]

#: The largest dimension whose every subset of modes is judged by eigenvalues, by scale.
LARGEST = {"quick": 3, "full": 4}


def checks(scale: str) -> list[Check]:
    """All checks of fixed points."""
    return [*_counts(), *_losses(), *_indices(scale), _derived_jacobian(), _strict_escape(), _one_mode()]


def _counts() -> list[Check]:
    few, reason = 2, "exact: a count"
    return [
        Check(
            f"fixed-points: functions at which D = 4, H = {HEADS} stops",
            Lattice(EIGENVALUES, CONTEXT, HEADS).size,
            2 ** len(EIGENVALUES),
            0,
            f"{PAPER}, section 4",
            reason,
        ),
        Check(
            f"fixed-points: functions at which D = 4, H = {few} stops",
            Lattice(EIGENVALUES, CONTEXT, few).size,
            sum(comb(len(EIGENVALUES), m) for m in range(few + 1)),
            0,
            "sets of at most H R modes, derived here",
            reason,
        ),
    ]


def _losses() -> list[Check]:
    """The nested losses from the array over all subsets, at the places 2^m - 1."""
    found = losses(EIGENVALUES, CONTEXT)[[2**m - 1 for m in range(len(PLATEAUS))]]
    return [
        Check(
            "fixed-points: largest error of the five nested losses",
            float(np.abs(found - PLATEAUS).max()),
            0.0,
            1e-15,
            FORTY_DIGITS,
            "rounding of four subtractions of numbers up to 1",
        )
    ]


def _indices(scale: str) -> list[Check]:
    """Index by formula against the eigenvalues of the Hessian: every subset, H = D and D + 1, and D = 8 nested."""
    nested = Lattice(spectrum(8), CONTEXT, 8).nested
    points = [*_all_subsets(LARGEST[scale]), *nested]
    true = _mismatches([(p.weights, p.task, p.index) for p in points])
    spare = np.ones((1, 3))
    # The same functions, each spare head with a query: the flow stops there too, with another index.
    others = [
        (p.weights.with_spare_queries(spare), p.task, p.index)
        for p in Lattice(spectrum(3), CONTEXT, 4)
        if len(p.modes) < 3
    ]
    here = [(w, task, _index_at(w, task)) for w, task, _ in others]
    return [
        true,
        _mismatches(here, " with queries in spare heads"),
        control(
            _mismatches, others, name="index of the structured weights for others of the same M", true=true
        ),
    ]


def _all_subsets(largest: int) -> list:
    found = []
    for dim in range(2, largest + 1):
        for heads in (dim, dim + 1):
            lattice = Lattice(spectrum(dim), CONTEXT, heads)
            sets = (s for m in range(dim + 1) for s in combinations(range(1, dim + 1), m))
            found += [lattice.at(modes) for modes in sets]
    return found


def _index_at(weights: Weights, task: Modes) -> tuple[int, int, int]:
    found = conditions(weights, task)
    if found.index is None:
        raise AssertionError(f"the flow does not stop at {weights}, speed {found.speed}")
    return found.index


def _mismatches(cases: list, where: str = "") -> Check:
    wrong = sum(inertia(hessian(weights, task)) != index for weights, task, index in cases)
    return Check(
        f"fixed-points: index by formula against the Hessian{where}",
        measured=wrong,
        expected=0,
        tolerance=0,
        source="derived here: #{a in S, b not in S: lambda_b > lambda_a} negative, and what spare rows add",
        reason=f"exact: a count over {len(cases)} points; eigenvalues below 1e-9 of the largest are zero",
    )


def _derived_jacobian() -> Check:
    """The Hessian written from L(M) against the Jacobian that SymPy derives: J = -Hessian/(2 tau)."""
    model, values = separate.model(dim=2, heads=2), spectrum(2)
    field = compile_field(ODESystem(model.flow, numbers(values)))
    draw = np.random.default_rng(1).standard_normal(len(model.weights))
    weights = Weights.from_vector(draw, model.heads, model.rank, model.dim)
    gap = np.abs(field.jacobian(0.0, draw, field.args) + hessian(weights, Modes(values, CONTEXT)) / 2)
    return Check(
        "fixed-points: Hessian of L(M) against the Jacobian of the derived flow",
        measured=float(gap.max()),
        expected=0.0,
        tolerance=1e-13,
        source="one against the other, at random weights",
        reason="rounding of sums of some 20 terms of order 1",
    )


def _strict_escape() -> Check:
    """D = 2, S = {2}: the wrong mode first. A strict saddle, left exponentially at the rate of its eigenvalue."""
    model, values = separate.model(dim=2, heads=2), spectrum(2)
    point = Lattice(values, CONTEXT, 2).at([2])
    start = point.weights.vector + 1e-8 * np.random.default_rng(0).standard_normal(len(model.weights))
    system = ODESystem(model.flow, numbers(values))
    times = np.linspace(0.0, 50.0, 51)
    run = solve(system, dict(zip(model.flow.names, start, strict=True)), times, method="DOP853", rtol=1e-12)
    # Of what leaves, the new direction in the head that had learned mode 2 is the largest.
    late, growth = slice(20, None), np.abs(run["k_1_1_1"].values)
    return Check(
        "fixed-points: escape rate from the strict saddle M_{2}, D = 2",
        measured=float(np.polyfit(times[late], np.log(growth[late]), 1)[0]),
        expected=float(point.eigenvalues().max()),
        tolerance=1e-7,
        source="largest eigenvalue of the Jacobian at the structured weights",
        reason="the square of the distance at the end, 1e-4",
    )


def _one_mode() -> Check:
    """Both fixed points of one mode, complete, by the general finder."""
    field = separate.model(dim=1, heads=1).reductions["scalar"].field
    a = 1 + (1 + 1 / EIGENVALUES[0]) / CONTEXT
    points = find(ODESystem(field, {"lambda": EIGENVALUES[0], "a": a, "tau": 1.0}))
    if points.certificate.kind != "complete":
        raise AssertionError(str(points.certificate))
    (end,) = (p for p in points.points if p.stability == "stable")
    return Check(
        "fixed-points: the end of mode 1 by the general finder, complete",
        measured=end.location["v"],
        expected=(EIGENVALUES[0] * a) ** (-1 / 3),
        tolerance=1e-15,
        source=f"{PAPER}, section 4: v* = (lambda a)^(-1/3)",
        reason="a certified root, rounded to float64",
    )
