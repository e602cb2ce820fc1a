"""Where a field is a real number: the inequalities that its roots and logarithms ask for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp

from fixedpoints.boxes.singular import Condition, Kind, conditions, plain, prepared
from odesys.lambdify import compile_expressions

__all__ = ["fails", "limits"]

_STRICT, _WEAK = (Kind.POSITIVE,), (Kind.NONNEGATIVE, Kind.SOFT)


def limits(rhs: Sequence[sp.Expr], state: Sequence[sp.Symbol]) -> list[Condition]:
    """The conditions on real states for the right-hand sides to be real; poles are none of them."""
    # Without the user's assumptions about signs, which must not hide that a picture reaches further.
    real = {x: sp.Symbol(x.name, real=True) for x in state}
    back = {symbol: x for x, symbol in real.items()}
    found = conditions([prepared(f.xreplace(real)) for f in rhs])
    return [
        Condition(plain(c.expression).xreplace(back), c.kind) for c in found if c.kind in (*_STRICT, *_WEAK)
    ]


def fails(condition: Condition, state: Sequence[sp.Symbol], points: Sequence[np.ndarray]) -> np.ndarray:
    """Where a condition does not hold, for coordinates that broadcast."""
    (values,) = compile_expressions([condition.expression], state)(*points)
    return values <= 0 if condition.kind in _STRICT else values < 0
