"""Closed forms as functions of time, start and numbers: their derivatives by JAX, mapped and compiled once."""

import jax
import numpy as np
import pytest
import sympy as sp

import symbolic
from odesys.evaluation import evaluate, time_course
from symbolic import closed_form

x = sp.Symbol("x")
v, y, lam, tau, a, r, K = sp.symbols("v y lambda tau a r K", positive=True)
ALIGNED = symbolic.VectorField((v,), ((lam**2 * v**2 - lam**3 * a * v**5) / tau,), (a, lam, tau))

#: a, lambda, tau
NAMES, NUMBERS = ("a", "lambda", "tau"), (1.11, 0.4, 1.0)

#: Rounding of a float64 evaluation through tens of operations; the requirement.
EXACT = 1e-12


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def law():
    return closed_form.solve(ALIGNED)


def rate(z):
    A, size, _ = NUMBERS
    return size**2 * z**2 - size**3 * A * z**5


def evaluated(law, start, times, numbers):
    """The same course by NumPy."""
    return evaluate(law, {"v": start}, times, dict(zip(NAMES, numbers, strict=True)))["v"].values


def test_implicit_function_theorem(law):
    starts, moments = np.array([0.01, 0.01, 2.0, 1e-6]), np.array([300.0, 624.0, 3.0, 6.2e6])
    run = time_course(law, "jax")

    def value(when, origin):
        return run(when, (origin,), NUMBERS)[0]

    derivatives = jax.jit(jax.vmap(jax.value_and_grad(value, argnums=(0, 1))))
    z, (by_time, by_start) = derivatives(moments, starts)
    np.testing.assert_allclose(by_time, rate(z), rtol=EXACT)
    np.testing.assert_allclose(by_start, rate(z) / rate(starts), rtol=EXACT)


def test_derivatives_by_parameters(law):
    times = np.array([100.0, 500.0, 620.0, 640.0, 1e5])
    run = time_course(law, "jax")
    by_start, by_args = jax.jit(
        jax.jacrev(lambda origin, args: run(times, (origin,), args)[0], argnums=(0, 1))
    )(0.01, NUMBERS)
    for i in range(3):
        up, down = (
            evaluated(law, 0.01, times, tuple(n + step * (i == j) for j, n in enumerate(NUMBERS)))
            for step in (1e-6, -1e-6)
        )
        # Central differences of step 1e-6: rounding 1e-10, and curvature times 1e-12.
        np.testing.assert_allclose(by_args[i], (up - down) / 2e-6, rtol=1e-6, atol=1e-8)
    # Saturated, at v* = (lam a)^(-1/3), d ln v*/d ln lam = -1/3 and the start is forgotten.
    star = (0.4 * 1.11) ** (-1 / 3)
    # Within 1e-8 it moves with v*.
    assert float(by_args[0][-1]) == pytest.approx(-star / 3 / 1.11, rel=1e-7)
    assert float(by_args[1][-1]) == pytest.approx(-star / 3 / 0.4, rel=1e-7)
    assert abs(float(by_start[-1])) < 1e-10  # f a few roundings from v*, over f(x_0) = 1.6e-5


def test_at_an_equilibrium_perturbations_grow_linearly():
    # f = x^2 (1 - x)^3 (2 - x) has f'(2) = -4 (1 - 2)^3 = 4, so that dx/dx_0 = exp(4 t) at x_0 = 2.
    field = symbolic.VectorField((x,), (x**2 * (1 - x) ** 3 * (2 - x),))
    run = time_course(closed_form.solve(field), "jax")
    z, slope = jax.jit(jax.value_and_grad(lambda origin: run(0.5, (origin,))[0]))(2.0)
    assert float(z) == 2.0
    assert float(slope) == pytest.approx(np.exp(2.0), rel=EXACT)


def test_maps_over_starts_and_compiles_once(law):
    run, traced = time_course(law, "jax"), []

    @jax.jit
    def many(starts, args):
        traced.append(1)
        return jax.vmap(lambda origin: run(600.0, (origin,), args)[0])(starts)

    starts = np.logspace(-6, 0.5, 20)
    got = np.array(many(starts, NUMBERS))
    many(2 * starts, tuple(2 * n for n in NUMBERS))
    assert len(traced) == 1
    for origin, value in zip(starts, got, strict=True):
        assert value == pytest.approx(evaluated(law, origin, [600.0], NUMBERS)[0], rel=1e-13)


def test_explicit_laws_too():
    run = time_course(closed_form.solve(symbolic.VectorField((y,), (r * y * (1 - y / K),), (K, r))), "jax")
    # dx/dx0 = f(x)/f(x0) for any autonomous scalar law.
    z, slope = map(float, jax.value_and_grad(lambda origin: run(2.0, (origin,), (3.0, 1.5))[0])(0.2))
    assert slope == pytest.approx(z * (1 - z / 3) / (0.2 * (1 - 0.2 / 3)), rel=1e-12)
