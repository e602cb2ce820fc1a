"""diffrax's solvers behind one compiled function: other numbers, tolerances or times compile nothing.

Every requested time is the end of a step (interpolants are poor where stability limits the step), failures
come back as codes, and all numbers enter as arrays: only the right-hand side, the solver and the buckets that
hold the numbers of times and starts are static.
"""

from __future__ import annotations

from functools import partial

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from odesys.integrators.run import Request, Run, Stop
from odesys.lambdify import compile_field

__all__ = ["integrate", "integrate_many"]

_SOLVERS = {"Tsit5": diffrax.Tsit5, "Dopri8": diffrax.Dopri8, "Kvaerno5": diffrax.Kvaerno5}
_STOPS = (Stop.DONE, Stop.STEPS, Stop.STALLED)
_SMALLEST_BUCKET = 32


def integrate(request: Request, method: str) -> Run:
    """Integrate the requested problem by one of `contract.DIFFRAX_METHODS`."""
    with jax.enable_x64(True):
        solution = _solve(*_statics(request, method), *_arrays(request))
    return _run(request, method, *(np.asarray(leaf) for leaf in solution))


def integrate_many(requests: list[Request], method: str) -> list[Run]:
    """Integrate requests that differ in start and atol alone, all at once, each with its own step sizes."""
    times, _, args, rtol, _, max_steps = _arrays(requests[0])
    starts, atols = (_padded(np.stack([getattr(r, name) for r in requests]), 2) for name in ("start", "atol"))
    with jax.enable_x64(True):
        solutions = _solve_many(*_statics(requests[0], method), times, starts, args, rtol, atols, max_steps)
    leaves = [np.asarray(leaf) for leaf in solutions]
    return [_run(r, method, *(leaf[i] for leaf in leaves)) for i, r in enumerate(requests)]


def _statics(request: Request, method: str):
    return compile_field(request.system, backend="jax").rhs, method


def _arrays(request: Request):
    times = _padded(request.times, 4)
    args = np.asarray(request.system.args, dtype=float)
    return times, request.start, args, np.float64(request.rtol), request.atol, np.int64(request.max_steps)


def _padded(array: np.ndarray, ratio: int) -> np.ndarray:
    """The array with its last entry repeated up to the next bucket's length: 32, 32 * ratio, 32 * ratio^2 ..."""
    length = _SMALLEST_BUCKET
    while length < len(array):
        length *= ratio
    return np.concatenate([array, np.repeat(array[-1:], length - len(array), axis=0)])


def _solution(rhs, method, times, start, args, rtol, atol, max_steps):
    """States at times[1:], last time and state, number of steps, and the stop's index in `_STOPS`."""
    controller = _Stops(diffrax.PIDController(rtol=rtol, atol=atol), times, max_steps)
    outputs = [diffrax.SubSaveAt(ts=times[1:]), diffrax.SubSaveAt(t1=True)]
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(rhs),
        _SOLVERS[method](),
        t0=times[0],
        t1=times[-1],
        dt0=None,
        y0=start,
        args=args,
        saveat=diffrax.SaveAt(subs=outputs),
        stepsize_controller=controller,
        adjoint=diffrax.ForwardMode(),
        max_steps=None,
        throw=False,
    )
    spent = solution.result == diffrax.RESULTS.max_steps_reached
    stop = jnp.where(solution.result == diffrax.RESULTS.successful, 0, jnp.where(spent, 1, 2))
    (_, (last_time,)), (states, (last_state,)) = solution.ts, solution.ys
    return states, last_time, last_state, solution.stats["num_steps"], stop


_solve = jax.jit(_solution, static_argnames=("rhs", "method"))
_STARTS_AND_ATOLS = (None, 0, None, None, 0, None)
_solve_many = jax.jit(
    lambda rhs, method, *arrays: jax.vmap(partial(_solution, rhs, method), (None, 0, None, None, 0, None))(
        *arrays
    ),
    static_argnums=(0, 1),
)


def _run(request: Request, method: str, states, last_time, last_state, steps, stop) -> Run:
    stop = _STOPS[int(stop)]
    # What was not reached is padded; only times up to the last accepted step count.
    reached = np.searchsorted(request.times, last_time, side="right")
    times = request.times[:reached]
    columns = [request.start, *states[: reached - 1]]
    if stop is not Stop.DONE and last_time > times[-1]:
        times, columns = np.append(times, last_time), [*columns, last_state]
    return Run(times, np.stack(columns, axis=1), int(steps), _evaluations(method, int(steps)), stop)


def _evaluations(method: str, steps: int) -> int | None:
    if method == "Kvaerno5":
        return None  # depends on the Newton iterations, which diffrax does not report
    tableau = _SOLVERS[method].tableau
    return steps * (tableau.num_stages - tableau.fsal) + 2  # two for the first step size


class _Stops(diffrax.AbstractAdaptiveStepSizeController):
    """A controller's steps, cut short to end at each of `times`; a run that stalls or takes too many ends.

    A step that was cut short does not shorten the steps after it.
    """

    inner: diffrax.PIDController
    times: jax.Array
    max_steps: jax.Array

    @property
    def rtol(self):
        return self.inner.rtol

    @property
    def atol(self):
        return self.inner.atol

    @property
    def norm(self):
        return self.inner.norm

    def wrap(self, direction):
        return self  # times increase

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        first, inner = self.inner.init(terms, t0, t1, y0, dt0, args, func, error_order)
        return self._end(t0, first - t0), (first - t0, jnp.asarray(0), inner)

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        natural, steps, inner = controller_state
        keep, start, end, made_jump, inner, result = self.inner.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, inner
        )
        cut_short = keep & (t1 - t0 < natural)
        natural = jnp.where(cut_short, jnp.maximum(end - start, natural), end - start)
        steps = steps + 1
        unfinished = start < self.times[-1]
        stalled = unfinished & ~(natural >= 8 * jnp.finfo(start.dtype).eps * jnp.abs(start))  # NaN stalls too
        result = diffrax.RESULTS.where(stalled, diffrax.RESULTS.dt_min_reached, result)
        spent = unfinished & (steps >= self.max_steps)
        result = diffrax.RESULTS.where(spent, diffrax.RESULTS.max_steps_reached, result)
        return keep, start, self._end(start, natural), made_jump, (natural, steps, inner), result

    def _end(self, start, length):
        index = jnp.searchsorted(self.times, start, side="right")
        return jnp.minimum(start + length, self.times[jnp.minimum(index, len(self.times) - 1)])
