"""Separatrices: manifolds of saddles through known points."""

import numpy as np
import pytest
import sympy as sp
from scipy.interpolate import CubicSpline

from fixedpoints.pictures.direction_field import DirectionField
from fixedpoints.pictures.separatrices import separatrices
from fixedpoints.pictures.window import window
from fixedpoints.points import FixedPoint
from odesys.system import ODESystem
from symbolic.field import VectorField

x, y = sp.symbols("x y")


def branches(rhs, box, *saddles):
    field = DirectionField(ODESystem(VectorField((x, y), rhs)), window((x, y), box))
    points = [FixedPoint({"x": a, "y": b}, (), "saddle", dims=(1, 0, 1)) for a, b in saddles]
    return separatrices(field, points)


def height(branch, at):
    """y on a branch, as a smooth function of x."""
    xs, ys = branch.points[:, np.argsort(branch.points[0])]
    return CubicSpline(xs, ys)(at)


def test_competition():
    # Case portrait-separatrix (scipy-dev thread 3D7RHEBV2CPGLCR4UPN4CYQPRAC5KZ3J).
    found = branches((x * (3 - x - 2 * y), y * (2 - y - x)), {"x": (0, 4), "y": (0, 4)}, (1.0, 1.0))
    assert sorted(b.kind for b in found) == ["stable", "stable", "unstable", "unstable"]
    lower, upper = sorted((b for b in found if b.kind == "stable"), key=lambda b: b.points[0, 0])
    # Cubics through points 0.02 apart are good to 1e-6.
    assert height(lower, 0.5) == pytest.approx(0.6148141888, abs=1e-6)
    assert height(upper, 2.0) == pytest.approx(1.6393310872, abs=1e-6)
    ends = sorted(b.points[:, -1].tolist() for b in found if b.kind == "unstable")
    np.testing.assert_allclose(ends, [[0, 2], [3, 0]], atol=0.02)


def test_time_runs_towards_the_saddle_on_stable_branches_and_away_on_unstable_ones():
    found = branches((x, -y), {"x": (-1, 1), "y": (-1, 1)}, (0.0, 0.0))
    assert len(found) == 4
    for branch in found:
        at_saddle = branch.points[:, -1 if branch.kind == "stable" else 0]
        np.testing.assert_array_equal(at_saddle, [0, 0])
        # Half a window beyond the window.
        assert np.max(np.abs(branch.points)) == pytest.approx(2.0, abs=0.1)


def test_pendulum():
    # Heteroclinic orbits y = +-2 cos(x/2) join the saddles at +-pi.
    box = {"x": (-4, 4), "y": (-3, 3)}
    found = branches((y, -sp.sin(x)), box, (np.pi, 0.0), (-np.pi, 0.0))
    inner = [b for b in found if np.all(np.abs(b.points[0]) <= np.pi + 1e-9)]
    assert len(inner) == 4
    for branch in inner:
        np.testing.assert_allclose(np.abs(branch.points[1]), 2 * np.cos(branch.points[0] / 2), atol=1e-4)


def test_a_homoclinic_loop_comes_back():
    # Duffing: y^2 = x^2 - x^4/2 is the loop through 0, as wide as sqrt 2.
    found = branches((y, x - x**3), {"x": (-2, 2), "y": (-1.5, 1.5)}, (0.0, 0.0))
    assert len(found) == 4
    for branch in found:
        assert np.max(np.abs(branch.points[0])) == pytest.approx(np.sqrt(2), abs=1e-4)
        a, b = branch.points
        np.testing.assert_allclose(b**2, a**2 - a**4 / 2, atol=1e-5)
        assert np.hypot(*(branch.points[:, -1] - branch.points[:, 0])) < 0.02


def test_no_saddle_no_separatrix():
    field = DirectionField(
        ODESystem(VectorField((x, y), (-x, -y))), window((x, y), {"x": (-1, 1), "y": (-1, 1)})
    )
    assert separatrices(field, [FixedPoint({"x": 0.0, "y": 0.0}, (), "stable node", dims=(0, 0, 2))]) == ()


def kinds(rhs, dims):
    field = DirectionField(ODESystem(VectorField((x, y), rhs)), window((x, y), {"x": (-1, 1), "y": (-1, 1)}))
    found = separatrices(field, [FixedPoint({"x": 0.0, "y": 0.0}, (), "", dims=dims)])
    ends = [b.points[:, 0 if b.kind == "stable" else -1] for b in found]
    # Which edge of the window each branch comes from or goes to, half a window beyond it.
    assert all(np.max(np.abs(end)) > 1.5 for end in ends)
    return sorted(
        f"{b.kind} {'+-'[int(e[np.argmax(abs(e))] < 0)]}{'xy'[np.argmax(abs(e))]}"
        for b, e in zip(found, ends, strict=True)
    )


def test_a_saddle_node_has_three():
    # x' = x^2 is left to the right; the strong manifold is the y axis. A sheared coordinate changes nothing.
    assert kinds((x**2, -y), (0, 1, 1)) == ["stable +y", "stable -y", "unstable +x"]
    assert kinds((x**2, y), (1, 1, 0)) == ["stable -x", "unstable +y", "unstable -y"]


def test_a_topological_saddle_has_four_and_a_topological_node_none():
    # On the centre manifold y = x^2 + ..., the first field has x' = x y = x^3, the second x' = -x^3; the
    # drift along the eigenvector itself, where y = 0, would be zero.
    assert kinds((x * y, x**2 - y), (0, 1, 1)) == ["stable +y", "stable -y", "unstable +x", "unstable -x"]
    assert kinds((-x * y, x**2 - y), (0, 1, 1)) == []


def test_the_centre_manifold_is_followed():
    # x' = x y, y' = x^2 - y: y = x^2 - 2 x^4 + 12 x^6 - 112 x^8 + ... by invariance, order by order.
    field = DirectionField(
        ODESystem(VectorField((x, y), (x * y, x**2 - y))), window((x, y), {"x": (-1, 1), "y": (-1, 1)})
    )
    found = separatrices(field, [FixedPoint({"x": 0.0, "y": 0.0}, (), "unstable", dims=(0, 1, 1))])
    right = next(b for b in found if b.kind == "unstable" and b.points[0, -1] > 0)
    # The next term is 4e-9 here, and the fourth derivative of x^4 lets cubics through points 0.01 apart err as much.
    assert height(right, 0.05) == pytest.approx(0.05**2 - 2 * 0.05**4 + 12 * 0.05**6, abs=3e-8)


def test_a_line_of_fixed_points_has_none():
    assert kinds((0 * x, -y), (0, 1, 1)) == []
