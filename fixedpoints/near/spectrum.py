"""Eigenvalues with error bounds, and on which side of the stability boundary each lies.

Three ways, by what the Jacobian J is made of:

* rationals: the roots of its characteristic polynomial, certified by FLINT; a root on the boundary (the
  imaginary axis for flows, the unit circle for maps) is proven to lie there, because its mirror image is
  itself a root in the same isolating ball.
* balls (irrational coordinates): Gershgorin discs of V^-1 J V, where V holds approximate eigenvectors. They
  are rigorous for every V and every matrix in the balls. An eigenvalue whose disc meets the boundary counts
  as lying on it.
* floats: the same, with every float uncertain by a relative 2^-52 for the error bounds; for decisions by
  `SLACK` = 2^-40, and J's entries by as much of their natural size. This leaves room for the rounding errors
  of a change of coordinates with a condition number up to about a thousand. Natural size means: after
  diagonal balancing (Osborne 1960), so that units do not matter, and separately for states that act on each
  other mutually, so that fast ones do not hide the sign of slow ones. For planar flows, in closed form:

      trace, determinant and discriminant vanish when they are at most SLACK times
      |a| + |d| + |bc|^(1/2),  |ad| + |bc|  and  (|a| + |d|)^2 + 4 |bc|.

Of a map f the Jacobian of f - id is taken, so that multipliers next to 1 are as accurate as their distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flint import acb, acb_mat, arb, ctx, fmpq, fmpq_mat

from fixedpoints.near.balls import (
    SLACK,
    Matrix,
    Number,
    as_ball,
    as_float,
    float_matrix,
    identity,
    is_exact,
    radius,
    sign,
    widened,
)

__all__ = ["MOST_EXACT", "Eigenvalue", "Planar", "Spectrum", "planar", "spectrum"]

#: Up to this many states the characteristic polynomial of a rational Jacobian is factored.
MOST_EXACT = 12
#: Up to this many states eigenvectors come with many digits; beyond, as floats.
_MOST_DIGITS = 16


@dataclass(frozen=True)
class Eigenvalue:
    """An eigenvalue; `side` is 1 (unstable), 0 (on the boundary) or -1 (stable).

    On the boundary `kind` says where: "zero" (0; for maps the multiplier 1), "flip" (the multiplier -1) or
    "turning" (one of a complex pair). `error` bounds the distance of `value` from the truth.
    """

    value: complex
    error: float
    side: int
    kind: str = ""


@dataclass(frozen=True)
class Spectrum:
    """All eigenvalues, by falling real part (for maps by falling modulus)."""

    eigenvalues: tuple[Eigenvalue, ...]

    @property
    def dims(self) -> tuple[int, int, int]:
        """Dimensions of the unstable, centre and stable subspaces."""
        sides = [e.side for e in self.eigenvalues]
        return sides.count(1), sides.count(0), sides.count(-1)

    def count(self, kind: str) -> int:
        """How many lie on the boundary in that way."""
        return sum(e.kind == kind for e in self.eigenvalues)

    @property
    def boundary(self) -> tuple[int, int, int]:
        """Numbers of zero, flip and turning eigenvalues."""
        return self.count("zero"), self.count("flip"), self.count("turning")


@dataclass(frozen=True)
class Planar:
    """Signs of trace, determinant and discriminant tr^2 - 4 det of a planar flow; 0 where they vanish.

    `scalar` says whether the Jacobian is a multiple of the unit matrix.
    """

    trace: int
    determinant: int
    discriminant: int
    scalar: bool


def planar(slopes: Matrix, *, loose: bool) -> Planar:
    """The signs that name a planar fixed point of a flow; `loose` allows for `SLACK`."""
    (a, b), (c, d) = slopes
    diagonal, coupling = abs(as_ball(a)) + abs(as_ball(d)), abs(as_ball(b * c)).upper()
    products = abs(as_ball(a * d)) + coupling
    size = diagonal + coupling.sqrt()

    def certain(value: Number, scale: arb) -> int:
        return sign(widened(value, SLACK * scale.upper())) if loose else sign(value)

    return Planar(
        certain(a + d, size),
        certain(a * d - b * c, products),
        certain((a - d) * (a - d) + 4 * b * c, diagonal * diagonal + 4 * coupling),
        # Off-diagonal entries are compared with the diagonal: a sheared multiple of the unit matrix is one.
        not any(certain(entry, size) for entry in (b, c, a - d)),
    )


def spectrum(slopes: Matrix, *, is_map: bool, loose: Matrix | None = None) -> Spectrum:
    """Eigenvalues of a flow, or multipliers of a map, with bounds and sides.

    Args:
        slopes: the Jacobian of phi: of f for a flow, of f - id for a map.
        loose: for decisions, the same with floats uncertain by `SLACK`; None if there are none.
    """
    if is_exact(slopes) and loose is None and len(slopes) <= MOST_EXACT:
        found = _certified(slopes, is_map)
    elif len(slopes) == 1:
        found = [_alone(slopes[0][0], is_map, loose)]
    else:
        found = _enclosed(slopes, is_map, loose)
    found = [_on_boundary(e, is_map) for e in found]
    found.sort(key=lambda e: _order(e.value, is_map))
    if len(slopes) == 2 and not is_map:
        found = _as_named(found, planar(slopes if loose is None else loose, loose=loose is not None))
    return Spectrum(tuple(found))


def _as_named(found: list[Eigenvalue], signs: Planar) -> list[Eigenvalue]:
    """The two eigenvalues of a planar flow, on the sides that the closed form gives."""
    both = {1: ((1, ""), (1, "")), -1: ((-1, ""), (-1, "")), 0: ((0, "turning"), (0, "turning"))}
    if signs.determinant < 0:
        sides = ((1, ""), (-1, ""))
    elif signs.determinant > 0:
        sides = both[signs.trace]
    else:
        sides = {1: ((1, ""), (0, "zero")), -1: ((0, "zero"), (-1, "")), 0: ((0, "zero"), (0, "zero"))}[
            signs.trace
        ]
    if signs.discriminant == 0:
        middle = _tidy((found[0].value + found[1].value) / 2)
        found = [Eigenvalue(middle, e.error + abs(e.value - middle), e.side, e.kind) for e in found]
    return [_on_boundary(replace(e, side=s, kind=k), False) for e, (s, k) in zip(found, sides, strict=True)]


def _on_boundary(e: Eigenvalue, is_map: bool) -> Eigenvalue:
    """A value that lies on the boundary to within its error, written as one that does."""
    if e.side != 0:
        return e
    if e.kind == "turning":
        value = e.value / abs(e.value) if is_map else complex(0.0, e.value.imag)
    else:
        value = {"zero": float(is_map), "flip": -1.0}[e.kind]
    moved = abs(value - e.value)
    return replace(e, value=value, error=e.error + moved) if moved <= e.error else e


def _order(value: complex, is_map: bool) -> tuple[float, float, float]:
    # Rounded, so that the two of a conjugate pair are not parted by a last digit.
    size = abs(value) if is_map else value.real
    return -float(f"{size:.12e}"), -float(f"{value.real:.12e}"), -value.imag


def _alone(entry: Number, is_map: bool, loose: Matrix | None) -> Eigenvalue:
    shift = int(is_map)
    value = as_float(entry + shift)
    asked = entry if loose is None else widened(loose[0][0], SLACK * abs(as_float(entry)))
    # |1 + nu| > 1 exactly when nu (2 + nu) > 0.
    side = sign(asked) * (sign(asked + 2) if is_map else 1)
    kind = "" if side else ("flip" if is_map and value < 0 else "zero")
    return Eigenvalue(value, radius(entry) + abs(value) * 2.0**-53, side, kind)


# Rational Jacobians


def _certified(slopes: Matrix, is_map: bool) -> list[Eigenvalue]:
    jacobian = fmpq_mat(slopes)
    if is_map:
        jacobian = jacobian + fmpq_mat(identity(len(slopes)))
    found = []
    for factor, multiplicity in jacobian.charpoly().numer().factor()[1]:
        for eigenvalue in _roots(factor, is_map):
            found += [eigenvalue] * int(multiplicity)
    return found


def _roots(factor: Any, is_map: bool) -> list[Eigenvalue]:
    if factor.degree() == 1:
        root = -fmpq(int(factor[0]), int(factor[1]))
        boundary = abs(root) - 1 if is_map else root
        side = (boundary > 0) - (boundary < 0)
        kind = "" if side else ("flip" if is_map and root < 0 else "zero")
        value = as_float(root)
        return [
            Eigenvalue(value, float(abs(as_ball(root - fmpq(*value.as_integer_ratio()))).upper()), side, kind)
        ]
    bits, mirrored = 128, _is_mirrored(factor, is_map)
    while True:
        with ctx.workprec(bits):
            balls = [ball for ball, _ in factor.complex_roots()]
            sides = [_side_of(ball, balls, mirrored, is_map) for ball in balls]
            if None not in sides:
                return [_eigenvalue(b, s) for b, s in zip(balls, sides, strict=True)]
        bits *= 2


def _eigenvalue(ball: acb, side: int) -> Eigenvalue:
    value = complex(float(ball.real.mid()), float(ball.imag.mid()))
    error = float(abs(ball - acb(value.real, value.imag)).upper())
    return Eigenvalue(_tidy(value), error, side, "" if side else "turning")


def _is_mirrored(factor: Any, is_map: bool) -> bool:
    """Whether the roots of an irreducible polynomial lie symmetric to the boundary.

    If one does lie on it, they do: then the polynomial shares a root with its mirror image, so it is that.
    """
    coefficients = [int(c) for c in factor.coeffs()]
    if is_map:
        return coefficients == coefficients[::-1]
    return not any(coefficients[1::2])


def _side_of(ball: acb, balls: Sequence[acb], mirrored: bool, is_map: bool) -> int | None:
    """On which side a root lies; None: more digits are needed."""
    distance = abs(ball) - 1 if is_map else ball.real
    if not distance.contains(0):
        return 1 if distance > 0 else -1
    mirror = 1 / ball.conjugate() if is_map else -ball.conjugate()
    # The mirror image is a root in some ball; if it can only be in this one, then it is this root.
    alone = [other is ball for other in balls if other.overlaps(mirror)] == [True]
    return 0 if mirrored and alone else None


# Jacobians of balls

#: Centre and reach.
_Disc = tuple[acb, arb]


def _enclosed(slopes: Matrix, is_map: bool, loose: Matrix | None) -> list[Eigenvalue]:
    """Eigenvalues in Gershgorin discs; the discs of the loosened matrix decide, those of the matrix bound."""
    basis, discs = _best_basis(slopes)
    deciding = discs if loose is None else _discs(_loosened(loose), *basis)
    decided = {}
    for group in _clusters(deciding):
        decided |= dict.fromkeys(group, _side_of_disc(*_around([deciding[i] for i in group]), is_map))
    return [
        Eigenvalue(value, error, *decided[i])
        for group in _clusters(discs)
        for i, value, error in _bounded(group, discs, is_map)
    ]


def _bounded(group: list[int], discs: list[_Disc], is_map: bool) -> list[tuple[int, complex, float]]:
    """One value for a whole cluster, real where its conjugate can be nothing else."""
    centre, reach = _around([discs[i] for i in group])
    others = [discs[j] for j in range(len(discs)) if j not in group]
    lonely = all(abs(centre.conjugate() - c) > reach + r for c, r in others)
    if lonely and not abs(centre.imag) > reach:
        centre = acb(centre.real)
    centre = centre + int(is_map)
    value = complex(float(centre.real.mid()), float(centre.imag.mid()))
    error = float((abs(centre - acb(value.real, value.imag)) + reach).upper()) * (1 + 2.0**-50)
    return [(i, _tidy(value), error) for i in group]


def _tidy(value: complex) -> complex:
    return value.real if value.imag == 0 else value


def _side_of_disc(centre: acb, reach: arb, is_map: bool) -> tuple[int, str]:
    distance = centre.real
    if is_map:
        # |1 + c| - 1 without cancellation.
        distance = (2 * centre.real + abs(centre) * abs(centre)) / (abs(1 + centre) + 1)
    if abs(distance) > reach:
        return (1 if distance > 0 else -1), ""
    if not abs(centre) > reach:
        return 0, "zero"
    return 0, "flip" if is_map and not abs(centre + 2) > reach else "turning"


def _best_basis(jacobian: Matrix) -> tuple[tuple[acb_mat, acb_mat], list[_Disc]]:
    """Approximate eigenvectors, their inverse, and the tightest discs.

    The eigenvectors of a defective matrix are no basis; those of a matrix a rounding error away are one.
    """
    middle = [[as_ball(x).mid() for x in row] for row in jacobian]
    size = max(abs(float(x)) for row in middle for x in row)
    spread = max(radius(x) for row in jacobian for x in row)
    candidates = []
    for shift in (0.0, max(spread, 2.0**-128 * size), max(2.0**-52 * size, spread)):
        basis = _eigenvectors(middle, shift)
        if basis is not None:
            candidates.append((basis, _discs(jacobian, *basis)))
            if shift == 0.0 and len(_clusters(candidates[0][1])) == len(jacobian):
                break
    if not candidates:
        n = len(jacobian)
        unit = acb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
        candidates.append(((unit, unit), _discs(jacobian, unit, unit)))
    return min(candidates, key=lambda c: sum(float(reach) for _, reach in c[1]))


def _eigenvectors(middle: list[list[arb]], shift: float) -> tuple[acb_mat, acb_mat] | None:
    n = len(middle)
    # Any matrix in general position serves; this one is the same in every run.
    moved = [
        [x + shift * math.cos(1 + 2.3 * i + 3.7 * j) for j, x in enumerate(row)]
        for i, row in enumerate(middle)
    ]
    try:
        if n <= _MOST_DIGITS:
            columns = acb_mat(moved).eig(right=True, algorithm="approx")[1].mid().transpose().tolist()
            sizes = [max(abs(z).mid() for z in column) for column in columns]
            vectors = (
                acb_mat([[z / s for z in c] for c, s in zip(columns, sizes, strict=True)]).transpose().mid()
            )
        else:
            floats = np.linalg.eig(np.array([[float(x) for x in row] for row in moved]))[1]
            vectors = acb_mat([[acb(z.real, z.imag) for z in row] for row in floats.tolist()])
        return vectors, vectors.inv()
    except (ZeroDivisionError, ValueError, np.linalg.LinAlgError):
        return None


def _discs(jacobian: Matrix, vectors: acb_mat, inverse: acb_mat) -> list[_Disc]:
    """Gershgorin's discs of V^-1 J V: a component of k of them holds exactly k eigenvalues."""
    rows = (inverse * acb_mat([[acb(as_ball(x)) for x in row] for row in jacobian]) * vectors).tolist()
    discs = []
    for i, row in enumerate(rows):
        centre = acb(row[i].real.mid(), row[i].imag.mid())
        reach = sum((abs(x).upper() for j, x in enumerate(row) if j != i), abs(row[i] - centre).upper())
        discs.append((centre, reach.upper()))
    return discs


def _clusters(discs: list[_Disc]) -> list[list[int]]:
    """Indices of discs that hang together."""
    groups: list[list[int]] = []
    for i, (c, r) in enumerate(discs):
        touching = [g for g in groups if any(not abs(c - discs[j][0]) > r + discs[j][1] for j in g)]
        groups = [g for g in groups if g not in touching] + [[i, *(j for g in touching for j in g)]]
    return groups


def _around(discs: list[_Disc]) -> _Disc:
    """One disc around several."""
    if len(discs) == 1:
        return discs[0]
    mean = sum((c for c, _ in discs), acb(0)) / len(discs)
    centre = acb(mean.real.mid(), mean.imag.mid())
    reaches = [(abs(c - centre) + r).upper() for c, r in discs]
    return centre, max(reaches, key=float)


def _loosened(jacobian: Matrix) -> Matrix:
    """J with every entry uncertain by `SLACK` of its natural size."""
    floats = np.abs(float_matrix(jacobian))
    mutual = _mutual(floats)
    scale = _balancing(np.where(mutual, floats, 0.0))
    balanced = np.where(mutual, floats * scale[:, None] / scale[None, :], 0.0)
    size = np.sqrt(balanced.max(axis=1))
    noise = SLACK * mutual * size[:, None] * size[None, :] * scale[None, :] / scale[:, None]
    return [
        [widened(x, e) if e else x for x, e in zip(*rows, strict=True)]
        for rows in zip(jacobian, noise.tolist(), strict=True)
    ]


def _mutual(floats: np.ndarray) -> np.ndarray:
    """Whether i acts on j and j on i, directly or through others."""
    reach = (floats != 0) | np.eye(len(floats), dtype=bool)
    for _ in range(len(floats).bit_length()):
        reach = reach @ reach
    return reach & reach.T


def _balancing(floats: np.ndarray) -> np.ndarray:
    """d with row and column norms of  diag(d) J diag(d)^-1  alike (Osborne's iteration, off the diagonal)."""
    matrix = floats - np.diag(np.diag(floats))
    scale = np.ones(len(matrix))
    for _ in range(20):
        for i in range(len(matrix)):
            row = (matrix[i] * scale[i] / scale).max()
            column = (matrix[:, i] * scale / scale[i]).max()
            if row > 0 and column > 0:
                scale[i] *= math.sqrt(column / row)
    return scale
