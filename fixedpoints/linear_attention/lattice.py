"""Every function at which separate key and query can stop, ordered like the subsets of modes that it has learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from fixedpoints.linear_attention.modes import Modes, checked_heads, checked_rank
from fixedpoints.linear_attention.points import Point
from fixedpoints.points import Certificate

__all__ = ["MOST", "Lattice", "TooManyPointsError", "losses", "plateaus"]

#: The most points that are listed in arrays, 2^24: 128 MiB of losses.
MOST = 2**24


class TooManyPointsError(ValueError):
    """The points are too many to list; single ones are there all the same."""


def losses(eigenvalues: Iterable[float], context: float) -> Float[np.ndarray, " subsets"]:
    """L(M_S) = tr(Lambda) - sum_{d in S} lambda_d/a_d for every set S of modes, shape (2^D,).

    Bit d - 1 of the place in the array says whether mode d is in S: place 0 is M = 0, place 2^D - 1 the optimum.
    Heads do not matter here: with H R < D the flow stops at the sets of at most H R modes (`Lattice`).

    Raises:
        ValueError: an eigenvalue is not positive and finite, they do not fall, or N < 1.
        TooManyPointsError: D > 24.

    Source: arXiv:2501.16265, section 4.
    """
    modes = Modes(tuple(eigenvalues), context)
    if 2**modes.dim > MOST:
        raise TooManyPointsError(
            f"D = {modes.dim} has 2^{modes.dim} sets of modes, more than 2^24, which is too many to list. "
            "`Lattice(eigenvalues, context, heads, rank)` gives any of them, their number, and the nested ones."
        )
    return _doubled(modes)


def _doubled(modes: Modes) -> Float[np.ndarray, " subsets"]:
    found = np.empty(2**modes.dim)
    found[0] = modes.trace
    for d, drop in enumerate(modes.drops):
        np.subtract(found[: 1 << d], drop, out=found[1 << d : 2 << d])
    return found


def plateaus(
    eigenvalues: Iterable[float], context: float, heads: int, rank: int = 1
) -> Float[np.ndarray, " plateaus"]:
    """The losses L(M_0) > L(M_1) > ... of the nested sets {1 ... m}, m = 0 ... min(D, H R): training's staircase.

    Raises:
        ValueError: as `Lattice`.

    Source: arXiv:2501.16265, section 4.
    """
    lattice = Lattice(eigenvalues, context, heads, rank)
    return lattice.task.trace - np.concatenate([[0.0], np.cumsum(lattice.task.drops[: lattice.most])])


@dataclass(frozen=True, eq=False)
class Lattice:
    """All functions M_S, |S| <= min(D, H R), at which separate key and query stop: a sequence of `Point`.

    Points are made when they are asked for, so that the lattice is as cheap for D = 1000 as for D = 4. They stand
    in the order of their codes, where code = sum_d 2^(d-1) over the learned modes d. Modes of one eigenvalue are
    interchangeable, so an eigenspace counts by how many of its g modes are learned, a digit from 0 to g: such a
    point stands for a continuum, whose `dimension` and `component` it knows.

    Args:
        eigenvalues: lambda_1 >= ... >= lambda_D > 0; unsorted ones are refused, since they would rename the modes.
        context: N >= 1, the number of context pairs.
        heads, rank: H >= 1 and 1 <= R <= D.
    Raises:
        ValueError: something else is given.

    Source: arXiv:2501.16265, section 4 and, for R > 1, section 5; repeated eigenvalues: the certificate's reason.
    """

    eigenvalues: Iterable[float]
    context: float
    heads: int
    rank: int = 1

    def __post_init__(self):
        task = Modes(tuple(self.eigenvalues), self.context)
        object.__setattr__(self, "eigenvalues", tuple(map(float, task.eigenvalues)))
        object.__setattr__(self, "heads", checked_heads(self.heads))
        object.__setattr__(self, "rank", checked_rank(self.rank, task.eigenvalues))

    @cached_property
    def task(self) -> Modes:
        """The numbers of the modes."""
        return Modes(tuple(self.eigenvalues), self.context)

    @property
    def most(self) -> int:
        """min(D, H R), the most modes that can be learned."""
        return min(self.task.dim, self.heads * self.rank)

    @property
    def size(self) -> int:
        """How many points there are: sum_{m <= min(D, H R)} C(D, m) if all eigenvalues differ; no float, no limit."""
        return self._words[-1][-1]

    def __len__(self) -> int:
        """`size`, up to 2^63 - 1, which is what Python allows."""
        return self.size

    def __getitem__(self, place: int) -> Point:
        size = self.size
        if not -size <= place < size:
            raise IndexError(f"The lattice has {size} points, numbered from 0; got {place}.")
        left, room, counts = place % size, self.most, []
        for space, below in zip(reversed(self.task.spaces), reversed(self._words[:-1]), strict=True):
            digit = 0
            while left >= below[room - digit]:
                left -= below[room - digit]
                digit += 1
            counts.append((space, digit))
            room -= digit
        return self.at(d + 1 for space, digit in reversed(counts) for d in space[:digit])

    def __iter__(self) -> Iterator[Point]:
        return (self[place] for place in range(self.size))

    def at(self, modes: Iterable[int]) -> Point:
        """The point at which these modes (from 1) are learned.

        Raises:
            ValueError: there is no such mode, one is named twice, or there are more than H R.
        """
        return Point(self.task, tuple(modes), self.heads, self.rank)

    @property
    def nested(self) -> tuple[Point, ...]:
        """The points of the sets {1 ... m}, in the order in which training from small weights visits them."""
        return tuple(self.at(range(1, m + 1)) for m in range(self.most + 1))

    @property
    def end(self) -> Point:
        """Where training ends: the optimum, or for H R < D the best predictor of rank H R."""
        return self.at(range(1, self.most + 1))

    @cached_property
    def losses(self) -> Float[np.ndarray, " points"]:
        """The loss of every point, in the order of the points.

        Raises:
            TooManyPointsError: there are more than 2^24 of them.
        """
        if self._is_cube:
            self._check_size()
            found = _doubled(self.task)
        else:
            found = self._listed[0]
        found.setflags(write=False)
        return found

    @cached_property
    def learned(self) -> Int[np.ndarray, " points"]:
        """The number of learned modes of every point, in the order of the points; errors as `losses`."""
        return self._listed[1]

    @cached_property
    def order(self) -> Int[np.ndarray, " points"]:
        """The places of the points by falling loss, M = 0 first; errors as `losses`."""
        return np.argsort(-self.losses, kind="stable")

    @property
    def certificate(self) -> Certificate:
        """Why no function is missing, for any H and R.

        In W = S^{1/2} M Lambda^{1/2} and T = S^{-1/2} Lambda^{3/2} the two equations for G read T W^T = W W^T and
        T W = W^T W. Both right-hand sides are symmetric, so T^2 W^T = T W T = W^T T^2: W commutes with T^2, whose
        eigenvalues lambda_d/a_d differ where those of Lambda do. In an eigenspace of T = t then t W = W^T W, so that
        W/t is an orthogonal projector.
        """
        reason = (
            "where the flow stops, G vanishes on the rows of every head with v != 0, hence G M^T = 0 and G^T M = 0; "
            "then M commutes with the covariance and M diag(lambda a) is an orthogonal projector, of rank at most H R"
        )
        if any(len(space) > 1 for space in self.task.spaces):
            reason += "; equal eigenvalues leave its subspace free, so that some of these are continua"
        return Certificate("complete", reason, self.size)

    @property
    def _is_cube(self) -> bool:
        return self.most == self.task.dim == len(self.task.spaces)

    @cached_property
    def _words(self) -> list[list[int]]:
        """words[j][k]: how many choices the first j eigenspaces leave with at most k learned modes."""
        table = [[1] * (self.most + 1)]
        for space in self.task.spaces:
            last = table[-1]
            table.append([sum(last[max(0, k - len(space)) : k + 1]) for k in range(self.most + 1)])
        return table

    @cached_property
    def _listed(self) -> tuple[Float[np.ndarray, " points"], Int[np.ndarray, " points"]]:
        """Losses and numbers of learned modes, an eigenspace at a time; sets that are too large never arise."""
        self._check_size()
        loss, learned = np.array([self.task.trace]), np.zeros(1, dtype=np.int32)
        for space in self.task.spaces:
            falls = np.concatenate([[0.0], np.cumsum(self.task.drops[list(space)])])
            fits = [learned + digit <= self.most for digit in range(len(space) + 1)]
            loss = np.concatenate([loss[fit] - fall for fit, fall in zip(fits, falls, strict=True)])
            learned = np.concatenate([learned[fit] + digit for digit, fit in enumerate(fits)])
        learned.setflags(write=False)
        return loss, learned

    def _check_size(self) -> None:
        if self.size > MOST:
            raise TooManyPointsError(
                f"The lattice of D = {self.task.dim}, H = {self.heads}, R = {self.rank} has {self.size} points, more "
                f"than 2^24, which is too many to list. Single points (`lattice[i]`, `lattice.at(modes)`), `size`, "
                "`nested` and iteration work all the same."
            )
