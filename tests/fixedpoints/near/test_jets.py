"""Taylor polynomials: against SymPy's derivatives, exact where rational, and honest where there are none."""

import pytest
import sympy as sp
from flint import arb, ctx, fmpq

from fixedpoints.near.balls import as_ball, as_rational, is_exact
from fixedpoints.near.jets import NotSmoothError, UndefinedHereError, expand, variable

x, y = sp.symbols("x y", real=True)


@pytest.fixture(autouse=True)
def digits():
    with ctx.workprec(256):
        yield


def jet(expression, at, order):
    values = {v: variable(i, order, as_rational(a)) for i, (v, a) in enumerate(at.items())}
    (result,) = expand([expression], values, order)
    return result


def derivative(expression, at, powers):
    for index in powers:
        expression = expression.diff(list(at)[index])
    factorial = sp.prod(sp.factorial(powers.count(i)) for i in range(2))
    return expression.subs(at) / factorial


@pytest.mark.parametrize(
    ("expression", "at"),
    [
        (x**3 * y - 2 * x / (1 + y**2), {x: 2, y: 3}),
        (sp.exp(x * y) * sp.sin(x + y), {x: sp.Rational(1, 3), y: 2}),
        (sp.sqrt(1 + x) + (2 + y) ** sp.Rational(-5, 3), {x: 1, y: 0}),
        (sp.log(1 + x**2) * sp.tanh(y) + sp.atan(x - y), {x: 1, y: -1}),
        (x**y + sp.cosh(x) / (2 + sp.cos(y)), {x: 2, y: 1}),
        (sp.erf(x) + sp.gamma(2 + y), {x: 1, y: 1}),
        (sp.Abs(x) * y + sp.Max(x, y) + sp.sign(x), {x: -2, y: 1}),
        (sp.Piecewise((x**2, x < 1), (y, True)), {x: 0, y: 3}),
        (sp.pi * x + sp.EulerGamma * y**2, {x: 1, y: 2}),
    ],
)
def test_equals_derivatives(expression, at):
    found = jet(expression, at, 3)
    for powers in [(), (0,), (1,), (0, 1), (0, 0), (1, 1), (0, 0, 1), (1, 1, 1)]:
        exact = derivative(expression, at, powers)
        assert as_ball(found[powers]).overlaps(arb(as_rational(sp.N(exact, 70))) + arb(0, 1e-60)), powers
        assert as_ball(found[powers]).rad() < 1e-60


def test_lambert_w_at_its_definition():
    # W e^W = z: at z = 2 e^2 it is 2, and dW/dz = W / (z (1 + W)) = e^-2 / 3.
    values = {x: variable(0, 1, as_rational(0))}
    (found,) = expand([sp.LambertW(2 * sp.exp(2) + x)], values, 1)
    assert as_ball(found.value).overlaps(arb(2))
    assert as_ball(found[0,]).overlaps((-arb(2)).exp() / 3)


def test_lower_branch_of_lambert_w():
    # W e^W = z: at z = -2 e^-2 the branch -1 has W = -2, and dW/dz = W / (z (1 + W)) = -e^2.
    values = {x: variable(0, 1, as_rational(0))}
    (found,) = expand([sp.LambertW(x - 2 * sp.exp(-2), -1)], values, 1)
    assert as_ball(found.value).overlaps(arb(-2))
    assert as_ball(found[0,]).overlaps(-arb(2).exp())


@pytest.mark.parametrize(
    ("expression", "terms"),
    [
        (sp.exp(x**2) - sp.cos(x), {(0, 0): fmpq(3, 2), (0, 0, 0, 0): fmpq(11, 24)}),
        (sp.log(1 + x), {(0,): 1, (0, 0): fmpq(-1, 2), (0, 0, 0): fmpq(1, 3), (0, 0, 0, 0): fmpq(-1, 4)}),
        (sp.sqrt(4 + x) - 2, {(0,): fmpq(1, 4), (0, 0): fmpq(-1, 64), (0,) * 3: fmpq(1, 512)}),
    ],
)
def test_rational_where_it_can_be(expression, terms):
    found = jet(expression, {x: 0}, 4)
    assert is_exact(list(found.terms.values()))
    for powers, c in terms.items():
        assert found[powers] == c


def test_fractional_powers_have_as_many_derivatives_as_they_have():
    assert jet(x ** sp.Rational(3, 2), {x: 0}, 1).terms == {}
    with pytest.raises(NotSmoothError, match="no derivative of order 2"):
        jet(x ** sp.Rational(3, 2), {x: 0}, 2)


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        (1 / x, UndefinedHereError, "pole"),
        (sp.log(x), UndefinedHereError, "not a real number"),
        (sp.sqrt(x - 1), UndefinedHereError, "not real"),
        (x**x, UndefinedHereError, "positive base"),
        (sp.Abs(x), NotSmoothError, "no derivative"),
        (sp.Max(x, 0), NotSmoothError, "no derivative"),
        (sp.floor(x), NotSmoothError, "jumps"),
        (sp.Piecewise((x, x < 0), (2 * x, True)), NotSmoothError, "changes here"),
        (sp.zeta(2 + x), NotSmoothError, "no derivative of zeta is known"),
    ],
)
def test_says_what_is_missing(expression, error, message):
    with pytest.raises(error, match=message):
        jet(expression, {x: 0}, 1)


def test_steps_are_constant_between_their_jumps():
    found = jet(x * sp.floor(y) + sp.ceiling(y) + sp.Heaviside(x), {x: 3, y: sp.Rational(5, 2)}, 2)
    assert found.terms == {(): 3 * 2 + 3 + 1, (0,): 2}


def test_a_kink_still_has_a_value():
    assert jet(sp.Abs(x) + sp.Max(x, 0) + sp.Piecewise((1, x <= 0), (2, True)), {x: 0}, 0).value == 1
