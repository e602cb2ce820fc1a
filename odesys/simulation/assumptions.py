"""What the papers on softmax regression assume, watched along a run: |A|, |x| <= R, |b| <= 1 and alpha >= beta.

None of it is kept by the flow or by descent; bounds that rest on it hold where it does.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from odesys.simulation._arguments import positive
from odesys.simulation.softmax_regression import SoftmaxRegression

__all__ = ["assumptions"]

#: By how much a number may pass its limit and still be at it: rounding.
_ROUNDING = 1e-12


def assumptions(
    problem: SoftmaxRegression, run: xr.Dataset | ArrayLike, *, R: float, beta: float | None = None
) -> xr.Dataset:
    """Whether |A| <= R, |b| <= 1 and, state by state, |x| <= R and alpha = <exp(A x), 1> >= beta.

    Of a matrix problem |A1| |A2| is |A|, |X|_F is |x|, and b and alpha are those of every row.

    Args:
        problem: from `softmax_regression.vector` or `matrix`.
        run: of `descend`, with the array `w`; of a solver, with a variable x_1, ... or X_1_1, ... for each weight; or
            states, in the shape of the weights, with any axes before it.
        R: the bound. beta: the floor of alpha, by default exp(-R^2).
    Returns:
        A Dataset over the run's other dimensions: `x_norm`; `log_alpha`, that of the row where it is least; `kept`,
        whether both are within their limits. Its attrs hold `A_norm`, `b_norm`, `R` and `log_beta`, and in `broken` the
        sentences on what is not kept, or nothing.
    Raises:
        ValueError: R or beta is not positive, the run lacks a weight or has another shape, or a state is not finite.
    Source: Li et al., arXiv:2304.13276; Gao, Song, Yin, arXiv:2305.00660; Gao, Song, Xie, arXiv:2307.02419.
    """
    R = positive("R", R, "the bound of |A| and |x|")
    log_beta = -(R**2) if beta is None else math.log(positive("beta", beta, "the floor of alpha"))
    states = _states(problem, run)
    x = states.values
    axes = tuple(range(-len(problem.shape), 0))
    size = np.sqrt(np.sum(x**2, axis=axes))
    floor = _log_alpha(problem, x)
    dims = states.dims[: states.ndim - len(problem.shape)]
    kept = (size <= R * (1 + _ROUNDING)) & (floor >= log_beta - _ROUNDING)
    A = float(np.linalg.norm(problem.right, 2))
    A *= 1.0 if problem.left is None else float(np.linalg.norm(problem.left, 2))
    b = float(np.linalg.norm(problem.target, axis=-1).max())
    limits = (
        (A, R, f"|A| = {A:.6g} is above R = {R:.6g}"),
        (b, 1.0, f"|b| = {b:.6g} is above 1"),
        (float(size.max()), R, f"|x| reaches {size.max():.6g}, above R = {R:.6g}"),
    )
    broken = [sentence for value, limit, sentence in limits if value > limit * (1 + _ROUNDING)]
    if floor.min() < log_beta - _ROUNDING:
        broken.append(f"log alpha falls to {floor.min():.6g}, below log beta = {log_beta:.6g}")
    return xr.Dataset(
        {"x_norm": (dims, size), "log_alpha": (dims, floor), "kept": (dims, kept)},
        {name: states.coords[name] for name in dims if name in states.coords},
        {"A_norm": A, "b_norm": b, "R": R, "log_beta": log_beta, "broken": "; ".join(broken)},
    )


def _log_alpha(problem: SoftmaxRegression, x: np.ndarray) -> np.ndarray:
    """The least log <exp(z), 1> of a row, which neither over- nor underflows."""
    if problem.left is None:
        z = x @ problem.right.T
        return np.logaddexp.reduce(z, axis=-1)
    z = problem.left @ x @ problem.right.T
    return np.logaddexp.reduce(z, axis=-1).min(axis=-1)


def _states(problem: SoftmaxRegression, run: xr.Dataset | ArrayLike) -> xr.DataArray:
    """The weights along a run, in the shape of the problem's, after all other axes."""
    if isinstance(run, xr.Dataset) and "w" in run:
        states = run["w"]
    elif isinstance(run, xr.Dataset):
        names = _names(problem.shape)
        missing = [name for name in names if name not in run]
        if missing:
            raise ValueError(f"The run lacks the weights {missing}; it has {list(run.data_vars)}.")
        weights = xr.broadcast(*(run[name] for name in names))
        stacked = np.stack([weight.values for weight in weights], axis=-1)
        states = xr.DataArray(
            stacked.reshape(*weights[0].shape, *problem.shape),
            coords={name: weights[0].coords[name] for name in weights[0].dims if name in weights[0].coords},
            dims=(*weights[0].dims, *(f"w_{axis + 1}" for axis in range(len(problem.shape)))),
        )
    else:
        states = xr.DataArray(np.asarray(run, dtype=float))
    if states.shape[states.ndim - len(problem.shape) :] != problem.shape or 0 in states.shape:
        raise ValueError(
            f"The states of a run end with the axes {problem.shape} of the weights, and there is at least one; "
            f"got shape {states.shape}."
        )
    if not np.isfinite(states.values).all():
        raise ValueError("The states of a run must be finite; cut it where it leaves the numbers.")
    return states


def _names(shape: tuple[int, ...]) -> list[str]:
    """x_1, ... or X_1_1, ... row by row, as `symbolic.softmax_regression` names the weights."""
    letter = "x" if len(shape) == 1 else "X"
    return ["_".join([letter, *(str(i + 1) for i in index)]) for index in np.ndindex(shape)]
