"""Many starts at once are as good as one after the other."""

import json

import numpy as np
import pytest
import sympy as sp
import xarray as xr

import odesys
from symbolic.field import VectorField

x, y, t = sp.symbols("x y t")
SYSTEM = odesys.ODESystem(VectorField((x, y), (x * (1 - x) - y, -y)))
TIMES = [0.0, 1.0, 20.0]


def logistic(starts, times):
    return 1 / (1 + (1 / starts[:, None] - 1) * np.exp(-np.asarray(times)))


@pytest.mark.parametrize("method", [None, "LSODA", "Dopri8"])
def test_every_start_is_as_accurate_as_a_single_run(method):
    starts = np.array([1e-9, 1e-3, 0.5, 1.0, 3.0])
    many = odesys.solve_ensemble(
        SYSTEM, {"x": starts, "y": 0.0}, TIMES, method=method, observables={"s": x + y}, invariants=[y]
    )
    assert many["x"].dims == ("start", "time")
    # Errors of a run at rtol 1e-8, a hundred times that for LSODA's growth over twenty e-foldings.
    assert many["x"].values == pytest.approx(logistic(starts, TIMES), rel=1e-6 if method == "LSODA" else 1e-7)
    assert np.array_equal(many["s"], many["x"] + many["y"])
    assert many["invariant_drift"].dims == ("invariant", "start", "time")
    assert many.attrs["invariant_drift_max"] == 0.0
    assert many.attrs["method"] == (method or "DOP853")


def test_many_starts_go_to_one_compiled_call():
    starts = np.linspace(0.01, 2.0, 32)
    many = odesys.solve_ensemble(SYSTEM, {"x": starts, y: np.zeros(32)}, TIMES)
    assert many.attrs["method"] == "Dopri8"
    assert many["x"].values == pytest.approx(logistic(starts, TIMES), rel=1e-7)
    assert many.sizes == {"start": 32, "time": 3}


def test_jumps_in_time_are_met_from_every_start(tmp_path):
    system = odesys.ODESystem(
        VectorField((y,), (-y + sp.Heaviside(t - 100) - sp.Heaviside(t - 101),), time=t)
    )
    many = odesys.solve_ensemble(system, {"y": [0.0, 1.0]}, [0.0, 101.0], method="DOP853")
    assert many["y"][:, 1].values == pytest.approx([1 - np.exp(-1)] * 2, abs=1e-8)
    many.to_netcdf(tmp_path / "many.nc")
    xr.testing.assert_identical(xr.load_dataset(tmp_path / "many.nc"), many)
    assert json.loads(many.attrs["parameters"]) == {}


@pytest.mark.parametrize("method", ["DOP853", "Dopri8"])
def test_a_start_that_fails_is_named(method):
    # x' = x (1 - x) from -1/10 blows up: 1/x - 1 = -11 exp(-t) reaches -1 at t = log 11.
    with pytest.raises(
        odesys.IntegrationError, match=rf"Start 1: {method} stopped at time 2\.39789.*blow-up"
    ) as caught:
        odesys.solve_ensemble(SYSTEM, {"x": [0.1, -0.1, 0.2], "y": 0.0}, TIMES, method=method)
    assert caught.value.time == pytest.approx(np.log(11), abs=1e-6)
    assert caught.value.partial["x"].dims == ("time",)


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ({"x": [1.0, 2.0]}, r"No starts for the states \['y'\]; got \['x'\]"),
        ({"x": [1.0, 2.0], "y": [1.0]}, r"one common length.*got lengths {'x': 2, 'y': 1}"),
        ({"x": 1.0, "y": 2.0}, "A single start is for `solve`"),
        ({"x": [], "y": 2.0}, r"one common length.*got lengths {'x': 0}"),
        ({"x": [1.0, np.nan], "y": 2.0}, "The starts of x must be real, finite numbers in one dimension"),
        ({"x": [1.0, 1j], "y": 2.0}, "The starts of x must be real, finite numbers in one dimension"),
        ({"x": [[1.0]], "y": 2.0}, "The starts of x must be real, finite numbers in one dimension"),
        ({"x": [1.0], "z": 2.0}, "No state is called 'z'"),
    ],
)
def test_refused_starts(starts, message):
    with pytest.raises(ValueError, match=message):
        odesys.solve_ensemble(SYSTEM, starts, TIMES)
