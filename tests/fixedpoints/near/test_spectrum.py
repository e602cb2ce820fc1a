"""Eigenvalues: exact sides of rational matrices, discs of others, and slack that knows units and rates."""

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from fixedpoints.near.balls import as_ball, from_floats, widened
from fixedpoints.near.spectrum import SLACK, planar, spectrum


@pytest.fixture(autouse=True)
def digits():
    with ctx.workprec(256):
        yield


def rational(rows):
    return [[fmpq(x) for x in row] for row in rows]


def blurred(rows, error):
    """Floats, each uncertain by a relative error."""
    return [
        [widened(x, abs(as_ball(x)) * arb(error)) if x else x for x in row]
        for row in from_floats(np.array(rows, dtype=float))
    ]


def of_floats(rows, *, is_map=False):
    return spectrum(blurred(rows, 2.0**-52), is_map=is_map, loose=blurred(rows, SLACK))


def similar(rows, seed):
    shear = np.random.default_rng(seed).normal(size=np.shape(rows))
    return shear @ np.array(rows, dtype=float) @ np.linalg.inv(shear)


def test_imaginary_pairs_of_rational_matrices_are_proven():
    # Companion matrix of (l^2 + 2)(l + 3): irrational frequency, exact real part 0.
    seen = spectrum(rational([[0, 1, 0], [0, 0, 1], [-6, -2, -3]]), is_map=False)
    assert seen.boundary == (0, 0, 2)
    assert seen.dims == (0, 2, 1)
    assert [e.value for e in seen.eigenvalues] == pytest.approx([2**0.5 * 1j, -(2**0.5) * 1j, -3])


def test_a_real_part_of_1e_30_is_not_zero():
    tiny = fmpq(1, 10**30)
    assert spectrum([[tiny, fmpq(1)], [fmpq(-1), tiny]], is_map=False).dims == (2, 0, 0)


def test_imaginary_and_other_roots_of_one_irreducible_factor():
    # l^4 + l^2 - 1: l^2 = 0.618 or -1.618, so one saddle pair and one imaginary pair.
    seen = spectrum(
        rational([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, -1, 0]]),
        is_map=False,
    )
    assert (seen.dims, seen.boundary) == ((1, 2, 1), (0, 0, 2))


def test_multipliers_on_the_unit_circle_are_proven():
    # Phi of a rotation by arccos(3/5), of a reflection, and of Salem's polynomial x^4 - x^3 - x^2 - x + 1,
    # which has a root on either side of the circle and two on it.
    turn = [[fmpq(3, 5) - 1, fmpq(-4, 5)], [fmpq(4, 5), fmpq(3, 5) - 1]]
    assert spectrum(turn, is_map=True).boundary == (0, 0, 2)
    swap = rational([[-1, 1], [1, -1]])
    assert spectrum(swap, is_map=True).boundary == (1, 1, 0)
    salem = rational([[-1, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1], [-1, 1, 1, 0]])
    assert (spectrum(salem, is_map=True).dims, spectrum(salem, is_map=True).boundary) == (
        (1, 2, 1),
        (0, 0, 2),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("rows", "dims", "boundary"),
    [
        ([[0, 1, 0], [-1, 0, 0], [0, 0, -2]], (0, 2, 1), (0, 0, 2)),
        ([[0, 0, 0], [0, -1, 0], [0, 0, 2]], (1, 1, 1), (1, 0, 0)),
        ([[0, 1, 0], [0, 0, 1], [0, 0, 0]], (0, 3, 0), (3, 0, 0)),
        ([[-1, 1, 0], [0, -1, 1], [0, 0, -1]], (0, 0, 3), (0, 0, 0)),
    ],
)
def test_shears_in_floats_change_nothing(rows, dims, boundary, seed):
    seen = of_floats(similar(rows, seed))
    assert (seen.dims, seen.boundary) == (dims, boundary)


def test_defective_clusters_have_wide_bounds_and_one_value():
    seen = of_floats(similar([[-1, 1, 0], [0, -1, 0], [0, 0, -2]], 1))
    double = [e for e in seen.eigenvalues if abs(e.value + 1) < 0.1]
    assert len(double) == 2
    assert all(1e-9 < e.error < 1e-5 for e in double)
    assert double[0].value == double[1].value


def test_rates_and_units_are_told_apart_from_noise():
    assert of_floats(np.diag([-1e9, 1e-9, 3])).dims == (2, 0, 1)
    assert of_floats([[-1, 1e14, 0], [-1e-14, -1, 0], [0, 0, 1e-12]]).dims == (1, 0, 2)
    signs = planar(blurred([[-1, 1e12], [-1e-12, -1]], SLACK), loose=True)
    assert (signs.trace, signs.determinant, signs.discriminant) == (-1, 1, -1)


def test_many_states():
    # Symmetric with known eigenvalues, one of them 0: 40 states, by discs of floating eigenvectors.
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(40, 40)))
    true = np.concatenate([[0.0], -np.arange(1.0, 40)])
    seen = of_floats(basis @ np.diag(true) @ basis.T)
    assert (seen.dims, seen.boundary) == ((0, 1, 39), (1, 0, 0))
    assert np.allclose([e.value for e in seen.eigenvalues], true, atol=1e-12)


def test_a_real_part_far_below_the_first_precision_is_found():
    # (l^2 - 2 e l + 1)(l + 1) with e = 10^-60: isolation starts with some 38 digits.
    e = fmpq(1, 10**60)
    rows = [[fmpq(0), fmpq(1), fmpq(0)], [fmpq(0), fmpq(0), fmpq(1)], [fmpq(-1), 2 * e - 1, 2 * e - 1]]
    assert spectrum(rows, is_map=False).dims == (2, 0, 1)
