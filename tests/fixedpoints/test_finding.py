"""Find: the right method for each system, with a certificate that never says more than was proven."""

import json
import math
import os
import subprocess
import sys
import time
from itertools import pairwise

import pytest
import sympy as sp
from flint import arb

import fixedpoints.interval
from fixedpoints.boxes.equations import Equations
from fixedpoints.finding import find
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField

x, y, z, t, m = sp.symbols("x y z t m")


def flow(*rhs, **numbers):
    field = VectorField((x, y, z)[: len(rhs)], rhs, tuple(map(sp.Symbol, numbers)))
    return ODESystem(field, numbers)


def locations(found):
    return [tuple(point.location.values()) for point in found.points]


def approx(*points, abs=1e-9):
    return [pytest.approx(p, abs=abs) for p in points]


# --- algebra first ---------------------------------------------------------------------------------------


def test_polynomial_systems_are_complete_everywhere():
    # Case fp-cubic-missing (SymPy 17449): nine complex solutions, five real.
    found = find(flow(20 * x * y - 10 * x - 4 * x**3, 10 * x**2 - 8 * y - 8 * y**3))
    assert found.certificate.kind == "complete"
    a, b, c, d = 0.8566568714, 0.6467721991, 2.644224302, 1.898384431
    assert locations(found) == approx((-c, d), (-a, b), (0, 0), (a, b), (c, d))
    assert str(found.certificate).startswith("found 5; complete: ")


def test_twenty_seven_points_with_their_kinds():
    # Case fp-count-27 (DynamicalSystems.jl 187).
    found = find(flow(x - x**3, y - y**3, z - z**3))
    unstable = [point.dims[0] for point in found.points]
    assert [unstable.count(k) for k in range(4)] == [8, 12, 6, 1]
    assert found.certificate.kind == "complete"
    assert {p.stability for p in found.points if p.dims[0] == 0} == {"sink"}


def test_a_bare_field_whose_points_are_logarithms_of_roots():
    # The flow of w = e^x is w (w^5 - 10 w^4 + 1): two positive roots, none of them in radicals.
    field = VectorField((x,), (sp.exp(5 * x) - 10 * sp.exp(4 * x) + 1,))
    found = find(field)
    assert [p.stability for p in found.points] == ["stable", "unstable"]
    assert all(p.location["x"].has(sp.CRootOf) for p in found.points)
    numbers = find(ODESystem(field))
    assert [float(p.location["x"]) for p in found.points] == pytest.approx(
        [p.location["x"] for p in numbers.points], rel=1e-15
    )


def test_a_box_keeps_what_lies_in_it():
    found = find(flow(x - x**3, y - y**3), box={"x": (0, 2), "y": (-0.5, 0.5)})
    assert found.certificate.kind == "complete in box"
    assert locations(found) == [(0.0, 0.0), (1.0, 0.0)]
    assert found.certificate.found == 2


def test_roots_on_an_edge_are_decided_exactly():
    # sqrt 2 lies between two floats; the box ends at one or the other.
    above = math.sqrt(2)
    assert sp.Rational(above) > sp.sqrt(2)
    root = flow(x**2 - 2)
    assert len(find(root, box={"x": (0, above)}).points) == 1
    assert find(root, box={"x": (0, math.nextafter(above, 0))}).points == ()


def test_six_roots_the_same_in_a_hundred_runs():
    # The damped pendulum on two and a half turns and a bit: it rests at 0, pi, ..., 5 pi.
    pendulum, box = flow(y, -sp.sin(x) - y / 5), {"x": (-1.6, 17.3), "y": (-5, 5)}
    first = locations(find(pendulum, box=box))
    assert first == approx(*((k * math.pi, 0) for k in range(6)))
    assert all(locations(find(pendulum, box=box)) == first for _ in range(99))


def test_periodic_fields_are_unrolled_over_the_box():
    found = find(flow(y, -sp.sin(x) - y / 5), box={"x": (-1.6, 17.3), "y": (-5, 5)})
    assert locations(found) == approx(*((k * math.pi, 0) for k in range(6)))
    assert [point.stability for point in found.points] == ["stable focus", "saddle"] * 3
    assert found.certificate.kind == "complete in box"


def test_one_root_that_radicals_cannot_express():
    # Case fp-unsolvable-quintic-1d (SymPy PR 23011).
    found = find(flow(x**5 - x + 1, -y))
    assert locations(found) == approx((-1.16730397826, 0.0))


def test_components_come_with_their_dimension():
    # Case fp-plane-of-equilibria (SymPy 23110): {x = 0} and {y = z = v = 0}.
    v = sp.Symbol("v")
    found = find(ODESystem(VectorField((x, y, z, v), (x * y, x * z, x * v, 0))))
    assert sorted((c.dimension, {str(e) for e in c.equations}) for c in found.components) == [
        (1, {"y", "z", "v"}),
        (3, {"x"}),
    ]


# --- proof in a box --------------------------------------------------------------------------------------


def test_a_double_root_is_half_stable():
    # Case fp-double-root-halfstable (IntervalRootFinding.jl 74).
    found = find(flow(sp.exp(x**2) - sp.cos(x)), box={"x": (-10, 10)})
    assert found.certificate.kind == "complete in box"
    (point,) = found.points
    assert (point.location, point.multiplicity, point.stability) == ({"x": 0.0}, 2, "half-stable")
    assert point.attracts == (True, False)


def test_three_hard_boxes_within_ten_seconds_each():
    clutter = sp.Add(*((-10 if k % 10 == 0 else sp.Rational(3, 2)) * (1 + x) ** -k for k in range(100)))
    cases = [
        (flow(sp.exp(x**2) - sp.cos(x)), {"x": (-10, 10)}, [(0.0,)]),
        (flow(clutter), {"x": (-2, 2)}, [(0.0646316396393,)]),
        (flow(sp.sin(x) - y, sp.cos(y) - x), {"x": (-6, 6), "y": (-6, 6)}, [(0.7681691567, 0.6948196907)]),
    ]
    for system, box, expected in cases:
        begun = time.process_time()
        found = find(system, box=box)
        assert time.process_time() - begun < 10
        assert found.certificate.kind == "complete in box"
        assert locations(found) == approx(*expected)


def test_a_pole_is_named():
    found = find(flow(sp.tan(x) - x), box={"x": (-10, 10)})
    assert len(found.points) == 5
    assert found.excluded == (sp.cos(x),)


def test_undefined_regions_are_named():
    found = find(flow(sp.log(x) - sp.cos(x)), box={"x": (-1, 5)})
    assert locations(found) == approx((1.30296400121601,))
    assert found.excluded == (x <= 0,)
    assert found.certificate.kind == "complete in box"


def test_undefined_regions_of_states_that_are_declared_positive_are_named_too():
    n = sp.Symbol("n", positive=True)
    found = find(ODESystem(VectorField((n,), (sp.log(n) - sp.cos(n),))), box={"n": (-1, 5)})
    assert [str(relation) for relation in found.excluded] == ["n <= 0"]


def test_every_point_of_a_box_has_an_enclosure_that_holds_no_other():
    found = find(flow(y, -sp.sin(x) - y / 5 - x / 30), box={"x": (-20, 20), "y": (-5, 5)})
    assert len(found.points) == 13
    enclosures = [point.enclosure["x"] for point in found.points]
    assert all(a[1] < b[0] for a, b in pairwise(enclosures))
    # sin x = -x/30, counted from the graph: 0, and two in each of the periods before |x| = 30 leaves the box.
    assert all(abs(math.sin(p) + p / 30) < 1e-14 for p, _ in locations(found))


def test_maps_of_one_state():
    ricker = IteratedMap((x,), (x * sp.exp(m * (1 - x)),), (m,))
    found = find(MapSystem(ricker, {"m": 2.5}), box={"x": (-1, 5)})
    assert locations(found) == [(0.0,), (1.0,)]
    # Multipliers exp(m) and 1 - m, by hand.
    assert [p.eigenvalues[0] for p in found.points] == pytest.approx([math.exp(2.5), -1.5])


def test_open_boxes_make_the_answer_unknown():
    found = find(flow(sp.sin(1 / x)), box={"x": (-1, 1)}, budget=1.5)
    assert found.certificate.kind == "unknown"
    assert "a box was not searched through" in str(found.certificate)
    assert any(box["x"][0] < 0 < box["x"][1] for box in found.unresolved)


def test_a_jump_makes_the_answer_unknown():
    found = find(flow(sp.sign(x)), box={"x": (-1, 1)})
    assert found.certificate.kind == "unknown"
    assert found.points == ()
    (box,) = found.unresolved
    assert set(box) == {"x"}
    assert "exactly; whether it is the only one" in box.reason


# --- numerical search ------------------------------------------------------------------------------------


def test_without_a_box_nothing_is_claimed():
    found = find(flow(sp.sin(x) - y, sp.cos(y) - x))
    assert found.certificate.kind == "unknown"
    assert str(found.certificate).startswith(
        "found 1; completeness unknown because exact algebra does not apply"
    )
    assert "give a `box`" in found.certificate.reason
    # Existence is proven all the same, of the point at which x = cos(sin(x)) is a contraction.
    (point,) = found.points
    root = 0.7
    for _ in range(200):
        root = math.cos(math.sin(root))
    for name, value in (("x", root), ("y", math.sin(root))):
        low, high = point.enclosure[name]
        assert low - 1e-15 <= value <= high + 1e-15  # rounding of the iteration
        assert high - low < 1e-12


def test_functions_without_ranges_are_searched():
    # gamma(x) = 2 has the root 3, and one near 0.443, by bisection.
    found = find(flow(2 - sp.gamma(x)), box={"x": (0.1, 5)})
    assert locations(found) == approx((0.4428773964,), (3.0,))
    assert found.certificate.kind == "unknown"


def test_a_zero_on_a_jump_is_found_and_not_judged():
    # floor(x) = x/2 on [0, 1) at 0, where the floor jumps.
    found = find(flow(sp.floor(x) - x / 2), box={"x": (-0.5, 0.5)})
    assert [(p.location, p.stability) for p in found.points] == [({"x": 0.0}, "undecided")]
    assert found.certificate.kind == "unknown"


def test_plateaus_are_rejected_with_the_reason():
    found = find(flow(x * sp.exp(-(x**2)) + sp.exp(-2 * x**2) / 2))
    assert len(found.points) == 1
    assert any("small but not zero" in reason for _, reason in found.rejected)


# --- the certificate is right ----------------------------------------------------------------------------


def test_a_root_that_the_evaluator_hides_is_not_denied(monkeypatch):
    values, slopes = Equations.values, Equations.slopes

    def hides(ranges):
        (low, high), *_ = ranges
        return low < 0.7 and high > 0.6

    def blind(self, ranges):
        functions, limits = values(self, ranges)
        return ([(-high.exp(), high.exp()) for _, high in ranges] if hides(ranges) else functions), limits

    monkeypatch.setattr(Equations, "values", blind)
    monkeypatch.setattr(Equations, "slopes", lambda self, r: None if hides(r) else slopes(self, r))
    found = find(flow(sp.exp(x) + x - 2.7), box={"x": (0, 1)}, budget=20)
    assert found.certificate.kind == "unknown"


def test_a_root_that_is_lost_is_missed(monkeypatch):
    # A fault is planted behind the proof: one zero is dropped. The search that follows meets it.
    honest = fixedpoints.interval.explore

    def forgetful(*args, **options):
        from dataclasses import replace

        seen = honest(*args, **options)
        return replace(seen, zeros=seen.zeros[1:])

    monkeypatch.setattr(fixedpoints.interval, "explore", forgetful)
    found = find(flow(y, -sp.sin(x) - y / 5 - x / 30), box={"x": (-5, 5), "y": (-1, 1)})
    assert found.certificate.kind == "unknown"
    assert "a numerical search met fixed points that the proof did not" in found.certificate.reason
    assert len(found.points) == 3


def test_arithmetic_that_denies_a_root_is_contradicted(monkeypatch):
    # A fault is planted in the bounds themselves: the field seems to lie between 1 and 2 everywhere.
    monkeypatch.setattr(Equations, "values", lambda self, ranges: ([(arb(1), arb(2))], []))
    found = find(flow(sp.exp(x) + x - 2.7), box={"x": (0, 1)})
    assert found.certificate.kind == "unknown"
    assert "a numerical search met fixed points that the proof did not" in found.certificate.reason
    assert any("ball arithmetic denies it" in reason for _, reason in found.rejected)


def test_the_same_answer_in_every_process():
    program = (
        "import json, sympy as sp, symbolic\n"
        "from fixedpoints.finding import find\n"
        "from odesys.system import ODESystem\n"
        "x, y = sp.symbols('x y')\n"
        "system = ODESystem(symbolic.VectorField((x, y), (y, -sp.sin(x) - y / 5 - x / 30)))\n"
        "boxes = [None, {'x': (-20, 20), 'y': (-5, 5)}]\n"
        "print(json.dumps([[p.location for p in find(system, box=b).points] for b in boxes]))"
    )
    answers = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        )
        answers.add(done.stdout)
    (answer,) = answers
    assert len(json.loads(answer)[1]) == 13


# --- bare rules ------------------------------------------------------------------------------------------


def test_parameters_stay_symbols():
    # Case fp-transcritical-branches (HomotopyContinuation.jl 647).
    p = sp.Symbol("p", real=True)
    found = find(VectorField((y,), (y * (p - y),), (p,)))
    assert {point.location["y"] for point in found.points} == {sp.S.Zero, p}
    assert found.exceptions == (sp.Eq(p, 0),)


def test_special_parameters_are_named():
    # Case fp-special-parameters (SymPy 11621): det = -m^2 (m - 3).
    rhs = tuple(sp.Matrix(3, 3, lambda i, j: 1 - m * int(i == j)) * sp.Matrix([x, y, z]))
    found = find(VectorField((x, y, z), rhs, (m,)))
    assert {sp.Eq(m, 0), sp.Eq(m, 3)} == set(found.exceptions)


def test_a_bare_rule_without_parameters_needs_no_numbers():
    found = find(VectorField((x,), (sp.exp(x) + x,)), box={"x": (-2, 2)})
    # -W(1), the omega constant.
    assert locations(found) == approx((-0.56714329040978,))


def test_parameters_that_algebra_cannot_keep_are_refused():
    with pytest.raises(
        ValueError, match=r"With the parameters \['m'\] as symbols there is no answer: exact algebra"
    ):
        find(VectorField((x,), (sp.exp(m * x) + x,), (m,)))


# --- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("box", "error", "message"),
    [
        (
            {"x": (1, 0), "y": (0, 1)},
            ValueError,
            r"side of x in `box` must be finite and increasing, \(low, high\); got \(1, 0\)",
        ),
        ({"x": (1, 1), "y": (0, 1)}, ValueError, "side of x in `box` must be finite and increasing"),
        ({"x": (0, 1)}, ValueError, r"`box` lacks the states \['y'\]; it has \['x'\]"),
        (
            {"x": (0, 1), "y": (0, 1), "z": (0, 1)},
            ValueError,
            r"No state is called 'z'; the states are \['x', 'y'\]",
        ),
        ({"x": (0, math.inf), "y": (0, 1)}, ValueError, "side of x in `box` must be finite"),
        ({"x": (0, math.nan), "y": (0, 1)}, ValueError, "side of x in `box` must be finite"),
        ({"x": 1, "y": (0, 1)}, TypeError, r"side of x in `box` must be two numbers \(low, high\); got 1"),
        ({"x": (0, 1, 2), "y": (0, 1)}, TypeError, "side of x in `box` must be two numbers"),
        ({"x": ("a", 1), "y": (0, 1)}, TypeError, "side of x in `box` must be two numbers"),
        ([(0, 1), (0, 1)], TypeError, "`box` must map each state to"),
    ],
)
def test_refuses_a_faulty_box(box, error, message):
    with pytest.raises(error, match=message):
        find(flow(x - y, sp.exp(x) - y), box=box)


@pytest.mark.parametrize("budget", [0, -1.0, math.nan, "long", True])
def test_refuses_a_faulty_budget(budget):
    with pytest.raises(ValueError, match="`budget` must be a positive number of seconds; got"):
        find(flow(x), budget=budget)


def test_refuses_a_rule_that_depends_on_time():
    with pytest.raises(ValueError, match="autonomous rule; this one depends on t"):
        find(ODESystem(VectorField((x,), (x - t,), time=t)))


def test_refuses_what_is_no_system():
    with pytest.raises(TypeError, match=r"Fixed points are of an ODESystem, a MapSystem, .* got str"):
        find("x' = x")


def test_a_field_without_states_cannot_be_built():
    with pytest.raises(ValueError, match="`state` is empty"):
        find(VectorField((), ()))


def test_a_budget_that_runs_out_is_an_honest_unknown():
    found = find(flow(sp.sin(x) - y, sp.cos(y) - x), box={"x": (-6, 6), "y": (-6, 6)}, budget=1e-6)
    assert found.certificate.kind == "unknown"
    assert found.unresolved
    assert {name for box in found.unresolved for name in box} == {"x", "y"}
