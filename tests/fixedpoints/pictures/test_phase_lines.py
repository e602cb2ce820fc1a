"""Phase lines: every fixed point of a rational field on an interval, with the flow on either side of it."""

import math

import numpy as np
import pytest
import sympy as sp

import fixedpoints
import symbolic
from odesys.system import ODESystem

x, y, t = sp.symbols("x y t")


def line(rhs, interval, **numbers):
    field = symbolic.VectorField((x,), (rhs,), tuple(sp.Symbol(name) for name in numbers))
    return fixedpoints.phase_line(ODESystem(field, numbers), interval)


def seen(picture):
    return [(p.location["x"], p.stability) for p in picture.points]


def test_logistic():
    r = sp.Symbol("r")
    assert seen(line(r * x * (1 - x), (-1, 2), r=2.0)) == [(0.0, "unstable"), (1.0, "stable")]
    # f'(0) = r and f'(1) = -r, by hand.
    assert [p.eigenvalues for p in line(r * x * (1 - x), (-1, 2), r=2.0).points] == [(2.0,), (-2.0,)]


def test_a_double_root_is_half_stable_on_the_right_side():
    (point,) = line(x**2, (-1, 1)).points
    assert point.stability == "half-stable"
    assert point.attracts == (True, False)
    assert (point.eigenvalues, point.multiplicity) == ((0.0,), 2)


def test_a_triple_root_is_decided_where_the_linearisation_is_not():
    (point,) = line(-(x**3), (-1, 1)).points
    assert (point.stability, point.eigenvalues, point.multiplicity) == ("stable", (0.0,), 3)


def test_a_root_that_radicals_cannot_express():
    # Case fp-unsolvable-quintic-1d of the SymPy tracker (PR 23011): one real root.
    (point,) = line(x**5 - x + 1, (-2, 2)).points
    assert point.location["x"] == pytest.approx(-1.16730397826, abs=1e-11)


def test_two_roots_a_rounding_error_apart():
    # Exact arithmetic on the floats as they are: 1 and 1 + 2^-52 are two points of opposite stability.
    close = sp.Symbol("c")
    points = line((x - 1) * (x - close), (0, 2), c=np.nextafter(1.0, 2.0)).points
    assert [p.stability for p in points] == ["stable", "unstable"]


@pytest.mark.parametrize("end", [2.0, 2.3], ids=["on a node", "between nodes"])
def test_poles_are_excluded_and_nothing_is_drawn_through_them(end):
    picture = line(x * (1 - x) / (2 * x + 1), (-2, end))
    assert seen(picture) == [(0.0, "unstable"), (1.0, "stable")]
    assert picture.excluded == (-0.5,)
    # A curve joins neighbours that both have a value; none of these pairs holds the pole between them.
    joined = np.isfinite(picture.velocity[:-1]) & np.isfinite(picture.velocity[1:])
    around = (picture.x[:-1] <= -0.5) & (picture.x[1:] >= -0.5)
    assert around.any()
    assert not np.any(joined & around)


def test_a_removable_pole_is_none():
    assert line(x * (x - 1) / x, (-1, 2)).excluded == ()


@pytest.mark.slow
def test_pole_clutter_of_a_hundred_terms():
    # Case fp-pole-clutter (IntervalRootFinding.jl 169): one fixed point, one pole.
    terms = [(-10 if k % 10 == 0 else sp.Rational(3, 2)) * (1 + x) ** -k for k in range(100)]
    picture = line(sp.Add(*terms), (-0.9, 2))
    (point,) = picture.points
    assert point.location["x"] == pytest.approx(0.0646316396393, abs=1e-12)


def test_an_irrational_factor_changes_nothing():
    assert seen(line(sp.sqrt(2) * x * (1 - x), (-1, 2))) == seen(line(x * (1 - x), (-1, 2)))


def test_nothing_there_is_an_empty_line():
    picture = line(1 + x**2, (-1, 1))
    assert picture.points == ()
    assert math.isclose(picture.velocity.min(), 1.0)


def test_a_state_that_is_declared_positive_is_masked_by_name_too():
    n = sp.Symbol("n", positive=True)
    picture = fixedpoints.phase_line(ODESystem(symbolic.VectorField((n,), (sp.log(n),))), (-1, 2))
    assert [(str(gap.condition), gap.intervals) for gap in picture.masked] == [("n <= 0", ((-1.0, 0.0),))]


def test_a_fractional_power_is_masked_where_it_is_complex():
    # Case portrait-fractional-power-domain (robclewley/pydstool 162): the field is undefined for x < 0.
    picture = line(x**1.5 / (1 + x**1.5) - x / 2, (-0.2, 4))
    places, stabilities = zip(*seen(picture), strict=True)
    assert places == pytest.approx([0.0, 0.38196601125, 1.0], abs=1e-11)
    assert stabilities == ("stable", "unstable", "stable")
    (gap,) = picture.masked
    assert (gap.condition, gap.intervals) == (x < 0, ((-0.2, 0.0),))
    assert np.isnan(picture.velocity[picture.x < 0]).all()
    assert np.isfinite(picture.velocity[picture.x >= 0]).all()


def test_other_functions_are_searched_in_the_interval():
    picture = line(sp.sin(x), (-4, 4))
    places, stabilities = zip(*seen(picture), strict=True)
    assert places == pytest.approx([-math.pi, 0.0, math.pi])
    assert stabilities == ("stable", "unstable", "stable")
    assert picture.found.certificate.kind == "complete in box"


def test_a_double_root_of_other_functions():
    # Case fp-double-root-halfstable: exp(x^2) - cos(x) > 0 but at 0.
    (point,) = line(sp.exp(x**2) - sp.cos(x), (-1, 1)).points
    assert (point.location["x"], point.stability, point.attracts) == (0.0, "half-stable", (True, False))


def test_poles_and_gaps_of_other_functions():
    picture = line(sp.log(x) - 1 / (x - 3), (-1, 5))
    assert picture.excluded == (3.0,)
    assert [(str(g.condition), g.intervals) for g in picture.masked] == [("x <= 0", ((-1.0, 0.0),))]
    # log x = 1/(x - 3) by mpmath.findroot, 20 digits.
    assert [p.location["x"] for p in picture.points] == pytest.approx(
        [0.65305972915569434, 3.7557008657499940]
    )


def test_draws_into_given_axes_and_marks_what_it_returns():
    from odesys.plotting import new_axes

    axes = new_axes()
    field = symbolic.VectorField((x,), (x * (1 - x),))
    picture = fixedpoints.phase_line(ODESystem(field, {}), (-1, 2), ax=axes)
    assert picture.axes is axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["unstable: x = 0", "stable: x = 1"]


@pytest.mark.parametrize(
    ("field", "interval", "message"),
    [
        (symbolic.VectorField((x, y), (y, x)), (0, 1), "has one state; this system has 2"),
        (symbolic.VectorField((x,), (t - x,), time=t), (0, 1), "autonomous"),
        (
            symbolic.VectorField((x,), (sp.log(-1 - x**2),)),
            (0, 1),
            "not a finite number anywhere between 0 and 1",
        ),
        (symbolic.VectorField((x,), (0,)), (0, 1), "is zero for every x"),
        (symbolic.VectorField((x,), ((x + 1) ** 2 - x**2 - 2 * x - 1,)), (0, 1), "is zero for every x"),
        (symbolic.VectorField((x,), (x,)), (1, 1), "must be finite and increasing"),
        (symbolic.VectorField((x,), (x,)), (0, math.inf), "must be finite and increasing"),
    ],
)
def test_refuses(field, interval, message):
    with pytest.raises(ValueError, match=message):
        fixedpoints.phase_line(ODESystem(field, {}), interval)


def test_wants_a_system():
    with pytest.raises(TypeError, match="drawn of an ODESystem"):
        fixedpoints.phase_line(symbolic.VectorField((x,), (x,)), (0, 1))
