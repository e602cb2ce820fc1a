"""Matrix problems known by hand: one row is the vector problem, rows that decouple are products of problems."""

import math

import numpy as np
import pytest
import sympy as sp
from references import reference
from softmax_problems import (
    QUARTERS,
    THREE,
    by_rows,
    matrix_problem,
    named,
    one_row,
    places,
    problem,
    product,
)

from fixedpoints.softmax_regression import NoHullError, ends, escape, points, verdict

R = sp.Rational

# --- one row
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "loss"), [("D1a", "normalized"), ("D1a", "rescaled"), ("D2a", "normalized")]
)
def test_one_row_stops_where_the_vector_problem_does(name, loss):
    ours, theirs = points(one_row(name, loss)), points(named(name, loss))
    assert [list(p.location) for p in ours.points] == [
        [x.replace("x_", "X_1_") for x in p.location] for p in theirs.points
    ]
    np.testing.assert_array_equal(places(ours), places(theirs))
    assert [p.stability for p in ours.points] == [p.stability for p in theirs.points]
    assert (ours.losses, ours.smallest) == (theirs.losses, theirs.smallest)
    assert (ours.index_sum, ours.expected) == (theirs.index_sum, theirs.expected)
    assert ours.certificate == theirs.certificate or ours.certificate.kind == "complete"


@pytest.mark.parametrize("name", ["D2a", "T6"])
def test_one_row_has_the_ends_of_the_vector_problem(name):
    ours, theirs = ends(one_row(name)), ends(named(name))
    for one, other in zip(ours, theirs, strict=True):
        assert one.rows == tuple((1, row) for row in other.rows)
        assert (one.direction, one.dimension, one.behaviour) == (
            other.direction,
            other.dimension,
            other.behaviour,
        )
        for halt, twin in zip(one.halts, other.halts, strict=True):
            assert halt.f == (twin.f,)
            assert halt.slopes == {(1, j): slope for j, slope in twin.slopes.items()}


def test_one_row_escapes_as_the_vector_problem_does():
    told = reference("softmax_numbers")["T6_face"]
    _, *end = reference("softmax_numbers")["T6_long"]["rows"][-1]
    ours, theirs = verdict(one_row("T6"), [end]), verdict(named("T6"), end)
    assert (ours.kind, ours.limit) == (theirs.kind, theirs.limit)
    assert ours.limit == pytest.approx(float(told["L_inf"]), rel=1e-12)
    assert ours.ray.face == ((1, 1), (1, 2), (1, 3), (1, 4))


def test_a_row_that_is_given_twice_doubles_the_loss():
    A, b = [[2, 0], [1, 2], [-3, -3], [2, 1]], ["1/8", "1/8", "3/8", "3/8"]
    twice, once = points(matrix_problem([[1], [1]], A, [b, b])), points(problem(A, b))
    np.testing.assert_allclose(places(twice), places(once), rtol=1e-14)
    assert twice.losses == pytest.approx([2 * loss for loss in once.losses], rel=1e-14)
    for point, single in zip(twice.points, once.points, strict=True):
        assert np.real(point.eigenvalues) == pytest.approx(2 * np.real(single.eigenvalues), rel=1e-12)
    assert (twice.index_sum, twice.expected) == (1, 1)


# --- decoupled rows
# --------------------------------------------------------------------------------------------------


def test_two_rows_side_by_side_stop_at_all_pairs():
    # the independent roots of D1a, 50 digits
    told = reference("softmax_numbers")["fixed_points"]["D1a"]["normalized"]["fixed_points"]
    line = [(float(p["x"]), float(p["L"]), float(p["hess"])) for p in told]
    stops = points(product([0, 4, 5], [THREE, THREE]))
    assert stops.certificate.kind == "complete"
    pairs = [(one, other) for one in line for other in line]
    np.testing.assert_allclose(places(stops), [(p[0], q[0]) for p, q in pairs], rtol=1e-14)
    assert stops.losses == pytest.approx([p[1] + q[1] for p, q in pairs], rel=1e-14)
    for point, (p, q) in zip(stops.points, pairs, strict=True):
        assert sorted(-e.real for e in point.eigenvalues) == pytest.approx(sorted([p[2], q[2]]), rel=1e-12)
    kinds = [point.dims[0] for point in stops.points]
    assert [kinds.count(k) for k in range(3)] == [4, 4, 1]  # minima, saddles, the maximum
    assert (stops.index_sum, stops.expected) == (1, 1)
    assert stops.witness == "all 8 ends at infinity repel"
    assert "the target has the entries [0, 0]" in stops.no_interpolation


def test_ends_of_two_rows_side_by_side():
    # four corners of a square and its sides; on a side one row is saturated and the other at one of its three points
    told = reference("softmax_numbers")["fixed_points"]["D1a"]["normalized"]["fixed_points"]
    found = by_rows(product([0, 4, 5], [THREE, THREE]))
    assert len(found) == 8
    corner = found[(1, 3), (2, 1)]
    assert (corner.direction, corner.dimension) == ((1, -1), 0)
    (halt,) = corner.halts
    # f = e_3 and e_1: (1/2)(1/9 + 1/9) + (1/2)(4/9 + 4/9); D_j = b_k - 1 - b_j
    assert halt.f == ((0, 0, 1), (1, 0, 0))
    assert halt.loss == pytest.approx(5 / 9, rel=1e-15)
    assert halt.slopes == pytest.approx(
        {(1, 1): -2 / 3, (1, 2): -1 / 3, (2, 2): -2 / 3, (2, 3): -4 / 3}, rel=1e-15
    )
    side = found[(1, 3), (2, 1), (2, 2), (2, 3)]
    assert (side.direction, side.dimension, side.complete) == ((1, 0), 1, True)
    assert [halt.loss for halt in side.halts] == pytest.approx(
        [1 / 9 + float(p["L"]) for p in told], rel=1e-14
    )
    assert [halt.is_minimum for halt in side.halts] == [True, False, True]
    assert {end.behaviour for end in found.values()} == {"repels"}


def test_rescaled_rows_side_by_side():
    # (1, 2) with b = (1/2, 1/2): x* = 0 with Lr = 0, x_u = -log 2 with Lr = 1/64 and the Hessian -1/16 there
    stops = points(product([1, 2], [["1/2", "1/2"]] * 2, "rescaled"))
    assert stops.certificate.kind == "complete"
    low = -math.log(2)
    np.testing.assert_allclose(places(stops), [(low, low), (low, 0), (0, low), (0, 0)], rtol=1e-15)
    assert stops.losses == pytest.approx([1 / 32, 1 / 64, 1 / 64, 0], rel=1e-15)
    assert [point.dims[0] for point in stops.points] == [2, 1, 1, 0]
    assert (stops.index_sum, stops.expected) == (0, None)
    assert points(product([0, 4, 5], [THREE] * 2, "rescaled")).points == ()


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        ((-20, -20), "escape"),  # both rows lose all their u
        ((-20, 0), "escape"),  # one does, the other is at its minimum
        ((-20, -math.log(2)), "plateau"),  # the other is at its maximum
        ((0, 0), "interpolation"),
        ((-math.log(2), 0), "fixed point"),
        ((-20, 5), "plateau"),
    ],
)
def test_escapes_of_rescaled_rows_side_by_side(x, kind):
    told = verdict(product([1, 2], [["1/2", "1/2"]] * 2, "rescaled"), x)
    assert told.kind == kind
    if kind == "escape":
        assert told.limit == 0
        assert "proven to fall to 0" in told.sentence


def test_rescaled_rows_that_pull_each_other_up_are_not_said_to_fall():
    # the winners' rows (1, 0) and (-1, 1) have a negative product: as one row falls, it lifts the other
    against = matrix_problem([[1, 0], [-1, 1]], [[1], [2]], [["1/2", "1/2"]] * 2, "rescaled")
    told = verdict(against, (-20.0, -45.0))
    assert told.kind == "plateau"
    assert "nothing is proven" in told.sentence
    with_each_other = matrix_problem([[1, 0], [1, 1]], [[1], [2]], [["1/2", "1/2"]] * 2, "rescaled")
    assert verdict(with_each_other, (-20.0, -10.0)).kind == "escape"


# --- more weights
# ----------------------------------------------------------------------------------------------------


def test_three_weights():
    model = product([0, 1], [QUARTERS] * 3)
    stops = points(model)
    assert stops.certificate.kind == "complete"
    np.testing.assert_allclose(places(stops), [[math.log(3)] * 3], rtol=1e-15)
    assert stops.expected is None
    assert stops.witness == "infinity is not enumerated for 3 weights"
    with pytest.raises(NoHullError, match=r"for one and two weights.*; this has 3"):
        ends(model)
    assert verdict(model, [math.log(3)] * 3).kind == "interpolation"
    assert verdict(model, [0.5, 0.2, 0.1]).kind == "moving"
    corner = verdict(model, [30.0, 30.0, -30.0])
    assert corner.kind == "plateau"
    assert "saturated at the vertex of entries (1, 2), (2, 2), (3, 1), which repels" in corner.sentence
    side = verdict(model, [30.0, math.log(3), math.log(3)])
    assert side.kind == "plateau"
    assert "the face of entries (1, 2), (2, 1), (2, 2), (3, 1), (3, 2), which repels" in side.sentence
    ray = escape(model, [1, 1, 1])
    # each (e - 1/4)^2 = 1/16 - e/2
    assert (ray.limit, ray.rate, ray.coefficient) == (R(3, 16), 1, -R(3, 2))


def test_three_weights_escape():
    hot = product([0, 1], [[0, 1]] * 3)
    told = verdict(hot, [20.0, 25.0, 20.0])
    assert (told.kind, told.limit, told.ray.attracts) == ("escape", 0, True)
    assert points(hot).points == ()
    # two weights left on the face: at their point, with the third row met in the limit
    told = verdict(product([0, 1], [QUARTERS, QUARTERS, [0, 1]]), [math.log(3), math.log(3), 30.0])
    assert (told.kind, told.ray.face) == ("escape", ((1, 1), (1, 2), (2, 1), (2, 2), (3, 2)))
    # the rescaled losses of three rows, all of which lose their u
    told = verdict(product([1, 2], [["1/2", "1/2"]] * 3, "rescaled"), [-20.0, -15.0, -20.0])
    assert (told.kind, told.limit) == ("escape", 0)
