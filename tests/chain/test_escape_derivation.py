"""How a head of separate attention leaves zero, derived: the cubic flow, its exact path, and the time that it takes."""

from itertools import product

import pytest
import sympy as sp

from symbolic.linear_attention import escape, separate, task

tau = task.tau


def zero(expressions):
    return all(sp.expand(e) == 0 for e in expressions)


def test_cubic_flow_of_one_head():
    # tau dv = sum lam_d^2 k_rd q_rd, tau dk_rd = lam_d^2 v q_rd, tau dq_rd = lam_d^2 v k_rd
    here = escape.model(dim=2, rank=2)
    head, rates = here.attention, dict(zip(here.flow.state, here.flow.rhs, strict=True))
    (x,), (K,), (Q,), squares = head.v, head.K, head.Q, [e**2 for e in head.eigenvalues]
    cells = list(product(range(2), range(2)))
    assert sp.expand(tau * rates[x] - sum(squares[d] * K[r, d] * Q[r, d] for r, d in cells)) == 0
    assert zero(tau * rates[K[r, d]] - squares[d] * x * Q[r, d] for r, d in cells)
    assert zero(tau * rates[Q[r, d]] - squares[d] * x * K[r, d] for r, d in cells)


@pytest.mark.parametrize("rank", [1, 2])
def test_it_is_the_lowest_order_of_the_flow(rank):
    here = escape.model(dim=2, rank=rank)
    weights, small = here.attention.weights, sp.Symbol("epsilon")
    scaled = {w: small * w for w in weights}
    for full, cubic in zip(here.attention.flow.rhs, here.flow.rhs, strict=True):
        series = sp.Poly(sp.expand(full.xreplace(scaled)), small)
        assert min(power for (power,) in series.monoms()) == 2
        assert sp.expand(series.coeff_monomial(small**2) - cubic) == 0


@pytest.mark.parametrize(("dim", "rank"), [(1, 1), (2, 1), (2, 2)])
def test_path_is_proven_through_the_turn(dim, rank):
    # In t, without a division by v: 2 R D exponentials and v^2 - (1/4) sum (s+^2 + s-^2).
    here = escape.model(dim=dim, rank=rank)
    assert len(here.conserved) == 2 * rank * dim + 1
    assert here.course.proof.residual == 0
    # f = v^2 is convex in theta: f'' = sum lam_d^4 (s+^2 e^{2 lam_d^2 theta} + s-^2 e^{-2 lam_d^2 theta}).
    _, plus, minus = here.starts
    expected = 0
    for d, x in enumerate(here.attention.eigenvalues):
        grown = sp.exp(2 * x**2 * escape.theta)
        expected += x**4 * sum(plus[r, d] ** 2 * grown + minus[r, d] ** 2 / grown for r in range(rank))
    assert sp.expand(here.bend - expected) == 0


def test_aligned_start_waits_for_tau_over_lambda_squared_v():
    # k = q = v e_1: s+ = 2 v, s- = 0, f = v_0^2 e^{2 lam^2 theta}
    here = escape.model(dim=1)
    start = sp.Symbol("x", positive=True)
    _, plus, minus = here.starts
    values = {sp.Symbol("v_0"): start, plus[0, 0]: 2 * start, minus[0, 0]: sp.Integer(0)}
    got = here.waiting_time.subs(values).doit()
    assert sp.simplify(got - tau / (here.attention.eigenvalues[0] ** 2 * start)) == 0


def test_flipping_value_and_key_is_a_symmetry():
    # (v, k) -> (-v, -k) exchanges s+ with -s- and leaves f with theta -> -theta.
    here = escape.model(dim=2)
    _, plus, minus = here.starts
    flipped = dict(zip((*plus, *minus), (*(-m for m in minus), *(-p for p in plus)), strict=True))
    back = here.speed_squared.xreplace(flipped).subs(escape.theta, -escape.theta)
    assert sp.expand(back - here.speed_squared) == 0


def test_refuses_several_heads():
    with pytest.raises(ValueError, match="`attention` must have one head; got 2"):
        escape.Escape(separate.model(dim=2, heads=2))
