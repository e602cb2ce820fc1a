"""Where the flows stop, complete on the line and on the plane, and where they go if they do not."""

from __future__ import annotations

import numpy as np

from fixedpoints.softmax_regression import escape, points, verdict
from odesys.check import Check, control
from odesys.integrators.contract import solve
from odesys.lambdify import compile_field
from odesys.studies.softmax.setting import CASES, FIFTY_DIGITS, MATRICES, PAPERS, SEED_PAPER, Case, Matrix
from odesys.system import ODESystem

__all__ = ["checks"]


def checks() -> list[Check]:
    """All checks of fixed points and of infinity."""
    return [
        *(check for name, case in (CASES | MATRICES).items() for check in _points(name, case)),
        *_rescaled_has_none(),
        *_plateau(),
        *_matrix_run(),
    ]


def _points(name: str, case: Case | Matrix) -> list[Check]:
    """The fixed points of the normalized flow: how many, where, and that the indices sum to what infinity demands."""
    found = points(case.derived())
    if found.certificate.kind != "complete":
        raise AssertionError(str(found.certificate))
    expected = np.array(sorted((*case.minima, *case.others)))
    located = np.array(sorted(tuple(p.location.values()) for p in found.points))
    checks = [
        Check(
            f"fixed-points: {name}, fixed points on the whole space, complete",
            len(located),
            len(expected),
            0,
            case.source,
            "exact: a count",
        )
    ]
    if located.shape == expected.shape:
        checks.append(
            Check(
                f"fixed-points: {name}, largest error of a coordinate",
                float(np.abs(located - expected).max()),
                0.0,
                1e-15,
                case.source,
                "certified roots, rounded to float64",
            )
        )
    if found.expected is not None:
        checks.append(
            Check(
                f"fixed-points: {name}, sum of the indices",
                float(found.index_sum if found.index_sum is not None else np.nan),
                found.expected,
                0,
                f"Poincare and Hopf: {found.witness}",
                "exact: a count",
            )
        )
    return checks


def _rescaled_has_none() -> list[Check]:
    """The data with three fixed points, rescaled: none at all; x goes to -oo, the loss to 4/9 and not to 0."""
    models = {loss: CASES["three-points"].derived(loss) for loss in ("normalized", "rescaled")}
    found, ray = points(models["rescaled"]), escape(models["rescaled"], [-1])

    def judge(loss: str) -> Check:
        times = np.linspace(0.0, 1e4, 101)
        run = solve(ODESystem(models[loss].flow), {"x_1": 0.0}, times, method="Radau", rtol=1e-10)
        return Check(
            "fixed-points: three-points rescaled, the flow escapes to infinity",
            measured=float(verdict(models[loss], [float(run["x_1"][-1])]).kind == "escape"),
            expected=1.0,
            tolerance=0,
            source="derived here: the loss falls outwards along x = -s",
            reason="exact: a truth value",
        )

    true = judge("rescaled")
    return [
        Check(
            "fixed-points: three-points rescaled, fixed points",
            len(found.points),
            0,
            0,
            "derived here",
            "exact: a count",
        ),
        Check(
            "fixed-points: three-points rescaled, limit of the loss at x = -oo",
            float(ray.limit),
            4 / 9,
            1e-16,
            "by hand: (1/2) |e_1 - b|^2 = 4/9",
            "exact, rounded to float64",
        ),
        true,
        control(judge, "normalized", name="the normalized loss taken for the rescaled one", true=true),
    ]


def _plateau() -> list[Check]:
    """A saturated start of the normalized loss moves too slowly to see: its small gradient is no fixed point."""
    model = CASES["two-minima"].derived()
    field = compile_field(ODESystem(model.flow))

    def judge(place: list[float]) -> Check:
        return Check(
            "fixed-points: two-minima, places with a gradient below 1e-8 that are no fixed points",
            measured=float(
                np.abs(field.rhs(0.0, np.array(place), ())).max() < 1e-8 and not verdict(model, place).settled
            ),
            expected=1.0,
            tolerance=0,
            source=f"{PAPERS}; saturated vertices repel",
            reason="exact: a truth value",
        )

    true = judge([10.0, 40.0])
    minimum = list(CASES["two-minima"].minima[0])
    return [true, control(judge, minimum, name="a minimum taken for a plateau", true=true)]


#: The reference run: X row by row at t = 0 and at t = 50, to 15 digits.
_START = {"X_1_1": 1 / 2, "X_1_2": 0.0, "X_2_1": -1 / 3, "X_2_2": 1 / 4}
_AT_50 = (0.5, -1.302161847445534, -1 / 3, 0.709529712607342)


def _matrix_run() -> list[Check]:
    """A matrix problem's flow, judged at its end: P = B, certified; on its way there it has not settled."""
    model = MATRICES["reference-matrix"].derived()
    run = solve(ODESystem(model.flow), _START, np.array([0.0, 50.0, 1e4]), rtol=1e-11, atol=1e-13)
    states = np.array([run[name].values for name in _START]).T

    def judge(state: np.ndarray) -> Check:
        return Check(
            "fixed-points: reference-matrix, the flow ends at a certified point with P = B",
            measured=float(verdict(model, state.tolist()).kind == "interpolation"),
            expected=1.0,
            tolerance=0,
            source=f"{SEED_PAPER}; B > 0 can be met, and every end at infinity repels",
            reason="exact: a truth value",
        )

    true = judge(states[2])
    return [
        Check(
            "fixed-points: reference-matrix, largest error of the flow at t = 50",
            float(np.abs(states[1] - _AT_50).max()),
            0.0,
            1e-11,
            FIFTY_DIGITS,
            "the relative tolerance of the solver",
        ),
        true,
        control(judge, states[1], name="a run on its way taken for its end", true=true),
    ]
