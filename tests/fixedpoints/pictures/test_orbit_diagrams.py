"""The picture of an orbit diagram: one was looked at, and what its dots are is compared with the data.

A new one: pytest --mpl-generate-path=FOLDER, then look; see test_pictures.py for the tolerance.
"""

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import sympy as sp
import xarray as xr
from matplotlib.figure import Figure

from fixedpoints import orbit_diagram, orbit_diagram_plot
from odesys.plotting import COLOURS, new_axes
from odesys.system import MapSystem
from symbolic.field import IteratedMap
from symbolic.gradient_flow import gradient_map

BASELINE = Path(__file__).parent / "baseline"
x, y, r, q = sp.symbols("x y r q")
eta = sp.Symbol("eta", positive=True)
LOGISTIC = IteratedMap((x,), (r * x * (1 - x),), (r,))
#: Descent on |f - b|^2 / 2 for A = (0, 1), b = (1/2, 1/2).
SOFTMAX = MapSystem(gradient_map((1 / (1 + sp.exp(-x)) - sp.Rational(1, 2)) ** 2, (x,), step=eta), {"eta": 1})


def picture():
    """Descent beyond its flip at 16 and its pitchfork at 27.4, alone in its frame: no numbers, no names."""
    diagram = orbit_diagram(SOFTMAX, "eta", np.linspace(13, 33, 160), {"x": [0.3, -0.6]}, transient=3000)
    axes = Figure(figsize=(4, 3.2)).add_axes((0.02, 0.02, 0.96, 0.96))
    orbit_diagram_plot(diagram, ax=axes)
    axes.get_legend().remove()
    axes.set(xlabel="", ylabel="", xticklabels=[], yticklabels=[])
    return axes.figure


@pytest.mark.mpl_image_compare(
    style="default", baseline_dir=str(BASELINE), tolerance=5, savefig_kwargs={"dpi": 50}
)
def test_orbit_diagram_of_descent():
    return picture()


@pytest.mark.parametrize("start", [0, 1])
def test_a_missing_start_is_seen(start, tmp_path):
    # Without it, a tolerance that forgives everything would pass.
    figure = picture()
    figure.axes[0].collections[start].set_visible(False)
    figure.savefig(tmp_path / "faulty.png", dpi=50)
    right, wrong = (
        np.asarray(matplotlib.image.imread(path))[..., :3] * 255
        for path in (BASELINE / "test_orbit_diagram_of_descent.png", tmp_path / "faulty.png")
    )
    assert np.sqrt(np.mean((right - wrong) ** 2)) > 5


def test_a_periodic_orbit_is_drawn_once_and_a_chaotic_one_in_full():
    diagram = orbit_diagram(LOGISTIC, "r", [2.9, 3.2, 3.5, 4.0], {"x": 0.3}, keep=50)
    (dots,) = orbit_diagram_plot(diagram).collections
    rates, places = np.asarray(dots.get_offsets()).T
    assert [int((rates == v).sum()) for v in (2.9, 3.2, 3.5, 4.0)] == [1, 2, 4, 50]
    # Fixed point 1 - 1/r; the 2-cycle by hand.
    assert places[rates == 2.9] == pytest.approx([1 - 1 / 2.9], abs=1e-12)
    root = np.sqrt(0.2 * 4.2)
    assert sorted(places[rates == 3.2]) == pytest.approx([(4.2 - root) / 6.4, (4.2 + root) / 6.4], abs=1e-12)


def test_escapes_and_plateaus_have_marks_of_their_own():
    escaping = orbit_diagram_plot(orbit_diagram(LOGISTIC, "r", [3.9, 4.5], {"x": 0.3}))
    (ticks,) = escaping.lines
    assert (ticks.get_xdata().tolist(), ticks.get_label()) == ([4.5], "escaped")
    standing = orbit_diagram_plot(orbit_diagram(SOFTMAX, "eta", [1.0, 2.0], {"x": 30.0}))
    dots, crosses = standing.collections
    assert len(dots.get_offsets()) == 0
    np.testing.assert_allclose(crosses.get_offsets(), [[1, 30], [2, 30]], atol=1e-8)
    assert [t.get_text() for t in standing.get_legend().get_texts()] == ["plateau"]


def test_starts_have_colours_and_names():
    axes = orbit_diagram_plot(orbit_diagram(SOFTMAX, "eta", [10.0, 28.0], {"x": [0.3, -0.6]}))
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["x_0 = 0.3", "x_0 = -0.6"]
    from matplotlib.colors import to_rgb

    assert [tuple(c.get_facecolor()[0][:3]) for c in axes.collections] == [to_rgb(c) for c in COLOURS[:2]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("eta", "x, steps 1001 to 1200")


def test_another_state_and_given_axes():
    henon = MapSystem(IteratedMap((x, y), (1 - r * x**2 + y, 0.3 * x), (r,)), {"r": 1})
    diagram = orbit_diagram(henon, "r", [0.2], {"x": 0.1, "y": 0.0})
    axes = new_axes()
    assert orbit_diagram_plot(diagram, "y", axes) is axes
    (dots,) = axes.collections
    assert dots.get_offsets()[0][1] == pytest.approx(float(diagram["y"][0, 0, 0]))
    assert axes.get_ylabel().startswith("y, steps")


def test_refuses():
    with pytest.raises(ValueError, match="An orbit diagram has the dim 'kept'"):
        orbit_diagram_plot(xr.Dataset({"x": ("step", [1.0])}))
    with pytest.raises(ValueError, match=r"No state is called 'z'; the diagram's states are \['x'\]"):
        orbit_diagram_plot(orbit_diagram(LOGISTIC, "r", [2.9], {"x": 0.3}), "z")
