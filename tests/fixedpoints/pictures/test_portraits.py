"""Portraits: all parts together, as data and as a picture."""

from collections import Counter

import numpy as np
import planar_systems as known
import pytest
import sympy as sp

from fixedpoints.pictures.drawing import _marker
from fixedpoints.pictures.portraits import portrait
from fixedpoints.points import Certificate, FixedPoint, FixedPoints
from odesys.plotting import new_axes
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

x, y, t = sp.symbols("x y t")
BOX = {"x": (-1, 1), "y": (-1, 1)}
NOTHING = FixedPoints((), (), Certificate("unknown", "not looked for"))


def drawn(planar, **options):
    return portrait(planar.system, planar.box, points=planar.points, **options)


@pytest.fixture(scope="module")
def competition():
    return drawn(known.COMPETITION)


def test_all_parts_of_the_competition(competition):
    assert [p.stability for p in competition.points] == [
        "unstable node",
        "stable node",
        "saddle",
        "stable node",
    ]
    assert Counter(b.kind for b in competition.separatrices) == {"stable": 2, "unstable": 2}
    assert {(n.state, n.name) for n in competition.nullclines} == {
        ("x", "x = 0"),
        ("x", "x + 2*y - 3 = 0"),
        ("y", "y = 0"),
        ("y", "x + y - 2 = 0"),
    }
    assert len(competition.streamlines) > 15
    assert (competition.masked, competition.lines_of_points) == ((), ())


def test_the_picture_shows_what_the_data_say(competition):
    axes = competition.axes
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 4), (0, 4))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [
        "dx/dt = 0: x = 0, x + 2 y - 3 = 0",
        "dy/dt = 0: y = 0, x + y - 2 = 0",
        "stable manifold of a saddle",
        "unstable manifold of a saddle",
        "unstable node: (0, 0)",
        "stable node: (0, 2), (3, 0)",
        "saddle: (1, 1)",
    ]


def test_streamlines_keep_away_from_separatrices(competition):
    borders = np.concatenate([b.points for b in competition.separatrices], axis=1)
    for line in competition.streamlines:
        gap = np.min(np.hypot(*(line.points[:, :, None] - borders[:, None, :])))
        # 0.4 of the spacing, less one cell of the raster, in a window of size 4.
        assert gap > (0.4 * 0.05 - 0.006) * 4


def test_the_direction_field_is_the_field(competition):
    at, velocity = competition.directions
    a, b = at
    np.testing.assert_allclose(velocity, [a * (3 - a - 2 * b), b * (2 - b - a)], rtol=1e-12, atol=1e-12)
    assert at.shape == (2, 400)


def test_states_keep_their_axes_and_parameters_their_numbers():
    # The first state of the field runs to the right, whatever the order of the box.
    rate = sp.Symbol("r")
    field = VectorField((x, y), (rate * (y - 5), x), (rate,))
    picture = portrait(ODESystem(field, {"r": 2.0}), {"y": (0, 10), "x": (-1, 1)}, points=NOTHING)
    assert picture.axes.get_xlim() == (-1, 1)
    assert picture.axes.get_ylim() == (0, 10)
    assert [(n.state, n.name) for n in picture.nullclines] == [("x", "y = 5"), ("y", "x = 0")]


def test_a_line_of_fixed_points():
    picture = drawn(known.LINE_OF_POINTS)
    (line,) = picture.lines_of_points
    assert line.name == "x + y - 1 = 0"
    assert picture.streamlines
    for stream in picture.streamlines:
        a, b = stream.points
        np.testing.assert_allclose(a * b, a[0] * b[0], atol=1e-5)  # x y is conserved
        side = a + b - 1
        assert np.all(side > -1e-2) or np.all(side < 1e-2)  # no line crosses the points


def test_poles_are_masked_and_no_line_crosses_them():
    picture = drawn(known.POLE)
    assert [m.name for m in picture.masked] == ["pole: x + y + 1 = 0"]
    assert picture.streamlines
    for stream in picture.streamlines:
        side = stream.points.sum(axis=0) + 1
        assert np.all(side > -1e-3) or np.all(side < 1e-3)


def test_undefined_regions_are_masked_and_left_blank():
    picture = drawn(known.UNDEFINED)
    assert [str(m.condition) for m in picture.masked] == ["x + 1 < 0", "y + 1 <= 0"]
    curves = [s.points for s in picture.streamlines] + [p for n in picture.nullclines for p in n.pieces]
    assert picture.streamlines
    assert all(np.min(curve) >= -1 for curve in curves)
    at, velocity = picture.directions
    assert np.all(at > -1)
    assert np.all(np.isfinite(velocity))


def test_points_of_a_periodic_field_are_shown_with_their_shifts():
    half = known.planar(
        (y, -sp.sin(x)), (-7, 7), (-3, 3), [(0.0, 0.0, "centre"), (float(np.pi), 0.0, "saddle")]
    )
    found = FixedPoints(half.points.points, (), half.points.certificate, periods={"x": 2 * sp.pi})
    picture = portrait(half.system, half.box, points=found)
    places = [p.location["x"] for p in picture.points]
    assert places == pytest.approx([-2 * np.pi, -np.pi, 0, np.pi, 2 * np.pi])


@pytest.mark.parametrize(
    ("stability", "dims", "marker", "face"),
    [
        ("stable node", (0, 0, 2), "o", "black"),
        ("stable weak focus", (0, 2, 0), "o", "black"),
        ("unstable focus", (2, 0, 0), "o", "white"),
        ("unstable weak focus", (0, 2, 0), "o", "white"),
        ("centre", (0, 2, 0), "o", "0.7"),
        ("stable modulo the conserved quantity", (0, 1, 1), "o", "0.7"),
        ("saddle", (1, 0, 1), "D", "white"),
        ("non-strict saddle", (0, 1, 1), "D", "white"),
        ("saddle-node", (0, 1, 1), "s", None),
        ("unstable", (0, 1, 1), "s", None),
        ("undecided: the linearisation does not decide (centre candidate)", (0, 2, 0), "s", None),
    ],
)
def test_markers_tell_what_a_point_does(stability, dims, marker, face):
    style = _marker(FixedPoint({"x": 0.0, "y": 0.0}, (), stability, dims=dims))
    assert (style["marker"], style.get("markerfacecolor")) == (marker, face)


def test_an_open_search_is_shown():
    open_box = {"x": (0.4, 0.6), "y": (-0.1, 0.1)}
    found = FixedPoints((), (), Certificate("unknown", "of a box that is open"), unresolved=(open_box,))
    picture = portrait(known.SADDLE_NODE.system, BOX, points=found, spacing=0.2)
    legend = picture.axes.get_legend()
    assert legend.get_title().get_text() == "fixed points: completeness unknown"
    assert "unresolved" in [text.get_text() for text in legend.get_texts()]


def test_draws_into_given_axes():
    axes = new_axes()
    picture = drawn(known.SADDLE_NODE, ax=axes, spacing=0.1)
    assert picture.axes is axes
    assert [b.kind for b in picture.separatrices] == ["stable", "stable", "unstable"]


@pytest.mark.parametrize(
    ("field", "box", "message"),
    [
        (VectorField((x,), (-x,)), {"x": (0, 1)}, "has two states; this system has 1"),
        (VectorField((x, y, t), (x, y, t)), BOX, r"has two states; this system has 3: \['x', 'y', 't'\]"),
        (VectorField((x, y), (t * x, y), time=t), BOX, "autonomous field; this one depends on t"),
        (VectorField((x, y), (0, 0)), BOX, "is zero everywhere"),
        (VectorField((x, y), (x, y)), {"x": (-1, 1)}, r"`box` lacks the states \['y'\]"),
        (VectorField((x, y), (x, y)), {"x": (1, -1), "y": (-1, 1)}, "finite and increasing"),
        (VectorField((x, y), (sp.log(-1 - x**2), y)), BOX, "not a finite number anywhere in the box"),
    ],
)
def test_refuses(field, box, message):
    with pytest.raises(ValueError, match=message):
        portrait(ODESystem(field), box, points=NOTHING)


def test_refuses_a_map_and_a_spacing():
    with pytest.raises(TypeError, match="drawn of an ODESystem; got MapSystem"):
        portrait(MapSystem(IteratedMap((x, y), (y, x))), BOX)
    with pytest.raises(ValueError, match=r"between 0\.01 and 0\.5; got 2"):
        drawn(known.POLE, spacing=2)
