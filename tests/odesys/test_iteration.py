"""Iterated maps: hand values, thinning, and refusals."""

import json

import numpy as np
import pytest
import sympy as sp
import xarray as xr

import odesys
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_map

x, k, r, eta = sp.symbols("x k r eta")
LOGISTIC = IteratedMap((x,), (r * x * (1 - x),), (r,), source="May 1976")


def test_a_chaotic_orbit_has_its_closed_form():
    # At r = 4, x_k = sin^2(2^k asin sqrt(x_0)); errors double at each step, so 2^12 of 1e-16.
    orbit = odesys.iterate(odesys.MapSystem(LOGISTIC, {"r": 4}), {"x": 0.3}, steps=12)
    exact = np.sin(2.0 ** np.arange(13) * np.arcsin(np.sqrt(0.3))) ** 2
    assert orbit["x"].values == pytest.approx(exact, abs=1e-12)
    assert orbit["x"].dims == ("step",)
    assert orbit["x"].dtype == np.float64


def test_thinning_keeps_the_first_and_the_last_step():
    system = odesys.MapSystem(LOGISTIC, {"r": 3.7})
    every, thinned = (odesys.iterate(system, {x: 0.3}, steps=20, every=n) for n in (1, 5))
    assert np.array_equal(thinned["step"], [0, 5, 10, 15, 20])
    assert np.array_equal(thinned["x"], every["x"].sel(step=thinned["step"]))


def test_gradient_descent_on_a_parabola_contracts_by_one_minus_the_rate():
    w = sp.Symbol("w")
    step = gradient_map((1 - w) ** 2 / 2, (w,), step=eta)
    orbit = odesys.iterate(odesys.MapSystem(step, {"eta": 0.25}), {"w": 0.0}, steps=10)
    # 1/4 and 3/4 are exact in binary, so is 0.75^10 but for its last bits.
    assert orbit["w"].values == pytest.approx(1 - 0.75 ** np.arange(11), abs=1e-15)


def test_the_step_count_may_enter_the_map():
    total = odesys.iterate(odesys.MapSystem(IteratedMap((x,), (x + k,), time=k)), {"x": 0}, steps=5)
    assert np.array_equal(total["x"], [0, 0, 1, 3, 6, 10])


def test_provenance_and_saving(tmp_path):
    orbit = odesys.iterate(odesys.MapSystem(LOGISTIC, {"r": 2}), {"x": 0.3}, steps=2)
    assert orbit.attrs["source"] == "May 1976"
    assert json.loads(orbit.attrs["parameters"]) == {"r": 2.0}
    orbit.to_netcdf(tmp_path / "orbit.nc")
    xr.testing.assert_identical(xr.load_dataset(tmp_path / "orbit.nc"), orbit)


def test_divergence_is_an_error_that_names_the_step():
    # x_1 = 2 * 2 * (1 - 2) = -4, then -40, about -3280, 2.2e7, ...: the 10th square exceeds 1e308.
    with pytest.raises(OverflowError, match=r"leaves the finite numbers at step 10 of 50: {'x': -inf}"):
        odesys.iterate(odesys.MapSystem(LOGISTIC, {"r": 2}), {"x": 2}, steps=50)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"steps": 0}, ValueError, "`steps` must be a positive whole number; got 0"),
        ({"every": 0}, ValueError, "`every` must be a positive whole number; got 0"),
        ({"every": 3}, ValueError, "`every` must divide `steps`.*; got 3 and 10"),
        ({"start": {}}, ValueError, r"No number for the states \['x'\]"),
        ({"system": odesys.ODESystem(VectorField((x,), (x,)))}, TypeError, "Flows go to `solve`"),
    ],
)
def test_refusals(changes, error, message):
    good = {"system": odesys.MapSystem(LOGISTIC, {"r": 2}), "start": {"x": 0.1}, "steps": 10}
    with pytest.raises(error, match=message):
        odesys.iterate(**(good | changes))
