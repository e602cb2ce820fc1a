"""DERIVE: exact algebra. SymPy in, SymPy out; no array library is loaded.

Reading order: `field` (what is studied), `gradient_flow` (where it comes from), `moments` (expectations),
`conservation`, `reduction` (how it gets smaller), `closed_form` (how it is solved), then the models.
"""

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

__all__ = [
    "IteratedMap",
    "NoClosedFormError",
    "NotASolutionError",
    "NotClosedError",
    "NotConservedError",
    "NotInvariantError",
    "UndecidedError",
    "VectorField",
    "gradient_flow",
    "gradient_map",
]
