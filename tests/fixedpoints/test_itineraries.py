"""Itineraries: visits in order, with times known by hand; slow passages are no arrivals."""

import numpy as np
import pytest
import sympy as sp

from fixedpoints.itineraries import itinerary
from fixedpoints.points import Certificate, Component, FixedPoint, FixedPoints
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

x, y, z = sp.symbols("x y z")
DIMS = {"unstable node": (2, 0, 0), "saddle": (1, 0, 1), "stable node": (0, 0, 2)}

#: Two logistic modes, the second five times slower: x from 0 to 1 first, then y.
MODES = ODESystem(VectorField((x, y), (x * (1 - x), y * (1 - y) / 5)))
CORNERS = [(0, 0, "unstable node"), (0, 1, "saddle"), (1, 0, "saddle"), (1, 1, "stable node")]


def known(places, components=()):
    points = tuple(FixedPoint({"x": float(a), "y": float(b)}, (), s, dims=DIMS[s]) for a, b, s in places)
    return FixedPoints(points, tuple(components), Certificate("complete", "by hand", len(points)))


def logistic_time(start, end, rate=1.0):
    """When a logistic mode gets from one value to another."""
    return (np.log(end / (1 - end)) - np.log(start / (1 - start))) / rate


def places(found):
    return [tuple(visit.place.location.values()) for visit in found.visits]


def test_saddle_to_saddle():
    found = itinerary(MODES, {"x": 1e-6, "y": 1e-4}, np.linspace(0, 120, 241), known(CORNERS))
    assert places(found) == [(0, 0), (1, 0), (1, 1)]
    assert found.radii == pytest.approx([0.2] * 4)
    origin, saddle, node = found.visits
    assert (origin.entered, origin.left) == (0.0, pytest.approx(logistic_time(1e-6, 0.2), abs=0.01))
    # Near (1, 0), where y is still about 1e-3, x alone decides: |x - 1| < 0.2. Leaving, y alone does.
    assert saddle.entered == pytest.approx(logistic_time(1e-6, 0.8), abs=0.01)
    assert saddle.left == pytest.approx(logistic_time(1e-4, 0.2, 1 / 5), abs=0.01)
    assert origin.verdict.startswith("passage")
    assert saddle.verdict.startswith("passage")
    assert node.left is None
    assert node.verdict.startswith("settles: stable node")
    assert node.distance < 1e-6


def test_closest_approach():
    # Near (1, 0): (1 - x)^2 + y^2 with 1 - x = A e^-t and y = B e^(t/5) is least where A^2 e^-2t = B^2 e^(2t/5) / 5.
    found = itinerary(MODES, {"x": 1e-6, "y": 1e-9}, np.linspace(0, 120, 481), known(CORNERS))
    a, b = 1e6, 1e-9
    closest = np.log(5 * a**2 / b**2) / 2.4
    assert found.visits[1].closest == pytest.approx(closest, abs=0.05)
    distance = np.hypot(a * np.exp(-closest), b * np.exp(closest / 5))
    assert found.visits[1].distance == pytest.approx(distance, rel=1e-2)


def test_a_slow_passage_that_has_not_ended_is_no_attractor():
    # At t = 60 the trajectory rests within 1e-7 of the saddle (1, 0), at a speed of 1e-8, still falling at t = 36.
    for end in (30.0, 36.0, 60.0):
        found = itinerary(MODES, {"x": 1e-6, "y": 1e-12}, np.linspace(0, end, 241), known(CORNERS))
        last = found.visits[-1]
        assert (last.left, places(found)[-1]) == (None, (1, 0))
        assert last.speed < 1e-4
        assert last.verdict.startswith("lingers")
        assert "saddle" in last.verdict


def test_a_stable_point_that_is_not_approached_is_no_arrival():
    # A wrong classification alone does not settle anything: the speed rises on the way out.
    wrong = known([(0, 0, "stable node")])
    found = itinerary(MODES, {"x": 1e-6, "y": 1e-6}, np.linspace(0, 10, 41), wrong, radius=0.5)
    assert found.visits[0].verdict == "lingers: stable node, but the speed does not go on falling"


def test_loss_and_speed_are_reported():
    half = sp.Rational(1, 2)
    system = ODESystem(VectorField((x, y), (-x, -2 * y)))
    found = itinerary(
        system,
        {"x": 1.0, "y": 1.0},
        np.linspace(0, 5, 51),
        known([(0, 0, "stable node")]),
        loss=half * x**2 + y**2,
    )
    (visit,) = found.visits
    # Alone: the neighbourhood reaches a tenth of the largest distance, sqrt 2 at the start.
    assert found.radii == pytest.approx([0.1 * np.sqrt(2)])
    assert visit.entered == pytest.approx(-np.log(0.1 * np.sqrt(2)), abs=0.01)
    assert visit.loss == pytest.approx(np.exp(-10) / 2 + np.exp(-20), rel=1e-5)
    assert visit.speed == pytest.approx(np.exp(-5), rel=1e-3)


def test_a_line_of_fixed_points_is_a_place():
    # The two-layer net x' = y (1 - x y), y' = x (1 - x y) from near its saddle: it ends on x y = 1.
    net = ODESystem(VectorField((x, y), (y * (1 - x * y), x * (1 - x * y))))
    answer = known([(0, 0, "saddle")], [Component((x * y - 1,), 1)])
    found = itinerary(net, {"x": 1e-3, "y": 1e-3}, np.linspace(0, 20, 101), answer)
    saddle, minima = found.visits
    assert saddle.verdict.startswith("passage")
    # x = y: the distance from (0, 0) to the hyperbola is sqrt 2; a fifth of it is the radius of both.
    assert found.radii == pytest.approx([np.sqrt(2) / 5] * 2)

    # u' = u (1 - u^2) leaves u = 1/5 when log(u / sqrt(1 - u^2)) has grown by t.
    def level(u):
        return np.log(u / np.sqrt(1 - u**2))

    assert saddle.left == pytest.approx(level(0.2) - level(1e-3), abs=0.01)
    assert minima.entered == pytest.approx(level(0.8) - level(1e-3), abs=0.01)
    assert isinstance(minima.place, Component)
    assert minima.verdict.startswith("settles")
    assert "x*y - 1 = 0" in str(found)


def test_the_distance_of_a_line_is_that_from_the_point():
    # u' = u (1 - u - w), w' = -w (1 - u - w) about (2, 1): the line x + y = 4 is 1/sqrt 2 away from it.
    u, w = x - 2, y - 1
    field = VectorField((x, y), (u * (1 - u - w), -w * (1 - u - w)))
    answer = known([(2, 1, "saddle")], [Component((x + y - 4,), 1)])
    found = itinerary(ODESystem(field), {"x": 2.01, "y": 1.2}, np.linspace(0, 20, 101), answer)
    assert found.radii == pytest.approx([1 / (5 * np.sqrt(2))] * 2)


def test_fixed_points_are_found_if_none_are_given():
    found = itinerary(MODES, {"x": 1e-6, "y": 1e-4}, np.linspace(0, 120, 241))
    assert places(found) == [(0, 0), (1, 0), (1, 1)]
    assert found.found.certificate.kind == "complete"


def test_shifts_of_a_periodic_field_are_visited():
    # A damped pendulum that goes over the top twice before it rests at x = 4 pi.
    pendulum = ODESystem(VectorField((x, y), (y, -sp.sin(x) - y / 5)))
    found = itinerary(pendulum, {"x": 0.0, "y": 4.5}, np.linspace(0, 120, 1201))
    turns = [round(visit.place.location["x"] / np.pi) for visit in found.visits]
    assert turns == [4]
    assert found.visits[-1].verdict.startswith("settles: stable focus")


def test_nothing_comes_near():
    found = itinerary(MODES, {"x": -1.0, "y": -1.0}, [0.0, 0.1], known([(1, 1, "stable node")]), radius=0.1)
    assert (found.visits, str(found)) == ((), "no fixed point comes near")


def test_refuses():
    with pytest.raises(TypeError, match="is of an ODESystem; got MapSystem"):
        itinerary(MapSystem(IteratedMap((x,), (x,))), {"x": 0}, [0, 1])
    with pytest.raises(ValueError, match="`radius` must be a positive distance; got 0"):
        itinerary(MODES, {"x": 0.5, "y": 0.5}, [0, 1], known(CORNERS), radius=0)
    with pytest.raises(ValueError, match="No number for the states"):
        itinerary(MODES, {"x": 0.5}, [0, 1], known(CORNERS))


def test_a_sink_of_three_states_settles():
    # From three states on a stable point is called a sink.
    field = VectorField((x, y, z), (-x, -2 * y, -3 * z))
    (only,) = itinerary(ODESystem(field), {"x": 1.0, "y": 1.0, "z": 1.0}, np.linspace(0, 20, 201)).visits
    assert only.verdict.startswith("settles: sink")
