"""The one way in which an integration fails, and the diagnosis of why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odesys.integrators.run import Request, Run, Stop
from odesys.lambdify import compile_field

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["IntegrationError", "diagnose"]


class IntegrationError(RuntimeError):
    """An integration that did not reach its last time.

    Attributes:
        time: the time of the last accepted step.
        reason: why it went no further.
        partial: the run so far; its last time is `time`.
    """

    def __init__(self, message: str, time: float, reason: str, partial: xr.Dataset):
        super().__init__(message)
        self.time = time
        self.reason = reason
        self.partial = partial

    def __reduce__(self):
        return type(self), (self.args[0], self.time, self.reason, self.partial)


def diagnose(request: Request, run: Run) -> str:
    """Why an unfinished run went no further, with the state in which it stopped."""
    if run.stop is Stop.STEPS:
        return (
            f"the {request.max_steps} steps of `max_steps` are used up; allow more, loosen `rtol`, or use "
            "Radau, BDF or Kvaerno5 if the system is stiff"
        )
    time, state = run.times[-1], run.states[:, -1]
    rhs = compile_field(request.system).rhs
    slope = rhs(time, state, request.system.args)
    fastest = int(np.argmax(np.abs(np.nan_to_num(slope, nan=np.inf, posinf=np.inf, neginf=-np.inf))))
    name = request.system.field.names[fastest]
    where = f"{name} = {state[fastest]:.6g}, d{name}/dt = {slope[fastest]:.3g}"
    if _leaves_domain(request, time, state, slope):
        return (
            f"the edge of the domain or a pole: the right-hand side is not finite beyond this point ({where})"
        )
    return f"blow-up or singularity: {Stop.STALLED.value} ({where})"


def _leaves_domain(request: Request, time: float, state: np.ndarray, slope: np.ndarray) -> bool:
    """Whether f stops being finite a little further along the tangent, where the state has hardly changed."""
    if not np.all(np.isfinite(slope)):
        return True
    rhs = compile_field(request.system).rhs
    ahead = np.logspace(-15, -2, 27) * (request.times[-1] - request.times[0])
    near = [h for h in ahead if h * np.max(np.abs(slope)) < 0.1 * (1 + np.max(np.abs(state)))]
    args = request.system.args
    return any(not np.all(np.isfinite(rhs(time + h, state + h * slope, args))) for h in near)
