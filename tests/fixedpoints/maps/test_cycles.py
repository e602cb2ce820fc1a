"""Cycles: every one of polynomial maps, every one in a box of others, each once, with its multipliers."""

import math

import numpy as np
import pytest
import sympy as sp
from flint import arb, arb_mat
from references import reference

from fixedpoints import cycles, find, on_leaf
from fixedpoints.boxes.krawczyk import explore
from fixedpoints.maps.returns import return_equations
from odesys import iterate
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_map

x, y, r, a, b, k, q = sp.symbols("x y r a b k q")
eta = sp.Symbol("eta", positive=True)
LOGISTIC = IteratedMap((x,), (r * x * (1 - x),), (r,))
HENON = MapSystem(IteratedMap((x, y), (1 - a * x**2 + y, b * x), (a, b)), {"a": 1.4, "b": 0.3})
#: Descent on |f - b|^2 / 2 for A = (0, 1), b = (1 - q, q): both components give the same square.
SOFTMAX = gradient_map((1 / (1 + sp.exp(-x)) - q) ** 2, (x,), step=eta)


def logistic(rate):
    return MapSystem(LOGISTIC, {"r": rate})


def softmax(step, half=0.5):
    return MapSystem(SOFTMAX, {"eta": step, "q": half})


def coordinates(cycle):
    return [tuple(point.values()) for point in cycle.points]


# --- exact algebra ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [3.2, 3.5, 4.0])
def test_the_two_cycle_of_the_logistic_map(rate):
    # By hand: x = (r + 1 -+ sqrt((r - 3)(r + 1))) / (2 r), with multiplier 4 + 2 r - r^2.
    found = cycles(logistic(rate))
    root = math.sqrt((rate - 3) * (rate + 1))
    (cycle,) = found.cycles
    low, high = (rate + 1 - root) / (2 * rate), (rate + 1 + root) / (2 * rate)
    assert coordinates(cycle) == [pytest.approx((low,), rel=1e-14), pytest.approx((high,), rel=1e-14)]
    expected = 4 + 2 * rate - rate**2
    # The bound itself, and the rounding of the expected value.
    assert abs(cycle.multipliers[0] - expected) <= cycle.multiplier_errors[0] + 1e-14
    assert cycle.multiplier_errors[0] < 1e-12
    assert cycle.stability == ("stable" if abs(expected) < 1 else "unstable")
    assert found.certificate.kind == "complete"


@pytest.mark.parametrize(("period", "count"), [(1, 2), (2, 1), (3, 2), (4, 3), (5, 6), (6, 9)])
def test_cycles_of_the_full_logistic_map_are_counted_by_moebius(period, count):
    # f^p - id has 2^p zeros at r = 4; the cycles of minimal period p are (1/p) sum_{d | p} mu(p/d) 2^d.
    found = cycles(logistic(4.0), period)
    assert len(found.cycles) == count
    assert found.certificate.found == count
    divisors = [d for d in range(1, period) if period % d == 0]
    assert {c.period for c in found.shorter} == set(divisors)
    assert sum(c.period for c in (*found.cycles, *found.shorter)) == 2**period
    # Conjugate to the tent map, whose slope is 2: |multiplier| = 2^p, but 4 at the end point 0.
    sizes = {round(abs(c.multipliers[0]), 6) for c in found.cycles}
    assert sizes == ({2, 4} if period == 1 else {2**period})


@pytest.mark.parametrize("seventh", [False, True])
def test_points_of_period_three_by_trigonometry(seventh):
    # x = sin^2(pi t) doubles t at r = 4: t = 1/7 and 1/9 have period three.
    angles = [j / (7 if seventh else 9) for j in (1, 2, 4)]
    expected = sorted(math.sin(math.pi * t) ** 2 for t in angles)
    found = cycles(logistic(4.0), 3)
    assert any(
        sorted(v for (v,) in coordinates(c)) == pytest.approx(expected, abs=1e-15) for c in found.cycles
    )


def test_period_three_is_born_at_one_plus_root_eight():
    below, above = (cycles(logistic(1 + math.sqrt(8) + shift), 3) for shift in (-1e-4, 1e-4))
    assert (below.cycles, below.certificate.kind) == ((), "complete")
    assert sorted(c.stability for c in above.cycles) == ["stable", "unstable"]
    # A fold: both multipliers leave 1, at a distance of order sqrt(1e-4).
    assert [abs(c.multipliers[0] - 1) < 0.2 for c in above.cycles] == [True, True]


def test_the_flip_at_three_is_told_as_one():
    (_, at_flip) = cycles(logistic(3.0), 1).cycles
    assert at_flip.multipliers == (-1,)
    assert at_flip.stability == "stable"
    # f^2 - id = -2 c s^3 with c = f''^2/4 + f'''/6 = 36/4 by hand.
    assert "flip candidate: on the centre manifold every two rounds s -> s + (-18 s^3" in at_flip.evidence
    assert cycles(logistic(3.0), 2).cycles == ()


def test_henon():
    # Counts by Biham and Wenzel 1989 for a = 1.4, b = 0.3: one cycle of period 2 and of 4, none of 3 and 5.
    assert [len(cycles(HENON, p).cycles) for p in (2, 3, 4, 5)] == [1, 0, 1, 0]
    found = cycles(HENON, 4)
    assert [c.period for c in sorted(found.shorter, key=lambda c: c.period)] == [1, 1, 2]
    (cycle,) = found.cycles
    # |Df| = -b everywhere, so that the product of the multipliers is b^4.
    assert math.prod(cycle.multipliers) == pytest.approx(0.3**4, rel=1e-12)
    assert (cycle.stability, cycle.dims) == ("saddle", (1, 0, 1))


def test_henon_two_cycle_by_hand():
    # x_0 + x_1 = (1 - b)/a and x_0 x_1 = ((1 - b)^2 - a) / a^2 from the difference and the sum of both equations.
    (cycle,) = cycles(HENON, 2).cycles
    (x0, y0), (x1, y1) = coordinates(cycle)
    assert x0 + x1 == pytest.approx(0.7 / 1.4, rel=1e-14)
    assert x0 * x1 == pytest.approx((0.7**2 - 1.4) / 1.4**2, rel=1e-14)
    assert (y0, y1) == pytest.approx((0.3 * x1, 0.3 * x0), rel=1e-14)


def test_slopes_multiply_in_the_order_of_visit():
    # Of Henon's map the product in the wrong order has the same eigenvalues; of this one it has not.
    f = (sp.Rational(19, 10) - x**2 + y / 5 + x * y / 10, x / 4 + y**2 / 10)
    system = MapSystem(IteratedMap((x, y), f))
    found = cycles(system, 3)
    slope = sp.lambdify((x, y), sp.Matrix(f).jacobian((x, y)))
    assert len(found.cycles) == 4
    for cycle in found.cycles:
        first, second, third = (slope(*at) for at in coordinates(cycle))
        forwards, backwards = (np.linalg.eigvals(m) for m in (third @ second @ first, first @ second @ third))
        assert sorted(cycle.multipliers) == pytest.approx(sorted(forwards), rel=1e-11)  # rounding, magnified
        assert sorted(cycle.multipliers) != pytest.approx(sorted(backwards), rel=1e-5)
        # The same on boxes, here on one without extent.
        here = [(arb(v), arb(v)) for v in coordinates(cycle)[0]]
        on_box = return_equations(system, 3).slopes(here) + arb_mat(2, 2, [1, 0, 0, 1])
        np.testing.assert_allclose(
            [[float(v) for v in row] for row in on_box.tolist()], third @ second @ first, rtol=1e-10
        )


def test_folds_are_told_by_their_first_term():
    # x + x^2 moves up on both sides of 0; beside a contraction that is a saddle-node.
    (alone,) = cycles(MapSystem(IteratedMap((x,), (x + x**2,))), 1).cycles
    assert (alone.stability, alone.multipliers) == ("half-stable", (1,))
    assert "fold candidate: on the centre manifold every round s -> s + (1 s^2" in alone.evidence
    (beside,) = cycles(MapSystem(IteratedMap((x, y), (x + x**2, y / 2))), 1).cycles
    assert (beside.stability, beside.dims) == ("saddle-node", (0, 1, 1))
    (cubic,) = cycles(MapSystem(IteratedMap((x,), (x - x**3,))), 1).cycles
    assert cubic.stability == "stable"


def test_a_pair_on_the_unit_circle_is_a_neimark_sacker_candidate():
    # A rotation (3-4-5 triangle) with a quadratic term: |multipliers| = 1 and no test decides.
    c, s = sp.Rational(4, 5), sp.Rational(3, 5)
    turned = (c * x - s * y + x**2, s * x + c * y)
    found = cycles(MapSystem(IteratedMap((x, y), turned)), 1)
    at_origin = next(cycle for cycle in found.cycles if coordinates(cycle)[0] == (0, 0))
    assert at_origin.dims == (0, 2, 0)
    assert at_origin.stability.startswith("undecided")
    assert "Neimark-Sacker candidate" in at_origin.stability


def test_period_one_is_find():
    points = find(HENON)
    found = cycles(HENON, 1)
    assert [coordinates(c)[0] for c in found.cycles] == [
        pytest.approx(tuple(p.location.values()), rel=1e-15) for p in points.points
    ]
    assert [c.multipliers for c in found.cycles] == [pytest.approx(p.eigenvalues) for p in points.points]


def test_a_whole_line_of_two_cycles_is_a_component():
    # x -> -x: every point has period 2.
    found = cycles(MapSystem(IteratedMap((x,), (-x,))))
    assert (found.cycles, found.certificate.kind) == ((), "complete")
    assert [c.dimension for c in found.components] == [1]


def test_rational_maps():
    # x -> 1 - 1/x has order three: no 2-cycle but its fixed points, x^2 - x + 1 = 0, which are not real.
    found = cycles(MapSystem(IteratedMap((x,), (1 - 1 / x,))), 2)
    assert (found.cycles, found.shorter, found.certificate.kind) == ((), (), "complete")
    assert set(found.excluded) == {x, x - 1}  # f is not defined at 0, nor f^2 at 1, which f takes there


def test_a_pole_that_cancels_is_still_excluded():
    # 1/(1/x) is x, but not at 0.
    found = cycles(MapSystem(IteratedMap((x,), (1 / x,))), 2)
    assert (found.cycles, [c.dimension for c in found.components]) == ((), [1])
    assert found.excluded == (x,)


# --- boxes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", reference("softmax_maps")["two_cycles"], ids=lambda e: f"X={e['X']}")
def test_symmetric_two_cycle_of_descent(entry):
    found = cycles(softmax(entry["eta"]), 2, box={"x": (-4, 4)})
    (cycle,) = found.cycles
    assert coordinates(cycle) == [pytest.approx((side * entry["X"],), rel=1e-13) for side in (-1, 1)]
    # Rounding of eta, magnified by |d mu / d eta| < 1.
    assert cycle.multipliers[0] == pytest.approx(entry["multiplier_of_2cycle"], abs=1e-13)
    assert found.certificate.kind == "complete in box"
    assert [c.period for c in found.shorter] == [1]


def test_superstable_cycle_has_multiplier_zero():
    known = reference("softmax_maps")["superstable"]
    (cycle,) = cycles(softmax(known["eta"]), 2, box={"x": (-4, 4)}).cycles
    assert cycle.multipliers[0] == pytest.approx(0, abs=1e-14)  # eta is a rounded number
    assert coordinates(cycle)[1][0] == pytest.approx(known["X"], rel=1e-14)


def test_the_two_cycle_breaks_its_symmetry_in_a_pitchfork():
    # At eta = 12 sqrt 3 log(2 + sqrt 3) its multiplier is 1: one stable cycle before; two, and it unstable, after.
    critical = 12 * math.sqrt(3) * math.log(2 + math.sqrt(3))
    before, after = (cycles(softmax(critical * f), 2, box={"x": (-4, 4)}) for f in (0.99, 1.01))
    assert [c.stability for c in before.cycles] == ["stable"]
    assert [c.stability for c in after.cycles] == ["stable", "unstable", "stable"]
    first, middle, last = map(coordinates, after.cycles)
    assert middle[0][0] == pytest.approx(-middle[1][0], rel=1e-14)
    # The mirror image of one asymmetric cycle is the other.
    assert sorted(-v for (v,) in first) == pytest.approx(sorted(v for (v,) in last), rel=1e-14)
    assert after.certificate.kind == "complete in box"


def test_cycle_of_two_steps_beside_another_minimum():
    known = next(row for row in reference("softmax_maps")["periods"] if row[:2] == [0.75, 30])
    found = cycles(softmax(30, 0.75), 2, box={"x": (-1, 3)})
    assert coordinates(found.cycles[0]) == [pytest.approx((v,), rel=1e-12) for v in known[3]]
    assert found.cycles[0].multipliers[0] == pytest.approx(0.56485, abs=5e-6)  # digits given


def test_intervals_agree_with_algebra():
    seen = explore(return_equations(logistic(3.9), 4), [((-0.1, 1.1),)], math.inf)
    exact = cycles(logistic(3.9), 4)
    points = sorted(v for c in (*exact.cycles, *exact.shorter) for (v,) in coordinates(c))
    assert (seen.finished, seen.open) == (True, ())
    assert sorted(z.location[0] for z in seen.zeros) == pytest.approx(points, rel=1e-14)


@pytest.mark.slow
def test_henon_has_two_cycles_of_period_six():
    # Biham and Wenzel 1989; elimination in twelve unknowns takes too long, intervals in two do not.
    found = cycles(HENON, 6, box={"x": (-1.5, 1.5), "y": (-0.45, 0.45)}, budget=400)
    assert (len(found.cycles), found.certificate.kind) == (2, "complete in box")
    assert sorted(c.period for c in found.shorter) == [1, 1, 2]


def test_maps_with_a_corner():
    # x -> 1 - 2|x|: cycles by hand, {-1/5, 3/5} with slopes 2 and -2.
    found = cycles(MapSystem(IteratedMap((x,), (1 - 2 * sp.Abs(x),))), 2, box={"x": (-1, 1)})
    assert [coordinates(c) for c in found.cycles] == [[pytest.approx((-0.2,)), pytest.approx((0.6,))]]
    assert found.cycles[0].multipliers == (-4,)
    assert found.certificate.kind == "complete in box"


def test_fixed_points_of_a_periodic_map_are_not_counted_once_for_all_shifts():
    # x + sin x rests at every multiple of pi, with slopes 1 + cos x.
    rule = MapSystem(IteratedMap((x,), (x + sp.sin(x),)))
    found = cycles(rule, 1, box={"x": (-1, 7)})
    assert [coordinates(c)[0][0] for c in found.cycles] == pytest.approx([0, math.pi, 2 * math.pi], abs=1e-15)
    assert [c.multipliers[0] for c in found.cycles] == pytest.approx([2, 0, 2], abs=1e-14)
    assert found.certificate.kind == "complete in box"


def test_only_cycles_that_visit_the_box():
    # The 2-cycle of r = 3.2 is {0.513, 0.799}: either point brings it, a box between brings none.
    assert len(cycles(logistic(3.2), 2, box={"x": (0.5, 0.6)}).cycles) == 1
    between = cycles(logistic(3.2), 2, box={"x": (0.55, 0.6)})
    assert (between.cycles, between.certificate.kind) == ((), "complete in box")


def test_points_of_a_cycle_come_back():
    # Iterating in floats from each point of the answer returns to it, but for rounding times the multiplier.
    symmetric, lopsided, mirrored = cycles(softmax(30), 2, box={"x": (-5, 5)}).cycles
    (four,) = cycles(HENON, 4).cycles
    for cycle in (symmetric, lopsided, mirrored, four):
        rule = softmax(30) if len(cycle.points[0]) == 1 else HENON
        orbit = iterate(rule, cycle.points[0], cycle.period)
        size = max(1, *np.abs(cycle.multipliers))
        for name, value in cycle.points[0].items():
            assert float(orbit[name][-1]) == pytest.approx(value, abs=1e-14 * size)


# --- certificates that do not say more than was shown ----------------------------------------------------


def test_without_a_box_a_map_that_is_not_rational_is_unknown():
    found = cycles(softmax(20), budget=30)
    assert found.certificate.kind == "unknown"
    assert "give a `box`" in found.certificate.reason
    assert any(c.stability == "stable" for c in found.cycles)


def test_a_budget_that_runs_out_is_told():
    found = cycles(softmax(36), 6, box={"x": (-6, 6)}, budget=0.5)
    assert found.certificate.kind == "unknown"
    assert "budget ran out" in found.certificate.reason
    assert found.unresolved


def test_families_of_cycles_are_sent_to_a_leaf():
    # Descent on a loss of x - y keeps x + y; on its leaf through (2, 1) there is one 2-cycle beyond the flip at 8.
    flat = gradient_map((1 / (1 + sp.exp(y - x)) - sp.Rational(1, 2)) ** 2, (x, y), step=eta)
    system = MapSystem(flat, {"eta": 10.0})
    found = cycles(system, 2, box={"x": (-4, 4), "y": (-4, 4)})
    assert (found.cycles, found.certificate.kind) == ((), "unknown")
    assert "conserves x + y" in found.certificate.reason
    there = on_leaf(system, {"x": 2.0, "y": 1.0})
    (cycle,) = cycles(there, 2, box={there.map.names[0]: (-4, 6)}).cycles
    assert cycle.stability == "stable"


def test_a_lost_point_costs_the_certificate(monkeypatch):
    # As if one of the four points of the exact answer could not be followed round its cycle.
    import fixedpoints.maps.cycles as home
    from fixedpoints.points import NotAFixedPointError

    follow = home.ring

    def faulty(system, orbit):
        if abs(orbit[0][0] - 0.6875) < 1e-3:
            raise NotAFixedPointError("lost", 1.0)
        return follow(system, orbit)

    monkeypatch.setattr(home, "ring", faulty)
    found = cycles(logistic(3.2), 2)
    assert found.certificate.kind == "unknown"
    assert "could not be followed" in found.certificate.reason
    assert [reason for _, reason in found.rejected] == ["lost"]


# --- refusals --------------------------------------------------------------------------------------------


def test_refuses():
    with pytest.raises(TypeError, match=r"got ODESystem, a flow\. Write the map as a symbolic\.IteratedMap"):
        cycles(ODESystem(VectorField((x,), (x,))))
    with pytest.raises(TypeError, match=r"those of an odesys\.MapSystem; got int"):
        cycles(3)
    with pytest.raises(ValueError, match=r"\['r'\] have none. Give each a number, with odesys.MapSystem"):
        cycles(LOGISTIC)
    with pytest.raises(ValueError, match="does not count its steps; this one uses k"):
        cycles(MapSystem(IteratedMap((x,), (x / (k + 1),), time=k)))
    for period in (0, -2, 1.5, True, "two"):
        with pytest.raises(ValueError, match="`period` must be a whole number of at least 1"):
            cycles(logistic(4.0), period)
    for budget in (0, -1.0, math.nan):
        with pytest.raises(ValueError, match="`budget` must be a positive number"):
            cycles(logistic(4.0), budget=budget)
    with pytest.raises(ValueError, match=r"`box` lacks the states \['y'\]"):
        cycles(HENON, box={"x": (0, 1)})
    with pytest.raises(ValueError, match="No state is called 'z'"):
        cycles(HENON, box={"z": (0, 1)})
    with pytest.raises(ValueError, match="must be finite and increasing"):
        cycles(logistic(4.0), box={"x": (1, 0)})
    with pytest.raises(TypeError, match=r"must be two numbers \(low, high\); got 3"):
        cycles(logistic(4.0), box={"x": 3})
