"""How flows leave fixed points: along unstable eigenvectors exponentially, from non-strict saddles like a power."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from fixedpoints.points import FixedPoint
from odesys.lambdify import compile_field
from odesys.system import ODESystem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Escape", "unstable_manifold"]

#: The degree up to which terms are looked for that lead away from a point without unstable eigenvalue.
_MOST_TERMS = 6
#: Steps of the search for rays, and the size of what may still turn them.
_TURNS, _TURNED = 2_000, 1e-10


@dataclass(frozen=True, eq=False)
class Escape:
    """A trajectory on the unstable manifold of a fixed point.

    Near the point, with s the distance from it along `direction`,

        kind "exponential":  ds/dt = rate s;        s grows by a factor e in the time 1 / rate,
        kind "algebraic":    ds/dt = rate s^order;  a start at s leaves after 1 / ((order - 1) rate s^(order - 1)).

    Args:
        direction: unit vector, by state name.
        kind: "exponential" or "algebraic".
        rate: the real part of the eigenvalue, or the coefficient of the leading term.
        order: 1 for exponential escape, else the degree of the leading term.
        run: the trajectory, dim "time", from the point's neighbourhood on.
        stopped: why it ends before the last time (a blow-up, the edge of the domain), or None.
    """

    direction: Mapping[str, float]
    kind: str
    rate: float
    order: int
    run: xr.Dataset
    stopped: str | None = None


def unstable_manifold(
    system: ODESystem,
    point: FixedPoint | Mapping[str | sp.Symbol, float],
    times: Iterable[float],
    *,
    offset: float | None = None,
) -> tuple[Escape, ...]:
    """Trajectories that leave a fixed point x*, one from x* + offset v for each direction v of escape.

    Directions: v and -v for each eigenvector v with a positive eigenvalue; for a pair of complex eigenvalues the
    real part of the eigenvector, since its trajectory winds through all others. A manifold of more dimensions
    also holds what lies between. If no eigenvalue is unstable but some are 0 (a non-strict saddle, say), the
    rays  F(v) = c v, c > 0,  of the leading term F of the flow on the directions that the Jacobian leaves open:
    those towards which neighbouring trajectories turn, and of them those that a search from 16 directions for
    each dimension finds.

    Args:
        system: an autonomous flow.
        point: a fixed point, as found, or its location.
        times: when the trajectories are wanted, from the first, at which they start.
        offset: how far from the point they start; by default 1e-6 of its largest coordinate, or of 1 at the origin.
    Returns:
        No trajectory for points from which none leads away.
    Raises:
        TypeError: the system is no ODESystem.
        ValueError: the offset is not positive, or the point has eigenvalues on the imaginary axis that leave
            open whether anything leads away.
        NotAFixedPointError: the location is none.
    """
    from odesys.integrators.contract import IntegrationError, solve

    if not isinstance(system, ODESystem):
        raise TypeError(f"Unstable manifolds are those of an ODESystem; got {type(system).__name__}.")
    known = _classified(system, point)
    names = system.field.names
    at = np.array([float(known.location[name]) for name in names])
    step = 1e-6 * (np.max(np.abs(at)) or 1.0) if offset is None else offset
    if not step > 0:
        raise ValueError(f"`offset` must be a positive distance; got {offset!r}.")
    instants = np.asarray(list(times), dtype=float)
    escapes = []
    for vector, kind, rate, order in _directions(system, known, at):
        start = dict(zip(names, (at + step * vector).tolist(), strict=True))
        direction = dict(zip(names, vector.tolist(), strict=True))
        try:
            escapes.append(Escape(direction, kind, rate, order, solve(system, start, instants)))
        except IntegrationError as error:
            escapes.append(Escape(direction, kind, rate, order, error.partial, error.reason))
    return tuple(escapes)


def _classified(system: ODESystem, point: FixedPoint | Mapping) -> FixedPoint:
    if isinstance(point, FixedPoint) and point.dims is not None:
        return point
    from fixedpoints.stability import classify

    found = classify(system, point.location if isinstance(point, FixedPoint) else point)
    if found.dims is None:
        raise ValueError(
            f"The flow is not differentiable at {dict(found.location)}: its directions of escape are not known."
        )
    return found


def _directions(
    system: ODESystem, point: FixedPoint, at: np.ndarray
) -> list[tuple[np.ndarray, str, float, int]]:
    """Unit vectors, with the kind of escape, its rate and its order."""
    unstable, centre, _ = point.dims or (0, 0, 0)
    if not unstable:
        return _rays(system, point, centre) if centre else []
    compiled = compile_field(system)
    values, vectors = np.linalg.eig(compiled.jacobian(0.0, at, compiled.args))
    found = []
    for k in np.argsort(-values.real)[:unstable]:
        vector = vectors[:, k].real / np.linalg.norm(vectors[:, k].real)
        rate = float(values[k].real)
        if values[k].imag == 0:
            found += [(sign * vector, "exponential", rate, 1) for sign in (1, -1)]
        elif values[k].imag > 0:
            found.append((vector, "exponential", rate, 1))
    return found


def _rays(system: ODESystem, point: FixedPoint, centre: int) -> list[tuple[np.ndarray, str, float, int]]:
    from fixedpoints.near.balls import float_matrix
    from fixedpoints.near.centre_manifold import NotSemisimpleError, kernel
    from fixedpoints.near.local import located

    local = located(system, point.location, point.enclosure).nominal
    try:
        null = kernel(local, centre)
    except NotSemisimpleError as reason:
        raise ValueError(
            f"The eigenvalues on the imaginary axis at {dict(point.location)} leave open whether anything leads "
            f"away: {reason}. Follow a trajectory from near it with odesys.solve."
        ) from None
    right = float_matrix(null.right)
    order, leading = _leading_term(local, null, right.T)
    if leading is None:
        return []
    return [
        (vector, "algebraic", rate, order) for vector, rate in _stationary(leading, np.linalg.qr(right.T)[0])
    ]


def _leading_term(local, null, basis: np.ndarray) -> tuple[int, Callable[[np.ndarray], np.ndarray] | None]:
    """Degree and value F(v), for unit vectors v (n, m) in the null space, of the first term that does not vanish."""
    from fixedpoints.near.balls import as_float, sign
    from fixedpoints.near.centre_manifold import on_kernel

    coordinates = np.linalg.pinv(basis)
    for order, parts in on_kernel(local, null, _MOST_TERMS):
        terms = [[(p, as_float(c)) for p, c in part.items() if sign(c)] for part in parts]
        if any(terms):
            return order, partial(_leading, terms, basis, coordinates)
    return _MOST_TERMS, None


def _leading(terms: list, basis: np.ndarray, coordinates: np.ndarray, v: np.ndarray) -> np.ndarray:
    return basis @ _polynomials(terms, coordinates @ v)


def _polynomials(terms: list[list[tuple[tuple[int, ...], float]]], u: np.ndarray) -> np.ndarray:
    """Homogeneous polynomials at points u (d, m), shape (d, m)."""
    zero = np.zeros(u.shape[1])
    return np.stack([sum((c * np.prod(u[list(p)], axis=0) for p, c in part), zero) for part in terms])


def _stationary(
    leading: Callable[[np.ndarray], np.ndarray], basis: np.ndarray
) -> list[tuple[np.ndarray, float]]:
    """Unit vectors v in the span of a basis (n, d) with F(v) = c v, c > 0, that attract their neighbours."""
    v = basis @ _spread(basis.shape[1])
    v /= np.linalg.norm(v, axis=0)
    size = np.max(np.linalg.norm(leading(v), axis=0))
    if size == 0:
        return []
    for _ in range(_TURNS):
        v = v + 0.2 * leading(v) / size
        v /= np.linalg.norm(v, axis=0)
    image = leading(v)
    rates = np.sum(image * v, axis=0)
    good = (rates > 1e-9 * size) & (np.linalg.norm(image - rates * v, axis=0) < _TURNED * size)
    found: list[tuple[np.ndarray, float]] = []
    for vector, rate in zip(v[:, good].T, rates[good], strict=True):
        if all(np.linalg.norm(vector - other) > 1e-6 for other, _ in found):
            found.append((vector, float(rate)))
    return found


def _spread(dimension: int) -> np.ndarray:
    """Directions (d, m) to begin with, spread over the sphere and in general position."""
    if dimension == 1:
        return np.array([[1.0, -1.0]])
    rows, columns = np.arange(1, dimension + 1), np.arange(1, 16 * dimension + 1)
    return np.cos(np.outer(np.sqrt(rows + 1.0), columns) + rows[:, None])
