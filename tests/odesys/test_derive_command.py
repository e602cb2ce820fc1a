"""`odesys derive`: what it proves and finds, of files and of models, in three forms."""

import json
import re
from pathlib import Path

import pytest
from matplotlib.mathtext import MathTextParser

from odesys.cli import main
from odesys.commands.derive import Options, derive

MODELS = Path(__file__).parent.parent / "models"


@pytest.fixture
def derived(tmp_path, monkeypatch, capfd):
    """Standard output of the command, on a model by name or on the text of a file."""
    monkeypatch.chdir(tmp_path)

    def run(model, *arguments, code=0):
        if "\n" in model:
            Path("model.toml").write_text(model)
            model = "model.toml"
        assert main(["derive", model, *arguments]) == code
        out, err = capfd.readouterr()
        return out if code == 0 else err

    return run


@pytest.fixture(scope="module")
def network():
    return derive(str(MODELS / "two_layer_network.toml"), Options(), lambda text: None)


def sections(document):
    """What stands below each heading: formulas as left -> right, and sentences."""
    return {
        section["heading"]: {e.get("left", e.get("text")): e.get("right") for e in section["entries"]}
        for section in json.loads(document)["sections"]
    }


def test_the_two_layer_network_as_text(network):
    text = network.to_text()
    assert "da/dt = b*(-a*b + s)" in text
    assert "C = a**2 - b**2\n      proven: its rate of change vanishes identically" in text
    assert "Smaller flow: b = a\n  da/dt = -a**3 + a*s" in text
    # Saxe et al. 2014: the flow of the product for given C.
    assert "dp/dt = sqrt(C**2 + 4*p**2)*(-p + s)" in text
    assert "characters; --latex or --json shows all)" in text
    assert "a = 0, b = 0: saddle" in text
    assert "a set of dimension 1: a*b - s = 0" in text
    assert max(map(len, text.splitlines())) <= 120


def test_json_has_all_expressions_whole(network):
    found = sections(network.to_json())
    assert found["Loss"] == {"L": "(-a*b + s)**2/2"}
    assert found["Jacobian of the right-hand side f"]["d f_a/d a"] == "-b**2"
    assert found["Polynomial conserved quantities up to degree 2"]["I_1"] == "a**2 - b**2"
    assert "..." not in found["Smaller flow: p"]["p(t)"]
    assert len(found["Smaller flow: p"]["p(t)"]) > 500


def test_claims_that_are_false_are_refused_with_what_is_left(derived):
    claims = '[conserved]\nH = "x^2 + 2*y^2"\nK = "x^2 + y^2"\n[solution]\nx = "x_0"\ny = "y_0"\n'
    text = f'[flow]\nx = "y"\ny = "-x"\n{claims}'
    found = json.loads(derived(text, "--json"))["sections"]
    (claims,) = (s["entries"] for s in found if s["heading"] == "Conserved, as claimed")
    # By hand: d(x^2 + 2 y^2)/dt = 2 x y - 4 x y.
    assert claims[0]["note"] == "refused: along the flow it changes at rate -2*x*y"
    assert claims[1]["note"].startswith("proven")
    (course,) = (s["entries"] for s in found if s["heading"] == "Time course, as claimed")
    assert course[-1]["text"].startswith("refused: ")


def test_a_claimed_solution_is_proven_with_its_domain(derived):
    found = sections(derived(str(MODELS / "logistic.toml"), "--json"))
    (sentence,) = (e for e in found["Time course, as claimed"] if "proven" in e)
    assert sentence.startswith("proven by substitution; holds for t >= 0")
    assert "x(t)" in found["Time course"]
    assert "x = K: stable (eigenvalue -r)" in found["Fixed points"]


def test_a_map_with_what_it_keeps(derived):
    text = '[map]\nx = "y"\ny = "-x"\n[conserved]\nR = "x^2 + y^2"\nQ = "x^2"\n'
    found = derived(text)
    assert "x -> y\n  y -> -x" in found
    assert "proven: I(f(x)) - I(x) vanishes identically" in found
    # By hand: x^2 becomes y^2.
    assert re.search(
        r"refused: a step changes it by (-x\*\*2 \+ y\*\*2|-\(x - y\)\*\(x \+ y\)|y\*\*2 - x\*\*2)", found
    )
    assert "x = 0, y = 0: " in found


def test_what_is_not_found_is_said(derived):
    found = derived(str(MODELS / "van_der_pol.toml"))
    assert "not found: there is none, for parameters in general position." in found
    assert "not found: none of the lines x = 0, y = 0, x = y, x = -y is invariant" in found
    forced = derived('[flow]\nx = "sin(x) - t"\n')
    assert "dx/dt = -t + sin(x)" in forced
    assert forced.count("not looked for: the flow depends on time.") == 2
    assert "not looked for: the rule depends on time." in forced


def test_a_search_that_is_not_over_in_time_says_so(derived, monkeypatch):
    monkeypatch.setattr("odesys.commands.derived_rules.BUDGET", 0.01)
    found = derived('[flow]\nx = "y"\ny = "-x"\n')
    assert found.count("not found: the search was not over after 0.01 s.") == 2
    assert "not found: the search was not over after 0.02 s." in found


def test_fixed_points_at_numbers_where_symbols_give_none(derived):
    text = (
        '[parameters]\na = "1/2"\n[flow]\nx = "sin(x) - a*x"\ny = "x - y"\n[box]\nx = [-3, 3]\ny = [-3, 3]\n'
    )
    found = sections(derived(text, "--json"))["Fixed points at the numbers of the file"]
    # The root of sin(x) = x/2 beside 0, to 16 digits.
    assert any(entry.startswith("x = 1.89549426703398") for entry in found)
    assert any("complete in box" in entry for entry in found)


def test_merged_attention(derived):
    found = sections(derived("merged", "--dim", "2", "--heads", "1", "--json"))
    assert found["Conserved"]["I_1"] == "U_1_1_1**2 + U_1_1_2**2 + U_1_2_1**2 + U_1_2_2**2 - v_1**2"
    assert {"aligned", "white pair", "white"} <= {h.partition(": ")[2] for h in found}
    assert "sigma(t)" in found["Smaller flow: white"]
    assert found["Fixed points"]["L_zero"] == "lambda_1 + lambda_2"


def test_separate_attention(derived):
    found = sections(derived("separate", "--dim", "2", "--heads", "2", "--json"))
    # By hand: L falls by lambda/a, a = 1 + (1 + tr/lambda)/N, for each learned mode.
    assert found["Fixed points, by their losses"]["L_{1}"] == (
        "-N*lambda_1**2/(N*lambda_1 + 2*lambda_1 + lambda_2) + lambda_1 + lambda_2"
    )
    assert len(found["Fixed points, by their losses"]) == 5
    assert "t" in found["Smaller flow: scalar"]


def test_softmax_by_letters_and_by_data(derived):
    letters = derived("softmax", "--n", "2", "--d", "1", "--case", "letters-rescaled")
    assert "softmax regression, rescaled loss, letters" in letters
    assert "A_1_1, A_2_1, b_1, b_2" in letters
    found = sections(derived("softmax", "--case", "two-rows", "--json"))
    # By hand: rows 0 and 1 with b = (1/4, 3/4) meet at x = log 3; w = exp(x) turns the flow rational.
    assert "x_1 = 1.09861228867: stable" in found["Fixed points"]
    assert "dw/dt" in found["Smaller flow: exponential"]
    assert "t" in found["Smaller flow: exponential"]


def test_a_matrix_of_weights(derived):
    found = sections(derived("softmax", "--case", "reference-matrix", "--json"))
    # A2 e_1 = 1: the first column of X is conserved. By hand, X_22 = log 3 and X_12 = -2 log 3.
    assert (found["Conserved"]["I_1"], found["Conserved"]["I_2"]) == ("X_1_1", "X_2_1")
    (place,) = (text for text in found["Fixed points"] if text.endswith(": stable node"))
    assert place.startswith("X_1_1 = 0, X_1_2 = -2.19722457734, X_2_1 = 0, X_2_2 = 1.09861228867")


def test_a_textbook_system(derived):
    found = derived("harmonic-oscillator")
    assert "proven: its rate of change vanishes identically" in found
    assert "x = 0, v = 0: " in found


def test_latex_is_a_document_whose_formulas_can_be_set(network, derived):
    text = (
        '[flow]\nx_1 = "Piecewise((y, x_1 > 0), (-y^2, True)) + 1 + x_1^3 + sin(x_1) + exp(x_1)"\ny = "x_1"\n'
    )
    is_set(network.to_latex() + "\n")
    is_set(derived(text, "--latex"))


def is_set(found):
    """Brackets and environments match, and each formula without cases is one that matplotlib can set."""
    assert found.startswith(r"\documentclass{article}")
    assert found.endswith("\\end{document}\n")
    for left, right in (("\\[\n", "\n\\]"), ("{", "}"), (r"\left", r"\right")):
        assert found.count(left) == found.count(right)
    open_, formulas = [], re.findall(r"\\\[\n(.*?)\n\\\]", found, re.DOTALL)
    for kind, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", found):
        if kind == "begin":
            open_.append(name)
        else:
            assert open_.pop() == name
    assert open_ == []
    parser = MathTextParser("path")
    for formula in formulas:
        if "cases" not in formula:
            parser.parse(f"${formula}$")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nosuch", "There is no model 'nosuch'; the models are merged, separate, softmax, logistic"),
        ("nosuch.toml", "nosuch.toml: cannot be read: No such file"),
        ("merged --rank 2", "--rank means nothing for merged"),
        ("merged --dim 0", "`dim` must be a positive integer"),
        ("separate --dim 1 --rank 2", "`rank` must be at most `dim` = 1"),
        ("softmax --heads 2", "--heads means nothing for softmax"),
        (
            "softmax --case nosuch",
            "There is no case 'nosuch' of softmax; the cases are letters, three-points",
        ),
        ("softmax --case two-minima --n 3", "--n and --d are of the case letters"),
        ("softmax --n 1", "n = 1"),
        ("lorenz --dim 2", "--dim means nothing for lorenz"),
        ("lorenz --latex --json", "--latex and --json are two forms of one answer"),
    ],
)
def test_faults_are_one_line_and_exit_code_2(derived, arguments, message):
    fault = derived(*arguments.split(), code=2).splitlines()[-1]
    assert fault.startswith("odesys: ")
    assert message in fault
