"""SciPy's solvers, stepped so that outputs are as accurate as steps.

A step that is limited by stability (near an equilibrium) has a far smaller error than asked for, but its
interpolant has not: DOP853's can be wrong by 1e-4 where its steps are right to 1e-8. Therefore the one-step
methods end a step at each requested time. The multistep methods LSODA and BDF are interpolated, since their
interpolant is the very polynomial that they step with.
"""

from __future__ import annotations

import numpy as np
from scipy import integrate as scipy_integrate

from odesys.integrators.run import Request, Run, Stop
from odesys.lambdify import compile_field

__all__ = ["integrate"]

_ONE_STEP = ("RK45", "DOP853", "Radau")
_IMPLICIT = ("Radau", "BDF")  # LSODA differences the right-hand side itself, in compiled code


def integrate(request: Request, method: str) -> Run:
    """Integrate the requested problem by one of `contract.SCIPY_METHODS`."""
    compiled = compile_field(request.system)
    args = request.system.args
    first_bound = request.times[1] if method in _ONE_STEP else request.times[-1]
    options: dict = {"rtol": request.rtol, "atol": request.atol}
    if method in _IMPLICIT:
        options["jac"] = lambda t, y: _finite(compiled.jacobian(t, y, args))
    reached, solver = _Reached(request), None
    with np.errstate(all="ignore"):  # overflow at a blow-up is an answer, not a mishap
        try:
            solver = getattr(scipy_integrate, method)(
                lambda t, y: compiled.rhs(t, y, args), request.times[0], request.start, first_bound, **options
            )
            advance = _end_steps_at_times if method in _ONE_STEP else _interpolate_at_times
            stop = advance(solver, request.times, reached)
        except FloatingPointError:
            stop = Stop.STALLED
    return reached.run(stop, solver.nfev if solver is not None else 1)


class _Reached:
    """The states reached so far; counts steps."""

    def __init__(self, request: Request):
        self.request = request
        self.states = [request.start]
        self.steps = 0
        self.last = (request.times[0], request.start)

    def step(self, solver) -> Stop | None:
        """One step of the solver; why it cannot go on, if it cannot."""
        if self.steps >= self.request.max_steps:
            return Stop.STEPS
        before = solver.t
        solver.step()
        self.steps += 1
        if solver.status == "failed" or solver.t == before or not np.all(np.isfinite(solver.y)):
            return Stop.STALLED
        self.last = (solver.t, solver.y)
        return None

    def run(self, stop: Stop, evaluations: int) -> Run:
        times, states = self.request.times[: len(self.states)], list(self.states)
        if stop is not Stop.DONE and self.last[0] > times[-1]:
            times, states = np.append(times, self.last[0]), [*states, self.last[1]]
        return Run(times, np.stack(states, axis=1), self.steps, evaluations, stop)


def _end_steps_at_times(solver, times: np.ndarray, reached: _Reached) -> Stop:
    for time in times[1:]:
        solver.t_bound, solver.status = time, "running"
        while solver.t < time:
            if solver.t + solver.h_abs > time:
                _forget_factorisation(solver)
            stop = reached.step(solver)
            if stop is not None:
                return stop
        reached.states.append(solver.y)
    return Stop.DONE


def _interpolate_at_times(solver, times: np.ndarray, reached: _Reached) -> Stop:
    while len(reached.states) < len(times):
        stop = reached.step(solver)
        if stop is not None:
            return stop
        covered = times[len(reached.states) : np.searchsorted(times, solver.t, side="right")]
        if len(covered):
            reached.states.extend(solver.dense_output()(covered).T)
    return Stop.DONE


def _forget_factorisation(solver) -> None:
    """Radau keeps the factors of a matrix that holds the step size; cutting a step short makes them stale."""
    if hasattr(solver, "LU_real"):
        solver.LU_real = solver.LU_complex = None


def _finite(jacobian: np.ndarray) -> np.ndarray:
    if not np.all(np.isfinite(jacobian)):
        raise FloatingPointError("the Jacobian is not finite")
    return jacobian
