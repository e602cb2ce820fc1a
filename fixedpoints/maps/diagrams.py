"""Orbit diagrams: where the orbits of a map end up, for each value of one parameter and each start."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from fixedpoints.arguments import positive, whole
from fixedpoints.maps.arguments import autonomous, symbol_of
from odesys.lambdify import CompiledField, compile_field
from odesys.system import MapSystem, by_name
from symbolic.field import IteratedMap

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["IRREGULAR", "STANDSTILL", "ESCAPED", "orbit_diagram"]

#: What `period` says instead of a period.
IRREGULAR, STANDSTILL, ESCAPED = 0, -1, -2

#: Names in the dataset beside those of the map.
_OWN_NAMES = ("start", "kept", "period", "escaped")

_MEANING = (
    f"p > 0: repeats after p steps, confirmed by a Newton step; {IRREGULAR}: no period seen; {STANDSTILL}: stands "
    f"still to within the tolerance, but no fixed point is near (a plateau); {ESCAPED}: escaped"
)


def orbit_diagram(
    system: MapSystem | IteratedMap,
    parameter: str | sp.Symbol,
    values: Sequence[float],
    start: Mapping[str | sp.Symbol, float | Sequence[float]],
    *,
    transient: int = 1000,
    keep: int = 200,
    longest: int = 64,
    tolerance: float = 1e-8,
) -> xr.Dataset:
    """The last states of orbits of a map,  x -> f(x; p),  for many values of one parameter at once.

    The map is compiled once, with the parameter as an argument, and all values and starts are iterated together.
    An orbit has a period p <= `longest` if the kept states repeat after p steps to within the tolerance, and
    Newton's correction (1 - Df^p)^-1 (f^p(x) - x) is as small: orbits that merely move slowly have none.

    Args:
        system: a map; its own number for the parameter, if it has one, is not used.
        parameter: which one moves, by name or symbol.
        values: its values, finite and distinct, shape (m,).
        start: for each state a number, or one for each start, shape (s,).
        transient: how many steps are made first.
        keep: how many states are kept then.
        longest: the longest period that is looked for; at most half of `keep`.
        tolerance: of periods, relative to 1 + |x|.
    Returns:
        A dataset with dims (parameter's name, "start", "kept"): a variable for each state; `period` and
        `escaped` with dims (parameter's name, "start"). `escaped` is the step at which an orbit left the finite
        numbers, or -1; its states are NaN then. `period.attrs["meaning"]` says what 0 and negative ones mean.
    Raises:
        TypeError: the system is no map, or a start is no number.
        ValueError: the parameter or a state is unknown; a parameter declared positive is not; the dataset would
            have two things of one name; values or starts are empty, not finite, or of different
            lengths; a number of steps, `longest` or `tolerance` is out of range.
    """
    task = _task(system, parameter, values, start)
    transient, keep = whole(transient, "transient", 0), whole(keep, "keep", 2)
    longest, tolerance = min(whole(longest, "longest"), keep // 2), positive(tolerance, "tolerance")
    kept, escaped = _iterated(task, transient, keep)
    period = _periods(task, kept, escaped, longest, tolerance)
    return _dataset(task, kept, escaped, period, transient)


@dataclass(frozen=True, eq=False)
class _Task:
    """A map, compiled, with arrays of the shape (values, 1) or () as its numbers and starts (n, values, starts)."""

    rule: IteratedMap
    moving: sp.Symbol
    values: np.ndarray
    starts: np.ndarray
    compiled: CompiledField
    args: tuple[np.ndarray | float, ...]


def _task(system, parameter, values, start) -> _Task:
    rule = system.map if isinstance(system, MapSystem) else system
    if isinstance(rule, IteratedMap):
        moving = symbol_of(rule, parameter)
        others = dict(system.parameters) if isinstance(system, MapSystem) else {}
        # Any number of its sign will do for the parameter that moves.
        any_number = -1.0 if moving.is_nonpositive else 1.0
        system = MapSystem(rule, {**others, moving.name: others.get(moving.name, any_number)})
    system = autonomous(system, "Orbit diagrams are")
    numbers = np.atleast_1d(_floats(values, "values"))
    if numbers.ndim != 1 or len(np.unique(numbers)) < numbers.size or not numbers.size:
        raise ValueError(f"`values` must be distinct numbers in one row; got {values!r}.")
    low = 0.0 if moving.is_positive else -np.inf
    if (numbers <= low).any():
        raise ValueError(
            f"{moving} is declared to be positive; got the value {numbers.min():g}. Leave it out."
        )
    _check_names(rule, moving)
    given = by_name(rule.state, start, "state")
    missing = [name for name in rule.names if name not in given]
    if missing:
        raise ValueError(f"`start` lacks the states {missing}; give a number or a row of numbers for each.")
    rows = [np.atleast_1d(_floats(given[name], f"start of {name}")) for name in rule.names]
    lengths = {row.size for row in rows if row.size != 1} or {1}
    if len(lengths) > 1 or any(row.ndim != 1 or not row.size for row in rows):
        raise ValueError(
            f"`start` must hold for each state one number or as many as for the others; got {[r.size for r in rows]}."
        )
    shape = (len(numbers), lengths.pop())
    starts = np.stack([np.broadcast_to(row, shape) for row in rows])
    moved = numbers[:, None]
    args = tuple(moved if p == moving else v for p, v in zip(rule.parameters, system.args, strict=True))
    return _Task(rule, moving, numbers, starts, compile_field(system), args)


def _check_names(rule: IteratedMap, moving: sp.Symbol) -> None:
    names = Counter((*rule.names, *(f"{x}_0" for x in rule.names), moving.name, *_OWN_NAMES))
    repeated = sorted(name for name, count in names.items() if count > 1)
    if repeated:
        raise ValueError(
            f"The names {repeated} would stand for two things in the dataset, which has {list(_OWN_NAMES)} and the "
            "starts of states, such as x_0, of its own. Rename the map's symbols."
        )


def _floats(values: object, name: str) -> np.ndarray:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"The {name} must be real numbers; got {values!r}.") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"The {name} must be finite; got {values!r}.")
    return numbers


def _iterated(task: _Task, transient: int, keep: int) -> tuple[np.ndarray, np.ndarray]:
    """The kept states, shape (n, values, starts, keep), and the step of escape or -1, shape (values, starts)."""
    state = np.array(task.starts)
    kept = np.empty((*state.shape, keep))
    escaped = np.full(state.shape[1:], -1)
    for step in range(1, transient + keep + 1):
        state = task.compiled.rhs(0, state, task.args)
        lost = ~np.isfinite(state).all(axis=0)
        escaped[lost & (escaped < 0)] = step
        state[:, lost] = np.nan
        if step > transient:
            kept[..., step - transient - 1] = state
    kept[:, escaped >= 0] = np.nan
    return kept, escaped


def _periods(
    task: _Task, kept: np.ndarray, escaped: np.ndarray, longest: int, tolerance: float
) -> np.ndarray:
    """The period of each orbit, or what stands for none, shape (values, starts)."""
    period = np.full(escaped.shape, IRREGULAR)
    scale = tolerance * (1 + np.abs(kept).max(axis=(0, 3)))
    open_ = escaped < 0
    for p in range(1, longest + 1):
        if not open_.any():
            break
        gaps = np.abs(kept[..., p:] - kept[..., :-p]).max(axis=(0, 3))
        repeats = open_ & (gaps <= scale)
        for v, s in zip(*np.nonzero(repeats), strict=True):
            confirmed = _correction(task, kept[:, v, s, -p - 1 :], v) <= scale[v, s]
            period[v, s] = p if confirmed else STANDSTILL if p == 1 else IRREGULAR
        # What repeats at p repeats at its multiples too: no longer period is asked.
        open_ &= ~repeats
    period[escaped >= 0] = ESCAPED
    return period


def _correction(task: _Task, orbit: np.ndarray, place: int) -> float:
    """The size of Newton's correction of a point of period p from its last p + 1 states, shape (n, p + 1)."""
    args = tuple(a[place, 0] if isinstance(a, np.ndarray) else a for a in task.args)
    n, p = len(orbit), orbit.shape[1] - 1
    slopes = np.broadcast_to(task.compiled.jacobian(0, orbit[:, :-1], args), (n, n, p))
    product = np.eye(n)
    for k in range(p):
        product = slopes[:, :, k] @ product
    # Rounding of f, of its slopes' products and of the gap itself is all part of the gap.
    gap = np.abs(orbit[:, -1] - orbit[:, 0]) + np.finfo(float).eps * np.abs(orbit).max(axis=1)
    try:
        inverse = np.linalg.inv(np.eye(n) - product)
    except np.linalg.LinAlgError:
        return np.inf
    return float((np.abs(inverse) @ gap).max())


def _dataset(
    task: _Task, kept: np.ndarray, escaped: np.ndarray, period: np.ndarray, transient: int
) -> xr.Dataset:
    import xarray as xr

    name, both = task.moving.name, (task.moving.name, "start")
    numbers = {p.name: a for p, a in zip(task.rule.parameters, task.args, strict=True) if p != task.moving}
    variables = {x: ((*both, "kept"), rows) for x, rows in zip(task.rule.names, kept, strict=True)}
    variables["period"] = (both, period, {"meaning": _MEANING})
    variables["escaped"] = (
        both,
        escaped,
        {"meaning": "the step at which the orbit stopped being finite, or -1"},
    )
    first = {f"{x}_0": ("start", task.starts[i, 0]) for i, x in enumerate(task.rule.names)}
    steps = transient + 1 + np.arange(kept.shape[-1])
    attributes = {"source": task.rule.source, "parameters": json.dumps(numbers)}
    return xr.Dataset(variables, {name: task.values, "kept": steps, **first}, attributes)
