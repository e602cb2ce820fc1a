"""The rescaled loss as a sum of exponentials: what falls with the flow, Euler's identity, what is met on lines."""

import math

import numpy as np
import pytest
import sympy as sp
from softmax_problems import matrix_problem, named, problem, product

import odesys
from fixedpoints.softmax_regression import points, verdict
from fixedpoints.softmax_regression.falling import exponentials, limit_of_falling
from fixedpoints.softmax_regression.growth import growth, unmet_growth
from fixedpoints.softmax_regression.problem import joint

R = sp.Rational
HALVES, THIRDS = ["1/2", "1/2"], ["1/3", "2/3"]


def rescaled(A, b):
    return joint(problem(A, b, "rescaled"))


def test_exponentials_of_the_loss():
    # (u_1 - u_2)^2/4 with u = exp(x), exp(2 x)
    assert exponentials(rescaled([[1], [2]], HALVES)) == {(2,): R(1, 4), (3,): -R(1, 2), (4,): R(1, 4)}
    # b = e_1: u_1 cancels, (u_2^2 + u_2^2)/2
    assert exponentials(rescaled([[1], [2]], [1, 0])) == {(4,): 1}
    # equal exponents of two rows add up: twice the first
    double = joint(matrix_problem([[1], [1]], [[1], [2]], [HALVES, HALVES], "rescaled"))
    assert exponentials(double) == {(2,): R(1, 2), (3,): -1, (4,): R(1, 2)}


@pytest.mark.parametrize("seed", range(3))
def test_exponentials_sum_to_the_loss(seed):
    draw = np.random.default_rng(seed)
    A1, A2 = (draw.integers(-2, 3, size=(3, columns)).tolist() for columns in (2, 1))
    model = matrix_problem(A1, A2, [["1/6", "1/3", "1/2"]] * 3, "rescaled")
    x = draw.normal(size=2)
    total = sum(
        float(C) * math.exp(np.dot([float(k) for k in e], x)) for e, C in exponentials(joint(model)).items()
    )
    assert total == pytest.approx(float(model.loss.subs(dict(zip(model.weights, x, strict=True)))), rel=1e-12)


class TestFalling:
    def test_one_hot_targets_leave_the_losers_alone(self):
        # L = ((u_2 + u_3)^2 + u_2^2 + u_3^2)/2 with u_2 = exp(y), u_3 = exp(2 y): whatever u_1 does
        model = problem([[1, 0], [0, 1], [0, 2]], [1, 0, 0], "rescaled")
        told = verdict(model, (1.0, -8.0))
        assert (told.kind, told.limit) == ("escape", 0)
        run = odesys.solve(odesys.ODESystem(model.flow, {}), {"x_1": 1.0, "x_2": -8.0}, np.array([0, 1e12]))
        # y' = -2 exp(2 y): exp(-2 y) grows by 4 t; x_1 does not move
        assert float(run["x_2"][-1]) == pytest.approx(-math.log(4e12) / 2, rel=1e-6)
        assert float(run["x_1"][-1]) == 1

    def test_a_constant_row_is_the_limit(self):
        # the third row has u = (1, 1), r = 1/3, -1/3: 1/9
        model = matrix_problem([[1, 0], [0, 1], [0, 0]], [[1], [2]], [HALVES, HALVES, THIRDS], "rescaled")
        for x in ((-20, -20), (-20, 0), (-10, -30)):
            told = verdict(model, x)
            assert told.kind == "escape"
            assert told.limit == pytest.approx(1 / 9, rel=1e-15)

    def test_rows_that_stay_and_rows_that_go(self):
        # u = 1, exp(4 x), exp(5 x), b = (1/3, 0, 2/3): 4/9 + 2/9 exp(4 x) + ... for each
        told = verdict(product([0, 4, 5], [["1/3", 0, "2/3"]] * 2, "rescaled"), (-8.0, -9.0))
        assert (told.kind, told.limit) == ("escape", pytest.approx(8 / 9, rel=1e-15))

    def test_a_term_that_rises_proves_nothing(self):
        # one-hot rows: exp(2 x) + exp(-2 x)
        it = joint(matrix_problem([[1], [-1]], [[0], [1]], [[1, 0]] * 2, "rescaled"))
        assert exponentials(it) == {(2,): 1, (-2,): 1}
        assert limit_of_falling(it, sp.Matrix([-1]), sp.Matrix([-20])) is None

    def test_a_negative_term_that_leads_proves_nothing(self):
        # b = (1, 1/2): r = -u_2, (u_2 - u_1)/2, so that 5/8 u_2^2 - u_1 u_2/4 + u_1^2/8: the negative one follows
        it = rescaled([[2], [1]], [1, "1/2"])
        assert limit_of_falling(it, sp.Matrix([-1]), sp.Matrix([-20])) == 0
        # b = (4/5, 2/5): r = 1/5 - 4/5 u, -2/5 + 3/5 u, so that 1/10 - 2/5 u + 1/2 u^2: the negative one leads
        assert exponentials(rescaled([[0], [1]], ["4/5", "2/5"]))[1,] < 0
        assert (
            limit_of_falling(rescaled([[0], [1]], ["4/5", "2/5"]), sp.Matrix([-1]), sp.Matrix([-20])) is None
        )

    def test_terms_that_lift_each_other_prove_nothing(self):
        # exponents (2, 0) and (-2, 2): as one falls, the other rises; (2, 0) and (2, 2) fall together
        def told(second):
            it = joint(matrix_problem([[1, 0], [second, 1]], [[0], [1]], [[1, 0]] * 2, "rescaled"))
            y = sp.Matrix([-20, -40])
            return limit_of_falling(it, y, y)

        assert told(-1) is None
        assert told(1) == 0

    def test_what_rests_takes_its_directions_away(self):
        # rows 2 and 3 fall like exp(y) in x + y and y - 3 x, whose product is negative; row 1 holds x at 0
        model = matrix_problem([[1, 0], [1, 1], [-3, 1]], [[1], [2]], [HALVES] * 3, "rescaled")
        told = verdict(model, (0.0, -20.0))
        assert (told.kind, told.limit) == ("escape", 0)
        run = odesys.solve(
            odesys.ODESystem(model.flow, {}),
            {"X_1_1": 0.0, "X_2_1": -20.0},
            np.array([0, 1e20]),
            method="Radau",
        )
        # y' = -exp(2 y), both (1/4) exp(2 y) to leading order: exp(-2 y) grows by 2 t
        assert float(run["X_2_1"][-1]) == pytest.approx(-math.log(2e20) / 2, rel=1e-4)
        assert float(run["X_1_1"][-1]) == pytest.approx(0, abs=1e-6)


class TestEuler:
    def test_directions_of_growth(self):
        # A_p v = t_p 1: A2 (1/2, 0) = 1 turned round, t = 2 and 1
        it = joint(matrix_problem([[-2], [-1]], [[2, 1], [2, 2]], [HALVES] * 2, "rescaled"))
        v = growth(it)
        levels = [set(A * v) for A in it.blocks]
        assert [len(t) for t in levels] == [1, 1]
        assert all(min(t) > 0 for t in levels)
        # one row up, one down; no common level
        assert growth(joint(matrix_problem([[1], [-1]], [[1], [1]], [HALVES] * 2, "rescaled"))) is None
        assert growth(joint(named("D2a", "rescaled"))) is None

    def test_directions_that_several_rows_must_share(self):
        # t = A1 w > 0 for 10/7 w_1 < w_2 < 3 w_1, which the sum of the rows does not satisfy
        A1 = [[3, -1], [-10, 7]]
        it = joint(matrix_problem(A1, [[1], [1]], [HALVES] * 2, "rescaled"))
        assert all(min(A * growth(it)) > 0 for A in it.blocks)

    @pytest.mark.parametrize("x", [(0.0, 0.0), (3.0, -2.0), (-30.0, 5.0)])
    def test_escape_from_everywhere(self, x):
        told = verdict(named("V5", "rescaled"), x)
        assert (told.kind, told.limit, told.ray.attracts) == ("escape", 0, True)
        assert "by Euler's identity" in told.sentence

    def test_nothing_stops_and_infinity_says_so(self):
        stops = points(named("V5", "rescaled"))
        assert (stops.points, stops.index_sum, stops.expected) == ((), 0, 0)
        # four weights, where no end is enumerated
        B = [["1/4", "3/4"], [1, 0]]
        stops = points(matrix_problem([[1, 2], [0, 1]], [[1, 0], [1, 1]], B, "rescaled"))
        assert (stops.points, stops.index_sum, stops.expected) == ((), 0, 0)

    def test_what_can_be_met_is_not_forced_away(self):
        met = joint(named("M1", "rescaled"))
        # A2 e_1 = 1, so that X = w e_1^T raises row j of Z by (A1 w)_j, and A1 w = (w_1 + 2 w_2, w_2).
        first, second, third, fourth = growth(met)
        assert (second, fourth) == (0, 0)
        assert third > 0
        assert first + 2 * third > 0
        assert unmet_growth(met) is None
        stops = points(named("M1", "rescaled"))
        assert [component.dimension for component in stops.found.components] == [2]
        assert (stops.index_sum, stops.expected) == (None, None)

    def test_the_loss_keeps_below_its_bound(self):
        # 1/(1/L + 4 t^2 tau/|v|^2) along a run of two rows, t the smaller level
        model = matrix_problem([[-2], [-1]], [[2, 1], [2, 2]], [[0, 1], THIRDS], "rescaled")
        v = growth(joint(model))
        t = float(min(min(A * v) for A in joint(model).blocks))
        times = np.array([0, 1, 10, 1e3, 1e6])
        run = odesys.solve(odesys.ODESystem(model.flow, {}), {"X_1_1": 0.2, "X_1_2": -0.1}, times)
        losses = [float(model.loss.subs({x: float(run[x.name][k]) for x in model.weights})) for k in range(5)]
        bound = 1 / (1 / losses[0] + 4 * t**2 * times / float(v.dot(v)))
        assert np.all(losses[1:] < bound[1:])
        assert verdict(model, run).kind == "escape"


class TestMetOnALine:
    #: f = (1, 2, 4)/7 at x_2 = log 2, whatever x_1 is.
    model = problem([[1, 0], [1, 1], [1, 2]], ["1/7", "2/7", "4/7"], "rescaled")

    @pytest.mark.parametrize("first", [-5.0, 0.0, 1.5])
    def test_anywhere_on_it(self, first):
        told = verdict(self.model, (first, math.log(2)))
        assert (told.kind, told.settled, told.point) == ("interpolation", True, None)
        assert told.distance < 1e-15
        assert "f = b on an affine set of dimension 1" in told.sentence

    def test_beside_it(self):
        assert not verdict(self.model, (0.0, math.log(2) + 1e-4)).settled
        assert verdict(self.model, (0.0, math.log(2) + 1e-4), tolerance=1e-3).settled

    def test_a_loss_that_vanishes_everywhere(self):
        # equal rows, b = (1/2, 1/2): Lr = 0 for all x, no escape
        assert verdict(problem([[1], [1]], HALVES, "rescaled"), [0.3]).kind == "interpolation"

    def test_a_run_of_a_matrix(self):
        model = named("M1", "rescaled")
        start = {"X_1_1": 1.0, "X_1_2": -2.0, "X_2_1": 0.0, "X_2_2": 1.0}
        run = odesys.solve(
            odesys.ODESystem(model.flow, {}), start, np.array([0.0, 1e3]), rtol=1e-9, atol=1e-11
        )
        told = verdict(model, run)
        assert told.kind == "interpolation"
        assert "dimension 2" in told.sentence
