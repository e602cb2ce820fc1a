"""Unstable manifolds: exponential escape along eigenvectors, algebraic escape where there is none."""

import numpy as np
import pytest
import sympy as sp

from fixedpoints.connections import unstable_manifold
from fixedpoints.points import FixedPoint, NotAFixedPointError
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

x, y, z = sp.symbols("x y z")


def system(*rhs):
    return ODESystem(VectorField((x, y, z)[: len(rhs)], rhs))


def escapes(rhs, times, at=None, **options):
    at = at or dict.fromkeys("xyz"[: len(rhs)], 0)
    return unstable_manifold(system(*rhs), at, times, **options)


def vector(escape):
    return np.array(list(escape.direction.values()))


def test_both_branches_of_a_strict_saddle():
    # x' = x, y' = -y + x^2: the unstable manifold is y = x^2 / 3.
    right, left = escapes((x, -y + x**2), np.linspace(0, 14, 29))
    for escape, side in ((right, 1), (left, -1)):
        assert (escape.kind, escape.order, escape.rate) == ("exponential", 1, pytest.approx(1.0))
        np.testing.assert_allclose(vector(escape), [side, 0], atol=1e-15)
        # The start is off the manifold by offset^2 / 3, which decays.
        np.testing.assert_allclose(escape.run["y"], escape.run["x"] ** 2 / 3, atol=1e-12)
        np.testing.assert_allclose(escape.run["x"], side * 1e-6 * np.exp(escape.run["time"]), rtol=1e-6)


def test_connections_to_other_points_and_to_infinity():
    # x' = x (1 - x), y' = y (1 - y): from (0, 0) along the axes to (1, 0), (0, 1) and to -infinity.
    ends, stopped = [], []
    for escape in escapes((x * (1 - x), y * (1 - y)), [0.0, 13.0, 18.0]):
        if max(escape.direction.values()) > 0:
            assert escape.stopped is None
            ends.append([round(float(escape.run[name][-1]), 1) for name in "xy"])
        else:
            # From -s the mode reaches -infinity when e^t = (1 + s) / s.
            assert "blow-up" in escape.stopped
            stopped.append(float(escape.run["time"][-1]))
    assert sorted(ends) == [[0.0, 1.0], [1.0, 0.0]]
    assert stopped == pytest.approx([np.log(1e6 + 1)] * 2, rel=1e-6)


def test_an_unstable_focus_has_one_spiral():
    (escape,) = escapes((x - 2 * y, 2 * x + y), np.linspace(0, 3, 7))
    assert escape.rate == pytest.approx(1.0)
    assert np.linalg.norm(vector(escape)) == pytest.approx(1, rel=1e-15)
    radius = np.hypot(escape.run["x"], escape.run["y"])
    assert float(radius[0]) == pytest.approx(1e-6, rel=1e-12)
    np.testing.assert_allclose(radius, radius[0] * np.exp(escape.run["time"]), rtol=1e-6)


def test_three_layers_leave_the_origin_algebraically():
    # A scalar deep linear net w1' = w2 w3 (1 - w1 w2 w3), ...: its Hessian at 0 vanishes, a non-strict saddle.
    # Rays of the quadratic term: signs with a positive product, over sqrt 3, and rate 1 / sqrt 3.
    product = x * y * z
    found = escapes(
        (y * z * (1 - product), x * z * (1 - product), x * y * (1 - product)), [0.0, 0.5e4], offset=1e-4
    )
    assert len(found) == 4
    signs = {tuple(np.sign(vector(escape)).astype(int).tolist()) for escape in found}
    assert signs == {(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)}
    for escape in found:
        assert (escape.kind, escape.order) == ("algebraic", 2)
        assert escape.rate == pytest.approx(1 / np.sqrt(3), rel=1e-12)
        np.testing.assert_allclose(np.abs(vector(escape)), 1 / np.sqrt(3), rtol=1e-8)
        # s' = s^2 / sqrt 3 while s^3 << 1: 1/s falls by t / sqrt 3.
        size = np.sqrt(sum(escape.run[name] ** 2 for name in "xyz"))
        expected = 1 / (1e4 - 0.5e4 / np.sqrt(3))
        assert float(size[-1]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("pace", [1e-6, 1e6])
def test_the_unit_of_time_scales_the_rates_of_rays_and_nothing_else(pace):
    # Three layers to second order, in another unit of time.
    rhs = [sp.Rational(pace) * f for f in (y * z, x * z, x * y)]
    found = escapes(rhs, [0.0, 1.0 / pace], offset=1e-4)
    assert [escape.rate for escape in found] == pytest.approx([pace / np.sqrt(3)] * 4, rel=1e-12)
    np.testing.assert_allclose(np.abs([vector(escape) for escape in found]), 1 / np.sqrt(3), rtol=1e-8)


def test_a_saddle_node_is_left_on_one_side():
    (escape,) = escapes((x**2, -y), [0.0, 10.0], offset=1e-3)
    assert (escape.kind, escape.order, escape.rate) == ("algebraic", 2, pytest.approx(1.0))
    np.testing.assert_allclose(vector(escape), [1, 0], atol=1e-12)


def test_the_centre_manifold_decides_not_the_eigenvector():
    # y = x^2 + ... on the centre manifold, so x' = x y = x^3, although x' = 0 on the eigenvector.
    both = escapes((x * y, x**2 - y), [0.0, 1.0], offset=1e-2)
    assert [(e.kind, e.order) for e in both] == [("algebraic", 3)] * 2
    assert [e.rate for e in both] == pytest.approx([1.0, 1.0])
    assert escapes((-x * y, x**2 - y), [0.0, 1.0]) == ()


def test_nothing_leaves_a_stable_node():
    assert escapes((-x, -y), [0.0, 1.0]) == ()


def test_the_default_offset_follows_the_size_of_the_point():
    right, _ = escapes((x - 1000, -y), [0.0, 1.0], at={"x": 1000.0, "y": 0.0})
    assert float(right.run["x"][0]) - 1000 == pytest.approx(1e-3, rel=1e-6)


def test_takes_points_as_found():
    point = FixedPoint({"x": 0.0, "y": 0.0}, (1.0, -1.0), "saddle", dims=(1, 0, 1))
    assert len(unstable_manifold(system(x, -y), point, [0.0, 1.0])) == 2


def test_refuses():
    with pytest.raises(TypeError, match="are those of an ODESystem; got MapSystem"):
        unstable_manifold(MapSystem(IteratedMap((x,), (x,))), {"x": 0}, [0, 1])
    with pytest.raises(NotAFixedPointError, match="not a fixed point"):
        escapes((x - 1, -y), [0.0, 1.0])
    with pytest.raises(ValueError, match="`offset` must be a positive distance; got -1"):
        escapes((x, -y), [0.0, 1.0], offset=-1)
    with pytest.raises(ValueError, match="leave open whether anything leads away"):
        escapes((y, -x), [0.0, 1.0])
    with pytest.raises(ValueError, match="not differentiable"):
        escapes((sp.sqrt(x), -y), [0.0, 1.0])
