"""Softmax regression as the judge sees it: the definition, autodiff that keeps its digits, refusals."""

import itertools
import math
import pickle
from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from references import reference

from odesys.simulation import DescentError, descend, softmax_regression

HALF = [0.5, 0.5]
CASES = reference("softmax_regression")["grad_hess"]
LOSSES = ("normalized", "rescaled")


def numbers(entries):
    """An array of rows of numbers such as 1, "1/3" and "0.25"."""
    return np.array([[float(Fraction(str(v))) for v in np.atleast_1d(row)] for row in entries])


def vector_case(name):
    case = CASES[name]
    return case, numbers(case["A"]), numbers(case["b"]).ravel(), numbers(case["x"]).ravel()


def exact_gradient(A, b, x, digits=700):
    """grad L = sum_ij f_i f_j (c_i - c_j) (a_i - a_j)/2 in so many digits that nothing can cancel."""
    with mp.workdps(digits):
        A, b, x = ([mp.mpf(float(v)) for v in np.ravel(values)] for values in (A, b, x))
        rows = [A[i * len(x) : (i + 1) * len(x)] for i in range(len(b))]
        s = [mp.fdot(row, x) for row in rows]
        u = [mp.exp(value - max(s)) for value in s]
        f = [value / mp.fsum(u) for value in u]
        c = [p - q for p, q in zip(f, b, strict=True)]
        pairs = list(itertools.combinations(range(len(b)), 2))
        return [
            mp.fsum(f[i] * f[j] * (c[i] - c[j]) * (rows[i][k] - rows[j][k]) for i, j in pairs)
            for k in range(len(x))
        ]


def relative_error(got, exact):
    size = max(abs(value) for value in exact)
    return float(max(abs(mp.mpf(float(g)) - e) for g, e in zip(got, exact, strict=True)) / size)


# --- the definition
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["V1_n3d2", "V2_n3d1_multistable", "V5_ones_in_range", "V6_n2d1"])
def test_vector_losses_are_the_independent_numbers(name, loss):
    case, A, b, x = vector_case(name)
    problem = softmax_regression.vector(A, b, loss)
    assert problem.value(x) == pytest.approx(float(case[loss]["L"]), rel=1e-13)  # rounding
    wanted = numbers(case[loss]["grad"]).ravel()
    np.testing.assert_allclose(problem.gradient(x), wanted, rtol=1e-12, atol=1e-14)  # structural zeros
    hessian = numbers(case[loss]["hess"])
    for k, column in enumerate(hessian.T):
        got = problem.hessian_times(x, np.eye(len(x))[k])
        np.testing.assert_allclose(got, column, rtol=1e-12, atol=1e-13)  # structural zeros


@pytest.mark.parametrize("loss", LOSSES)
def test_matrix_losses_are_the_independent_numbers(loss):
    case = CASES["M1_n2d2"]
    A1, A2, B, X = (numbers(case[name]) for name in ("A1", "A2", "B", "X"))
    problem = softmax_regression.matrix(A1, A2, B, loss)
    assert problem.value(X) == pytest.approx(float(case[loss]["half_fro_sq"]), rel=1e-13)
    wanted = numbers(case[loss]["gradX_of_half"])
    np.testing.assert_allclose(problem.gradient(X), wanted, rtol=1e-12, atol=1e-14)  # structural zeros
    # the reference's Hessian is row-major in vec(X); A1 and A2 are not symmetric
    hessian = numbers(case[loss]["hess_rowmajor_of_half"])
    for k, column in enumerate(hessian.T):
        got = problem.hessian_times(X, np.eye(4)[k].reshape(2, 2))
        np.testing.assert_allclose(got.reshape(-1), column, rtol=1e-12, atol=1e-12)


def random_matrix_problem(loss, m=4, n=5, d1=3, d2=2):
    rng = np.random.default_rng(0)
    A1, A2, X = rng.normal(size=(m, d1)), rng.normal(size=(n, d2)), rng.normal(size=(d1, d2))
    return A1, A2, rng.dirichlet(np.ones(n), m), X, loss


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_is_that_of_the_plain_formula_and_of_finite_differences(loss):
    A1, A2, B, X, _ = random_matrix_problem(loss)

    def plain(X):
        U = np.exp(A1 @ X @ A2.T)
        total = U.sum(axis=1, keepdims=True)
        return np.sum((U / total - B) ** 2 if loss == "normalized" else (U - total * B) ** 2) / 2

    problem = softmax_regression.matrix(A1, A2, B, loss)
    assert problem.value(X) == pytest.approx(plain(X), rel=1e-13)
    got, h = problem.gradient(X), 1e-5
    for k in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[k] = h
        slope = (plain(X + step) - plain(X - step)) / (2 * h)
        assert got[k] == pytest.approx(slope, rel=1e-6, abs=1e-9)  # h^2, and rounding over h


@pytest.mark.parametrize("loss", LOSSES)
def test_kronecker_route_agrees_row_major_and_fails_column_major(loss):
    A1, A2, B, X, _ = random_matrix_problem(loss)
    K = np.kron(A1, A2)
    got = softmax_regression.matrix(A1, A2, B, loss).gradient(X)

    def stacked(blocks):
        """sum_j A_[j]^T g_j over single regressions, one for each row of targets."""
        return sum(
            softmax_regression.vector(block, b, loss).gradient(X.reshape(-1))
            for block, b in zip(blocks, B, strict=True)
        )

    row_major = stacked(np.split(K, len(A1)))
    np.testing.assert_allclose(row_major.reshape(X.shape), got, rtol=1e-12, atol=1e-13)
    strided = stacked([K[j :: len(A1)] for j in range(len(A1))])
    assert np.abs(strided.reshape(X.shape) - got).max() > 1e-2 * np.abs(got).max()


@pytest.mark.parametrize("loss", LOSSES)
def test_one_row_is_the_vector_case(loss):
    _, A, b, x = vector_case("V1_n3d2")
    vector = softmax_regression.vector(A, b, loss)
    matrix = softmax_regression.matrix([[1.0]], A, [b], loss)
    assert matrix.value([x]) == pytest.approx(vector.value(x), rel=1e-15)
    np.testing.assert_allclose(matrix.gradient([x])[0], vector.gradient(x), rtol=1e-14)


# --- digits
# --------------------------------------------------------------------------------------------------------


GAPS = [1.0, 17.0, 37.0, 100.0, 353.5, 700.0]


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize(
    ("A", "b", "x"),
    [
        ([[1], [2]], HALF, [1]),
        ([[1], [2]], HALF, [-1]),
        ([[0.3], [1.3], [0.7]], [0.2, 0.3, 0.5], [1]),
        ([[1.3], [1.3], [0.3]], [0.2, 0.55, 0.25], [1]),  # rows that tie
        ([[1, 2], [3, -1], [0, 1]], [0.25, 0.5, 0.25], [0.4, -0.2]),
        ([[1], [2]], [-0.6, 0.8], [1]),  # outside the simplex, where the vertex attracts
    ],
)
def test_gradient_keeps_its_digits_at_every_gap(A, b, x, gap):
    A, x = np.array(A, dtype=float), np.array(x, dtype=float)
    s = np.sort(A @ x)
    x = x * gap / (s[-1] - s[s < s[-1]][-1])  # the runner-up is `gap` below
    got = softmax_regression.vector(A, b).gradient(x)
    assert relative_error(got, exact_gradient(A, b, x)) < 1e-12  # 2^-53 times logits of up to 2000


@pytest.mark.parametrize("gap", [1.0, 17.0, 37.0, 100.0, 350.0])
def test_one_hot_targets_keep_their_digits(gap):
    # f_k - 1 is what the other f_j sum up to, of order exp(-gap); the gradient is of order exp(-2 gap)
    got = softmax_regression.vector([[0.0], [1.0]], [0.0, 1.0]).gradient([gap])
    assert relative_error(got, exact_gradient([[0], [1]], [0, 1], [gap])) < 1e-12


@pytest.mark.parametrize("gap", [40.0, 700.0])
def test_matrix_gradient_keeps_its_digits(gap):
    A2, b, x = [[1.0, 2.0], [3.0, -1.0], [3.0, -1.0]], [0.25, 0.5, 0.25], np.array([gap / 5, -gap / 5])
    got = softmax_regression.matrix([[2.0], [1.0]], A2, [b, b]).gradient([x / 2])
    # the first row, with logits A2 x; the second, with half of them, and through the factors 2 and 1
    whole, half = exact_gradient(A2, b, x), exact_gradient(A2, b, x / 2)
    assert relative_error(got[0], [2 * p + q for p, q in zip(whole, half, strict=True)]) < 1e-12


def library_gradient(A, b, x):
    return jax.grad(lambda x: jnp.sum((jax.nn.softmax(A @ x) - b) ** 2) / 2)(x)


def centred_on_the_mean(A, b, x):
    z = A @ x
    f = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
    return (A - A.T @ f).T @ (f * (f - b - f @ (f - b)))


def test_a_library_softmax_loses_all_digits_and_the_sign():
    A, b, x = np.array([[1.0], [2.0]]), np.array(HALF), np.array([40.0])
    (true,) = exact_gradient(A, b, x)
    assert float(true) == pytest.approx(math.exp(-40) / 2, rel=1e-12)  # p (1-p) (p - 1/2), by hand
    assert float(library_gradient(A, b, x)[0]) < 0 < float(true)
    assert relative_error(library_gradient(A, b, x), [true]) > 1


def test_centring_on_the_mean_fails_where_three_equal_rows_win():
    # each of them carries an O(1) part of the gradient; their sum rounds, and so does a - abar
    A, b = np.array([[3.1], [3.1], [3.1], [0.3]]), np.array([0.53, 0.2, 0.06, 0.21])
    x = np.array([100.0]) / (3.1 - 0.3)
    exact = exact_gradient(A, b, x)
    assert relative_error(centred_on_the_mean(A, b, x), exact) > 1
    assert relative_error(softmax_regression.vector(A, b).gradient(x), exact) < 1e-12


def unshifted_loss(A, b, x):
    u = jnp.exp(A @ x)
    return jnp.sum((u / jnp.sum(u) - b) ** 2) / 2


@pytest.mark.parametrize(("x", "wrong"), [(300.0, False), (400.0, True), (705.0, True)])
def test_an_unshifted_softmax_is_wrong_before_it_overflows(x, wrong):
    # the backward pass squares <u, 1>, which overflows at 354.9; the loss is right all along
    A, b, at = np.array([[0.0], [1.0]]), np.array([0.25, 0.75]), jnp.array([x])
    value, slope = jax.value_and_grad(unshifted_loss, argnums=2)(A, b, at)
    assert float(value) == pytest.approx(0.0625, rel=1e-12)
    assert np.isfinite(slope).all()
    assert (abs(float(slope[0])) > 0.1) == wrong
    assert relative_error(softmax_regression.vector(A, b).gradient(at), exact_gradient(A, b, at)) < 1e-12


def test_subnormal_numbers_are_flushed_to_zero_by_xla_and_not_by_numpy():
    problem = softmax_regression.vector([[0.0], [1.0]], HALF)
    edge = -math.log(np.finfo(np.float64).tiny)
    assert edge == pytest.approx(708.3964, abs=1e-4)
    assert float(jnp.exp(-jnp.float64(edge + 1))) == 0 < np.exp(-(edge + 1))
    assert problem.gradient([edge - 2])[0] > 0
    assert problem.gradient([edge + 1])[0] == 0  # a plateau that looks like a fixed point


# --- the rescaled loss
# ---------------------------------------------------------------------------------------------


def test_log_of_the_rescaled_loss_reaches_where_the_loss_does_not():
    # Lr = w^2 ((1-q) w - q)^2 with w = e^x for A = (1, 2), b = (1-q, q); q = 1/2
    problem = softmax_regression.vector([[1.0], [2.0]], HALF, "rescaled")
    for x in (-300.0, -1.0, 100.0, 600.0):
        with mp.workdps(40):
            w = mp.exp(x)
            wanted = float(mp.log(w**2 * ((w - 1) / 2) ** 2))
        assert problem.log_loss([x]) == pytest.approx(wanted, rel=1e-13)
    assert problem.value([1.0]) == pytest.approx(math.exp(2) * ((math.e - 1) / 2) ** 2, rel=1e-14)
    with pytest.raises(
        softmax_regression.LossOverflowError, match=r"exp\(2398.61\).*Take `log_loss`"
    ) as caught:
        problem.value([600.0])
    assert caught.value.log_loss == pytest.approx(2400 - math.log(4), rel=1e-13)
    assert pickle.loads(pickle.dumps(caught.value)).log_loss == caught.value.log_loss
    for refused in (problem.gradient, lambda x: problem.hessian_times(x, x)):
        with pytest.raises(softmax_regression.LossOverflowError):
            refused([600.0])


def test_log_of_the_normalized_loss():
    problem = softmax_regression.vector([[0.0], [1.0]], HALF)
    assert problem.log_loss([0.3]) == pytest.approx(math.log(problem.value([0.3])), rel=1e-14)


# --- descent
# -------------------------------------------------------------------------------------------------------


def test_descent_finds_the_target():
    # n = 2: p is strictly monotone in x, so that log(q/(1-q)) is the only fixed point
    problem = softmax_regression.vector([[0.0], [1.0]], [0.25, 0.75])
    run = descend(problem, np.zeros(1), rate=10.0, steps=201)
    assert float(run["w"][-1, 0]) == pytest.approx(math.log(3), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_descent_conserves_what_shifts_the_logits(loss):
    # A2 e_1 = 1: the first column of X cannot move under the normalized loss, and does under the rescaled one
    case = CASES["M1_n2d2"]
    A1, A2, B, X = (numbers(case[name]) for name in ("A1", "A2", "B", "X"))
    run = descend(softmax_regression.matrix(A1, A2, B, loss), X, rate=0.05, steps=101)
    moved = np.abs(run["w"][-1, :, 0] - X[:, 0]).max()
    assert (moved < 1e-15) == (loss == "normalized")


def test_descent_of_an_overflowing_loss_is_refused():
    problem = softmax_regression.vector([[1.0], [2.0]], HALF, "rescaled")
    with pytest.raises(DescentError, match="not finite at the start"):
        descend(problem, np.array([400.0]), rate=0.1, steps=3)


def test_a_large_step_on_the_rescaled_loss_jumps_to_the_plateau_at_minus_infinity():
    # dLr/dx is about 2 w^4/4 = e^12/2 at x = 3: one step leads to where exp(x) is 0 and the loss with it
    problem = softmax_regression.vector([[1.0], [2.0]], HALF, "rescaled")
    run = descend(problem, np.array([3.0]), rate=1.0, steps=3)
    assert float(run["w"][-1, 0]) < -1e4
    assert float(run["loss"][-1]) == 0
    assert problem.log_loss([-1e4]) == pytest.approx(-2e4 - math.log(4), rel=1e-12)


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_a_step_must_be_positive(rate):
    with pytest.raises(ValueError, match="`rate` is the learning rate eta and must be positive"):
        descend(softmax_regression.vector([[0.0], [1.0]], HALF), np.zeros(1), rate=rate, steps=3)


# --- bad input
# -----------------------------------------------------------------------------------------------------


def test_labels_say_where_the_target_lies():
    for b, where in [
        (HALF, "inside"),
        ([0.0, 1.0], "on the boundary of"),
        ([-0.6, 0.8], "outside"),
        ([1, 1], "outside"),
    ]:
        assert softmax_regression.vector([[0.0], [1.0]], b).label == f"target {where} the simplex"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.vector([[1.0], [2.0]], [1.0]), r"`b` must have an entry .*shape \(2,\); got \(1,\)"),
        (lambda s: s.vector([1.0, 2.0], HALF), r"`A` must have 2 axes.*got shape \(2,\)"),
        (lambda s: s.vector(np.zeros((2, 0)), HALF), r"none of length 0; got shape \(2, 0\)"),
        (lambda s: s.vector([[1.0], [2.0]], [0.5, math.nan]), "`b` must hold finite numbers"),
        (lambda s: s.vector([[1.0], [math.inf]], HALF), "`A` must hold finite numbers"),
        (lambda s: s.vector([[1.0]], [1.0]), "With n = 1 the softmax is 1"),
        (lambda s: s.vector([[1.0], [2.0]], HALF, "squared"), r"`loss` must be one of .*got 'squared'"),
        (lambda s: s.matrix([[1.0]], [[1.0], [2.0]], [[0.5], [0.5]]), r"`B` must have a row .*\(1, 2\); got \(2, 1\)"),
        (lambda s: s.matrix([[1.0]], [[1.0], [2.0]], [[0.5, -math.inf]]), "`B` must hold finite numbers"),
    ],
)  # fmt: skip
def test_faulty_problems_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(softmax_regression)


@pytest.mark.parametrize(
    "A",
    [[["a"], ["b"]], [["1"], ["2"]], [[1.0], [2.0, 3.0]], [[1j], [2.0]], np.array([[1 + 1j], [2]])],
)  # fmt: skip
def test_what_is_no_array_of_real_numbers_is_refused_by_name(A):
    with pytest.raises(TypeError, match="`A` must be an array of real numbers; got"):
        softmax_regression.vector(A, HALF)
    with pytest.raises(TypeError, match="`weights` must be an array of real numbers; got"):
        softmax_regression.vector([[1.0], [2.0]], HALF).value([1j])


def test_one_row_has_a_rescaled_loss():
    # u - u b = u (1 - b): Lr = e^{2 x} (1 - b)^2 / 2
    problem = softmax_regression.vector([[1.0]], [0.5], "rescaled")
    assert problem.value([1.0]) == pytest.approx(math.exp(2) / 8, rel=1e-15)


@pytest.mark.parametrize("loss", LOSSES)
def test_logits_beyond_the_numbers_are_refused(loss):
    # at x = 1e308 two of the logits are infinite, and which of them wins is lost: L = 3/4, where row 2 gives 1/4
    problem = softmax_regression.vector([[1.0], [2.0], [2.5]], [0.5, 0.5, 0.0], loss)
    for ask in (problem.value, problem.gradient, problem.log_loss):
        with pytest.raises(ValueError, match=r"logits must be finite.*size 1e\+308"):
            ask([1e308])
    with pytest.raises(ValueError, match="logits must be finite"):
        problem.hessian_times([1e308], [1.0])
    with pytest.raises(DescentError, match="not finite at the start"):
        descend(problem, np.array([1e308]), rate=0.1, steps=3)


def test_faulty_weights_are_refused():
    problem = softmax_regression.vector([[1.0], [2.0]], HALF)
    with pytest.raises(ValueError, match=r"`weights` must have shape \(1,\); got \(2,\)"):
        problem.value([1.0, 2.0])
    with pytest.raises(ValueError, match="`weights` must be finite"):
        problem.gradient([math.nan])
    with pytest.raises(ValueError, match=r"`direction` must have shape \(1,\)"):
        problem.hessian_times([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match=r"The weights must have shape \(1,\); got \(2,\)"):
        problem(jnp.zeros(2))


def test_float32_is_refused():
    problem = softmax_regression.vector([[1.0], [2.0]], HALF)
    with pytest.raises(TypeError, match=r"Comparisons need float64.*got weights of float32"):
        problem(jnp.zeros(1, dtype=jnp.float32))
    with pytest.raises(TypeError, match="weights"):
        descend(problem, [0.1], rate=0.1, steps=3)


def test_the_caller_cannot_change_the_data():
    b = np.array(HALF)
    problem = softmax_regression.vector([[1.0], [2.0]], b)
    before, b[0] = problem.value([1.0]), 7.0
    assert problem.value([1.0]) == before
    with pytest.raises(ValueError, match="read-only"):
        problem.target[0] = 7.0
