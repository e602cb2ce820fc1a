"""The lattice of fixed points of separate attention: losses, order, number, laziness, continua, completeness."""

import math
import subprocess
import sys
import time
from itertools import chain, combinations, pairwise
from math import comb

import numpy as np
import pytest
import sympy as sp
from references import reference

from fixedpoints.linear_attention import (
    Lattice,
    Modes,
    TooManyPointsError,
    Weights,
    conditions,
    hessian,
    losses,
    plateaus,
    points,
)

REFERENCE = reference("linear_attention_fixed_points")
CASES = REFERENCE["fixed_point_losses"]
PAPER = (0.4, 0.3, 0.2, 0.1)


def subsets(dim, most):
    return chain.from_iterable(combinations(range(1, dim + 1), m) for m in range(most + 1))


def code(modes):
    return sum(2 ** (d - 1) for d in modes)


class TestLosses:
    @pytest.mark.parametrize(
        "name", [name for name, case in CASES.items() if "loss_by_subset(1-based)" in case]
    )
    def test_every_subset_against_20_digits(self, name):
        case = CASES[name]
        found = losses([float(x) for x in case["lambda"]], case["N"])
        assert len(found) == 2 ** len(case["lambda"])
        for modes, value in case["loss_by_subset(1-based)"].items():
            place = 0 if modes == "empty" else code(map(int, modes.split(",")))
            # A sum of at most five numbers, each rounded twice.
            assert found[place] == pytest.approx(float(value), rel=2e-15)

    def test_all_256_of_eight_modes(self):
        case = CASES["D8_N31_code"]
        spectrum = [float(x) for x in case["lambda"]]
        found = losses(spectrum, case["N"])
        extremes = np.sort(found)[[0, 1, -2, -1]]
        # Rounding of sums of at most nine numbers of order one.
        np.testing.assert_allclose(
            extremes, list(map(float, case["smallest_second_largest_losses"])), rtol=4e-15
        )
        assert found.sum() == pytest.approx(float(case["sum_of_all_2^D_losses"]), rel=1e-15)
        expected = list(map(float, case["plateau_losses_m=0..D"]))
        np.testing.assert_allclose(plateaus(spectrum, 31, heads=8), expected, rtol=4e-15)

    def test_the_five_plateaus_of_the_paper(self):
        # By hand: a_d = 1 + (1 + 1/lambda_d)/31 and 1 - sum lambda_d/a_d, to the 12 digits given.
        expected = [1, 0.640579710145, 0.377372162975, 0.209804595408, 0.135995071598]
        np.testing.assert_allclose(plateaus(PAPER, 31, heads=5), expected, rtol=0, atol=5e-13)

    def test_infinite_context_leaves_the_variance_that_is_not_learned(self):
        # N -> inf: L(M_m) = sum_{d > m} lambda_d, principal component regression.
        np.testing.assert_allclose(plateaus(PAPER, math.inf, heads=4), [1, 0.6, 0.3, 0.1, 0], atol=1e-15)

    def test_a_million_losses_in_ten_milliseconds(self):
        spectrum = np.linspace(1, 0.1, 20)
        times = []
        for _ in range(10):
            start = time.perf_counter()
            found = losses(spectrum, 31)
            times.append(time.perf_counter() - start)
        assert min(times) < 10e-3
        task = Modes(spectrum, 31)
        for place in np.random.default_rng(0).integers(0, 2**20, 50):
            # Against correctly rounded sums; doubling rounds at most 20 times.
            exact = math.fsum([task.trace, *(-x for d, x in enumerate(task.drops) if place >> d & 1)])
            assert found[place] == pytest.approx(exact, abs=20 * 2**-53 * task.trace)


def test_the_room_finds_the_module_and_loads_no_jax():
    shown = "fixedpoints.linear_attention.losses((0.2, 0.1), 31).shape, 'jax' in sys.modules"
    program = f"import sys, fixedpoints; print({shown})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["(4,)", "False"]


class TestEnumeration:
    @pytest.mark.parametrize("heads", [1, 2, 3, 4, 7])
    @pytest.mark.parametrize("rank", [1, 2])
    def test_the_points_are_the_small_subsets_in_the_order_of_their_codes(self, heads, rank):
        spectrum = (0.5, 0.4, 0.3, 0.2, 0.1)
        lattice = Lattice(spectrum, 31, heads, rank)
        most = min(5, heads * rank)
        expected = sorted(subsets(5, most), key=code)
        assert [point.modes for point in lattice] == expected
        assert len(lattice) == lattice.size == sum(comb(5, m) for m in range(most + 1))
        np.testing.assert_array_equal(lattice.learned, [len(modes) for modes in expected])
        # Two orders of summation of at most six numbers.
        np.testing.assert_allclose(
            lattice.losses, losses(spectrum, 31)[[code(m) for m in expected]], atol=1e-15
        )
        np.testing.assert_allclose(lattice.losses, [point.loss for point in lattice], atol=1e-15)

    def test_sixteen_points_of_four_modes(self):
        assert [Lattice(PAPER, 31, heads).size for heads in (1, 2, 3, 4, 5, 8)] == [5, 11, 15, 16, 16, 16]

    def test_order_is_by_falling_loss(self):
        lattice = Lattice(PAPER, 31, heads=3)
        ordered = [lattice[int(place)] for place in lattice.order]
        assert all(a.loss >= b.loss for a, b in pairwise(ordered))
        assert (ordered[0].modes, ordered[-1].modes) == ((), (1, 2, 3))

    def test_nested_points_lie_on_the_staircase(self):
        lattice = Lattice(PAPER, 31, heads=2, rank=2)
        assert [point.modes for point in lattice.nested] == [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]
        np.testing.assert_allclose(
            [point.loss for point in lattice.nested], plateaus(PAPER, 31, 2, 2), atol=1e-15
        )
        assert lattice[-1].modes == lattice.end.modes == (1, 2, 3, 4)

    def test_random_starts_end_at_the_best_predictor_that_the_heads_can_compute(self):
        # 32 integrations of the full flow, made without this package and stopped 1e-5 above their end.
        for run in REFERENCE["random_starts_end"]:
            lattice = Lattice(PAPER, run["N"], run["H"])
            assert run["loss_end"] == pytest.approx(lattice.end.loss, abs=1.1e-5)
            assert lattice.end.loss == pytest.approx(
                lattice.losses.min(), rel=1e-15
            )  # two orders of summation

    def test_the_end_is_the_best_of_its_rank(self):
        # Eckart and Young: S^{1/2} M Lambda^{1/2} nearest to S^{-1/2} Lambda^{3/2}, here with an SVD in tokens.
        basis, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))
        covariance = basis * PAPER @ basis.T
        S = covariance @ covariance + covariance @ (covariance + np.trace(covariance) * np.eye(4)) / 31
        values, axes = np.linalg.eigh(S)
        target = (axes / np.sqrt(values)) @ axes.T @ covariance @ (basis * np.sqrt(PAPER)) @ basis.T
        singular = np.linalg.svd(target, compute_uv=False)
        for heads in (1, 2, 3):
            best = np.trace(covariance) - np.sum(singular[:heads] ** 2)
            assert Lattice(PAPER, 31, heads).end.loss == pytest.approx(best, rel=1e-13)


class TestLaziness:
    def test_arrays_make_no_points(self, monkeypatch):
        made = []
        monkeypatch.setattr(points.Point, "__post_init__", lambda self: made.append(1))
        lattice = Lattice(np.linspace(1, 0.1, 20), 31, heads=20)
        assert lattice.losses.shape == lattice.order.shape == (2**20,)
        assert len(made) == 0
        next(iter(lattice))
        assert len(made) == 1

    def test_single_points_of_a_lattice_too_large_to_list(self):
        lattice = Lattice(np.linspace(1, 0.1, 60), 31, heads=60)
        assert len(lattice) == 2**60
        assert lattice[2**59 + 2**6 + 1].modes == (1, 7, 60)
        assert lattice.at([60, 3]).loss == pytest.approx(
            lattice.task.trace - lattice.task.drops[[2, 59]].sum()
        )
        assert len(lattice.nested) == 61
        for listing in ("losses", "order", "learned"):
            with pytest.raises(
                TooManyPointsError, match=r"D = 60, H = 60, R = 1 has 1152921504606846976 points"
            ):
                getattr(lattice, listing)

    def test_a_number_of_points_beyond_what_len_can_say(self):
        assert Lattice(np.linspace(1, 0.1, 100), 31, heads=100).size == 2**100

    def test_many_modes_with_few_heads_are_listed(self):
        lattice = Lattice(np.linspace(1, 0.1, 60), 31, heads=2)
        assert len(lattice.losses) == 1 + 60 + comb(60, 2)
        assert lattice[int(lattice.order[-1])].modes == (1, 2)

    def test_explicit_enumeration_offers_the_lazy_view(self):
        with pytest.raises(TooManyPointsError, match=r"D = 25 .* more than 2\^24, .*`Lattice\("):
            losses(np.linspace(1, 0.1, 25), 31)

    def test_arrays_are_read_only(self):
        with pytest.raises(ValueError, match="read-only"):
            Lattice(PAPER, 31, 4).losses[0] = 0


class TestRepeatedEigenvalues:
    def test_a_white_task_has_one_grassmannian_for_each_number_of_modes(self):
        lattice = Lattice((0.25,) * 4, 31, heads=4)
        assert [point.modes for point in lattice] == [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]
        # dim Gr(m, 4) = m (4 - m).
        assert [point.dimension for point in lattice] == [0, 3, 4, 3, 0]
        expected = [float(x) for x in CASES["D4_N31_white_trace1"]["plateau_losses_m=0..D"]]
        np.testing.assert_allclose(lattice.losses, expected, rtol=4e-15)
        assert "continua" in str(lattice.certificate)

    def test_an_eigenspace_counts_by_its_learned_modes(self):
        lattice = Lattice((0.4, 0.2, 0.2, 0.1), 31, heads=4)
        assert lattice.size == 2 * 3 * 2
        assert [(p.modes, p.dimension) for p in lattice if 3 not in p.modes][:4] == [
            ((), 0), ((1,), 0), ((2,), 1), ((1, 2), 1),
        ]  # fmt: skip
        assert lattice.at([3]).dimension == 1
        with_two_heads = Lattice((0.4, 0.2, 0.2, 0.1), 31, heads=2)
        assert [p.modes for p in with_two_heads] == [
            (), (1,), (2,), (1, 2), (2, 3), (4,), (1, 4), (2, 4),
        ]  # fmt: skip

    def test_rounding_does_not_split_an_eigenspace(self):
        # 0.1 + 0.2 = 0.30000000000000004.
        assert Lattice((0.1 + 0.2, 0.3, 0.1), 31, heads=3).size == 3 * 2
        assert Lattice((0.3 + 1e-9, 0.3, 0.1), 31, heads=3).size == 8

    @pytest.mark.parametrize("modes", [(), (1,), (2,), (1, 2), (2, 3), (2, 4), (1, 2, 3, 4)])
    def test_the_equations_of_a_component_cut_out_its_dimension(self, modes):
        # At a random subspace of the eigenspace: the equations vanish, and the rank of their Jacobian is D^2 - dim.
        point = Lattice((0.4, 0.2, 0.2, 0.1), 31, heads=4).at(modes)
        turn = 0.7
        basis = np.eye(4)
        basis[1:3, 1:3] = [[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]
        M = basis @ np.diag(point.M) @ basis.T
        component = point.component
        entries = [sp.Symbol(f"M_{a}_{b}") for a in range(1, 5) for b in range(1, 5)]
        at = dict(zip(entries, M.ravel().tolist(), strict=True))
        assert max((abs(e.subs(at)) for e in component.equations), default=0) < 1e-14
        jacobian = sp.Matrix(component.equations).jacobian(entries).subs(at)
        # Rank by singular values, the smallest of which are of order one or rounding.
        rank = np.linalg.matrix_rank(np.array(jacobian, dtype=float), tol=1e-8)
        assert rank == 16 - component.dimension
        assert component.dimension == point.dimension

    def test_the_equations_of_a_component_exclude_every_other(self):
        lattice = Lattice((0.4, 0.2, 0.2, 0.1), 31, heads=4)
        entries = [sp.Symbol(f"M_{a}_{b}") for a in range(1, 5) for b in range(1, 5)]
        for point in lattice:
            for other in lattice:
                at = dict(zip(entries, np.diag(other.M).ravel().tolist(), strict=True))
                left = max(abs(e.subs(at)) for e in point.component.equations)
                assert (left < 1e-14) == (point.modes == other.modes)

    def test_the_flow_stops_on_the_whole_continuum(self):
        lattice = Lattice((0.4, 0.2, 0.2, 0.1), 31, heads=3)
        point, turn = lattice.at([1, 2]), 1.1
        basis = np.eye(4)
        basis[1:3, 1:3] = [[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]
        turned = point.weights.turned(basis)
        found = conditions(turned, lattice.task)
        assert found.is_fixed_point
        assert found.counts == point.counts == (1, 1, 0)
        assert found.index == point.index
        assert np.abs(turned.velocity(lattice.task)).max() < 1e-15


class TestCompleteness:
    def test_the_certificate(self):
        certificate = Lattice(PAPER, 31, heads=2).certificate
        assert (certificate.kind, certificate.found) == ("complete", 11)
        assert str(certificate).startswith("found 11; complete: where the flow stops, G vanishes")

    @staticmethod
    def functions_found(heads, rank, starts):
        """The learned modes where Newton's method ends; it knows the velocity and its slope alone."""
        lattice = Lattice((2 / 3, 1 / 3), 31, heads, rank)
        generator, size = np.random.default_rng(0), heads * (1 + 4 * rank)
        known, found = {point.modes: np.diag(point.M) for point in lattice}, set()
        for _ in range(starts):
            x = 1.5 * generator.standard_normal(size)
            for _ in range(80):
                at = Weights.from_vector(x, heads, rank, 2)
                # The shortest step: fixed points are not isolated in parameter space.
                x = (
                    x
                    + np.linalg.lstsq(hessian(at, lattice.task) / 2, at.velocity(lattice.task), rcond=1e-9)[0]
                )
            end = Weights.from_vector(x, heads, rank, 2)
            if np.abs(end.velocity(lattice.task)).max() < 1e-13:
                # Degenerate roots are approached slowly: M is good to some root of the residual there.
                near = [modes for modes, target in known.items() if np.abs(end.M - target).max() < 1e-3]
                found.add(near[0] if near else "unknown")
        return found, set(known)

    @pytest.mark.parametrize(("heads", "rank"), [(1, 1), (2, 1), (1, 2)])
    def test_root_finding_from_random_starts_meets_these_functions_and_no_other(self, heads, rank):
        found, known = self.functions_found(heads, rank, 60)
        assert found == known


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0.1, 0.2), 31, 2), r"`eigenvalues` must fall, .* Give \[0.2, 0.1\]"),
        (((0.2, 0.0), 31, 2), r"`eigenvalues` must be positive and finite, .* got \[0.2, 0.0\]"),
        (((0.2, math.nan), 31, 2), "`eigenvalues` must be positive and finite"),
        ((((0.2, 0.1),), 31, 2), "`eigenvalues` must be positive and finite, one for each dimension"),
        (((), 31, 2), r"`eigenvalues` must be positive and finite, .* got \[\]"),
        (((0.2, 0.1), 0, 2), "`context` is the number N of context pairs, .* got 0"),
        (((0.2, 0.1), math.nan, 2), "`context` .* got nan"),
        (((0.2, 0.1), 31, 0), "`heads` is the number H of heads and must be a whole number >= 1; got 0"),
        (((0.2, 0.1), 31, 1.5), "`heads` .* got 1.5"),
        (((0.2, 0.1), 31, 2, 3), "`rank` .* from 1 to D = 2; got 3"),
        (((0.2, 0.1), 31, 2, 0), "`rank` .* from 1 to D = 2; got 0"),
    ],
)
def test_bad_tasks_and_models_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Lattice(*arguments)


def test_bad_modes_and_places_are_refused():
    lattice = Lattice(PAPER, 31, heads=2)
    for modes in ([0], [5], [1, 1], [1.5]):
        with pytest.raises(ValueError, match="`modes` must be different numbers from 1 to D = 4"):
            lattice.at(modes)
    with pytest.raises(
        ValueError, match=r"2 heads of rank 1 compute M of rank at most 2, .* got \(1, 2, 3\)"
    ):
        lattice.at([1, 2, 3])
    for place in (11, -12):
        with pytest.raises(IndexError, match=f"has 11 points, numbered from 0; got {place}"):
            lattice[place]
