"""Six portraits compared with pictures that were looked at. New ones: pytest --mpl-generate-path=FOLDER, then look.

Without text, so that fonts do not matter; a tolerance of 5 (root mean square of 0 to 255) forgives edges that
another version of Matplotlib smooths otherwise. The last test says what it does not forgive.
"""

from pathlib import Path

import matplotlib.image
import numpy as np
import planar_systems as known
import pytest
from matplotlib.figure import Figure

from fixedpoints.pictures.portraits import portrait

BASELINE = Path(__file__).parent / "baseline"
STYLE = {"style": "default", "baseline_dir": str(BASELINE), "tolerance": 5, "savefig_kwargs": {"dpi": 50}}

image = pytest.mark.mpl_image_compare(**STYLE)


def picture(planar):
    """The portrait alone in its frame: no legend, no numbers, no names."""
    axes = Figure(figsize=(4, 3.2)).add_axes((0.02, 0.02, 0.96, 0.96))
    portrait(planar.system, planar.box, axes, points=planar.points, spacing=0.08)
    axes.get_legend().remove()
    axes.set(xlabel="", ylabel="", xticklabels=[], yticklabels=[])
    return axes.figure


@image
def test_competition():
    return picture(known.COMPETITION)


@image
def test_van_der_pol():
    return picture(known.VAN_DER_POL)


@image
def test_pendulum():
    return picture(known.PENDULUM)


@image
def test_line_of_points():
    return picture(known.LINE_OF_POINTS)


@image
def test_pole():
    return picture(known.POLE)


@image
def test_undefined():
    return picture(known.UNDEFINED)


@pytest.fixture(scope="module")
def competition():
    return picture(known.COMPETITION).axes[0]


@pytest.mark.parametrize(
    ("part", "layer"), [("streamlines", 2), ("nullclines", 3), ("separatrices", 4), ("points", 6)]
)
def test_a_missing_part_is_seen(part, layer, competition, tmp_path):
    # Without it, a tolerance that forgives everything would pass.
    hidden = [a for a in (*competition.lines, *competition.collections) if a.get_zorder() == layer]
    for artist in hidden:
        artist.set_visible(False)
    competition.figure.savefig(tmp_path / "faulty.png", dpi=50)
    for artist in hidden:
        artist.set_visible(True)
    right, wrong = (
        np.asarray(matplotlib.image.imread(path))[..., :3] * 255
        for path in (BASELINE / "test_competition.png", tmp_path / "faulty.png")
    )
    assert np.sqrt(np.mean((right - wrong) ** 2)) > STYLE["tolerance"], part
