"""The real part of a plane curve: what is a curve, what is a lonely point."""

import pytest
import sympy as sp
from polynomial_systems import system

from symbolic.varieties.curves import plane_curve
from symbolic.varieties.deadline import Deadline
from symbolic.varieties.polynomials import ring

x, y = sp.symbols("x y")


@pytest.mark.parametrize(
    ("expression", "is_curve", "isolated"),
    [
        (x**2 + y**2 - 1, True, []),
        (x**2 + y**2, False, [(0, 0)]),
        (x**2 + y**2 + 1, False, []),
        # A cubic with an isolated point at the origin (acnode), one with a loop (crunode), one with a cusp.
        (y**2 - x**2 * (x - 1), True, [(0, 0)]),
        (y**2 - x**2 * (x + 1), True, []),
        (y**2 - x**3, True, []),
        # Two lonely points, at (1, 0) and (-1, 0), and nothing else: a sum of squares.
        ((x**2 - 1) ** 2 + y**2, False, [(-1, 0), (1, 0)]),
        (x * y - 1, True, []),
        # An oval around a lonely point: r^2 (r^2 - 1) + x^4 y^4 = 0 holds the origin alone near it.
        ((x**2 + y**2) * (x**2 + y**2 - 1) + x**4 * y**4, True, [(0, 0)]),
        # y appears linearly: a graph.
        (y - x**3, True, []),
    ],
)
def test_real_part(expression, is_curve, isolated):
    polynomial = ring(["x0", "x1"]).from_dict(system([expression], (x, y)).equations[0])
    curve = plane_curve(polynomial, 0, 1, (False, False), Deadline(10))
    assert curve.is_curve is is_curve
    assert sorted(tuple(float(v) for v in place) for place, _ in curve.isolated) == isolated


@pytest.mark.parametrize(
    ("expression", "signed", "is_curve"),
    [
        (x + y + 1, (True, True), False),
        (x - y - 1, (True, True), True),
        ((x + 2) ** 2 + y**2 - 1, (True, False), False),
        ((x + 2) ** 2 + y**2 - 1, (False, True), True),
    ],
)
def test_signs_are_respected(expression, signed, is_curve):
    polynomial = ring(["x0", "x1"]).from_dict(system([expression], (x, y)).equations[0])
    assert plane_curve(polynomial, 0, 1, signed, Deadline(10)).is_curve is is_curve
