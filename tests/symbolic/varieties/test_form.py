"""Fields that become polynomial by substitution, and those that honestly do not."""

import pytest
import sympy as sp

from symbolic.varieties.form import NotAlgebraic, polynomial_form

x, y, p = sp.symbols("x y p")


def residues(rhs, state, point):
    """The form's equations at the unknowns that belong to a point: zero exactly where the field is."""
    form = polynomial_form(rhs, state)
    here = {u: sp.N(m.subs(point), 40) for u, m in form.meanings.items()}
    return [abs(sp.N(sp.Poly.from_dict(e, *form.unknowns).as_expr().subs(here), 30)) for e in form.equations]


@pytest.mark.parametrize(
    ("rhs", "point"),
    [
        # log 3 / 2, by hand: tanh t = 1/2 at t = log(3)/2.
        ((sp.tanh(x) - sp.Rational(1, 2),), {x: sp.log(3) / 2}),
        ((sp.exp(x) - 5 * sp.exp(-x / 2),), {x: sp.log(5) * sp.Rational(2, 3)}),
        ((2 ** (3 * x) - 8,), {x: 1}),
        ((sp.sin(3 * x) - sp.Rational(1, 2),), {x: sp.pi / 18}),
        ((sp.tan(x) - 1,), {x: sp.pi / 4}),
        ((sp.cos(x - 2 * y), sp.sin(y) - sp.Rational(1, 2)), {x: sp.pi / 3 - sp.pi / 2, y: sp.pi / 6}),
        ((sp.sqrt(x + 1) - x + 1,), {x: 3}),
        ((x ** sp.Rational(3, 2) - 8,), {x: 4}),
        ((sp.Abs(x - 3) - 2 * x,), {x: 1}),
        ((sp.cbrt(x**2 + 4) - 2,), {x: 2}),
    ],
)
def test_zeros_stay_zeros(rhs, point):
    assert max(residues(rhs, tuple(point), point)) < sp.Float("1e-28")
    moved = {s: v + sp.Rational(1, 7) for s, v in point.items()}
    assert max(residues(rhs, tuple(point), moved)) > sp.Float("1e-3")


def test_as_many_equations_as_unknowns_and_what_they_mean():
    form = polynomial_form([sp.sin(2 * x) * p, sp.exp(3 * y) - sp.exp(2 * y)], (x, y), (p,))
    assert len(form.equations) == len(form.unknowns) == 3
    assert [s.kind for s in form.states] == ["angle", "exponential"]
    assert list(form.meanings.values()) == [sp.cos(2 * x), sp.sin(2 * x), sp.exp(y)]
    assert form.signs == ("", "", "positive")


def test_poles_and_undefined_regions_are_kept():
    form = polynomial_form([1 / (x + 1) - sp.sqrt(y), y - x], (x, y))
    assert [form.expression(e) for e in form.nonzero] == [x + 1]
    assert form.undefined == (sp.Lt(y, 0),)


def test_a_constant_that_divides_out_is_no_obstacle():
    form = polynomial_form([sp.pi * x * (1 - x)], (x,))
    assert {e: abs(c) for e, c in form.equations[0].items()} == {(2,): 1, (1,): 1}


@pytest.mark.parametrize(
    ("rhs", "message"),
    [
        (sp.log(x) - 1, r"log\(x\) is not algebraic in the state"),
        (sp.exp(x) - x, "x occurs in exponentials and in powers"),
        (sp.sin(x) - sp.exp(x), "x occurs in exponentials and in angles"),
        (sp.exp(x**2) - 2, "is not of a linear combination of the states"),
        (sp.exp(x + 1) - 2, "has the constant 1 in its argument"),
        (sp.exp(x) + sp.exp(sp.sqrt(2) * x) - 3, "have no common unit"),
        (sp.exp(x) + sp.exp(sp.Float(1.1) * x) - 3, r"a power of .* Write numbers as fractions"),
        (x - sp.pi, "The constant pi is not a rational number, and does not divide out"),
        (x**sp.pi - 1, "is not algebraic"),
        (sp.Piecewise((x, x > 0), (0, True)), "is not algebraic in the state"),
    ],
)
def test_refusals(rhs, message):
    with pytest.raises(NotAlgebraic, match=message):
        polynomial_form([rhs], (x,))


def test_messages_name_the_users_symbols():
    odd = sp.Symbol("lambda")
    with pytest.raises(NotAlgebraic, match=r"^lambda occurs in exponentials"):
        polynomial_form([sp.exp(odd) - odd], (odd,))
