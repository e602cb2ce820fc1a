"""Matrix problems whose rows share X: rays, ends and the reference problem, by hand, in many digits and by runs."""

import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from references import reference
from softmax_problems import QUARTERS, THREE, by_rows, matrix_problem, named, problem, product

import odesys
from fixedpoints.softmax_regression import ends, escape, interpolation, points, verdict
from odesys.simulation import descend, softmax_regression

R = sp.Rational

# --- rays
# ------------------------------------------------------------------------------------------------------------


def test_rays_of_two_rows_side_by_side():
    model = product([0, 4, 5], [THREE, THREE])
    # each as on the line: 1/9 - exp(-s)/3
    both = escape(model, [[1], [1]])
    assert (both.face, both.kind) == (((1, 3), (2, 3)), "vertex")
    assert (both.limit, both.rate, both.coefficient) == (R(2, 9), 1, -R(2, 3))
    # the other row stays at x = 0: f = (1, 1, 1)/3, L = (1/2)(1/9 + 1/9)
    one = escape(model, {"X_1_1": 1, "X_2_1": 0})
    assert (one.limit, one.rate, one.coefficient) == (R(2, 9), 1, -R(1, 3))
    assert one.limit_f == ((0, 0, 1), (R(1, 3),) * 3)
    assert str(one) == (
        "along (1, 0) to the face of entries (1, 3), (2, 1), (2, 2), (2, 3) "
        "the loss goes to 2/9 like exp(-1 s) and rises: repels"
    )


def test_first_orders_that_cancel_leave_the_second():
    # f = (e, 1 - e), e ~ exp(-s): (1/4 - e)^2 + (1/4 + e)^2 = 1/8 + 2 e^2
    ray = escape(matrix_problem([[1], [1]], [[0], [1]], [QUARTERS, ["-1/4", "5/4"]]), [1])
    assert (ray.limit, ray.rate, ray.coefficient, ray.attracts) == (R(1, 8), 2, 2, True)


def test_a_matrix_along_a_flat_direction():
    ray = escape(named("M1"), [[1, 0], [5, 0]])
    # P = 1/2 everywhere: (1/2) 2 (1/4)^2
    assert (ray.limit, ray.coefficient) == (R(1, 16), 0)


def digits_of_the_loss(model, s, v, start):
    """The definition of the loss at start + s v, to the working precision of mpmath."""

    def number(value):
        return mp.mpf(value.p) / value.q

    X = mp.matrix(*model.shape)
    for k, l in np.ndindex(model.shape):
        X[k, l] = number(start[k][l]) + s * v[k][l]
    Z, total = mp.matrix(model.A1.tolist()) * X * mp.matrix(model.A2.tolist()).T, mp.mpf(0)
    for j in range(model.B.rows):
        u = [mp.exp(Z[j, i]) for i in range(model.B.cols)]
        alpha = mp.fsum(u)
        loss = mp.fsum((p - alpha * number(b)) ** 2 for p, b in zip(u, model.B.row(j), strict=True)) / 2
        total += loss if model.normalization == "rescaled" else loss / alpha**2
    return total


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
@pytest.mark.parametrize("v", [((1, 0), (0, 0)), ((0, 1), (1, 0)), ((-1, 1), (2, 1)), ((1, -2), (-2, 3))])
def test_leading_terms_are_those_of_the_loss_far_out(v, loss):
    B = [["1/2", "1/8", "3/8"], ["1/3", "1/3", "1/3"], ["-1/4", "3/4", "1/2"]]
    model = matrix_problem([[1, 2], [0, 1], [1, -1]], [[1, 0], [1, 3], [0, -2]], B, loss)
    start = ((R(1, 3), R(-2, 5)), (R(1, 7), R(0)))
    ray = escape(model, v, start)
    limit = sp.S.Zero if ray.limit == sp.oo else ray.limit
    with mp.workdps(150):
        limit, factor = (mp.mpf(str(sp.N(value, 140))) for value in (limit, ray.coefficient))
        rest = digits_of_the_loss(model, 40, v, start) - limit
        # the next term is exp(-40) below, the digits of the limit end at 1e-140
        assert abs(rest / (factor * mp.exp(-int(ray.rate) * 40)) - 1) < 1e-12


# --- coupled rows
# ----------------------------------------------------------------------------------------------------


def test_the_reference_problem_has_one_point_on_the_whole_plane():
    stops = points(named("M1"))
    assert stops.certificate.kind == "complete"
    assert {str(flat.expression) for flat in stops.flat} == {"X_1_1", "X_2_1"}
    (point,) = stops.points
    # log-odds of the rows: X_12 + 2 X_22 = log(1), X_22 = log(3)
    wanted = {"X_1_1": 0, "X_1_2": -2 * math.log(3), "X_2_1": 0, "X_2_2": math.log(3)}
    assert point.location == pytest.approx(wanted, rel=1e-15)
    assert point.enclosure["X_1_1"] == (0, 0)
    assert {k: float(v) for k, v in stops.interpolation.location.items()} == pytest.approx(wanted, rel=1e-15)
    # H = sum_j 2 (q_j (1 - q_j))^2 a_j a_j^T with a = (1, 2), (0, 1) and q = 1/2, 3/4
    hessian = np.outer([1, 2], [1, 2]) / 8 + np.outer([0, 1], [0, 1]) * 9 / 128
    assert sorted(-e.real for e in point.eigenvalues) == pytest.approx(np.linalg.eigvalsh(hessian), rel=1e-13)
    assert (stops.index_sum, stops.expected) == (1, 1)
    assert stops.witness == "all 8 ends at infinity repel"
    assert stops.losses == (0,)


def test_the_reference_run_ends_there():
    model, told = named("M1"), reference("softmax_regression")["trajectories"]["T8_M1_norm"]["traj"]
    start = {"X_1_1": 0.5, "X_1_2": 0.0, "X_2_1": -1 / 3, "X_2_2": 0.25}
    times = np.array([0.0, *(float(t) for t, _ in told), 1e4])
    run = odesys.solve(odesys.ODESystem(model.flow, {}), start, times, rtol=1e-10, atol=1e-12)
    at_fifty = [float(run[name][-2]) for name in start]
    assert at_fifty == pytest.approx([float(x) for x in told[-1][1]], rel=1e-8)
    assert verdict(model, at_fifty).kind == "moving"
    end = verdict(model, run)
    assert (end.kind, end.settled) == ("interpolation", True)
    assert end.point.location == pytest.approx({"X_1_2": -2 * math.log(3), "X_2_2": math.log(3)})


def test_descent_is_judged_in_the_shape_of_X():
    B = [[0.5, 0.5], [0.25, 0.75]]
    judge = softmax_regression.matrix([[1, 2], [0, 1]], [[1, 0], [1, 1]], B)
    start = np.array([[0.5, 0.0], [-1 / 3, 0.25]])
    assert verdict(named("M1"), descend(judge, start, rate=2.0, steps=3001, every=100)).settled
    # so large a step ends far out and stays
    stuck = verdict(named("M1"), descend(judge, start, rate=3e4, steps=201))
    assert stuck.kind == "plateau"


def test_an_end_where_two_rows_tie_at_once():
    # A_1 = x (0, 1), A_2 = 2 x (0, 1), A_3 = y (0, 1): along y the first two are left, with their own x
    B = [QUARTERS, ["1/3", "2/3"], ["1/2", "1/2"]]
    end = by_rows(matrix_problem([[1, 0], [2, 0], [0, 1]], [[0], [1]], B))[
        (1, 1), (1, 2), (2, 1), (2, 2), (3, 2)
    ]
    inside = points(matrix_problem([[1], [2]], [[0], [1]], B[:2]))
    (halt,), (point,) = end.halts, inside.points
    p = [1 / (1 + math.exp(-k * point.location["X_1_1"])) for k in (1, 2)]
    assert [f[1] for f in halt.f] == pytest.approx([*p, 1], rel=1e-14)
    assert halt.loss == pytest.approx(inside.losses[0] + 1 / 4, rel=1e-14)
    assert halt.slopes == {(3, 1): -1.0}  # b_2 - 1 - b_1
    assert halt.behaviour == "repels"


@pytest.mark.parametrize(
    ("gaps", "behaviour", "size"),
    [((1, 2), "repels", 1 / 2), ((2, 1), "attracts", 2 / 5), ((1, 1), "repels", 1 / 10)],
)
def test_the_smallest_gap_of_all_rows_decides(gaps, behaviour, size):
    # along (1, 0) D = -1/2 of part 1, +2/5 of part 2, which add at equal gaps; part 3 rests at log 3 all along
    first, second = gaps
    B = [QUARTERS, ["-3/5", "4/5"], QUARTERS]
    model = matrix_problem([[first, 0], [second, 0], [0, 1]], [[0], [1]], B)
    (halt,) = by_rows(model)[(1, 2), (2, 2), (3, 1), (3, 2)].halts
    assert halt.slopes == pytest.approx({(1, 1): -1 / 2, (2, 1): 2 / 5}, rel=1e-15)
    assert halt.behaviour == behaviour
    # the ray from part 3 at rest, with exact leading terms, says the same
    ray = escape(model, [1, 0], [0, R(float(sp.log(3)))])
    assert ray.attracts == (behaviour == "attracts")
    assert abs(ray.coefficient) == pytest.approx(size, rel=1e-15)


@pytest.mark.parametrize(("last", "behaviour"), [(QUARTERS, "repels"), (QUARTERS[::-1], "attracts")])
def test_losers_of_equal_gaps_weigh_what_the_rest_of_the_weights_makes_them(last, behaviour):
    # logits -x, x + y and y: f = exp(-s) and exp(-s - y), D = -1/2 and 2/5; y = log 3 or -log 3
    model = matrix_problem([[-1, 0], [1, 1], [0, 1]], [[0], [1]], [QUARTERS[::-1], ["-3/5", "4/5"], last])
    (halt,) = by_rows(model)[(1, 1), (2, 2), (3, 1), (3, 2)].halts
    assert halt.behaviour == behaviour
    y = float(sp.log(3)) * (1 if behaviour == "repels" else -1)
    ray = escape(model, [1, 0], [0, R(y)])
    assert ray.attracts == (behaviour == "attracts")
    assert float(ray.coefficient) == pytest.approx(-1 / 2 + 2 / 5 * math.exp(-y), rel=1e-14)


def test_a_row_that_meets_its_target_falls_at_twice_the_rate():
    # part 2 has b = e_2: its loss is exp(-2 second s), slower than the first order of part 1 only if 2 second < first
    def end(first, second):
        B = [QUARTERS, [0, 1], QUARTERS]
        model = matrix_problem([[first, 0], [second, 0], [0, 1]], [[0], [1]], B)
        return by_rows(model)[(1, 2), (2, 2), (3, 1), (3, 2)].behaviour

    assert end(1, 1) == "repels"
    assert end(3, 1) == "attracts"
    assert end(2, 1) == "undecided"


def test_a_one_hot_row_beside_another():
    # along (0, 1) all is met in the limit; at the corners next to it one row falls and the other rises
    stops = points(product([0, 1], [QUARTERS, [0, 1]]))
    found = by_rows(product([0, 1], [QUARTERS, [0, 1]]))
    met = found[(1, 1), (1, 2), (2, 2)]
    assert (met.behaviour, met.halts[0].loss) == ("attracts", pytest.approx(0, abs=1e-30))
    assert found[(1, 2), (2, 2)].behaviour == "undecided"
    assert stops.points == ()
    assert (stops.index_sum, stops.expected) == (0, None)
    told = verdict(product([0, 1], [QUARTERS, [0, 1]]), (math.log(3), 30.0))
    assert (told.kind, told.limit) == ("escape", pytest.approx(0, abs=1e-20))


def test_corners_that_attract_count_as_minima_at_infinity():
    # b_2 = 7/5 > 1 + b_j: D_j > 0 at corner 2, below zero at the others, and no edge at 2 has a halt
    stops = points(problem([[0, 0], [1, 0], [0, 1]], ["-2/5", "7/5", "-1/5"]))
    assert stops.points == ()
    assert stops.certificate.kind == "complete"
    assert (stops.index_sum, stops.expected) == (0, 0)
    assert stops.witness == "the flow leaves for the faces of rows [(2,)], and every other end repels"


@pytest.mark.slow
def test_algebra_and_infinity_agree_on_random_matrix_problems():
    # two weights of one column or of one row, two or three rows of targets, some with a dominant entry beyond 1
    draw, judged = np.random.default_rng(3), 0
    for _ in range(40):
        tall, n = bool(draw.integers(0, 2)), int(draw.integers(2, 4))
        m = int(draw.integers(2, 4)) if tall else 2
        B = [[R(int(k), 10) for k in draw.integers(-3, 7, size=n)] for _ in range(m)]
        for row in B:
            row[int(draw.integers(0, n))] += 1 - sum(row) if draw.integers(0, 2) else R(1)
        A1 = draw.integers(-2, 3, size=(m, 2 if tall else 1)).tolist()
        A2 = draw.integers(-1, 3, size=(n, 1 if tall else 2)).tolist()
        model = matrix_problem(A1, A2, B, ("normalized", "rescaled")[int(draw.integers(0, 4) == 0)])
        try:
            stops = points(model)
        except ValueError:  # all directions are flat
            continue
        assert stops.certificate.kind == "complete", model
        judged += stops.expected is not None and stops.index_sum is not None
    assert judged > 10


# --- interpolation and refusals
# --------------------------------------------------------------------------------------


def test_rounded_matrices_have_a_numeric_interpolation():
    # 0.1 + 0.9 as rationals is not 1; log-odds log(9) and log(7/3)
    found = interpolation(product([0, 1], [[0.1, 0.9], [0.3, 0.7]]))
    assert not found.exact
    assert found.location == pytest.approx({"X_1_1": math.log(9), "X_2_1": math.log(7 / 3)}, rel=1e-14)
    assert 0 < found.gap < 1e-16


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, 3], "`direction` must have d = 4 entries; got 3"),
        ([[1, 2]], r"`direction` must have the shape \(2, 2\) of the weights; got rows of \[2\] entries"),
        ([[1, 2], [3]], r"of the weights; got rows of \[2, 1\] entries"),
        ({"X_1_1": 1}, r"must give exactly \['X_1_1', 'X_1_2', 'X_2_1', 'X_2_2'\]; got \['X_1_1'\]"),
        (np.zeros((2, 2)), "`direction` must not be zero"),
        ([[1, float("nan")], [0, 0]], "`direction` must hold finite rational numbers; got nan"),
    ],
)
def test_faulty_directions_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        escape(named("M1"), values)


def test_refusals():
    from symbolic.softmax_regression import matrix

    with pytest.raises(ValueError, match=r"have no numbers. Give them with `at\(A1, A2, B\)`"):
        points(matrix.model(n=2, d=1))
    with pytest.raises(
        ValueError, match=r"The data of `at\(A1, A2, B\)` must be rational .*; got \[sqrt\(2\)\]"
    ):
        points(product([0, sp.sqrt(2)], [QUARTERS]))
    with pytest.raises(ValueError, match="every direction is flat"):
        points(product([1, 1], [QUARTERS]))
    with pytest.raises(ValueError, match="every point is a fixed point"):
        verdict(product([1, 1], [QUARTERS]), [0.5])
    with pytest.raises(ValueError, match="Only the normalized loss is decided face by face"):
        ends(named("M1", "rescaled"))
