"""Jumps of the right-hand side at known times: a run ends just before each, a new one begins just after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from odesys.integrators.run import Request, Run, Stop
from odesys.system import ODESystem

__all__ = ["integrate_between_jumps", "switching_times"]


def switching_times(system: ODESystem) -> np.ndarray:
    """The times at which f may jump, sorted: real roots of polynomials in time inside its conditions.

    Read from inequalities (of Piecewise), Heaviside and sign, with the parameters' numbers filled in.
    Conditions that involve a state, or are not polynomial in time, have no times that are known in advance.
    """
    field = system.field
    if field.time is None:
        return np.empty(0)
    numbers = {p: sp.Rational(value) for p, value in zip(field.parameters, system.args, strict=True)}
    roots: set[float] = set()
    for switch in _switches(field.rhs):
        switch = switch.subs(numbers)
        if switch.free_symbols == {field.time} and switch.is_polynomial(field.time):
            roots.update(float(root) for root in sp.real_roots(sp.Poly(sp.nsimplify(switch, rational=True))))
    return np.array(sorted(roots))


def integrate_between_jumps(request: Request, integrate: Callable[[Request], Run]) -> Run:
    """`integrate`, applied piece by piece between the switching times of the request's system."""
    first, last = request.times[[0, -1]]
    jumps = [t for t in switching_times(request.system) if first <= t <= last]
    if not jumps:
        return integrate(request)
    state, steps, evaluations = request.start, 0, 0
    times, columns, stop = [request.times[:1]], [state[:, None]], Stop.DONE
    for begin, end in pairwise(sorted({first, *jumps, last})):
        start = np.nextafter(begin, np.inf) if begin in jumps else begin
        finish = np.nextafter(end, -np.inf) if end in jumps else end
        wanted = request.times[(request.times > begin) & (request.times <= end)]
        grid = np.unique([start, *np.clip(wanted, start, finish), finish])
        run = integrate(
            replace(request, start=state, times=grid, max_steps=max(request.max_steps - steps, 0))
        )
        steps, stop, state = steps + run.steps, run.stop, run.states[:, -1]
        evaluations = (
            None if run.evaluations is None or evaluations is None else evaluations + run.evaluations
        )
        if stop is not Stop.DONE:
            times.append(run.times[1:])
            columns.append(run.states[:, 1:])
            break
        times.append(wanted)
        columns.append(run.states[:, np.searchsorted(grid, np.clip(wanted, start, finish))])
    return Run(np.concatenate(times), np.concatenate(columns, axis=1), steps, evaluations, stop)


def _switches(rhs: tuple[sp.Expr, ...]) -> list[sp.Expr]:
    switches = [f.args[0] for e in rhs for f in e.atoms(sp.Heaviside, sp.sign)]
    conditions = [c for e in rhs for piecewise in e.atoms(sp.Piecewise) for _, c in piecewise.args]
    for condition in conditions:
        switches += [r.lhs - r.rhs for r in condition.atoms(Relational) if not isinstance(r, (sp.Eq, sp.Ne))]
    return switches
