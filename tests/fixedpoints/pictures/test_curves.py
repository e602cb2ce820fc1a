"""Zero sets in a window: one curve for each factor, exact where it is a line, on the curve elsewhere."""

import numpy as np
import pytest
import sympy as sp

from fixedpoints.pictures.curves import readable, zero_curves
from fixedpoints.pictures.factoring import factors, quotient
from fixedpoints.pictures.window import window

x, y = sp.symbols("x y")
FRAME = window((x, y), {"x": (-2, 2), "y": (-1, 3)})


def names(expression):
    return [curve.name for curve in zero_curves(expression, FRAME)]


def worst(curve):
    """The largest value that the equation has on the curve."""
    f = sp.lambdify((x, y), curve.equation)
    return max(np.max(np.abs(f(*piece))) for piece in curve.pieces)


def test_every_factor_is_a_curve():
    # Case portrait-multi-branch-nullcline (robclewley/pydstool 97): x = 1, x = -1 and y = 0.
    assert sorted(names((x**2 - 1) * y)) == ["x = -1", "x = 1", "y = 0"]


def test_factors_need_not_be_rational():
    assert names(x**2 - 2) == ["x = -1.41421", "x = 1.41421"]
    _, right = zero_curves(x**2 - 2, FRAME)
    np.testing.assert_array_equal(right.pieces[0], [[np.sqrt(2), np.sqrt(2)], [-1, 3]])
    assert names(sp.sqrt(2) * x * sp.exp(y)) == ["x = 0"]


def test_floats_in_coefficients_do_not_spoil_factors():
    assert names(sp.expand((x - sp.Rational(0.1)) * (y - sp.Rational(0.3)))) == ["x = 0.1", "y = 0.3"]


def test_lines_end_at_the_edges():
    (curve,) = zero_curves(x - y, FRAME)
    np.testing.assert_allclose(sorted(curve.pieces[0].T.tolist()), [[-1, -1], [2, 2]], atol=1e-15)
    assert zero_curves(x + y - 10, FRAME) == ()


def test_bent_curves_are_met_to_rounding():
    (curve,) = zero_curves(x - y**3, FRAME)
    assert len(curve.pieces) == 1
    # The slope of the equation is at most 13 in the window, so that 1e-13 is rounding of the points.
    assert worst(curve) < 1e-13
    y_values = curve.pieces[0][1]
    assert (y_values.min(), y_values.max()) == pytest.approx((-1.0, 2 ** (1 / 3)), abs=1e-9)


def test_closed_curves_close():
    (curve,) = zero_curves((x / 1.5) ** 2 + (y - 1) ** 2 - 1, FRAME)
    (piece,) = curve.pieces
    np.testing.assert_array_equal(piece[:, 0], piece[:, -1])
    length = np.sum(np.hypot(*np.diff(piece)))
    # An ellipse with axes 3/2 and 1 is 4 a E(e^2) long; chords of a hundredth are short of that by 1e-5.
    assert length == pytest.approx(float(6 * sp.elliptic_e(sp.Rational(5, 9))), rel=1e-4)


def test_a_curve_of_no_analytic_function_is_drawn_and_its_jumps_are_not():
    (curve,) = zero_curves(sp.floor(x) - y, FRAME)
    heights = sorted(piece[1, 0] for piece in curve.pieces)
    assert heights == pytest.approx([-1, 0, 1])
    assert worst(curve) < 1e-12
    # x / |x| changes sign at x = 0 without vanishing there.
    assert zero_curves(sp.sign(x) + sp.Rational(1, 2), FRAME) == ()


def test_a_function_of_one_state_that_touches_zero():
    # 1 - cos y has a double zero at 0 and no change of sign.
    assert names(1 - sp.cos(y)) == ["y = 0"]


def test_single_points_at_which_a_function_touches_zero():
    (curve,) = zero_curves(x**2 + y**2, FRAME)
    assert [piece.tolist() for piece in curve.pieces] == [[[0.0], [0.0]]]
    (two,) = zero_curves((x**2 - 1) ** 2 + (y - 1) ** 2, FRAME)
    places = np.concatenate(two.pieces, axis=1)
    np.testing.assert_allclose(places[:, np.argsort(places[0])], [[-1, 1], [1, 1]], atol=1e-12)
    (fourth,) = zero_curves(
        x**4 + (y - 1) ** 4, FRAME
    )  # each step of Newton's method goes a third of the way
    np.testing.assert_allclose(fourth.pieces, [[[0], [1]]], atol=1e-5)
    assert zero_curves(1 + x**2 + y**2, FRAME) == ()
    # A whole line on which a function touches zero is no single point.
    assert zero_curves(1 - sp.cos(x - sp.sqrt(2) * y), FRAME) == ()


def test_a_zero_at_the_edge_of_the_domain():
    # x^(3/2)/(1 + x^(3/2)) - x/2 of case portrait-fractional-power-domain: 0, 0.38196601125, 1.
    numerator, _ = quotient(x**1.5 / (1 + x**1.5) - x / 2, (x, y))
    values = [float(x - curve.equation) for curve in zero_curves(numerator, FRAME)]
    assert values == pytest.approx([0.0, 0.38196601125, 1.0], abs=1e-11)


def test_nothing_is_found_beyond_the_domain():
    (curve,) = zero_curves(sp.sqrt(x) - y, FRAME)
    assert min(piece[0].min() for piece in curve.pieces) > 0
    assert worst(curve) < 1e-12


def test_poles_are_denominators():
    numerator, denominator = quotient(sp.tan(x) - 1 / y, (x, y))
    assert set(factors(denominator, (x, y))) == {y, sp.cos(x)}
    assert sp.simplify(numerator - (y * sp.sin(x) - sp.cos(x))) == 0
    assert quotient(x * (x - 1) / x, (x, y))[1] == 1


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (x - sp.Rational(0.1), "x - 0.1"),
        (x**2 - sp.Rational(1, 3), "x**2 - 1/3"),
        (x - sp.Float(2**0.5, 17), "x - 1.41421"),
    ],
)
def test_readable(expression, text):
    assert readable(expression) == text
