"""What the papers assume, along runs: of descent, of a solver, of a matrix problem, far out, and refused."""

import math

import numpy as np
import pytest
import xarray as xr

import odesys
from odesys.simulation import descend, softmax_regression
from odesys.simulation.assumptions import assumptions
from symbolic.softmax_regression import matrix, vector

LINE = softmax_regression.vector([[1.0], [2.0]], [0.5, 0.5], "rescaled")


def test_states_by_hand():
    # alpha = e^x + e^2x: 2 at x = 0; at x = -log 2 it is 1/2 + 1/4. |A| = sqrt 5, |b| = 1/sqrt 2.
    seen = assumptions(LINE, [[0.0], [-math.log(2)]], R=0.5, beta=1.0)
    np.testing.assert_allclose(seen.x_norm, [0, math.log(2)], rtol=1e-15)
    np.testing.assert_allclose(seen.log_alpha, [math.log(2), math.log(0.75)], rtol=1e-15)
    assert seen.kept.values.tolist() == [True, False]
    assert seen.attrs["A_norm"] == pytest.approx(math.sqrt(5), rel=1e-15)
    assert seen.attrs["b_norm"] == pytest.approx(math.sqrt(0.5), rel=1e-15)
    assert seen.attrs["broken"].split("; ") == [
        "|A| = 2.23607 is above R = 0.5",
        "|x| reaches 0.693147, above R = 0.5",
        "log alpha falls to -0.287682, below log beta = 0",
    ]


def test_what_is_at_its_limit_is_kept():
    """R = |A| = |x| and beta = alpha, as floats have them."""
    seen = assumptions(
        LINE, [[math.sqrt(5)]], R=math.sqrt(5), beta=math.exp(math.sqrt(5)) + math.exp(2 * math.sqrt(5))
    )
    assert seen.kept.all()
    assert seen.attrs["broken"] == ""


def test_a_long_target_is_told():
    seen = assumptions(softmax_regression.vector([[1.0], [2.0]], [-0.6, 1.0]), [[0.0]], R=3)
    assert seen.attrs["broken"] == "|b| = 1.16619 is above 1"


def test_a_run_of_descent_keeps_its_steps():
    run = descend(LINE, np.array([-1.0]), rate=0.1, steps=50, every=7)
    seen = assumptions(LINE, run, R=3)
    assert seen.step.values.tolist() == run.step.values.tolist()
    np.testing.assert_array_equal(seen.x_norm, np.abs(run.w.values[:, 0]))
    assert float(seen.attrs["log_beta"]) == -9


def test_a_run_of_a_solver_and_an_ensemble():
    """The rescaled flow from x = -1 leaves |x| <= 2; x = -1/2 settles at 0."""
    system = odesys.ODESystem(vector.model(n=2, d=1, loss="rescaled").at([[1], [2]], [0.5, 0.5]).flow)
    runs = odesys.solve_ensemble(system, {"x_1": [-1.0, -0.5]}, np.linspace(0, 300, 31))
    seen = assumptions(LINE, runs, R=2.5)
    assert seen.x_norm.dims == runs.x_1.dims
    assert not seen.kept.isel(start=0, time=-1)
    assert seen.kept.isel(start=1).all()
    assert "|x| reaches" in seen.attrs["broken"]


A1, A2, B = [[1, 2], [0, 1]], [[1, 0], [1, 3]], [[0.6, 0.8], [0.0, 1.0]]


def test_a_matrix_problem_row_by_row():
    problem = softmax_regression.matrix(A1, A2, B)
    X = np.array([[0.5, -0.25], [-1.0, 0.75]])
    seen = assumptions(problem, X[None], R=10)
    Z = np.array(A1) @ X @ np.array(A2).T
    assert float(seen.x_norm[0]) == pytest.approx(math.sqrt(0.25 + 0.0625 + 1 + 0.5625), rel=1e-15)
    assert float(seen.log_alpha[0]) == pytest.approx(math.log(np.exp(Z).sum(axis=1).min()), rel=1e-14)
    # |A1|^2 = 3 + sqrt 8 and |A2|^2 = (11 + sqrt 85)/2: the largest roots of l^2 - 6 l + 1 and l^2 - 11 l + 9.
    norm = math.sqrt((3 + math.sqrt(8)) * (11 + math.sqrt(85)) / 2)
    assert seen.attrs["A_norm"] == pytest.approx(norm, rel=1e-14)
    assert seen.attrs["b_norm"] == 1.0


def test_a_matrix_run_of_a_solver_has_its_weights_by_name_in_any_order():
    problem = softmax_regression.matrix(A1, A2, B)
    model = matrix.model(n=2, d=2).at(A1, A2, B)
    start = {"X_1_1": 0.5, "X_1_2": -0.25, "X_2_1": -1.0, "X_2_2": 0.75}
    run = odesys.solve(odesys.ODESystem(model.flow), start, np.linspace(0, 1, 5))
    seen = assumptions(problem, run[sorted(run.data_vars, reverse=True)], R=10)
    states = np.stack([run[name].values for name in start], axis=-1).reshape(5, 2, 2)
    np.testing.assert_array_equal(seen.log_alpha, assumptions(problem, states, R=10).log_alpha)
    assert seen.time.values.tolist() == run.time.values.tolist()


def test_far_out_nothing_overflows():
    # alpha = e^1000 (1 + e^1000), and beta = exp(-R^2) is no float at R = 30.
    seen = assumptions(LINE, [[1000.0], [-1000.0]], R=30)
    np.testing.assert_allclose(seen.log_alpha, [2000, -1000], rtol=1e-15)
    assert seen.attrs["log_beta"] == -900


@pytest.mark.parametrize(
    ("run", "options", "message"),
    [
        ([[0.0]], {"R": 0}, "`R` is the bound of .* must be positive and finite; got 0"),
        ([[0.0]], {"R": 1, "beta": -1}, "`beta` is the floor of alpha and must be positive"),
        ([[0.0, 1.0]], {"R": 1}, r"end with the axes \(1,\) of the weights.*got shape \(1, 2\)"),
        (np.zeros((0, 1)), {"R": 1}, "there is at least one"),
        ([[math.nan]], {"R": 1}, "must be finite"),
        (xr.Dataset({"y": ("time", [0.0])}), {"R": 1}, r"lacks the weights \['x_1'\]; it has \['y'\]"),
    ],
)
def test_refuses(run, options, message):
    with pytest.raises(ValueError, match=message):
        assumptions(LINE, run, **options)
