"""Fixed points of linear attention: the 2^D functions at which separate key and query can stop, and the two of
merged key and query.

    L(M) = tr(Lambda) - 2 tr(Lambda^2 M) + tr(S M Lambda M^T),    S = Lambda^2 + Lambda (Lambda + tr(Lambda) I)/N

Reading order: `modes` (numbers of the task), `weights` (a point of the parameter space), `curvature` (what the loss
does there), `stopping` (whether the flow stops there), `points` and `lattice` (where separate attention stops),
`manifolds` (where merged attention stops). All in the eigenbasis of the token covariance Lambda; modes are
numbered from 1 by falling eigenvalue.

Source: Zhang, Singh, Latham, Saxe, arXiv:2501.16265.
"""

from fixedpoints.linear_attention.curvature import hessian, inertia
from fixedpoints.linear_attention.lattice import Lattice, TooManyPointsError, losses, plateaus
from fixedpoints.linear_attention.manifolds import FixedPointSet, merged
from fixedpoints.linear_attention.modes import Modes
from fixedpoints.linear_attention.points import Point
from fixedpoints.linear_attention.stopping import Conditions, conditions
from fixedpoints.linear_attention.weights import Weights

__all__ = [
    # separate key and query
    "losses",
    "plateaus",
    "Lattice",
    "Point",
    "TooManyPointsError",
    # any point of its parameter space
    "Weights",
    "conditions",
    "Conditions",
    "hessian",
    "inertia",
    # merged key and query
    "merged",
    "FixedPointSet",
    # the task
    "Modes",
]
