"""Solutions that somebody claims are proven, with where they hold, or refused."""

import pytest
import sympy as sp

import symbolic
from symbolic import closed_form, proof

x, z, t, x0, z0, r = sp.symbols("x z t x_0 z_0 r")
y, y0, A, R = sp.symbols("y y_0 A R", positive=True)


def test_several_states():
    field = symbolic.VectorField((x, z), (-z, x))
    law = closed_form.verify(
        field,
        {x: x0 * sp.cos(t) - z0 * sp.sin(t), z: x0 * sp.sin(t) + z0 * sp.cos(t)},
        time=t,
        initial={x: x0, z: z0},
    )
    assert law.explicit[z] == x0 * sp.sin(t) + z0 * sp.cos(t)
    assert law.proof.residual == 0


def test_non_autonomous():
    field = symbolic.VectorField((x,), (-2 * t * x + r,), (r,), time=t)
    candidate = sp.exp(-(t**2)) * (x0 + r * sp.sqrt(sp.pi) / 2 * sp.erfi(t))
    law = closed_form.verify(field, {x: candidate}, time=t, initial={x: x0})
    assert (law.initial, law.proof.residual) == ({x: x0}, 0)


def test_textbook_logistic_gains_its_domain():
    field = symbolic.VectorField((x,), (R * x * (1 - x / A),), (R, A))
    candidate = A * x0 * sp.exp(R * t) / (A + x0 * (sp.exp(R * t) - 1))
    law = closed_form.verify(field, {x: candidate}, time=t, initial={x: x0})
    (condition,) = law.domain.conditions
    numbers = {R: 1, A: 1, x0: -1}  # blows up at ln 2
    assert bool(condition.subs(numbers).subs(t, 0.69))
    assert not bool(condition.subs(numbers).subs(t, 0.7))


def test_conditions_choose_the_component():
    field = symbolic.VectorField((x,), (sp.sqrt(x**2 - 1),))
    candidate = {x: sp.cosh(t + sp.acosh(x0))}
    law = closed_form.verify(field, candidate, time=t, initial={x: x0}, conditions=(x0 > 1,))
    assert law.domain.conditions == (x0 > 1,)
    # From x_0 < -1 the same formula runs the wrong way.
    with pytest.raises(symbolic.NotASolutionError, match="is not a solution"):
        closed_form.verify(field, candidate, time=t, initial={x: x0})


def test_where_the_field_vanishes_the_formula_ends():
    # y' = -sqrt(y) empties the vessel at t = 2 sqrt(y_0); the parabola runs on and would fill it again.
    law = closed_form.verify(
        symbolic.VectorField((y,), (-sp.sqrt(y),)),
        {y: (sp.sqrt(y0) - t / 2) ** 2},
        time=t,
        initial={y: y0},
    )
    (condition,) = law.domain.conditions
    assert condition.subs({y0: 4, t: 3.99}) == sp.true
    assert condition.subs({y0: 4, t: 4.01}) == sp.false


@pytest.mark.parametrize(
    ("f", "candidate"),
    [
        (sp.sqrt(y), (sp.sqrt(y0) - t / 2) ** 2),  # the mirror branch: its square solves
        (sp.sqrt(y), (sp.sqrt(y0) + t / 2 + t**2) ** 2),  # starts with the right slope
        (y * (1 - y), y0 * sp.exp(t)),  # linearised
    ],
)
def test_the_exact_argument_needs_no_numbers_to_refuse(monkeypatch, f, candidate):
    monkeypatch.setattr(proof, "course_spots", lambda course: ())
    with pytest.raises(symbolic.UndecidedError, match="Could not prove"):
        closed_form.verify(symbolic.VectorField((y,), (f,)), {y: candidate}, time=t, initial={y: y0})


@pytest.mark.parametrize(
    ("f", "candidate"),
    [
        (sp.sqrt(y), (sp.sqrt(y0) - t / 2) ** 2),  # the mirror branch
        (sp.sqrt(y), (1 + t / 2) ** 2),  # one start only
        (y * (1 - y), y0 * sp.exp(t) / (1 + y0 * sp.exp(t))),  # starts elsewhere
        (y * (1 - y), y0 * sp.exp(t)),  # linearised
    ],
)
def test_refuses_what_is_no_solution(f, candidate):
    field = symbolic.VectorField((y,), (f,))
    with pytest.raises(symbolic.NotASolutionError, match="should be zero") as refusal:
        closed_form.verify(field, {y: candidate}, time=t, initial={y: y0})
    assert refusal.value.residual != 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidate": {}}, r"`candidate` must name exactly the states \['x'\]"),
        ({"candidate": {x: z * t}}, r"The candidate uses \['z'\]"),
        ({"initial": {x: x}}, "must give each state its own symbol"),
        ({"time": x}, "is a state or a parameter"),
        ({"conditions": (sp.Ge(x0, 0),)}, "must be strict inequalities"),
    ],
)
def test_refuses_bad_arguments(changes, message):
    given = {"candidate": {x: x0 * sp.exp(-t)}, "time": t, "initial": {x: x0}} | changes
    with pytest.raises(ValueError, match=message):
        closed_form.verify(symbolic.VectorField((x,), (-x,)), given.pop("candidate"), **given)


def test_refuses_another_time():
    with pytest.raises(ValueError, match="Use the same symbol"):
        closed_form.verify(symbolic.VectorField((x,), (-z * x,), time=z), {x: x0}, time=t, initial={x: x0})
