"""`odesys fixed-points`: what it prints for people and for programs, and what it refuses."""

import json
import math

import numpy as np
import pytest

from odesys import cli
from odesys.commands import fixed_points
from odesys.commands.answers import Answer, PointRow


def document(capfd, *arguments):
    """The JSON of the command, which must be all of standard output; NaN and infinity are no JSON."""
    assert cli.main(["fixed-points", *arguments, "--json"]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    return json.loads(shown.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


class TestSeparate:
    def test_the_sixteen_points_of_the_paper(self, capfd):
        found = document(capfd, "separate", "--dim", "4", "--context", "31", "--heads", "5", "--rank", "1")
        assert (found["certificate"], found["total"], len(found["points"])) == ("complete", 16, 16)
        points = {tuple(point["modes"]): point for point in found["points"]}
        # By hand, to 12 digits.
        staircase = [1, 0.640579710145, 0.377372162975, 0.209804595408, 0.135995071598]
        for m, loss in enumerate(staircase):
            assert points[tuple(range(1, m + 1))]["loss"] == pytest.approx(loss, abs=1e-12)
        losses = [point["loss"] for point in found["points"]]
        assert losses == sorted(losses, reverse=True)
        # H (1 + 2 D) = 45; m^2 + 2 m (D - m) - inversions positive.
        assert points[(1,)]["index"] == {"negative": 0, "zero": 38, "positive": 7}
        assert points[(2, 4)]["index"] == {"negative": 3, "zero": 33, "positive": 9}
        assert points[(1, 2, 3, 4)]["stability"] == "stable"
        for point in found["points"]:
            values = point["eigenvalues"]
            assert len(values) == 45
            assert values == sorted(values, reverse=True)
            # The flow's Jacobian is minus the Hessian, halved.
            assert sum(x > 0 for x in values) == point["index"]["negative"]
            assert sum(x == 0 for x in values) == point["index"]["zero"]

    def test_defaults_are_the_papers(self, capfd):
        spelt = "--dim 4 --context 31 --heads 5 --rank 1 --eigenvalues .4,.3,.2,.1"
        assert document(capfd, "separate") == document(capfd, "separate", *spelt.split())

    def test_fewer_heads_reach_fewer_points_and_rank_makes_up_for_it(self, capfd):
        assert document(capfd, "separate", "--heads", "2")["total"] == 1 + 4 + 6
        assert document(capfd, "separate", "--heads", "2", "--rank", "2")["total"] == 16

    def test_equal_eigenvalues_give_components(self, capfd):
        found = document(capfd, "separate", "--eigenvalues", ".4,.2,.2,.1", "--heads", "2")
        assert [(c["modes"], c["dimension"]) for c in found["components"]] == [
            ([2], 1), ([2, 4], 1), ([1, 2], 1),
        ]  # fmt: skip
        assert "-M_2_3 + M_3_2 = 0" in found["components"][0]["equations"]
        assert found["exceptions"] == ["lambda_1 = lambda_2", "lambda_3 = lambda_4"]

    def test_many_points_are_summed_up(self, capfd):
        found = document(capfd, "separate", "--dim", "20", "--heads", "20", "--limit", "3")
        assert (found["total"], len(found["points"])) == (2**20, 3)
        # The smallest falls of the loss: nothing learned, then the smallest drop alone, lambda_20/a_20.
        assert [point["modes"] for point in found["points"]] == [[], [20], [19]]
        assert "Shown are the first 3 of 1048576 points by falling loss" in found["notes"][0]

    def test_too_many_points_to_sort_show_the_staircase(self, capfd):
        found = document(capfd, "separate", "--dim", "40", "--heads", "40", "--limit", "3")
        assert found["total"] == 2**40
        assert [point["modes"] for point in found["points"]] == [[], [1], [1, 2]]
        assert "too many to sort" in found["notes"][0]

    def test_the_table(self, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "120")
        assert cli.main(["fixed-points", "separate", "--heads", "1"]) == 0
        shown = capsys.readouterr().out
        rows = [line.split() for line in shown.splitlines() if line.lstrip().startswith("{")]
        assert [row[0] for row in rows] == ["{}", "{4}", "{3}", "{2}", "{1}"]
        assert rows[-1] == ["{1}", "0.64058", "0,", "2,", "7", "0", "stable"]
        assert "separate key and query: D = 4, N = 31, H = 1, R = 1, eigenvalues 0.4, 0.3, 0.2, 0.1" in shown
        assert "Certificate: found 5; complete: " in shown


class TestMerged:
    def test_two_functions_and_their_manifolds(self, capfd):
        found = document(capfd, "merged", "--heads", "3", "--dim", "2")
        assert (found["certificate"], found["total"]) == ("complete", 2)
        zero, optimum = found["points"]
        assert (zero["modes"], optimum["modes"]) == ([], [1, 2])
        # H (D^2 - 1) and H (D^2 + 1) - D^2 zero directions, as many as the manifolds have dimensions.
        assert zero["index"] == {"negative": 3, "zero": 9, "positive": 3}
        assert optimum["index"] == {"negative": 0, "zero": 11, "positive": 4}
        assert [(c["name"], c["dimension"], c["index"]) for c in found["components"]] == [
            ("zero", 9, zero["index"]),
            ("optimum", 11, optimum["index"]),
        ]
        # |Lambda^2|_F for (2/3, 1/3).
        assert zero["eigenvalues"][:3] == pytest.approx([math.sqrt(17) / 9] * 3)
        assert (zero["stability"], optimum["stability"]) == ("strict saddle", "stable")

    def test_the_table_lists_the_components(self, capsys):
        assert cli.main(["fixed-points", "merged"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "Component of dimension 120 (name zero, loss 1.0): v_i = 0 and tr(Lambda^2 U_i) = 0" in shown
        assert "index 8, 120, 8" in shown


class TestTextbook:
    def test_complex_eigenvalues_are_pairs(self, capfd):
        found = document(capfd, "lorenz")
        assert (found["certificate"], found["total"]) == ("complete", 3)
        sigma, rho, beta = 10, 28, 8 / 3
        right = found["points"][-1]
        assert right["location"]["x"] == pytest.approx(math.sqrt(beta * (rho - 1)))
        # The characteristic polynomial of Lorenz 1963.
        expected = np.roots([1, sigma + beta + 1, (rho + sigma) * beta, 2 * sigma * beta * (rho - 1)])
        got = [
            complex(*value) if isinstance(value, list) else complex(value) for value in right["eigenvalues"]
        ]
        np.testing.assert_allclose(np.sort_complex(got), np.sort_complex(expected), rtol=1e-12)
        assert sum(isinstance(value, list) for value in right["eigenvalues"]) == 2
        assert (right["index"], right["loss"]) == (None, None)

    def test_components_and_indices_of_a_gradient_flow(self, capfd):
        found = document(capfd, "two-layer-network")
        (origin,) = found["points"]
        assert (origin["location"], origin["index"]["negative"]) == ({"a": 0.0, "b": 0.0}, 1)
        assert found["components"] == [{"equations": ["a*b - 1 = 0"], "dimension": 1}]

    def test_the_table(self, capsys):
        assert cli.main(["fixed-points", "lorenz"]) == 0
        shown = capsys.readouterr().out
        assert "x = 8.48528, y = 8.48528, z = 27" in shown
        assert "0.0939556+10.1945i" in shown
        assert "index" not in shown

    def test_a_system_without_isolated_points_has_no_table(self, capsys):
        assert cli.main(["fixed-points", "robertson"]) == 0
        assert "Component of dimension 1: a = 0; b = 0" in capsys.readouterr().out


def test_a_model_is_an_entry_of_the_table_of_models(monkeypatch, capfd):
    seen = []

    def toy(options):
        seen.append(options)
        return Answer("toy", "unknown", "found 1", [PointRow({"x": 1.0}, [], "undecided")], 1)

    monkeypatch.setitem(fixed_points.MODELS, "toy", toy)
    found = document(capfd, "toy", "--dim", "3", "--eigenvalues", "3,2,1", "--limit", "7")
    assert seen == [fixed_points.Options(3, None, None, None, (3.0, 2.0, 1.0), 7)]
    assert found["points"] == [
        {"location": {"x": 1.0}, "loss": None, "eigenvalues": [], "index": None, "stability": "undecided"}
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nosuch", "There is no model 'nosuch'; the models are merged, separate, softmax, logistic"),
        ("", "Missing argument 'MODEL'"),
        ("separate --eigenvalues .1,.2", "`eigenvalues` must fall, since mode d is the d-th largest"),
        ("separate --eigenvalues .2,0", "`eigenvalues` must be positive and finite"),
        ("separate --eigenvalues a,b", "--eigenvalues must be numbers with commas between them"),
        ("separate --dim 2 --eigenvalues .3,.2,.1", "--dim 2 and the 3 numbers of --eigenvalues disagree"),
        ("separate --dim 0", "--dim is the dimension D of the tokens and must be at least 1; got 0"),
        ("separate --context 0", "`context` is the number N of context pairs"),
        ("separate --heads 0", "`heads` is the number H of heads"),
        ("separate --dim 3 --rank 4", "`rank` is the number R of rows"),
        ("separate --rank 0", "`rank` is the number R of rows"),
        (
            "separate --dim 400 --heads 400",
            "320400 eigenvalues, too many to show 100 points; give --limit 15",
        ),
        ("separate --limit 0", "Invalid value for '--limit'"),
        ("merged --rank 2", "--rank means nothing for merged"),
        ("merged --heads 0", "`heads` is the number H of heads"),
        ("logistic --dim 3", "--dim means nothing for logistic"),
        ("prothero-robinson", "A fixed point needs an autonomous rule; this one depends on t"),
    ],
)
def test_wrong_usage_exits_with_two_and_one_line(capsys, arguments, message):
    assert cli.main(["fixed-points", *arguments.split()]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("odesys: ")
    assert message in shown.err
    assert shown.err.count("\n") == 1


class TestSoftmax:
    def test_three_points_on_the_line_and_none_rescaled(self, capfd):
        found = document(capfd, "softmax", "--case", "three-points")
        assert found["certificate"] == "complete"
        # 50-digit roots of the polynomial in e^x.
        places = [point["location"]["x_1"] for point in found["points"]]
        assert places == pytest.approx(
            [0.13300006969169398, 0.40397323975491257, 1.5923783571108186], rel=1e-15
        )
        # (1/2) |f - b|^2 there, in 50 digits
        losses = [point["loss"] for point in found["points"]]
        assert losses == pytest.approx([0.104886, 0.108657, 0.083195], abs=1e-6)  # six digits told

    def test_without_a_fixed_point_it_says_where_the_flow_goes(self, capfd):
        found = document(capfd, "softmax", "--case", "three-points-rescaled")
        assert found["points"] == []
        (note,) = found["notes"]
        assert "The indices sum to 0, and infinity demands 0: along (-1)" in note
        assert "the loss goes to 4/9 like exp(-4 s) and falls: attracts" in note

    def test_a_matrix_by_name(self, capfd):
        found = document(capfd, "softmax", "--case", "reference-matrix")
        assert found["certificate"] == "complete"
        (point,) = found["points"]
        # log-odds: X_22 = log 3, X_12 + 2 X_22 = 0; the first column is conserved, and zero by choice
        wanted = {"X_1_1": 0, "X_1_2": -2 * math.log(3), "X_2_1": 0, "X_2_2": math.log(3)}
        assert point["location"] == pytest.approx(wanted, rel=1e-15)
        assert found["notes"][0].startswith("The flow conserves X_1_1, X_2_1, so that each point stands for")

    @pytest.mark.parametrize("arguments", [["--case", "nothing"], ["--heads", "2"]])
    def test_faults(self, capfd, arguments):
        assert cli.main(["fixed-points", "softmax", *arguments]) == 2
        assert capfd.readouterr().err.startswith("odesys: ")
