"""Drawings: what is drawn where, read back from the Axes; nothing needs a display or pyplot."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from odesys.clock import Clock
from odesys.plotting import COLOURS, MOST_MARKERS, levels, new_axes, order_plot, overlay, time_course

TIMES = np.linspace(0.0, 2.0, 101)


def course(dim="time", at=TIMES, **variables):
    return xr.Dataset({name: (dim, values) for name, values in variables.items()}, coords={dim: at})


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_time_course_is_a_line_per_variable():
    axes = time_course(course(a=TIMES, b=2 * TIMES))
    assert [line.get_color() for line in axes.lines] == list(COLOURS[:2])
    np.testing.assert_array_equal(axes.lines[1].get_xdata(), TIMES)
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), 2 * TIMES)
    assert legend(axes) == ["a", "b"]


def test_entries_of_a_variable_share_colour_and_legend():
    run = xr.Dataset({"v": (("head", "time"), np.stack([TIMES, -TIMES]))}, coords={"time": TIMES})
    axes = time_course(run, label="theory")
    assert len(axes.lines) == 2
    assert len({line.get_color() for line in axes.lines}) == 1
    assert legend(axes) == ["v, theory"]


def test_labels_and_constants_are_not_drawn():
    axes = time_course(course(a=TIMES).assign(kind=("time", np.full(101, "saddle")), rate=0.5))
    assert legend(axes) == ["a"]


def test_labels_tell_names_and_units():
    run = course(loss=TIMES)
    run["time"].attrs = {"long_name": "time", "units": "tau"}
    run["loss"].attrs = {"long_name": "population loss"}
    axes = time_course(run)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (tau)", "population loss")


def test_a_theory_lies_over_the_runs_markers_at_the_clocks_times():
    steps = np.arange(2001)
    run = course("step", steps, x=steps / 1000)
    axes = overlay(course(x=TIMES, y=TIMES), run, clock=Clock(1e-3))
    points, line = axes.lines
    assert points.get_linestyle() == "None"
    assert len(points.get_xdata()) == MOST_MARKERS
    np.testing.assert_allclose(points.get_xdata(), points.get_ydata(), rtol=1e-14)
    assert points.get_xdata()[-1] == 2.0
    np.testing.assert_array_equal(line.get_ydata(), TIMES)
    assert points.get_zorder() < line.get_zorder()
    assert points.get_color() == line.get_color()
    assert legend(axes) == ["x, training", "x, theory"]


def test_the_given_axes_are_drawn_into():
    axes = new_axes()
    assert time_course(course(a=TIMES), ax=axes) is axes
    assert overlay(course(a=TIMES), course(a=TIMES), ax=axes) is axes
    assert order_plot([1.0, 2.0], [1.0, 2.0], order=1, ax=axes) is axes
    assert levels(axes, {"L*": 0.1}) is axes


def test_levels_are_named():
    axes = levels(time_course(course(a=TIMES)), {"L*": 0.5})
    assert list(axes.lines[-1].get_ydata()) == [0.5, 0.5]
    assert [text.get_text() for text in axes.texts] == ["L*"]


def test_the_guide_of_an_order_plot_has_the_expected_slope():
    # Order 2 through the error 1 of the smallest step: (1/4, 1), (1, 16).
    axes = order_plot([1.0, 0.5, 0.25], [20.0, 4.0, 1.0], order=2, label="x at t = 1")
    guide, points = axes.lines
    assert (list(guide.get_xdata()), list(guide.get_ydata())) == ([0.25, 1.0], [1.0, 16.0])
    assert list(points.get_ydata()) == [20.0, 4.0, 1.0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert legend(axes) == ["order 2", "x at t = 1"]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: time_course(course("t", a=TIMES)), r'must have the dim "time" or "step"; it has \[\'t\'\]'),
        (lambda: time_course(course(a=TIMES), variables=["b"]), r"no variables \['b'\] .* it has \['a'\]"),
        (
            lambda: overlay(course(a=TIMES), course(b=TIMES)),
            r"No variable is shared: \['a'\] against \['b'\]",
        ),
        (lambda: overlay(course(a=TIMES), course("step", a=TIMES)), "counts steps; pass `clock`"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_no_pyplot_is_loaded():
    program = (
        "import sys, odesys.plotting as p; assert 'matplotlib' not in sys.modules;"
        "p.new_axes().figure.savefig(sys.stdout.buffer, format='png');"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.startswith(b"\x89PNG")
