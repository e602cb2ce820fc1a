"""One row: every form of gradient and Hessian is the derivative, and the proof notices a wrong form."""

import pytest
import sympy as sp

from symbolic.normal_form import vanishes
from symbolic.softmax_regression import forms
from symbolic.softmax_regression.row import Row

LOSSES = [("normalized", "exp"), ("rescaled", "exp"), ("rescaled", "cosh"), ("rescaled", "sinh")]


def lettered(n, normalization, activation):
    return Row(sp.symbols(f"s_1:{n + 1}"), sp.symbols(f"b_1:{n + 1}"), normalization, activation)


@pytest.mark.parametrize(("normalization", "activation"), LOSSES)
@pytest.mark.parametrize("n", [2, 3])
def test_all_forms_equal_the_derivative_of_the_exponentials(n, normalization, activation):
    """Without the letters of the proof: SymPy's derivative in exp, cosh or sinh against each form."""
    row = lettered(n, normalization, activation)
    for name, form in row.gradient_forms.items():
        for s, entry in zip(row.logits, form, strict=True):
            assert vanishes(row.loss.diff(s) - entry), name


@pytest.mark.parametrize(("normalization", "activation"), LOSSES)
def test_hessian_forms_equal_the_second_derivative(normalization, activation):
    row = lettered(2, normalization, activation)
    for name, form in row.hessian_forms.items():
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            assert vanishes(row.loss.diff(row.logits[i], row.logits[j]) - form[i, j]), name


def test_the_normalized_gradient_by_hand():
    # n = 2: dL/ds_1 = p (1 - p) (c_1 - c_2) with p = f_1, c_1 - c_2 = 2 p - 1 - b_1 + b_2.
    row = lettered(2, "normalized", "exp")
    p, (b1, b2) = row.f[0], row.target
    hand = p * (1 - p) * (2 * p - 1 - b1 + b2)
    assert vanishes(row.gradient[0] - hand)
    assert vanishes(row.gradient[1] + hand)


def test_the_hessian_at_the_target_is_gauss_newton():
    # f = b at s = log b: H = S^2 with S = diag(b) - b b^T; here b = (1/2, 1/3, 1/6).
    b = [sp.Rational(1, k) for k in (2, 3, 6)]
    row = Row(tuple(map(sp.log, b)), tuple(b))
    S = sp.diag(*b) - sp.Matrix(b) * sp.Matrix([b])
    assert row.hessian.applyfunc(sp.nsimplify) == S * S
    assert S * S * sp.ones(3, 1) == sp.zeros(3, 1)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_proof_holds_for_more_rows(n):
    forms.prove_gradient(n, "normalized", "exp")
    forms.prove_gradient(n, "rescaled", "exp")


def test_five_rows_are_the_proof_for_every_n():
    forms.prove_hessian(5, "normalized", "exp")


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 6])
def test_five_rows_are_the_proof_for_every_n_rescaled(n):
    forms.prove_hessian(n, "rescaled", "exp")


def without_mean(f, target):
    c = [x - b for x, b in zip(f, target, strict=True)]
    return {"Cov_f": tuple(x * y for x, y in zip(f, c, strict=True))}


def test_a_gradient_without_its_mean_is_refused(monkeypatch):
    """The planted fault: f * c in the place of f * (c - <f, c>)."""
    monkeypatch.setattr(forms, "_normalized_gradient", without_mean)
    with pytest.raises(AssertionError, match="gradient in the form 'Cov_f' is not the derivative"):
        forms.prove_gradient.__wrapped__(3, "normalized", "exp")


def test_a_hessian_without_its_second_part_is_refused(monkeypatch):
    """The planted fault: S^2 alone, the Gauss-Newton part."""

    def gauss_newton(f, target):
        S = sp.diag(*f) - sp.Matrix(f) * sp.Matrix([f])
        return {"S^2 + T": S * S}

    monkeypatch.setattr(forms, "_normalized_hessian", gauss_newton)
    with pytest.raises(AssertionError, match=r"Hessian in the form 'S\^2 \+ T' is not the derivative"):
        forms.prove_hessian.__wrapped__(2, "normalized", "exp")


def test_a_wrong_rule_of_differentiation_is_refused():
    letters = forms._exponential_letters(2)
    letters.rules[letters.f[0]] = (letters.f[0], sp.S.Zero)
    with pytest.raises(AssertionError, match="is not"):
        letters.confirm()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((1, 2), (1,)), "2 logits and 1 targets"),
        (((), ()), "at least one"),
        (((1,), (1,), "squared"), r"must be one of \['normalized', 'rescaled'\]; got 'squared'"),
        (((1,), (1,), "rescaled", "tanh"), r"must be one of \['cosh', 'exp', 'sinh'\]; got 'tanh'"),
        (((1,), (1,), "normalized", "sinh"), "normalized loss needs positive u"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        Row(*arguments)
