"""One conformance suite for every method: textbook answers, tolerances that are kept, labelled results."""

import json

import jax
import numpy as np
import pytest
import scipy.integrate
import sympy as sp
import xarray as xr
from references import reference

import odesys
from odesys import lambdify, textbook
from odesys.integrators import contract
from symbolic.field import VectorField

KNOWN = reference("trajectories")
METHODS = contract.METHODS
#: Where one diffrax method stands for all, since the stepping is shared and compiling takes seconds.
ONE_EACH = (*contract.SCIPY_METHODS, "Tsit5")

x, y, t = sp.symbols("x y t")
LOGISTIC = odesys.ODESystem(VectorField((x,), (x * (1 - x),), source="Verhulst 1838"))


def error(problem: textbook.Problem, run: xr.Dataset) -> float:
    """The largest deviation from closed forms, which are of size 1, or relative one from known values."""
    errors = [0.0]
    for name, solution in problem.solution.items():
        exact = sp.lambdify(problem.clock, solution, "numpy")(run["time"].values)
        errors.append(np.max(np.abs(run[name].values - exact)))
    for i, known in enumerate(problem.known):
        errors.append(abs(float(run[f"known_{i}"].sel(time=known.time)) / known.value - 1))
    return float(max(errors))


def solved(problem: textbook.Problem, method: str | None, rtol: float, **options) -> xr.Dataset:
    times = sorted({0.0, *np.linspace(0, problem.end, 5), *(known.time for known in problem.known)})
    observables = {f"known_{i}": known.expression for i, known in enumerate(problem.known)}
    return odesys.solve(
        problem.system, problem.start, times, method=method, rtol=rtol, observables=observables, **options
    )


#: diffrax compiles for seconds, so its methods meet the problems of one field.
CONFORMANCE = [(method, textbook.two_layer_network) for method in METHODS]
CONFORMANCE += [
    (method, make)
    for method in contract.SCIPY_METHODS
    for make in (textbook.harmonic_oscillator, textbook.logistic, textbook.lorenz)
]


@pytest.mark.parametrize(("method", "make"), CONFORMANCE, ids=lambda value: getattr(value, "__name__", value))
def test_errors_follow_the_tolerance(method, make):
    problem = make()
    loose, tight = (error(problem, solved(problem, method, rtol)) for rtol in (1e-4, 1e-8))
    # A method of order p that controls the error of a step has a global error of order rtol^(p/(p+1)); p >= 4
    # (BDF varies it up to 5), so four decades of rtol are worth at least 10^3.2; half a decade is luck.
    assert tight < loose / 500
    # The sum over steps and, in the Lorenz system, the growth of errors by exp(0.9 t) = 90.
    assert tight < 1e-8 * (1000 if method in ("LSODA", "BDF") else 100)


STIFF = [(method, textbook.van_der_pol) for method in ("Radau", "BDF", "LSODA", "Kvaerno5")]
STIFF += [(method, textbook.prothero_robinson) for method in ("Radau", "BDF", "LSODA")]


@pytest.mark.parametrize(("method", "make"), STIFF, ids=lambda value: getattr(value, "__name__", value))
def test_stiff_problems(method, make):
    problem = make()
    # Stiff order reduction and, for the relaxation oscillator, jumps that amplify errors by about 100.
    assert error(problem, solved(problem, method, 1e-6)) < 3e-3


def test_robertson_over_eleven_decades():
    problem = textbook.robertson()
    run = solved(
        problem, "Radau", 1e-8, atol={"a": 1e-12, "b": 1e-16, "c": 1e-10}, invariants=problem.invariants
    )
    for i, known in enumerate(problem.known):
        assert float(run[f"known_{i}"].sel(time=known.time)) == pytest.approx(known.value, rel=1e-5)
    assert run.attrs["invariant_drift_max"] < 1e-13  # linear invariants are kept to rounding


@pytest.mark.parametrize("rtol", [1e-8, 1e-10])
def test_scipy_and_diffrax_agree_to_ten_times_the_tolerance(rtol):
    problem = textbook.two_layer_network()
    runs = [solved(problem, method, rtol) for method in ("DOP853", "Dopri8", "Tsit5", "Radau")]
    for run in runs[1:]:
        for name in ("a", "b"):
            assert run[name].values == pytest.approx(runs[0][name].values, rel=10 * rtol)


# --- accuracy where it is easily lost ---


@pytest.mark.parametrize("method", [None, *ONE_EACH])
def test_case_small_start(method):
    half_time = KNOWN["small_start"]["half_time"]
    with jax.enable_x64(False):  # solve computes in double precision whatever the process's setting
        run = odesys.solve(LOGISTIC, {"x": 1e-12}, [0.0, half_time, 40.0], method=method)
    assert run["x"].dtype == np.float64
    # SciPy's default atol would be late by 3.1 time units, that is x = 0.045. The time has twelve digits;
    # multistep methods lose digits over 27 e-foldings.
    assert float(run["x"][1]) == pytest.approx(0.5, abs=1e-6)


DAMPING = sp.Symbol("damping")
ROTATION = VectorField((x, y), (y - DAMPING * x, -x - DAMPING * y), (DAMPING,))


@pytest.mark.parametrize("method", ONE_EACH)
def test_case_rotation(method):
    system = odesys.ODESystem(ROTATION, {"damping": 0.1})
    run = odesys.solve(system, {"x": 0.5, "y": 0.5}, [0.0, 1.0], method=method, rtol=1e-10)
    assert float(run["x"][1]) == pytest.approx(KNOWN["rotation"]["x(1)"], abs=3e-9)
    assert float(run["y"][1]) == pytest.approx(KNOWN["rotation"]["y(1)"], abs=3e-9)


@pytest.mark.parametrize("method", ["DOP853", "Tsit5"])
def test_case_invariant_of_small_weights_in_double_precision(method):
    problem = textbook.two_layer_network(first=1e-4, second=2e-4)
    invariants = problem.invariants
    run = odesys.solve(problem.system, problem.start, [0.0, 40.0], method=method, invariants=invariants)
    drift = run["invariant_drift"].values
    value = KNOWN["invariant"]["value"]
    # Single precision drifts by 1e-7, three times the value itself. At rtol 1e-8 a^2 = 1 may be wrong by
    # 1e-8, but the errors of a and b nearly cancel.
    assert drift[0, 1] == pytest.approx(0.0, abs=0.1 * abs(value))


def aligned_heads():
    """All weights of four rank-one heads at eigenvalues .4, .3, .2, .1, by arXiv:2501.16265, section 4."""
    dim, context = KNOWN["aligned_heads"]["D"], KNOWN["aligned_heads"]["N"]
    modes = range(dim)
    lam = [sp.Rational(dim - d, 10) for d in modes]
    gain = [1 + (1 + 1 / each) / context for each in lam]
    v = sp.symbols(f"v:{dim}")
    keys, queries = ([sp.symbols(f"{letter}{h}_:{dim}") for h in modes] for letter in "kq")
    merged = sp.Matrix(dim, dim, lambda i, j: sum(v[h] * keys[h][i] * queries[h][j] for h in modes))
    residual = sp.Matrix(
        dim, dim, lambda i, j: (lam[i] ** 2 if i == j else 0) - lam[i] ** 2 * gain[i] * merged[i, j] * lam[j]
    )
    k, q = (sp.Matrix(rows) for rows in (keys, queries))
    rhs = [(k[h, :] * residual * q[h, :].T)[0] for h in modes]
    rhs += [v[h] * entry for h in modes for entry in residual * q[h, :].T]
    rhs += [v[h] * entry for h in modes for entry in residual.T * k[h, :].T]
    start = KNOWN["aligned_heads"]["start"]
    values = [*start, *(start[h] if h == d else 0.0 for _ in "kq" for h in modes for d in modes)]
    state = (*v, *k, *q)
    named = dict(zip((s.name for s in state), values, strict=True))
    return (
        odesys.ODESystem(VectorField(state, tuple(rhs))),
        named,
        [float(e) for e in lam],
        [float(e) for e in gain],
    )


def aligned_values(times, start, lam, gain):
    """v(t) of an aligned head: lam^2 v* t = F(u) - F(u0), u = v/v*, solved for log(u/(1-u)) by bisection."""
    equilibrium = (lam * gain) ** (-1 / 3)

    def primitive(z):
        u, rest = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(z))
        arc = np.arctan((2 * u + 1) / np.sqrt(3)) / np.sqrt(3)
        return -1 / u - np.log(rest) / 3 + np.log(1 + u + u**2) / 6 - arc

    target = lam**2 * equilibrium * times + primitive(-np.log(equilibrium / start - 1))
    low, high = np.full(len(times), -12.0), np.full(len(times), 700.0)
    for _ in range(80):
        middle = (low + high) / 2
        below = primitive(middle) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return equilibrium / (1 + np.exp(-middle))


@pytest.mark.parametrize("method", ["DOP853", "Dopri8"])
def test_aligned_modes_against_the_reference(method):
    # A fast and a slow mode: when the fast one has arrived, it limits the steps by stability.
    v, w, *parameters = sp.symbols("v w lambda a mu b")
    lam, gain, slow, slow_gain = parameters
    rhs = tuple(p**2 * u**2 - p**3 * g * u**5 for u, p, g in ((v, lam, gain), (w, slow, slow_gain)))
    numbers = {"lambda": 0.4, "a": 1 + 3.5 / 31, "mu": 0.1, "b": 1 + 11 / 31}
    system = odesys.ODESystem(VectorField((v, w), rhs, tuple(parameters)), numbers)
    case = KNOWN["aligned_mode"]
    times = np.union1d(case["t"], np.linspace(0.0, KNOWN["aligned_heads"]["end"], 400))
    run = odesys.solve(system, {"v": 0.01, "w": 0.04}, times, method=method, rtol=1e-12, atol=1e-14)
    # v grows 100-fold while errors in time grow with it, so 100 tolerances.
    assert run["v"].sel(time=case["t"]).values == pytest.approx(case["v"], rel=1e-10)
    for name, start, *mode in (("v", 0.01, 0.4, numbers["a"]), ("w", 0.04, 0.1, numbers["b"])):
        # Interpolated outputs are wrong by 2e-11 (Dopri8) and 1e-7 (DOP853), steps by 1e-12.
        assert run[name].values == pytest.approx(aligned_values(times, start, *mode), abs=5e-12)


def test_outputs_near_equilibrium_are_as_accurate_as_steps():
    system, start, lam, gain = aligned_heads()
    times = np.linspace(0.0, KNOWN["aligned_heads"]["end"], 400)
    exact = np.array(
        [
            aligned_values(times, s, e, g)
            for s, e, g in zip(KNOWN["aligned_heads"]["start"], lam, gain, strict=True)
        ]
    )
    tight = {"rtol": 1e-12, "atol": 1e-14}
    run = odesys.solve(system, start, times, method="DOP853", **tight)
    heads = np.array([run[f"v{h}"].values for h in range(4)])
    # Another program with max_step 5 has 2.1e-12; five times that for another grid of times.
    assert np.max(np.abs(heads - exact)) < 1e-11
    # The control: the same method, interpolated, is the trap (4.3e-7 by that program).
    rhs = odesys.compile_field(system).rhs
    plain = scipy.integrate.solve_ivp(
        lambda s, w: rhs(s, w, ()), times[[0, -1]], list(start.values()), "DOP853", times, **tight
    )
    assert np.max(np.abs(plain.y[:4] - exact)) > 1e-8


# --- what the result holds ---


def test_case_closed_orbit_and_its_invariant():
    problem = textbook.lotka_volterra()
    times = np.linspace(0, 200, 401)
    run = odesys.solve(problem.system, problem.start, times, rtol=1e-10, invariants=problem.invariants)
    drift = run["invariant_drift"]
    assert drift.dims == ("invariant", "time")
    assert float(drift[0, 0]) == 0.0
    # SciPy's defaults lose the orbit (0.3 at t = 200); 22 turns at 1e-10 may cost 1e-8.
    assert run.attrs["invariant_drift_max"] == float(np.abs(drift).max()) < 1e-8
    assert float(run["x"].min()) == pytest.approx(0.2, abs=0.01)


def test_the_result_is_labelled_and_saved(tmp_path):
    s = sp.Symbol("s")
    a, b = sp.symbols("a b")
    field = VectorField((a, b), (b * (s - a * b), a * (s - a * b)), (s,), source="Saxe et al. 2014")
    system = odesys.ODESystem(field, {"s": 2.0})
    run = odesys.solve(
        system, {"a": 0.1, b: 0.5}, [1.0, 2.0, 4.0], observables={"product": a * b}, invariants=[a**2 - b**2]
    )
    assert set(run.data_vars) == {"a", "b", "product", "invariant_drift"}
    assert all(
        run[name].dims == ("time",) and run[name].dtype == np.float64 for name in ("a", "b", "product")
    )
    assert np.array_equal(run["time"], [1.0, 2.0, 4.0])  # the first time is that of y0, zero or not
    assert float(run["a"][0]) == 0.1
    assert np.array_equal(run["product"], run["a"] * run["b"])
    assert json.loads(run.attrs["parameters"]) == {"s": 2.0}
    assert json.loads(run.attrs["atol"]) == {"a": 1e-9, "b": 5e-9}
    assert json.loads(run.attrs["versions"])["scipy"]
    assert {"method", "rtol", "steps", "rhs_evaluations", "source"} <= run.attrs.keys()
    assert run.attrs["source"] == "Saxe et al. 2014"
    run.to_netcdf(tmp_path / "run.nc")
    with xr.open_dataset(tmp_path / "run.nc") as again:
        assert again.equals(run)
        assert again.attrs["rtol"] == 1e-8


def test_invariants_may_be_objects_with_an_expression():
    class Conserved:
        expression = sp.Integer(3)

    run = odesys.solve(LOGISTIC, {"x": 0.1}, [0, 1], invariants=[Conserved()])
    assert np.array_equal(run["invariant_drift"], [[0.0, 0.0]])


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"x": 2.0, "y": 1e-12}, [2e-8, 1e-20]),  # each component by its own start
        ({"x": 0.0, "y": 1e-12}, [1e-20, 1e-20]),  # zero: by the smallest non-zero start
        ({"x": 0.0, "y": -3.0}, [3e-8, 3e-8]),
        ({"x": 0.0, "y": 0.0}, [5e-10, 5e-10]),  # all zero: |f| = 0.01 over a time of 5
    ],
)
def test_default_absolute_tolerance(start, expected):
    system = odesys.ODESystem(VectorField((x, y), (sp.Rational(1, 100) - x, -y)))
    atol = json.loads(odesys.solve(system, start, [0, 2, 5]).attrs["atol"])
    assert list(atol.values()) == pytest.approx(expected, rel=1e-12)


def test_a_start_at_rest_at_zero_has_unit_scale():
    run = odesys.solve(odesys.ODESystem(VectorField((x,), (-x,))), {"x": 0.0}, [0, 1])
    assert json.loads(run.attrs["atol"]) == {"x": 1e-8}
    assert np.array_equal(run["x"], [0.0, 0.0])


def test_explicit_tolerances_by_number_name_and_sequence():
    system = odesys.ODESystem(VectorField((x, y), (-x, -y)))
    for atol, expected in (
        (1e-5, [1e-5] * 2),
        ({"y": 1e-6, x: 1e-5}, [1e-5, 1e-6]),
        ([1e-5, 1e-6], [1e-5, 1e-6]),
    ):
        run = odesys.solve(system, {"x": 1, "y": 1}, [0, 1], atol=atol)
        assert list(json.loads(run.attrs["atol"]).values()) == expected


# --- the choice of a method ---


def test_none_takes_dop853_unless_the_system_is_stiff():
    assert odesys.solve(LOGISTIC, {"x": 0.1}, [0, 10]).attrs["method"] == "DOP853"
    problem = textbook.van_der_pol()
    run = solved(problem, None, 1e-6)
    assert run.attrs["method"] == "Radau"
    assert error(problem, run) < 1e-3


def test_none_keeps_dop853_for_a_long_run_that_is_not_stiff():
    problem = textbook.harmonic_oscillator()
    run = odesys.solve(problem.system, problem.start, [0.0, 300.0], rtol=1e-12)
    assert run.attrs["method"] == "DOP853"
    assert run.attrs["steps"] > 2000


# --- jumps at known times ---

PULSE = sp.Piecewise((1, (t > 100) & (t < 101)), (0, True))


@pytest.mark.parametrize("method", [None, *ONE_EACH])
def test_case_missed_pulse(method):
    system = odesys.ODESystem(VectorField((y,), (-y + PULSE,), time=t))
    run = odesys.solve(system, {"y": 0.0}, [0.0, 50.0, 101.0, 200.0], method=method)
    # By hand 1 - exp(-1); a start at rest at zero is resolved to 1e-8 absolutely, times ten for many steps.
    assert float(run["y"][2]) == pytest.approx(KNOWN["missed_pulse"]["y(101)"], abs=1e-7)
    assert float(run["y"][1]) == pytest.approx(0.0, abs=1e-12)


def test_switching_times_depend_on_parameters():
    switch = sp.Symbol("switch")
    field = VectorField(
        (y,), (sp.Heaviside(t - switch) - sp.Heaviside(t - switch - sp.Rational(1, 100)),), (switch,), time=t
    )
    for when in (3.0, 70.0):
        run = odesys.solve(odesys.ODESystem(field, {"switch": when}), {"y": 1.0}, [0.0, when, 100.0])
        # A pulse of height 1 and length 1/100 adds 1/100.
        assert run["y"].values == pytest.approx([1.0, 1.0, 1.01], abs=1e-12)


def test_a_pulse_that_starts_at_the_first_time():
    field = VectorField((y,), (sp.Piecewise((1, t > 0), (5, True)),), time=t)
    run = odesys.solve(odesys.ODESystem(field), {"y": 0.0}, [0.0, 1e-3, 1.0])
    assert run["y"].values == pytest.approx([0.0, 1e-3, 1.0], abs=1e-12)


# --- one compilation ---


def test_other_numbers_tolerances_and_times_compile_nothing():
    compilations = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compilations.append(event) if event.endswith("compile_duration") else None
    )
    jax.jit(lambda number: number + len(compilations))(1.0)
    assert compilations, "a compilation must be seen, or this test counts nothing"

    def run(number, times, **options):
        start = {"x": number, "y": 0.2}
        return odesys.solve(
            odesys.ODESystem(ROTATION, {"damping": number}),
            start,
            times,
            "Tsit5",
            observables={"sum": x + y},
            **options,
        )

    run(0.1, np.linspace(0, 1, 5))
    compilations.clear()
    derived = lambdify._compiled.cache_info().misses, lambdify._compiled_expressions.cache_info().misses
    assert run(0.3, np.linspace(1, 7, 9), rtol=1e-6, atol=1e-3).sizes["time"] == 9
    with pytest.raises(odesys.IntegrationError):
        run(0.2, [0, 9], max_steps=3)
    assert compilations == []
    assert (
        lambdify._compiled.cache_info().misses,
        lambdify._compiled_expressions.cache_info().misses,
    ) == derived
