"""Matrix softmax regression: the tensor trick in the right convention, derivatives, special cases, refusals."""

import pickle

import mpmath
import pytest
import sympy as sp
from references import reference

from symbolic.normal_form import vanishes
from symbolic.softmax_regression import matrix, vector
from symbolic.softmax_regression.matrix import MatrixSoftmaxRegression

CASE = reference("softmax_regression")["grad_hess"]["M1_n2d2"]
#: The file rounds to 17 digits; its zeros are rounding of size 1e-51.
DIGITS, ZERO = sp.Float("1e-15"), sp.Float("1e-40")

#: Not symmetric, m, n, d1 and d2 all different: no transposition goes unnoticed.
A1 = [[1, 2, -1], [0, 1, 3]]
A2 = [[1, 0, 2, 1], [1, 1, 0, -1], [3, -1, 1, 0], [0, 2, 1, 1], [2, 0, 0, -1]]
B = [[sp.Rational(k, 15) for k in row] for row in ((1, 2, 3, 4, 5), (5, 4, 3, 2, 1))]


def uneven(loss="normalized"):
    return MatrixSoftmaxRegression(A1, A2, B, loss)


def rationals(rows):
    return [[sp.Rational(x) for x in row] for row in rows]


def reference_problem(loss):
    model = matrix.model(n=2, d=2, loss=loss).at(CASE["A1"], CASE["A2"], rationals(CASE["B"]))
    entries = [x for row in rationals(CASE["X"]) for x in row]
    return model, dict(zip(model.weights, entries, strict=True))


def close(got, rows, at):
    for entry, text in zip(got, [x for row in rows for x in row], strict=True):
        value = sp.sympify(entry).subs(at).evalf(30, maxn=60)
        assert abs(value - sp.Float(text, 30)) <= ZERO + DIGITS * abs(value), (value, text)


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
def test_reference_values(loss):
    model, at = reference_problem(loss)
    expected = CASE[loss]
    close([model.loss], [[expected["half_fro_sq"]]], at)
    close([2 * model.loss], [[expected["paper_objective_no_half"]]], at)
    close(model.Z, CASE["Z"], at)
    for form in model.gradient_forms.values():
        close(form, expected["gradX_of_half"], at)
    close(model.hessian, expected["hess_rowmajor_of_half"], at)
    close([-f for f in model.flow.rhs], expected["gradX_of_half"], at)


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
@pytest.mark.parametrize(("n", "d", "rows"), [(2, 1, 2), (2, 2, 1)])
def test_forms_equal_the_derivative_in_X_for_letters(n, d, rows, loss):
    model = matrix.model(n=n, d=d, rows=rows, loss=loss)
    for name, form in model.gradient_forms.items():
        for x, entry in zip(model.weights, form, strict=True):
            assert vanishes(model.loss.diff(x) - entry), name


class TestTensorTrick:
    def test_row_major_by_definition(self):
        """(A1 kron A2)[(i-1) n + j, (k-1) d2 + l] = A1[i, k] A2[j, l], and it carries vec X to vec Z."""
        model = uneven()
        (m, d1), (n, d2) = model.A1.shape, model.A2.shape
        for i in range(m):
            for j in range(n):
                for k in range(d1):
                    for l in range(d2):
                        assert model.kronecker[i * n + j, k * d2 + l] == A1[i][k] * A2[j][l]

    def test_blocks_give_rows_of_the_logits(self):
        model = uneven()
        vec = sp.Matrix(list(model.X))
        for j, block in enumerate(model.blocks):
            assert block.shape == (5, 12)
            assert sp.expand(block * vec - model.Z.row(j).T) == sp.zeros(5, 1)

    def test_column_major_is_another_problem(self):
        """The planted fault: A1 kron A2 with column-major vec, or its blocks taken as rows, is caught."""
        model = uneven()
        wrong_vec = model.X.vec()  # SymPy's vec stacks columns
        assert sp.expand(model.kronecker * wrong_vec - sp.Matrix(list(model.Z))) != sp.zeros(10, 1)
        wrong_order = sp.kronecker_product(model.A2, model.A1)
        assert sp.expand(wrong_order * sp.Matrix(list(model.X)) - sp.Matrix(list(model.Z))) != sp.zeros(10, 1)
        # Consistently column-major it is right again, for columns of Z.
        assert sp.expand(wrong_order * wrong_vec - model.Z.vec()) == sp.zeros(10, 1)

    def test_how_far_column_major_is_off(self):
        # The file's |vec Z - (A1 kron A2) vec X| with column-major vec on both sides.
        model, at = reference_problem("normalized")
        wrong = model.kronecker * model.X.vec() - model.Z.vec()
        gap = wrong.subs(at).norm().evalf(20)
        expected = CASE["wrong_convention_gap(colmajor vec with A1 kron A2)"]
        assert abs(gap / sp.Float(expected, 20) - 1) < 1e-15

    def test_the_loss_is_the_sum_of_single_regressions(self):
        model = uneven()
        total = 0
        for single in model.singles:
            total += single.loss.xreplace(dict(zip(single.x, model.weights, strict=True)))
        at = {x: sp.Rational(k - 5, 7 + k) for k, x in enumerate(model.weights)}
        # Equal term by term up to the order of the factors: equal to 50 digits at a rational point.
        assert abs((total - model.loss).subs(at).evalf(50)) < sp.Float("1e-45")

    def test_the_sum_of_single_regressions_is_proven_for_letters(self):
        model = matrix.model(n=2, d=1)
        total = sum(s.loss.xreplace(dict(zip(s.x, model.weights, strict=True))) for s in model.singles)
        assert vanishes(total - model.loss)


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
def test_gradient_of_an_uneven_problem_is_the_derivative(loss):
    """A1 is 2 x 3, A2 is 3 x 2; against numerical differentiation with 40 digits, of which half are left."""
    model = MatrixSoftmaxRegression(A1, [row[:2] for row in A2[:3]], [row[:3] for row in B], loss)
    at = [mpmath.mpf((-1) ** k * (k + 1)) / (20 + k) for k in range(6)]
    value = sp.lambdify(model.weights, model.loss, "mpmath", cse=True)
    gradients = sp.lambdify(
        model.weights, [list(f) for f in model.gradient_forms.values()], "mpmath", cse=True
    )
    with mpmath.workdps(40):
        for form in gradients(*at):
            for k, entry in enumerate(form):
                slope = mpmath.diff(lambda x, k=k: value(*at[:k], x, *at[k + 1 :]), at[k])
                assert abs(entry - slope) < 1e-18


def test_hessian_times_a_direction():
    model, at = reference_problem("normalized")
    Y = sp.Matrix([[1, -2], [3, sp.Rational(1, 2)]])
    product = model.hessian * sp.Matrix(list(Y))
    for got, expected in zip(model.hessian_times(Y), product, strict=True):
        assert abs((got - expected).subs(at).evalf(40)) < sp.Float("1e-35")


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
def test_one_row_is_the_vector_problem(loss):
    """A1 = (1): X is x^T, and everything is the vector regression on A2."""
    single = vector.model(n=3, d=2, loss=loss)
    one = MatrixSoftmaxRegression([[1]], single.A, sp.Matrix([single.b]), loss)
    rename = dict(zip(one.weights, single.x, strict=True))
    assert vanishes(one.loss.xreplace(rename) - single.loss)
    assert all(vanishes(f.xreplace(rename) - g) for f, g in zip(one.flow.rhs, single.flow.rhs, strict=True))


class TestConserved:
    def test_X_k_where_A2_k_is_one(self):
        # A2 e_1 = 1: the first column of X stays, as in the reference run T8.
        model, _ = reference_problem("normalized")
        assert {i.expression for i in model.conserved} == {model.X[0, 0], model.X[1, 0]}
        step = model.gradient_map(step=sp.Symbol("eta", positive=True))
        assert step.rhs[0] == model.X[0, 0]
        assert step.rhs[2] == model.X[1, 0]

    def test_kernel_of_A1(self):
        # A1 = [[1, 1], [2, 2]] does not see X_1 - X_2.
        half = sp.Rational(1, 2)
        model = matrix.model(n=2, d=2).at([[1, 1], [2, 2]], [[1, 0], [0, 1]], [[half, half]] * 2)
        expected = sp.Matrix([model.X[0, 0] - model.X[1, 0], model.X[0, 1] - model.X[1, 1]])
        kept = sp.Matrix([i.expression for i in model.conserved])
        span = kept.jacobian(model.weights)
        # Three directions: the two of ker A1, and k = (1, 1) with A2 k = 1 for the direction that A1 sees.
        assert span.rank() == 3
        assert span.col_join(expected.jacobian(model.weights)).rank() == 3

    def test_rescaled_has_none_for_a_shift(self):
        model, _ = reference_problem("rescaled")
        assert model.conserved == ()


class TestEuler:
    def test_rows_scale_apart(self):
        """Proven on access: (dLr/dX) k = 2 A1^T l. Here k = e_1, since A2 e_1 = 1."""
        model, at = reference_problem("rescaled")
        assert tuple(model.growth) == (1, 0)
        losses = [row.loss.subs(at).evalf(30) for row in model.rows]
        # By hand from the file: A1 = [[1, 2], [0, 1]], so 2 l_1 and 2 (2 l_1 + l_2).
        first, _ = CASE["rescaled"]["gradX_of_half"][0], None
        assert abs(2 * losses[0] - sp.Float(first[0], 30)) < 1e-16
        second = CASE["rescaled"]["gradX_of_half"][1][0]
        assert abs(2 * (2 * losses[0] + losses[1]) - sp.Float(second, 30)) < 1e-16

    def test_refuses_the_normalized_loss(self):
        with pytest.raises(ValueError, match="this is the normalized one"):
            _ = reference_problem("normalized")[0].growth

    def test_refuses_a_matrix_without_ones_in_its_range(self):
        model = matrix.model(n=2, d=1, loss="rescaled").at([[1], [1]], [[1], [2]], [[1, 0], [0, 1]])
        with pytest.raises(ValueError, match="No v has A2 v"):
            _ = model.growth


class TestInterpolation:
    def test_a_point_with_P_equal_to_B(self):
        # n - 1 = 1 difference of logits for each row, and A1 is invertible: every B > 0 is reached.
        model, _ = reference_problem("normalized")
        point = model.interpolation()
        assert sp.simplify(model.P.subs(point)) == model.B
        assert sp.simplify(model.gradient.subs(point)) == sp.zeros(2, 2)

    def test_says_why_there_is_none(self):
        third = sp.Rational(1, 3)
        model = matrix.model(n=3, d=1).at([[1]] * 3, [[0], [1], [5]], [[third] * 3, [third] * 3, [1, 0, 0]])
        with pytest.raises(ValueError, match=r"target has the entries \[0, 0\]"):
            model.interpolation()
        model = matrix.model(n=2, d=1).at([[1], [1]], [[0], [1]], [[third, 2 * third], [2 * third, third]])
        with pytest.raises(ValueError, match="log b is not in"):
            model.interpolation()


def test_label_names_the_row_outside():
    model = matrix.model(n=2, d=1).at([[1], [2]], [[0], [1]], [[0, 1], [1, 1]])
    assert "row 2 of B outside the simplex: its entries sum to 2" in model.label
    assert "outside" in model.flow.source


def test_models_are_values_with_what_every_model_has():
    model = matrix.model(n=2, d=1)
    assert model is matrix.model(n=2, d=1)
    assert set(model.observables) == {"loss", "P_1_1", "P_1_2", "P_2_1", "P_2_2"}
    assert model.reductions == model.closed_forms == model.defaults == {}
    assert pickle.loads(pickle.dumps(model)) == model


def test_parameters_in_the_order_A1_A2_B():
    names = [p.name for p in matrix.model(n=2, d=1).parameters]
    assert names == ["A1_1_1", "A1_2_1", "A2_1_1", "A2_2_1", "B_1_1", "B_1_2", "B_2_1", "B_2_2"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: matrix.model(n=2, d=0), "must be positive integers"),
        (lambda: matrix.model(n=1, d=1), "With one row in A2 every softmax is 1"),
        (lambda: matrix.model(n=2, d=1, loss="squared"), "`loss` must be one of"),
        (
            lambda: two().at([[1, 2], [3, 4]], [[0], [1]], [[0, 1]] * 2),
            r"`A1` must have shape \(2, 1\); got \(2, 2\)",
        ),
        (lambda: two().at([[1], [2]], [[0], [1]], [[0, 1]]), r"`B` must have shape \(2, 2\); got \(1, 2\)"),
        (lambda: two().at([[1], [2]], [[0], [1]], [[0, 1], [0, float("inf")]]), "`B` must hold finite"),
        (lambda: MatrixSoftmaxRegression([[1]], [[0], [1]], [[1]]), r"shape \(1, 2\); got \(1, 1\)"),
        (lambda: two().hessian_times([[1, 2]]), r"`Y` must have the shape \(1, 1\) of X; got \(1, 2\)"),
        (lambda: two().gradient_map(step=-1), "`step` must be positive"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def two():
    return matrix.model(n=2, d=1)
