"""Sums of regressions that share their weights: the models that they come from, parts that are constant, refusals."""

import pytest
import sympy as sp
from softmax_problems import matrix_problem, named

from symbolic.normal_form import vanishes
from symbolic.softmax_regression import matrix, vector
from symbolic.softmax_regression.joint import JointRegression

x, y = sp.symbols("x y")
HALF = sp.Rational(1, 2)


def two(targets=((HALF, HALF), (sp.S.One,)), normalization="normalized"):
    """The second part has a single row."""
    blocks = (sp.ImmutableMatrix([[0, 0], [1, 0]]), sp.ImmutableMatrix([[0, 3]]))
    return JointRegression((x, y), blocks, targets, normalization, ((1, 2), (3,)))


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
def test_a_vector_model_is_a_sum_of_one(loss):
    model = vector.model(n=3, d=2, loss=loss)
    assert model.joint.loss == model.loss
    assert model.joint.flow.rhs == model.flow.rhs
    assert model.joint.parameters == model.parameters
    assert model.joint.places == ((1, 2, 3),)


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
def test_a_matrix_model_is_the_sum_of_its_rows(loss):
    model = matrix.model(n=2, d=2, rows=1, loss=loss)
    assert vanishes(model.joint.loss - model.loss)
    assert all(vanishes(f - g) for f, g in zip(model.joint.flow.rhs, model.flow.rhs, strict=True))
    numbers = matrix_problem([[1, 2], [0, 1]], [[1, 0], [1, 3]], [["1/3", "2/3"], ["3/4", "1/4"]], loss)
    assert all(vanishes(f - g) for f, g in zip(numbers.joint.flow.rhs, numbers.flow.rhs, strict=True))
    assert numbers.joint.places == (((1, 1), (1, 2)), ((2, 1), (2, 2)))


def test_a_part_of_one_row_is_constant_if_normalized():
    # (1/2) (1 - 1/3)^2 on top of the first part's loss
    alone = vector.model(n=2, d=1).at([[0], [1]], [HALF, HALF])
    model = two(((HALF, HALF), (sp.Rational(1, 3),)))
    assert vanishes(model.loss - alone.loss.subs(alone.x[0], x) - sp.Rational(2, 9))
    assert model.gradient[1] == 0
    # rescaled: (1/2) (exp(3 y) - exp(3 y)/3)^2, whose derivative in y is 3 (4/9) exp(6 y)
    rescaled = two(((HALF, HALF), (sp.Rational(1, 3),)), "rescaled")
    assert vanishes(rescaled.gradient[1] - sp.Rational(4, 3) * sp.exp(6 * y))


def test_flat_conditions_are_those_of_all_parts():
    # rows (0, 0), (1, 0) and (0, 3): normalized, y is free; rescaled, nothing is
    assert two().flat_conditions.nullspace() == [sp.Matrix([0, 1])]
    assert two(normalization="rescaled").flat_conditions.nullspace() == []


def test_interpolation_meets_all_targets():
    third = sp.Rational(1, 3)
    assert two(((third, 2 * third), (sp.S.One,))).interpolation() == {x: sp.log(2), y: 0}
    with pytest.raises(ValueError, match=r"f sums to 1, the target to \[1, 1/2\]"):
        two(((third, 2 * third), (HALF,))).interpolation()


def test_interpolation_leaves_flat_weights_at_zero():
    # X e_1 is free in M1; A2 differs in its second column alone: X_12 + 2 X_22 = log 1, X_22 = log 3
    found = {s.name: value for s, value in named("M1").interpolation().items()}
    assert found == {"X_1_1": 0, "X_1_2": -2 * sp.log(3), "X_2_1": 0, "X_2_2": sp.log(3)}


def test_other_losses_are_no_such_sums():
    with pytest.raises(ValueError, match="one of u = exp without ridge; this model has cosh"):
        _ = vector.model(n=2, d=1, loss="rescaled", activation="cosh").joint
    with pytest.raises(ValueError, match=r"has exp and a ridge term\. Use fixedpoints\.find"):
        _ = vector.model(n=2, d=1, ridge=True).joint
