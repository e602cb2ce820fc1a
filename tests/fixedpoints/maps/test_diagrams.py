"""Orbit diagrams: the states that are kept, periods that are claimed only when confirmed, escapes, plateaus."""

import json
import math

import numpy as np
import pytest
import sympy as sp
import xarray as xr
from references import reference

import fixedpoints.maps.diagrams
from fixedpoints import orbit_diagram
from odesys import iterate
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_map

x, y, r, a, b, q, k = sp.symbols("x y r a b q k")
eta = sp.Symbol("eta", positive=True)
LOGISTIC = IteratedMap((x,), (r * x * (1 - x),), (r,), source="May 1976")
HENON = IteratedMap((x, y), (1 - a * x**2 + y, b * x), (a, b))
SOFTMAX = gradient_map((1 / (1 + sp.exp(-x)) - q) ** 2, (x,), step=eta)


def softmax(half):
    return MapSystem(SOFTMAX, {"eta": 1.0, "q": half})


def test_the_states_are_those_of_iterate():
    values, starts = [2.5, 3.3, 3.7], [0.2, 0.6]
    found = orbit_diagram(LOGISTIC, "r", values, {"x": starts}, transient=50, keep=7)
    assert found["x"].dims == ("r", "start", "kept")
    assert found["kept"].values.tolist() == list(range(51, 58))
    for i, rate in enumerate(values):
        for j, start in enumerate(starts):
            orbit = iterate(MapSystem(LOGISTIC, {"r": rate}), {"x": start}, 57)["x"].values[-7:]
            # Scalar and array code may round differently; chaos at 3.7 grows that by e^{0.35 * 57}.
            np.testing.assert_allclose(found["x"].values[i, j], orbit, rtol=1e-6 if rate > 3.6 else 1e-13)
    assert found["x_0"].values.tolist() == starts
    assert found.attrs["source"] == "May 1976"


def test_several_states_and_other_parameters():
    system = MapSystem(HENON, {"a": 0.0, "b": 0.3})
    found = orbit_diagram(system, a, [0.2, 0.5, 1.4], {"x": 0.1, "y": [0.0, 0.1, 0.2]}, keep=130)
    assert found["x"].shape == found["y"].shape == (3, 3, 130)
    # Stable points up to a = 0.3675, a 2-cycle up to 0.9125, the strange attractor at 1.4.
    assert found["period"].values.tolist() == [[1] * 3, [2] * 3, [0] * 3]
    np.testing.assert_allclose(found["y"].values[..., 1:], 0.3 * found["x"].values[..., :-1], rtol=1e-13)
    assert json.loads(found.attrs["parameters"]) == {"b": 0.3}


def test_the_cascade_of_the_logistic_map():
    # Windows by hand and from May 1976: 1 below 3, 2 below 1 + sqrt 6, 4 below 3.5440; 3 from 1 + sqrt 8 on.
    values = [2.9, 3.2, 3.5, 3.55, 3.83, 3.7, 4.0]
    found = orbit_diagram(LOGISTIC, "r", values, {"x": 0.3}, transient=4000)
    assert found["period"].values[:, 0].tolist() == [1, 2, 4, 8, 3, 0, 0]


@pytest.mark.parametrize("half", [0.5, 0.75])
def test_descent_on_two_logits(half):
    rows = [row for row in reference("softmax_maps")["periods"] if row[0] == half]
    found = orbit_diagram(
        softmax(half), "eta", [row[1] for row in rows], {"x": [0.3, -0.6]}, transient=20_000
    )
    for (_, _, period, points), kept, periods in zip(
        rows, found["x"].values, found["period"].values, strict=True
    ):
        assert set(periods) == {period}
        if period:
            # Which of two mirror images an orbit ends on depends on its start.
            ends = {side: np.sort(side * kept[0, -period:]) for side in (1, -1)}
            gaps = [np.abs(e - np.sort(points)).max() for e in ends.values()]
            assert min(gaps[:1] if half == 0.75 else gaps) < 1e-9  # slow convergence near the pitchfork


def test_an_orbit_that_has_not_arrived_has_no_period():
    # The multiplier at r = 2.999 is -0.999: after 100 steps the orbit still hops between two sides.
    early, late = (
        orbit_diagram(LOGISTIC, "r", [2.999], {"x": 0.3}, transient=t)["period"].item() for t in (100, 40_000)
    )
    assert (early, late) == (0, 1)


def test_a_long_period_is_not_claimed_beyond_what_was_kept():
    # Period 8 at r = 3.55: with `longest` 4, or 12 states kept, there is none to tell.
    for options, period in (({}, 8), ({"longest": 4}, 0), ({"keep": 12}, 0), ({"keep": 16}, 8)):
        found = orbit_diagram(LOGISTIC, "r", [3.55], {"x": 0.3}, transient=4000, **options)
        assert found["period"].item() == period


def test_a_plateau_is_no_fixed_point():
    # At x = 30 the softmax is saturated: steps of 2 eta e^-30 ~ 1e-12 are below the tolerance, but it does move.
    found = orbit_diagram(softmax(0.5), "eta", [1.0, 17.0], {"x": [30.0, 0.3]})
    assert found["period"].values.tolist() == [[-1, 1], [-1, 2]]
    assert "plateau" in found["period"].attrs["meaning"]


def test_without_the_newton_step_the_plateau_would_be_a_period(monkeypatch):
    monkeypatch.setattr(fixedpoints.maps.diagrams, "_correction", lambda *_: 0.0)
    found = orbit_diagram(softmax(0.5), "eta", [1.0], {"x": 30.0})
    assert found["period"].item() == 1


def test_escape_is_flagged_at_its_step():
    # x -> x^2: 10^(2^k) leaves the floats (1.8e308) at k = 9; 1/2 falls to 0 and stays.
    square = IteratedMap((x,), (x**2 * r,), (r,))
    found = orbit_diagram(square, "r", [1.0], {"x": [10.0, 0.5]}, transient=20, keep=5)
    assert found["escaped"].values.tolist() == [[9, -1]]
    assert found["period"].values.tolist() == [[-2, 1]]
    assert np.isnan(found["x"].values[0, 0]).all()
    assert np.isfinite(found["x"].values[0, 1]).all()


def test_an_escape_among_the_kept_states_blanks_them_all():
    square = IteratedMap((x,), (x**2 * r,), (r,))
    found = orbit_diagram(square, "r", [1.0], {"x": 10.0}, transient=5, keep=10)
    assert found["escaped"].item() == 9
    assert np.isnan(found["x"].values).all()


def test_the_map_is_compiled_once(monkeypatch):
    calls = []
    compile_once = fixedpoints.maps.diagrams.compile_field
    monkeypatch.setattr(
        fixedpoints.maps.diagrams, "compile_field", lambda s: calls.append(s) or compile_once(s)
    )
    orbit_diagram(LOGISTIC, "r", np.linspace(2, 4, 500), {"x": 0.3}, transient=10, keep=4)
    assert len(calls) == 1


def test_the_dataset_goes_to_disk_and_back(tmp_path):
    found = orbit_diagram(LOGISTIC, "r", [2.9, 4.5], {"x": [0.3, 0.4]}, keep=4)
    found.to_netcdf(tmp_path / "diagram.nc")
    with xr.open_dataset(tmp_path / "diagram.nc") as again:
        xr.testing.assert_identical(again.load(), found)


def test_refuses():
    with pytest.raises(TypeError, match="Orbit diagrams are those of a map; got ODESystem, a flow"):
        orbit_diagram(ODESystem(VectorField((x,), (r * x,), (r,)), {"r": 1}), "r", [1.0], {"x": 0.3})
    with pytest.raises(ValueError, match=r"No parameter is called 's'; the map's parameters are \['r'\]"):
        orbit_diagram(LOGISTIC, "s", [1.0], {"x": 0.3})
    with pytest.raises(ValueError, match=r"No number for the parameters \['b'\]"):
        orbit_diagram(HENON, "a", [1.0], {"x": 0.3, "y": 0})
    with pytest.raises(ValueError, match="eta is declared to be positive; got the value -1"):
        orbit_diagram(softmax(0.5), "eta", [1.0, -1.0], {"x": 0.3})
    period = sp.Symbol("period")
    with pytest.raises(ValueError, match=r"\['period'\] would stand for two things in the dataset"):
        orbit_diagram(IteratedMap((period,), (r * period,), (r,)), "r", [1.0], {"period": 0.3})
    for values, problem in (([], "distinct"), ([1.0, 1.0], "distinct"), ([[1.0, 2.0]], "distinct")):
        with pytest.raises(ValueError, match=f"`values` must be {problem} numbers in one row"):
            orbit_diagram(LOGISTIC, "r", values, {"x": 0.3})
    with pytest.raises(ValueError, match="The values must be finite"):
        orbit_diagram(LOGISTIC, "r", [1.0, math.nan], {"x": 0.3})
    with pytest.raises(ValueError, match="The start of x must be finite"):
        orbit_diagram(LOGISTIC, "r", [1.0], {"x": math.inf})
    with pytest.raises(TypeError, match="The start of x must be real numbers"):
        orbit_diagram(LOGISTIC, "r", [1.0], {"x": "here"})
    with pytest.raises(ValueError, match=r"`start` lacks the states \['y'\]"):
        orbit_diagram(MapSystem(HENON, {"a": 1, "b": 0.3}), "a", [1.0], {"x": 0.3})
    with pytest.raises(ValueError, match=r"one number or as many as for the others; got \[2, 3\]"):
        orbit_diagram(MapSystem(HENON, {"a": 1, "b": 0.3}), "a", [1.0], {"x": [0, 1], "y": [0, 1, 2]})
    for name, value, least in (("transient", -1, 0), ("keep", 1, 2), ("longest", 0, 1)):
        with pytest.raises(
            ValueError, match=f"`{name}` must be a whole number of at least {least}; got {value}"
        ):
            orbit_diagram(LOGISTIC, "r", [3.0], {"x": 0.3}, **{name: value})
    with pytest.raises(ValueError, match="`tolerance` must be a positive number"):
        orbit_diagram(LOGISTIC, "r", [3.0], {"x": 0.3}, tolerance=0)
