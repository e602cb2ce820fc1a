"""A rule and its numbers: what is accepted, what is refused and how."""

import fractions
import pickle

import numpy as np
import pytest
import sympy as sp

from odesys.system import MapSystem, ODESystem, numbers_for
from symbolic.field import IteratedMap, VectorField

x, s, eta = sp.symbols("x s eta")
FIELD = VectorField((x,), (s * x * (1 - eta * x),), (s, eta))
MAP = IteratedMap((x,), (x - eta * s * x,), (s, eta))
KINDS = pytest.mark.parametrize(("kind", "rule"), [(ODESystem, FIELD), (MapSystem, MAP)])


@KINDS
def test_numbers_by_name_or_symbol_in_the_order_of_the_parameters(kind, rule):
    system = kind(rule, {eta: 2, "s": sp.Rational(1, 4)})
    assert system.args == (0.25, 2.0)
    assert dict(system.parameters) == {"s": 0.25, "eta": 2.0}
    assert all(type(value) is float for value in system.args)


@KINDS
def test_equal_systems_are_equal_hashable_and_picklable(kind, rule):
    system = kind(rule, {"s": 1, "eta": 2})
    same = kind(rule, {eta: 2.0, s: 1.0})
    assert system == same
    assert hash(system) == hash(same)
    assert pickle.loads(pickle.dumps(system)) == system
    assert system != system.with_parameters({"s": 3})


@KINDS
def test_with_parameters_changes_what_is_named_alone(kind, rule):
    system = kind(rule, {"s": 1, "eta": 2})
    assert system.with_parameters({s: 5}).args == (5.0, 2.0)
    assert system.args == (1.0, 2.0)
    with pytest.raises(ValueError, match=r"No parameter is called 'k'.*\['s', 'eta'\]"):
        system.with_parameters({"k": 1})


@pytest.mark.parametrize(
    "number",
    [1, 1.0, np.float64(1), np.int64(1), np.array(1.0), sp.Integer(1), sp.exp(0), fractions.Fraction(1)],
)
def test_every_kind_of_real_number_is_a_number(number):
    assert numbers_for((s,), {"s": number}, "parameter") == (1.0,)


@pytest.mark.parametrize(
    ("numbers", "error", "message"),
    [
        ({"s": 1}, ValueError, r"No number for the parameters \['eta'\]; got \['s'\]"),
        (
            {"s": 1, "eta": 1, "tau": 1},
            ValueError,
            r"No parameter is called 'tau'; the parameters are \['s', 'eta'\]",
        ),
        ({"s": 1, s: 1, "eta": 1}, ValueError, "s is given twice, by name and by symbol"),
        (
            {sp.Symbol("s", positive=True): 1, "eta": 1},
            ValueError,
            "s that names a parameter has other assumptions",
        ),
        ({"s": 1 + 0j, "eta": 1}, ValueError, "parameter s must be real; got the complex number"),
        ({"s": sp.I, "eta": 1}, ValueError, "parameter s must be real; got the complex number I"),
        ({"s": np.complex128(1), "eta": 1}, ValueError, "parameter s must be real"),
        ({"s": float("nan"), "eta": 1}, ValueError, "parameter s must be finite; got nan"),
        ({"s": sp.oo, "eta": 1}, ValueError, "parameter s must be finite; got oo"),
        ({"s": 10**400, "eta": 1}, ValueError, "parameter s must be finite"),
        ({"s": "1", "eta": 1}, TypeError, "parameter s must be one real number; got '1' of type str"),
        ({"s": True, "eta": 1}, TypeError, "parameter s must be one real number; got True"),
        ({"s": None, "eta": 1}, TypeError, "parameter s must be one real number; got None"),
        ({"s": [1.0], "eta": 1}, TypeError, "parameter s must be one real number"),
        ({"s": np.ones(1), "eta": 1}, TypeError, "parameter s must be one real number"),
        (
            {"s": sp.Symbol("q"), "eta": 1},
            TypeError,
            "parameter s must be one real number; got q, which has no value",
        ),
        (
            [1, 2],
            TypeError,
            r"parameters must be a mapping from name to number such as {'s': 1.0}; got \[1, 2\]",
        ),
    ],
)
@KINDS
def test_refused_numbers(kind, rule, numbers, error, message):
    with pytest.raises(error, match=message):
        kind(rule, numbers)


@pytest.mark.parametrize(
    ("declared", "number"),
    [
        ("positive", 0),
        ("positive", -1),
        ("negative", 0),
        ("nonnegative", -0.5),
        ("nonpositive", 2),
        ("nonzero", 0),
    ],
)
@pytest.mark.parametrize(("kind", "rule"), [(ODESystem, VectorField), (MapSystem, IteratedMap)])
def test_numbers_have_the_sign_that_is_declared(kind, rule, declared, number):
    step = sp.Symbol("eta", **{declared: True})
    build = rule((x,), (x - step * x,), (step,))
    with pytest.raises(ValueError, match=f"parameter eta is declared to be {declared}; got {number:g}"):
        kind(build, {"eta": number})
    allowed = -1.5 if step.is_nonpositive else 1.5
    system = kind(build, {"eta": allowed})
    assert system.args == (allowed,)
    with pytest.raises(ValueError, match=f"declared to be {declared}"):
        system.with_parameters({"eta": number})


def test_flows_and_maps_are_not_mixed_up():
    with pytest.raises(TypeError, match=r"ODESystem takes a VectorField; got IteratedMap.*MapSystem"):
        ODESystem(MAP, {"s": 1, "eta": 1})
    with pytest.raises(TypeError, match=r"MapSystem takes a IteratedMap; got VectorField.*ODESystem"):
        MapSystem(FIELD, {"s": 1, "eta": 1})


def test_a_rule_without_parameters_needs_no_numbers():
    assert ODESystem(VectorField((x,), (-x,))).args == ()
