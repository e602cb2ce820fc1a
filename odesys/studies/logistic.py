"""The smallest whole study: logistic growth  x' = x (1 - x)  as a gradient flow, from its loss to a verdict.

Everything about it is known by hand, so it shows whether the chain is sound. With logit(x) = ln(x/(1-x)),

    logit x(t) = logit x(0) + t,      so x reaches one half at  t = -logit x(0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from odesys import clock
from odesys.check import Check, control
from odesys.comparison import check_order, compare, identity
from odesys.evaluation import evaluate
from odesys.integrators.contract import solve
from odesys.plotting import COLOURS, MARKERS, new_axes, order_plot, time_course
from odesys.report import Picture
from odesys.studies import Announce, Scale, StudyResult
from odesys.system import ODESystem
from symbolic import VectorField, closed_form, gradient_flow

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["FIGURES", "run"]

x = sp.Symbol("x", real=True)
METHODS = ("DOP853", "Tsit5")
BY_HAND = "by hand: logit x(t) = logit x(0) + t"

#: A start at which a careless absolute tolerance shows, and its half time ln(1e12 - 1).
START, HALF_TIME = 1e-12, 27.6310211159
RTOL = 1e-10

#: Few instants, so that the integrator chooses its own steps; and enough of them to draw a curve.
SPARSE, DENSE = (np.linspace(0.0, 2 * HALF_TIME, points) for points in (5, 201))

#: Descent starts where the flow is at exactly one half at the time ln 9.
DESCENT_START, DESCENT_TIME = 0.1, float(np.log(9))


def run(scale: Scale, seed: int, announce: Announce) -> StudyResult:
    """All checks of logistic growth; nothing in it is random, so the seed goes unused."""
    del seed
    announce("deriving the flow and its closed form")
    flow = growth()
    law = closed_form.solve(flow)
    theory = evaluate(law, {"x": START}, DENSE, {})
    announce("integrating with SciPy and diffrax")
    runs = {method: integrate(flow, method, DENSE) for method in METHODS}
    checks = [
        identity("derive: the gradient flow is x (1 - x)", [flow.rhs[0] - x * (1 - x)], source="by hand"),
        half_time("closed-form: half time", theory),
        *half_times(flow, runs),
        *courses(theory, runs),
    ]
    announce("descending the loss")
    descended = [descend_to(halvings) for halvings in range(5 if scale == "full" else 3)]
    grown = evaluate(law, {"x": DESCENT_START}, np.linspace(0.0, 1.2 * DESCENT_TIME, 241), {})
    checks += descent_checks(grown, descended)
    data = {f"logistic-{name}": course for name, course in {"closed-form": theory, **runs}.items()}
    pictures = [time_picture(theory, runs), order_picture(descended)]
    return StudyResult(checks, pictures, data | {"logistic-descent": descended[-1]})


def growth(rate: sp.Rational | int = 1) -> VectorField:
    """The gradient flow of  L = r (x^3/3 - x^2/2),  which is  x' = r x (1 - x)."""
    return gradient_flow(rate * (x**3 / 3 - x**2 / 2), (x,), source="logistic growth")


def integrate(flow: VectorField, method: str, times: np.ndarray, atol: float | None = None) -> Dataset:
    """The flow from START."""
    return solve(ODESystem(flow, {}), {"x": START}, times, method=method, rtol=RTOL, atol=atol)


def half_time(name: str, course: Dataset) -> Check:
    """When x crosses one half; the course of logit x is straight, so that reading it adds no error."""
    after = max(int(np.argmax(course["x"].values >= 0.5)), 1)
    around = course.isel(time=slice(after - 1, after + 1))
    logit = np.log(around["x"].values / (1 - around["x"].values))
    return Check(
        name,
        measured=float(np.interp(0.0, logit, around["time"].values)),
        expected=HALF_TIME,
        tolerance=100 * RTOL,
        source="by hand: ln(1e12 - 1)",
        reason="28 units of growth, each with a few rtol = 1e-10 of relative error, which shifts the time",
    )


def half_times(flow: VectorField, runs: Mapping[str, Dataset]) -> list[Check]:
    """Both integrators against the half time known by hand, and faults that the same check must catch."""
    judge = partial(half_time, "flow: half time, DOP853 at its own steps")
    true = judge(integrate(flow, "DOP853", SPARSE))
    wrong = integrate(growth(sp.Rational(101, 100)), "DOP853", SPARSE)
    careless = integrate(flow, "DOP853", SPARSE, atol=1e-6)
    return [
        *(half_time(f"flow: half time, {method}", course) for method, course in runs.items()),
        true,
        control(judge, wrong, name="rate 1.01 instead of 1", true=true),
        control(judge, careless, name="absolute tolerance 1e-6 for a start of 1e-12", true=true),
    ]


def courses(theory: Dataset, runs: Mapping[str, Dataset]) -> list[Check]:
    """Both integrators against the closed form, at all times."""
    checks = []
    for method, course in runs.items():
        (check,) = compare(
            theory, course, tolerance=100 * RTOL, reason="as for the half time", source=BY_HAND
        )
        checks.append(replace(check, name=f"flow: x(t), {method} against the closed form"))
    return checks


def loss(weights):
    """The loss as the judge computes it, for autodiff: written down anew, not taken from the derivation."""
    return weights["x"] ** 3 / 3 - weights["x"] ** 2 / 2


def descend_to(halvings: int) -> Dataset:
    """Gradient descent from DESCENT_START to DESCENT_TIME in 64 * 2^halvings steps."""
    from odesys.simulation import descend

    steps = 64 * 2**halvings
    return descend(loss, {"x": np.float64(DESCENT_START)}, rate=DESCENT_TIME / steps, steps=steps + 1)


def descent_errors(descended: Sequence[Dataset]) -> tuple[np.ndarray, np.ndarray]:
    """Rates, and errors at the last step, where the flow is at one half."""
    return (
        np.array([course.attrs["rate"] for course in descended]),
        np.array([abs(float(course["x"][-1]) - 0.5) for course in descended]),
    )


def descent_checks(theory: Dataset, descended: Sequence[Dataset]) -> list[Check]:
    """Descent against the flow: the course of the finest run, a wrong clock, and the order of the error."""
    rates, errors = descent_errors(descended)

    def judge(ticking: clock.Clock) -> Check:
        (check,) = compare(theory, descended[-1], clock=ticking, source=BY_HAND)
        return check

    true = judge(clock.gradient_flow(rates[-1]))
    fault = control(judge, clock.gradient_flow(1.1 * rates[-1]), name="clock 10 % too fast", true=true)
    order = check_order(
        "descent: the error is of order one in the step",
        rates,
        errors,
        order=1,
        tolerance=0.01,
        reason="the next term of the expansion moves the slope by a fraction of the largest step, 0.03",
        source="by hand: x(ln 9) = 1/2 from 1/10",
    )
    return [true, fault, order]


def time_picture(theory: Dataset, runs: Mapping[str, Dataset]) -> Picture:
    """The closed form over both integrators."""
    axes = new_axes()
    for place, (method, course) in enumerate(runs.items(), 1):
        marks = course.isel(time=slice(5 * place, None, 10))
        style = {"color": COLOURS[place], "marker": MARKERS[place], "markerfacecolor": "white"}
        axes.plot(marks["time"], marks["x"], linestyle="none", label=method, **style)
    time_course(theory, label="closed form", ax=axes)
    axes.axvline(HALF_TIME, color="0.35", linestyle=":", linewidth=1.2)
    axes.annotate("ln(1e12 - 1)", (HALF_TIME, 0.02), xytext=(4, 0), textcoords="offset points", color="0.25")
    return Picture(
        "logistic",
        axes.figure,
        "Logistic growth from 1e-12: the closed form over a SciPy and a diffrax integrator. The dotted line "
        "is the half time known by hand.",
        "A sigmoid curve of x over time from 0 to 1, with the markers of both integrators on it; it crosses "
        "one half at the dotted line, time 27.6.",
    )


def order_picture(descended: Sequence[Dataset]) -> Picture:
    """Errors of descent over step sizes."""
    rates, errors = descent_errors(descended)
    axes = order_plot(rates, errors, order=1, label="gradient descent")
    axes.set(xlabel="learning rate = step in time", ylabel="|x(ln 9) - 1/2|")
    return Picture(
        "logistic-order",
        axes.figure,
        "Gradient descent departs from its flow in proportion to the step: half the rate, half the error.",
        "Errors over learning rates on logarithmic axes; the markers lie on a line of slope one.",
    )


def _figure(scale: Scale, seed: int, announce: Announce) -> tuple[Picture, Mapping[str, Dataset]]:
    """The time course alone; it needs neither scale nor seed."""
    del scale, seed
    announce("integrating with SciPy and diffrax")
    flow = growth()
    theory = evaluate(closed_form.solve(flow), {"x": START}, DENSE, {})
    runs = {method: integrate(flow, method, DENSE) for method in METHODS}
    return time_picture(theory, runs), {f"logistic-{name}": course for name, course in runs.items()}


FIGURES = {"logistic": _figure}
