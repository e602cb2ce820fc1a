"""A field is checked when it is made: what is wrong, what was given, how to mend it."""

import pickle

import pytest
import sympy as sp

import symbolic

a, b, t = sp.symbols("a b t")
s = sp.Symbol("s", positive=True)

RULES = [symbolic.VectorField, symbolic.IteratedMap]


@pytest.fixture(params=RULES)
def rule(request):
    return request.param


def test_holds_what_it_was_given(rule):
    made = rule(state=[a, b], rhs=[b * (s - a * b), 0], parameters=[s], source="here")
    assert made.state == (a, b)
    assert made.rhs == (b * (s - a * b), sp.Integer(0))
    assert made.names == ("a", "b")
    assert made.jacobian == sp.Matrix([[-(b**2), s - 2 * a * b], [0, 0]])


def test_equal_rules_are_one_key_whatever_their_source(rule):
    one, two = (rule((a,), (s * a,), (s,), source=text) for text in ("x", "y"))
    assert one == two
    assert len({one, two}) == 1
    assert pickle.loads(pickle.dumps(one)) == one


def test_ordinary_names_that_are_words_elsewhere(rule):
    state = sp.symbols("lambda S I")
    parameters = sp.symbols("beta N E Q pi")
    made = rule(state, (sp.Add(*parameters), state[0], state[1]), parameters)
    assert made.names == ("lambda", "S", "I")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((), ()), ValueError, "`state` is empty"),
        (((a, b), (a,)), ValueError, "2 states .* but 1 right-hand sides"),
        (((a, a), (a, a)), ValueError, r"\['a'\] stand for more than one symbol"),
        (((a,), (a,), (sp.Symbol("a", real=True),)), ValueError, "stand for more than one symbol"),
        (((a,), (a * s,)), ValueError, r"uses \['s'\], which are neither states \['a'\] nor parameters \[\]"),
        (((a,), (sp.Symbol("s") * a,), (s,)), ValueError, r"symbols named \['s'\] with other assumptions"),
        (((a,), (sp.zoo,)), ValueError, "is not finite"),
        (((a,), (sp.oo,)), ValueError, "is not finite"),
        (((a,), (a - sp.oo,)), ValueError, "is not finite"),
        (((a,), (sp.nan,)), ValueError, "is not finite"),
        (((a,), (sp.I * a,)), ValueError, "is complex"),
        (((sp.Symbol("z", imaginary=True),), (1,)), ValueError, "must hold real commutative symbols"),
        ((("a",), (1,)), TypeError, "must hold sympy Symbols; got 'a' of type str"),
        ((a, (1,)), TypeError, "`state` must be a tuple"),
        (((a,), "a"), TypeError, "`rhs` must be a tuple"),
        (((a,), ("a",)), TypeError, "must hold SymPy expressions"),
        (((a,), (sp.Matrix([a]),)), TypeError, "must be a scalar expression"),
        (((a,), (a,), (), "t"), TypeError, "`time` must be a sympy Symbol"),
        (((a,), (a,), (), a), ValueError, "stand for more than one symbol"),
    ],
)
def test_refuses(rule, arguments, error, message):
    with pytest.raises(error, match=message):
        rule(*arguments)


def test_lie_derivative_includes_explicit_time():
    field = symbolic.VectorField((a, b), (b, -a), time=t)
    # d/dt (t (a^2 + b^2)) = a^2 + b^2, since the radius is constant.
    assert sp.expand(field.lie_derivative(t * (a**2 + b**2))) == a**2 + b**2


def test_shows_as_latex():
    assert r"\frac{d a}{d t} &= b" in symbolic.VectorField((a,), (b,), (b,))._repr_latex_()
    assert r"a &\mapsto b" in symbolic.IteratedMap((a,), (b,), (b,))._repr_latex_()
