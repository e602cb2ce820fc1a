"""Nullclines: every branch, named, on the axes on which it belongs."""

import numpy as np
import pytest
import sympy as sp

from fixedpoints.pictures.nullclines import nullclines
from fixedpoints.pictures.window import window

x, y = sp.symbols("x y")


def found(rhs, xs, ys):
    return nullclines(rhs, window((x, y), {"x": xs, "y": ys}))


def test_a_horizontal_nullcline_in_a_window_that_is_not_square():
    # Case portrait-nullcline-y-range (phaseportrait, nullclines.py @71ce247).
    first, second = found((y - 5, x), (-1, 1), (0, 10))
    assert (first.state, first.name, second.state, second.name) == ("x", "y = 5", "y", "x = 0")
    np.testing.assert_array_equal(first.pieces[0], [[-1, 1], [5, 5]])
    np.testing.assert_array_equal(second.pieces[0], [[0, 0], [0, 10]])


def test_all_branches():
    # Case portrait-multi-branch-nullcline (robclewley/pydstool 97).
    branches = found(((x**2 - 1) * y, x - y**3), (-2, 2), (-2, 2))
    assert sorted(b.name for b in branches if b.state == "x") == ["x = -1", "x = 1", "y = 0"]
    (cubic,) = (b for b in branches if b.state == "y")
    for piece in cubic.pieces:
        np.testing.assert_allclose(piece[0], piece[1] ** 3, atol=1e-12)


def test_poles_are_no_nullclines():
    assert [b.name for b in found((1 / (x + y), (x - y) / (x - 1)), (-2, 2), (-2, 2))] == ["x - y = 0"]


def test_branches_end_where_the_field_does():
    # x' = sqrt(x) y vanishes on y = 0 only where sqrt(x) is real; y = 0 crosses the pole of y' at x = 1.
    zero, edge = sorted(
        (b for b in found((sp.sqrt(x) * y, 1 / (x - 1)), (-2, 2), (-2, 2))),
        key=lambda b: b.name,
        reverse=True,
    )
    assert (zero.name, edge.name) == ("y = 0", "x = 0")
    (piece,) = zero.pieces
    assert (piece[0].min(), piece[0].max()) == pytest.approx((0.0, 2.0), abs=4 / 1000)


def test_a_state_that_never_moves_has_none():
    assert [b.state for b in found((0 * x, x - y), (-2, 2), (-2, 2))] == ["y"]
