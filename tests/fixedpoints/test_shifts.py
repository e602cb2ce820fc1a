"""Points of periodic fields and their shifts."""

import numpy as np
import sympy as sp

from fixedpoints.points import Certificate, FixedPoint, FixedPoints
from fixedpoints.shifts import points_within


def found(*places, **periods):
    points = tuple(FixedPoint({"x": a, "y": b}, (), "saddle") for a, b in places)
    return FixedPoints(points, (), Certificate("complete", "by hand", len(points)), periods=periods)


def places(*arguments):
    return [tuple(point.location.values()) for point in points_within(*arguments)]


def test_points_of_a_box():
    two = found((3.0, 0.0), (0.0, 1.0), (0.0, 9.0))
    assert places(two, {"x": (0, 4), "y": (0, 1)}) == [(0.0, 1.0), (3.0, 0.0)]


def test_shifts_by_whole_periods():
    one = found((np.pi, 0.0), x=2 * sp.pi)
    shown = places(one, {"x": (-10, 10), "y": (-1, 1)})
    np.testing.assert_allclose(shown, [(k * np.pi, 0) for k in (-3, -1, 1, 3)])
    assert places(one, {"x": (-10, 10), "y": (1, 2)}) == []
    # The edges belong to the box, also where rounding puts a shifted point beyond them.
    for low in (-np.pi, -np.pi * (1 - 1e-13)):
        shown = places(one, {"x": (low, np.pi), "y": (-1, 1)})
        np.testing.assert_allclose(shown, [(-np.pi, 0), (np.pi, 0)])


def test_a_point_and_its_shift_are_counted_once():
    assert len(places(found((0.0, 0.0), (1.0, 0.0), x=sp.Integer(1)), {"x": (-0.5, 1.5), "y": (0, 1)})) == 2


def test_close_points_stay_two():
    close = np.nextafter(1.0, 2.0)
    assert len(places(found((1.0, 0.0), (close, 0.0)), {"x": (0, 2), "y": (0, 1)})) == 2
