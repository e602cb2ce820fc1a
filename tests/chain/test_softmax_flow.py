"""Softmax regression end to end: the derived flow, integrated, against independent trajectories and descent."""

from fractions import Fraction

import numpy as np
import pytest
from references import reference

import odesys
from odesys.simulation import descend, softmax_regression
from symbolic.softmax_regression import matrix, vector

TOLD = reference("softmax_numbers")["trajectories"]
M1 = reference("softmax_regression")["grad_hess"]["M1_n2d2"]


def exact(entries):
    return [[Fraction(value) for value in row] for row in entries]


def vector_case(name):
    """The model, the judge's problem and the start of a reference trajectory."""
    case = TOLD[name]
    A, (b,) = exact(case["A"]), exact([case["b"]])
    loss = case["loss"]
    model = vector.model(n=len(A), d=len(A[0]), loss=loss).at(A, b)
    judge = softmax_regression.vector(np.array(A, dtype=float), np.array(b, dtype=float), loss)
    return model, judge, np.array([float(Fraction(value)) for value in case["x0"]])


def states(run, names):
    return np.stack([run[name].values for name in names], axis=-1)


@pytest.mark.parametrize("name", [name for name in TOLD if name != "T8_M1_norm"])
def test_flows_of_vector_problems(name):
    model, _, start = vector_case(name)
    times = [0.0, *(float(t) for t, _ in TOLD[name]["traj"])]
    names = [x.name for x in model.x]
    run = odesys.solve(
        odesys.ODESystem(model.flow, {}),
        dict(zip(names, start, strict=True)),
        np.array(times),
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    )
    wanted = np.array([[float(value) for value in x] for _, x in TOLD[name]["traj"]])
    np.testing.assert_allclose(
        states(run, names)[1:], wanted, rtol=1e-10, atol=1e-10
    )  # the solver's, summed up


def matrix_case():
    A1, A2, B = (exact(M1[name]) for name in ("A1", "A2", "B"))
    model = matrix.model(n=2, d=2).at(A1, A2, B)
    judge = softmax_regression.matrix(*(np.array(entries, dtype=float) for entries in (A1, A2, B)))
    return model, judge, np.array(exact(M1["X"]), dtype=float)


def test_flow_of_a_matrix_problem():
    # A2 e_1 = 1: the first column of X stays (1/2, -1/3)
    model, _, X = matrix_case()
    names = [x.name for x in model.weights]
    times = [0.0, *(float(t) for t, _ in TOLD["T8_M1_norm"]["traj"])]
    run = odesys.solve(
        odesys.ODESystem(model.flow, {}),
        dict(zip(names, X.reshape(-1), strict=True)),
        np.array(times),
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    )
    wanted = np.array([[float(value) for value in x] for _, x in TOLD["T8_M1_norm"]["traj"]])
    np.testing.assert_allclose(
        states(run, names)[1:], wanted, rtol=1e-10, atol=1e-10
    )  # the solver's, summed up
    np.testing.assert_allclose(states(run, names)[:, [0, 2]], [[1 / 2, -1 / 3]] * 4, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "steps"),
    [("T1_n2d1_norm", 25), ("T2a_D2a_to_global", 200), ("T3b_D1a_right", 200), ("T4b_resc_to_minus_inf", 25)],
)
def test_descent_is_the_flow_to_first_order_in_its_step(name, steps):
    # step k is at t = k eta: no factor between the clocks; the error at t = 10 (T1: 5) halves with eta
    _, judge, start = vector_case(name)
    time, wanted = TOLD[name]["traj"][1]
    errors = []
    for count in (steps, 2 * steps, 4 * steps):
        run = descend(judge, start, rate=float(time) / count, steps=count + 1, every=count)
        errors.append(np.abs(run["w"].values[-1] - [float(value) for value in wanted]).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    np.testing.assert_allclose(ratios, 2, rtol=0.1)  # the second order in eta


def test_descent_of_a_matrix_is_the_flow_to_first_order_in_its_step():
    _, judge, X = matrix_case()
    time, wanted = TOLD["T8_M1_norm"]["traj"][1]
    errors = []
    for count in (40, 80, 160):
        run = descend(judge, X, rate=float(time) / count, steps=count + 1, every=count)
        errors.append(np.abs(run["w"].values[-1].reshape(-1) - [float(value) for value in wanted]).max())
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 2, rtol=0.1)  # the second order in eta


@pytest.mark.parametrize("name", ["T1_n2d1_norm", "T2a_D2a_to_global", "T4a_resc_to_fit"])
def test_derived_and_judged_gradients_agree(name):
    model, judge, start = vector_case(name)
    field = odesys.compile_field(odesys.ODESystem(model.flow, {}))
    for scale in (1.0, -2.0, 5.0):
        x = start * scale + 0.1
        np.testing.assert_allclose(judge.gradient(x), -np.asarray(field.rhs(0.0, x, field.args)), rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("gap", [17.0, 37.0, 100.0, 350.0, 700.0])
def test_both_compiled_and_judged_gradients_keep_their_digits(gap, backend):
    A, b = [[1, 0], [2, 1], [-1, 3]], [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    model = vector.model(n=3, d=2).at(A, b)
    judge = softmax_regression.vector(np.array(A, dtype=float), np.array(b, dtype=float))
    field = odesys.compile_field(odesys.ODESystem(model.flow, {}), backend=backend)
    for direction in (np.array([1.0, 0.0]), np.array([-1.0, 0.3]), np.array([0.2, -1.0])):
        x = gap * direction / np.ptp(judge.right @ direction)  # between the largest and the smallest logit
        got, wanted = -np.asarray(field.rhs(0.0, x, field.args)), judge.gradient(x)
        assert np.abs(got - wanted).max() < 1e-12 * np.abs(wanted).max()  # logits of up to 700 and 2^-53


def test_a_forgotten_half_is_caught_by_the_clock():
    # the control: descent on the loss without its 1/2 runs twice as fast
    _, judge, start = vector_case("T1_n2d1_norm")
    (time, wanted) = TOLD["T1_n2d1_norm"]["traj"][1]
    run = descend(lambda x: 2 * judge(x), start, rate=float(time) / 400, steps=401, every=400)
    assert abs(float(run["w"][-1, 0]) - float(wanted[0])) > 0.1


def test_the_long_escape_to_a_face():
    model, _, start = vector_case("T6_norm_spurious_infinity")
    rows = reference("softmax_numbers")["T6_long"]["rows"]
    run = odesys.solve(
        odesys.ODESystem(model.flow, {}),
        {"x_1": start[0], "x_2": start[1]},
        np.array([0.0, *(t for t, _, _ in rows)]),
        method="Radau",
        rtol=1e-11,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        states(run, ["x_1", "x_2"])[1:], [x for _, *x in rows], rtol=1e-7
    )  # the reference is float64 itself
