"""How integrations fail: loudly, soon, saying where and why, with the run so far; and what is refused."""

import pickle
import time

import numpy as np
import pytest
import sympy as sp

import odesys
from odesys.integrators import contract
from symbolic.field import IteratedMap, VectorField

x, y, t = sp.symbols("x y t")
SQUARE = odesys.ODESystem(VectorField((x,), (x**2,)))
PAIR = odesys.ODESystem(VectorField((x, y), (-x, x - y)))
#: Where one diffrax method stands for all, since compiling takes seconds.
ONE_EACH = (*contract.SCIPY_METHODS, "Tsit5")


def failing(system, start, times, **options) -> odesys.IntegrationError:
    with pytest.raises(odesys.IntegrationError) as caught:
        odesys.solve(system, start, times, **options)
    return caught.value


@pytest.mark.parametrize("method", [None, *contract.METHODS])
def test_case_blow_up(method, capfd):
    if method in contract.DIFFRAX_METHODS:
        odesys.solve(SQUARE, {"x": 1.0}, [0.0, 0.5], method=method)  # whatever compiles is compiled
    begin = time.perf_counter()
    error = failing(SQUARE, {"x": 1.0}, [0.0, 0.5, 2.0], method=method)
    assert time.perf_counter() - begin < 10  # "within seconds" on a busy machine
    # x = 1/(1 - t); the multistep methods have lost digits when x has grown by 10^9 and more.
    assert error.time == pytest.approx(1.0, abs=1e-5)
    assert "blow-up" in error.reason
    assert str(error).startswith(f"{method or 'DOP853'} stopped at time {error.time:.12g} of 2: blow-up")
    assert np.array_equal(error.partial["time"][:2], [0.0, 0.5])
    assert float(error.partial["x"][1]) == pytest.approx(2.0, rel=1e-6)
    assert float(error.partial["time"][-1]) == error.time
    assert float(error.partial["x"][-1]) > 1e6
    assert np.all(np.isfinite(error.partial["x"]))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", ONE_EACH)
@pytest.mark.parametrize(
    ("rhs", "edge"),
    [
        (-1 / sp.sqrt(x), 2 / 3),  # x^(3/2) = 1 - 3 t / 2
        (sp.sqrt(1 - t), 1.0),
    ],
)
def test_domain_edge(method, rhs, edge):
    if method == "Tsit5" and rhs.has(t):
        pytest.skip("one compilation is enough")
    error = failing(
        odesys.ODESystem(VectorField((x,), (rhs,), time=t)), {"x": 1.0}, [0.0, 0.5, 3.0], method=method
    )
    # LSODA gives up ten step halvings before the edge.
    assert error.time == pytest.approx(edge, abs=1e-3)
    assert "edge of the domain" in error.reason
    assert "not finite beyond this point" in str(error)
    assert np.all(np.isfinite(error.partial["x"]))


def test_a_logarithmic_blow_up_is_not_taken_for_a_domain_edge():
    # x = -log(1 - t) reaches only 36 before its derivative exceeds 1e15.
    error = failing(odesys.ODESystem(VectorField((x,), (sp.exp(x),))), {"x": 0.0}, [0.0, 2.0])
    assert error.time == pytest.approx(1.0, abs=1e-6)
    assert "blow-up" in error.reason


@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_an_infinite_jacobian(method):
    # x' = sqrt(x) from 0 has many solutions; the derivative of the root is infinite there.
    error = failing(odesys.ODESystem(VectorField((x,), (sp.sqrt(x),))), {"x": 0.0}, [0.0, 1.0], method=method)
    assert error.time == 0.0
    assert "singularity" in error.reason


@pytest.mark.parametrize("method", [None, "LSODA", "Tsit5"])
def test_a_start_outside_the_domain(method):
    system = odesys.ODESystem(VectorField((x,), (sp.log(x),)))
    error = failing(system, {"x": -1.0}, [3.0, 4.0], method=method)
    assert error.time == 3.0
    assert "edge of the domain" in error.reason
    assert np.array_equal(error.partial["x"], [-1.0])


@pytest.mark.parametrize("method", [None, *ONE_EACH])
def test_exhausted_steps(method):
    error = failing(SQUARE, {"x": 1.0}, [0.0, 0.001, 0.9], method=method, max_steps=5)
    assert "the 5 steps of `max_steps` are used up" in error.reason
    assert 0.0 < error.time < 0.9
    assert error.partial.attrs["steps"] == 5
    assert float(error.partial["x"][-1]) == pytest.approx(1 / (1 - error.time), rel=1e-6)


def test_exhausted_steps_between_jumps():
    pulses = sp.Add(*(sp.Heaviside(t - j) * (-1) ** j for j in range(1, 8)))
    system = odesys.ODESystem(VectorField((x,), (pulses,), time=t))
    error = failing(system, {"x": 1.0}, [0.0, 10.0], max_steps=20)
    assert 1.0 < error.time < 10.0
    assert error.partial.attrs["steps"] == 20


def test_the_error_survives_pickling():
    error = failing(SQUARE, {"x": 1.0}, [0.0, 2.0])
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.time, again.reason) == (str(error), error.time, error.reason)
    assert again.partial.identical(error.partial)


GOOD = {"system": PAIR, "y0": {"x": 1, "y": 1}, "times": [0, 1]}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"system": PAIR.field}, TypeError, r"takes an ODESystem; got VectorField"),
        ({"system": odesys.MapSystem(IteratedMap((x,), (x,)))}, TypeError, "maps go to `iterate`"),
        ({"y0": {"x": 1}}, ValueError, r"No number for the states \['y'\]; got \['x'\]"),
        (
            {"y0": {"x": 1, "y": 1, "z": 1}},
            ValueError,
            r"No state is called 'z'; the states are \['x', 'y'\]",
        ),
        ({"y0": {"x": 1, "y": 1, x: 1}}, ValueError, "state x is given twice"),
        ({"y0": {"x": 1, "y": 1j}}, ValueError, "state y must be real; got the complex number 1j"),
        ({"y0": {"x": 1, "y": float("inf")}}, ValueError, "state y must be finite; got inf"),
        ({"y0": [1, 1]}, TypeError, r"states must be a mapping .*; got \[1, 1\]"),
        ({"times": [0, 2, 1]}, ValueError, r"increase strictly; times\[2\] = 1.0 follows times\[1\] = 2.0"),
        ({"times": [0, 1, 1]}, ValueError, r"increase strictly; times\[2\] = 1.0 follows times\[1\] = 1.0"),
        ({"times": [1, 0]}, ValueError, "a flow runs backward as the field -f"),
        ({"times": [0]}, ValueError, r"at least two times in one dimension; got shape \(1,\)"),
        ({"times": []}, ValueError, r"at least two times .*; got shape \(0,\)"),
        ({"times": [[0, 1]]}, ValueError, r"in one dimension; got shape \(1, 2\)"),
        ({"times": 3.0}, TypeError, "sequence of real numbers; got 3.0"),
        ({"times": ["a", "b"]}, TypeError, "sequence of real numbers"),
        ({"times": [0, 1j]}, TypeError, "sequence of real numbers"),
        ({"times": [0, float("nan")]}, ValueError, "`times` must be finite; got nan"),
        ({"method": "RK4"}, ValueError, r"must be one of \['RK45', 'DOP853', .*'Kvaerno5'\].*; got 'RK4'"),
        ({"rtol": 0}, ValueError, "`rtol` must be a positive number; got 0"),
        ({"rtol": -1e-8}, ValueError, "`rtol` must be a positive number; got -1e-08"),
        ({"rtol": "tight"}, ValueError, "`rtol` must be a positive number; got 'tight'"),
        ({"rtol": 1e-15}, ValueError, "between 2.2e-14 and 1 in double precision; got 1e-15"),
        ({"atol": [1e-8]}, ValueError, r"one for each of the 2 states \['x', 'y'\]; got shape \(1,\)"),
        ({"atol": 0.0}, ValueError, "`atol` must be positive and finite; got 0.0"),
        ({"atol": {"x": 1e-8}}, ValueError, r"No number for the tolerances \['y'\]"),
        ({"atol": "small"}, TypeError, "`atol` must be a number, or one for each of"),
        ({"max_steps": 0}, ValueError, "`max_steps` must be a positive whole number; got 0"),
        ({"max_steps": 1.5}, ValueError, "`max_steps` must be a positive whole number; got 1.5"),
        ({"invariants": [sp.Symbol("q")]}, ValueError, r"invariant q uses \['q'\], which are not symbols"),
        ({"invariants": [sp.Symbol("x", positive=True)]}, ValueError, r"uses \['x'\], which are not symbols"),
        (
            {"invariants": x + y},
            TypeError,
            r"must be a sequence of first integrals; got one: write \[x \+ y\]",
        ),
        ({"invariants": ["x"]}, TypeError, "An invariant must be a SymPy expression.*; got str"),
        ({"observables": {"x": y}}, ValueError, r"names \['x'\] of observables are taken"),
        ({"observables": {"time": y}}, ValueError, r"names \['time'\] of observables are taken"),
        ({"observables": {"q": sp.Symbol("q")}}, ValueError, r"observable 'q' q uses \['q'\]"),
    ],
)
def test_refused_input(changes, error, message):
    with pytest.raises(error, match=message):
        odesys.solve(**(GOOD | changes))


def test_a_state_called_time_is_refused():
    system = odesys.ODESystem(VectorField((sp.Symbol("time"),), (sp.Integer(1),)))
    with pytest.raises(ValueError, match="A state is called 'time'"):
        odesys.solve(system, {"time": 0}, [0, 1])
