"""Cobwebs of maps of one state."""

import math

import numpy as np
import pytest
import sympy as sp

from fixedpoints.pictures.cobwebs import cobweb
from fixedpoints.points import Certificate, FixedPoint, FixedPoints
from odesys.plotting import new_axes
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

x, y, k, r = sp.symbols("x y k r")
LOGISTIC = IteratedMap((x,), (r * x * (1 - x),), (r,))
#: 0 and 1 - 1/r, by hand.
KNOWN = FixedPoints(
    (FixedPoint({"x": 0.0}, (), "unstable"), FixedPoint({"x": 0.6}, (), "stable")),
    (),
    Certificate("complete", "by hand", 2),
)


def test_the_path_goes_from_the_diagonal_to_the_graph_and_back():
    web = cobweb(MapSystem(LOGISTIC, {"r": 2.5}), 0.1, 3, points=KNOWN)
    # 2.5 x (1 - x) from 0.1: 0.225, 0.4359375, 0.614740...
    np.testing.assert_allclose(web.orbit[:3], [0.1, 0.225, 0.4359375], rtol=1e-15)
    a, b, c, d = web.orbit
    np.testing.assert_array_equal(web.path, [[a, a, b, b, c, c, d], [a, b, b, c, c, d, d]])


def test_the_graph_is_that_of_the_map():
    web = cobweb(MapSystem(LOGISTIC, {"r": 2.5}), {"x": 0.1}, 5, interval=(0, 1), points=KNOWN)
    np.testing.assert_allclose(web.image, 2.5 * web.x * (1 - web.x), atol=1e-15)
    assert (web.x[0], web.x[-1]) == (0, 1)
    assert [p.location["x"] for p in web.points] == [0.0, 0.6]


def test_fixed_points_are_found_and_marked():
    web = cobweb(MapSystem(LOGISTIC, {"r": 2.5}), 0.1, 30, interval=(-0.1, 1))
    assert [(p.location["x"], p.stability) for p in web.points] == [(0.0, "unstable"), (0.6, "stable")]
    labels = [text.get_text() for text in web.axes.get_legend().get_texts()]
    assert labels[-2:] == ["unstable: x = 0", "stable: x = 0.6"]
    # |f'(0.6)| = |2.5 (1 - 1.2)| = 1/2: after 30 steps within 0.5^28 of it.
    assert web.orbit[-1] == pytest.approx(0.6, abs=2.0**-28)


def test_an_undefined_part_of_the_graph_is_left_out():
    web = cobweb(MapSystem(IteratedMap((x,), (sp.sqrt(x),)), {}), 0.25, 4, interval=(-1, 1), points=KNOWN)
    assert np.isnan(web.image[web.x < 0]).all()
    assert np.isfinite(web.image[web.x >= 0]).all()


def test_a_standing_orbit_has_a_window_too():
    web = cobweb(MapSystem(LOGISTIC, {"r": 2.5}), 0.0, 2, points=KNOWN)
    assert (web.x[0], web.x[-1]) == (-1.0, 1.0)


def test_draws_into_given_axes():
    axes = new_axes()
    assert cobweb(MapSystem(LOGISTIC, {"r": 2.5}), 0.1, 2, ax=axes, points=KNOWN).axes is axes


def test_refuses():
    logistic = MapSystem(LOGISTIC, {"r": 2.5})
    with pytest.raises(TypeError, match="drawn of a MapSystem; got ODESystem"):
        cobweb(ODESystem(VectorField((x,), (x,))), 0.1, 2)
    with pytest.raises(ValueError, match="A cobweb has one state; this map has 2"):
        cobweb(MapSystem(IteratedMap((x, y), (y, x))), 0.1, 2)
    with pytest.raises(ValueError, match="does not count its steps; this one uses k"):
        cobweb(MapSystem(IteratedMap((x,), (x / (k + 1),), time=k)), 0.1, 2)
    with pytest.raises(ValueError, match="`steps` must be a positive whole number"):
        cobweb(logistic, 0.1, 0)
    with pytest.raises(ValueError, match=r"`interval` must be finite and increasing, \(low, high\)"):
        cobweb(logistic, 0.1, 2, interval=(1, math.inf), points=KNOWN)
    with pytest.raises(OverflowError, match="leaves the finite numbers"):
        cobweb(MapSystem(LOGISTIC, {"r": 4.0}), 2.0, 20)
