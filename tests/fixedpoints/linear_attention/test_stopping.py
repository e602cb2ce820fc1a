"""Where the flow stops in parameter space: C1, C2 and C3' rather than C3, and the index of every such point."""

from dataclasses import replace

import numpy as np
import pytest
from references import reference

from fixedpoints.linear_attention import Lattice, Modes, Weights, conditions, hessian, inertia

SPECTRUM = (0.4, 0.3, 0.2, 0.1)


@pytest.fixture
def lattice():
    return Lattice(SPECTRUM, 31, heads=4)


def changed(weights, **entries):
    """The weights with single entries replaced: v={place: value}, and so on."""
    parts = {name: np.array(getattr(weights, name)) for name in ("v", "key", "query")}
    for name, values in entries.items():
        for place, value in values.items():
            parts[name][place] = value
    return Weights(**parts)


def random_fixed_point(generator, task, modes, heads, rank, active):
    """Weights at which the flow stops, with no structure: `active` heads compute M_S together, the others are
    silent with K_i and Q_i random but for C3'."""
    D, m, rows = task.dim, len(modes), active * rank
    places = [d - 1 for d in modes]
    v = np.zeros(heads)
    v[:active] = generator.choice([-1, 1], active) * generator.uniform(0.5, 2, active)
    # Rows in the learned subspace with  K^T V Q = diag(p): any K, and Q = V^{-1} (K^T)^+ diag(p) + kernel of K^T V.
    K = generator.standard_normal((rows, m))
    V = np.repeat(v[:active], rank)[:, None]
    Q = np.linalg.pinv(K.T) @ np.diag(task.optimum[places]) / V
    loose = generator.standard_normal((rows, m))
    Q = Q + (loose - K @ np.linalg.pinv(K) @ loose) / V
    key, query = np.zeros((2, heads, rank, D))
    key[:active, :, places], query[:active, :, places] = (
        K.reshape(active, rank, m),
        Q.reshape(active, rank, m),
    )
    for h in range(active, heads):
        key[h], query[h] = generator.standard_normal((2, rank, D))
        G = np.where(np.isin(np.arange(D), places), 0, task.eigenvalues**2)
        pull, slope = np.sum(key[h] * G * query[h]), key[h] * G
        if np.sum(slope**2):
            query[h] -= pull * slope / np.sum(slope**2)
    return Weights(v, key, query)


class TestConditions:
    def test_structured_weights_satisfy_all(self, lattice):
        for point in lattice:
            found = conditions(point.weights, lattice.task)
            assert found.is_fixed_point
            assert found.c3
            assert (found.counts, found.index) == (point.counts, point.index)
            assert found.speed < 1e-15

    def test_c3_denies_a_fixed_point_that_c3_prime_admits(self):
        # S = {1}; head 2 has v = 0, k = e_2, q = e_3: neither lies in the span, yet k Lambda^2 q = 0.
        expected = reference("linear_attention_fixed_points")["c3_counterexample"]
        three = Lattice((1 / 2, 1 / 3, 1 / 6), expected["N"], expected["H"])
        weights = changed(three.at([1]).weights, key={(1, 0, 1): 1.0}, query={(1, 0, 2): 1.0})
        found = conditions(weights, three.task)
        assert (found.c1, found.c2, found.c3_prime, found.c3) == (True, True, True, False)
        assert found.is_fixed_point
        assert found.speed < 1e-15
        assert list(found.index) == expected["inertia"] == list(inertia(hessian(weights, three.task)))

    def test_c3_admits_a_silent_head_with_one_of_key_and_query_in_the_span(self, lattice):
        found = conditions(lattice.at([1]).weights.with_spare_queries(np.ones((1, 4))), lattice.task)
        assert (found.c3_prime, found.c3) == (True, True)

    def test_a_head_that_is_silent_up_to_rounding_is_silent(self, lattice):
        # v = 1e-15 and a query outside the span: an active head would violate C2 by far.
        weights = changed(lattice.at([1]).weights, v={1: 1e-15}, query={(1, 0, 2): 1.0})
        found = conditions(weights, lattice.task)
        assert found.is_fixed_point
        assert found.index == conditions(changed(weights, v={1: 0.0}), lattice.task).index
        assert not conditions(changed(weights, v={1: 1e-3}), lattice.task).is_fixed_point

    def test_c3_prime_fails_where_a_silent_head_is_pulled(self, lattice):
        weights = changed(lattice.at([1]).weights, key={(1, 0, 1): 1.0}, query={(1, 0, 1): 1.0})
        found = conditions(weights, lattice.task)
        assert (found.c1, found.c2, found.c3_prime, found.is_fixed_point) == (True, True, False, False)
        assert found.index is None
        assert found.speed == pytest.approx(0.3**2)  # tau v' = lambda_2^2 k q

    def test_c2_fails_where_heads_cancel_outside_the_learned_modes(self, lattice):
        opposite = {(1, 0, 2): 1.0, (2, 0, 2): 1.0}
        weights = changed(lattice.at([1]).weights, v={1: 1.0, 2: -1.0}, key=opposite, query=opposite)
        found = conditions(weights, lattice.task)
        assert (found.c1, found.c2, found.c3_prime, found.is_fixed_point) == (True, False, True, False)
        assert found.speed == pytest.approx(0.2**2)  # tau k' = v lambda_3^2 q

    @pytest.mark.parametrize("change", [{"v": {0: 1.0}}, {"key": {(0, 0, 1): 0.1}}])
    def test_c1_fails_where_the_function_is_none_of_them(self, lattice, change):
        found = conditions(changed(lattice.at([1]).weights, **change), lattice.task)
        assert (found.c1, found.counts, found.is_fixed_point) == (False, None, False)
        assert found.speed > 1e-3

    @pytest.mark.parametrize(("heads", "rank"), [(1, 1), (3, 1), (2, 2), (3, 2)])
    def test_conditions_hold_exactly_where_the_velocity_vanishes(self, heads, rank):
        # `speed` is computed from the weights alone.
        generator, task = np.random.default_rng(heads + 10 * rank), Modes(SPECTRUM, 31)
        for _ in range(40):
            m = int(generator.integers(0, min(4, heads * rank) + 1))
            modes = tuple(generator.choice(np.arange(1, 5), m, replace=False))
            fewest = -(-m // rank)
            active = int(generator.integers(fewest, heads + 1)) if m else 0
            weights = random_fixed_point(generator, task, modes, heads, rank, active)
            found = conditions(weights, task)
            assert found.is_fixed_point
            assert found.speed < 1e-11  # pseudo-inverses of random matrices lose some digits
            moved = Weights.from_vector(
                weights.vector + 1e-3 * generator.standard_normal(weights.vector.size), heads, rank, 4
            )
            off = conditions(moved, task)
            assert not off.is_fixed_point
            assert off.speed > 1e-8

    def test_rank_r_heads_may_be_rotated_and_rescaled(self):
        # K -> A K, Q -> A^{-T} Q leaves M alone.
        lattice = Lattice(SPECTRUM, 31, heads=2, rank=2)
        point = lattice.at([1, 2, 4])
        A = np.array([[1.0, 2.0], [-0.5, 3.0]])
        turned = replace(
            point.weights, key=A @ point.weights.key, query=np.linalg.inv(A).T @ point.weights.query
        )
        found = conditions(turned, lattice.task)
        assert found.is_fixed_point
        assert found.index == point.index == inertia(hessian(turned, lattice.task))


class TestIndexBelongsToTheWeights:
    def test_three_weights_of_one_function(self, lattice):
        point = lattice.at([1])
        query = np.ones((1, 4))
        found = [
            conditions(weights, lattice.task).index
            for weights in (point.weights, point.weights.with_spare_queries(query), point.weights.split(1))
        ]
        # Three spare heads with a query: one more of each sign a head. One split eigenvector: D - m = 3 more.
        zero, positive = 4 * 9 - 7, 7
        assert found == [(0, zero, positive), (3, zero - 6, positive + 3), (3, zero - 6, positive + 3)]

    def test_heads_that_hold_something_are_left_as_they_are(self, lattice):
        # Head 2 has a key alone, head 3 a value alone, and only head 4 is zero.
        weights = changed(lattice.at([1]).weights, key={(1, 0, 2): 1.0}, v={2: 1.0})
        spare = weights.with_spare_queries(np.ones((1, 4)))
        assert spare.query.any(axis=(1, 2)).tolist() == [True, False, False, True]
        split = weights.split(1)
        assert (split.v != 0).tolist() == [True, False, True, True]
        for same in (spare, split):  # rounding of cube roots
            np.testing.assert_allclose(same.M, weights.M, rtol=1e-14, atol=1e-15)

    def test_at_the_optimum_they_agree(self):
        lattice = Lattice(SPECTRUM, 31, heads=5)
        weights = lattice.end.weights
        for other in (weights.with_spare_queries(np.ones((1, 4))), weights.split(2, share=0.3)):
            assert conditions(other, lattice.task).index == lattice.end.index == (0, 29, 16)

    @pytest.mark.parametrize(("heads", "rank"), [(1, 1), (3, 1), (5, 1), (2, 2), (3, 2), (2, 3)])
    @pytest.mark.parametrize("spectrum", [SPECTRUM, (0.4, 0.2, 0.2, 0.1)])
    def test_the_formula_at_fixed_points_without_structure(self, heads, rank, spectrum):
        generator, task = np.random.default_rng(100 * heads + rank), Modes(spectrum, 31)
        for _ in range(12):
            m = int(generator.integers(0, min(4, heads * rank) + 1))
            modes = tuple(generator.choice(np.arange(1, 5), m, replace=False))
            active = int(generator.integers(-(-m // rank), heads + 1)) if m else 0
            weights = random_fixed_point(generator, task, modes, heads, rank, active)
            assert conditions(weights, task).index == inertia(hessian(weights, task)), (modes, active)


class TestBadInput:
    def test_shapes_that_do_not_fit(self):
        with pytest.raises(ValueError, match=r"got \(2,\), \(1, 1, 3\) and \(1, 1, 3\)"):
            Weights(np.ones(2), np.ones((1, 1, 3)), np.ones((1, 1, 3)))

    def test_entries_that_are_not_finite(self):
        with pytest.raises(ValueError, match="`query` must be finite"):
            Weights(np.ones(1), np.ones((1, 1, 2)), np.full((1, 1, 2), np.nan))

    def test_another_dimension(self, lattice):
        with pytest.raises(ValueError, match="D = 4, the task has 2 eigenvalues"):
            conditions(lattice.end.weights, Modes((0.2, 0.1), 31))

    def test_tolerance(self, lattice):
        with pytest.raises(ValueError, match="`tolerance` must be positive; got 0"):
            conditions(lattice.end.weights, lattice.task, tolerance=0)

    def test_splitting(self, lattice):
        with pytest.raises(ValueError, match=r"To split head 1, .* Take more heads"):
            lattice.end.weights.split(1)
        with pytest.raises(ValueError, match="To split head 5"):
            lattice.at([1]).weights.split(5)
        with pytest.raises(ValueError, match="`share` must lie between 0 and 1; got 1"):
            lattice.at([1]).weights.split(1, share=1)
