"""Every fixed point against independent numbers and Sturm counts; the index sum against infinity; interpolation."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from references import reference
from softmax_problems import named, problem

from fixedpoints.softmax_regression import interpolation, points
from fixedpoints.softmax_regression.problem import joint, reduced
from symbolic.roots import real_roots

TOLD = reference("softmax_numbers")["fixed_points"]
LINE = [
    (name, loss)
    for name in ("D1a", "D1b_interior_b", "D1d_rescaled_closed_form")
    for loss in ("normalized", "rescaled")
]


@pytest.mark.parametrize(("name", "loss"), LINE)
def test_one_weight_completely(name, loss):
    told, stops = TOLD[name][loss], points(named(name, loss))
    assert stops.certificate.kind == "complete"
    assert len(stops.points) == told["positive_root_count_Sturm"]
    for point, wanted, value in zip(stops.points, told["fixed_points"], stops.losses, strict=True):
        assert point.location["x_1"] == pytest.approx(float(wanted["x"]), rel=1e-14)
        assert value == pytest.approx(float(wanted["L"]), rel=1e-14)
        assert point.eigenvalues[0] == pytest.approx(-float(wanted["hess"]), rel=1e-12)
        assert point.stability == {"min": "stable", "max": "unstable"}[wanted["type"]]
    assert stops.index_sum == stops.expected


@pytest.mark.parametrize(("name", "loss"), LINE)
def test_one_weight_has_the_positive_roots_of_its_polynomial(name, loss):
    # the reference's polynomial in t = e^x, isolated by another algorithm
    t = sp.Symbol("t")
    roots = [
        root
        for root in real_roots(sp.sympify(TOLD[name][loss]["poly"], locals={"t": t}), t)
        if root.lower > 0
    ]
    found = [point.location["x_1"] for point in points(named(name, loss)).points]
    assert found == pytest.approx([float(sp.log(root.value(20))) for root in roots], rel=1e-14, abs=1e-15)


def test_the_same_data_have_three_points_or_none():
    normalized, rescaled = points(named("D1a")), points(named("D1a", "rescaled"))
    assert [p.stability for p in normalized.points] == ["stable", "unstable", "stable"]
    assert (normalized.index_sum, normalized.expected) == (1, 1)
    assert rescaled.points == ()
    assert rescaled.certificate.kind == "complete"
    assert (rescaled.index_sum, rescaled.expected) == (0, 0)
    assert "the loss goes to 4/9 like exp(-4 s) and falls: attracts" in rescaled.witness


@pytest.mark.parametrize("name", ["D2a", "D2c_n3_full_rank_unique"])
def test_two_weights_completely(name):
    told, stops = TOLD[name]["normalized"], points(named(name))
    assert stops.certificate.kind == "complete"
    wanted = sorted(told["fixed_points"], key=lambda p: float(p["x"][0]))
    for point, exact, value, smallest in zip(stops.points, wanted, stops.losses, stops.smallest, strict=True):
        assert list(point.location.values()) == pytest.approx([float(x) for x in exact["x"]], rel=1e-13)
        assert value == pytest.approx(float(exact["L"]), rel=1e-13, abs=1e-80)
        assert smallest == pytest.approx(min(float(f) for f in exact["f"]), rel=1e-13)
        hessian = sorted(-e.real for e in point.eigenvalues)
        assert hessian == pytest.approx([float(e) for e in exact["hess_eig"]], rel=1e-12)
    assert stops.index_sum == stops.expected == told["index_sum"] == 1


def test_mirror_images():
    # (x_1, x_2) -> (-x_1, x_2) exchanges rows 2 and 3: three minima, two saddles, one of the minima on x_1 = 0
    stops = points(named("mirror"))
    x = [(point.location["x_1"], point.location["x_2"]) for point in stops.points]
    assert [point.stability for point in stops.points] == ["stable node", "saddle"] * 2 + ["stable node"]
    assert x[2][0] == 0
    assert [(-p, q) for p, q in x[::-1]] == x
    assert (stops.index_sum, stops.expected) == (1, 1)
    assert stops.witness == "all 6 ends at infinity repel"


def test_no_finite_point_where_a_face_attracts():
    stops = points(named("T6"))
    assert stops.points == ()
    assert stops.certificate.kind == "complete"
    assert (stops.index_sum, stops.expected) == (0, 0)
    assert stops.witness == "the flow leaves for the faces of rows [(1, 2, 3, 4)], and every other end repels"


def test_a_rescaled_loss_that_grows_everywhere():
    # 0 = (3 a_1 + 6 a_2 + 5 a_3)/14 roughly: the hull of the rows holds 0 inside
    stops = points(named("D2a", "rescaled"))
    assert [p.stability for p in stops.points] == ["stable node"]
    assert (stops.index_sum, stops.expected) == (1, 1)


def test_euler_leaves_no_point_without_interpolation():
    # A e_1 = 1: every fixed point has Lr = 0, and (1, 2, 3)/6 is not of the form softmax(A x)
    stops = points(named("V5", "rescaled"))
    assert stops.points == ()
    assert "by Euler's identity" in stops.witness
    assert "not in range(A) + span(1)" in stops.no_interpolation


def test_a_constant_column_is_named_by_what_it_conserves():
    stops = points(named("V5"))
    (flat,) = stops.flat
    assert str(flat.expression) == "x_1"
    (point,) = stops.points
    assert point.location["x_1"] == 0
    assert point.enclosure["x_1"] == (0, 0)
    # rows 0, 1, 2 with x_2 alone: the one-weight problem of the same data
    (alone,) = points(problem([[0], [1], [2]], ["1/6", "1/3", "1/2"])).points
    assert point.location["x_2"] == alone.location["x_1"]


def test_a_lost_point_is_noticed_by_the_index_sum(monkeypatch):
    # the fault: `find` forgets a point and still says that it has all
    file = importlib.import_module("fixedpoints.softmax_regression.points")
    honest = file.find
    monkeypatch.setattr(
        file, "find", lambda *a, **k: (lambda f: replace(f, points=f.points[1:]))(honest(*a, **k))
    )
    file._points.cache_clear()
    file.located.cache_clear()
    stops = points(named("D2a"))
    file._points.cache_clear()
    file.located.cache_clear()
    assert stops.certificate.kind == "unknown"
    assert "the indices sum to 0, while infinity demands 1" in stops.certificate.reason


@pytest.mark.slow
def test_algebra_and_infinity_agree_on_random_problems():
    # small integers, a third of the targets outside the simplex; two witnesses that share nothing
    draw, judged = np.random.default_rng(0), 0
    for _ in range(60):
        n, d = int(draw.integers(3, 6)), int(draw.integers(1, 3))
        A, weights = (
            draw.integers(-2, 3, size=(n, d)).tolist(),
            draw.integers(0, 5, size=n) + np.eye(n, dtype=int)[0],
        )
        b = [sp.Rational(int(w), int(weights.sum())) for w in weights]
        b[0] -= sp.Rational(int(draw.integers(0, 3) == 0), 2)
        model = problem(A, b, ("normalized", "rescaled")[int(draw.integers(0, 2))])
        if reduced(joint(model)).dim == 0:
            continue
        stops = points(model)
        assert stops.certificate.kind == "complete", (A, b, model.normalization)
        judged += stops.expected is not None and stops.index_sum is not None
    assert judged > 30


def test_exact_interpolation():
    # x_1 + (x_1 + x_2) = log(b_1/b_3), x_2 + (x_1 + x_2) = log(b_2/b_3): x_1 = (2 log 3 - log 2)/3, ...
    found = interpolation(named("D2c_n3_full_rank_unique"))
    assert found.exact
    assert sp.simplify(found.location["x_1"] - (2 * sp.log(3) - sp.log(2)) / 3) == 0
    assert sp.simplify(found.location["x_2"] - (2 * sp.log(2) - sp.log(3)) / 3) == 0
    assert points(named("D1e")).interpolation.location == {"x_1": sp.log(3)}


def test_rounded_targets_have_a_numeric_interpolation_with_a_proven_gap():
    # 0.1 + 0.9 as the rationals that these floats are is not 1
    found = interpolation(problem([[0], [1]], [0.1, 0.9]))
    assert not found.exact
    assert found.location["x_1"] == pytest.approx(float(sp.log(9)), rel=1e-15)
    assert 0 < found.gap < 1e-16


@pytest.mark.parametrize(
    ("b", "message"),
    [
        (["1/6", "1/3", "1/2"], r"log b is not in range\(A\) \+ span\(1\)"),
        (["1/3", 0, "2/3"], r"the target has the entries \[0\]"),
        (["1/2", "1/2", "1/2"], r"f sums to 1, the target to \[3/2\]"),
        (["-1/2", 1, "1/2"], r"the target has the entries \[-1/2\]"),
    ],
)
def test_no_interpolation_and_why(b, message):
    with pytest.raises(ValueError, match=f"f = b is impossible.*{message}"):
        interpolation(problem([[0], [1], [2]], b))


def test_refusals():
    with pytest.raises(ValueError, match="The loss is constant: every direction is flat"):
        points(problem([[1, 2], [1, 2]], ["1/2", "1/2"]))
    with pytest.raises(ValueError, match="With n = 1 the softmax is f = 1"):
        problem([[1]], [1])
    with pytest.raises(ValueError, match="at least one row and one column"):
        points(problem([[1], [2]], ["1/2", "1/2"]).at([[], []], ["1/2", "1/2"]))
    with pytest.raises(ValueError, match="finite real entries"):
        points(problem([[1], [2]], [sp.oo, 0]))
    with pytest.raises(ValueError, match="`budget` must be a positive number of seconds; got 0"):
        points(named("D1a"), budget=0)
    with pytest.raises(TypeError, match="of a vector or matrix model with numbers; got str"):
        points("D1a")
