"""The gradient as it is compiled: every digit at gaps up to 700, the fixed points and the runs that follow from it."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from references import reference

import fixedpoints
import odesys
from odesys.lambdify import compile_expressions
from symbolic.softmax_regression import vector
from symbolic.softmax_regression.matrix import MatrixSoftmaxRegression

REFERENCE = reference("softmax_regression")

#: rows of A and target: interior, a vertex, close to one, zeros, outside the simplex, and rows far from zero.
PROBLEMS = [
    ([1, 2], "1/2 1/2"),
    ([0, 1], "0 1"),
    ([0, 1], "1 0"),
    ([0, 1], "1/1000 999/1000"),
    ([0, 4, 5], "1/3 0 2/3"),
    ([0, 4, 5], "-3/5 4/5 0"),
    ([1001, 1004, 1005], "1/3 0 2/3"),
]


def line(rows, target, loss="normalized"):
    model = vector.model(n=len(rows), d=1, loss=loss)
    return model.at([[a] for a in rows], map(sp.Rational, target.split()))


def truth(model, *x):
    """A^T S c with 1400 digits, straight from the definition: nothing cancels to fewer than 700."""
    with mpmath.workdps(1400):
        A = [[mpmath.mpf(int(a)) for a in model.A.row(i)] for i in range(model.A.rows)]
        u = [mpmath.exp(mpmath.fdot(a, map(mpmath.mpf, x))) for a in A]
        f = [v / mpmath.fsum(u) for v in u]
        c = [v - mpmath.mpf(int(b.p)) / int(b.q) for v, b in zip(f, model.b, strict=True)]
        mean = mpmath.fdot(f, c)
        entries = [
            mpmath.fsum(a[k] * p * (q - mean) for a, p, q in zip(A, f, c, strict=True)) for k in range(len(x))
        ]
        return entries[0] if len(x) == 1 else entries


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize(("rows", "target"), PROBLEMS)
def test_relative_precision_at_large_gaps(rows, target, backend):
    """10 roundings; the logits' gaps reach 700, where f_2/f_1 is 1e-304."""
    model = line(rows, target)
    gradient = compile_expressions(model.gradient, model.x, backend)
    width = max(rows) - min(rows)
    for gap in (0.3, 5, 17, 37, 80, 300, 700):
        for sign in (1, -1):
            x = sign * gap / width
            expected = truth(model, x)
            if abs(expected) > 1e-300:  # below, doubles lose digits one by one
                relative = abs(mpmath.mpf(float(gradient(x)[0])) / expected - 1)
                # A gap of 700 is known to half a unit in its last place, 6e-14, which f_2/f_1 inherits.
                assert relative < 3e-15 + 2e-16 * gap, (x, float(relative))


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("place", [(3, 1), (60, -20), (-80, 20), (20, 90), (-50, -50), (100, 0), (0, -140)])
def test_relative_precision_of_two_weights(backend, place):
    """Exponents of two weights: the logits of D2a differ by up to 700 at these places."""
    model = vector.model(n=4, d=2).at(
        [[2, 0], [1, 2], [-3, -3], [2, 1]], [sp.Rational(k, 8) for k in (1, 1, 3, 3)]
    )
    got = compile_expressions(model.gradient, model.x, backend)(*map(float, place))
    for found, expected in zip(got, truth(model, *place), strict=True):
        assert float(abs(mpmath.mpf(float(found)) / expected - 1)) < 3e-15 + 2e-16 * 700


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("scale", [1000.0, 1e5])
def test_far_out_the_flow_and_its_jacobian_are_zero(backend, scale):
    """Every gap is beyond 745, where exp(-gap) is no double: what is left is zero, never NaN."""
    model = vector.model(n=4, d=2).at(
        [[2, 0], [1, 2], [-3, -3], [2, 1]], [sp.Rational(k, 8) for k in (1, 1, 3, 3)]
    )
    compiled = odesys.compile_field(model.flow, backend)
    for turn in ((3, -1), (-3, 1), (1, 3), (-1, -3)):
        state = scale * np.array(turn, dtype=float)
        assert not np.any(compiled.rhs(0.0, state, ()))
        assert not np.any(compiled.jacobian(0.0, state, ()))


def test_the_derivative_of_the_textbook_softmax_loses_all_digits():
    """A control for the test above: S c with c = f - b on b = e_2 is wrong by half at a gap of 40."""
    model = line([0, 1], "0 1")
    textbook = compile_expressions(model.gradient_forms["A^T S c"], model.x, "numpy")
    assert abs(float(textbook(40.0)[0]) / float(truth(model, 40.0)) - 1) > 0.4


def test_letters_are_as_precise_as_numbers():
    """A and b as arguments of the compiled flow, at a gap of 600 to a vertex."""
    field = vector.model(n=2, d=1).flow
    compiled = odesys.compile_field(field)
    got = -compiled.rhs(0.0, [300.0], (0.0, 2.0, 0.0, 1.0))[0]
    model = line([0, 2], "0 1")
    assert float(truth(model, 150.0)) == pytest.approx(
        -compiled.rhs(0.0, [150.0], (0, 2, 0, 1))[0], rel=1e-13
    )
    assert got == 0.0  # e^-1200 is no double


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        (name, loss)
        for name in ("D1a", "D1b_interior_b", "D1d_rescaled_closed_form", "D2a", "D2c_n3_full_rank_unique")
        for loss in ("normalized", "rescaled")
        if loss in REFERENCE["fixed_points"][name]
    ],
)
def test_fixed_points(name, loss):
    """Complete, and equal to 50-digit Newton's to a rounding or two."""
    case = REFERENCE["fixed_points"][name]
    A = [row if isinstance(row, list) else [row] for row in case["A"]]
    model = vector.model(n=len(A), d=len(A[0]), loss=loss).at(A, [sp.Rational(b) for b in case["b"]])
    found = fixedpoints.find(odesys.ODESystem(model.flow))
    assert found.certificate.kind == "complete"
    expected = [np.atleast_1d(p["x"]).astype(float) for p in case[loss]["fixed_points"]]
    got = [np.array(list(p.location.values())) for p in found.points]
    assert len(got) == len(expected)
    for place in expected:
        assert min(np.abs(place - other).max() for other in got) < 4e-16 * (1 + np.abs(place).max())


@pytest.mark.parametrize("name", ["T1_n2d1_norm", "T3a_D1a_left", "T4a_resc_to_fit", "T4b_resc_to_minus_inf"])
def test_trajectories(name):
    """The file's Taylor series have 16 digits; the integrator is asked for 1e-12."""
    case = REFERENCE["trajectories"][name]
    A, b = [[sp.Rational(a) for a in row] for row in case["A"]], [sp.Rational(x) for x in case["b"]]
    model = vector.model(n=len(A), d=1, loss=case["loss"]).at(A, b)
    follow(model.flow, [sp.Rational(x) for x in case["x0"]], case["traj"])


@pytest.mark.parametrize("name", ["T1_n2d1_norm", "T3a_D1a_left", "T4a_resc_to_fit", "T4b_resc_to_minus_inf"])
def test_closed_forms_follow_the_same_trajectories(name):
    """No integrator: the implicit law of w = exp(g x), inverted; the file has 16 digits."""
    case = REFERENCE["trajectories"][name]
    A, b = [[sp.Rational(a) for a in row] for row in case["A"]], [sp.Rational(x) for x in case["b"]]
    law = vector.model(n=len(A), d=1, loss=case["loss"]).at(A, b).closed_forms["exponential"]
    times = [0.0, *(float(t) for t, _ in case["traj"])]
    run = odesys.evaluate(law, {"w": math.exp(sp.Rational(case["x0"][0]))}, times)
    got = np.log(run["w"].values[1:])
    assert got == pytest.approx([float(x) for _, (x,) in case["traj"]], rel=1e-12, abs=1e-14)


def test_trajectory_of_a_matrix():
    case, problem = REFERENCE["trajectories"]["T8_M1_norm"], REFERENCE["grad_hess"]["M1_n2d2"]
    B, X = ([[sp.Rational(x) for x in row] for row in problem[name]] for name in ("B", "X"))
    model = MatrixSoftmaxRegression(problem["A1"], problem["A2"], B)
    run = follow(model.flow, [x for row in X for x in row], case["traj"])
    # A2 e_1 = 1 keeps the first column of X, to the last bit.
    assert set(run["X_1_1"].values) == {0.5}


def follow(field, start, rows):
    times = [0.0, *(float(t) for t, _ in rows)]
    begin = dict(zip(field.names, map(float, start), strict=True))
    run = odesys.solve(odesys.ODESystem(field), begin, times, method="DOP853", rtol=1e-12, atol=1e-14)
    for (_, expected), k in zip(rows, range(1, len(times)), strict=True):
        got = [float(run[x][k]) for x in field.names]
        assert got == pytest.approx(list(map(float, expected)), rel=1e-10, abs=1e-11)
    return run
