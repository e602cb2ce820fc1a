"""Closed forms on a time grid are exact to rounding, never NaN, and refuse to leave their domain."""

import json
import pickle
from functools import cache

import mpmath
import numpy as np
import pytest
import sympy as sp
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from references import reference

import odesys
import symbolic
from odesys.evaluation import DomainError, evaluate
from symbolic import closed_form

x, t, x0 = sp.symbols("x t x_0")
y = sp.Symbol("y", positive=True)
v = sp.Symbol("v", positive=True)
lam, tau, a, r, K, k, P = sp.symbols("lambda tau a r K k P", positive=True)
Q = sp.Symbol("Q", nonnegative=True)
s, C, c = sp.symbols("s C c")
vmax, k_A, k_B = sp.symbols("v_max k_A k_B", positive=True)

LOGISTIC = r * y * (1 - y / K)
ALIGNED = (lam**2 * v**2 - lam**3 * a * v**5) / tau
UNBALANCED = 2 / tau * (c * y - k * P * y**2 + k * Q).subs(c, sp.Symbol("c", positive=True))
TWO_SUBSTRATES = -vmax * x * (x - C) / (x * (x - C) + k_B * x + k_A * (x - C))

#: Rounding of a float64 evaluation through tens of operations; the requirement.
EXACT = 1e-12

BACKENDS = ("numpy", "jax")


@cache
def solved(f):
    (state,) = f.free_symbols & {x, y, v}
    parameters = tuple(sorted(f.free_symbols - {state}, key=str))
    return closed_form.solve(symbolic.VectorField((state,), (f,), parameters, source="by hand"))


def course(f, start, times, backend="numpy", **parameters):
    law = solved(f)
    (name,) = law.field.names
    return evaluate(law, {name: start}, times, parameters, backend=backend)[name].values


# --- reference values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", sorted(reference("linear_attention_aligned")["aligned_scalar_ode"]))
def test_aligned_separate_attention(name, backend):
    case = reference("linear_attention_aligned")["aligned_scalar_ode"][name]
    numbers = {"lambda": float(case["lambda_d"]), "a": float(case["a_d"]), "tau": float(case["tau"])}
    times = np.array(case["t"], dtype=float)
    got = course(ALIGNED, float(case["v0"]), times, backend, **numbers)
    np.testing.assert_allclose(got, np.array(case["v_closed_form"], dtype=float), rtol=EXACT)
    star = float(case["v_star"])
    for share in (0.5, 0.9, 0.99):
        got = course(ALIGNED, float(case["v0"]), [float(case[f"t_to_u={share}"])], backend, **numbers)
        np.testing.assert_allclose(got, share * star, rtol=EXACT)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", sorted(reference("linear_attention_merged")["white_time_course"]))
def test_white_merged_attention(name, backend):
    # sigma' = (2c/tau) sigma (1 - a lam sigma), c = sqrt(D) lam^2; loss D lam - 2 D lam^2 sigma + D a lam^3 sigma^2.
    case = reference("linear_attention_merged")["white_time_course"][name]
    dim, size = case["D"], float(case["lambda"])
    A = 1 + (1 + dim) / case["N"]
    law = solved(LOGISTIC)
    rate, end, start = 2 * dim**0.5 * size**2, 1 / (A * size), float(case["w_init"]) ** 2 / dim**0.5
    loss = sp.Integer(dim) * (size - 2 * size**2 * y + A * size**3 * y**2)
    times = np.array(case["t"], dtype=float)
    run = evaluate(
        law, {"y": start}, times, {"r": rate, "K": end}, backend=backend, observables={"loss": loss}
    )
    np.testing.assert_allclose(run["y"], np.array(case["sigma"], dtype=float), rtol=EXACT)
    np.testing.assert_allclose(run["loss"], np.array(case["loss"], dtype=float), rtol=EXACT)


@pytest.mark.parametrize(("name", "half"), [("D4_lam1", 2.4384744380908), ("D4_lam0.25", 44.56094265380)])
def test_half_time(name, half):
    size = {"D4_lam1": 1.0, "D4_lam0.25": 0.25}[name]
    rate, end = 4 * size**2, 1 / (36 / 31 * size)
    (got,) = course(LOGISTIC, 0.01**2 / 2, [half], r=rate, K=end)
    # The given time has 14 digits; at the half time the relative slope is r/2.
    assert got == pytest.approx(end / 2, rel=1e-12 + rate / 2 * 1e-12 * half)


@pytest.mark.parametrize("case", range(len(reference("linear_attention_merged")["white_exact_general_init"])))
def test_unbalanced_white_merged_attention(case):
    # p = P y - Q/y from y(0) = 1, with P = |w2 + A|^2/4, Q = |w2 - A|^2/4.
    case = reference("linear_attention_merged")["white_exact_general_init"][case]
    w2, A1 = np.array(case["w2"]), np.array(case["A(W1=A chat^T)"])
    dim, size = case["D"], case["lambda"]
    numbers = {
        "c": dim**0.5 * size**2,
        "k": size**3 * (1 + (1 + dim) / case["N"]),
        "P": np.sum((w2 + A1) ** 2) / 4,
        "Q": np.sum((w2 - A1) ** 2) / 4,
        "tau": 1.0,
    }
    run = evaluate(solved(UNBALANCED), {"y": 1.0}, case["t"], numbers, observables={"p": P * y - Q / y})
    np.testing.assert_allclose(
        run["p"], case["p_exact"], rtol=1e-11
    )  # p starts near zero by cancellation of P and Q


def test_two_layer_network():
    # Case dsolve-empty-list, 12 digits.
    f = sp.sqrt(C**2 + 4 * x**2) * (s - x)
    assert course(f, 0.05, [2.0], C=-0.24, s=1.0)[0] == pytest.approx(0.850291665783, abs=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_substrates(backend):
    # Case implicit-two-substrate, 11 digits.
    got = course(TWO_SUBSTRATES, 2.0, [1.5], backend, C=0.8, k_A=0.7, k_B=0.4, v_max=1.3)
    assert got[0] == pytest.approx(1.0746462088, abs=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_lambert_law(backend):
    # Case lambdify-lambertw-jax: x = T - W(e^T), T = t + 1 from x0 = 0.
    got = course(1 / (1 + sp.exp(x)), 0.0, [0.0, 9.0, 999.0], backend)
    np.testing.assert_allclose(got, [0.0, 2.07057990498, 6.90083052761], atol=1e-11)  # the file's digits


@pytest.mark.parametrize("backend", BACKENDS)
def test_late_logistic_does_not_overflow(backend):
    # Case lambdify-overflow-logistic.
    assert course(LOGISTIC, 0.1, [2000.0], backend, r=1.0, K=1.0)[0] == 1.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_equilibria_stay(backend):
    # Case logistic-removable, and the same for an implicit law.
    assert np.all(course(LOGISTIC, 2.0, [0.0, 1.0, 50.0], backend, r=1.5, K=2.0) == 2.0)
    assert np.all(course(x**2 * (1 - x) ** 3, 1.0, [0.0, 1.0, 50.0], backend) == 1.0)


# --- small starts and saturation ----------------------------------------------------------------------------


@pytest.mark.parametrize("start", [1e-12, 0.1, 1.0, 1e12])
def test_logistic_from_any_start(start):
    times = np.array([0.0, 1e-13, 1e-9, 1e-3, 1.0, 27.0, 36.0, 100.0, 2000.0])
    with mpmath.workdps(40):
        exact = [
            mpmath.mpf(start) / (mpmath.exp(-T) + start * (1 - mpmath.exp(-T)))
            for T in map(mpmath.mpf, times)
        ]
        wanted = np.array([float(value) for value in exact])
    np.testing.assert_allclose(course(LOGISTIC, start, times, r=1.0, K=1.0), wanted, rtol=EXACT)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("start", [1e-12, 1e-3, 1.94, 1.95, 50.0])
def test_aligned_law_from_any_start(start, backend):
    """The time that the answer needs, by the theory note's F at 40 digits, is the time that was asked for."""
    numbers = {"lambda": 0.1, "a": 1.3548387096774193548, "tau": 1.0}
    star = mpmath.root(1 / (mpmath.mpf("0.1") * mpmath.mpf(numbers["a"])), 3)
    times = np.concatenate([[0.0], np.logspace(-3, 16, 60)])
    got = course(ALIGNED, start, times, backend, **numbers)
    assert np.all(np.isfinite(got))
    assert got[0] == start
    assert np.all(np.diff(got) * np.sign(float(star) - start) >= -1e-15 * float(star))
    assert got[-1] == pytest.approx(float(star), rel=1e-15)
    with mpmath.workdps(40):

        def F(u):
            root = mpmath.sqrt(3)
            angle = mpmath.atan((2 * u + 1) / root) / root
            return -1 / u - mpmath.log(abs(1 - u)) / 3 + mpmath.log(1 + u + u**2) / 6 - angle

        for moment, value in zip(times[1:], got[1:], strict=True):
            u = mpmath.mpf(value) / star
            if abs(1 - u) > 1e-14:  # nearer, the float that is the answer says nothing about time
                elapsed = (F(u) - F(mpmath.mpf(start) / star)) / (mpmath.mpf("0.01") * star)
                rate = mpmath.mpf("0.01") * star * u * (1 - u**3)  # relative slope of v
                # Rounding of the time, and of the terms of F at the start, moves v by this much.
                inherent = 1e-15 * (moment + (1 + float(star) / start) / (0.01 * float(star))) * abs(rate)
                assert abs(elapsed - moment) * abs(rate) < 1e-14 + inherent


@pytest.mark.parametrize("backend", BACKENDS)
def test_short_times_do_not_cancel(backend):
    # F(x) - F(x_0) loses 1e-16 absolutely; x' = 1 + x^4 from 1e-12 moves by t (1 + O(t^4)) and needs 1e-24.
    times = np.array([0.0, 1e-14, 1e-13, 1e-9, 1e-5])
    np.testing.assert_allclose(course(1 + x**4, 1e-12, times, backend), 1e-12 + times, rtol=EXACT)


def test_saturation_where_the_time_function_is_lost():
    # x' = x (1 - x)^2: F holds ln|1 - x| and 1/(1 - x), which are inf - inf at x = 1; late, 1 - x = 1/t.
    got = course(x * (1 - x) ** 2, 0.5, [1e8, 1e20, 1e300])
    assert 1 - got[0] == pytest.approx(1e-8, rel=1e-6)  # logarithmic corrections of 2e-7, roundings of 1e-8
    np.testing.assert_allclose(got[1:], 1.0, rtol=2.3e-16)  # one rounding


def test_decay_keeps_relative_accuracy():
    # x' = -x (1 + x^2): ln(x/sqrt(1 + x^2)) falls at unit rate, though not solved as Bernoulli here but inverted.
    f = -x * (1 + x**2) * (4 + x**2)
    times = np.array([1.0, 10.0, 40.0, 150.0])
    got = course(f, 3.0, times)
    # F = -ln x/4 + ln(1 + x^2)/6 - ln(4 + x^2)/24 by partial fractions.
    with mpmath.workdps(40):

        def F(z):
            return -mpmath.log(z) / 4 + mpmath.log(1 + z**2) / 6 - mpmath.log(4 + z**2) / 24

        for moment, value in zip(times, got, strict=True):
            # dx/x = -4 dt late, so that a relative error of 1e-12 in x is 2.5e-13 in time.
            assert abs(F(mpmath.mpf(value)) - F(mpmath.mpf(3)) - mpmath.mpf(moment)) < 1e-13


# --- against integrators ------------------------------------------------------------------------------------

number = st.floats(0.3, 3.0)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(number, number, st.floats(0.01, 2.5))
def test_implicit_law_agrees_with_an_integrator(size, factor, start):
    numbers = {"lambda": size, "a": factor, "tau": 1.0}
    times = np.linspace(0.0, 3.0 / (size**2 * start), 30)
    run = odesys.solve(odesys.ODESystem(solved(ALIGNED).field, numbers), {"v": start}, times, rtol=1e-11)
    # Global errors of DOP853 stay within tens of rtol near the stable equilibrium.
    np.testing.assert_allclose(course(ALIGNED, start, times, **numbers), run["v"], rtol=1e-9)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(number, number, number, st.floats(0.0, 2.0), st.floats(1e-3, 5.0))
def test_riccati_law_agrees_with_an_integrator(growth, factor, plus, minus, start):
    numbers = {"c": growth, "k": factor, "P": plus, "Q": minus, "tau": 1.0}
    times = np.linspace(0.0, 5.0, 30)
    run = odesys.solve(odesys.ODESystem(solved(UNBALANCED).field, numbers), {"y": start}, times, rtol=1e-11)
    np.testing.assert_allclose(course(UNBALANCED, start, times, **numbers), run["y"], rtol=1e-9)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.floats(-2, 2), st.floats(0.1, 2), st.floats(-2, 2))
def test_network_law_agrees_with_an_integrator(imbalance, target, start):
    f = sp.sqrt(C**2 + 4 * x**2) * (s - x)
    numbers = {"C": imbalance, "s": target}
    times = np.linspace(0.0, 2.0, 20)
    run = odesys.solve(odesys.ODESystem(solved(f).field, numbers), {"x": start}, times, rtol=1e-11)
    np.testing.assert_allclose(course(f, start, times, **numbers), run["x"], rtol=1e-8, atol=1e-10)


# --- the dataset --------------------------------------------------------------------------------------------


def test_dataset_has_labels_and_provenance(tmp_path):
    law = solved(LOGISTIC)
    run = evaluate(
        law, {y: 0.5}, np.linspace(0, 3, 7), {"r": 1, K: 2.0}, observables={"double": 2 * y + law.time}
    )
    assert set(run.data_vars) == {"y", "double"}
    assert run["y"].dims == ("time",)
    np.testing.assert_allclose(run["double"], 2 * run["y"] + run["time"])
    assert run.attrs["method"] == "closed form (explicit)"
    assert run.attrs["source"] == "by hand"
    assert json.loads(run.attrs["start"]) == {"y": 0.5}
    assert json.loads(run.attrs["parameters"]) == {"K": 2.0, "r": 1.0}
    run.to_netcdf(tmp_path / "run.nc")
    xr.testing.assert_identical(xr.load_dataset(tmp_path / "run.nc"), run)
    assert evaluate(solved(x**2 / (1 + x)), {"x": 1}, [0, 1]).attrs["method"] == "closed form (implicit)"


def test_several_states_of_a_verified_law():
    z, z0 = sp.symbols("z z_0")
    law = closed_form.verify(
        symbolic.VectorField((x, z), (-z, x)),
        {x: x0 * sp.cos(t) - z0 * sp.sin(t), z: x0 * sp.sin(t) + z0 * sp.cos(t)},
        time=t,
        initial={x: x0, z: z0},
    )
    run = evaluate(law, {"z": 0.0, "x": 1.0}, [0.0, np.pi / 2], observables={"radius": x**2 + z**2})
    np.testing.assert_allclose(run["z"], [0, 1], atol=1e-15)
    np.testing.assert_allclose(run["radius"], 1, rtol=1e-15)


def test_one_time_is_enough():
    assert course(-x, 3.0, [0.0]).tolist() == [3.0]


# --- domain -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "start", "times", "limit", "message"),
    [
        # Case ivp-blowup: x' = x^2 from 1 at t = 1.
        (
            x**2,
            1.0,
            [0.0, 0.5, 1.5, 2.0],
            1.0,
            r"t = 1.5 lies outside .* it needs .*> 0, which holds until t = 1\.",
        ),
        (1 + x**2, 0.0, [1.0, 4.0], np.pi / 2, "t = 4 lies outside"),
        (-sp.sqrt(x), 1.0, [1.0, 3.0], 2.0, "which holds until t = 2"),
        (1 + x**4, 0.0, [1.0, 2.0], np.pi / 8**0.5, r"t = 2 lies outside .*: x blows up at t = 1.110720"),
        (
            (x**2 + 1) / (1 - x),
            0.0,
            [0.1, 1.0],
            np.pi / 4 - np.log(2) / 2,
            "reaches 1, where the field is singular",
        ),
        (x**2 * (1 + x), 1.0, [0.5], 1 - np.log(2), "blows up"),
    ],
)
def test_times_past_the_end(f, start, times, limit, message):
    with pytest.raises(DomainError, match=message) as refusal:
        course(f, start, times)
    assert refusal.value.limit == pytest.approx(limit, rel=1e-13)
    assert refusal.value.time == next(moment for moment in times if moment >= limit)
    again = pickle.loads(pickle.dumps(refusal.value))
    assert (str(again), again.time, again.limit) == (
        str(refusal.value),
        refusal.value.time,
        refusal.value.limit,
    )


def test_just_before_a_blow_up():
    assert course(x**2, 1.0, [0.999])[0] == pytest.approx(1000.0, rel=1e-12)
    # F = -1/x + ln((1 + x)/x): near the end, 1 - ln 2 - t = -F(x) = 1/(2 x^2) - ..., here for x = 100.
    end = 1 - np.log(2) - (1 / 100 - np.log1p(1 / 100))
    assert course(x**2 * (1 + x), 1.0, [end])[0] == pytest.approx(
        100.0, rel=1e-10
    )  # 1 ulp of t moves x by 1e-11


@pytest.mark.parametrize(
    ("f", "start", "message"),
    [
        (sp.sqrt(x), 0.0, "it needs x_0 > 0, which x_0 = 0 do not meet. Start elsewhere"),
        (sp.sqrt(x**2 - 1), 0.5, "which x_0 = 0.5 do not meet"),
    ],
)
def test_starts_outside(f, start, message):
    with pytest.raises(DomainError, match=message):
        course(f, start, [0.0, 1.0])


def test_times_before_the_start():
    with pytest.raises(DomainError, match=r"t = -1 lies outside .* begins at t = 0"):
        course(-x, 1.0, [-1.0, 0.0])


def test_conditions_that_a_verified_law_does_not_state():
    law = closed_form.verify(
        symbolic.VectorField((y,), (sp.sqrt(y**2 - 1),)),
        {y: sp.cosh(t + sp.acosh(sp.Symbol("y_0", positive=True)))},
        time=t,
        initial={y: sp.Symbol("y_0", positive=True)},
    )
    with pytest.raises(DomainError, match=r"is not a finite number at t = 0, for y_0 = 0\.5"):
        evaluate(law, {"y": 0.5}, [0.0, 1.0])


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"law": LOGISTIC}, TypeError, "takes a ClosedForm .* got Mul"),
        ({"start": {}}, ValueError, r"No number for the states \['y'\]"),
        ({"start": {"z": 1.0}}, ValueError, "No state is called 'z'"),
        ({"start": {"y": 1j}}, ValueError, "The state y must be real"),
        ({"start": {"y": np.nan}}, ValueError, "The state y must be finite"),
        ({"parameters": {"r": 1.0}}, ValueError, r"No number for the parameters \['K'\]"),
        ({"parameters": {"r": 1.0, "K": 1.0, "q": 2}}, ValueError, "No parameter is called 'q'"),
        ({"times": []}, ValueError, "at least one time"),
        ({"times": 3.0}, TypeError, "`times` must be a sequence of real numbers"),
        ({"times": [0.0, np.inf]}, ValueError, "all finite"),
        ({"times": [0.0, 2.0, 1.0]}, ValueError, "`times` must increase; got 2 before 1"),
        ({"times": [0.0, 1.0, 1.0]}, ValueError, "`times` must increase; got 1 before 1"),
        ({"backend": "torch"}, ValueError, "`backend` must be one of"),
        ({"observables": {"y": y}}, ValueError, r"The names \['y'\] of observables are taken"),
        ({"observables": {"loss": x + y}}, ValueError, r"The observable 'loss' uses \['x'\]"),
    ],
)
def test_refuses(changes, error, message):
    given = {
        "law": solved(LOGISTIC),
        "start": {"y": 1.0},
        "times": [0.0, 1.0],
        "parameters": {"r": 1.0, "K": 2.0},
    }
    with pytest.raises(error, match=message):
        evaluate(**(given | changes))
