"""Two results held together: theory against training, integrator against formula, errors against an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from odesys.check import Check

if TYPE_CHECKING:
    from sympy import Expr
    from xarray import DataArray, Dataset

__all__ = ["check_order", "compare", "identity", "order_of_convergence"]

#: Relative tolerances when none is asked for, each with its reason.
DESCENT_TOLERANCE = (0.02, "2 % of the theory's range, about what an eye sees in a plot")
FLOW_TOLERANCE = (1e-6, "100 times the default rtol 1e-8, for the errors that a flow gathers on its way")


class _Clock(Protocol):
    def time(self, steps, /) -> np.ndarray: ...


def compare(
    theory: Dataset,
    truth: Dataset,
    *,
    clock: _Clock | None = None,
    tolerance: float | None = None,
    reason: str = "",
    variables: Sequence[str] | None = None,
    study: str = "",
    source: str = "",
) -> list[Check]:
    """Hold a run to a theory's courses,  max_t |truth - theory| / (max theory - min theory) <= tolerance.

    The comparison is made at those instants of the run that lie in the theory's time range. Where the theory
    has other instants, a cubic spline through its points is read, provided that the spline through every
    second point already predicts the rest to within the tolerance.

    Args:
        theory: dim "time" and any further dims.
        truth: dim "step", or "time" in the theory's units, and the theory's further dims.
        clock: gives the time of a step, `clock.time(steps)`; needed exactly when `truth` has "step".
        tolerance: largest error relative to the theory's range (to its size where it is constant); by default
            0.02 against steps of descent and 1e-6 against a flow.
        reason: why that tolerance.
        variables: which variables to compare; by default all that both have.
        study, source: passed on to the checks.
    Returns:
        One check per variable, "descent: NAME" against steps or "flow: NAME" against times.
    Raises:
        ValueError: a dim or the clock is missing or superfluous, no variable is shared, fewer than two
            instants of the run lie in the theory's range, or the theory is not finite or too coarse.
    """
    kind = _kind_of(theory, truth, clock)
    if tolerance is None:
        tolerance, reason = DESCENT_TOLERANCE if kind == "descent" else FLOW_TOLERANCE
    times = np.asarray(truth["time"].values if clock is None else clock.time(truth["step"].values))
    grid = _grid(theory)
    chosen, times = _overlap(grid, times)
    reason = "; ".join(filter(None, (reason, f"largest relative error at {times.size} instants")))
    checks = []
    for name in _shared(theory, truth, variables):
        expected, measured = _arrays(theory[name], truth[name])
        if not np.isfinite(expected).all():
            raise ValueError(f"The theory's {name!r} holds nan or infinity, so nothing can be held to it.")
        scale = np.ptp(expected) or np.abs(expected).max() or 1.0
        error = np.abs(measured[chosen] - _read(grid, expected, times, tolerance * scale, name)).max() / scale
        checks.append(Check(f"{kind}: {name}", error, 0.0, tolerance, source, reason, study))
    return checks


def order_of_convergence(steps: Sequence[float], errors: Sequence[float]) -> float:
    """The order p of  error = C step^p,  the least-squares slope of ln(error) over ln(step).

    Raises:
        ValueError: lengths differ, fewer than two different steps, or a number is not positive and finite.
    """
    x, y = np.asarray(steps, dtype=float), np.asarray(errors, dtype=float)
    if x.ndim != 1 or x.shape != y.shape or np.unique(x).size < 2:
        raise ValueError(
            "An order needs one error for each of at least two different steps; "
            f"got {x.size} steps and {y.size} errors."
        )
    for name, values in (("steps", x), ("errors", y)):
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise ValueError(
                f"`{name}` must be positive and finite, to have logarithms; got {values.tolist()}."
            )
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def check_order(
    name: str,
    steps: Sequence[float],
    errors: Sequence[float],
    *,
    order: float,
    tolerance: float,
    reason: str,
    study: str = "",
    source: str = "",
) -> Check:
    """A check that errors fall with a power of the step,  error = C step^order.

    Args:
        name: the name of the check, for example "descent: error is of order one in the step".
        steps, errors: step sizes and the errors found with them.
        order: the expected power.
        tolerance, reason: how far the measured power may lie from it, and why.
        study, source: passed on to the check.
    Raises:
        ValueError: as `order_of_convergence`.
    """
    return Check(name, order_of_convergence(steps, errors), order, tolerance, source, reason, study)


def identity(
    name: str, residuals: Sequence[Expr], *, reason: str = "", study: str = "", source: str = ""
) -> Check:
    """A check that expressions vanish identically: how many of them algebra did not prove zero, against 0.

    Args:
        name: the name of the check, for example "derive: the flow is x (1 - x)".
        residuals: expressions, each the difference of the two sides of an identity.
        reason, study, source: passed on to the check.
    Raises:
        ValueError: there is no residual, so that nothing would be checked.
    """
    from symbolic.zero import is_zero

    if not residuals:
        raise ValueError(f"{name!r} has no residuals, so there is nothing to check.")
    unproven = sum(is_zero(residual) is not True for residual in residuals)
    reason = reason or f"exact: counts what algebra does not prove, of {len(residuals)}"
    return Check(name, unproven, 0, 0, source, reason, study)


def _kind_of(theory: Dataset, truth: Dataset, clock: _Clock | None) -> str:
    if "time" not in theory.dims:
        raise ValueError(f'The theory must have the dim "time"; it has {sorted(map(str, theory.dims))}.')
    if "step" in truth.dims:
        if clock is None:
            raise ValueError(
                'The run counts steps (dim "step"), so a clock is needed to tell their times: '
                "compare(theory, truth, clock=odesys.clock.gradient_flow(rate))."
            )
        return "descent"
    if "time" not in truth.dims:
        raise ValueError(
            f'The run must have the dim "step" or "time"; it has {sorted(map(str, truth.dims))}.'
        )
    if clock is not None:
        raise ValueError('The run already has the dim "time"; leave `clock` out.')
    return "flow"


def _shared(theory: Dataset, truth: Dataset, variables: Sequence[str] | None) -> list[str]:
    ours, theirs = (
        {
            str(name)
            for name, array in run.data_vars.items()
            if dim in array.dims and array.dtype.kind in "fiu"
        }
        for run, dim in ((theory, "time"), (truth, _moving_dim(truth)))
    )
    if variables is None:
        if not ours & theirs:
            raise ValueError(
                f"Theory and run share no variable: {sorted(ours)} against {sorted(theirs)}. "
                "Rename one side with Dataset.rename."
            )
        return sorted(ours & theirs)
    if isinstance(variables, str) or not variables:
        raise ValueError(f"`variables` must be a non-empty list of names; got {variables!r}.")
    missing = [name for name in variables if name not in ours & theirs]
    if missing:
        raise ValueError(
            f"The variables {missing} are not in both; the theory has {sorted(ours)}, "
            f"the run {sorted(theirs)}."
        )
    return list(variables)


def _moving_dim(run: Dataset | DataArray) -> str:
    return "step" if "step" in run.dims else "time"


def _grid(theory: Dataset) -> np.ndarray:
    times = np.asarray(theory["time"].values, dtype=float)
    if times.size < 2 or not (np.diff(times) > 0).all():
        raise ValueError(
            f"The theory needs at least two instants in increasing order; got {times.size}: {times}."
        )
    return times


def _overlap(grid: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which instants lie in the theory's range, and these instants, rounding at its ends removed."""
    start, end = grid[0], grid[-1]
    slack = 1e-12 * max(abs(start), abs(end))
    chosen = (times >= start - slack) & (times <= end + slack)
    # One instant is no time course: a run with a wrong clock would agree at t = 0 and nowhere else.
    if np.unique(times[chosen]).size < 2:
        raise ValueError(
            f"Fewer than two instants of the run, which spans [{times.min():g}, {times.max():g}], lie in the "
            f"theory's time range [{start:g}, {end:g}]. Check the clock, or evaluate the theory on the run's "
            "times."
        )
    return chosen, np.clip(times[chosen], start, end)


def _arrays(expected: DataArray, measured: DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Both variables as arrays, instants first and the further dims in one order."""
    further = [dim for dim in expected.dims if dim != "time"]
    moving = _moving_dim(measured)
    same = set(measured.dims) == {moving, *further}
    if not same or any(expected.sizes[dim] != measured.sizes[dim] for dim in further):
        raise ValueError(
            f"{expected.name!r} has the sizes {dict(expected.sizes)} in the theory but "
            f"{dict(measured.sizes)} in the run. Select the same entries in both before comparing."
        )
    return (
        np.asarray(expected.transpose("time", *further).values, dtype=float),
        np.asarray(measured.transpose(moving, *further).values, dtype=float),
    )


def _read(grid: np.ndarray, values: np.ndarray, times: np.ndarray, tolerance: float, name: str) -> np.ndarray:
    """The theory at other instants; its own points where the instants are the same up to rounding."""
    nearest = np.clip(np.searchsorted(grid, times), 1, grid.size - 1)
    nearest -= times - grid[nearest - 1] < grid[nearest] - times
    if np.allclose(grid[nearest], times, rtol=1e-12, atol=1e-12 * (grid[-1] - grid[0])):
        return values[nearest]
    from scipy.interpolate import CubicSpline

    doubt = np.inf
    if grid.size >= 8:
        doubt = np.abs(CubicSpline(grid[::2], values[::2])(grid[1:-1]) - values[1:-1]).max()
    if doubt > tolerance:
        raise ValueError(
            f"The theory's {grid.size} instants are too few to interpolate {name!r} to within "
            f"{tolerance:.3g}: every second one predicts the others to {doubt:.3g} only. "
            "Evaluate the theory on the run's own times, clock.time(truth.step)."
        )
    return CubicSpline(grid, values)(times)
