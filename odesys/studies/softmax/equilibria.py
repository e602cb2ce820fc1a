"""Where the flows stop, complete on the line and on the plane, and where they go if they do not."""

from __future__ import annotations

import numpy as np

from fixedpoints.softmax_regression import escape, points, verdict
from odesys.check import Check, control
from odesys.integrators.contract import solve
from odesys.lambdify import compile_field
from odesys.studies.softmax.setting import CASES, FIFTY_DIGITS, PAPERS
from odesys.system import ODESystem

__all__ = ["checks"]


def checks() -> list[Check]:
    """All checks of fixed points and of infinity."""
    return [
        *(check for name in CASES for check in _points(name)),
        *_rescaled_has_none(),
        *_plateau(),
    ]


def _points(name: str) -> list[Check]:
    """The fixed points of the normalized flow: how many, where, and that the indices sum to what infinity demands."""
    case = CASES[name]
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
            FIFTY_DIGITS,
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
                FIFTY_DIGITS,
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
