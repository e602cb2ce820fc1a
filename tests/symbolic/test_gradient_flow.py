"""Gradient flows and descent maps against derivatives taken by hand."""

import pytest
import sympy as sp

import symbolic

a, b, eta = sp.symbols("a b eta")
s, tau = sp.symbols("s tau", positive=True)
LOSS = (s - a * b) ** 2 / 2


def test_two_layer_scalar_network():
    # dL/da = -(s - a b) b by hand; Saxe et al. 2014.
    field = symbolic.gradient_flow(LOSS, (a, b), time_constant=2 * tau)
    assert [sp.expand(2 * tau * f) for f in field.rhs] == [
        sp.expand(b * (s - a * b)),
        sp.expand(a * (s - a * b)),
    ]
    assert field.parameters == (s, tau)


def test_descent_map_is_the_flow_s_euler_step():
    step = symbolic.gradient_map(LOSS, (a, b), step=eta)
    flow = symbolic.gradient_flow(LOSS, (a, b))
    assert all(sp.expand(m - x - eta * f) == 0 for m, x, f in zip(step.rhs, (a, b), flow.rhs, strict=True))
    assert step.parameters == (eta, s)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: symbolic.gradient_flow(a**2, (a, b)), r"does not depend on the weights \['b'\]"),
        (lambda: symbolic.gradient_flow(LOSS, (a, b), time_constant=-1), "must be positive"),
        (lambda: symbolic.gradient_flow(LOSS, (a, b), time_constant=a), "must not depend on the weights"),
        (lambda: symbolic.gradient_map(LOSS, (a, b), step=0), "`step` must be positive"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_loss_must_be_a_scalar():
    with pytest.raises(TypeError, match="scalar expression"):
        symbolic.gradient_flow(sp.Matrix([a]), (a,))
