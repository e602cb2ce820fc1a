"""Linear equations: a point, a flat set, or nothing."""

from fractions import Fraction

import pytest
import sympy as sp
from polynomial_systems import system

from symbolic.varieties.linear import solve_linear
from symbolic.varieties.polynomials import ring

x, y, z = sp.symbols("x y z")


@pytest.mark.parametrize(
    ("equations", "point", "count"),
    [
        # By hand: x + 2 y = 1, 3 x - y = 2 at (5/7, 1/7).
        ((x + 2 * y - 1, 3 * x - y - 2, z + 4), {0: Fraction(5, 7), 1: Fraction(1, 7), 2: Fraction(-4)}, 3),
        ((x + y, x + y + z, 2 * z), None, 2),
        ((x + y - z - 1, 2 * x + 2 * y - 2 * z - 2), None, 1),
    ],
)
def test_solutions(equations, point, count):
    members = [ring(["x0", "x1", "x2"]).from_dict(p) for p in system(equations, (x, y, z)).equations]
    found = solve_linear(members, (0, 1, 2))
    assert found.point == point
    assert len(found.equations) == count


def test_parallel_planes_do_not_meet():
    members = [ring(["x0", "x1", "x2"]).from_dict(p) for p in system((x + y, x + y - 1), (x, y, z)).equations]
    assert solve_linear(members, (0, 1, 2)) is None
