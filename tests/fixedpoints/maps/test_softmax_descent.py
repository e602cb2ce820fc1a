"""Descent on the two-minima example of softmax regression, from the derived model to cycles and exponents.

For 0.765 < eta < 12.3 the spurious minimum is its only stable fixed point: beside it runs a cascade.
"""

import numpy as np
import pytest
import sympy as sp
from references import reference

from fixedpoints import critical_step, lyapunov, on_leaf, orbit_diagram
from odesys.system import MapSystem
from symbolic.softmax_regression import vector

eta = sp.Symbol("eta", positive=True)
GLOBAL, SPURIOUS = reference("softmax_maps")["plane"]


def descent(rows, target):
    """Descent on the normalized loss of a problem with numbers."""
    rule = vector.model(n=len(rows), d=2).gradient_map(step=eta)
    numbers = {f"A_{i + 1}_{j + 1}": float(v) for i, row in enumerate(rows) for j, v in enumerate(row)}
    numbers |= {f"b_{i + 1}": v for i, v in enumerate(target)}
    return MapSystem(rule, {**numbers, "eta": 1.0})


@pytest.fixture(scope="module")
def plane():
    return descent(((2, 0), (1, 2), (-3, -3), (2, 1)), [0.125, 0.125, 0.375, 0.375])


def test_the_critical_step_of_the_model(plane):
    flip = critical_step(plane, dict(zip(plane.map.names, GLOBAL["point"], strict=True)), "eta")
    # The parameters are floats: the bound allows each an error of 2^-52.
    assert abs(flip.value - GLOBAL["eta_c"]) <= flip.error < 1e-13
    assert flip.kind == "supercritical"


def test_cycles_beside_the_spurious_minimum(plane):
    names = plane.map.names
    starts = dict(zip(names, np.transpose([[0.0, 0.0], [1.4, 0.7]]), strict=True))
    steps = [0.76, 0.8, 0.9, 1.0, 1.1, 12.3, 12.4]
    found = orbit_diagram(plane, "eta", steps, starts, transient=4000)
    beside, spurious = found["period"].values.T
    assert beside[:5].tolist() == [1, 2, 2, 4, 0]
    assert spurious.tolist() == [1, 1, 1, 1, 1, 1, 2]
    for name, x in zip(names, SPURIOUS["point"], strict=True):
        np.testing.assert_allclose(found[name].values[:6, 1, -1], x, atol=1e-6)  # slow near 12.339
    irregular = lyapunov(plane.with_parameters({"eta": 1.1}), dict.fromkeys(names, 0.0), 5000)
    assert irregular.values[0] > 10 * irregular.errors[0]
    regular = lyapunov(plane.with_parameters({"eta": 1.0}), dict.fromkeys(names, 0.0), 1000, 4000)
    assert regular.values[0] < -10 * regular.errors[0]


def test_a_conserved_functional_of_the_model_is_found():
    # The first column of A is 1: f does not see x_1, so that (1, 0) . x is conserved whatever the step.
    flat = descent(((1, 0), (1, 1), (1, 3)), [0.25, 0.25, 0.5])
    there = on_leaf(flat, dict(zip(flat.map.names, (0.4, 0.1), strict=True)))
    assert there.map.names == flat.map.names[1:]
