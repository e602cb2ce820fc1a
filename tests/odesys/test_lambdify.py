"""From symbols to functions: values, shapes, derivatives, names, and what floating point must not spoil."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from references import reference

from odesys import lambdify
from odesys.lambdify import compile_expressions, compile_field
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

a, b, t, x, y, k, r = sp.symbols("a b t x y k r")
KNOWN = reference("trajectories")
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "jax"])


def quick(function, backend):
    """Jitted for JAX, which compiles every operation by itself otherwise."""
    return jax.jit(function) if backend == "jax" else function


#: One field with the functions that both backends must know.
RICH = VectorField(
    (x, y),
    (
        sp.Abs(x) * sp.sign(y)
        + sp.Heaviside(x - y)
        + sp.Max(x, y, sp.Rational(1, 10))
        + sp.erf(x)
        + sp.cos(t),
        sp.Min(x, y) ** 3
        + sp.LambertW(sp.Abs(y) + k)
        + sp.Piecewise((sp.sqrt(x), x > 0), (sp.exp(x) - 1, True))
        + sp.atan2(y, x**2 + 1) / (1 + sp.exp(-k * y)),
    ),
    (k,),
    time=t,
)


@BACKENDS
def test_shapes_and_constants_that_broadcast(backend):
    compiled = compile_field(ODESystem(VectorField((x, y), (sp.Integer(2), r * x), (r,)), {"r": 3}), backend)
    rhs, jacobian = quick(compiled.rhs, backend), quick(compiled.jacobian, backend)
    states = np.arange(10.0).reshape(2, 5)
    assert compiled.args == (3.0,)
    assert np.array_equal(rhs(0.0, states, compiled.args), [[2.0] * 5, 3 * states[0]])
    assert np.array_equal(jacobian(0.0, states, compiled.args), [np.zeros((2, 5)), [[3.0] * 5, [0.0] * 5]])
    assert rhs(0.0, states[:, 0], compiled.args).shape == (2,)
    assert jacobian(0.0, states[:, 0], compiled.args).shape == (2, 2)
    assert jacobian(0.0, states.reshape(2, 5, 1), compiled.args).shape == (2, 2, 5, 1)
    assert rhs(0.0, states, compiled.args).dtype == np.float64


@BACKENDS
def test_parameters_may_be_arrays(backend):
    compiled = compile_field(VectorField((x, y), (sp.Integer(2), r * x), (r,)), backend)
    rates = np.array([1.0, 2.0, 3.0])
    assert compiled.args is None
    values = quick(compiled.rhs, backend)(0.0, np.array([5.0, 0.0]), (rates,))
    assert np.array_equal(values, [[2.0] * 3, 5 * rates])


@pytest.mark.parametrize("point", [(0.3, -0.7), (-0.4, 0.5), (2.0, 3.0)])
def test_numpy_jax_and_evalf_agree(point):
    exact = [float(f.subs({x: point[0], y: point[1], k: 2, t: 0.25}).evalf(30)) for f in RICH.rhs]
    states = np.array([[point[0]] * 3, [point[1]] * 3])
    for backend in ("numpy", "jax"):
        compiled = compile_field(RICH, backend)
        single = quick(compiled.rhs, backend)(0.25, states[:, 0], (2.0,))
        assert np.asarray(single) == pytest.approx(exact, rel=4e-15)  # a few rounding errors
        assert np.asarray(quick(compiled.rhs, backend)(0.25, states, (2.0,))[:, 1]) == pytest.approx(
            exact, rel=4e-15
        )


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.tuples(*[st.floats(-3, 3)] * 2).filter(lambda p: min(abs(p[0]), abs(p[1]), abs(p[0] - p[1])) > 1e-2),
    st.floats(0.1, 3),
)
def test_jacobian_is_the_central_difference_of_the_rhs(point, number):
    # Kinks (0, x = y, x or y = 1/10) are kept away from; h = 1e-5 leaves errors of h^2 and eps/h, below 1e-8.
    if min(abs(p - 0.1) for p in point) < 1e-3:
        return
    compiled, h = compile_field(RICH), 1e-5
    state = np.array(point)
    shifts = h * np.eye(2)
    columns = [
        (compiled.rhs(0.1, state + e, (number,)) - compiled.rhs(0.1, state - e, (number,))) / (2 * h)
        for e in shifts
    ]
    assert compiled.jacobian(0.1, state, (number,)) == pytest.approx(
        np.stack(columns, axis=1), abs=1e-6, rel=1e-6
    )


def test_jacobian_by_the_chain_rule_is_that_of_sympy_and_of_autodiff():
    q = sp.symbols("q0:4")
    shared = sp.exp(-q[0] * q[1]) / (1 + q[2] ** 2)
    field = VectorField(q, tuple(shared**j * q[3 - j] + sp.sin(shared) for j in range(4)))
    state = np.array([0.3, -0.2, 0.7, 1.1])
    exact = np.array(field.jacobian.subs(dict(zip(q, state, strict=True))).evalf(20)).astype(float)
    # Rounding errors only: both are exact derivatives.
    assert compile_field(field).jacobian(0, state, ()) == pytest.approx(exact, rel=1e-13, abs=1e-14)
    jax_field = compile_field(field, "jax")
    automatic = jax.jit(jax.jacfwd(lambda v: jax_field.rhs(0.0, v, ())))(jnp.asarray(state))
    assert np.asarray(jax.jit(jax_field.jacobian)(0.0, state, ())) == pytest.approx(
        np.asarray(automatic), rel=1e-13, abs=1e-14
    )


@BACKENDS
def test_any_name_is_an_ordinary_name(backend):
    names = [
        "lambda",
        "beta",
        "N",
        "S",
        "E",
        "I",
        "Q",
        "pi",
        "class",
        "def",
        "x-y",
        "a_0",
        "s_0",
        "where",
        "exp",
    ]
    symbols = [sp.Symbol(name) for name in names]
    total = sp.Add(*((j + 1) * symbol for j, symbol in enumerate(symbols)))
    compiled = compile_field(VectorField(tuple(symbols), (total,) * len(symbols)), backend)
    ones = np.ones(len(names))
    assert float(quick(compiled.rhs, backend)(0.0, ones, ())[0]) == sum(range(1, len(names) + 1))
    slopes = quick(compiled.jacobian, backend)(0.0, ones, ())[0]
    assert np.array_equal(slopes, np.arange(1, len(names) + 1))


def test_case_names_e_is_not_eulers_number():
    # "E*x" with E = 1, x = 2 is 2, not 5.43.
    (value,) = compile_expressions([sp.Symbol("E") * x], [sp.Symbol("E"), x])(1.0, 2.0)
    assert value == 2.0


def test_maps_compile_like_fields():
    compiled = compile_field(MapSystem(IteratedMap((x,), (r * x * (1 - x),), (r,)), {"r": 4}))
    assert compiled.rhs(0, np.array([0.25]), compiled.args) == pytest.approx([0.75], abs=1e-15)
    assert compiled.jacobian(0, np.array([0.25]), compiled.args) == pytest.approx(
        np.array([[2.0]]), abs=1e-15
    )


# --- what floating point must not spoil ---

PHI = sp.Piecewise(((sp.exp(a * t) - 1) / a, sp.Ne(a, 0)), (t, True))


@BACKENDS
def test_case_piecewise_removable_value(backend):
    (values,) = quick(compile_expressions([PHI], [a, t], backend), backend)(np.array([0.0, 1e-18, 1e-9]), 2.0)
    # phi = t + a t^2/2 + ..., hence 2 + 2e-9 at 1e-9; exp(x) - 1 written out would give 0 at 1e-18.
    assert np.asarray(values) == pytest.approx([KNOWN["removable"]["value"], 2.0, 2.000000002], rel=1e-15)


def test_case_piecewise_removable_derivative():
    phi = compile_expressions([PHI], [a, t], "jax")
    derivative = jax.jit(jax.grad(lambda value: phi(value, 2.0)[0]))
    assert derivative(0.0) == KNOWN["removable"]["d_da"]
    assert jax.jit(jax.grad(derivative))(0.0) == pytest.approx(8 / 3, rel=1e-15)  # t^3/3
    jacobian = compile_field(VectorField((a,), (PHI.subs(t, 2),))).jacobian
    assert jacobian(0.0, np.zeros(1), ()) == pytest.approx(np.array([[2.0]]), abs=1e-15)


def test_a_jump_is_not_taken_for_a_removable_singularity():
    jump = sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (5, True))
    assert compile_expressions([jump], [x])(np.array([0.0, 1.0]))[0] == pytest.approx([5.0, np.sin(1.0)])


def test_gradients_through_branches_that_are_not_taken_are_finite():
    root = sp.Piecewise((sp.sqrt(x) + 1 / x, x > 0), (x, True))
    function = compile_expressions([root], [x], "jax")
    slopes = jax.jit(jax.vmap(jax.grad(lambda value: function(value)[0])))(jnp.array([-1.0, 0.0, 4.0]))
    assert np.asarray(slopes) == pytest.approx([1.0, 1.0, 0.25 - 1 / 16], rel=1e-15)


GROWTH = k * x * sp.exp(r * t) / (k + x * (sp.exp(r * t) - 1))


@BACKENDS
def test_case_overflow_logistic(backend):
    (values,) = quick(compile_expressions([GROWTH], [k, x, r, t], backend), backend)(
        1.0, 0.1, 1.0, np.array([-2000.0, 1.0, 2000.0])
    )
    # At t = 1 the textbook formula is harmless.
    plain = 0.1 * np.e / (1 + 0.1 * (np.e - 1))
    assert np.asarray(values) == pytest.approx([0.0, plain, KNOWN["logistic_overflow"]["value"]], rel=1e-15)


def test_case_overflow_logistic_in_single_precision():
    numbers = [jnp.float32(value) for value in (1.0, 0.1, 1.0, 100.0)]
    (value,) = compile_expressions([GROWTH], [k, x, r, t], "jax")(*numbers)
    assert value.dtype == jnp.float32
    assert value == KNOWN["logistic_overflow"]["value"]


def test_derivatives_of_saturated_quotients_are_zero_not_nan():
    softmax = sp.exp(x) / (sp.exp(x) + sp.exp(y))
    compiled = compile_field(VectorField((x, y), (softmax, 1 / (1 + sp.exp(-x)))))
    assert np.array_equal(compiled.jacobian(0, np.array([2000.0, -2000.0]), ()), np.zeros((2, 2)))
    # By hand: s = 1/2, ds/dx = s (1 - s) = 1/4.
    assert compiled.jacobian(0, np.zeros(2), ()) == pytest.approx(
        np.array([[0.25, -0.25], [0.25, 0.0]]), abs=1e-16
    )
    function = compile_expressions([softmax], [x, y], "jax")
    assert jax.grad(lambda value: function(value, -2000.0)[0])(2000.0) == 0.0


@BACKENDS
def test_softmax_of_several_variables_in_one_exponent(backend):
    """1/(1 + exp(u) + exp(v)) and exp(u)/(...)^2 with u, v sums of symbols: neither inf/inf nor 0 inf."""
    u, v = -5 * x - 3 * y, -x + 2 * y
    total = 1 + sp.exp(u) + sp.exp(v)
    function = quick(
        compile_expressions(
            [1 / total, sp.exp(u) / total, sp.exp(u) * sp.exp(v) / total**2], [x, y], backend
        ),
        backend,
    )
    # u = 800, v = 799, then u = v = -900.
    ahead, behind = np.linalg.solve([[-5.0, -3.0], [-1.0, 2.0]], np.array([[800.0, -900.0], [799.0, -900.0]]))
    first, second, third = map(np.asarray, function(ahead, behind))
    share = 1 / (1 + np.exp(-1.0))
    # The logits are known to a few roundings of 800, 1e-13 each.
    assert first == pytest.approx([0.0, 1.0], rel=1e-15, abs=1e-300)
    assert second == pytest.approx([share, 0.0], rel=1e-12, abs=1e-300)
    assert third == pytest.approx([share * (1 - share), 0.0], rel=1e-12, abs=1e-300)


@BACKENDS
def test_case_lambertw_of_a_large_exponential(backend):
    case = KNOWN["lambertw"]
    (values,) = quick(compile_expressions([t - sp.LambertW(sp.exp(t))], [t], backend), backend)(
        np.array(case["T"], dtype=float)
    )
    # The reference has 12 digits.
    assert np.asarray(values) == pytest.approx(case["value"], abs=1e-10)


@BACKENDS
@pytest.mark.parametrize("branch", [0, -1])
def test_lambertw_against_mpmath(backend, branch):
    points = [-1 / np.e + 1e-10, -0.367, -0.3, -0.2, -1e-3, -1e-9]
    points += [0.0, 1e-9, 1.0, 30.0, 1e100] if branch == 0 else []
    lambertw = quick(compile_expressions([sp.LambertW(x, branch)], [x], backend), backend)
    (values,) = lambertw(np.array(points))
    with mpmath.workdps(30):
        exact = [float(mpmath.lambertw(p, branch).real) for p in points]
    # Near -1/e, W = -1 + sqrt(2 (e z + 1)) turns a rounding error of z into 1e-16 / sqrt(5e-10).
    assert np.asarray(values) == pytest.approx(exact, rel=2e-11)
    assert np.asarray(values)[2:] == pytest.approx(exact[2:], rel=1e-14)
    assert np.isnan(lambertw(np.full(len(points), -0.4))[0]).all()


def test_lambertw_derivative():
    function = compile_expressions([sp.LambertW(x)], [x], "jax")
    slopes = jax.jit(jax.vmap(jax.grad(lambda z: function(z)[0])))(jnp.array([0.0, np.e]))
    # W' = 1 / (e^W (1 + W)): 1 at 0 and 1/(2 e) at e.
    assert np.asarray(slopes) == pytest.approx([1.0, 0.5 / np.e], rel=1e-14)
    compiled = compile_field(VectorField((x,), (sp.LambertW(x),)))
    assert compiled.jacobian(0, np.zeros(1), ()) == pytest.approx(np.array([[1.0]]), abs=1e-15)


@BACKENDS
def test_outside_the_domain_the_value_is_not_finite_and_nothing_is_printed(backend, capsys):
    compiled = compile_field(VectorField((x, y), (sp.sqrt(x) + x ** sp.Rational(3, 2), 1 / y)), backend)
    values = np.asarray(compiled.rhs(0.0, np.array([-1.0, 0.0]), ()))
    assert np.isnan(values[0])
    assert np.isinf(values[1])
    assert capsys.readouterr() == ("", "")


def test_jumps_have_derivative_zero():
    compiled = compile_field(VectorField((x,), (sp.Heaviside(x) + sp.sign(x) + sp.floor(x) + 2 * x,)))
    assert compiled.jacobian(0, np.array([0.5]), ()) == pytest.approx(np.array([[2.0]]))


# --- one compilation, and refusals ---


def test_other_numbers_compile_nothing():
    field = VectorField((x,), (r * x - sp.sin(k * x),), (r, k))
    first = compile_field(ODESystem(field, {"r": 1, "k": 2}))
    before = lambdify._compiled.cache_info().misses
    same = VectorField((x,), (r * x - sp.sin(k * x),), (r, k))
    second = compile_field(ODESystem(same, {"r": 3, "k": 4}))
    assert lambdify._compiled.cache_info().misses == before
    assert (second.rhs, second.jacobian) == (first.rhs, first.jacobian)
    assert second.args == (3.0, 4.0)


def test_single_precision_is_refused():
    with jax.enable_x64(False), pytest.raises(RuntimeError, match=r"single precision.*jax\.enable_x64"):
        compile_field(RICH, backend="jax")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (sp.zeta(x), r"zeta has no numpy form; got zeta\(x\)"),
        (sp.Function("f")(x), r"f has no numpy form; got f\(x\)"),
        (sp.DiracDelta(x), "DiracDelta has no numpy form"),
        (sp.LambertW(x, 2), "only its branches 0 and -1 are real; got 2"),
    ],
)
def test_what_has_no_numerical_form_is_named(expression, message):
    with pytest.raises(ValueError, match=message):
        compile_field(VectorField((x,), (x + expression,)))


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match=r"`backend` must be one of \['numpy', 'jax'\]; got 'torch'"):
        compile_field(RICH, backend="torch")
    with pytest.raises(TypeError, match=r"`compile_field` takes an ODESystem.*got Symbol"):
        compile_field(x)
    with pytest.raises(ValueError, match=r"use \['x', 'y'\], which are not among the arguments \['a'\]"):
        compile_expressions([x + y + a], [a])
