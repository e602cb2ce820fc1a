"""Where softmax regression stops, and where it goes if it does not: finite points and infinity.

Vector and matrix problems are asked alike, as sums of regressions that share their weights.

Reading order: `problem` (numbers, flat directions), `exponentials` and `rays` (a loss along a ray, exactly), `faces`,
`fans` and `ends` (the faces at infinity), `growth` and `falling` (the same for the rescaled loss), `points` (all fixed
points, with the index sum), `nearby` and `verdicts` (what the end of a run is).

Source: Gao, Song, Xie, arXiv:2307.02419, and its predecessors for the losses; what they do at infinity is derived here.
"""

from fixedpoints.softmax_regression.ends import End, Halt, NoHullError, ends
from fixedpoints.softmax_regression.points import Interpolation, Stops, interpolation, points
from fixedpoints.softmax_regression.rays import Escape, escape
from fixedpoints.softmax_regression.verdicts import Verdict, verdict

__all__ = [
    # finite points
    "points",
    "Stops",
    "interpolation",
    "Interpolation",
    # infinity
    "escape",
    "Escape",
    "ends",
    "End",
    "Halt",
    "NoHullError",
    # the end of a run
    "verdict",
    "Verdict",
]
