"""Vector softmax regression: derivatives, identities of both losses, conserved quantities, interpolation, refusals."""

import pickle
from itertools import pairwise

import pytest
import sympy as sp
from references import reference

import symbolic
from symbolic.normal_form import vanishes
from symbolic.softmax_regression import vector
from symbolic.zero import is_zero

REFERENCE = reference("softmax_regression")
CASES = ["V1_n3d2", "V2_n3d1_multistable", "V5_ones_in_range", "V6_n2d1"]
#: The file rounds to 17 digits; its zeros are rounding of size 1e-52.
DIGITS, ZERO = sp.Float("1e-15"), sp.Float("1e-40")


def problem(name, loss):
    case = REFERENCE["grad_hess"][name]
    model = vector.model(n=len(case["A"]), d=len(case["A"][0]), loss=loss)
    model = model.at(case["A"], [sp.Rational(b) for b in case["b"]])
    return model, dict(zip(model.x, map(sp.Rational, case["x"]), strict=True)), case


def close(got, expected, at):
    """Exact expressions at an exact point, to the digits that the file has."""
    for entry, text in zip(got, expected, strict=True):
        value = sp.sympify(entry).subs(at).evalf(30, maxn=60)
        assert abs(value - sp.Float(text, 30)) <= ZERO + DIGITS * abs(value), (value, text)


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
@pytest.mark.parametrize("name", CASES)
def test_reference_values(name, loss):
    model, at, case = problem(name, loss)
    expected = case[loss]
    close([model.loss], [expected["L"]], at)
    close(model.f, case["f"], at)
    close(model.u, case["u"], at)
    for form in model.gradient_forms.values():
        close(form, expected["grad"], at)
    for form in model.hessian_forms.values():
        close(form, [entry for row in expected["hess"] for entry in row], at)
    close([-f for f in model.flow.rhs], expected["grad"], at)


@pytest.mark.parametrize("activation", ["cosh", "sinh"])
def test_reference_values_of_hyperbolic_losses(activation):
    case = REFERENCE["cosh_sinh_rescaled_V1"]
    model = vector.model(n=3, d=2, loss="rescaled", activation=activation)
    model = model.at(case["A"], [sp.Rational(b) for b in case["b"]])
    at = dict(zip(model.x, map(sp.Rational, case["x"]), strict=True))
    close([model.loss], [case[activation]["L"]], at)
    close(model.gradient, case[activation]["grad"], at)


@pytest.mark.parametrize(
    ("n", "d", "loss", "activation", "ridge"),
    [
        (2, 1, "normalized", "exp", False),
        (3, 1, "normalized", "exp", False),
        (2, 2, "normalized", "exp", True),
        (3, 2, "rescaled", "exp", False),
        (2, 1, "rescaled", "exp", True),
        (2, 2, "rescaled", "cosh", True),
        (3, 1, "rescaled", "sinh", False),
    ],
)
def test_forms_equal_the_derivative_in_x_for_letters(n, d, loss, activation, ridge):
    model = vector.model(n=n, d=d, loss=loss, activation=activation, ridge=ridge)
    for name, form in model.gradient_forms.items():
        for x, entry in zip(model.x, form, strict=True):
            assert vanishes(model.loss.diff(x) - entry), name


@pytest.mark.parametrize(("loss", "ridge"), [("normalized", False), ("rescaled", True)])
def test_hessian_is_the_jacobian_of_the_gradient(loss, ridge):
    model = vector.model(n=2, d=2, loss=loss, ridge=ridge)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert vanishes(model.gradient[i].diff(model.x[j]) - model.hessian[i, j])


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
def test_central_differences_converge_with_order_two(loss):
    """Halving the step divides the error by 4, in 40-digit arithmetic; the next order changes that by h^2."""
    model, at, _ = problem("V1_n3d2", loss)
    x, exact = model.x[0], model.gradient[0].subs(at).evalf(40)
    errors = []
    for h in (sp.Rational(1, 2**k) for k in (6, 7, 8)):
        up, down = (model.loss.subs(at | {x: at[x] + step}).evalf(40) for step in (h, -h))
        errors.append((up - down) / (2 * h) - exact)
    for coarse, fine in pairwise(errors):
        assert abs(coarse / fine - 4) < 0.01


def test_parameters_are_ordered_row_by_row_even_beyond_nine():
    # By name, A_10_1 would come before A_2_1.
    names = [p.name for p in vector.model(n=11, d=1).parameters]
    assert names == [f"A_{i}_1" for i in range(1, 12)] + [f"b_{i}" for i in range(1, 12)]
    ridge = vector.model(n=2, d=1, ridge=True)
    assert [p.name for p in ridge.parameters] == ["A_1_1", "A_2_1", "b_1", "b_2", "w_1", "w_2"]


class TestBridge:
    def test_losses_differ_by_alpha_squared(self):
        one, two = (vector.model(n=3, d=2, loss=loss) for loss in ("normalized", "rescaled"))
        assert vanishes(two.loss - one.alpha**2 * one.loss)

    def test_gradients(self):
        # grad Lr = alpha^2 (grad L + 2 L A^T f), here with the definition's letters.
        one, two = (vector.model(n=2, d=2, loss=loss) for loss in ("normalized", "rescaled"))
        mean = one.A.T * sp.Matrix(one.f)
        gap = two.gradient - one.alpha**2 * (one.gradient + 2 * one.loss * mean)
        assert all(vanishes(entry) for entry in gap)

    def test_hessians(self):
        # Hr = alpha^2 (H + 2 (g m^T + m g^T) + 2 L (Cov_f(a) + 2 m m^T)), g = grad L, m = A^T f.
        one, two = (vector.model(n=2, d=1, loss=loss) for loss in ("normalized", "rescaled"))
        m, g = (one.A.T * sp.Matrix(one.f))[0], one.gradient[0]
        spread = sum(f * a**2 for f, a in zip(one.f, one.A, strict=True)) - m**2
        hand = one.alpha**2 * (one.hessian[0] + 4 * g * m + 2 * one.loss * (spread + 2 * m**2))
        assert vanishes(two.hessian[0] - hand)


class TestConserved:
    def test_a_constant_column_keeps_its_weight(self):
        """A e_1 = 1: x_1 stays along the flow, and exactly so under gradient descent with any step."""
        model, _, _ = problem("V5_ones_in_range", "normalized")
        (integral,) = model.conserved
        assert integral.expression == model.x[0]
        assert integral.source == "A v = 1 (1, ..., 1) for v = (1, 0)"
        assert model.gradient_map(step=sp.Symbol("eta", positive=True)).rhs[0] == model.x[0]

    def test_a_mixture_of_columns_that_is_constant(self):
        # A = [[1, 2], [3, 1], [5, 0]]: v = (1, 2) gives A v = 5.
        model = vector.model(n=3, d=2).at([[1, 2], [3, 1], [5, 0]], [sp.Rational(1, 3)] * 3)
        (integral,) = model.conserved
        assert integral.expression / integral.expression.coeff(model.x[0]) == model.x[0] + 2 * model.x[1]
        step = model.gradient_map(step=sp.Rational(7, 3))
        moved = integral.expression.subs(dict(zip(model.x, step.rhs, strict=True)), simultaneous=True)
        assert vanishes(moved - integral.expression)

    def test_letters_keep_what_every_matrix_of_their_shape_keeps(self):
        # n = 2, d = 2: x moves along a_1 - a_2 alone.
        model = vector.model(n=2, d=2)
        (integral,) = model.conserved
        difference = model.A.row(0) - model.A.row(1)
        assert vanishes(
            sum(integral.expression.diff(x) * d for x, d in zip(model.x, difference, strict=True))
        )

    def test_rescaled_keeps_the_kernel_of_A_only(self):
        A, b = [[1, 1, 2], [1, 2, 3], [1, 3, 4]], [sp.Rational(1, 3)] * 3
        one, two = (vector.model(n=3, d=3, loss=loss).at(A, b) for loss in ("normalized", "rescaled"))
        assert (len(one.conserved), len(two.conserved)) == (2, 1)
        (kept,) = two.conserved
        assert kept.expression in (sp.Add(two.x[0], two.x[1], -two.x[2]), -two.x[0] - two.x[1] + two.x[2])

    def test_ridge_breaks_it_where_the_shift_is_not_zero(self):
        A, b = [[1, 0], [1, 1], [1, 2]], [sp.Rational(1, 3)] * 3
        ridge = vector.model(n=3, d=2, ridge=True).at(A, b, w=[1, 1, 1])
        assert ridge.conserved == ()
        with pytest.raises(symbolic.NotConservedError):
            symbolic.conservation.verify(ridge.flow, ridge.x[0])

    def test_ridge_keeps_the_kernel_of_A(self):
        ridge = vector.model(n=2, d=2, ridge=True).at([[1, 1], [2, 2]], [0, 1], w=[1, 2])
        assert [i.expression for i in ridge.conserved] == [-ridge.x[0] + ridge.x[1]]


class TestEuler:
    def test_the_shortest_direction_of_growth(self):
        # Two columns are constant together: v = (1, 1)/2 is the shortest with A v = 1.
        A = [[1, 1, 0], [1, 1, 1], [1, 1, 3]]
        model = vector.model(n=3, d=3, loss="rescaled").at(A, [sp.Rational(1, 3)] * 3)
        assert tuple(model.growth) == (sp.Rational(1, 2), sp.Rational(1, 2), 0)

    def test_the_loss_grows_like_exp_2t(self):
        model, _, _ = problem("V5_ones_in_range", "rescaled")
        t = sp.Symbol("t", real=True)
        moved = model.loss.xreplace({x: x + t * v for x, v in zip(model.x, model.growth, strict=True)})
        assert vanishes(moved - sp.exp(2 * t) * model.loss)

    def test_the_bound_solves_the_equality_case(self):
        # y' = -4 y^2/|v|^2, y(0) = y_0, with |v| = 1.
        model, _, _ = problem("V5_ones_in_range", "rescaled")
        t, y0 = sp.Symbol("t", positive=True), sp.Symbol("y_0", positive=True)
        bound = model.decay(y0, t)
        assert sp.simplify(bound.diff(t) + 4 * bound**2) == 0
        assert bound.subs(t, 0) == y0

    def test_the_slope_never_beats_the_bound_at_rational_points(self):
        """|grad Lr|^2 >= 4 Lr^2/|v|^2, evaluated with 30 digits; equality needs grad parallel to v."""
        model, _, _ = problem("V5_ones_in_range", "rescaled")
        for point in ((0, 0), (1, -2), (-3, 1), (2, 1)):
            at = dict(zip(model.x, point, strict=True))
            square = sum(g.subs(at).evalf(30) ** 2 for g in model.gradient)
            assert square >= 4 * model.loss.subs(at).evalf(30) ** 2 / (model.growth.T * model.growth)[0]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"loss": "normalized"}, "this is the normalized loss with exp and without ridge"),
            ({"loss": "rescaled", "activation": "cosh"}, "rescaled loss with cosh"),
            ({"loss": "rescaled", "ridge": True}, "with exp and with ridge"),
        ],
    )
    def test_refuses_other_losses(self, options, message):
        with pytest.raises(ValueError, match=message):
            _ = vector.model(n=2, d=2, **options).growth

    def test_refuses_a_matrix_without_ones_in_its_range(self):
        model = vector.model(n=2, d=1, loss="rescaled").at([[1], [2]], [1, 0])
        with pytest.raises(ValueError, match=r"No v has A v = \(1, ..., 1\)"):
            _ = model.growth


class TestInterpolation:
    def test_log_differences(self):
        # D2c: x* = the log-differences of b, f = b there.
        case = REFERENCE["fixed_points"]["D2c_n3_full_rank_unique"]
        b = [sp.Rational(x) for x in case["b"]]
        model = vector.model(n=3, d=2).at(case["A"], b)
        point = model.interpolation()
        close(point.values(), case["normalized"]["fixed_points"][0]["x"], {})
        assert [sp.simplify(f.subs(point)) for f in model.f] == b
        assert [sp.simplify(g.subs(point)) for g in model.gradient] == [0, 0]

    def test_letters_in_the_target(self):
        q = sp.Symbol("q", positive=True)
        model = vector.model(n=2, d=1).at([[0], [1]], [1 - q, q])
        assert model.interpolation() == {model.x[0]: sp.log(q) - sp.log(1 - q)}

    @pytest.mark.parametrize(
        ("A", "b", "message"),
        [
            ([[0], [4], [5]], "1/3 0 2/3", r"target has the entries \[0\]"),
            ([[0], [1], [5]], "5/8 1/8 1/4", "log b is not in"),
            ([[0], [1], [2]], "1/2 1/2 1/2", r"the target to \[3/2\]"),
        ],
    )
    def test_says_why_there_is_none(self, A, b, message):
        model = vector.model(n=3, d=1).at(A, map(sp.Rational, b.split()))
        with pytest.raises(ValueError, match=message):
            model.interpolation()

    def test_exact_although_the_logarithms_are_not(self):
        # b = (1, 2, 4)/7 on A = (0, 1, 2): log b is a line exactly.
        model = vector.model(n=3, d=1).at([[0], [1], [2]], [sp.Rational(2**k, 7) for k in range(3)])
        assert model.interpolation() == {model.x[0]: sp.log(2)}


class TestExponential:
    def test_the_closed_form_model_of_the_rescaled_loss(self):
        # A = (1, 2), b = (1 - q, q): Lr = w^2 ((1 - q) w - q)^2, w' = -w^2 dLr/dw.
        q = sp.Symbol("q", positive=True)
        model = vector.model(n=2, d=1, loss="rescaled").at([[1], [2]], [1 - q, q])
        reduction = model.reductions["exponential"]
        (w,) = reduction.field.state
        loss = w**2 * ((1 - q) * w - q) ** 2
        assert sp.expand(reduction.observables["loss"] - loss) == 0
        assert sp.expand(reduction.field.rhs[0] + w**2 * loss.diff(w)) == 0

    def test_rows_in_half_integers_need_their_common_unit(self):
        # a = (1, 3/2, 3): differences 1/2 and 2, w = exp(x/2).
        model = vector.model(n=3, d=1).at([[1], [sp.Rational(3, 2)], [3]], [sp.Rational(1, 3)] * 3)
        reduction = model.reductions["exponential"]
        assert reduction.exact_on == "every start, w = exp(x_1/2)"
        (w,) = reduction.field.state
        assert sp.cancel(reduction.observables["loss"]).is_rational_function(w)
        # One at a time: exp(0), w, w^4 are the three terms of alpha.
        f = [1 / (1 + w + w**4), w / (1 + w + w**4), w**4 / (1 + w + w**4)]
        hand = sum((p - sp.Rational(1, 3)) ** 2 for p in f) / 2
        assert sp.cancel(reduction.observables["loss"] - hand) == 0

    @pytest.mark.parametrize(
        ("n", "d", "options", "A"),
        [
            (2, 2, {}, [[0, 1], [1, 0]]),
            (2, 1, {}, [[0], [sp.sqrt(2)]]),
            (2, 1, {}, [[1], [1]]),
            (2, 1, {"loss": "rescaled", "activation": "cosh"}, [[0], [1]]),
        ],
    )
    def test_there_is_none_for_other_problems(self, n, d, options, A):
        model = vector.model(n=n, d=d, **options).at(A, [0, 1])
        assert model.reductions == model.closed_forms == {}


@pytest.mark.parametrize(
    ("b", "label"),
    [
        ("1/4 3/4", "b inside the simplex"),
        ("0 1", "b on the boundary of the simplex: entries [1] are zero, so that f = b at infinity at most"),
        ("-3/5 4/5", "b outside the simplex: its entries sum to 1/5"),
        ("-1/5 6/5", "b outside the simplex: entries [1] are negative"),
    ],
)
def test_label_says_where_b_lies(b, label):
    model = vector.model(n=2, d=1).at([[0], [1]], map(sp.Rational, b.split()))
    assert model.label == label
    assert ("outside" in model.flow.source) == ("outside" in label)


def test_label_tells_rounded_fractions_from_targets_outside():
    # the float .1 is 1/10 + 2^-55/5 and .9 is 9/10 + 4 2^-55/5: together 1 + 2^-55
    label = vector.model(n=2, d=1).at([[0], [1]], [0.1, 0.9]).label
    assert (
        label == "b outside the simplex by rounding: its entries sum to 1 + 2.8e-17; give them as fractions"
    )
    near = [sp.Rational(1, 2), sp.Rational(1, 2) + sp.Rational(1, 10**11)]  # too far for rounding
    assert (
        vector.model(n=2, d=1)
        .at([[0], [1]], near)
        .label.startswith("b outside the simplex: its entries sum to 1")
    )


def test_floats_are_the_rationals_that_they_are():
    model = vector.model(n=2, d=1).at([[0.5], [1]], [0.1, 0.9])
    assert model.b[0] == sp.Rational(0.1)
    assert model.A[0] == sp.Rational(1, 2)


def test_zero_column_is_allowed_and_its_weight_kept():
    model = vector.model(n=2, d=2).at([[0, 0], [1, 0]], [sp.Rational(1, 4), sp.Rational(3, 4)])
    assert model.flow.rhs[1] == 0
    assert [i.expression for i in model.conserved] == [model.x[1]]


def test_rescaled_with_one_row_by_hand():
    # Lr = (1 - b)^2 exp(2 a x)/2: not constant, unlike the normalized loss.
    model = vector.model(n=1, d=1, loss="rescaled")
    (a, b), (x,) = model.parameters, model.x
    assert is_zero(model.loss - (1 - b) ** 2 * sp.exp(2 * a * x) / 2)


def test_models_are_values():
    model = vector.model(n=2, d=1)
    assert model is vector.model(n=2, d=1)
    given = model.at([[0], [1]], [0, 1])
    assert given == model.at([[0], [1]], [0, 1])
    assert pickle.loads(pickle.dumps(given)) == given
    assert set(model.observables) == {"loss", "alpha", "f_1", "f_2"}
    assert model.defaults == {}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: vector.model(n=0, d=1), ValueError, r"sizes of `A` must be positive integers; got \(0, 1\)"),
        (lambda: vector.model(n=2, d=0), ValueError, r"must be positive integers; got \(2, 0\)"),
        (lambda: vector.model(n=2.0, d=1), ValueError, "must be positive integers"),
        (lambda: vector.model(n=1, d=1), ValueError, "With n = 1 the softmax is f = 1"),
        (lambda: vector.model(n=2, d=1, loss="squared"), ValueError, "`loss` must be one of"),
        (lambda: vector.model(n=2, d=1, activation="cosh"), ValueError, "needs positive u"),
        (lambda: two().at([[1, 2], [3, 4]], [0, 1]), ValueError, r"must have shape \(2, 1\); got \(2, 2\)"),
        (lambda: two().at([[1], [2, 3]], [0, 1]), ValueError, "rows of one length"),
        (lambda: two().at([[], []], [0, 1]), ValueError, "at least one row and one column"),
        (
            lambda: two().at([[1], [2]], [0, 1, 0]),
            ValueError,
            "as many entries as there are rows of A, 2; got 3",
        ),
        (
            lambda: two().at([[1], [2]], [float("nan"), 1]),
            ValueError,
            "`b` must hold finite real entries; got nan",
        ),
        (
            lambda: two().at([[1], [float("inf")]], [0, 1]),
            ValueError,
            "`A` must hold finite real entries; got inf",
        ),
        (lambda: two().at([[1], [2]], ["1/2", 1]), TypeError, "numbers or SymPy expressions; got '1/2'"),
        (lambda: two().at([[1], [2]], [sp.I, 1]), ValueError, "finite real entries"),
        (lambda: two().at([[1], [2]], [0, 1], w=[1, 1]), ValueError, "exactly if the model has a ridge term"),
        (lambda: vector.model(n=2, d=1, ridge=True).at([[1], [2]], [0, 1]), ValueError, "got w=None"),
        (lambda: two().gradient_map(step=0), ValueError, "`step` must be positive"),
        (lambda: two().gradient_map(step=-1), ValueError, "`step` must be positive"),
        (lambda: two().gradient_map(step=sp.nan), ValueError, "`step` must be positive"),
        (lambda: two().gradient_map(step=None), ValueError, "`step` must be positive"),
        (lambda: two().at(3, [0, 1]), TypeError, "`A` must be a list of entries; got 3"),
        (lambda: two().at([[1], [2]], 1), TypeError, "`b` must be a list of entries; got 1"),
        (lambda: two().gradient_map(step=two().x[0]), ValueError, "must not depend on the weights"),
        (
            lambda: vector.model(n=2, d=1, loss="rescaled", activation="sinh").interpolation(),
            ValueError,
            "needs u = exp",
        ),
    ],
)
def test_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


def two():
    return vector.model(n=2, d=1)
