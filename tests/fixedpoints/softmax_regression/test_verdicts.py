"""The ends of flows and descents: certified points, escapes with their face, plateaus that are no fixed points."""

import importlib

import numpy as np
import pytest
import sympy as sp
from references import reference
from softmax_problems import named, problem

import odesys
from fixedpoints.newton import Vanishing
from fixedpoints.softmax_regression import escape, verdict
from odesys.simulation import descend, softmax_regression

MINIMUM = (-0.033239091624645438, -0.10126145389898047)  # of D2a; reference file
SADDLE = (0.65166801078099968, 0.27804551295543911)


def judge(model):
    """The same problem as the simulation writes it."""
    A, b = np.array(model.A, dtype=float), np.array(model.b, dtype=float)
    return softmax_regression.vector(A, b, model.normalization)


def test_certified_points():
    told = verdict(named("D2a"), MINIMUM)
    assert told.kind == "fixed point"
    assert told.settled
    assert told.distance < 1e-15
    assert told.point.stability == "stable node"
    for (low, high), place in zip(told.point.enclosure.values(), MINIMUM, strict=True):
        assert low <= high
        assert (float(low), float(high)) == pytest.approx(
            (place, place), abs=1e-15
        )  # the reference has 16 digits
    assert verdict(named("D2a"), SADDLE).point.stability == "saddle"


def test_interpolation_is_told_from_other_minima():
    log = [(2 * np.log(3) - np.log(2)) / 3, (2 * np.log(2) - np.log(3)) / 3]
    assert verdict(named("D2c_n3_full_rank_unique"), log).kind == "interpolation"
    assert verdict(named("D1e"), [np.log(3)]).kind == "interpolation"
    assert verdict(named("D1a"), [0.13300006969169398]).kind == "fixed point"


def test_beside_a_point_is_not_there():
    near = (MINIMUM[0] + 1e-4, MINIMUM[1])
    told = verdict(named("D2a"), near)
    assert told.kind == "moving"
    assert told.distance == pytest.approx(1e-4, rel=1e-6)
    assert "more than `tolerance`" in told.sentence
    assert verdict(named("D2a"), near, tolerance=1e-3).settled
    assert verdict(named("D2a"), (0.2, 0.2)).kind == "moving"


def test_a_newton_step_of_zero_is_no_certificate(monkeypatch):
    # the fault: a field that is said to vanish everywhere, as one that underflows does
    file = importlib.import_module("fixedpoints.softmax_regression.nearby")
    nothing = Vanishing(np.zeros_like, lambda x: np.eye(2)[:, :, None])
    monkeypatch.setattr(file, "vanishing", lambda system: nothing)
    assert verdict(named("D2a"), (0.2, 0.2)).kind == "moving"
    assert verdict(named("D2a"), (300.0, 150.0)).kind == "plateau"


@pytest.mark.parametrize("x", [-8.0, -100.0, 60.0])
def test_plateaus_on_a_line_head_for_a_certified_point(x):
    # the gradient is 1e-14 and less: small, and no fixed point
    told = verdict(named("D1a"), [x])
    assert told.kind == "plateau"
    assert not told.settled
    assert told.point.location["x_1"] == pytest.approx(0.13300006969 if x < 0 else 1.59237835711, abs=1e-10)
    assert not told.ray.attracts


def test_the_two_sides_of_a_maximum():
    left, right = (verdict(named("D1a"), [x]) for x in (0.3, 0.5))
    basins = reference("softmax_numbers")["basins"]
    assert (basins["D1a x0=3/10"], basins["D1a x0=1/2"]) == ("left min 0.13300", "right min 1.59238")
    assert left.point.location["x_1"] == pytest.approx(0.13300, abs=1e-5)
    assert right.point.location["x_1"] == pytest.approx(1.59238, abs=1e-5)


@pytest.mark.parametrize("x", [-30.0, 0.0, 2.0])
def test_the_same_data_rescaled_escape_from_everywhere(x):
    told = verdict(named("D1a", "rescaled"), [x])
    assert (told.kind, told.limit) == ("escape", pytest.approx(4 / 9))
    assert told.ray.direction == (-1,)


def test_the_basin_boundary_of_the_closed_form_model():
    # x_u = x* - log 2 = -log 2 is the maximum: below it the flow escapes, above it is drawn to 0
    model = named("D1d_rescaled_closed_form", "rescaled")
    below, above = (verdict(model, [-np.log(2) + side]) for side in (-1e-3, 1e-3))
    assert (below.kind, below.limit) == ("escape", 0)
    assert above.kind == "moving"
    assert above.point.location["x_1"] == 0
    assert verdict(model, [-np.log(2)]).point.stability == "unstable"


def test_an_escape_to_a_face_has_no_saturated_f():
    told = reference("softmax_numbers")
    for _, x, y in told["T6_long"]["rows"]:
        end = verdict(named("T6"), [x, y])
        assert (end.kind, end.ray.face) == ("escape", (1, 2, 3, 4))
        assert end.limit == pytest.approx(float(told["T6_face"]["L_inf"]), rel=1e-12)
        assert not end.settled
    # on the way there, across the face: not at rest
    assert verdict(named("T6"), [2.0, 11.5]).kind == "moving"


@pytest.mark.parametrize(
    ("name", "x", "rows"),
    [("D2a", (60.0, 30.0), "4"), ("T6", (40.0, 0.5), "4"), ("mirror", (0.0, -50.0), "1")],
)
def test_saturated_vertices_are_plateaus(name, x, rows):
    told = verdict(named(name), x)
    assert told.kind == "plateau"
    assert (
        f"saturated at the vertex of row {rows}, which repels: the flow returns, slowly (dL/df_"
        in told.sentence
    )


def test_vertices_that_attract():
    outside = problem([[0, 0], [3, 0], [0, 3]], ["-3/5", "4/5", "-2/5"])
    told = verdict(outside, (9.0, -9.0))
    assert (told.kind, told.ray.face) == ("escape", (2,))
    one_hot = verdict(problem([[0], [1]], [0, 1]), [40.0])
    assert (one_hot.kind, one_hot.limit) == ("escape", 0)


def test_a_vertex_that_does_both_is_not_called_an_escape():
    told = verdict(problem([[0, 0], [1, 0], [0, 1]], ["-1/2", "4/5", "7/10"]), (20.0, -20.0))
    assert told.kind == "plateau"
    assert "attracts in some directions and repels in others" in told.sentence


def test_two_weights_rescaled():
    # all logits fall along -a_1 with row 1 the largest: a_j a_1 > |a_1|^2
    model = problem([[1, 0], [2, 1], [2, -1]], ["1/2", "1/4", "1/4"], "rescaled")
    told = verdict(model, (-12.0, 0.0))
    assert (told.kind, told.limit) == ("escape", 0)
    assert "proven to fall to 0" in told.sentence
    assert verdict(model, (12.0, 30.0)).kind == "plateau"


# --- runs
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "kind"), [((0.5, 0.2), MINIMUM), ((0.8, 0.4), (1.3817998221421138, 0.69039777753300244))]
)
def test_descent_settles_in_either_basin(start, kind):
    model = named("D2a")
    told = verdict(model, descend(judge(model), np.array(start), rate=0.5, steps=4001, every=400))
    assert told.kind == "fixed point"
    assert list(told.point.location.values()) == pytest.approx(kind, rel=1e-12)


@pytest.mark.parametrize(
    ("rate", "kind"),
    [(0.7, "fixed point"), (0.8, "moving"), (1.0, "moving"), (5.0, "fixed point"), (20.0, "plateau")],
)
def test_steps_between_the_critical_ones_settle_at_the_spurious_minimum_only(rate, kind):
    # eta_c = 0.76493 at the best minimum and 12.339 at the other: between them cycles, or the other; beyond, a plateau
    model = named("D2a")
    told = verdict(model, descend(judge(model), np.array([0.5, 0.2]), rate=rate, steps=2001, every=10))
    assert told.kind == kind
    if told.settled:
        assert told.point.location["x_1"] == pytest.approx(
            MINIMUM[0] if rate < 0.76 else 1.3817998221421138, rel=1e-12
        )


def test_descent_stuck_on_a_plateau_is_not_converged():
    # n = 2, q = 1/2 with a huge step: iterates land at |x| ~ 100 and stay for exp(|x|)/eta steps
    model = problem([[0], [1]], ["1/2", "1/2"])
    run = descend(judge(model), np.array([1.0]), rate=3000.0, steps=201)
    assert np.ptp(run["w"].values[-100:, 0]) < 1e-10 * abs(run["w"][-1, 0])  # it looks as if it had converged
    told = verdict(model, run)
    assert told.kind == "plateau"
    assert told.point.location["x_1"] == 0


def test_flows_are_judged_by_their_last_state():
    model = named("D1a", "rescaled")
    run = odesys.solve(odesys.ODESystem(model.flow, {}), {"x_1": 0.0}, np.array([0.0, 1.0, 1e12]))
    told = verdict(model, run)
    assert (told.kind, told.limit) == ("escape", pytest.approx(4 / 9))
    # -x ~ log(32 t/9)/4, the law of the ray from the origin
    law = float(escape(model, [-1]).law.subs(sp.Symbol("t", positive=True), 1e12))
    assert -float(run["x_1"][-1]) == pytest.approx(law, abs=1e-3)  # the next exponential is exp(-7) as large


def test_flat_weights_do_not_matter():
    here = verdict(named("V5"), {"x_1": 7.0, "x_2": 0.5001688008119258})
    assert here.kind == "fixed point"


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ([0.1, 0.2], "`end` must have d = 1 entries; got 2"),
        ([float("nan")], "`end` must hold finite rational numbers; got nan"),
        ({"x_1": float("inf")}, "`end` must hold finite rational numbers; got inf"),
        ({"y": 1.0}, r"`end` lacks the weights \['x_1'\]; it has \['y'\]"),
    ],
)
def test_faulty_ends_are_refused(end, message):
    with pytest.raises(ValueError, match=message):
        verdict(named("D1a"), end)


def test_other_refusals():
    with pytest.raises(TypeError, match=r"`end` must be d = 1 numbers in a row; got 0\.1"):
        verdict(named("D1a"), 0.1)
    with pytest.raises(ValueError, match=r"`tolerance` must lie between 0 and 0.1; got 0"):
        verdict(named("D1a"), [0.1], tolerance=0)
    with pytest.raises(ValueError, match="every point is a fixed point"):
        verdict(problem([[1], [1]], ["1/2", "1/2"]), [0.1])
    with pytest.raises(TypeError, match="of a vector or matrix model with numbers; got int"):
        verdict(3, [0.1])
