"""Losses along rays: limits, rates and signs by hand and in many digits; refusals."""

import math

import mpmath as mp
import pytest
import sympy as sp
from references import reference
from softmax_problems import named, problem

from fixedpoints.softmax_regression import escape
from symbolic.softmax_regression import vector

t = sp.Symbol("t", positive=True)
R = sp.Rational


def test_normalized_vertices_repel():
    # f -> e_3: L -> (1/9 + 1/9)/2, D_2 = b_3 - 1 - b_2 = -1/3; f -> e_1: L -> (4/9 + 4/9)/2, D_2 = b_1 - 1 - b_2 = -2/3
    right, left = (escape(named("D1a"), [sign]) for sign in (1, -1))
    assert (right.face, right.limit, right.rate, right.coefficient) == ((3,), R(1, 9), 1, -R(1, 3))
    assert (left.face, left.limit, left.rate, left.coefficient) == ((1,), R(4, 9), 4, -R(2, 3))
    assert not right.attracts
    assert not left.attracts
    assert (
        str(right) == "along (1) to the vertex of row 3 the loss goes to 1/9 like exp(-1 s) and rises: repels"
    )


def test_the_same_data_rescaled_attract_at_minus_infinity():
    # u -> (1, 0, 0), r = (2/3, 0, -2/3), <b, r> = -2/9: Lr -> 4/9, and row 2 has the slope r_2 - <b, r> = 2/9
    left, right = (escape(named("D1a", "rescaled"), [sign]) for sign in (-1, 1))
    assert (left.limit, left.rate, left.coefficient, left.attracts) == (R(4, 9), 4, R(2, 9), True)
    assert (right.limit, right.rate, right.coefficient, right.attracts) == (sp.oo, -10, R(1, 9), False)
    assert "grows like exp(10 s): repels" in str(right)


@pytest.mark.parametrize("q", [R(1, 2), R(3, 4)])
def test_law_of_the_closed_form_model(q):
    # A = (1, 2): Lr = w^2 ((1-q) w - q)^2 -> q^2 w^2, so that -x ~ log(4 q^2 t)/2
    ray = escape(problem([[1], [2]], [1 - q, q], "rescaled"), [-1])
    assert (ray.limit, ray.rate, ray.coefficient) == (0, 2, q**2)
    assert sp.simplify(ray.law - sp.log(4 * q**2 * t) / 2) == 0


def test_law_at_a_one_hot_target_and_at_a_vertex_outside_the_simplex():
    # A = (0, g), b = e_2: x ~ log(4 g^2 t)/(2 g); b = (-3/5, 4/5): x ~ log(g^2 m t)/g, m = b_2 - b_1 - 1
    one_hot = escape(problem([[0], [3]], [0, 1]), [1])
    outside = escape(problem([[0], [3]], ["-3/5", "4/5"]), [1])
    assert sp.simplify(one_hot.law - sp.log(36 * t) / 6) == 0
    assert sp.simplify(outside.law - sp.log(9 * R(2, 5) * t) / 3) == 0


def test_a_vanishing_slope_leaves_the_second_order():
    # b = (-1/2, 1/2): D_1 = b_2 - 1 - b_1 = 0, and with f_1 = p the loss is 1/4 + p^2
    ray = escape(problem([[0], [1]], ["-1/2", "1/2"]), [1])
    assert (ray.limit, ray.rate, ray.coefficient, ray.attracts) == (R(1, 4), 2, 1, True)


def test_a_shift_of_all_logits_is_flat():
    # A e_1 = 1: f stays (1, 1, 1)/3, L = (1/36 + 1/36)/2
    ray = escape(named("V5"), [1, 0])
    assert (ray.face, ray.limit, ray.coefficient, ray.attracts) == ((1, 2, 3), R(1, 36), 0, False)
    assert "stays 1/36" in str(ray)
    with pytest.raises(ValueError, match="no law of escape"):
        _ = ray.law


def test_face_of_the_long_run():
    # the flow runs at x_1* towards x_2 = oo: exp(x_2) grows at the rate of the coefficient (rate 1, |v| = 1)
    told = reference("softmax_numbers")
    ray = escape(named("T6"), [0, 1], [float(told["T6_face"]["x1_star"]), 0])
    assert ray.face == (1, 2, 3, 4)
    assert ray.attracts
    assert float(ray.limit) == pytest.approx(float(told["T6_face"]["L_inf"]), rel=1e-12)
    (early, _, x), (late, _, y) = told["T6_long"]["rows"][-2:]
    growth = (math.exp(y) - math.exp(x)) / (late - early)
    assert float(ray.coefficient) == pytest.approx(growth, rel=1e-3)  # the next order, exp(-9.3)


def loss_in_digits(model, s, v, start):
    with mp.workdps(150):
        x = [mp.mpf(p.p) / p.q + s * mp.mpf(q.p) / q.q for p, q in zip(start, v, strict=True)]
        z = [mp.fdot([mp.mpf(int(a)) for a in model.A.row(i)], x) for i in range(model.A.rows)]
        b, u = [mp.mpf(p.p) / p.q for p in model.b], [mp.exp(value) for value in z]
        r = mp.fsum((p - mp.fsum(u) * q) ** 2 for p, q in zip(u, b, strict=True)) / 2
        return r if model.normalization == "rescaled" else r / mp.fsum(u) ** 2


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
@pytest.mark.parametrize("v", [(1, 0), (0, 1), (-1, 1), (1, -2), (-3, -1)])
def test_leading_terms_are_those_of_the_loss_far_out(v, loss):
    model = problem([[1, 2], [1, -3], [-2, 1], [0, -1]], ["1/2", "1/8", "-1/8", "3/8"], loss)
    start = (R(1, 3), R(-2, 5))
    ray = escape(model, v, start)
    far = 30
    with mp.workdps(150):
        got = loss_in_digits(model, far, [R(p) for p in v], start)
        limit = sp.S.Zero if ray.limit == sp.oo else ray.limit
        limit, factor = (mp.mpf(str(sp.N(value, 140))) for value in (limit, ray.coefficient))
        rest = got - limit
        assert (
            abs(rest / (factor * mp.exp(-int(ray.rate) * far)) - 1) < 1e-10
        )  # the next term is exp(-30) below


def test_floats_are_the_rationals_that_they_are():
    by_name = escape(named("D1a"), {"x_1": 0.5}, {"x_1": 0.25})
    assert (by_name.direction, by_name.start, by_name.rate) == ((R(1, 2),), (R(1, 4),), R(1, 2))


@pytest.mark.parametrize(
    ("direction", "start", "message"),
    [
        ([0], None, "`direction` must not be zero"),
        ([1, 0], None, "`direction` must have d = 1 entries; got 2"),
        ([1], [0, 0], "`start` must have d = 1 entries; got 2"),
        ([float("nan")], None, "`direction` must hold finite rational numbers; got nan"),
        ([1], [float("inf")], "`start` must hold finite rational numbers; got inf"),
        ([sp.sqrt(2)], None, "`direction` must hold finite rational numbers"),
        ({"y": 1}, None, r"`direction` must give exactly \['x_1'\]; got \['y'\]"),
    ],
)
def test_faulty_rays_are_refused(direction, start, message):
    with pytest.raises(ValueError, match=message):
        escape(named("D1a"), direction, start)


def test_models_without_numbers_or_of_other_losses_are_refused():
    with pytest.raises(TypeError, match="of a vector or matrix model with numbers; got list"):
        escape([[1], [2]], [1])
    with pytest.raises(ValueError, match=r"The parameters \['A_1_1', .* have no numbers"):
        escape(vector.model(n=2, d=1), [1])
    cosh = vector.model(n=2, d=1, loss="rescaled", activation="cosh").at([[1], [2]], [R(1, 2), R(1, 2)])
    with pytest.raises(ValueError, match="this model has cosh"):
        escape(cosh, [1])
    ridge = vector.model(n=2, d=1, ridge=True).at([[1], [2]], [R(1, 2), R(1, 2)], [1, 1])
    with pytest.raises(ValueError, match="and a ridge term"):
        escape(ridge, [1])
    with pytest.raises(ValueError, match=r"must be rational for exact answers; got \[sqrt\(2\)\]"):
        escape(problem([[0], [sp.sqrt(2)]], ["1/2", "1/2"]), [1])
