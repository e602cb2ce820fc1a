"""Windows: boxes by name, and their unit coordinates."""

import math

import numpy as np
import pytest
import sympy as sp

from fixedpoints.pictures.window import window

x, y = sp.symbols("x y")


def test_unit_coordinates_go_there_and_back():
    frame = window((x, y), {"y": (0, 10), x: (-1, 1)})
    assert (frame.low, frame.high) == ((-1.0, 0.0), (1.0, 10.0))
    states = np.array([[0.0, 1.0], [5.0, 0.0]])
    np.testing.assert_array_equal(frame.to_unit(states), [[0.5, 1.0], [0.5, 0.0]])
    np.testing.assert_array_equal(frame.to_state(frame.to_unit(states)), states)


@pytest.mark.parametrize(
    ("box", "error", "message"),
    [
        ({"x": (0, 1)}, ValueError, r"`box` lacks the states \['y'\]"),
        ({"x": (0, 1), "y": (1, 1)}, ValueError, "side of y in `box` must be finite and increasing"),
        ({"x": (0, 1), "y": (2, 1)}, ValueError, "side of y in `box` must be finite and increasing"),
        ({"x": (0, math.inf), "y": (0, 1)}, ValueError, "side of x in `box` must be finite"),
        ({"x": (0, math.nan), "y": (0, 1)}, ValueError, "side of x in `box` must be finite"),
        ({"x": (0, 1), "z": (0, 1)}, ValueError, "No state is called 'z'"),
        ({"x": (0, 1), "y": 3}, TypeError, "side of y in `box` must be two numbers"),
        ({"x": (0, 1), "y": (1, 2, 3)}, TypeError, "side of y in `box` must be two numbers"),
        ([(0, 1), (0, 1)], TypeError, "`box` must map each state to"),
    ],
)
def test_refuses(box, error, message):
    with pytest.raises(error, match=message):
        window((x, y), box)
