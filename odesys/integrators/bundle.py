"""Many lines of one autonomous field at once, in NumPy: each has its own steps, and nothing is compiled.

For pictures: there a compiled solver costs seconds before the first line, and a loop a millisecond for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["Bundle", "Line", "trace"]

Field = Callable[[np.ndarray], np.ndarray]
Halt = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

#: A step changes by factors between these, and is a little shorter than its error estimate allows.
_SHRINK, _GROW, _SAFETY = 0.2, 5.0, 0.9
#: Points that are interpolated together: small arrays are reused, large ones cost more to get than to fill.
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Line:
    """A solution curve at the ends of its steps.

    `parameter` (k,) starts at 0 and increases; `states` and `slopes` = d states / d parameter have shape
    (n, k). `stop` says why the line ends: "length" (its length is used up), "halted" (the caller's condition
    holds at the last state), "stalled" (no step is short enough: beyond the last state the field jumps or is
    not defined) or "steps" (the allowed steps are used up).
    """

    parameter: np.ndarray
    states: np.ndarray
    slopes: np.ndarray
    stop: str

    def at(self, parameter: np.ndarray) -> np.ndarray:
        """States (n, j) at parameters (j,) by cubic Hermite interpolation."""
        if self.parameter.size == 1:
            return np.repeat(self.states, parameter.size, axis=1)
        step = np.searchsorted(self.parameter, parameter, side="right") - 1
        return _hermite(self, _cubic(self), np.clip(step, 0, self.parameter.size - 2), parameter)

    def evenly(self, distance: float, end: float | None = None) -> np.ndarray:
        """States (n, j) at parameters about `distance` apart, up to `end` or else the end of the line."""
        last = float(self.parameter[-1]) if end is None else end
        return self.at(np.linspace(0.0, last, 2 + int(last / distance)))


@dataclass(frozen=True, eq=False)
class Bundle:
    """Many lines, one after the other in the same arrays; `edges` (m + 1,) says where each begins.

    It is a sequence of `Line`; `stops` (m,) are theirs.
    """

    parameter: np.ndarray
    states: np.ndarray
    slopes: np.ndarray
    edges: np.ndarray
    stops: np.ndarray

    def __len__(self) -> int:
        return len(self.stops)

    def __getitem__(self, place: int) -> Line:
        span = slice(self.edges[place], self.edges[place + 1])
        return Line(self.parameter[span], self.states[:, span], self.slopes[:, span], self.stops[place])

    def __iter__(self) -> Iterator[Line]:
        return (self[place] for place in range(len(self)))

    @property
    def starts(self) -> np.ndarray:
        """The first states, shape (n, m)."""
        return self.states[:, self.edges[:-1]]

    @property
    def ends(self) -> np.ndarray:
        """The last states, shape (n, m)."""
        return self.states[:, self.edges[1:] - 1]

    def at(self, places: np.ndarray, parameter: np.ndarray) -> np.ndarray:
        """States (n, k, j) of lines (k,) of at least one step at parameters (k, j), by Hermite interpolation."""
        far = 1.0 + np.max(self.parameter, initial=0.0)
        keys = self.parameter + far * np.repeat(np.arange(len(self)), np.diff(self.edges))
        cubic = _cubic(self)
        value = np.empty((len(self.states), *parameter.shape))
        rows = max(1, _BLOCK // max(1, parameter.shape[1]))
        for first in range(0, len(places), rows):
            block = slice(first, first + rows)
            line, here = places[block, None], parameter[block]
            step = np.searchsorted(keys, np.clip(here, 0, far) + far * line, side="right") - 1
            step = np.clip(step, self.edges[line], self.edges[line + 1] - 2)
            value[:, block] = _hermite(self, cubic, step, here)
        return value


def trace(
    velocity: Field,
    starts: np.ndarray,
    lengths: np.ndarray,
    halt: Halt,
    *,
    tolerance: float = 1e-8,
    largest: float = np.inf,
    smallest: float = 1e-6,
    max_steps: int = 2_000,
) -> Bundle:
    """Integrate  dy/ds = sign(length) v(y)  from each start until  s = |length|  or `halt` holds.

    All lines step together, each with its own step size, by the pair of orders 5 and 4 of Dormand and Prince
    (J. Comput. Appl. Math. 6 (1980) 19). The estimated error of a step in each component is at most
    `tolerance`; cubic Hermite interpolation between states has an error of the same kind.

    Args:
        velocity: v, from shape (n, m) to (n, m), for any m; nan or infinite outside its domain.
        starts: shape (n, m).
        lengths: shape (m,); a negative one follows the field backward.
        halt: asked after each step of all lines that are on their way, with their places (m,), states (n, m)
            and slopes (n, m); a line ends where the answer (m,) is true.
        tolerance: absolute.
        largest, smallest: bounds on the parameter's steps; at a jump, steps come down to the tolerance, which
            must be below the smallest.
        max_steps: how many steps, refused ones included, a line may take.
    """
    lanes = _Lanes(velocity, starts, lengths, min(largest, 0.01 * np.max(np.abs(lengths), initial=0.0)))
    with np.errstate(all="ignore"):  # what overflows or is undefined is refused, which is the answer
        for _ in range(max_steps):
            if not lanes.index.size:
                break
            lanes.step(tolerance, largest)
            lanes.retire(halt, smallest)
        lanes.stops[lanes.index] = "steps"
    return lanes.bundle()


class _Lanes:
    """The lines that are still on their way, and what all lines have left behind them."""

    def __init__(self, velocity: Field, starts: np.ndarray, lengths: np.ndarray, first: float):
        from scipy.integrate import RK45

        rows = [*RK45.A[1:], RK45.B]
        self._weights = [np.ascontiguousarray(row[:place]) for place, row in enumerate(rows, start=1)]
        self._estimate = RK45.E
        self._velocity = velocity
        m = starts.shape[1]
        self.index = np.arange(m)
        self.sign = np.sign(lengths).astype(float)
        self.left = np.abs(lengths).astype(float)
        self.size = np.full(m, first)
        self.state = np.array(starts, dtype=float)
        self.stages = np.empty((len(self._estimate), *self.state.shape))
        with np.errstate(all="ignore"):
            self.stages[0] = velocity(self.state)
        self.stops = np.full(m, "halted", dtype=object)
        self._lengths, self._signs = self.left.copy(), self.sign.copy()
        self._kept = [(self.index, self.left, self.state, self.stages[0].copy())]

    def step(self, tolerance: float, largest: float) -> None:
        """One step of every lane, kept where its error is small enough; new step sizes for all."""
        size = np.minimum(self.size, self.left)
        signed, end = size * self.sign, self.state
        flat = self.stages.reshape(len(self.stages), -1)  # a view: (stages, n m)
        for place, weights in enumerate(self._weights, start=1):
            end = weights.dot(flat[:place]).reshape(self.state.shape)
            end *= signed
            end += self.state
            self.stages[place] = self._velocity(end)
        error = size / tolerance * np.abs(self._estimate.dot(flat)).reshape(self.state.shape).max(axis=0)
        good = error <= 1  # false for nan, which shrinks the step as far as may be
        factor = np.fmax(np.minimum(_SAFETY * error**-0.2, _GROW), _SHRINK)
        self.size = np.minimum(size * factor, largest)
        if good.all():
            self.state, self.left = end, self.left - size
            self.stages[0] = self.stages[-1]
            self._kept.append((self.index, self.left, end, self.stages[0].copy()))
            return
        self.state = np.where(good, end, self.state)
        self.left = np.where(good, self.left - size, self.left)
        self.stages[0] = np.where(good, self.stages[-1], self.stages[0])
        at = np.flatnonzero(good)
        kept = (self.index, self.left, self.state, self.stages[0])
        self._kept.append(tuple(array.take(at, axis=-1) for array in kept))

    def retire(self, halt: Halt, smallest: float) -> None:
        """Let the lanes go that have arrived, and say why."""
        halted = halt(self.index, self.state, self.sign * self.stages[0])
        arrived, stalled = self.left <= 0, self.size < smallest
        done = halted | arrived | stalled
        if not done.any():
            return
        self.stops[self.index[arrived & ~halted]] = "length"
        self.stops[self.index[stalled & ~halted & ~arrived]] = "stalled"
        stay = ~done
        self.index, self.sign, self.left = self.index[stay], self.sign[stay], self.left[stay]
        self.size, self.state = self.size[stay], self.state[:, stay]
        self.stages = np.ascontiguousarray(self.stages[:, :, stay])

    def bundle(self) -> Bundle:
        index, left, states, slopes = (
            np.concatenate(part, axis=-1) for part in zip(*self._kept, strict=True)
        )
        order = np.argsort(index, kind="stable")
        index = index.take(order)
        return Bundle(
            self._lengths.take(index) - left.take(order),
            states.take(order, axis=1),
            self._signs.take(index) * slopes.take(order, axis=1),
            np.searchsorted(index, np.arange(len(self.stops) + 1)),
            self.stops,
        )


def _cubic(points: Line | Bundle) -> tuple[np.ndarray, ...]:
    """Coefficients (n, k - 1) of the cubics between states, in the part of the step that is done, highest first."""
    size, gap = np.diff(points.parameter), np.diff(points.states)
    rise, fall = size * points.slopes[:, :-1], size * points.slopes[:, 1:]
    return rise + fall - 2 * gap, 3 * gap - 2 * rise - fall, rise, points.states


def _hermite(
    points: Line | Bundle, cubic: tuple[np.ndarray, ...], step: np.ndarray, parameter: np.ndarray
) -> np.ndarray:
    """The cubics of the steps, at parameters of the steps' shape."""
    before = points.parameter.take(step)
    u = (parameter - before) / (points.parameter.take(step + 1) - before)
    value = cubic[0].take(step, axis=1)
    for coefficient in cubic[1:]:  # Horner's rule, without temporaries
        value *= u
        value += coefficient.take(step, axis=1)
    return value
