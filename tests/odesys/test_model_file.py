"""Model files: what is read, exactly, and one sentence for every fault."""

import re
from pathlib import Path

import pytest
import sympy as sp

from odesys import MapSystem, ODESystem
from odesys.model_file import ModelFileError, read
from symbolic import IteratedMap, VectorField, gradient_flow

MODELS = Path(__file__).parent.parent / "models"
README = Path(__file__).parent.parent.parent / "README.md"

WHOLE = """
name = "network"
source = "somebody 1999"
[parameters]
s = "8/3"
[flow]
b = "a*(s - a*b)"
a = "b*(s - a*b)"
[assume]
positive = ["s"]
[conserved]
C = "a^2 - b^2"
[observables]
p = "a*b"
[start]
a = 0.1
b = "1/3"
[run]
end = 10
points = 11
method = "DOP853"
rtol = 1e-10
[box]
a = [-2, "5/2"]
b = [-1, 1]
"""


@pytest.fixture
def model(tmp_path):
    def written(text):
        path = tmp_path / "model.toml"
        path.write_text(text)
        return read(path)

    return written


def test_everything_that_a_file_can_say(model):
    found = model(WHOLE)
    a, b, s = sp.Symbol("a", real=True), sp.Symbol("b", real=True), sp.Symbol("s", positive=True)
    assert found.rule == VectorField((b, a), (a * (s - a * b), b * (s - a * b)), (s,))
    assert (found.name, found.rule.source) == ("network", "somebody 1999")
    assert found.numbers == {"s": sp.Rational(8, 3)}
    assert found.conserved == {"C": a**2 - b**2}
    assert found.observables == {"p": a * b}
    assert found.start == {"b": 1 / 3, "a": 0.1}
    assert (found.run.end, found.run.points, found.run.method, found.run.rtol) == (10.0, 11, "DOP853", 1e-10)
    assert found.box == {"b": (-1.0, 1.0), "a": (-2.0, 2.5)}
    assert isinstance(found.system, ODESystem)
    assert found.system.parameters == {"s": 8 / 3}
    assert found.exact.field.rhs[0] == a * (sp.Rational(8, 3) - a * b)


def test_the_least_that_a_file_can_say(model):
    found = model('[flow]\nx = "-x"')
    assert (found.name, found.start, found.box, found.run.end) == ("model", None, None, None)
    assert found.rule.time is None


def test_numbers_are_exact_whether_toml_or_text_writes_them(model):
    found = model('[parameters]\np = 0.1\nq = "0.1"\nr = 1e-3\nn = 7\n[flow]\nx = "p*x + q*x + r + n + 0.1"')
    tenth = sp.Rational(1, 10)
    assert found.numbers == {"p": tenth, "q": tenth, "r": sp.Rational(1, 1000), "n": 7}
    assert found.exact.field.rhs[0].subs(found.rule.state[0], 0) == 7 + sp.Rational(1, 1000) + tenth


def test_a_loss_becomes_its_flow_or_its_map(model):
    text = (
        '[parameters]\ns = 1\neta = 0.1\n[loss]\nexpression = "(s - a*b)^2/2 + eta*a"\nstates = ["a", "b"]\n'
    )
    flow = model(text + 'time_constant = "2*s"')
    s, eta = flow.rule.parameters
    derived = gradient_flow(flow.loss, flow.rule.state, time_constant=2 * s)
    assert (flow.rule.rhs, flow.rule.state) == (derived.rhs, derived.state)
    step = model(text + 'step = "eta"')
    assert isinstance(step.rule, IteratedMap)
    assert isinstance(step.system, MapSystem)
    a, b = step.rule.state
    s, eta = step.rule.parameters
    assert sp.expand(step.rule.rhs[1] - (b + eta * a * (s - a * b))) == 0


def test_time_is_t_unless_t_is_something_else(model):
    assert model('[flow]\nx = "-x + sin(t)"').rule.time == sp.Symbol("t", real=True)
    assert model('[parameters]\nt = 2\n[flow]\nx = "-t*x"').rule.time is None
    assert model('[flow]\nt = "-t"').rule.time is None
    assert model('[map]\nx = "x/2 + t"').rule.time == sp.Symbol("t", real=True)


@pytest.mark.skipif(not README.exists(), reason="the tests run away from the checkout")
def test_the_file_of_the_readme_is_a_model(model):
    (text,) = re.findall(r"```toml\n(.*?)```", README.read_text(), re.DOTALL)
    assert model(text).rule == read(MODELS / "two_layer_network.toml").rule


def test_the_files_of_the_tests_are_models():
    found = {path.stem: read(path) for path in MODELS.glob("*.toml")}
    assert {"logistic", "two_layer_network", "van_der_pol"} <= found.keys()
    for model in found.values():
        assert tuple(model.start) == model.rule.names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[flow]", "[folw]"), r"\[folw\] is unknown; .*Did you mean 'flow'"),
        (("name =", "nmae ="), r"nmae is unknown; .*Did you mean 'name'"),
        (("points =", "point ="), r"\[run\] point is unknown; known are end, points.*Did you mean 'points'"),
        (("positive =", "positiv ="), r"\[assume\] positiv is unknown; .*Did you mean 'positive'"),
        (('b = "a*(s - a*b)"', 'b = "a*(s - a*c)"'), r"\[flow\] b is not understood: there is no name 'c', .* b, a, s"),
        (('"a^2 - b^2"', '"a^2 - sine(b)"'), r"\[conserved\] C is not understood: there is no function 'sine'.*'sin'"),
        (('C = "a^2 - b^2"', 'C = "s^2"'), r"\[conserved\] C depends on no state"),
        (('C = "a^2 - b^2"', 'a = "a^2 - b^2"'), r"\[conserved\] a is no free name"),
        (('p = "a*b"', 'loss = "a*b"'), r"\[observables\] loss is no free name"),
        (('p = "a*b"', 'C = "a*b"'), r"\[observables\] C bears the name of a conserved quantity"),
        (('p = "a*b"', 'p = "a*b*t"'), r"\[observables\] p is not understood: there is no name 't'"),
        (("a = 0.1\n", ""), r"\[start\] a is missing; give a number for each of b, a"),
        (("a = 0.1\n", "a = 0.1\nc = 1\n"), r"\[start\] c is unknown; known are b, a"),
        (("a = 0.1\n", "a = nan\n"), r"\[start\] a must be a finite number"),
        (("a = 0.1\n", "a = true\n"), r"\[start\] a must be a number"),
        (('s = "8/3"', "s = inf"), r"\[parameters\] s must be a finite number"),
        (('s = "8/3"', "s = 1e999"), r"\[parameters\] s must be a finite number"),
        (('s = "8/3"', "s = 1" + "0" * 400), r"\[parameters\] s must be a finite number"),
        (('s = "8/3"', 's = "a"'), r"\[parameters\] s is not understood as a number: there is no name 'a'"),
        (('s = "8/3"', "s = -1"), r"\[parameters\] s is -1, but positive by \[assume\]"),
        (('s = "8/3"', 's = 1\nq = 2'), r"\[parameters\] q is used nowhere"),
        (('s = "8/3"', 's = 1\na = 2'), r"The parameter 'a' is named twice"),
        (('s = "8/3"', 's = 1\nexp = 2'), r"The parameter 'exp' bears a name"),
        (('s = "8/3"', 's = 1\n"x-y" = 2'), r"The parameter 'x-y' is no name"),
        (('["s"]', '["S"]'), r"\[assume\] positive names 'S', which is neither"),
        (('["s"]', '"s"'), r"\[assume\] positive must list names"),
        (("[run]", "[loss]\n[run]"), r"The model needs exactly one of .*; got \[flow\] and \[loss\]"),
        (("[flow]", "[observables]"), r"is not TOML: .*\(at line "),
        (('"a*b"', "a*b"), r"is not TOML: Invalid value \(at line 14, column 5\). Expressions stand in quotes"),
        (("end = 10", "end = 0"), r"\[run\] end must be positive; got 0"),
        (("points = 11", "points = 1"), r"\[run\] points must be a whole number from 2"),
        (("points = 11", "points = 2.5"), r"\[run\] points must be a whole number"),
        (('"DOP853"', '"DOP583"'), r"\[run\] method must be one of RK45, .*Did you mean 'DOP853'"),
        (("[-1, 1]", "[1, -1]"), r"\[box\] b must be two increasing numbers"),
        (("[-1, 1]", "3"), r"\[box\] b must be two increasing numbers"),
        (("[box]", "[box]\nc = [0, 1]"), r"\[box\] c is unknown"),
        (('name = "network"', "name = 3"), r"name must be text in quotes; got 3"),
        (('b = "a*(s - a*b)"', 'b = ["a"]'), r"\[flow\] b must be a number"),
        (('b = "a*(s - a*b)"', 'step = "a*(s - a*b)"'), r"The state 'step' bears a name"),
    ],
)  # fmt: skip
def test_faults_name_file_section_and_key(model, change, message):
    assert change[0] in WHOLE
    with pytest.raises(ModelFileError, match=rf"model\.toml: {message}"):
        model(WHOLE.replace(*change, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"needs exactly one of \[flow\], \[map\] and \[loss\]; got none"),
        ("[flow]", r"\[flow\] is empty"),
        ("run = 3", r"run must be a section, \[run\] with lines of keys below it; got 3"),
        ('[loss]\nstates = ["a"]', r"\[loss\] expression is missing"),
        ('[loss]\nexpression = "a^2"', r"\[loss\] states is missing"),
        ('[loss]\nexpression = "a^2"\nstates = "a"', r"\[loss\] states must list names"),
        ('[loss]\nexpression = "a^2"\nstates = ["a", "b"]', r"\[loss\] makes no rule: The loss does not depend on .*b"),
        ('[loss]\nexpression = "a^2"\nstates = ["a", "a"]', "The state 'a' is named twice"),
        ('[loss]\nexpression = "a^2"\nstates = ["a"]\nstep = 0', r"\[loss\] step must be positive; got 0"),
        ('[loss]\nexpression = "a^2"\nstates = ["a"]\nstep = "a"', r"\[loss\] step is not understood"),
        ('[loss]\nexpression = "a^2"\nstates = ["a"]\nstep = 1\ntime_constant = 1', r"give one of them"),
        ('[flow]\nx = "x"\n[solution]\ny = "t"', r"\[solution\] y is unknown; known are x"),
        ('[flow]\nx = "x"\ny = "y"\n[solution]\ny = "t"', r"\[solution\] x is missing"),
        ('[flow]\nx = "x"\n[solution]\nx = "x*t"', r"\[solution\] x is not understood: there is no name 'x'.* t, x_0"),
        ('[map]\nx = "x"\n[solution]\nx = "x_0"', r"\[solution\] is x\(t\) of a flow"),
        ('[flow]\nx = "x"\nx_0 = "x_0"\n[solution]\nx = "1"', r"\[solution\] needs the name x_0 for a start"),
        ('[flow]\nt = "t"\n[solution]\nt = "1"', r"\[solution\] needs the name t for the time"),
        ('[flow]\nx = "x"\n[flow]\ny = "y"', "is not TOML"),
        ("\n".join(["[flow]", *(f'x{i} = "1"' for i in range(300))]), "has 300 states and parameters; at most 200"),
        ("[" * 5000, "is not TOML|is nested too deeply"),
        ("x = " + "[" * 5000, "is not TOML|is nested too deeply"),
        ('[flow]\nx = "' + "(" * 100_000 + '"', "100000 characters; at most"),
        ('[flow]\nx = "9**9**9*x"', "exponents are at most 100"),
        ("# " + "x" * 1_000_001, "has more than 1000000 bytes"),
    ],
    ids=lambda value: value[-40:],
)  # fmt: skip
def test_faults_of_the_whole(model, text, message):
    with pytest.raises(ModelFileError, match=message):
        model(text)


def test_files_that_are_none(tmp_path):
    with pytest.raises(ModelFileError, match=r"none.toml: cannot be read: No such file"):
        read(tmp_path / "none.toml")
    with pytest.raises(ModelFileError, match=r"cannot be read: Is a directory"):
        read(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(ModelFileError, match=r"latin.toml: is not text in UTF-8: .* at byte 8"):
        read(tmp_path / "latin.toml")


def test_what_a_command_needs_is_asked_for(model):
    found = model('[flow]\nx = "-x"')
    with pytest.raises(
        ModelFileError, match=r"\[start\] is missing. It is integrated: give a number .*x = 1"
    ):
        found.required("start", "It is integrated")
    with pytest.raises(ModelFileError, match=r"\[run\] end is missing. Say how long"):
        found.required("end", "Say how long")
