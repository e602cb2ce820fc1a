"""The contract that all integrators share: what `solve` takes, what it returns, and how it fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from odesys.integrators.dataset import monitors, trajectory
from odesys.integrators.errors import IntegrationError, diagnose
from odesys.integrators.run import Request, Run, Stop, request
from odesys.integrators.switching import integrate_between_jumps
from odesys.lambdify import compile_field
from odesys.system import ODESystem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["METHODS", "IntegrationError", "solve"]

SCIPY_METHODS = ("RK45", "DOP853", "LSODA", "Radau", "BDF")
DIFFRAX_METHODS = ("Tsit5", "Dopri8", "Kvaerno5")
METHODS = (*SCIPY_METHODS, *DIFFRAX_METHODS)

#: Steps after which `method=None` asks whether the run is stiff.
_TRIAL_STEPS = 2_000


def solve(
    system: ODESystem,
    y0: Mapping[str | sp.Symbol, float],
    times: Iterable[float],
    method: str | None = None,
    rtol: float = 1e-8,
    atol: float | Mapping[str | sp.Symbol, float] | Iterable[float] | None = None,
    invariants: Iterable[object] = (),
    observables: Mapping[str, sp.Expr] | None = None,
    max_steps: int = 100_000,
) -> xr.Dataset:
    """Integrate  dx/dt = f(t, x; p),  x(times[0]) = y0,  in double precision.

    The estimated error of every step is at most  atol_i + rtol |x_i|  (root mean square over the components
    i). Every requested time is the end of a step (for LSODA and BDF a point of the polynomial that they step
    with), so that outputs are as accurate as steps, near equilibria too.

    Method: "RK45", "DOP853", "LSODA", "Radau", "BDF" (SciPy) or "Tsit5", "Dopri8", "Kvaerno5" (diffrax).
    None takes DOP853, whose global error stays closest to the tolerance. If DOP853 has not arrived after
    2000 steps, and stability instead of accuracy limits its steps (the system is stiff), Radau starts
    anew. The choice is recorded. LSODA and BDF are the cheapest at loose tolerances but lose two to three
    digits over long growth; Tsit5 and Dopri8 compile once for each field and are the fastest thereafter.

    Absolute tolerance: `atol=None` means  atol_i = rtol * max(|y0_i|, s)  where s is the smallest non-zero
    |y0_j|. If every component starts at zero, max(...) is the smaller of 1 and max_j |f_j(t0, 0)| (t1 - t0),
    or 1 if f vanishes too. So a start of 1e-12 is resolved to rtol * 1e-12, and a component that starts at
    zero to rtol times the smallest start of the others. A number holds for all components; a mapping or a
    sequence gives one for each.

    Discontinuities: jumps of f that depend on x are found by the rejection of steps alone. Where f jumps at
    times that can be read off (inequalities of a Piecewise, Heaviside, sign, with polynomials of the field's
    `time`), a step ends and a new one begins, so that no pulse is stepped over. Other jumps in time, such as
    floor(t) or sin(t) > 0, are not known in advance: put a requested time or two inside each pulse.

    Args:
        system: the flow and its numbers.
        y0: one finite number for each state, by name or symbol.
        times: at least two increasing times, in the unit of the field's time; the first is that of y0.
        rtol: relative tolerance, at least 2.3e-14 (100 rounding errors).
        invariants: first integrals (objects with `.expression`, or expressions) to monitor.
        observables: expressions in states, parameters and time, by name, to evaluate along the run.
        max_steps: the number of steps (for diffrax's methods with the rejected ones) after which a run fails.
    Returns:
        A dataset with dimension "time", a float64 variable for each state and observable, and
        `invariant_drift` ("invariant", "time") = I(t) - I(t0). Attributes: method, rtol, atol (JSON by
        state), steps, rhs_evaluations (not for Kvaerno5), invariant_drift_max, source, parameters (JSON),
        versions (JSON).
    Raises:
        IntegrationError: a blow-up, the edge of the domain of f, or exhausted steps; it has the time, the
            reason and the run so far.
        TypeError, ValueError: system, states, times, tolerances, method, max_steps, invariants or
            observables are not as described.
    """
    checked = request(system, y0, times, rtol, atol, max_steps)
    monitored = monitors(system, invariants, observables)
    check_method(method)
    used, run = integrate(checked, method)
    dataset = trajectory(checked, run, used, monitored)
    if run.stop is not Stop.DONE:
        raise failure(checked, run, used, dataset)
    return dataset


def integrate(request: Request, method: str | None) -> tuple[str, Run]:
    """The method that was used and its run, in plain arrays."""
    slope = compile_field(request.system).rhs(request.times[0], request.start, request.system.args)
    if not np.all(np.isfinite(slope)):
        return method or "DOP853", Run(request.times[:1], request.start[:, None], 0, 1, Stop.STALLED)
    if method is None:
        return _integrate_automatically(request)
    return method, _integrate(request, method)


def failure(request: Request, run: Run, method: str, partial: xr.Dataset, who: str = "") -> IntegrationError:
    """The error for a run that stopped early; `who` names it among several."""
    time, reason = float(run.times[-1]), diagnose(request, run)
    message = (
        f"{who}{method} stopped at time {time:.12g} of {request.times[-1]:.12g}: {reason}. See `.partial`."
    )
    return IntegrationError(message, time, reason, partial)


def _integrate_automatically(request: Request) -> tuple[str, Run]:
    trial_steps = _TRIAL_STEPS + len(request.times)
    run = _integrate(replace(request, max_steps=min(trial_steps, request.max_steps)), "DOP853")
    if run.stop is not Stop.STEPS or request.max_steps <= trial_steps:
        return "DOP853", run
    method = "Radau" if _stability_limits(request.system, run) else "DOP853"
    return method, _integrate(request, method)


def _stability_limits(system: ODESystem, run: Run) -> bool:
    """Whether steps are near DOP853's stability limit, |lambda| h = 6, for a decaying mode."""
    step = (run.times[-1] - run.times[0]) / run.steps
    jacobian = compile_field(system).jacobian(run.times[-1], run.states[:, -1], system.args)
    if not np.all(np.isfinite(jacobian)):
        return False
    return bool(np.max(-np.linalg.eigvals(jacobian).real) * step > 3)


def _integrate(request: Request, method: str) -> Run:
    if method in SCIPY_METHODS:
        from odesys.integrators import scipy_backend as backend
    else:
        from odesys.integrators import diffrax_backend as backend
    return integrate_between_jumps(request, lambda piece: backend.integrate(piece, method))


def check_method(method: object) -> None:
    if method is not None and method not in METHODS:
        raise ValueError(
            f"`method` must be one of {list(METHODS)}, or None to let solve choose; got {method!r}."
        )
