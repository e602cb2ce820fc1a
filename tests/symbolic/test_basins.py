"""Where a scalar law lives: certified ends of its basin, and when the flow arrives there."""

from functools import cache

import mpmath
import pytest
import sympy as sp

import symbolic
from symbolic import closed_form

x, b = sp.symbols("x b")
y, lam, tau, A = sp.symbols("y lambda tau A", positive=True)


@cache
def solved(f, state=x):
    f = sp.sympify(f)
    parameters = tuple(sorted(f.free_symbols - {state}, key=str))
    return closed_form.solve(symbolic.VectorField((state,), (f,), parameters))


class TestBasin:
    def test_between_certified_zeros(self):
        law = solved((lam**2 * y**2 - lam**3 * A * y**5) / tau, y)
        numbers = {"lambda": 0.4, "A": 69 / 62, "tau": 1.0}
        lower, upper = law.basin(0.01, numbers)
        assert lower == 0.0
        assert upper == pytest.approx(1.3096669533079181441, rel=1e-15)  # section A, v_star
        assert law.basin(2.0, numbers)[0] == pytest.approx(1.3096669533079181441, rel=1e-15)

    def test_zeros_without_radicals(self):
        assert solved(x**5 - x + 1).basin(0.0)[0] == pytest.approx(-1.16730397826141868, rel=1e-15)

    def test_algebraic_coefficients(self):
        law = solved(x * (x - sp.sqrt(2)) * (x + 1))
        assert law.basin(0.5) == (0.0, pytest.approx(2**0.5, rel=1e-15))

    @pytest.mark.parametrize(
        ("f", "start", "message"),
        [
            (x**3 - x, 1.0, "is a zero of the field"),
            (x / (1 - x), 1.0, "is a singularity of the field"),
            (sp.sqrt(x**2 - 1), 0.5, "is not real at the start"),
            (sp.sin(x), 0.5, "cannot be certified"),
            (b * x, 1.0, r"No number for the parameters \['b'\]"),
        ],
    )
    def test_refusals(self, f, start, message):
        with pytest.raises(ValueError, match=message):
            solved(f).basin(start)


class TestArrival:
    @pytest.mark.parametrize(
        ("f", "start", "expected"),
        [
            (1 + x**4, 0, mpmath.pi / mpmath.sqrt(8)),  # the integral of 1/(1 + x^4) over (0, oo)
            (x**2 * (1 + x), 1, 1 - mpmath.log(2)),  # -1/x + ln((1 + x)/x) from 1 to oo
            (x**2 * (1 + x), -2, mpmath.log(2) - mpmath.mpf(1) / 2),
            (x**2 * (1 + x), -sp.Rational(1, 2), mpmath.inf),  # towards the double zero at 0
            (1 / (x * (x**2 + 1)), -1, mpmath.inf),
            ((x**2 + 1) / (1 - x), 0, mpmath.pi / 4 - mpmath.log(2) / 2),  # the pole at 1
            (x - x**4 + x**6 / 9, sp.Rational(1, 2), mpmath.inf),
        ],
    )
    def test_by_hand(self, f, start, expected):
        assert solved(f).arrival(start) == pytest.approx(float(expected), rel=1e-14)

    def test_explicit_laws_say_it_in_their_domain(self):
        with pytest.raises(ValueError, match="its domain tells"):
            solved(x**2).arrival(1.0)
