"""Lyapunov exponents: known ones, their sum, their errors, and what cycles say of them."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from references import reference

from fixedpoints import cycles, lyapunov
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_map

x, y, r, q, k = sp.symbols("x y r q k")
eta = sp.Symbol("eta", positive=True)
LOGISTIC = IteratedMap((x,), (r * x * (1 - x),), (r,))
HENON = MapSystem(IteratedMap((x, y), (1 - sp.Rational(7, 5) * x**2 + y, sp.Rational(3, 10) * x)))
SOFTMAX = gradient_map((1 / (1 + sp.exp(-x)) - q) ** 2, (x,), step=eta)


def test_the_full_logistic_map_has_log_two():
    # Conjugate to the tent map of slope 2.
    found = lyapunov(MapSystem(LOGISTIC, {"r": 4.0}), {"x": 0.3}, 20_000)
    assert abs(found.values[0] - math.log(2)) < 4 * found.errors[0]  # four standard errors
    assert 0 < found.errors[0] < 1e-3


def test_henon():
    found = lyapunov(HENON, {"x": 0.1, "y": 0.1}, 20_000)
    # 0.41922, published for a = 1.4, b = 0.3; |det Df| = b holds the sum at log b whatever the orbit.
    assert abs(found.values[0] - 0.41922) < 4 * found.errors[0]  # four standard errors
    assert found.values.sum() == pytest.approx(math.log(0.3), abs=1e-12)  # rounding of 20 000 factorisations
    assert found.values[0] > found.values[1]


def test_a_linear_map_has_the_logarithms_of_its_eigenvalues():
    # Upper triangular and far from normal: single steps stretch quite differently.
    found = lyapunov(MapSystem(IteratedMap((x, y), (x / 2 + 5 * y, y / 3))), {"x": 1.0, "y": 1.0}, 900)
    # The frame turns to the eigenvectors in a few steps: an error of order 1/steps.
    assert found.values == pytest.approx([math.log(1 / 2), math.log(1 / 3)], abs=5 / 900)
    assert lyapunov(HENON, {"x": 0.1, "y": 0.1}, 20).end.keys() == {"x", "y"}


def test_the_mean_over_few_steps_is_that_of_the_slopes_at_the_states_left_behind():
    # log|f'(x_k)| for k = 0 ... 24, by a loop.
    at, total = 0.3, 0.0
    for _ in range(25):
        total += math.log(abs(3.9 * (1 - 2 * at)))
        at = 3.9 * at * (1 - at)
    found = lyapunov(MapSystem(LOGISTIC, {"r": 3.9}), {"x": 0.3}, 25, 0)
    assert found.values[0] == pytest.approx(total / 25, rel=1e-12)
    assert found.end["x"] == pytest.approx(at, rel=1e-6)  # chaos magnifies rounding by e^{0.5 * 25}


def test_frames_are_those_of_the_whole_product():
    # QR step by step has the diagonal of QR of Df(x_24) ... Df(x_0), here in 60 digits.
    f = (sp.Rational(19, 10) - x**2 + y / 5 + x * y / 10, x / 4 + y**2 / 10)
    slope, step = (
        sp.lambdify((x, y), sp.Matrix(f).jacobian((x, y)), "mpmath"),
        sp.lambdify((x, y), f, "mpmath"),
    )
    with mpmath.workdps(60):
        at, product = (mpmath.mpf("0.25"), mpmath.mpf("0.125")), mpmath.eye(2)
        for _ in range(25):
            product, at = slope(*at) * product, step(*at)
        upper = mpmath.qr(product)[1]
        expected = sorted((float(mpmath.log(abs(upper[i, i]))) / 25 for i in range(2)), reverse=True)
    found = lyapunov(MapSystem(IteratedMap((x, y), f)), {"x": 0.25, "y": 0.125}, 25, 0)
    # The floats' orbit leaves the exact one by 1e-16 e^{0.5 * 25}.
    assert found.values == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("step", [20.0, 26.0, 30.0])
def test_on_a_stable_two_cycle_it_is_half_the_logarithm_of_the_multiplier(step):
    system = MapSystem(SOFTMAX, {"eta": step, "q": 0.5})
    stable = next(c for c in cycles(system, 2, {"x": (-4, 4)}).cycles if c.stability == "stable")
    found = lyapunov(system, {"x": 0.3}, 1000, transient=3000)
    # After the transient the orbit is the cycle, to rounding.
    assert found.values[0] == pytest.approx(math.log(abs(stable.multipliers[0])) / 2, abs=1e-9)


@pytest.mark.parametrize(
    "row", reference("softmax_maps")["exponents"], ids=lambda row: f"q={row[0]}-eta={row[1]}"
)
def test_descent_on_two_logits(row):
    half, step, exponent = row
    found = lyapunov(MapSystem(SOFTMAX, {"eta": float(step), "q": half}), {"x": 0.3}, 20_000, transient=2000)
    # On a cycle to rounding; else the error of this mean and of the reference's, over 400 000 steps, at four sigma.
    assert abs(found.values[0] - exponent) < 5 * found.errors[0] + 1e-6
    assert (found.values[0] > 0) == (exponent > 0)


def test_blocks_tell_the_error_of_the_mean():
    # The spread of the answers from many starts is what the error of one says, to a factor of two.
    runs = [
        lyapunov(MapSystem(LOGISTIC, {"r": 3.9}), {"x": s}, 4000, 100) for s in np.linspace(0.1, 0.45, 24)
    ]
    spread = np.std([run.values[0] for run in runs], ddof=1)
    assert 0.5 < np.mean([run.errors[0] for run in runs]) / spread < 2


def test_long_runs_go_on_where_short_ones_end():
    # Chunks of steps leave no seam: 5000 steps are 4000 and 1000 more.
    system = MapSystem(LOGISTIC, {"r": 3.9})
    whole = lyapunov(system, {"x": 0.3}, 5000, 0)
    first = lyapunov(system, {"x": 0.3}, 4000, 0)
    rest = lyapunov(system, first.end, 1000, 0)
    assert whole.values[0] * 5000 == pytest.approx(first.values[0] * 4000 + rest.values[0] * 1000, rel=1e-12)
    assert whole.end == rest.end


def test_a_superstable_orbit_has_minus_infinity():
    # At r = 2 the fixed point 1/2 has slope 0.
    assert lyapunov(MapSystem(LOGISTIC, {"r": 2.0}), {"x": 0.5}, 100).values[0] == -math.inf


def test_refuses():
    system = MapSystem(LOGISTIC, {"r": 3.9})
    with pytest.raises(TypeError, match="Lyapunov exponents are those of a map; got ODESystem, a flow"):
        lyapunov(ODESystem(VectorField((x,), (-x,))), {"x": 1}, 100)
    with pytest.raises(ValueError, match="`steps` must be a whole number of at least 20; got 5"):
        lyapunov(system, {"x": 0.3}, 5)
    with pytest.raises(ValueError, match="`transient` must be a whole number of at least 0; got -1"):
        lyapunov(system, {"x": 0.3}, 100, -1)
    with pytest.raises(ValueError, match=r"No number for the states \['x'\]"):
        lyapunov(system, {}, 100)
    with pytest.raises(ValueError, match="The state x must be finite; got nan"):
        lyapunov(system, {"x": math.nan}, 100)
    with pytest.raises(ValueError, match="does not count its steps; this one uses k"):
        lyapunov(MapSystem(IteratedMap((x,), (x / (k + 1),), time=k)), {"x": 1}, 100)
    with pytest.raises(OverflowError, match=r"leaves the finite numbers at step \d+: .*orbit_diagram tells"):
        lyapunov(MapSystem(LOGISTIC, {"r": 5.0}), {"x": 0.3}, 100)
    with pytest.raises(OverflowError, match="slopes of the map are not finite at step 0"):
        lyapunov(MapSystem(IteratedMap((x,), (sp.sqrt(x),))), {"x": 0.0}, 100, 0)
