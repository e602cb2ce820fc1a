"""Ranges hold every value, are sharp where that can be said by hand, and know what they do not know."""

import math

import mpmath
import pytest
import sympy as sp
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from fixedpoints.boxes.ranges import NoRangeError, Program
from fixedpoints.boxes.singular import conditions, plain, prepared, without_poles
from symbolic.zero import exact

x, y = sp.symbols("x y", real=True)

#: Defined on all of [-3, 3]^2, with everything that can stand in a field.
EXPRESSIONS = [
    x * y - x**2 + 3 * y**3 / 7,
    sp.exp(x) - sp.cos(y) * x,
    sp.tanh(x * y) / (2 + sp.sin(x)),
    sp.sqrt(x + 4) * sp.log(y + 4),
    sp.Abs(x - y) - x**3,
    sp.Max(x, y, 0) * sp.Min(x, y),
    sp.erf(x) + sp.atan(y) + sp.cosh(x) - sp.sinh(y),
    sp.LambertW(sp.exp(x) + y**2),
    sp.LambertW(-sp.exp(-2) / (1 + x**2), -1),
    sp.Piecewise((x**2, x > 0), (-y, True)),
    (x + 4) ** sp.Rational(3, 2) - (y + 5) ** sp.Rational(-1, 3),
    (x + 4) ** 0.3 + (x + 4) ** y,
    sp.asin(x / 4) + sp.acos(y / 4) + sp.acosh(x + 5) + sp.asinh(y) + sp.atanh(x / 7),
    sp.pi * x + sp.sqrt(2) * y + sp.E,
    sp.sign(x) * y + sp.Heaviside(y),
    sp.tan(x / 4) + sp.sec(y / 4) + 1 / (x**2 + y**2 + 1),
    sp.erfc(y) + sp.sech(x) + sp.tanh(40 * x),
]


def bounds(expression, *sides):
    """Lower and upper end of the range on a box, as floats."""
    program = Program([prepared(exact(sp.sympify(expression)))], (x, y)[: len(sides)])
    ((low, high),) = program([(arb(a), arb(b)) for a, b in sides])
    return float(low.lower()), float(high.upper())


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_range_holds_every_value(expression, data):
    side = st.tuples(st.floats(-3, 3), st.sampled_from([0.0, 1e-9, 0.1, 2.0]))
    sides = [(c, min(3.0, c + w)) for c, w in (data.draw(side), data.draw(side))]
    low, high = bounds(expression, *sides)
    with mpmath.workdps(30):
        parts = [data.draw(st.floats(0, 1)) for _ in sides]
        at = [min(max(a + t * (b - a), a), b) for (a, b), t in zip(sides, parts, strict=True)]
        value = mpmath.mpmathify(sp.lambdify((x, y), exact(expression), "mpmath")(*at)).real
        # The ends are floats, correct to half a unit in the last place.
        slack = 1e-15 * (1 + abs(value))
        assert low - slack <= value <= high + slack


@pytest.mark.parametrize(
    ("expression", "side", "expected"),
    [
        (x**2, (-1, 2), (0, 4)),
        (x**3, (-1, 2), (-1, 8)),
        (1 / x, (0, 2), (0.5, math.inf)),
        (1 / x, (-1, 2), (-math.inf, math.inf)),
        (sp.log(x), (0, 1), (-math.inf, 0)),
        (sp.sqrt(x), (-1, 4), (0, 2)),
        (sp.sin(x), (0, 3), (0, 1)),
        (sp.cosh(x), (-1, 0), (1, math.cosh(1))),
        (sp.tanh(x), (-50, 50), (-1, 1)),
        (sp.Abs(x), (-3, 1), (0, 3)),
        (sp.LambertW(x), (0, math.e), (0, 1)),
        (sp.Piecewise((x, x > 5), (-x, True)), (0, 1), (-1, 0)),
        (sp.exp(-1 / x), (0, 1), (0, math.exp(-1))),
        (sp.atan(1 / x), (-1, 1), (-math.pi / 2, math.pi / 2)),
    ],
    ids=str,
)
def test_a_range_is_sharp(expression, side, expected):
    # Arb keeps the radius of wide balls, such as those of sin, to 30 bits.
    assert bounds(expression, side) == pytest.approx(expected, abs=1e-8)


def test_a_range_closes_in_linearly():
    # Natural extensions have first order: half the box, half the excess. x (1 - x) is 1/4 wide at most near 1/2.
    widths = [b - a for a, b in (bounds(x * (1 - x), (0.5 - w, 0.5 + w)) for w in (1e-3, 5e-4))]
    assert widths[0] / widths[1] == pytest.approx(2, rel=1e-3)


def test_precision_follows_the_context():
    program = Program([sp.Rational(1, 3) + x], (x,))
    radii = []
    for bits in (53, 200, 53):
        with ctx.workprec(bits):
            low, _ = program([(arb(0), arb(0))])[0]
            radii.append(float(low.rad()))
    assert radii[0] == radii[2] > 1e-18
    assert radii[1] < 1e-60


def test_slopes_across_a_jump_are_unknown():
    step = sp.Piecewise((x, x > 0), (-y, True))
    ranges = [(arb(-1), arb(1)), (arb(0), arb(1))]
    (values,), (slopes,) = (Program([step], (x, y), across=across)(ranges) for across in (True, False))
    assert (float(values[0]), float(values[1])) == (-1, 1)
    assert not slopes[0].is_finite()


@pytest.mark.parametrize("expression", [sp.gamma(x), sp.floor(x), sp.Function("f")(x)], ids=str)
def test_refuses_what_it_cannot_bound(expression):
    with pytest.raises(NoRangeError, match=f"No proven range is known for {expression.func.__name__}"):
        Program([expression], (x,))


def test_conditions_name_where_a_field_is_undefined():
    field = sp.sqrt(x) + sp.log(y) + 1 / (x - 1) + sp.exp(x)
    assert {str(c.failure) for c in conditions([field])} == {"x < 0", "y <= 0", "x - 1"}


def test_poles_are_multiplied_out_without_expanding():
    field = x / (1 + 1 / y) + (x - 1) ** 9 / (x * y**2) - 1 / (x**2 + 1)
    top, below = without_poles(field, lambda base: base in (x, y, y + 1))
    assert below == {y: 2, x: 1, y + 1: 1}
    assert sp.simplify(top / (y**2 * x * (y + 1)) - field) == 0
    assert top.has((x - 1) ** 9)


def test_prepared_and_plain_are_inverse():
    field = sp.Abs(x) * sp.sign(y) + sp.LambertW(x)
    assert plain(prepared(field)) == field
