"""Structured weights of a fixed point: Hessian, eigenvalues, index, and how training leaves."""

from itertools import chain, combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from references import reference
from scipy.integrate import solve_ivp

import fixedpoints
from fixedpoints.linear_attention import Lattice, Modes, Weights, conditions, hessian, inertia
from odesys.system import ODESystem
from symbolic.field import VectorField
from symbolic.gradient_flow import gradient_flow

REFERENCE = reference("linear_attention_fixed_points")


def code_spectrum(dim):
    """The authors' eigenvalues: proportional to D, ..., 1, with trace 1."""
    return [2 * d / (dim * (dim + 1)) for d in range(dim, 0, -1)]


def subsets(dim, most):
    return chain.from_iterable(combinations(range(1, dim + 1), m) for m in range(min(dim, most) + 1))


def autodiff_hessian(weights, covariance, context):
    """JAX's Hessian of E(y_q - y_hat)^2 = E|Lambda^{1/2} (I - Lhat M)^T w|^2 for a covariance of any form."""
    H, R, D = weights.key.shape
    total = jnp.trace(covariance)
    second = covariance @ covariance + (covariance @ covariance + total * covariance) / context

    def loss(x):
        v, k, q = jnp.split(x, [H, H + H * R * D])
        M = sum(v[h] * k.reshape(H, R, D)[h].T @ q.reshape(H, R, D)[h] for h in range(H))
        cross = jnp.trace(covariance @ M @ covariance)
        return total - 2 * cross + jnp.trace(M.T @ second @ M @ covariance)

    return np.asarray(jax.jit(jax.hessian(loss))(weights.vector))


class TestStructure:
    def test_rank_one_heads_carry_one_mode_each(self):
        point = Lattice(code_spectrum(4), 31, heads=4).at([2, 4])
        weights = point.weights
        # v* = (lambda a)^(-1/3); 16 digits of the reference.
        expected = [1.4300523725886610749, 1.9470217416380282629]
        np.testing.assert_allclose(weights.v[:2], expected, rtol=4e-16)
        for spare in (weights.v[2:], weights.key[2:], weights.query[2:]):
            assert not spare.any()
        np.testing.assert_allclose(
            weights.key[:2, 0], np.array(expected)[:, None] * np.eye(4)[[1, 3]], rtol=1e-15
        )
        np.testing.assert_array_equal(weights.key, weights.query)

    @pytest.mark.parametrize("rank", [1, 2, 3])
    def test_the_flow_stops_there_and_computes_the_function(self, rank):
        lattice = Lattice(code_spectrum(4), 31, heads=2, rank=rank)
        for point in lattice:
            # Rounding of products of weights and moments of order one.
            assert np.abs(point.weights.velocity(lattice.task)).max() < 2e-15
            np.testing.assert_allclose(point.weights.M, np.diag(point.M), atol=2e-15)
            assert lattice.task.loss(point.weights.M) == pytest.approx(point.loss, rel=1e-14)

    def test_balanced_heads_of_higher_rank(self):
        for case in REFERENCE["rank_R"]:
            lattice = Lattice(code_spectrum(case["D"]), 31, case["H"], case["R"])
            point = lattice.nested[case["m"]]
            np.testing.assert_allclose(point.weights.v, case["v"], rtol=1e-15)
            # Balanced: v^2 = |K|^2 = |Q|^2 in each head.
            np.testing.assert_allclose(
                np.sum(point.weights.key**2, axis=(1, 2)), point.weights.v**2, rtol=1e-14
            )
            assert point.loss == pytest.approx(case["loss"], rel=1e-14)

    def test_coordinates_bear_the_names_of_the_model(self):
        location = Lattice((0.2, 0.1), 31, heads=2, rank=2).at([1, 2]).weights.location
        assert list(location)[:4] == ["v_1", "v_2", "k_1_1_1", "k_1_1_2"]
        assert len(location) == 2 * (1 + 2 * 2 * 2)
        assert location["q_1_2_2"] == location["k_1_2_2"] > 0 == location["q_2_1_1"]


class TestHessian:
    @pytest.mark.parametrize(("dim", "heads", "rank"), [(1, 1, 1), (2, 3, 1), (3, 2, 2), (4, 2, 3)])
    def test_the_matrix_against_autodiff_anywhere(self, dim, heads, rank):
        generator = np.random.default_rng(dim)
        size = heads * (1 + 2 * rank * dim)
        weights = Weights.from_vector(generator.standard_normal(size), heads, rank, dim)
        spectrum = np.sort(generator.uniform(0.1, 1, dim))[::-1]
        expected = autodiff_hessian(weights, jnp.diag(spectrum), 7)
        # Rounding of sums of D^2 products.
        np.testing.assert_allclose(
            hessian(weights, Modes(spectrum, 7)), expected, atol=1e-13 * np.abs(expected).max()
        )

    def test_the_eigenbasis_does_not_matter(self):
        # Weights and autodiff in the coordinates of tokens with a covariance that is not diagonal.
        basis, _ = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))
        point = Lattice(code_spectrum(3), 31, heads=4).at([1, 3])
        turned = point.weights.turned(basis)
        matrix = autodiff_hessian(turned, jnp.asarray(basis * code_spectrum(3) @ basis.T), 31)
        np.testing.assert_allclose(np.linalg.eigvalsh(matrix), point.hessian_eigenvalues, atol=1e-14)
        assert inertia(matrix) == point.index

    @pytest.mark.parametrize("rank", [1, 2, 3])
    @pytest.mark.parametrize("heads", [1, 2, 3])
    def test_eigenvalues_from_blocks_are_those_of_the_matrix(self, heads, rank):
        lattice = Lattice(code_spectrum(3), 31, heads, rank)
        for point in lattice:
            expected = np.linalg.eigvalsh(hessian(point.weights, lattice.task))
            np.testing.assert_allclose(
                point.hessian_eigenvalues, expected, atol=1e-14
            )  # rounding of eigvalsh

    def test_blocks_of_a_learned_and_another_mode(self):
        for case in REFERENCE["exchange_blocks_D4"]:
            point = Lattice(code_spectrum(4), 31, heads=4).at([case["learned_a"]])
            for value in case["block_eigs"]:
                gap = np.abs(point.hessian_eigenvalues - value).min()
                assert gap < 1e-15  # printed with all digits

    def test_flow_eigenvalues_are_minus_half_the_hessian_over_tau(self):
        point = Lattice(code_spectrum(2), 31, heads=2).at([2])
        found = point.eigenvalues(time_constant=4.0)
        np.testing.assert_array_equal(found, -point.hessian_eigenvalues / 8)
        assert (np.diff(found) <= 0).all()
        assert not np.signbit(found[found == 0]).any()
        with pytest.raises(ValueError, match="`time_constant` must be positive; got 0"):
            point.eigenvalues(0)

    def test_weights_and_task_of_different_dimension_are_refused(self):
        weights = Lattice(code_spectrum(3), 31, heads=1).end.weights
        with pytest.raises(ValueError, match="D = 3, the task has 2 eigenvalues"):
            hessian(weights, Modes((0.2, 0.1), 31))


class TestIndex:
    """The formula, the reference, and the matrix."""

    @staticmethod
    def reference_point(case):
        lattice = Lattice(code_spectrum(case["D"]), 31, case["H"])
        point = lattice.at(case["subset"])
        if case["rep"] == "structured":
            return lattice.task, point, point.weights
        if case["rep"] == "split":
            return lattice.task, point, point.weights.split(1)
        query = np.random.default_rng(3).standard_normal((1, case["D"]))
        return lattice.task, point, point.weights.with_spare_queries(query)

    @pytest.mark.parametrize("rep", ["structured", "spare queries", "split"])
    def test_all_reference_points_of_rank_one(self, rep):
        cases = [case for case in REFERENCE["rank_one"] if case["rep"] == rep]
        assert len(cases) > 40
        for case in cases:
            task, _, weights = self.reference_point(case)
            matrix = hessian(weights, task)
            assert list(conditions(weights, task).index) == case["inertia"] == list(inertia(matrix)), case
            if rep != "spare queries":  # those were drawn at random
                ends = np.linalg.eigvalsh(matrix)[[0, -1]]
                np.testing.assert_allclose(ends, [case["min_eig"], case["max_eig"]], atol=1e-14)

    @pytest.mark.parametrize("dim", [2, 3, 4])
    @pytest.mark.parametrize("spare", [0, 1])
    def test_zero_mismatches_over_all_subsets(self, dim, spare):
        lattice = Lattice(code_spectrum(dim), 31, heads=dim + spare)
        for modes in subsets(dim, dim):
            point = lattice.at(modes)
            assert point.index == inertia(hessian(point.weights, lattice.task)), point
            # By hand: each learned mode with a larger one outside gives one negative eigenvalue.
            assert point.index[0] == sum(a > b for a in modes for b in set(range(1, dim + 1)) - set(modes))

    def test_nested_points_of_eight_modes(self):
        for case in REFERENCE["nested_D8"]:
            point = Lattice(code_spectrum(8), 31, case["H"]).nested[case["m"]]
            assert list(point.index) == case["inertia"]
            assert point.loss == pytest.approx(case["loss"], rel=1e-14)

    def test_reference_points_of_higher_rank(self):
        for case in REFERENCE["rank_R"]:
            point = Lattice(code_spectrum(case["D"]), 31, case["H"], case["R"]).nested[case["m"]]
            assert list(point.index) == case["inertia"]
            assert point.hessian_eigenvalues[0] == pytest.approx(case["min_eig"], abs=1e-14)

    @pytest.mark.parametrize(
        ("dim", "heads", "rank"), [(3, 1, 2), (3, 2, 2), (3, 3, 3), (4, 2, 3), (4, 3, 2)]
    )
    def test_zero_mismatches_for_higher_rank(self, dim, heads, rank):
        lattice = Lattice(code_spectrum(dim), 31, heads, rank)
        for modes in subsets(dim, heads * rank):
            point = lattice.at(modes)
            assert point.index == inertia(hessian(point.weights, lattice.task)), point

    @pytest.mark.parametrize("spectrum", [(0.25,) * 4, (0.4, 0.2, 0.2, 0.1), (0.3, 0.3, 0.1, 0.1)])
    @pytest.mark.parametrize(("heads", "rank"), [(3, 1), (4, 1), (2, 2)])
    def test_zero_mismatches_for_repeated_eigenvalues(self, spectrum, heads, rank):
        lattice = Lattice(spectrum, 31, heads, rank)
        for modes in subsets(4, heads * rank):
            point = lattice.at(modes)
            assert point.index == inertia(hessian(point.weights, lattice.task)), point
            # Moving within the continuum costs nothing.
            assert point.index[1] >= point.dimension

    def test_rounding_of_equal_eigenvalues_leaves_zeros_zero(self):
        # 0.1 + 0.2 = 0.30000000000000004: the mode next to a learned one is its equal.
        point = Lattice((0.1 + 0.2, 0.3, 0.1), 31, heads=1).at([1])
        assert point.index == (0, 7 - 4, 4)
        assert np.sum(point.hessian_eigenvalues == 0) == 3

    def test_the_formula_decides_where_floats_cannot(self):
        # Two eigenvalues that differ by 1e-10: the block's small eigenvalue is below the threshold of the matrix.
        lattice = Lattice((0.3 + 1e-10, 0.3), 31, heads=2)
        point = lattice.at([2])
        assert point.index == (1, 7, 2)
        assert inertia(hessian(point.weights, lattice.task)) == (0, 8, 2)
        assert -1e-9 < point.hessian_eigenvalues[0] < 0


class TestEscape:
    def test_a_strict_saddle_is_left_at_the_predicted_rate(self):
        expected = REFERENCE["strict_saddle_D2"]
        lattice = Lattice(expected["lambda"], expected["N"], expected["H"])
        point = lattice.at([2])
        assert point.stability == "strict saddle"
        rate = point.eigenvalues()[0]
        assert rate == pytest.approx(expected["predicted rate tau=1"], rel=1e-14)
        values, axes = np.linalg.eigh(hessian(point.weights, lattice.task))
        start = point.weights.vector + 1e-6 * axes[:, 0]

        def flow(t, x):
            return Weights.from_vector(x, 2, 1, 2).velocity(lattice.task)

        run = solve_ivp(
            flow, (0, 300), start, method="DOP853", rtol=1e-11, atol=1e-13, t_eval=[0, 20, 40, 300]
        )
        off = np.linalg.norm(run.y - point.weights.vector[:, None], axis=0)
        # The second order adds of the order of the distance, 1e-6 e^{40 * 0.18} = 1.5e-3.
        assert np.log(off[1] / off[0]) / 20 == pytest.approx(rate, rel=2e-5)
        M = Weights.from_vector(run.y[:, -1], 2, 1, 2).M
        # It slides to M_1 with a rest of the measured run's size.
        np.testing.assert_allclose(M, np.diag(lattice.at([1]).M), atol=1e-3)
        assert values[0] == pytest.approx(-2 * rate, rel=1e-12)

    def test_the_staircase_is_non_strict_where_the_rank_divides_the_number_of_modes(self):
        kinds = {
            rank: [point.stability for point in Lattice(code_spectrum(6), 31, heads=6, rank=rank).nested]
            for rank in (1, 2, 3)
        }
        for rank, found in kinds.items():
            expected = ["strict saddle" if m % rank else "non-strict saddle" for m in range(6)]
            assert found == [*expected, "stable"]

    def test_a_non_strict_saddle_is_left_at_third_order(self):
        # A head that is zero learns mode b: L falls by 2 lambda_b^2 s^3 for v = |k| = |q| = s.
        lattice = Lattice(code_spectrum(3), 31, heads=2)
        point = lattice.at([1])
        assert (point.stability, point.index[0]) == ("non-strict saddle", 0)
        for step in (1e-2, 1e-3):
            key = np.array(point.weights.key)
            key[1, 0, 1] = step
            moved = Weights([point.weights.v[0], step], key, key)
            fall = point.loss - lattice.task.loss(moved.M)
            # The next order is s^6, and the loss is rounded at 1e-16.
            assert fall == pytest.approx(2 * (1 / 3) ** 2 * step**3, rel=1e-6 + 1e-15 / step**3)

    def test_with_too_few_heads_training_ends_before_the_optimum(self):
        lattice = Lattice(code_spectrum(4), 31, heads=2)
        assert lattice.at([1, 2]).stability == "stable"
        assert lattice.at([1, 3]).stability == "strict saddle"
        assert lattice.at([1]).stability == "non-strict saddle"


class TestGeneralSearchAgrees:
    """`fixedpoints.find` and `classify` know nothing of linear attention."""

    def test_the_aligned_system_of_two_heads(self):
        # tau v_d' = lambda_d^2 v_d^2 - lambda_d^3 a_d v_d^5, heads on modes 1 and 2 (exact numbers, N = 31, tr = 1).
        v = sp.symbols("v_1 v_2")
        spectrum = (sp.Rational(2, 3), sp.Rational(1, 3))
        a = [1 + (1 + 1 / x) / 31 for x in spectrum]
        rhs = [x**2 * w**2 - x**3 * c * w**5 for x, w, c in zip(spectrum, v, a, strict=True)]
        found = fixedpoints.find(ODESystem(VectorField(v, rhs)))
        assert found.certificate.kind == "complete"
        lattice = Lattice([float(x) for x in spectrum], 31, heads=2)
        expected = {p.modes: np.cbrt(p.M) for p in lattice}
        assert len(found.points) == lattice.size == 4
        for p in found.points:
            at = np.array([float(p.location[w.name]) for w in v])
            modes = tuple(d + 1 for d in range(2) if at[d] > 0)
            np.testing.assert_allclose(at, expected[modes], rtol=1e-14)
            # Relaxation at v*: -3 lambda^2 v*/tau, which is also an eigenvalue of the full flow.
            for d in modes:
                rate = -3 * float(spectrum[d - 1]) ** 2 * at[d - 1]
                for eigenvalues in (np.array(p.eigenvalues, dtype=complex), lattice.at(modes).eigenvalues()):
                    assert np.abs(eigenvalues - rate).min() < 1e-13

    def test_the_whole_flow_of_one_head_and_one_mode(self):
        v, k, q = sp.symbols("v_1 k_1_1_1 q_1_1_1")
        lam, a = sp.Rational(1, 2), 1 + sp.Rational(2, 7)
        loss = lam - 2 * lam**2 * v * k * q + lam**3 * a * (v * k * q) ** 2
        system = ODESystem(gradient_flow(loss, (v, k, q), time_constant=2))
        found = fixedpoints.find(system)
        assert found.certificate.kind == "complete"
        # M = 0: the three axes, two of which need C3'. M = M*: a surface.
        assert sorted(component.dimension for component in found.components) == [1, 1, 1, 2]
        lattice = Lattice((0.5,), 7, heads=1)
        point = lattice.at([1])
        classified = fixedpoints.classify(system, point.weights.location, loss=loss)
        assert classified.index == point.index == (0, 2, 1)
        np.testing.assert_allclose(np.real(classified.eigenvalues), point.eigenvalues(), atol=1e-14)
        origin = fixedpoints.classify(system, dict.fromkeys(("v_1", "k_1_1_1", "q_1_1_1"), 0), loss=loss)
        assert origin.index == lattice.at([]).index == (0, 3, 0)
