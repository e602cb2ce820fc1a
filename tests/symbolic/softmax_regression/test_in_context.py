"""The in-context theorem: a move of x or of A is a move of the target with the same residual."""

import pytest
import sympy as sp
from references import reference

from symbolic.normal_form import vanishes
from symbolic.softmax_regression import in_context, matrix, vector

CHECKS = reference("softmax_regression")["structural_checks"]
A, b = [[1, 0], [0, 1], [1, 1]], [sp.Rational(1, k) for k in (2, 4, 4)]
START = (sp.Rational(1, 2), -sp.Rational(1, 3))


@pytest.mark.parametrize(
    ("loss", "step", "name"), [("normalized", "1/2", "ICL_normalized"), ("rescaled", "1/20", "ICL_rescaled")]
)
def test_reference_values_of_one_step_of_gradient_descent(loss, step, name):
    """The file rounds to 17 digits."""
    model = vector.model(n=3, d=2, loss=loss).at(A, b)
    rule = model.gradient_map(step=sp.Rational(step))
    then = [f.subs(dict(zip(model.x, START, strict=True))) for f in rule.rhs]
    moved = in_context.move(model, START, then)
    for got, text in zip(moved.target, CHECKS[name]["b_tilde"], strict=True):
        assert abs(got.evalf(30) - sp.Float(text, 30)) < 1e-16
    shift = moved.shift.evalf(30).norm()
    assert abs(shift / sp.Float(CHECKS[name]["shift"], 30) - 1) < 1e-15
    if loss == "rescaled":
        for got, text in zip(moved.increment, CHECKS[name]["delta_c"], strict=True):
            assert abs(got.evalf(30) - sp.Float(text, 30)) < 1e-16
    else:
        # |b~ - b| <= |A|/2 |dx|, the file's bound.
        assert shift <= sp.Float(CHECKS[name]["tight_bound_half_normA_dx"], 30)


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
@pytest.mark.parametrize("what", ["x", "A"])
def test_moves_of_letters_have_the_residual_after_the_move(what, loss):
    """The theorem's two moves as identities in A, b and x: f(x') - b = f(x) - b~, and so for A and for r."""
    model = vector.model(n=2, d=2, loss=loss)
    after, p, q = model, sp.symbols("p_1:3"), sp.symbols("q_1:3")
    if what == "A":
        after, q = model.at([sp.symbols(f"C_{i}_1:3") for i in (1, 2)], model.b), p
    moved = in_context.move(model, p, q, after=after)
    there = [r.subs(dict(zip(model.x, q, strict=True)), simultaneous=True) for r in after.residual]
    here = [
        r.subs(dict(zip(model.x, p, strict=True)), simultaneous=True)
        for r in model.at(model.A, moved.target).residual
    ]
    assert all(vanishes(r - s) for r, s in zip(there, here, strict=True))


def test_no_move_is_no_shift():
    model = vector.model(n=2, d=1, loss="rescaled")
    moved = in_context.move(model, [2], [2])
    assert [sp.simplify(entry) for entry in moved.shift] == [0, 0]


def test_each_row_of_a_matrix_moves_alone():
    model = matrix.model(n=2, d=1).at([[1], [0]], [[0], [1]], [[sp.Rational(1, 2)] * 2] * 2)
    moved = in_context.move(model, [[0]], [[sp.log(3)]])
    # Row 1: P goes from (1/2, 1/2) to (1/4, 3/4), so b~ = (3/4, 1/4); A1 has a zero in row 2.
    assert moved.target == sp.Matrix([[sp.Rational(3, 4), sp.Rational(1, 4)], [sp.Rational(1, 2)] * 2])


def test_positivity_is_not_kept():
    # b = e_1, f_1 falls from 1/2 to 1/4: b~ = (1 + 1/2 - 1/4, 0 + 1/2 - 3/4).
    model = vector.model(n=2, d=1).at([[0], [1]], [1, 0])
    moved = in_context.move(model, [0], [sp.log(3)])
    assert tuple(moved.target) == (sp.Rational(5, 4), -sp.Rational(1, 4))


@pytest.mark.parametrize("loss", ["normalized", "rescaled"])
def test_a_wrong_target_is_refused(monkeypatch, loss):
    """The planted fault: the target moves the other way."""
    right = in_context._target

    def wrong(now, after):
        return tuple(2 * b - t for b, t in zip(now.target, right(now, after), strict=True))

    monkeypatch.setattr(in_context, "_target", wrong)
    with pytest.raises(AssertionError, match="has not the residual after the move"):
        in_context._prove.__wrapped__(2, loss)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"then": [1, 2]}, r"must have the shape \(1, 1\); got \(2, 1\)"),
        ({"after": vector.model(n=2, d=1, loss="rescaled")}, "must have the loss and the target of `model`"),
        ({"after": vector.model(n=3, d=1)}, "must have the loss and the target of `model`"),
        (
            {"after": vector.model(n=2, d=1).at([[0], [1]], [0, 1])},
            r"loss with \[\(0, 1\)\] .* \[\(b_1, b_2\)\]",
        ),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        in_context.move(**({"model": vector.model(n=2, d=1), "now": [0], "then": [1]} | arguments))


def test_refuses_what_is_no_model():
    with pytest.raises(TypeError, match="of a vector or matrix model; got int"):
        in_context.move(3, [0], [1])


def test_refuses_hyperbolic_activations():
    model = vector.model(n=2, d=1, loss="rescaled", activation="cosh")
    with pytest.raises(ValueError, match="about u = exp; got cosh"):
        in_context.move(model, [0], [1])


ONE, OTHER = [[1, 2], [0, 1]], [[1, 0], [2, -1]]


@pytest.mark.parametrize("moved", ["X", "A1", "A2"])
def test_moves_of_a_matrix_problem_have_the_residual_after_the_move_and_stay_within_the_bound(moved):
    """|B~ - B|_F <= |A1| |A2| |X - Y|_F/2 and, for moves of the data, |X|_F in the place of the factor that moves."""
    letters = matrix.model(n=2, d=2)
    B = [[sp.Rational(1, 3), sp.Rational(2, 3)], [sp.Rational(3, 4), sp.Rational(1, 4)]]
    model = letters.at(ONE, OTHER, B)
    X, Y = sp.Matrix([[0, 1], [-1, 2]]) / 4, sp.Matrix([[1, 1], [-2, 2]]) / 4
    step = sp.Matrix([[0, 1], [-1, 0]]) / 5
    A1, A2 = sp.Matrix(ONE), sp.Matrix(OTHER)
    after, then = {
        "X": (model, Y),
        "A1": (letters.at(A1 + step, A2, B), X),
        "A2": (letters.at(A1, A2 + step, B), X),
    }[moved]
    found = in_context.move(model, X, then, after=after)

    def residual(problem, weights, target):
        Z = problem.A1 * weights * problem.A2.T
        return sp.Matrix(2, 2, lambda i, j: sp.exp(Z[i, j]) / sum(sp.exp(z) for z in Z.row(i))) - target

    gap = residual(after, then, sp.Matrix(B)) - residual(model, X, sp.Matrix(found.target))
    assert all(abs(entry.evalf(30, maxn=100)) < 1e-25 for entry in gap)  # thirty digits, less what cancels
    size = {
        "X": A1.norm(2) * A2.norm(2) * (Y - X).norm(),
        "A1": step.norm(2) * A2.norm(2) * X.norm(),
        "A2": A1.norm(2) * step.norm(2) * X.norm(),
    }[moved]
    assert 0 < found.shift.evalf(20).norm() < (size / 2).evalf(20)


def test_the_bound_is_attained_to_first_order_by_two_rows():
    """A = (1, -1)^T/sqrt(2), x = 0: |b~ - b| = |A|/2 h (1 - h^2/6 + ...), of tanh(h/sqrt(2))/sqrt(2)."""
    A = [[1 / sp.sqrt(2)], [-1 / sp.sqrt(2)]]
    h = sp.Rational(1, 1000)
    moved = in_context.move(vector.model(n=2, d=1).at(A, [1, 0]), [0], [h])
    assert abs(moved.shift.evalf(30).norm() / (h / 2) - 1 + h**2 / 6) < 1e-12  # h^4/30
