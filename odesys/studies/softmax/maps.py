"""Gradient descent as a map: how large a step may be, and what it does beyond."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from fixedpoints import cycles, lyapunov, orbit_diagram
from fixedpoints.maps.flips import critical_step
from fixedpoints.softmax_regression import verdict
from odesys.check import Check, control
from odesys.iteration import iterate
from odesys.studies.softmax.setting import CASES, FIFTY_DIGITS, Case
from odesys.system import MapSystem

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["checks", "diagram"]

ETA = sp.Symbol("eta", positive=True)
#: Critical steps 2/lambda_max of the two minima, and the step at which the symmetric 2-cycle of two rows breaks.
CRITICAL = (0.7649335049002278, 12.339066698317421)
BREAKING = 12 * np.sqrt(3) * np.log(2 + np.sqrt(3))
#: A 2-cycle of two rows with b = (1/2, 1/2): its step, its half distance, its multiplier.
TWO_CYCLE = (22.012432084484429, 1.0, 0.049460896220575438)


def checks() -> list[Check]:
    """All checks of the descent map."""
    return [
        *_critical(),
        *_bracketed(),
        _two_cycle(),
        *_breaking(),
        _only_spurious(),
        _periods(),
        _plateau(),
        _irregular(),
    ]


@lru_cache(maxsize=8)
def _step(name: str):
    case = CASES[name] if name in CASES else Case(((0,), (1,)), (sp.Rational(1, 2), sp.Rational(1, 2)))
    return case.derived().gradient_map(step=ETA)


def _system(name: str, eta: float) -> MapSystem:
    return MapSystem(_step(name), {"eta": eta})


def _at(name: str, place) -> dict[str, float]:
    return dict(zip(_step(name).names, map(float, place), strict=True))


def _critical() -> list[Check]:
    """eta_c = 2/lambda_max of the Hessian at both minima, and that the flip is supercritical."""
    found = []
    for minimum, expected in zip(CASES["two-minima"].minima, CRITICAL, strict=True):
        flip = critical_step(_system("two-minima", 0.5 * expected), _at("two-minima", minimum), "eta")
        found.append(
            Check(
                f"fixed-points: critical step at the minimum ({minimum[0]:.3g}, {minimum[1]:.3g})",
                flip.value,
                expected,
                1e-13 * expected,
                FIFTY_DIGITS,
                "certified, rounded to float64; the reference has 16 digits",
            )
        )
    return found


def _bracketed() -> list[Check]:
    """Descent itself: at 0.98 eta_c it returns to the minimum, at 1.02 eta_c it does not."""
    minimum, start = np.array(CASES["two-minima"].minima[0]), np.array(CASES["two-minima"].minima[0]) + 1e-3

    def distance(eta: float) -> float:
        end = iterate(_system("two-minima", eta), _at("two-minima", start), steps=3000).isel(step=-1)
        return float(
            np.hypot(*(float(end[n]) - m for n, m in zip(_step("two-minima").names, minimum, strict=True)))
        )

    def judge(critical: float) -> Check:
        return Check(
            "fixed-points: descent settles at 0.98 eta_c and not at 1.02 eta_c",
            measured=float(distance(0.98 * critical) < 1e-12) + float(distance(1.02 * critical) > 1e-3),
            expected=2.0,
            tolerance=0,
            source="3000 steps of the map",
            reason="exact: two truth values; the slowest contraction is 0.96 a step",
        )

    true = judge(CRITICAL[0])
    return [true, control(judge, CRITICAL[0] / 2, name="eta_c of a loss without the 1/2", true=true)]


def _two_cycle() -> Check:
    """The symmetric 2-cycle of two rows, b = (1/2, 1/2), by its multiplier."""
    eta, half, multiplier = TWO_CYCLE
    found = cycles(_system("half", eta), 2, {"x_1": (-half - 0.4, half + 0.4)})
    (cycle,) = (c for c in found.cycles if abs(c.points[1]["x_1"] - half) < 1e-9)
    return Check(
        "fixed-points: multiplier of the 2-cycle {-1, 1} of two rows",
        measured=float(np.real(cycle.multipliers[0])),
        expected=multiplier,
        tolerance=1e-13,
        source=FIFTY_DIGITS,
        reason="two slopes at certified points, and eta rounded to float64",
    )


def _breaking() -> list[Check]:
    """Beyond eta = 12 sqrt(3) log(2 + sqrt(3)) the symmetric 2-cycle is unstable and two others stand beside it."""

    def judge(eta: float) -> Check:
        counts = []
        for factor in (0.99, 1.01):
            found = cycles(_system("half", factor * eta), 2, {"x_1": (-2.2, 2.2)})
            counts.append(
                sum("stable" in c.stability and "unstable" not in c.stability for c in found.cycles)
            )
        return Check(
            "fixed-points: stable 2-cycles just below and above the symmetry-breaking step, as 10 below + above",
            measured=10 * counts[0] + counts[1],
            expected=12,
            tolerance=0,
            source="pitchfork of the 2-cycle at eta = 12 sqrt(3) log(2 + sqrt(3)), exact",
            reason="exact: counts",
        )

    true = judge(BREAKING)
    return [true, control(judge, BREAKING / 1.1, name="another symmetry-breaking step", true=true)]


def _only_spurious() -> Check:
    """For eta_c of the global minimum < eta < eta_c of the other, the spurious minimum alone is stable."""
    stable = []
    for eta in (0.8, 2.0, 12.0):
        for place in CASES["two-minima"].minima:
            slopes = np.linalg.eigvals(_jacobian("two-minima", eta, place))
            stable.append(bool(np.abs(slopes).max() < 1))
    return Check(
        "fixed-points: steps 0.8, 2, 12 at which the worse minimum alone is stable",
        measured=sum(not low and high for low, high in zip(stable[::2], stable[1::2], strict=True)),
        expected=3,
        tolerance=0,
        source=f"{FIFTY_DIGITS}: 0.765 < eta < 12.3",
        reason="exact: a count",
    )


def _jacobian(name: str, eta: float, place) -> np.ndarray:
    from odesys.lambdify import compile_field

    compiled = compile_field(_system(name, eta))
    return np.array(compiled.jacobian(0, np.array(place), compiled.args))


def _periods() -> Check:
    """Beside the worse minimum, descent that started near the better one cycles, or never repeats."""
    place = _at("two-minima", (0.5, 0.2))
    found = orbit_diagram(_step("two-minima"), "eta", [0.7, 0.8, 1.0, 1.1], place, transient=4000)
    return Check(
        "fixed-points: periods of descent from (1/2, 1/5) at steps 0.7, 0.8, 1, 1.1, as digits; 0 is irregular",
        measured=float("".join(map(str, found["period"].values.ravel()))),
        expected=1240,
        tolerance=0,
        source="independent iteration: fixed point, 2-cycle, 4-cycle, irregular",
        reason="exact: counts",
    )


def _plateau() -> Check:
    """At steps 8, 12, 20 descent from (2, -3) lands where it moves by less than 1e-12: a plateau, no fixed point."""
    told = []
    for eta in (8.0, 12.0, 20.0):
        orbit = iterate(_system("two-minima", eta), _at("two-minima", (2, -3)), steps=2000)
        path = np.array([orbit[name].values[-2:] for name in _step("two-minima").names])
        at_rest = np.abs(path[:, 1] - path[:, 0]).max() < 1e-12
        told.append(at_rest and verdict(CASES["two-minima"].derived(), path[:, 1].tolist()).kind == "plateau")
    return Check(
        "fixed-points: steps 8, 12, 20 at which descent from (2, -3) rests on a plateau, told from a fixed point",
        measured=sum(told),
        expected=3,
        tolerance=0,
        source="no certified root near; f next to a vertex that repels",
        reason="exact: a count",
    )


def _irregular() -> Check:
    """Two rows, b = (1/2, 1/2), eta = 34: irregular, by its Lyapunov exponent."""
    found = lyapunov(_system("half", 34.0), {"x_1": 0.3}, 20_000)
    return Check(
        "fixed-points: Lyapunov exponent of two rows at eta = 34",
        measured=float(found.values[0]),
        expected=0.38,
        tolerance=0.03,
        source="independent iteration, two digits",
        reason="half a unit of the second digit, and the error of a mean over 20000 steps",
    )


def diagram() -> Dataset:
    """The orbit diagram of two rows, b = (1/2, 1/2), over the step; mirrored starts find both broken 2-cycles."""
    return orbit_diagram(
        _step("half"), "eta", np.linspace(12.0, 40.0, 561), {"x_1": [0.3, -0.3]}, transient=2000, keep=128
    )
