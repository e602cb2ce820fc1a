"""The staircase of random small starts: which head learns which mode when, drop after drop.

Until its own take-off every head obeys the cubic flow of `escape`. At the first t* the winner learns its mode d, so
that G_dd = 0 from then on: the other heads keep their components on e_d as they are and race on for the remaining
modes. All heads grow from the start on; what a drop changes is the modes that are left. Half of a drop is made at

    t* + (tau/(lambda^2 v*)) [F(u_h) + pi/(6 sqrt(3))],      u_h^3 = 1 - 1/sqrt(2),  v* = (lambda a)^(-1/3),

F being the primitive of 1/(u^2 - u^5): the correction of the one-mode law to the cubic one, exact for small starts.

The first drop is exact as the start goes to zero; later ones are approximate, since take-offs are not sudden.

Source: derived here; Zhang et al., arXiv:2501.16265, section 4, for the picture of one head after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from odesys.integrators.ensemble import solve_ensemble
from odesys.studies.separate.escape import escapes
from odesys.system import ODESystem
from symbolic.linear_attention import escape

__all__ = ["Drop", "TieError", "drop_times", "half_drop_delay"]

#: Two heads whose times of escape agree to this part take off together.
_TIE = 1e-8


class TieError(ValueError):
    """Two heads escape at one time, so that the cascade cannot tell which of them learns the mode."""


@dataclass(frozen=True)
class Drop:
    """One step of the staircase: head and mode (both numbered from 1), t* (`escape`) and when half of it is done.

    `time` and `escape` count from the start of the run.
    """

    time: float
    escape: float
    head: int
    mode: int


def drop_times(
    v: Float[np.ndarray, " H"],
    k: Float[np.ndarray, "H R D"],
    q: Float[np.ndarray, "H R D"],
    eigenvalues: Float[np.ndarray, " D"],
    context: float,
    tau: float = 1.0,
    *,
    most: int | None = None,
) -> tuple[Drop, ...]:
    """The drops of the loss from a small start, in order, until heads or modes run out or no head can escape any more.

    Zero weights, and others from which no head escapes, stay at the saddle: there is no drop.

    Args:
        v: value weights.
        k, q: rows of key and query in the eigenbasis of the covariance, one row for each mode.
        eigenvalues: lambda_d > 0.
        context: N, without the query.
        tau: time constant, positive.
        most: stop after so many drops. For R > 1 it must be 1: a head that has taken off learns with its spare rows, at
            an exponential pace, and is not described here.
    Raises:
        ValueError: shapes do not fit, a number is not finite or of the wrong sign, or R > 1 without `most` = 1.
        TieError: two heads escape at one time.
    """
    v, k, q, eigenvalues = (np.array(part, dtype=float) for part in (v, k, q, eigenvalues))
    if v.ndim != 1 or k.ndim != 3:
        raise ValueError(
            f"`v` has one axis (heads), `k` three (heads, rows, modes); got {v.shape} and {k.shape}."
        )
    if np.any(eigenvalues <= 0) or not context >= 1:
        raise ValueError(f"Eigenvalues must be positive and N >= 1; got {eigenvalues} and N = {context}.")
    if k.shape[1] > 1 and most != 1:
        raise ValueError(
            f"The cascade is for rank 1; got rank {k.shape[1]}. For every rank the first drop alone is known: `most=1`."
        )
    active, heads, now = eigenvalues.copy(), np.arange(v.size), 0.0
    delays = half_drop_delay(eigenvalues, np.sum(eigenvalues), context, tau)
    drops: list[Drop] = []
    while heads.size and np.any(active > 0):
        times, modes = escapes(v, k, q, active, tau)
        first = int(np.argmin(times))
        if math.isinf(times[first]):
            break
        _refuse_tie(times, first, heads)
        now, mode = now + times[first], int(modes[first])
        drops.append(Drop(float(now + delays[mode]), float(now), int(heads[first]) + 1, mode + 1))
        if len(drops) == most:
            break
        others = np.arange(heads.size) != first
        v, k, q = _moved(v[others], k[others], q[others], active, tau, times[first])
        heads, active[mode] = heads[others], 0.0
    return tuple(sorted(drops, key=lambda drop: drop.time))


def half_drop_delay(
    eigenvalue: Float[np.ndarray, "*modes"], trace: float, context: float, tau: float = 1.0
) -> Float[np.ndarray, "*modes"]:
    """[F(u_h) + pi/(6 sqrt(3))] tau/(lambda^2 v*): from the blow-up of the cubic flow to half of the loss drop.

    Negative: the real drop begins with more than the cubic flow's speed left, and ends at a finite height.

    Args:
        eigenvalue: lambda of each mode; trace: of the covariance; context: N.
    """
    a = 1 + (1 + trace / eigenvalue) / context
    u = math.cbrt(1 - 1 / math.sqrt(2))
    F = (
        -1 / u
        - math.log1p(-u) / 3
        + math.log(1 + u + u**2) / 6
        - math.atan((2 * u + 1) / math.sqrt(3)) / math.sqrt(3)
    )
    return (F + math.pi / (6 * math.sqrt(3))) * tau * np.cbrt(eigenvalue * a) / eigenvalue**2


def _refuse_tie(times: np.ndarray, first: int, heads: np.ndarray) -> None:
    tied = [int(heads[i]) + 1 for i in np.flatnonzero(times <= times[first] * (1 + _TIE))]
    if len(tied) > 1:
        raise TieError(
            f"The heads {tied} escape at one time, {times[first]:.12g} after the last drop; the cascade cannot tell "
            "which of them learns the mode. Change their starts, or integrate the full flow."
        )


def _moved(v, k, q, eigenvalues, tau: float, time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cubic flow of each head until `time` in the modes that are left; learned ones, with 0, stand still."""
    if not v.size:
        return v, k, q
    left, (heads, rank, _) = eigenvalues > 0, k.shape
    dim = int(np.count_nonzero(left))
    numbers = {f"lambda_{d}": float(x) for d, x in enumerate(eigenvalues[left], 1)} | {"tau": tau}
    flow = escape.model(dim=dim, rank=rank).flow
    start = np.concatenate([v[:, None], *(part[..., left].reshape(heads, -1) for part in (k, q))], axis=1)
    run = solve_ensemble(
        ODESystem(flow, numbers),
        dict(zip(flow.names, start.T, strict=True)),
        [0.0, time],
        method="DOP853",
        rtol=1e-12,
    )
    end = np.stack([run[name].values[:, -1] for name in flow.names], axis=1)
    k, q = k.copy(), q.copy()
    k[..., left], q[..., left] = (part.reshape(heads, rank, dim) for part in np.split(end[:, 1:], 2, axis=1))
    return end[:, 0], k, q
