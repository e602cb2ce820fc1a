"""Points that the linearisation leaves open: what decides them, and that nothing undecided is decided."""

import math

import numpy as np
import pytest
import sympy as sp

import fixedpoints
from fixedpoints import classify
from odesys.system import MapSystem, ODESystem
from symbolic import conservation
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_flow

x, y, z, a, b, c, s, r, k1, k2 = sp.symbols("x y z a b c s r k_1 k_2")
r2 = x**2 + y**2
UNDECIDED = "undecided: the linearisation does not decide"


def flow(*rhs, parameters=()):
    return VectorField((x, y, z)[: len(rhs)], rhs, parameters)


def at_origin(rule, **options):
    return classify(rule, dict.fromkeys(rule.names, 0), **options)


def linear(matrix):
    return flow(*(sp.Float(float(p)) * x + sp.Float(float(q)) * y for p, q in matrix))


# One state


def test_double_root_is_half_stable():
    # Case fp-double-root-halfstable (IntervalRootFinding.jl 74): exp(x^2) - cos(x) = 3/2 x^2 + O(x^4).
    point = at_origin(flow(sp.exp(x**2) - sp.cos(x)))
    assert (point.stability, point.attracts, point.dims) == ("half-stable", (True, False), (0, 1, 0))
    assert "the linearisation does not decide" in point.evidence


@pytest.mark.parametrize(
    ("rhs", "stability"),
    [
        (-(x**3), "stable"),
        (x**5, "unstable"),
        (-(x**4), "half-stable"),
        (sp.sin(x) - x, "stable"),  # -x^3/6
        (sp.tanh(x) - x + x**3 / 3, "unstable"),  # 2 x^5/15
        (x - sp.log(1 + x) - x**2 / 2, "stable"),  # -x^3/3
    ],
)
def test_the_first_derivative_that_does_not_vanish_decides(rhs, stability):
    assert at_origin(flow(rhs)).stability == stability


def test_an_irrational_double_root():
    # cos(x) + 1 at pi: (x - pi)^2 / 2, from floats, which are no root of it.
    point = classify(flow(sp.cos(x) + 1), {"x": math.pi})
    assert (point.stability, point.attracts) == ("half-stable", (True, False))


def test_one_side_of_a_domain():
    # Case portrait-fractional-power-domain (PyDSTool 97 and 162): f'(0+) = -1/2, undefined below 0.
    field = flow(x**1.5 / (1 + x**1.5) - x / 2)
    assert classify(field, {"x": 0}).stability == "stable"
    assert classify(field, {"x": 0.38196601125}).stability == "unstable"
    assert classify(field, {"x": 1.0}).stability == "stable"


@pytest.mark.parametrize(
    ("rhs", "numbers"),
    [
        (x * (1 - x), {}),
        (x**2 * (x - 1) ** 3 * (x + 2), {}),
        ((x**2 - 2) ** 2 * (x - 1), {}),
        (r * x - x**3, {"r": 0.1}),
        (x * (1 - x) / (2 * x + 1), {}),
        ((x - 1) * (x - c), {"c": np.nextafter(1.0, 2.0)}),
    ],
)
def test_agrees_with_the_phase_line(rhs, numbers):
    system = ODESystem(flow(rhs, parameters=tuple(map(sp.Symbol, numbers))), numbers)
    line = fixedpoints.phase_line(system, (-3, 3))
    assert line.points
    for drawn in line.points:
        point = classify(system, drawn.location, enclosure=drawn.enclosure)
        assert (point.stability, point.attracts) == (drawn.stability, drawn.attracts)


# One eigenvalue zero


@pytest.mark.parametrize(
    ("sum_", "order5", "stability"),
    [(-1, 0, "stable"), (1, 0, "unstable"), (0, -1, "stable"), (0, 1, "unstable")],
)
def test_carrs_example_to_the_order_needed(sum_, order5, stability):
    # Carr 1981, section 1.3: x' = x y + a x^3 + b x y^2, y' = -y + c x^2 + d x^2 y reduces to
    # u' = (a + c) u^3 + (c d + b c^2) u^5 + ...; here c = 1, so a + 1 = sum_ and d + b = order5.
    field = flow(x * y + (sum_ - 1) * x**3 + 2 * x * y**2, -y + x**2 + (order5 - 2) * x**2 * y)
    point = at_origin(field)
    assert (point.stability, point.dims) == (stability, (0, 1, 1))
    assert f"s^{3 if sum_ else 5}" in point.evidence


def test_a_slaved_direction_can_turn_the_verdict():
    # On the axis x' = 0; only the bend of the centre manifold, y = -x^2, makes it x' = -x^3.
    assert at_origin(flow(x * y, -y - x**2)).stability == "stable"
    assert at_origin(flow(x * y, -y + x**2)).stability == "unstable"


def test_saddle_node_and_its_side():
    point = at_origin(flow(x**2 + x * y, -y))
    assert point.stability == "saddle-node"
    assert "attracts along s only where s is negative" in point.evidence
    assert at_origin(flow(x**2, y - x * y)).dims == (1, 1, 0)


def test_parameters_given_as_floats_do_not_blur_what_is_exactly_zero():
    field = flow(a * x * y, -b * y - c * x**2, parameters=(a, b, c))
    system = ODESystem(field, {"a": 0.1, "b": 0.3, "c": 0.7})
    point = classify(system, {"x": 0.0, "y": 0.0})
    assert point.stability == "stable"
    # s' = -(a c / b) s^3, by hand.
    assert f"ds/dt = {-0.1 * 0.7 / 0.3:.6g} s^3" in point.evidence


def test_a_float_residue_is_no_quadratic_term():
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in floats: a user's cubic point, not a saddle-node.
    field = flow((a + b - c) * x**2 - x**3 + 0 * y, -y, parameters=(a, b, c))
    point = classify(ODESystem(field, {"a": 0.1, "b": 0.2, "c": 0.3}), {"x": 0, "y": 0})
    assert point.stability == "stable"


# One imaginary pair


def test_weak_focus_is_no_centre():
    # Case stab-linear-centre-nonlinear-sink (BrainPy stability.py): d/dt r^2 = -2 r^4, so dr/dt = -r^3.
    point = at_origin(flow(-y - x * r2, x - y * r2))
    assert point.stability == "stable weak focus"
    assert point.eigenvalues == (1j, -1j)
    assert "first Lyapunov coefficient -1" in point.evidence
    assert at_origin(flow(-y + x * r2, x + y * r2)).stability == "unstable weak focus"


def test_its_companion_is_a_centre():
    # The same case: Lotka-Volterra at (1, 1) with H = x - log x + y - log y.
    field = flow(x * (1 - y), y * (x - 1))
    known = conservation.verify(field, x - sp.log(x) + y - sp.log(y))
    assert classify(field, {"x": 1, "y": 1}, first_integrals=[known]).stability == "centre"
    # Found without help too: sums of polynomials and logarithms of states with an invariant axis.
    assert classify(field, {"x": 1, "y": 1}).stability == "centre"


@pytest.mark.parametrize(
    ("rhs", "hamiltonian"),
    [
        ((y, -sp.sin(x)), y**2 / 2 - sp.cos(x)),
        ((sp.sin(y), -sp.sin(x)), -sp.cos(x) - sp.cos(y)),
        ((y, -sp.exp(x) * x), y**2 / 2 + (x - 1) * sp.exp(x)),
    ],
)
def test_a_hamiltonian_that_is_no_polynomial(rhs, hamiltonian):
    point = at_origin(flow(*rhs))
    assert point.stability == "centre"
    shown = sp.sympify(point.evidence.split("conserved quantity ")[1].split(", so")[0])
    assert sp.simplify(shown - hamiltonian).is_number


def test_what_has_no_hamiltonian_gets_none():
    # The damped pendulum loses energy; with a friction y^3 it does so too slowly for the linearisation to see.
    assert at_origin(flow(y, -sp.sin(x) - y**3)).stability == "stable weak focus"
    # The friction x^2 y^3 takes x^2 y^4 from the energy, r^6 <cos^2 sin^4> = r^6/16 over a turn: r' = -r^5/16.
    weaker = at_origin(flow(y, -sp.sin(x) - x**2 * y**3))
    assert weaker.stability == "stable weak focus"
    assert "second Lyapunov coefficient -0.0625" in weaker.evidence


def test_second_lyapunov_coefficient():
    # x' = y - a3 x^3 - a5 x^5, y' = -x averages to r' = -3/8 a3 r^3 - 5/16 a5 r^5 (cos^4, cos^6 over a turn).
    first = at_origin(flow(y - x**3, -x))
    assert "first Lyapunov coefficient -0.375" in first.evidence
    second = at_origin(flow(y + 2 * x**5, -x))
    assert second.stability == "unstable weak focus"
    assert "second Lyapunov coefficient 0.625" in second.evidence


def test_a_pair_in_three_dimensions():
    # z' = -z + x^2 + y^2 is slaved to z = r^2, so r' = -r z = -r^3; without the slave there is no damping.
    point = at_origin(flow(-y - x * z, x - y * z, -z + r2))
    assert (point.stability, point.dims) == ("stable weak focus", (0, 2, 1))
    assert "first Lyapunov coefficient -1" in point.evidence
    assert at_origin(flow(-y - x * z, x - y * z, z - r2)).stability == "unstable"


def test_brusselator_at_its_hopf_point():
    # A = 1, B = 1 + A^2: supercritical, so the focus is weakly stable (Nicolis and Prigogine 1977).
    field = flow(a - (b + 1) * x + x**2 * y, b * x - x**2 * y, parameters=(a, b))
    point = classify(ODESystem(field, {"a": 1.0, "b": 2.0}), {"x": 1.0, "y": 2.0})
    assert point.stability == "stable weak focus"


def test_a_trace_of_rounding_size_makes_no_focus():
    # Peers call this a stable or unstable focus.
    for trace in (1e-17, -1e-17):
        point = at_origin(linear([[trace, 1], [-1, 0]]))
        assert point.stability == f"{UNDECIDED} (centre candidate)"
        assert "within the rounding errors" in point.evidence
    assert at_origin(linear([[0, 1], [-1, 0]])).stability == "centre"
    assert at_origin(linear([[-1e-3, 1], [-1, 0]])).stability == "stable focus"


def test_a_pair_in_coordinates_that_are_not_rational():
    # The weak focus moved to (sqrt 2, 0), given by its float.
    u = x - sp.sqrt(2)
    square = u**2 + y**2
    field = flow(sp.expand(-y - u * square), sp.expand(u - y * square))
    assert classify(field, {"x": math.sqrt(2), "y": 0.0}).stability == "stable weak focus"


# Conserved quantities


def test_stable_modulo_a_conserved_quantity():
    # Case stab-conserved-zero-eig (Catalyst.jl PR 147): A <-> B, eigenvalues 0 and -(k1 + k2).
    field = flow(-k1 * x + k2 * y, k1 * x - k2 * y, parameters=(k1, k2))
    point = classify(ODESystem(field, {"k_1": 0.3, "k_2": 0.7}), {"x": 0.7, "y": 0.3})
    assert point.stability == "stable modulo the conserved quantity"
    assert point.eigenvalues == pytest.approx((0, -1), abs=1e-15)
    assert point.dims == (0, 1, 1)
    assert "x + y" in point.evidence


def test_two_conserved_quantities():
    # A + B <-> C conserves A + C and B + C.
    rate = x * y - z
    point = classify(flow(-rate, -rate, rate), {"x": 2, "y": 3, "z": 6})
    assert point.stability == "stable modulo the conserved quantities"
    assert point.dims == (0, 2, 1)


def test_rotation_of_a_rigid_body():
    # Euler's equations with moments 1, 2, 3: energy and angular momentum make rotation about the axes of the
    # smallest and the largest moment stable, about the middle one unstable.
    field = flow(-y * z, 1 * x * z, -x * y / 3)
    assert classify(field, {"x": 1, "y": 0, "z": 0}).stability == "stable, not asymptotically"
    assert classify(field, {"x": 0, "y": 0, "z": 1}).stability == "stable, not asymptotically"
    assert classify(field, {"x": 0, "y": 1, "z": 0}).dims[0] == 1


def test_an_energy_of_two_oscillators():
    # Henon and Heiles 1964: two equal frequencies, energy definite at the origin.
    q, p = sp.symbols("q p")
    field = VectorField((x, y, p, q), (p, q, -x - 2 * x * y, -y - x**2 + y**2))
    energy = (p**2 + q**2 + x**2 + y**2) / 2 + x**2 * y - y**3 / 3
    assert at_origin(field, first_integrals=[energy]).stability == "stable, not asymptotically"
    assert at_origin(field).stability == f"{UNDECIDED} (centre candidate)"


# Whole sets of fixed points


def test_on_a_curve_of_fixed_points():
    # On u v = 1 at (2, 1/2) with s = 3: eigenvalues 0 and -s (u^2 + v^2) = -12.75, and no sink.
    system = ODESystem(gradient_flow(s * (1 - x * y) ** 2 / 2, (x, y)), {"s": 3.0})
    point = classify(system, {"x": 2.0, "y": 0.5})
    assert point.stability == "stable, not asymptotically (normally attracting set)"
    assert point.eigenvalues == pytest.approx((0, -12.75), abs=1e-14)
    assert point.index == (0, 1, 1)
    # Anywhere on the curve, also where no coordinate is rational; and by the conserved u^2 - v^2.
    u = 0.3001230123
    assert classify(system, {"x": u, "y": 1 / u}).stability == point.stability
    modulo = classify(system, {"x": 2, "y": sp.Rational(1, 2)}, first_integrals=[x**2 - y**2])
    assert modulo.stability == "stable modulo the conserved quantity"


def test_a_repelling_curve_and_a_lone_point_with_the_same_eigenvalues():
    assert classify(flow(y * (x * y - 1), x * (x * y - 1)), {"x": 1, "y": 1}).stability == "unstable"
    # No set of fixed points: x' = -x^3 has one only.
    assert "set" not in at_origin(flow(-(x**3), -y)).stability


def test_a_set_of_fixed_points_of_a_step():
    step = IteratedMap((x, y), (x + s * y * (1 - x * y), y + s * x * (1 - x * y)), (s,))
    point = classify(MapSystem(step, {"s": 0.1}), {"x": 1.0, "y": 1.0})
    assert point.stability == "stable, not asymptotically (normally attracting set)"
    assert point.eigenvalues == pytest.approx((1, 0.8), abs=1e-15)


def test_the_set_of_minima_of_attention():
    # Hessian inertia [0, H (D^2 + 1) - D^2, D^2] at an optimum of merged attention (theory note, section 2).
    from symbolic.linear_attention import merged

    model = merged.model(dim=2, heads=1)
    numbers = {"N": 31.0, "lambda_1": 0.3, "lambda_2": 0.2, "tau": 1.0}
    point = dict.fromkeys(model.flow.names, 0.0) | {"v_1": 1.0}
    for d, size in ((1, 0.3), (2, 0.2)):
        point[f"U_1_{d}_{d}"] = 1 / (size * (1 + (1 + 0.5 / size) / 31))
    found = classify(ODESystem(model.flow, numbers), point)
    assert found.stability == "stable, not asymptotically (normally attracting set)"
    assert found.index == (0, 1, 4)
    origin = classify(ODESystem(model.flow, numbers), dict.fromkeys(model.flow.names, 0.0))
    assert (origin.stability, origin.index) == ("strict saddle", (1, 3, 1))


# Gradient systems


@pytest.mark.parametrize(
    ("loss", "stability"),
    [
        (x**4 + y**2, "stable"),
        (x**4 + y**4, "stable"),
        (x**4 + y**4 - 3 * x**2 * y**2, "non-strict saddle"),  # negative on the diagonals
        (x**2 - y**4, "non-strict saddle"),
        (x**2 + y**3, "non-strict saddle"),
        (-(x**4) - y**4, "unstable"),
        # The splitting lemma: along z = x^2/2 the fourth order is x^4 - x^4/4 > 0 ...
        (x**4 + y**2 - y * x**2, "stable"),
        # ... and here it is x^4/8 - x^4/4 < 0, although both written terms are positive.
        (x**4 / 8 + y**2 - y * x**2, "non-strict saddle"),
    ],
)
def test_degenerate_critical_points(loss, stability):
    point = at_origin(gradient_flow(loss, (x, y)))
    assert point.stability == stability
    assert "linearisation does not decide" in point.evidence


def test_a_monkeys_and_a_networks_saddle():
    # Depth three, zero Hessian at the origin: escape is algebraic, no eigenvalue negative.
    deep = at_origin(gradient_flow((1 - x * y * z) ** 2 / 2, (x, y, z)))
    assert (deep.stability, deep.index) == ("non-strict saddle", (0, 3, 0))
    assert at_origin(gradient_flow(x**3 - 3 * x * y**2, (x, y))).stability == "non-strict saddle"


def test_a_degenerate_strict_saddle():
    point = at_origin(gradient_flow(x**2 - y**2 + z**4, (x, y, z)))
    assert (point.stability, point.index) == ("strict saddle", (1, 1, 1))


# Maps


def test_fold_and_flip():
    # r x (1 - x): at r = 1, x -> x - x^2 repels from below; at r = 3 the flip at 2/3 still attracts.
    step = IteratedMap((x,), (r * x * (1 - x),), (r,))
    fold = classify(MapSystem(step, {"r": 1.0}), {"x": 0.0})
    assert (fold.stability, fold.attracts) == ("half-stable", (False, True))
    assert "fold candidate" in fold.evidence
    flip = classify(MapSystem(step, {"r": 3.0}), {"x": 2 / 3})
    assert (flip.stability, flip.attracts) == ("stable", (True, True))
    assert "flip candidate" in flip.evidence


def test_fold_and_flip_with_a_slaved_state():
    # y -> y/2 + x^2 settles at y = 2 x^2 to this order: x -> x + 2 x^3, and two flips give x - 4 x^3.
    assert at_origin(IteratedMap((x, y), (x + x * y, y / 2 + x**2))).stability == "unstable"
    assert at_origin(IteratedMap((x, y), (-x + x * y, y / 2 + x**2))).stability == "stable"


def test_a_rotation_is_a_candidate_only():
    turn = IteratedMap((x, y), (-y + x**2, x))
    point = at_origin(turn)
    assert point.stability == f"{UNDECIDED} (Neimark-Sacker candidate)"
    assert at_origin(IteratedMap((x, y), (-y, x))).stability == "stable, not asymptotically"


# Two eigenvalues zero


def test_a_sheared_nilpotent_block_is_undecided():
    # Peers call it a centre: rounding makes the eigenvalues +-1e-8 i.
    shear = np.array([[1, 2], [0.3, 1.1]])
    point = at_origin(linear(shear @ np.array([[0.0, 1.0], [0.0, 0.0]]) @ np.linalg.inv(shear)))
    assert point.stability == f"{UNDECIDED} (double zero eigenvalue)"
    assert point.eigenvalues == (0, 0)
    assert "Takens-Bogdanov" in point.evidence


@pytest.mark.parametrize(
    ("rhs", "stability"),
    [
        ((y, x**2 + x * y), "unstable"),  # cusp, the Takens-Bogdanov normal form
        ((y, x**3), "unstable"),  # saddle
        ((y, -(x**5) - 4 * x**2 * y), "stable"),  # node: b^2 + 4 a (n + 1) = 16 - 12 > 0
        ((y, -(x**5) + 4 * x**2 * y), "unstable"),  # the same, repelling
        ((y, -(x**3) - 3 * x * y), "unstable"),  # elliptic sector: 9 - 8 > 0
        ((y, -(x**3) - x**2 * y), f"{UNDECIDED} (double zero eigenvalue)"),  # focus or centre
        ((y, 0), "unstable"),  # linear: drifts
    ],
)
def test_nilpotent_points_by_andreevs_theorem(rhs, stability):
    assert at_origin(flow(*rhs)).stability == stability


def test_higher_powers_beyond_reach_are_undecided():
    assert at_origin(flow(-(x**11), -y)).stability == f"{UNDECIDED} (zero eigenvalue)"
