"""Closed forms are right, on the right branch, proven, and know where they end."""

import pickle
from functools import cache

import mpmath
import pytest
import sympy as sp

import symbolic
from symbolic import closed_form, families

x, t, x0 = sp.symbols("x t x_0")
y = sp.Symbol("y", positive=True)
y0 = sp.Symbol("y_0", positive=True)
a, b, c, K, n, s, C = sp.symbols("a b c K n s C")
A, R, S, k = sp.symbols("A R S k", positive=True)
lam, tau, P = sp.symbols("lambda tau P", positive=True)
Q = sp.Symbol("Q", nonnegative=True)
v, k_A, k_B = sp.symbols("v k_A k_B", positive=True)
half = sp.Rational(1, 2)


@cache
def solved(f, state=x):
    f = sp.sympify(f)
    parameters = tuple(sorted(f.free_symbols - {state}, key=str))
    return closed_form.solve(symbolic.VectorField((state,), (f,), parameters))


def path(f, state=x):
    return solved(f, state).explicit[state]


def value(expression, **numbers):
    """The value by symbol name, to 30 digits."""
    return expression.subs({q: numbers[q.name] for q in expression.free_symbols}).evalf(30)


# --- formulas known by hand ---------------------------------------------------------------------------------

BY_HAND = [
    (a, x, x0 + a * t),
    (a - R * x, x, a / R + (x0 - a / R) * sp.exp(-R * t)),
    (x**2, x, x0 / (1 - x0 * t)),
    (1 + x**2, x, sp.tan(t + sp.atan(x0))),
    ((x - 1) * (x - 3), x, (3 * (x0 - 1) - (x0 - 3) * sp.exp(2 * t)) / (x0 - 1 - (x0 - 3) * sp.exp(2 * t))),
    ((x - 2) ** 2, x, 2 + (x0 - 2) / (1 - (x0 - 2) * t)),
    (R * y * (1 - y / A), y, A * y0 * sp.exp(R * t) / (A + y0 * (sp.exp(R * t) - 1))),
    (y - y**3, y, y0 * sp.exp(t) / sp.sqrt(1 + y0**2 * (sp.exp(2 * t) - 1))),
    (-k * y**4, y, (y0**-3 + 3 * k * t) ** (-sp.Rational(1, 3))),
    (sp.sqrt(y), y, (sp.sqrt(y0) + t / 2) ** 2),  # case dsolve-sqrt-nonunique: (1 + t/2)^2 from 1
    (sp.exp(-x), x, sp.log(sp.exp(x0) + t)),
    (1 / (1 + sp.exp(x)), x, t + x0 + sp.exp(x0) - sp.LambertW(sp.exp(t + x0 + sp.exp(x0)))),
]


@pytest.mark.parametrize(("f", "state", "expected"), BY_HAND, ids=[str(f) for f, _, _ in BY_HAND])
def test_formula_by_hand(f, state, expected):
    numbers = {"x_0": sp.Rational(11, 7), "y_0": sp.Rational(11, 7), "a": 3, "R": 2, "A": 5, "k": 2}
    for moment in (sp.Rational(1, 50), sp.Rational(1, 7)):
        got, want = value(path(f, state), t=moment, **numbers), value(expected, t=moment, **numbers)
        assert abs(got / want - 1) < sp.Float("1e-25")  # 30 digits were asked for


def test_cosh_branch():
    # Case dsolve-cosh-ics: y = cosh(t + acosh 2), not its mirror image.
    law = solved(sp.sqrt(y**2 - 1), y)
    for moment in (1, 3):
        got = value(law.explicit[y], t=moment, y_0=2)
        assert abs(got / sp.cosh(moment + sp.acosh(2)).evalf(30) - 1) < sp.Float("1e-25")


def test_symbolic_exponent_meets_numbers():
    general, cubic = path(-(y**n), y), path(-(y**3), y)
    assert abs(value(general, n=3, t=2, y_0=half) - value(cubic, t=2, y_0=half)) < sp.Float("1e-25")


def test_signs_that_are_not_known_become_cases():
    law = path(a + b * x + c * x**2)
    same = {"x_0": sp.Rational(1, 3), "t": sp.Rational(1, 4)}
    for numbers in (
        {"a": 1, "b": 3, "c": 1},
        {"a": 1, "b": 2, "c": 1},
        {"a": 1, "b": 1, "c": 1},
        {"a": 1, "b": -3, "c": 1},
    ):
        special = path(sum(sp.Integer(numbers[q]) * x**i for i, q in enumerate("abc")))
        assert abs(value(law, **numbers, **same) - value(special, **same)) < sp.Float("1e-25")


def test_removable_singularity_of_the_rate():
    law = path(a + b * x)
    assert value(law, a=2, b=0, t=3, x_0=5).equals(11)


def test_start_at_an_equilibrium_stays_there():
    # Case logistic-removable, exactly.
    law = path(R * y * (1 - y / A), y)
    assert sp.simplify(law.subs(y0, A)) == A


# --- the laws of linear attention ---------------------------------------------------------------------------


def test_white_time_course():
    # Theory note, section 2: sigma = e^{2ct/tau} / (a lam (e^{2ct/tau} - 1) + 1/sigma_0), in a form that decays.
    law = path(2 * c.subs(c, S) / tau * y * (1 - A * lam * y), y)
    numbers = {"S": 2, "tau": 3, "A": sp.Rational(36, 31), "lambda": half, "y_0": sp.Rational(1, 20000)}
    for moment in (1, 5, 20):
        grown = sp.exp(2 * 2 * sp.Rational(moment, 3))
        want = grown / (sp.Rational(36, 62) * (grown - 1) + 20000)
        assert abs(value(law, t=moment, **numbers) / want.evalf(30) - 1) < sp.Float("1e-25")
    assert law.atoms(sp.exp) == {sp.exp(-2 * S * t / tau)}


def test_white_unbalanced_time_course():
    # Theory note, section 2: y+ = (c + s)/(2 kap P), y- = -2 kap Q/(c + s), K = (1 - y-)/(y+ - 1) from y(0) = 1.
    law = path(2 / tau * (A * y - K.subs(K, k) * P * y**2 + k * Q), y)
    for p, q in ((half, sp.Rational(1, 3)), (sp.Rational(1, 10**6), sp.Rational(1, 10**7)), (2, 0)):
        root = sp.sqrt(1 + 4 * 9 * p * q)
        upper, lower = (1 + root) / (6 * p), -6 * q / (1 + root)
        grown = (1 - lower) / (upper - 1)
        for moment in (half, 3):
            E = sp.exp(-root * moment)
            want = (upper * grown + lower * E) / (grown + E)
            got = value(law, A=1, k=3, P=p, Q=q, tau=2, t=moment, y_0=1)
            assert abs(got / want.evalf(30) - 1) < sp.Float("1e-25")


def test_two_layer_network():
    # Case dsolve-empty-list: a0 = 0.1, b0 = 0.5, s = 1 gives ab(2) = 0.850291665783 with a^2 - b^2 = -0.24.
    law = path(sp.sqrt(C**2 + 4 * x**2) * (s - x))
    got = value(law, C=sp.Rational(-24, 100), s=1, t=2, x_0=sp.Rational(5, 100))
    assert abs(got - sp.Float("0.850291665783")) < 1e-12  # the file gives 12 digits
    # Balanced, C = 0, it is the logistic law u = s e^{2st} / (e^{2st} - 1 + s/u0).
    grown = sp.exp(6)
    got = value(law, C=0, s=sp.Rational(3, 2), t=2, x_0=sp.Rational(1, 100))
    assert abs(got - (1.5 * grown / (grown - 1 + 150)).evalf(30)) < sp.Float("1e-25")


def test_aligned_separate_attention():
    # Theory note, section 3: (lam^2 v*/tau) t = F(u) - F(u0), with the F below and u = v/v*.
    law = solved((lam**2 * y**2 - lam**3 * A * y**5) / tau, y)

    def hand(u):
        return (
            -1 / u
            - sp.log(abs(1 - u)) / 3
            + sp.log(1 + u + u**2) / 6
            - sp.atan((2 * u + 1) / sp.sqrt(3)) / sp.sqrt(3)
        )

    star = (lam * A) ** -sp.Rational(1, 3)
    for u in (sp.Rational(1, 100), sp.Rational(9, 10), sp.Rational(5, 2)):  # on both basins
        numbers = {lam: sp.Rational(2, 5), A: sp.Rational(69, 62), tau: 2, y: u * star}
        for symbol in (lam, A):
            numbers[y] = numbers[y].subs(symbol, numbers[symbol])
        got = (law.primitive - tau / (lam**2 * star) * hand(y / star)).subs(numbers).evalf(30)
        assert abs(got) < sp.Float("1e-24")


def test_sympys_own_integral_is_still_wrong():
    # Why fields of two monomials are rescaled first: SymPy drops the complex roots without a word.
    f = lam**2 * y**2 - lam**3 * A * y**5
    wrong = sp.integrate(1 / f, y)
    assert abs((wrong.diff(y) * f).subs({lam: 2, A: 3, y: sp.Rational(1, 3)}).evalf() - 1) > 0.01


def test_two_substrates():
    # Case implicit-two-substrate: v t = (A0 - A) + kA ln(A0/A) + kB ln(B0/B), B = A - C.
    law = solved(-v * x * (x - C) / (x * (x - C) + k_B * x + k_A * (x - C)))
    hand = (x0 - x + k_A * sp.log(x0 / x) + k_B * sp.log((x0 - C) / (x - C))) / v
    at = {
        x: sp.Rational(3, 2),
        x0: 2,
        C: sp.Rational(4, 5),
        k_A: sp.Rational(7, 10),
        k_B: sp.Rational(2, 5),
        v: 3,
    }
    assert abs((law.implicit.rhs - hand).subs(at).evalf(30)) < sp.Float("1e-28")
    assert law.explicit is None
    assert law.implicit.lhs == law.time


# --- against another algorithm ------------------------------------------------------------------------------


def integrated(rate, start, end):
    """x(end) by mpmath's Taylor integration at 30 digits, which knows nothing of SymPy."""
    with mpmath.workdps(30):
        solution = mpmath.odefun(lambda _, z: [rate(z[0])], 0, [mpmath.mpf(start)])(mpmath.mpf(end))[0]
        return sp.Float(mpmath.nstr(solution, 30), 30)


TAYLOR = [
    (sp.sqrt(x) - x, lambda z: mpmath.sqrt(z) - z, "0.3", 2),
    (2 * x - 1 / x, lambda z: 2 * z - 1 / z, "-1.5", 1),
    (sp.sqrt(x**2 - 1), lambda z: mpmath.sqrt(z**2 - 1), "1.25", 2),
    (sp.sqrt(1 - x**2), lambda z: mpmath.sqrt(1 - z**2), "-0.5", 1),
    (sp.sqrt(3 + 2 * x + x**2) * (2 - x), lambda z: mpmath.sqrt(3 + 2 * z + z**2) * (2 - z), "-1.5", 1),
    (sp.sqrt(3 + x**2) * (x - 2), lambda z: mpmath.sqrt(3 + z**2) * (z - 2), "1.5", 1),
    (1 / (1 + sp.exp(x)), lambda z: 1 / (1 + mpmath.exp(z)), "-2", 3),
    (1 + x - x**2 / 3, lambda z: 1 + z - z**2 / 3, "-0.75", 2),
]


@pytest.mark.parametrize(("f", "rate", "start", "end"), TAYLOR, ids=[str(f) for f, *_ in TAYLOR])
def test_agrees_with_taylor_integration(f, rate, start, end):
    got = value(path(f), x_0=sp.Rational(start), t=end)
    assert abs(got - integrated(rate, start, end)) < sp.Float("1e-20")  # odefun works at 30 digits


@pytest.mark.parametrize(
    ("f", "rate", "start", "end"),
    [
        (x**5 - x + 1, lambda z: z**5 - z + 1, "-1", 2),  # its zero has no radicals
        (x**2 / (1 + x), lambda z: z**2 / (1 + z), "-3", 1),
        (x**2 * (1 - x) ** 3 * (x**2 + 1), lambda z: z**2 * (1 - z) ** 3 * (z**2 + 1), "0.25", 4),
        ((x**2 + 1) ** 2, lambda z: (z**2 + 1) ** 2, "0", "0.5"),
    ],
)
def test_implicit_laws_agree_with_taylor_integration(f, rate, start, end):
    elapsed = value(solved(f).implicit.rhs, x=integrated(rate, start, end), x_0=sp.Rational(start))
    assert abs(elapsed - sp.Rational(end)) < sp.Float("1e-20")  # odefun works at 30 digits


# --- proof --------------------------------------------------------------------------------------------------


def test_the_proof_travels_with_the_law():
    evidence = solved(R * y * (1 - y / A), y).proof
    assert evidence.residual == 0
    assert evidence.initial_residual == 0
    assert len(evidence.spots) >= 2
    assert min(spot.digits for spot in evidence.spots) >= 20
    assert all(q.is_Rational for spot in evidence.spots for q in spot.point.values())
    assert "residual 0" in str(evidence)
    assert "digits at" in str(evidence)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda path, t: path.subs(t, 2 * t),  # another rate
        lambda path, t: path + t**3 / 1000,  # starts well, drifts
        lambda path, t: 1001 * path / 1000,  # another start
    ],
)
def test_a_wrong_formula_is_never_returned(monkeypatch, wrong):
    def faulty(f, x, t, start):
        solution = families.riccati(f, x, t, start)
        return families.Solution(tuple(families.replace(q, path=wrong(q.path, t)) for q in solution.cases))

    monkeypatch.setattr(closed_form, "FAMILIES", (("faulty", faulty),))
    with pytest.raises(symbolic.NoClosedFormError, match=r"faulty: .* is not a solution"):
        closed_form.solve(symbolic.VectorField((x,), (x * (1 - x),)))


def test_laws_can_be_pickled():
    law = solved(x**2)
    again = pickle.loads(pickle.dumps(law))
    assert again.explicit == law.explicit
    assert str(again.proof) == str(law.proof)


def test_laws_show_as_latex():
    assert "x_{0}" in solved(x**2)._repr_latex_()
    assert r"\log" in solved(x**2 / (1 + x))._repr_latex_()


# --- domain -------------------------------------------------------------------------------------------------


def test_blow_up_is_in_the_domain():
    assert solved(x**2).domain.conditions == (1 - t * x0 > 0,)
    assert "t >= 0; as long as" in str(solved(x**2).domain)


def test_bounded_laws_have_no_conditions():
    assert solved(-x).domain.conditions == ()
    assert solved(-(x**3) + x).domain.conditions == ()
    assert solved(y * (1 - y), y).domain.conditions == ()


def test_tangent_ends_at_its_first_pole():
    # tan(t + atan x0) is finite again after the pole; the condition is not.
    (condition,) = solved(1 + x**2).domain.conditions
    assert condition.subs({t: 1, x0: 0}) == sp.true
    assert condition.subs({t: 4, x0: 0}) == sp.false


def test_non_uniqueness_is_flagged():
    # Case dsolve-sqrt-nonunique: y(0) = 0 has y = 0 and ((t-c)/2)^2 after any wait.
    domain = solved(sp.sqrt(x)).domain
    assert "solutions are not unique at x = 0" in str(domain)
    assert (x0 > 0) in domain.conditions
    assert "not unique at x = 1" in str(solved(sp.sqrt(x**2 - 1)).domain)


def test_arrival_at_the_edge_ends_the_domain():
    # y' = -sqrt(y) is at zero after t = 2 sqrt(y0), and stays there.
    arrived = [q for q in solved(-sp.sqrt(x)).domain.conditions if q.has(t)]
    assert [bool(q.subs({x0: 4, t: moment})) for q in arrived for moment in (3.9, 4.1)] == [True, False]


def test_boundaries_are_the_zeros_of_the_field():
    assert set(solved(R * y * (1 - y / A), y).domain.boundaries) == {0, A}
    assert (lam * A) ** -sp.Rational(1, 3) in {
        sp.powsimp(q) for q in solved((lam**2 * y**2 - lam**3 * A * y**5) / tau, y).domain.boundaries
    }


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (symbolic.VectorField((x, y), (y, -x)), "has 2 states .* `restrict` .* or `project`"),
        (symbolic.VectorField((x,), (t * x,), time=t), "depends on the time t; .* `verify`"),
        (symbolic.VectorField((x,), (sp.sqrt(1 + x**3),)), "No real elementary integral"),
        (symbolic.VectorField((x,), (x**5 + a * x + 1,), (a,)), "whose roots are not known. Give numbers"),
        (symbolic.VectorField((x,), ((x**2 - a) * (x - b),), (a, b)), "The sign of .* is not known"),
    ],
)
def test_refuses(field, message):
    with pytest.raises(symbolic.NoClosedFormError, match=message):
        closed_form.solve(field)


def test_names_that_are_taken():
    time, start = sp.symbols("t x_0")
    law = closed_form.solve(symbolic.VectorField((x,), (-time * start * x,), (time, start)))
    assert law.time.name not in {"t", "x", "x_0"}
    assert law.initial[x].name not in {"t", "x", "x_0"}
