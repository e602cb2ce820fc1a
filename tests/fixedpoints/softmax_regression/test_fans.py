"""Directions to infinity of one and two weights: which rows win, sorted by angle; where the rescaled loss grows."""

import pytest
import sympy as sp
from softmax_problems import matrix_problem, named, problem

from fixedpoints.softmax_regression.fans import directions, grows_everywhere
from fixedpoints.softmax_regression.problem import joint, reduced, winners

HALVES = ["1/2", "1/2"]


def core(model):
    return reduced(joint(model)).problem


def edges(model):
    return [tuple(v) for v, dimension in directions(core(model)) if dimension == 1]


def test_edges_of_a_triangle_by_angle():
    # corners (0, 0), (1, 0), (0, 1), and (1/4, 1/4) inside
    triangle = problem([[0, 0], [4, 0], [0, 4], [1, 1]], ["1/4"] * 4)
    assert edges(triangle) == [(0, -1), (1, 1), (-1, 0)]


def test_two_segments_share_the_plane():
    # A_1 = 0, (1, 2) and A_2 = 0, (3, -1): normals (2, -1), (1, 3) and their opposites
    crossed = matrix_problem([[1, 2], [3, -1]], [[0], [1]], [HALVES, HALVES])
    assert edges(crossed) == [(-1, -3), (2, -1), (1, 3), (-2, 1)]


def test_parallel_edges_are_one_end():
    parallel = matrix_problem([[1, 0], [2, 0], [0, 1], [0, 0]], [[0], [1]], [HALVES] * 4)
    assert edges(parallel) == [(0, -1), (1, 0), (0, 1), (-1, 0)]
    # along (0, 1) the first two and the last part tie
    assert winners(core(parallel), sp.Matrix([0, 1])) == ((0, 1), (0, 1), (1,), (0, 1))


@pytest.mark.parametrize("name", ["D2a", "mirror", "T6", "M1"])
def test_between_edges_the_winners_are_equal_rows(name):
    it = core(named(name))
    for v, dimension in directions(it):
        tied = winners(it, v)
        several = [len({A.row(i) for i in rows}) for A, rows in zip(it.blocks, tied, strict=True)]
        assert (max(several) > 1) == bool(dimension), v


def test_one_weight_has_two_directions():
    assert [tuple(v) for v, _ in directions(core(named("V5")))] == [(-1,), (1,)]


class TestGrowth:
    def test_the_origin_inside_the_hull(self):
        assert grows_everywhere(core(named("D2a", "rescaled")))
        # without row 3 all logits fall along (-1, -1)
        half = problem([[2, 0], [1, 2], [2, 1]], ["1/3"] * 3, "rescaled")
        assert not grows_everywhere(core(half))

    def test_the_origin_on_an_edge(self):
        # along (0, -1) the largest logit is 0
        assert not grows_everywhere(core(problem([[1, 0], [-1, 0], [0, 1]], ["1/3"] * 3, "rescaled")))

    def test_two_parts_grow_where_one_alone_does_not(self):
        # the logits 0, +-x_p of part p grow wherever x_p does; across, those of the other part do
        rows = [[0], [1], [-1]]
        assert grows_everywhere(core(matrix_problem([[1, 0], [0, 1]], rows, [["1/3"] * 3] * 2, "rescaled")))

    def test_a_part_without_loss_along_v_stays_small(self):
        # along (1, 0) only u_2 of the first part grows, and f -> e_2, which is its target
        hot = matrix_problem([[1, 0], [0, 1]], [[-1], [1]], [[0, 1], HALVES], "rescaled")
        assert not grows_everywhere(core(hot))
        assert grows_everywhere(core(matrix_problem([[1, 0], [0, 1]], [[-1], [1]], [HALVES] * 2, "rescaled")))

    def test_targets_that_do_not_sum_to_one_are_met_nowhere(self):
        # f -> e_2 along (1, 0), and b_1 = (0, 2)
        assert grows_everywhere(
            core(matrix_problem([[1, 0], [0, 1]], [[-1], [1]], [[0, 2], HALVES], "rescaled"))
        )
