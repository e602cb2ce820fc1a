"""DERIVE: exact algebra. SymPy in, SymPy out; no array library is loaded.

Reading order: `field` (what is studied), `gradient_flow` (where it comes from), `moments` (expectations),
`conservation`, `reduction` (how it gets smaller), `closed_form` (how it is solved), `discovery` (what is found without
being told), `expressions` (text becomes an expression without being run), then the models in
`linear_attention` and `softmax_regression`, and how far those can move in `lipschitz`. `zero` is the one judge of
every proof.
"""

from symbolic.conservation import FirstIntegral
from symbolic.errors import (
    NoClosedFormError,
    NotASolutionError,
    NotClosedError,
    NotConservedError,
    NotInvariantError,
    UndecidedError,
)
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_flow, gradient_map
from symbolic.reduction import Reduction, project, restrict, specialise

__all__ = [
    # rules
    "VectorField",
    "IteratedMap",
    "gradient_flow",
    "gradient_map",
    # smaller rules, proven
    "restrict",
    "project",
    "specialise",
    "Reduction",
    "FirstIntegral",
    # refusals
    "NotInvariantError",
    "NotConservedError",
    "NotClosedError",
    "NotASolutionError",
    "NoClosedFormError",
    "UndecidedError",
]
