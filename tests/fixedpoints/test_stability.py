"""Classification by eigenvalues: names, bounds, cases from public reports, and refusals."""

import math
import pickle

import numpy as np
import pytest
import sympy as sp

import fixedpoints
from fixedpoints import NotAFixedPointError, classify
from odesys.system import MapSystem, ODESystem
from symbolic.field import IteratedMap, VectorField
from symbolic.gradient_flow import gradient_flow, gradient_map

x, y, z, s, t = sp.symbols("x y z s t")
ORIGIN = {"x": 0, "y": 0}


def flow(*rhs, state=(x, y), parameters=()):
    return VectorField(state[: len(rhs)], rhs, parameters)


def linear(matrix):
    """The linear flow of a matrix of floats."""
    return flow(*(sp.Float(float(a)) * x + sp.Float(float(b)) * y for a, b in matrix))


# Names


@pytest.mark.parametrize(
    ("rhs", "stability", "dims"),
    [
        ((-x, -2 * y), "stable node", (0, 0, 2)),
        ((x, 2 * y), "unstable node", (2, 0, 0)),
        ((x, -y), "saddle", (1, 0, 1)),
        ((-x + 2 * y, -2 * x - y), "stable focus", (0, 0, 2)),
        ((x + 2 * y, -2 * x + y), "unstable focus", (2, 0, 0)),
        ((-x, -y), "stable star node", (0, 0, 2)),
        ((3 * x, 3 * y), "unstable star node", (2, 0, 0)),
        ((x + y, y), "unstable degenerate node", (2, 0, 0)),
    ],
)
def test_planar_names(rhs, stability, dims):
    point = classify(flow(*rhs), ORIGIN)
    assert (point.stability, point.dims) == (stability, dims)


def test_star_and_degenerate_nodes_survive_a_shear_in_floats():
    # Case stab-star-vs-degenerate (BrainPy PR 849), with its matrix T; the float rounding of T J T^-1 splits
    # the double eigenvalue by 1e-8.
    shear = np.array([[1, 2], [0.3, 1.1]])
    star, degenerate = -np.eye(2), np.array([[-1.0, 1.0], [0.0, -1.0]])
    assert classify(linear(star), ORIGIN).stability == "stable star node"
    assert classify(linear(degenerate), ORIGIN).stability == "stable degenerate node"
    sheared = classify(linear(shear @ degenerate @ np.linalg.inv(shear)), ORIGIN)
    assert sheared.stability == "stable degenerate node"
    # The bound must admit what a relative change of 2^-52 can do to a defective matrix: its square root.
    assert all(2**-27 < error < 1e-6 for error in sheared.eigenvalue_errors)
    assert sheared.eigenvalues == pytest.approx((-1, -1), abs=1e-12)
    assert classify(linear(shear @ star @ np.linalg.inv(shear)), ORIGIN).stability == "stable star node"


def test_four_types_of_competing_species():
    # Case portrait-separatrix (scipy-dev, Lotka-Volterra competition).
    system = ODESystem(flow(x * (3 - x - 2 * y), y * (2 - y - x)), {})
    kinds = {
        (0, 0): "unstable node",
        (3, 0): "stable node",
        (0, 2): "stable node",
        (1, 1): "saddle",
    }
    for (a, b), kind in kinds.items():
        assert classify(system, {"x": a, "y": b}).stability == kind
    saddle = classify(system, {"x": 1.0, "y": 1.0})
    assert saddle.eigenvalues == pytest.approx((-1 + math.sqrt(2), -1 - math.sqrt(2)), abs=1e-15)


def test_twenty_seven_points_by_unstable_dimension():
    # Case fp-count-27 (DynamicalSystems.jl 187): 8 sinks, 12 and 6 saddles, one source.
    states = sp.symbols("a b c")
    field = VectorField(states, tuple(u - u**3 for u in states))
    counts, names = [0] * 4, set()
    for a in (-1, 0, 1):
        for b in (-1, 0, 1):
            for c in (-1, 0, 1):
                point = classify(field, {"a": a, "b": b, "c": c})
                counts[point.dims[0]] += 1
                names.add((point.dims[0], point.stability))
    assert counts == [8, 12, 6, 1]
    assert names == {(0, "sink"), (1, "saddle"), (2, "saddle"), (3, "source")}


def test_maps_by_multipliers():
    assert classify(IteratedMap((x, y), (x / 2, -y / 3)), ORIGIN).stability == "sink"
    assert classify(IteratedMap((x, y), (2 * x, -y / 3)), ORIGIN).stability == "saddle"
    source = classify(IteratedMap((x, y), (x - 2 * y, 2 * x + y)), ORIGIN)
    assert source.stability == "source"
    assert source.eigenvalues == (1 + 2j, 1 - 2j)
    # Real parts of modulus below 1 do not make a map stable, nor do negative ones.
    assert classify(IteratedMap((x,), (-2 * x,)), {"x": 0}).stability == "unstable"
    assert classify(IteratedMap((x,), (-x / 2,)), {"x": 0}).attracts == (True, True)


def test_multipliers_next_to_one_are_as_good_as_their_distance():
    # Descent with a tiny step: 1 - step * h with step * h = 1e-15, the last digit of a float.
    step = gradient_map(x**2 / 2 + y**2, (x, y), step=s)
    point = classify(MapSystem(step, {"s": 1e-15}), ORIGIN)
    assert (point.stability, point.dims, point.index) == ("sink", (0, 0, 2), (0, 0, 2))


# Numbers


def test_a_root_that_radicals_cannot_express():
    # Case fp-unsolvable-quintic-1d (SymPy PR 23011): f' = 5 x^4 - 1 at the root.
    field = flow(x**5 - x + 1, -y)
    point = classify(field, {"x": -1.16730397826, "y": 0.0})
    root = float(sp.CRootOf(x**5 - x + 1, 0))
    assert point.location["x"] == root
    assert point.eigenvalues == pytest.approx((5 * root**4 - 1, -1), rel=1e-15)
    assert max(point.eigenvalue_errors) < 1e-14


def test_symbols_are_names_too_and_rules_keep_exact_coordinates():
    point = classify(flow(x**2 - 2, -y), {x: sp.sqrt(2), y: 0})
    assert point.location == {"x": sp.sqrt(2), "y": 0}
    assert point.eigenvalues == pytest.approx((2 * math.sqrt(2), -1), rel=1e-15)


def test_fast_and_slow_states_are_told_apart():
    # An absolute tolerance, or one relative to the largest eigenvalue, loses the sign of the slow one.
    assert classify(linear([[-1e9, 0], [0, -1e-9]]), ORIGIN).stability == "stable node"
    assert classify(linear([[-1e9, 0], [0, 1e-9]]), ORIGIN).stability == "saddle"


def test_units_do_not_matter():
    # x in nanometres, y in kilometres: the same focus.
    assert classify(linear([[-1, 1e12], [-1e-12, -1]]), ORIGIN).stability == "stable focus"


@pytest.mark.parametrize("size", [3, 6])
def test_error_bounds_hold_for_every_perturbation_of_the_floats(size):
    rng = np.random.default_rng(size)
    states = sp.symbols(f"u:{size}")
    matrix = rng.normal(size=(size, size))
    rhs = tuple(sp.Add(*(sp.Float(a) * u for a, u in zip(row, states, strict=True))) for row in matrix)
    point = classify(VectorField(states, rhs), dict.fromkeys((u.name for u in states), 0))
    for _ in range(5):
        signs = rng.choice([-1, 1], size=(size, size))
        exact = sp.Matrix(matrix.tolist()).applyfunc(sp.Rational)
        moved = sp.Matrix(
            size, size, lambda i, j, e=exact, g=signs: e[i, j] * (1 + sp.Rational(int(g[i, j]), 2**52))
        )
        true = [complex(r) for r in sp.Poly(moved.charpoly().as_expr()).nroots(n=40, maxsteps=500)]
        for value, error in zip(point.eigenvalues, point.eigenvalue_errors, strict=True):
            assert min(abs(value - r) for r in true) <= error
            assert error < 1e-12 * size


def test_an_enclosure_is_trusted_and_narrowed():
    # Two roots 2e-9 apart: the float alone would reach both; the enclosure says which.
    gap = sp.Rational(1, 10**9)
    field = flow((x - 1 + gap) * (x - 1 - gap))
    for side, stability in ((-1, "stable"), (1, "unstable")):
        at = 1 + side * gap
        bounds = {"x": (at - gap / 2, at + gap / 2)}
        assert classify(field, {"x": float(at)}, enclosure=bounds).stability == stability


def test_floats_mean_the_nearest_fixed_point_not_the_simplest():
    # 1 is rational and within reach of both; 1 + 1e-9 is the nearer root.
    field = flow((x - 1) * (x - 1 - sp.Rational(1, 10**9) - sp.Rational(1, 3 * 10**12)))
    assert classify(field, {"x": 1.0000000010003}).stability == "unstable"
    assert classify(field, {"x": 1.0000000000001}).location == {"x": 1.0}


def test_a_field_that_underflows_does_not_rest():
    # exp(-1000 x^2) at x = 5 is exp(-25000): zero in floats, not zero.
    with pytest.raises(NotAFixedPointError, match="not a fixed point"):
        classify(flow(x * sp.exp(-1000 * x**2)), {"x": 5.0})


def test_records_what_it_was_told_and_travels():
    point = classify(flow(x**2), {"x": 0}, multiplicity=2)
    assert point.multiplicity == 2
    assert point.residual == 0
    assert pickle.loads(pickle.dumps(point)).stability == "half-stable"
    assert fixedpoints.classify is classify


# Gradient systems


def test_index_of_gradient_flows():
    saddle = classify(gradient_flow(x**2 - y**2, (x, y)), ORIGIN)
    assert (saddle.stability, saddle.index) == ("saddle", (1, 0, 1))
    assert "Morse index 1, nullity 0, strict saddle" in saddle.evidence
    assert classify(flow(x + y, x * y - y), ORIGIN).index is None


def test_a_loss_names_what_a_single_state_or_a_step_descends():
    loss = (1 - x * y) ** 2 / 2
    assert classify(gradient_flow(x**2, (x,)), {"x": 0}, loss=x**2).index == (0, 0, 1)
    # Too long a step: a minimum across the valley (h = 2, step 1.5), yet the map leaves it.
    step = MapSystem(gradient_map(loss, (x, y), step=s), {"s": 1.5})
    point = classify(step, {"x": 1, "y": 1}, loss=loss)
    assert (point.index, point.dims) == ((0, 1, 1), (1, 1, 0))
    assert point.stability == "unstable"


# Refusals


@pytest.mark.parametrize(
    ("system", "point", "message"),
    [
        (flow(1 - x**2, -y), {"x": 2, "y": 0}, r"not a fixed point: the flow has dx/dt = -3 there"),
        (flow(1 - x**2, -y), {"x": 1.1, "y": 0.0}, r"leads to \{x: 1, y: 0\}, 0.1 away; classify that"),
        (flow(1 + x**2, -y), {"x": 0.5, "y": 0.0}, r"Newton's method from there finds none"),
        (IteratedMap((x,), (x / 2 + 1,)), {"x": 1}, r"the map moves x by 0.5 there"),
        (flow(x**2 - 2), {"x": sp.sqrt(3)}, r"coordinates are exact, so phi must vanish exactly"),
        (flow(sp.log(x)), {"x": 0.0}, r"not defined at \{x: 0\}: log\(0\) is not a real number"),
        (flow(1 / x), {"x": 0}, r"not defined at \{x: 0\}: 1/x has a pole here"),
        (flow(sp.sqrt(x) - 1), {"x": -1.0}, r"not defined at .*sqrt\(x\) is not real here"),
    ],
)
def test_refuses_points_that_are_not_fixed(system, point, message):
    with pytest.raises(NotAFixedPointError, match=message):
        classify(system, point)


def test_the_residual_is_on_the_error():
    with pytest.raises(NotAFixedPointError) as caught:
        classify(flow(1 - x**2, -y), {"x": 2, "y": 0})
    assert caught.value.residual == 3
    with pytest.raises(NotAFixedPointError) as undefined:
        classify(flow(sp.log(x)), {"x": 0.0})
    assert math.isnan(undefined.value.residual)


def test_a_tiny_start_is_not_taken_for_the_origin():
    # Training starts at 1e-10; that is not where it rests.
    with pytest.raises(NotAFixedPointError, match="1e-10 away"):
        classify(flow(x, y), {"x": 1e-10, "y": 1e-10})
    # A solver's last digits are.
    assert classify(flow(x, -y), {"x": 1e-17, "y": -3e-16}).location == {"x": 0.0, "y": 0.0}


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"x": 0}, r"No coordinate for the states \['y'\]; got \['x'\]"),
        ({"x": 0, "y": 0, "w": 1}, r"No state is called 'w'; the states are \['x', 'y'\]"),
        ({"x": 0, "y": math.nan}, r"The coordinate y must be real and finite; got nan"),
        ({"x": sp.I, "y": 0}, r"The coordinate x must be real and finite; got I"),
        ({"x": s, "y": 0}, r"must be a number for a rule without symbolic parameters; got s"),
    ],
)
def test_refuses_wrong_coordinates(point, message):
    with pytest.raises(ValueError, match=message):
        classify(flow(-x, -y), point)


def test_refuses_other_mistakes():
    with pytest.raises(TypeError, match="must be a mapping from name to number"):
        classify(flow(-x, -y), (0, 0))
    with pytest.raises(TypeError, match="The coordinate x must be one real number; got 'a'"):
        classify(flow(-x, -y), {"x": "a", "y": 0})
    with pytest.raises(
        TypeError, match="an ODESystem, a MapSystem, a VectorField or an IteratedMap; got int"
    ):
        classify(3, ORIGIN)
    with pytest.raises(ValueError, match="needs an autonomous rule; this one depends on t"):
        classify(VectorField((x,), (t - x,), time=t), {"x": 0})
    with pytest.raises(ValueError, match="does not descend the loss"):
        classify(flow(-x, -y), ORIGIN, loss=x**2 + 3 * y**2)
    with pytest.raises(ValueError, match=r"The loss uses \['s'\], which the rule does not have"):
        classify(flow(-x, -y), ORIGIN, loss=s * x**2)
    with pytest.raises(ValueError, match="is not conserved: along the flow it changes at rate -2"):
        classify(flow(-y - x**3, x), ORIGIN, first_integrals=[x**2 + y**2])


def test_a_kink_is_said_to_be_one():
    point = classify(flow(-sp.Abs(x), -y), ORIGIN)
    assert point.stability == "undecided: the rule is not differentiable here"
    assert point.eigenvalues == ()
