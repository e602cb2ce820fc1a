"""Gradients where softmax saturates: what survives in float64, and what two common ways of writing it lose."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import sympy as sp

from odesys.check import Check, control
from odesys.lambdify import compile_field
from odesys.simulation import softmax_regression as judge
from odesys.studies.softmax.setting import Case
from odesys.system import ODESystem

__all__ = ["checks"]

#: Gaps between two logits, up to where exp(-gap) leaves the normal numbers.
GAPS = (1.0, 20.0, 37.0, 40.0, 100.0, 400.0, 700.0)
#: Where the unshifted form is silently wrong: its backward pass squares the sum of exponentials.
UNSHIFTED_AT = 400.0


def checks() -> list[Check]:
    """All checks of gradients in float64."""
    written = _saturated(lambda x: judge.vector([[1.0], [2.0]], [0.25, 0.75]).gradient([x])[0])
    derived = Case(((1,), (2,)), (sp.Rational(1, 4), sp.Rational(3, 4))).derived()
    field = compile_field(ODESystem(derived.flow))
    compiled = _saturated(lambda x: -field.rhs(0.0, np.array([x]), ())[0])
    library = partial(_autodiff, jax.nn.softmax)
    unshifted = partial(_autodiff, lambda z: jnp.exp(z) / jnp.sum(jnp.exp(z)))
    return [
        replace(written, name=f"{written.name}: the definition, autodiff"),
        replace(compiled, name=f"{compiled.name}: the derived flow, compiled"),
        control(_saturated, library, name="autodiff of a library softmax, not centred", true=written),
        control(
            _saturated,
            unshifted,
            name=f"unshifted softmax, wrong already at x = {UNSHIFTED_AT:g}",
            true=written,
        ),
        *_matrix(),
    ]


def _saturated(gradient) -> Check:
    """The largest relative error of dL/dx for A = (1, 2), b = (1/4, 3/4) over the gaps, both signs."""
    errors = []
    for gap in (*GAPS, *(-g for g in GAPS)):
        with mpmath.workdps(400):
            f = 1 / (1 + mpmath.exp(-mpmath.mpf(gap)))
            # L = (f - 3/4)^2 with f the second entry, df/dx = f (1 - f).
            exact = 2 * (f - mpmath.mpf(3) / 4) * f * (1 - f)
            found = float(gradient(gap))
            errors.append(float(abs(found / exact - 1)) if np.isfinite(found) else np.inf)
    return Check(
        "descent: gradient of a saturated softmax, gaps up to 700",
        measured=max(errors),
        expected=0.0,
        tolerance=1e-12,
        source="400-digit arithmetic",
        reason="rounding of exp(gap): 700 units in the last place",
    )


def _autodiff(softmax, x: float) -> float:
    def loss(s: jax.Array) -> jax.Array:
        return jnp.sum((softmax(jnp.array([1.0, 2.0]) * s) - jnp.array([0.25, 0.75])) ** 2) / 2

    with jax.enable_x64(True):
        return float(jax.grad(loss)(jnp.float64(x)))


def _matrix() -> list[Check]:
    """dL/dX = A1^T G A2 against the Kronecker route, by blocks A_[j] = (A1)_j kron A2 of the row-major vec."""
    draw = np.random.default_rng(0)
    A1, A2 = draw.standard_normal((5, 2)), draw.standard_normal((4, 3))
    B, X = draw.dirichlet(np.ones(4), size=5), draw.standard_normal((2, 3))
    fast = judge.matrix(A1, A2, B).gradient(X)

    def rows(X: np.ndarray) -> np.ndarray:
        return np.kron(A1, A2).reshape(5, 4, 6) @ X.reshape(-1)

    def columns(X: np.ndarray) -> np.ndarray:
        return np.kron(A2, A1).reshape(5, 4, 6) @ X.reshape(-1)

    def route(logits) -> Check:
        gradient, step = np.zeros(6), 1e-5
        for j in range(6):
            moved = np.zeros(6)
            moved[j] = step
            up, down = (_loss(logits(X + sign * moved.reshape(2, 3)), B) for sign in (1, -1))
            gradient[j] = (up - down) / (2 * step)
        return Check(
            "descent: A1^T G A2 against differences along the blocks A_[j] = (A1)_j kron A2",
            measured=float(np.abs(gradient.reshape(2, 3) - fast).max()),
            expected=0.0,
            tolerance=1e-8,
            source="central differences",
            reason="their error, step^2 1e-10 and rounding 1e-16/1e-5, with a margin",
        )

    true = route(rows)
    return [true, control(route, columns, name="column-major blocks", true=true)]


def _loss(logits: np.ndarray, target: np.ndarray) -> float:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return float(np.sum((weights / weights.sum(axis=1, keepdims=True) - target) ** 2) / 2)
