"""Streamlines: closed orbits close and are drawn once, spirals do not, lines keep their distance."""

import numpy as np
import pytest
import sympy as sp

from fixedpoints.pictures.direction_field import DirectionField
from fixedpoints.pictures.streamlines import streamlines
from fixedpoints.pictures.window import window
from odesys.system import ODESystem
from symbolic.field import VectorField

x, y = sp.symbols("x y")
SQUARE = {"x": (-2, 2), "y": (-2, 2)}


def field(rhs, box=SQUARE):
    return DirectionField(ODESystem(VectorField((x, y), rhs)), window((x, y), box))


@pytest.fixture(scope="module")
def centre():
    return streamlines(field((y, -x)))


def test_closed_orbits_close(centre):
    # Case portrait-closed-orbits (matplotlib 27261): 1e-3; lines are called closed at 1e-6 of the box.
    closed = [line for line in centre if line.closed]
    assert len(closed) >= 5
    for line in closed:
        assert np.hypot(*(line.points[:, -1] - line.points[:, 0])) < 4e-6
        radii = np.hypot(*line.points)
        # Steps are about 0.3 rad long, and the cubics between them wrong by angle^4 / 384.
        np.testing.assert_allclose(radii, radii[0], rtol=4e-5)


def test_each_closed_orbit_is_drawn_once(centre):
    # The length tells that it goes around once; radii differ by the spacing, 0.05 of the window's 4.
    closed = [line for line in centre if line.closed]
    radii = sorted(np.hypot(*line.points[:, 0]) for line in closed)
    for line in closed:
        length = np.sum(np.hypot(*np.diff(line.points)))
        assert length == pytest.approx(2 * np.pi * np.hypot(*line.points[:, 0]), rel=1e-3)
    assert np.min(np.diff(radii)) > 0.9 * 0.05 * 4


def test_orbits_that_leave_the_window_are_open(centre):
    for line in centre:
        if not line.closed:
            assert np.hypot(*line.points[:, 0]) > 1.9


def test_lines_run_forward_in_time(centre):
    for line in centre:
        # y dx - x dy > 0: clockwise, as x' = y, y' = -x says.
        (a, b), (da, db) = line.points[:, :-1], np.diff(line.points)
        assert np.all(b * da - a * db > 0)


def test_orbits_that_are_no_circles():
    # Lotka-Volterra: x - log x + y - log y is constant on orbits, and all of them are closed.
    lines = streamlines(field((x * (1 - y), y * (x - 1)), {"x": (0.01, 4), "y": (0.01, 4)}))
    closed = [line for line in lines if line.closed]
    assert len(closed) >= 8
    for line in closed:
        a, b = line.points
        height = a - np.log(a) + b - np.log(b)
        np.testing.assert_allclose(height, height[0], rtol=1e-4)
        assert np.hypot(*(line.points[:, -1] - line.points[:, 0])) < 4e-6


def test_a_weak_focus_is_no_centre():
    # r' = -r^3: one turn at radius r shrinks it by 2 pi r^3, slowly, but no orbit is closed.
    r2 = x**2 + y**2
    lines = streamlines(field((-y - x * r2, x - y * r2)))
    assert not any(line.closed for line in lines)


def test_the_limit_cycle_of_van_der_pol_is_found():
    lines = streamlines(field((y, (1 - x**2) * y - x), {"x": (-3, 3), "y": (-3, 3)}))
    (cycle,) = (line for line in lines if line.closed)
    assert cycle.limit
    # Amplitude 2.00862 at mu = 1: Andersen and Geer, SIAM J. Appl. Math. 42 (1982) 678, by power series.
    assert np.max(cycle.points[0]) == pytest.approx(2.00862, abs=2e-4)


def test_a_repelling_cycle_is_found_backward_and_runs_forward():
    # r' = r (r^2 - 1), angle' = 1: the unit circle repels, counterclockwise.
    r2 = x**2 + y**2
    (cycle,) = (line for line in streamlines(field((x * (r2 - 1) - y, y * (r2 - 1) + x))) if line.closed)
    np.testing.assert_allclose(np.hypot(*cycle.points), 1.0, atol=1e-4)
    a, b = cycle.points[:, :-1]
    da, db = np.diff(cycle.points)
    assert np.all(a * db - b * da > 0)


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1e6, 1e300])
def test_lines_do_not_depend_on_the_unit_of_time(scale):
    # A power of two changes no rounding; other factors change some, so lines agree to their own error.
    base, other = (streamlines(field((c * y, -c * sp.sin(2 * x)))) for c in (1, sp.Rational(scale)))
    assert len(base) == len(other)
    for one, two in zip(base, other, strict=True):
        np.testing.assert_allclose(one.points[:, 0], two.points[:, 0], atol=1e-6)


def test_lines_stay_apart():
    lines = streamlines(field((1 + 0 * x, sp.sin(x))), spacing=0.1)
    # Nearest distance between points of two lines, against 0.4 of the spacing less one cell of the raster.
    for k, one in enumerate(lines):
        for two in lines[:k]:
            gaps = np.hypot(*(one.points[:, :, None] - two.points[:, None, :]))
            assert gaps.min() > (0.4 * 0.1 - 0.006) * 4


def test_the_window_is_covered():
    lines = streamlines(field((x, -y)), spacing=0.05)
    everything = np.concatenate([line.points for line in lines], axis=1)
    probe = np.stack(np.meshgrid(np.linspace(-1.8, 1.8, 13), np.linspace(-1.8, 1.8, 13))).reshape(2, -1)
    nearest = np.min(np.hypot(*(probe[:, :, None] - everything[:, None, :])), axis=1)
    # No hole wider than twice the spacing on either side.
    assert nearest.max() < 2 * 0.05 * 4


def test_lines_end_at_poles_and_edges():
    lines = streamlines(field((1 + 0 * x, 1 / sp.sqrt(x))))
    assert lines
    assert min(line.points[0].min() for line in lines) >= 0
    # x' = 1/x points to both sides away from x = 0, y' = 0: no line crosses the pole.
    sides = [set(np.sign(line.points[0])) for line in streamlines(field((1 / x, 0 * x)))]
    assert all(len(signs) == 1 for signs in sides)
    assert set.union(*sides) == {-1, 1}


def test_a_fast_and_a_slow_time():
    # Relaxation with 1 : 1000; without arc length, lines would need a million steps.
    lines = streamlines(field((1000 * (y - x**3 / 3 + x), -x), {"x": (-3, 3), "y": (-2, 2)}))
    assert len(lines) > 15
