"""What a point is does not depend on coordinates or on the unit of time."""

import functools

import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fixedpoints import classify
from symbolic.field import VectorField

x, y, z = sp.symbols("x y z")
r2 = x**2 + y**2

#: Flows with a fixed point at the origin, one of each kind; none is a gradient flow with a degenerate point,
#: whose words depend on the metric.
FLOWS = {
    "star": (-x, -y),
    "degenerate": (-x + y, -y),
    "focus": (x + 2 * y, -2 * x + y + x * y),
    "saddle": (x + x**2, -2 * y + x * y),
    "weak focus": (-y - x * r2, x - y * r2),
    "weaker focus": (-y + x * r2**2, x + y * r2**2),
    "slaved": (x * y, -y - x**2),
    "saddle-node": (r2, -y + x * y),
    "topological saddle": (x**3, y + x * y),
    "nilpotent": (y, -(x**3) - x**2 * y),
    "weak focus in space": (-y - x * z, x - y * z, -z + r2),
    "sink in space": (-x, -2 * y + z, -z),
    "slaved in space": (x * y, -y - x**2, -2 * z + x**2),
}
#: Conclusions from exact identities, which a shear in floats destroys: then nothing may be decided.
EXACT_ONLY = {
    "cusp": (y, x**2),
    "conserved": (-x + y, x - y, -z),
}

rationals = st.fractions(min_value=-3, max_value=3, max_denominator=4).map(sp.Rational)
paces = st.sampled_from([sp.Rational(1, 10**9), sp.Rational(1, 7), sp.Integer(10**9)])


@functools.cache
def original(name):
    return classify(*_at_origin((FLOWS | EXACT_ONLY)[name]))


def _at_origin(rhs):
    state = (x, y, z)[: len(rhs)]
    return VectorField(state, rhs), dict.fromkeys((u.name for u in state), 0)


def sheared(rhs, entries, shift, pace):
    """The flow in coordinates u with  x = T (u - shift),  and time measured in another unit."""
    n = len(rhs)
    state = (x, y, z)[:n]
    shear = sp.Matrix(n, n, entries[: n * n])
    assume(shear.det() != 0 and shear.norm() * shear.inv().norm() < 30)
    old = shear * (sp.Matrix(state) - sp.Matrix(shift[:n]))
    moved = [f.xreplace(dict(zip(state, old, strict=True))) for f in rhs]
    return tuple(sp.expand(f) for f in pace * shear.inv() * sp.Matrix(moved))


@pytest.mark.parametrize("name", [*FLOWS, *EXACT_ONLY])
@settings(max_examples=3, deadline=None, derandomize=True)
@given(
    entries=st.lists(rationals, min_size=9, max_size=9),
    shift=st.lists(rationals, min_size=3, max_size=3),
    pace=paces,
)
def test_exact_changes_of_coordinates_and_of_time(name, entries, shift, pace):
    rhs = (FLOWS | EXACT_ONLY)[name]
    state = (x, y, z)[: len(rhs)]
    moved = VectorField(state, sheared(rhs, entries, shift, pace))
    point = classify(moved, dict(zip((u.name for u in state), shift, strict=False)))
    assert (point.stability, point.dims) == (original(name).stability, original(name).dims)


@pytest.mark.parametrize("name", [*FLOWS, *EXACT_ONLY])
@settings(max_examples=3, deadline=None, derandomize=True)
@given(entries=st.lists(rationals, min_size=9, max_size=9), pace=paces)
def test_changes_of_coordinates_in_floats(name, entries, pace):
    rhs = (FLOWS | EXACT_ONLY)[name]
    state = (x, y, z)[: len(rhs)]
    moved = VectorField(state, tuple(map(in_floats, sheared(rhs, entries, (0, 0, 0), pace))))
    point = classify(moved, dict.fromkeys((u.name for u in state), 0.0))
    assert point.dims == original(name).dims
    if name in EXACT_ONLY and point.stability != original(name).stability:
        assert point.stability.startswith("undecided")
    else:
        assert point.stability == original(name).stability


def in_floats(polynomial):
    """Every coefficient rounded to a float."""
    terms = sp.Poly(polynomial, x, y, z).terms()
    return sp.Add(*(sp.Float(float(c)) * x**i * y**j * z**k for (i, j, k), c in terms))
