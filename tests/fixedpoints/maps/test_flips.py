"""Flips: where a multiplier reaches -1, proven in balls, and which 2-cycles are born there."""

import math

import numpy as np
import pytest
import sympy as sp
from references import reference

from fixedpoints import (
    NoFlipError,
    NotAFixedPointError,
    critical_step,
    cycles,
    flip_formula,
    on_leaf,
    orbit_diagram,
)
from odesys import iterate
from odesys.system import MapSystem, ODESystem
from symbolic.errors import NotConservedError
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_map

x, y, z, r, a, b, q, m = sp.symbols("x y z r a b q m")
eta = sp.Symbol("eta", positive=True)
LOGISTIC = IteratedMap((x,), (r * x * (1 - x),), (r,))
HENON = IteratedMap((x, y), (1 - a * x**2 + y, b * x), (a, b))
KNOWN = reference("softmax_maps")


def sigmoid(s):
    return 1 / (1 + sp.exp(-s))


#: Descent on |f - b|^2 / 2 for A = (0, 1), b = (1 - q, q): both components give the same square.
TWO_LOGITS = gradient_map((sigmoid(x) - q) ** 2, (x,), step=eta)
#: Descent on |u - alpha b|^2 / 2 for A = (1, 2), b = (1 - q, q), with w = e^x: w^2 ((1 - q) w - q)^2.
RESCALED = gradient_map(sp.exp(2 * x) * ((1 - q) * sp.exp(x) - q) ** 2, (x,), step=eta)


def plane():
    """Descent on |f - b|^2 / 2 for the four rows of the example with two minima."""
    rows = ((2, 0), (1, 2), (-3, -3), (2, 1))
    u = [sp.exp(i * x + j * y) for i, j in rows]
    target = [sp.Rational(k, 8) for k in (1, 1, 3, 3)]
    loss = sum((v / sp.Add(*u) - t) ** 2 for v, t in zip(u, target, strict=True)) / 2
    return gradient_map(loss, (x, y), step=eta)


# --- one state -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "within"), [(2.9, None), (2.5, (2, 3.5)), (3.3, (2, 3.4))])
def test_the_logistic_map_flips_at_three(start, within):
    flip = critical_step(MapSystem(LOGISTIC, {"r": start}), {"x": 1 - 1 / start}, "r", within)
    assert flip.exact == 3
    assert abs(flip.value - 3) <= flip.error < 1e-15
    # By hand: f'' = -6 and f''' = 0 at x = 2/3, so c = 36/4; the multiplier is 2 - r.
    assert abs(flip.coefficient - 9) <= flip.coefficient_error < 1e-14
    assert (flip.kind, flip.others, flip.direction) == ("supercritical", (), (1.0,))
    assert flip.speed == pytest.approx(-1, rel=1e-14)
    assert flip.point == {"x": pytest.approx(2 / 3, rel=1e-15)}
    assert flip.evidence.endswith("stable 2-cycles for r above")


@pytest.mark.parametrize("row", KNOWN["flips"], ids=lambda row: f"q={row[0]}")
def test_descent_on_two_logits(row):
    half, critical, size = row
    flip = critical_step(
        MapSystem(TWO_LOGITS, {"eta": 1.0, "q": half}), {"x": math.log(half / (1 - half))}, "eta"
    )
    assert flip.value == pytest.approx(critical, rel=5e-9)  # ten digits given
    assert abs(flip.value - 1 / (half * (1 - half)) ** 2) <= flip.error + 1e-15 * critical
    # The table has twice the coefficient of the normal form, S = f''^2/2 + f'''/3.
    assert 2 * flip.coefficient == pytest.approx(size, rel=5e-9)  # ten digits given
    assert flip.kind == "supercritical"


def test_the_formulas_hold_for_every_target():
    value, c = flip_formula(TWO_LOGITS, {"x": sp.log(q / (1 - q))}, "eta")
    assert sp.simplify(value - 1 / (q * (1 - q)) ** 2) == 0
    assert sp.simplify(2 * c - (sp.Rational(4, 3) + 48 * (q - sp.Rational(1, 2)) ** 2)) == 0
    value, _ = flip_formula(RESCALED, {"x": sp.log(q / (1 - q))}, eta)
    assert sp.simplify(value - (1 - q) ** 2 / q**4) == 0


def test_rescaled_descent():
    known = KNOWN["rescaled"]
    flip = critical_step(MapSystem(RESCALED, {"eta": 1.0, "q": 0.5}), {"x": 0.0}, "eta")
    assert flip.exact == int(known["eta_c"])
    assert 2 * flip.coefficient == pytest.approx(known["S"], rel=1e-14)
    # Just below it descent arrives, just above it does not, and what it does there is bounded.
    ends = {
        e: iterate(MapSystem(RESCALED, {"eta": float(e), "q": 0.5}), {"x": 0.01}, 20000)
        for e in known["last"]
    }
    for step, end in ends.items():
        # Above, an orbit of period two or three is known up to which of its points comes last.
        last = end["x"].values[-3:]
        assert np.abs(last - known["last"][step]).min() < 1e-11  # digits given
        assert (np.abs(last).max() < 1e-12) == (float(step) < 4)


def test_symmetry_breaking_is_the_flip_of_the_mirrored_map():
    # The 2-cycle {X, -X} of an odd map f is a fixed point of -f, and its pitchfork is the flip of -f.
    known = KNOWN["symmetry_breaking"]
    mirrored = IteratedMap((x,), tuple(-f for f in TWO_LOGITS.rhs), TWO_LOGITS.parameters)
    (cycle,) = cycles(MapSystem(TWO_LOGITS, {"eta": 24.0, "q": 0.5}), 2, {"x": (-4, 4)}).cycles
    start = MapSystem(mirrored, {"eta": 24.0, "q": 0.5})
    flip = critical_step(start, cycle.points[1], "eta", (20, 30))
    assert flip.value == pytest.approx(known["eta"], rel=1e-15)
    assert flip.value == pytest.approx(12 * math.sqrt(3) * math.log(2 + math.sqrt(3)), rel=1e-15)
    assert flip.point["x"] == pytest.approx(known["X"], rel=1e-15)
    assert flip.kind == "supercritical"


def test_subcritical_and_degenerate():
    # f = -m x + k x^3 flips at m = 1 with c = k; k = 0 leaves no term at all.
    for k, kind in ((1, "supercritical"), (-1, "subcritical"), (0, "degenerate")):
        flip = critical_step(
            MapSystem(IteratedMap((x,), (-m * x + k * x**3,), (m,)), {"m": 0.7}), {"x": 0}, "m"
        )
        assert (flip.exact, flip.kind, flip.coefficient) == (1, kind, k)
    assert "nothing told of cycles" in flip.evidence


def test_two_cycles_lie_on_the_side_that_is_told():
    # Near the flip of a supercritical one, s^2 = (eta - eta_c) |speed| / c to leading order.
    flip = critical_step(MapSystem(TWO_LOGITS, {"eta": 1.0, "q": 0.75}), {"x": math.log(3)}, "eta")
    shift = 1e-3
    found = cycles(MapSystem(TWO_LOGITS, {"eta": flip.value + shift, "q": 0.75}), 2, {"x": (0.9, 1.3)})
    (cycle,) = found.cycles
    low, high = (point["x"] for point in cycle.points)
    size = math.sqrt(shift * abs(flip.speed) / flip.coefficient)
    assert (high - low) / 2 == pytest.approx(size, rel=1e-3)  # the next term is smaller by shift
    assert cycle.stability == "stable"
    assert (
        cycles(MapSystem(TWO_LOGITS, {"eta": flip.value - shift, "q": 0.75}), 2, {"x": (0.9, 1.3)}).cycles
        == ()
    )


# --- several states --------------------------------------------------------------------------------------


def test_henon_flips_where_its_fixed_point_has_multiplier_minus_one():
    # lambda^2 + 2 a x lambda - b = 0 at lambda = -1 gives x = (1 - b) / (2 a), and that a = 3 (1 - b)^2 / 4.
    start = (-0.7 + math.sqrt(0.49 + 1.2)) / 0.6
    flip = critical_step(
        MapSystem(HENON, {"a": 0.3, "b": 0.3}), {"x": start, "y": 0.3 * start}, "a", (0.1, 1)
    )
    assert flip.value == pytest.approx(0.75 * 0.7**2, rel=1e-14)
    assert flip.others == (pytest.approx(0.3),)  # the determinant is -b
    assert flip.kind == "supercritical"


def test_the_coefficient_is_kuznetsovs_formula_written_out():
    # The same by finite sums over explicit derivatives and float linear algebra.
    start = (-0.7 + math.sqrt(0.49 + 1.2)) / 0.6
    flip = critical_step(
        MapSystem(HENON, {"a": 0.3, "b": 0.3}), {"x": start, "y": 0.3 * start}, "a", (0.1, 1)
    )
    A = np.array([[-2 * flip.value * flip.point["x"], 1], [0.3, 0]])
    vectors, left = np.linalg.eig(A), np.linalg.eig(A.T)
    qv = vectors[1][:, np.abs(vectors[0] + 1).argmin()]
    pv = left[1][:, np.abs(left[0] + 1).argmin()]
    pv /= pv @ qv
    bend = np.array([-2 * flip.value * qv[0] ** 2, 0])  # B(q, q)
    h = np.linalg.solve(np.eye(2) - A, bend)
    c = pv @ np.array([-2 * flip.value * qv[0] * h[0], 0]) / 2
    assert flip.coefficient == pytest.approx(c, rel=1e-13)


@pytest.mark.parametrize("known", KNOWN["plane"], ids=["global", "spurious"])
def test_both_minima_of_the_plane(known):
    flip = critical_step(
        MapSystem(plane(), {"eta": 0.5}), dict(zip("xy", known["point"], strict=True)), "eta"
    )
    assert flip.value == pytest.approx(known["eta_c"], rel=1e-15)
    assert flip.error < 1e-14
    assert abs(flip.others[0]) < 1
    # Two per cent beyond it, descent ends on the 2-cycle that is told.
    system = MapSystem(plane(), {"eta": 1.02 * flip.value})
    orbit = iterate(system, dict(zip("xy", np.array(known["point"]) + 0.01, strict=True)), 1500)
    ends = {tuple(float(orbit[name][-k]) for name in "xy") for k in (1, 2)}
    for end in known["at_1.02"]:
        assert min(np.abs(np.subtract(end, other)).max() for other in ends) < 1e-10  # digits given
    assert flip.kind == "supercritical"


# --- cycles ----------------------------------------------------------------------------------------------


def test_the_two_cycle_of_the_logistic_map_flips_at_one_plus_root_six():
    # Its multiplier is 4 + 2 r - r^2.
    (cycle,) = cycles(MapSystem(LOGISTIC, {"r": 3.2})).cycles
    flip = critical_step(MapSystem(LOGISTIC, {"r": 3.2}), cycle.points[0], "r", (3.1, 3.6), period=2)
    assert abs(flip.value - (1 + math.sqrt(6))) <= flip.error + 5e-16  # rounding of the square root
    assert flip.speed == pytest.approx(2 - 2 * (1 + math.sqrt(6)), rel=1e-14)
    assert (flip.kind, flip.period) == ("supercritical", 2)
    assert flip.evidence.endswith("stable 4-cycles for r above")
    # c in one state again, from the formula of f^2 itself.
    second = (r * x * (1 - x)).subs(x, r * x * (1 - x))
    here = {r: flip.value, x: flip.point["x"]}
    c = second.diff(x, 2).subs(here) ** 2 / 4 + second.diff(x, 3).subs(here) / 6
    assert flip.coefficient == pytest.approx(float(c), rel=1e-12)


@pytest.mark.parametrize(("period", "start", "known"), [(4, 3.5, 3.544090359552), (3, 3.835, 3.841499007543)])
def test_later_flips_of_the_cascade(period, start, known):
    # Published: 3.54409036 ends period four, 3.84149901 period three in its window.
    found = cycles(MapSystem(LOGISTIC, {"r": start}), period)
    stable = next(c for c in found.cycles if c.stability == "stable")
    flip = critical_step(MapSystem(LOGISTIC, {"r": start}), stable.points[0], "r", (start, 3.9), period)
    assert flip.value == pytest.approx(known, abs=1e-8)
    assert flip.kind == "supercritical"
    # A check of another kind: iterates double their period there.
    rates = [flip.value - 1e-3, flip.value + 1e-3]
    seen = orbit_diagram(LOGISTIC, "r", rates, {"x": 0.3}, transient=20_000)["period"].values[:, 0]
    assert seen.tolist() == [period, 2 * period]


def test_descent_doubles_its_asymmetric_cycles():
    # The 2-cycles born at 27.4 flip before eta = 32, where descent has period four.
    system = MapSystem(TWO_LOGITS, {"eta": 29.0, "q": 0.5})
    first = cycles(system, 2, {"x": (-4, 4)}).cycles[0]
    flip = critical_step(system, first.points[0], "eta", (28, 33), 2)
    assert 31 < flip.value < 32
    assert flip.kind == "supercritical"


def test_the_ring_of_a_cycle_in_the_plane():
    (cycle,) = cycles(MapSystem(HENON, {"a": 0.8, "b": 0.3})).cycles
    flip = critical_step(MapSystem(HENON, {"a": 0.8, "b": 0.3}), cycle.points[0], "a", (0.5, 1), 2)
    # The trace of the round is 4 a^2 x_0 x_1 + 2 b with a^2 x_0 x_1 = (1 - b)^2 - a, its determinant b^2;
    # -1 is a root of the characteristic polynomial when 1 + trace + determinant = 0.
    expected = (1 - 0.3) ** 2 + (1 + 0.3) ** 2 / 4
    assert flip.value == pytest.approx(expected, rel=1e-14)
    assert flip.others == (pytest.approx(-(0.3**2)),)


# --- flat directions -------------------------------------------------------------------------------------


def test_a_flat_direction_does_not_hide_a_flip():
    # The loss depends on x - y alone: x + y is conserved. Its rate is 4 L'' = 4 / 16 * 2 / 2, by hand 1/4.
    flat = gradient_map((sigmoid(x - y) - sp.Rational(1, 2)) ** 2, (x, y), step=eta)
    flip = critical_step(MapSystem(flat, {"eta": 1.0}), {"x": 1.5, "y": 1.5}, "eta")
    assert (flip.exact, flip.others) == (8, ())
    assert flip.point == {"x": 1.5, "y": 1.5}


def test_a_leaf_keeps_what_moves():
    flat = gradient_map((sigmoid(x - y) - sp.Rational(1, 2)) ** 2, (x, y), step=eta)
    system = MapSystem(flat, {"eta": 10.0})
    there = on_leaf(system, {"x": 2.0, "y": 1.0})
    assert len(there.map.state) == 1
    assert on_leaf(system, {"x": 2.0, "y": 1.0}, [x + y]).map == there.map
    # x - y moves as in one state with twice the step; beyond its flip at 8 there is one 2-cycle.
    (cycle,) = cycles(there, 2, {there.map.names[0]: (-4, 6)}).cycles
    assert sum(p[there.map.names[0]] for p in cycle.points) == pytest.approx(3, rel=1e-14)
    orbit = iterate(system, {"x": 2.0, "y": 1.0}, 2000)
    ends = sorted(float(orbit[there.map.names[0]][-k]) for k in (1, 2))
    assert ends == pytest.approx(sorted(p[there.map.names[0]] for p in cycle.points), rel=1e-12)


def test_leaves_refuse():
    moving = MapSystem(IteratedMap((x, y), (x / 2 + y, y / 3)))
    assert on_leaf(moving, {"x": 1, "y": 2}) is moving
    with pytest.raises(NotConservedError, match=r"x \+ y is not conserved: one step changes it by"):
        on_leaf(moving, {"x": 1, "y": 2}, [x + y])
    with pytest.raises(ValueError, match="A functional is a sum of numbers times the states"):
        on_leaf(moving, {"x": 1, "y": 2}, [x * y])
    with pytest.raises(ValueError, match="Every state of this map is conserved"):
        on_leaf(MapSystem(IteratedMap((x,), (x,))), {"x": 1})


# --- refusals --------------------------------------------------------------------------------------------


def test_refuses():
    system = MapSystem(TWO_LOGITS, {"eta": 1.0, "q": 0.5})
    with pytest.raises(NotAFixedPointError, match="is not a fixed point"):
        critical_step(system, {"x": 0.7}, "eta")
    with pytest.raises(
        ValueError, match=r"No parameter is called 'step'; the map's parameters are \['eta', 'q'\]"
    ):
        critical_step(system, {"x": 0}, "step")
    with pytest.raises(ValueError, match="No number for the states"):
        critical_step(system, {}, "eta")
    with pytest.raises(TypeError, match="got ODESystem, a flow"):
        critical_step(ODESystem(VectorField((x,), (-x,))), {"x": 0}, "eta")
    with pytest.raises(ValueError, match=r"holds the system's own eta = 1; got \(2, 3\)"):
        critical_step(system, {"x": 0}, "eta", (2, 3))
    with pytest.raises(ValueError, match=r"hold positive numbers alone, as eta is declared; got \(0, 2\)"):
        critical_step(system, {"x": 0}, "eta", (0, 2))
    with pytest.raises(NoFlipError, match=r"along the cycle for eta in \[0.5, 2\]. Widen `within`"):
        critical_step(system, {"x": 0}, "eta", (0.5, 2))
    # At a maximum of the loss nothing is contracted, whatever the step.
    hill = gradient_map(-(x**2), (x,), step=eta)
    with pytest.raises(NoFlipError, match="Flips are of points where a direction is contracted"):
        critical_step(MapSystem(hill, {"eta": 1.0}), {"x": 0}, "eta")
    with pytest.raises(NoFlipError, match="a second multiplier is 1 or -1"):
        critical_step(
            MapSystem(IteratedMap((x, y), (-m * x, -m * y), (m,)), {"m": 0.5}), {"x": 0, "y": 0}, "m"
        )
    # The multiplier -1 - (m - 1)^2 touches -1 and does not pass it.
    touching = IteratedMap((x,), (-x * (1 + (m - 1) ** 2),), (m,))
    with pytest.raises(NoFlipError, match="the multiplier -1 does not move with m"):
        critical_step(MapSystem(touching, {"m": 0.9}), {"x": 0}, "m")
    # eta x + x^3 flips at eta = -1 only.
    backwards = IteratedMap((x,), (eta * x + x**3,), (eta,))
    with pytest.raises(NoFlipError, match="at eta = -1, and eta is declared to be positive"):
        critical_step(MapSystem(backwards, {"eta": 0.5}), {"x": 0}, "eta")
    with pytest.raises(ValueError, match="`period` must be a whole number of at least 1; got 0"):
        critical_step(system, {"x": 0}, "eta", period=0)
    with pytest.raises(ValueError, match="of a map of one state; this one has 2"):
        flip_formula(HENON, {"x": 0, "y": 0}, "a")
    with pytest.raises(NotAFixedPointError, match="is not shown to be a fixed point for every r"):
        flip_formula(LOGISTIC, {"x": sp.Rational(2, 3)}, "r")
    with pytest.raises(NoFlipError, match="does not depend on r"):
        flip_formula(IteratedMap((x,), (x**2 * (1 + r * x),), (r,)), {"x": sp.S.Zero}, "r")
