"""Bare rules: eigenvalues as expressions, and the conditions on parameters under which a point is stable."""

import pytest
import sympy as sp

from fixedpoints import NotAFixedPointError, classify
from symbolic.errors import NotConservedError
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_flow, gradient_map

x, y, z, mu, r = sp.symbols("x y z mu r")
a, b, k1, k2, sigma, rho, beta = sp.symbols("a b k_1 k_2 sigma rho beta", positive=True)


def test_logistic():
    field = VectorField((x,), (r * x * (1 - x),), (r,))
    point = classify(field, {"x": 0})
    assert (point.stability, point.eigenvalues, point.dims) == ("depends on the parameters", (r,), None)
    assert point.stable_when == (r < 0)
    assert classify(field, {"x": 1}).stable_when == (r > 0)
    known = VectorField((x,), (a * x * (1 - x),), (a,))
    assert classify(known, {"x": 1}).stability == "stable"
    assert classify(known, {"x": 1}).stable_when == sp.true


def test_logistic_map():
    step = IteratedMap((x,), (r * x * (1 - x),), (r,))
    point = classify(step, {"x": 1 - 1 / r})
    assert point.eigenvalues == (2 - r,)
    assert point.stable_when == sp.And(r > 1, r < 3)


def test_van_der_pol():
    field = VectorField((x, y), (y, mu * (1 - x**2) * y - x), (mu,))
    assert classify(field, {"x": 0, "y": 0}).stable_when == (mu < 0)


def test_lorenz_by_routh_and_hurwitz():
    # Sparrow 1982: the convecting points are stable exactly when sigma < beta + 1 or
    # rho < sigma (sigma + beta + 3) / (sigma - beta - 1).
    field = VectorField((x, y, z), (sigma * (y - x), x * (rho - z) - y, x * y - beta * z), (sigma, rho, beta))
    assert classify(field, {"x": 0, "y": 0, "z": 0}).stable_when == (rho < 1)
    side = sp.sqrt(beta * (rho - 1))
    point = classify(field, {"x": side, "y": side, "z": rho - 1})
    critical = sp.Rational(10) * (10 + sp.Rational(8, 3) + 3) / (10 - sp.Rational(8, 3) - 1)
    assert critical == sp.Rational(470, 19)
    for value, stable in ((critical - 1, True), (critical + 1, False), (sp.Rational(1, 2), False)):
        numbers = {sigma: 10, beta: sp.Rational(8, 3), rho: value}
        assert bool(point.stable_when.subs(numbers)) is stable


def test_names_that_the_assumptions_decide():
    saddle = classify(gradient_flow((a - x * y) ** 2 / 2, (x, y)), {"x": 0, "y": 0})
    assert (saddle.stability, saddle.eigenvalues, saddle.index) == ("saddle", (a, -a), (1, 0, 1))
    focus = VectorField((x, y), (-a * x + b * y, -b * x - a * y), (a, b))
    assert classify(focus, {"x": 0, "y": 0}).stability == "stable focus"
    star = VectorField((x, y), (-a * x, -a * y), (a,))
    assert classify(star, {"x": 0, "y": 0}).stability == "stable star node"
    spiral = IteratedMap((x, y), (x - a * y, a * x + y), (a,))
    assert classify(spiral, {"x": 0, "y": 0}).stability == "source"


def test_reversible_reaction_for_all_rates():
    # Case stab-conserved-zero-eig (Catalyst.jl PR 147), with symbols: eigenvalues 0 and -(k1 + k2).
    field = VectorField((x, y), (-k1 * x + k2 * y, k1 * x - k2 * y), (k1, k2, a))
    point = classify(field, {"x": k2 * a, "y": k1 * a})
    assert point.stability == "stable modulo the conserved quantity"
    assert set(point.eigenvalues) == {0, -k1 - k2}
    assert point.stable_when == sp.false


def test_a_curve_of_fixed_points_for_all_parameters():
    point = classify(gradient_flow((a - x * y) ** 2 / 2, (x, y)), {"x": a, "y": 1})
    assert point.stability == "stable, not asymptotically (normally attracting set)"
    assert point.eigenvalues[1] == -(a**2) - 1


def test_one_state_beyond_its_linearisation():
    assert classify(VectorField((x,), (a * x**2,), (a,)), {"x": 0}).stability == "half-stable"
    assert classify(VectorField((x,), (-a * x**3,), (a,)), {"x": 0}).stable_when == sp.true
    assert classify(VectorField((x,), (r * x**3,), (r,)), {"x": 0}).stability.startswith("undecided")


def test_descent_steps():
    point = classify(gradient_map(x**2 / 2 + a * y**2 / 2, (x, y), step=b), {"x": 0, "y": 0})
    assert point.stable_when == sp.And(b < 2, a * b < 2)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"x": 1, "y": 0}, "the rule of y leaves a there"),
        ({"x": a, "y": z}, r"may use the parameters \['a'\] only; got \['z'\]"),
        ({"x": a}, r"No coordinate for the states \['y'\]"),
        ({"x": 1 / sp.Integer(0), "y": 0}, "is not defined at"),
    ],
)
def test_refuses(point, message):
    with pytest.raises(ValueError, match=message):
        classify(gradient_flow((a - x * y) ** 2 / 2, (x, y)), point)


def test_the_residual_is_what_is_left():
    with pytest.raises(NotAFixedPointError) as caught:
        classify(VectorField((x,), (a - x,), (a,)), {"x": 2 * a})
    assert caught.value.residual == -a


def test_refuses_a_quantity_that_changes():
    field = VectorField((x, y), (-k1 * x + k2 * y, k1 * x - k2 * y), (k1, k2))
    with pytest.raises(NotConservedError, match="not conserved"):
        classify(field, {"x": 0, "y": 0}, first_integrals=[x - y])
