"""Infinity, face by face: vertices repel, a face that attracts, targets outside the simplex and on its boundary."""

import pytest
import sympy as sp
from references import reference
from softmax_problems import named, problem

from fixedpoints.softmax_regression import NoHullError, ends


def by_rows(model):
    return {end.rows: end for end in ends(model)}


def test_every_face_of_two_minima_repels():
    # four corners, so four edges; D_j = b_k - 1 - b_j at the corner k
    found = by_rows(named("D2a"))
    assert {end.behaviour for end in found.values()} == {"repels"}
    assert sorted(len(rows) for rows in found) == [1, 1, 1, 1, 2, 2, 2, 2]
    (corner,) = found[(3,)].halts
    assert corner.slopes == {1: -0.75, 2: -0.75, 4: -1.0}
    # the edge of rows 1 and 3 is at rest where f_1 - b_1 = f_3 - b_3: f = (3, 5)/8; D_2 = -1/8 - 1/4, D_4 = -3/8 - 1/4
    (edge,) = found[(1, 3)].halts
    assert edge.f == pytest.approx((3 / 8, 0, 5 / 8, 0), rel=1e-15)
    assert edge.slopes == pytest.approx({2: -3 / 8, 4: -5 / 8}, rel=1e-15)


def test_a_face_attracts_though_the_target_lies_in_the_simplex():
    told, found = reference("softmax_numbers")["T6_face"], by_rows(named("T6"))
    assert {rows for rows, end in found.items() if end.behaviour != "repels"} == {(1, 2, 3, 4)}
    end = found[1, 2, 3, 4]
    (halt,) = end.halts
    assert end.complete
    assert halt.is_minimum
    assert halt.behaviour == "attracts"
    assert halt.loss == pytest.approx(float(told["L_inf"]), rel=1e-14)
    assert halt.slopes[5] == pytest.approx(float(told["margin_minus_b5_minus_fc"]), rel=1e-12)
    assert end.direction[0] == 0 < end.direction[1]


def test_equal_rows_share_a_vertex():
    # rows 1 and 2 are both (0, 0): f = (1/2, 1/2), <f, c> = 1/2, D_5 = -1/100 - 1/2
    (halt,) = by_rows(named("T6"))[1, 2].halts
    assert halt.f == (0.5, 0.5, 0, 0, 0)
    assert halt.slopes[5] == pytest.approx(-0.51, rel=1e-15)


def test_one_hot_targets_and_targets_outside_the_simplex_attract_at_a_vertex():
    one_hot = by_rows(problem([[0], [1]], [0, 1]))
    assert one_hot[(2,)].behaviour == "attracts"
    assert one_hot[(2,)].halts[0].loss == 0
    assert one_hot[(1,)].behaviour == "repels"
    outside = by_rows(problem([[0], [1]], ["-3/5", "4/5"]))
    assert outside[(2,)].behaviour == "attracts"
    # f = e_2: L = (9/25 + 1/25)/2
    assert outside[(2,)].halts[0].loss == pytest.approx(0.2, rel=1e-15)


def test_a_vertex_may_do_both():
    # corner 2: D_1 = 4/5 - 1 + 1/2 > 0 and D_3 = 4/5 - 1 - 7/10 < 0
    found = by_rows(problem([[0, 0], [1, 0], [0, 1]], ["-1/2", "4/5", "7/10"]))
    assert found[(2,)].behaviour == "mixed"


def test_on_a_line_the_nearest_row_decides_and_then_the_second_order():
    # at row 3: D_2 = 1 - 1 - 1/2 and D_1 = 1 - 1 + 1/2, but f_1 = exp(-5 x) is smaller than f_2 = exp(-x)
    (halt,) = by_rows(problem([[0], [4], [5]], ["-1/2", "1/2", 1]))[(3,)].halts
    assert halt.slopes == {1: 0.5, 2: -0.5}
    assert halt.behaviour == "repels"
    # D_1 = 1/2 - 1 + 1/2 = 0: the loss is 1/4 + exp(-2 x)
    assert by_rows(problem([[0], [1]], ["-1/2", "1/2"]))[(2,)].behaviour == "attracts"


def test_slopes_that_vanish_leave_a_quadratic_change():
    # rows 1 and 2 are equal: f = (1, 1)/2, D_3 = -0 - (1 - 1)/2 = 0 for b = (4/5, 1/5, 0); D_4 = -b_4 likewise
    rows = [[0, 0], [0, 0], [1, 0], [0, 1]]
    assert by_rows(problem(rows, ["4/5", "1/5", 0, 0]))[1, 2].behaviour == "attracts"
    # D_3 = 0 and D_4 = -1/10 - (1 - 9/10)/2
    assert by_rows(problem(rows, ["4/5", "1/10", "-1/20", "1/10"]))[1, 2].behaviour == "undecided"
    # D_3 = 0 and D_4 = 1/10 - 1/20
    assert by_rows(problem(rows, ["4/5", "1/10", "-1/20", "-1/10"]))[1, 2].behaviour == "attracts"


def test_an_edge_that_holds_the_target_attracts():
    found = by_rows(problem([[0, 0], [1, 0], [0, 1]], ["1/4", "3/4", 0]))
    assert found[1, 2].behaviour == "attracts"
    assert found[1, 2].halts[0].loss == pytest.approx(0, abs=1e-30)
    assert {end.behaviour for rows, end in found.items() if rows != (1, 2)} == {"repels"}


def test_flat_directions_are_left_out():
    found = by_rows(named("V5"))
    assert set(found) == {(1,), (3,)}
    assert found[(3,)].direction == (0, 1)


def test_refusals():
    cube = problem([[0, 0, 0], *sp.eye(3).tolist()], ["1/4"] * 4)
    with pytest.raises(NoHullError, match=r"for one and two weights.*; this has 3"):
        ends(cube)
    with pytest.raises(ValueError, match="Only the normalized loss is decided face by face; use `escape`"):
        ends(named("D1a", "rescaled"))
    with pytest.raises(NoHullError, match="this has 0"):
        ends(problem([[1], [1]], ["1/2", "1/2"]))
