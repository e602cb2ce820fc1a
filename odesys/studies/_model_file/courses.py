"""The runs of a flow that are held against each other, and how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from odesys.integrators.contract import SCIPY_METHODS, solve
from odesys.model_file import ModelFile
from odesys.system import ODESystem

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["Courses", "courses", "distance"]

#: Methods for stiff flows; what SciPy chooses says which of diffrax's methods to hold against it.
_STIFF = ("Radau", "BDF", "Kvaerno5")

#: Beyond this predicted error, relative to the range, two runs of a chaotic flow need not agree any more.
_LARGEST = 1e-3
_SMALLEST_RTOL = 1e-11

#: Points of a curve that shows the oscillations of a long run.
_DRAWN = 1001


@dataclass(frozen=True, eq=False)
class Courses:
    """A run by SciPy, one by diffrax, and one of a flow with a planted fault, at the same times.

    Args:
        scipy, diffrax, faulty: the runs, up to the horizon. fault: what was planted, in words.
        whole: the run by SciPy to the end, dense enough to be drawn.
        tolerance: 100 (rtol + e), e the error that SciPy shows against itself at rtol/100, relative to the range.
        reason: why that tolerance.
        mover: the state that moves most, relative to its size.
    """

    scipy: Dataset
    diffrax: Dataset
    faulty: Dataset
    fault: str
    whole: Dataset
    tolerance: float
    reason: str
    mover: str

    @property
    def upto(self) -> str:
        """The horizon in words, if it lies before the end."""
        end = float(self.whole["time"][-1])
        return "" if self.times[-1] == end else f", up to t = {self.times[-1]:.4g}"

    @property
    def times(self) -> np.ndarray:
        """The instants up to the horizon."""
        return self.scipy["time"].values


def courses(model: ModelFile) -> Courses:
    """Integrate a model file.

    Raises:
        ModelFileError: it has no start, or no end.
        IntegrationError: a run did not reach its end.
    """
    start = model.required("start", "The check integrates from there")
    end = model.required("end", "Say how long to integrate")
    # Early instants too, so that a fast transient is seen.
    times = np.unique([*np.linspace(0.0, end, model.run.points), *np.geomspace(1e-6 * end, end, 61)])
    rtol = max(model.run.rtol, _SMALLEST_RTOL)
    wanted = model.run.method if model.run.method in SCIPY_METHODS else None
    if wanted is None and model.run.method in _STIFF:
        wanted = "Radau"
    scipy = solve(model.system, start, times, method=wanted, rtol=rtol)
    method = scipy.attrs["method"]
    finer = solve(model.system, start, times, method=method, rtol=rtol / 100)
    names = model.rule.names
    errors = np.maximum.accumulate(_relative(finer, scipy, names).max(axis=0))
    known = max(2, int(np.searchsorted(100 * (rtol + errors), _LARGEST, side="right")))
    error = errors[min(known, times.size) - 1]
    partner = "Kvaerno5" if method in _STIFF else "Tsit5"
    upto = times[:known]
    diffrax = solve(model.system, start, upto, method=partner, rtol=rtol)
    mover = max(
        names, key=lambda name: np.ptp(finer[name].values) / (np.abs(finer[name].values).max() or 1.0)
    )
    system, fault = _faulty(model, mover, finer, end)
    reason = f"100 times rtol = {rtol:g} and the error {error:.1g} of SciPy against itself at rtol/100"
    return Courses(
        scipy.isel(time=slice(known)),
        diffrax,
        solve(system, start, upto, method=method, rtol=rtol),
        fault,
        solve(
            model.system,
            start,
            np.linspace(0.0, end, max(model.run.points, _DRAWN)),
            method=method,
            rtol=rtol,
        ),
        100 * (rtol + error),
        reason if known == times.size else f"{reason}; beyond, the flow is too sensitive to compare",
        mover,
    )


def distance(theory: Dataset, run: Dataset, names) -> float:
    """The largest difference of two runs over all states and instants, relative to the range of each state."""
    return float(_relative(theory, run, names).max())


def _relative(theory: Dataset, run: Dataset, names) -> np.ndarray:
    """Shape (states, instants)."""
    rows = []
    for name in names:
        expected = theory[name].values
        scale = np.ptp(expected) or np.abs(expected).max() or 1.0
        rows.append(np.abs(run[name].values - expected) / scale)
    return np.array(rows)


def _faulty(model: ModelFile, mover: str, run: Dataset, end: float) -> tuple[ODESystem, str]:
    """The flow with the rate of the state that moves most 1 % too large; a push, where nothing moves."""
    place, rhs = model.rule.names.index(mover), list(model.rule.rhs)
    if np.ptp(run[mover].values) > 0:
        rhs[place], what = sp.Rational(101, 100) * rhs[place], f"the rate of {mover} 1 % too large"
    else:
        push = sp.Rational(abs(run[mover].values[0]) or 1.0) / (100 * sp.Rational(end))
        rhs[place], what = rhs[place] + push, f"{mover} pushed by 1 % of its size"
    return ODESystem(replace(model.rule, rhs=tuple(rhs)), model.numbers), what
