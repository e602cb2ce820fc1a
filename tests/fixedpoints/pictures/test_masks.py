"""What pictures leave blank: poles by their equations, undefined regions by the inequality that fails there."""

import numpy as np
import pytest
import sympy as sp

from fixedpoints.pictures.masks import masks
from fixedpoints.pictures.window import window

x, y = sp.symbols("x y")


def found(*rhs, xs=(-2, 2), ys=(-2, 2)):
    return masks(rhs, window((x, y), {"x": xs, "y": ys}))


def test_poles_by_factor():
    poles = found(y / (x * (x + y - 1)), 1 / (x - y**2))
    assert sorted(str(p.condition) for p in poles) == ["Eq(x + y - 1, 0)", "Eq(x - y**2, 0)", "Eq(x, 0)"]
    assert all(p.region is None and p.name.startswith("pole: ") for p in poles)
    (line,) = next(p for p in poles if p.condition == sp.Eq(x, 0)).pieces
    np.testing.assert_array_equal(line, [[0, 0], [-2, 2]])


def test_poles_outside_the_window_and_removable_ones_are_none():
    assert found(1 / (x - 5), y) == ()
    assert found(x * (x - 1) / x, y) == ()
    assert found(1 / (1 + x**2), y) == ()


def test_a_pole_at_a_single_point():
    (pole,) = found(x / (x**2 + y**2), y / (x**2 + y**2))
    assert pole.name == "pole: x**2 + y**2 = 0"
    assert [piece.tolist() for piece in pole.pieces] == [[[0.0], [0.0]]]


def test_a_logarithm_that_is_undefined_on_a_line():
    (mask,) = found(y, -x - sp.log(abs(y)))
    assert (mask.name, mask.region) == ("undefined: Abs(y) <= 0", None)
    np.testing.assert_array_equal(mask.pieces[0], [[-2, 2], [0, 0]])


def test_poles_of_the_tangent():
    assert [p.name for p in found(sp.tan(x), y)] == ["pole: x = -1.5708", "pole: x = 1.5708"]


def test_a_fractional_power_is_undefined_left_of_zero():
    # Case portrait-fractional-power-domain, in the plane: no error, the half plane x < 0 is masked.
    power = x ** sp.Rational(3, 2)
    (mask,) = found(power / (1 + power) - x / 2, -y)
    assert mask.condition == (x < 0)
    assert mask.name == "undefined: x < 0"
    np.testing.assert_array_equal(mask.region, np.repeat([np.linspace(-2, 2, 300) < 0], 300, axis=0))
    np.testing.assert_array_equal(mask.pieces[0], [[0, 0], [-2, 2]])


def test_a_logarithm_is_undefined_up_to_its_edge():
    (mask,) = found(sp.log(x + y), x)
    assert mask.condition == (x + y <= 0)
    # All nodes below the diagonal, and those on it up to rounding.
    assert mask.region.sum() == pytest.approx(300 * 300 / 2, abs=300 / 2 + 1)


def test_assumptions_about_signs_hide_nothing():
    u = sp.Symbol("u", positive=True)
    (mask,) = masks((sp.log(u), y), window((u, y), {"u": (-1, 1), "y": (-1, 1)}))
    # By itself SymPy takes u <= 0 for False.
    assert (mask.name, str(mask.condition)) == ("undefined: u <= 0", "u <= 0")
    assert mask.region.mean() == 0.5


def test_overflow_is_masked_without_a_name():
    (mask,) = found(sp.exp(sp.exp(10 * x)), y)
    assert (mask.name, mask.condition) == ("not a finite number", None)
    # exp(e^(10 x)) exceeds 1.8e308 where 10 x > log 709.78 = 6.565.
    assert mask.region.mean() == pytest.approx((2 - 0.6565) / 4, abs=1 / 300)


def test_defined_nowhere():
    with pytest.raises(ValueError, match=r"not a finite number anywhere in the box .*log\(-x\*\*2 - 1\)"):
        found(sp.log(-(x**2) - 1), y)
