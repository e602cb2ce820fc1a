"""Model files where models are named: claims, fixed points, pictures."""

import json
from pathlib import Path

import pytest
import sympy as sp

from odesys import cli
from odesys.model_file import read
from odesys.model_file.claims import is_conserved, is_solution, judged
from symbolic import IteratedMap, VectorField

MODELS = Path(__file__).parent.parent / "models"
PNG = b"\x89PNG\r\n\x1a\n"

x, t, x_0 = sp.symbols("x t x_0", real=True)
PITCHFORK = '[parameters]\nr = "1/4"\n[flow]\nx = "r*x - x^3"\n'
LOGISTIC_MAP = '[parameters]\nr = 3.2\n[map]\nx = "r*x*(1 - x)"\n[start]\nx = 0.2\n[box]\nx = [0, 1]\n'
CENTRE = 'name = "centre"\n[flow]\nx = "y"\ny = "-x"\n[box]\nx = [-1, 1]\ny = [-1, 1]\n'


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def written(text):
        Path("model.toml").write_text(text)
        return "model.toml"

    return written


class TestClaims:
    def test_a_quantity_that_a_map_keeps_with_its_step_count(self):
        # By hand: x_k = x_0 + 0 + 1 + ... + (k - 1).
        rule = IteratedMap((x,), (x + t,), time=t)
        assert is_conserved(rule, x - t * (t - 1) / 2).proven is True
        assert is_conserved(rule, x - t * (t + 1) / 2).proven is False

    def test_a_quantity_that_a_driven_flow_keeps(self):
        rule = VectorField((x,), (2 * t,), time=t)
        assert is_conserved(rule, x - t**2).proven is True
        assert is_conserved(rule, x + t**2).sentence == "refused: along the flow it changes at rate 4*t"

    def test_a_solution(self):
        field = VectorField((x,), (-x,))
        proven = is_solution(field, {x: x_0 * sp.exp(-t)}, t, {x: x_0})
        assert proven.proven is True
        assert proven.evidence.explicit == {x: x_0 * sp.exp(-t)}
        refused = is_solution(field, {x: 2 * x_0 * sp.exp(-t)}, t, {x: x_0})
        assert (refused.proven, refused.evidence) == (False, None)

    def test_what_holds_at_the_numbers_of_the_file_alone(self, own):
        claims = '[conserved]\nE = "v^2 + 4*x^2"\nF = "v^2 + k*x^2"\nG = "x"\n'
        text = f'[parameters]\nk = 4\n[flow]\nx = "v"\nv = "-k*x"\n{claims}'
        verdicts, solution = judged(read(own(text)))
        assert [verdicts[name].proven for name in "EFG"] == [True, True, False]
        assert ["at the numbers of the file" in verdicts[name].sentence for name in "EFG"] == [
            True,
            False,
            False,
        ]
        assert solution is None

    def test_a_proof_that_takes_too_long_is_undecided(self, own, monkeypatch):
        monkeypatch.setattr("odesys.model_file.claims.BUDGET", 0.01)
        verdicts, _ = judged(read(own('[flow]\nx = "0"\n[conserved]\nQ = "x"\n')))
        assert verdicts["Q"].proven is None
        assert verdicts["Q"].sentence == "not decided in 0.01 s; give it in a simpler form"


class TestFixedPoints:
    def document(self, capfd, path):
        assert cli.main(["fixed-points", path, "--json"]) == 0
        return json.loads(capfd.readouterr().out)

    def test_numbers_are_exact(self, own, capfd):
        found = self.document(capfd, own(PITCHFORK))
        assert (found["model"], found["certificate"]) == ("model: r = 1/4", "complete")
        # By hand: x^2 = 1/4; the slopes are r and -2 r.
        assert [point["location"]["x"] for point in found["points"]] == [-0.5, 0.0, 0.5]
        assert [point["eigenvalues"] for point in found["points"]] == [[-0.5], [0.25], [-0.5]]

    def test_a_loss_has_its_value_and_index(self, capfd):
        found = self.document(capfd, str(MODELS / "two_layer_network.toml"))
        (point,) = found["points"]
        # By hand: L(0, 0) = s^2/2, and the Hessian there is ((0, -s), (-s, 0)).
        assert point["loss"] == 0.5
        assert point["index"] == {"negative": 1, "zero": 0, "positive": 1}
        assert found["components"] == [{"equations": ["a*b - 1 = 0"], "dimension": 1}]

    def test_a_box_and_a_map(self, own, capfd):
        inside = self.document(capfd, own(PITCHFORK + "[box]\nx = [0.1, 2]\n"))
        assert [point["location"]["x"] for point in inside["points"]] == [0.5]
        assert inside["certificate"] == "complete in box"
        found = self.document(capfd, own(LOGISTIC_MAP))
        # By hand: 1 - 1/r, with the multiplier 2 - r.
        assert found["points"][1]["location"]["x"] == pytest.approx(1 - 1 / 3.2, rel=1e-15)
        assert found["points"][1]["eigenvalues"] == [pytest.approx(2 - 3.2, rel=1e-14)]

    @pytest.mark.parametrize(
        ("text", "arguments", "message"),
        [
            (PITCHFORK, ["--heads", "2"], "--heads means nothing for a model file"),
            (PITCHFORK, ["--case", "x"], "--case means nothing for a model file"),
            ('[flow]\nx = "sin(t) - x"', [], "autonomous"),
            ('[flow]\nx = "y"', [], "there is no name 'y'"),
        ],
    )
    def test_faults_are_one_line_and_exit_code_2(self, own, capsys, text, arguments, message):
        assert cli.main(["fixed-points", own(text), *arguments]) == 2
        fault = capsys.readouterr().err
        assert fault.startswith("odesys: ")
        assert message in fault
        assert fault.count("\n") == 1


class TestPortrait:
    @pytest.mark.parametrize(
        ("text", "arguments", "caption"),
        [
            (PITCHFORK, ["--box", "x=-1:1"], "Phase portrait of model."),
            (LOGISTIC_MAP, [], "Cobweb of model."),
            (CENTRE, [], "Phase portrait of centre."),
        ],
    )  # fmt: skip
    def test_pictures(self, own, tmp_path, capsys, text, arguments, caption):
        assert cli.main(["portrait", own(text), "-o", "p.png", *arguments]) == 0
        assert capsys.readouterr().out == f"{caption}\n"
        assert (tmp_path / "p.png").read_bytes().startswith(PNG)

    def test_the_box_of_the_command_line_takes_the_place_of_the_file_s(self, own, monkeypatch):
        import fixedpoints

        seen, draw = [], fixedpoints.phase_line
        monkeypatch.setattr("fixedpoints.phase_line", lambda *given: seen.append(given[1]) or draw(*given))
        path = own(PITCHFORK + "[box]\nx = [-1, 1]\n")
        assert cli.main(["portrait", path, "-o", "a.png"]) == 0
        assert cli.main(["portrait", path, "-o", "b.png", "--box", "x=0:2"]) == 0
        assert seen == [(-1.0, 1.0), (0.0, 2.0)]

    @pytest.mark.parametrize(
        ("text", "arguments", "message"),
        [
            (PITCHFORK, [], "Say where to look: --box x=-2:2."),
            (PITCHFORK, ["--box", "y=0:1"], "The box is of y, the model of x"),
            (PITCHFORK, ["--box", "x=0:1", "--case", "a"], "--case means nothing for a model file"),
            ('[map]\nx = "x/2"\n[box]\nx = [0, 1]', [], "needs one state and a [start]"),
            ('[flow]\nx = "-x"\ny = "-y"\nz = "-z"', ["--box", "x=0:1,y=0:1,z=0:1"], "has two states"),
        ],
    )
    def test_faults_are_one_line_and_exit_code_2(self, own, tmp_path, capsys, text, arguments, message):
        assert cli.main(["portrait", own(text), "-o", "p.png", *arguments]) == 2
        fault = capsys.readouterr().err
        assert fault.startswith("odesys: ")
        assert message in fault
        assert not (tmp_path / "p.png").exists()
