"""Bounds of softmax regression, searched: what the search evaluates, what it must find, what it cannot search."""

from dataclasses import replace

import numpy as np
import pytest

from odesys.simulation import softmax_regression as judge
from odesys.studies.softmax import bounds, search
from symbolic import lipschitz
from symbolic.softmax_regression import in_context, vector

SMALL = (2, 1, 1.0)


@pytest.fixture(scope="module")
def two_rows():
    return bounds.rows(3, (SMALL,))


def problems(rows, draw):
    """Three problems side by side with n = 4 and d = 2; one row means A1 = 1."""
    left = np.ones((3, 1, 1)) if rows == 1 else draw.normal(size=(3, rows, 2))
    return search.Problems(
        left,
        draw.normal(size=(3, 4, 2)),
        draw.dirichlet(np.ones(4), size=(3, rows)),
        draw.normal(size=(3, left.shape[2], 2)),
    )


@pytest.mark.parametrize("rows", [1, 2])
def test_gradients_of_the_search_are_those_of_autodiff(rows):
    """To the rounding of sums of a dozen terms."""
    some = problems(rows, np.random.default_rng(1))
    for k in range(3):
        data = (some.left[k], some.right[k], some.target[k])
        for loss, got in (("normalized", some.gradient), ("rescaled", some.rescaled_gradient)):
            wanted = judge.matrix(*data, loss).gradient(some.weights[k])
            np.testing.assert_allclose(got[k], wanted, rtol=1e-12, atol=1e-14)


def test_hessians_of_the_search_are_those_of_autodiff():
    some = problems(1, np.random.default_rng(2))
    for k in range(3):
        problem = judge.vector(some.right[k], some.target[k, 0])
        for axis in np.eye(2):
            wanted = problem.hessian_times(some.weights[k, 0], axis)
            np.testing.assert_allclose(some.hessian[k] @ axis, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
def test_targets_of_the_search_are_those_of_the_theorem(loss):
    some = problems(1, np.random.default_rng(3))
    then = replace(some, weights=some.weights + 0.5)
    quantity = "target" if loss == "normalized" else "rescaled target"
    got = search.QUANTITIES[quantity](some, then)
    for k in range(3):
        model = vector.model(n=4, d=2, loss=loss).at(some.right[k].tolist(), some.target[k, 0].tolist())
        moved = in_context.move(model, some.weights[k, 0].tolist(), then.weights[k, 0].tolist())
        np.testing.assert_allclose(
            got[k, 0], np.array(moved.shift.evalf(20), dtype=float).ravel(), rtol=1e-12
        )


def test_every_row_with_a_finite_constant_is_searched(two_rows):
    finite = [bound.name for bound in lipschitz.table() if bound.best.is_finite is not False]
    assert [row.name for row in two_rows] == finite
    assert len(finite) == 37
    assert all(0 < row.found <= row.best for row in two_rows)


def test_what_two_rows_attain_is_found(two_rows):
    assert bounds._reached(two_rows).passed


@pytest.mark.parametrize(
    "name", ["f, x-move", "B^, A1-move", "gradient, x-move, |b| <= 1", "Hessian, x-move, b in the simplex"]
)
def test_a_constant_that_is_too_small_by_a_percent_is_refuted(two_rows, name):
    """The planted fault, row by row: 0.99 of an attained constant."""
    faulty = tuple(
        replace(row, bound=replace(row.bound, best=row.bound.best * 0.99)) if row.name == name else row
        for row in two_rows
    )
    assert bounds._never_beaten(two_rows)[0].passed
    assert not bounds._never_beaten(faulty)[0].passed


@pytest.mark.parametrize(("field", "value"), [("quantity", "entropy"), ("moved", "b"), ("target", "cube")])
def test_a_row_that_cannot_be_searched_is_refused(field, value):
    bound = replace(lipschitz.table(n=2, R=1)["f, x-move"], **{field: value})
    with pytest.raises(NotImplementedError, match=f"knows no `{field}` '{value}'"):
        search.ascend(bound, SMALL, (0,))


def test_the_same_seed_finds_the_same():
    bound = lipschitz.table(n=3, R=1)["gradient, A-move, every n"]
    one, same, other = (search.ascend(bound, (3, 2, 1.0), (seed,)) for seed in (1, 1, 2))
    assert one == same != other


def test_the_dataset_holds_all_rows(two_rows):
    data = bounds.dataset(two_rows)
    assert data.sizes == {"size": 1, "bound": 37}
    cell = data.sel(size="n = 2, d = 1, R = 1", bound="c, x-move")
    assert float(cell.best) == 0.5
    assert float(cell.published) == pytest.approx(2**1.5 * np.exp(10), rel=1e-14)
    assert str(cell.known.values).startswith("proven; attained for n = 2")
    assert np.isnan(data.published.sel(bound="B~, X-move")).all()
