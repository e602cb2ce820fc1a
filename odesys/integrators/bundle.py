"""Many lines of one autonomous field at once, in NumPy: each has its own steps, and nothing is compiled.

For pictures: there a compiled solver costs seconds before the first line, and a loop a millisecond for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Line", "trace"]

Field = Callable[[np.ndarray], np.ndarray]
Halt = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

#: A step changes by factors between these, and is a little shorter than its error estimate allows.
_SHRINK, _GROW, _SAFETY = 0.2, 5.0, 0.9


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
        step = np.clip(
            np.searchsorted(self.parameter, parameter, side="right") - 1, 0, self.parameter.size - 2
        )
        size = self.parameter[step + 1] - self.parameter[step]
        u = (parameter - self.parameter[step]) / size
        first, last = self.states[:, step], self.states[:, step + 1]
        rise, fall = size * self.slopes[:, step], size * self.slopes[:, step + 1]
        return first + u**2 * (3 - 2 * u) * (last - first) + u * (1 - u) * ((1 - u) * rise - u * fall)

    def evenly(self, distance: float, end: float | None = None) -> np.ndarray:
        """States (n, j) at parameters about `distance` apart, up to `end` or else the end of the line."""
        last = float(self.parameter[-1]) if end is None else end
        return self.at(np.linspace(0.0, last, 2 + int(last / distance)))


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
) -> list[Line]:
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
    Returns:
        A line for each start, in order.
    """
    if not starts.size:
        return []
    lanes = _Lanes(velocity, starts, lengths, min(largest, 0.01 * np.max(np.abs(lengths), initial=0.0)))
    with np.errstate(all="ignore"):  # what overflows or is undefined is refused, which is the answer
        for _ in range(max_steps):
            if not lanes.index.size:
                break
            lanes.step(tolerance, largest)
            lanes.retire(halt, smallest)
        lanes.stops[lanes.index] = "steps"
    return lanes.lines()


class _Lanes:
    """The lines that are still on their way, and what all lines have left behind them."""

    def __init__(self, velocity: Field, starts: np.ndarray, lengths: np.ndarray, first: float):
        from scipy.integrate import RK45

        self._weights, self._estimate = [*RK45.A[1:], RK45.B], RK45.E
        self._velocity = velocity
        m = starts.shape[1]
        self.index = np.arange(m)
        self.sign = np.sign(lengths).astype(float)
        self.left = np.abs(lengths).astype(float)
        self.size = np.full(m, first)
        self.state = np.array(starts, dtype=float)
        self.stages = np.empty((len(self._estimate), *self.state.shape))
        with np.errstate(all="ignore"):
            self.stages[0] = self.sign * velocity(self.state)
        self.stops = np.full(m, "halted", dtype=object)
        self._lengths = self.left.copy()
        self._kept = [(self.index, self.left, self.state, self.stages[0].copy())]

    def step(self, tolerance: float, largest: float) -> None:
        """One step of every lane, kept where its error is small enough; new step sizes for all."""
        size = np.minimum(self.size, self.left)
        flat = self.stages.reshape(len(self.stages), -1)  # a view: (stages, n m)
        for place, weights in enumerate(self._weights, start=1):
            end = self.state + size * (weights[:place] @ flat[:place]).reshape(self.state.shape)
            self.stages[place] = self.sign * self._velocity(end)
        error = np.max(np.abs((self._estimate @ flat).reshape(self.state.shape)), axis=0) * size / tolerance
        error[~np.isfinite(error)] = np.inf
        good = error <= 1
        factor = _SAFETY * np.maximum(error, 1e-12) ** -0.2
        self.size = np.minimum(size * np.clip(factor, _SHRINK, np.where(good, _GROW, 1.0)), largest)
        self.state = np.where(good, end, self.state)
        self.left = np.where(good, self.left - size, self.left)
        self.stages[0] = np.where(good, self.stages[-1], self.stages[0])
        at = np.flatnonzero(good)
        self._kept.append((self.index[at], self.left[at], self.state[:, at], self.stages[0][:, at]))

    def retire(self, halt: Halt, smallest: float) -> None:
        """Let the lanes go that have arrived, and say why."""
        halted = halt(self.index, self.state, self.stages[0])
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

    def lines(self) -> list[Line]:
        index, left, states, slopes = (
            np.concatenate(part, axis=-1) for part in zip(*self._kept, strict=True)
        )
        order = np.argsort(index, kind="stable")
        cuts = np.searchsorted(index[order], np.arange(1, len(self.stops)))
        parameter = self._lengths[index] - left
        parts = (np.split(part[..., order], cuts, axis=-1) for part in (parameter, states, slopes))
        return [Line(*each, stop) for *each, stop in zip(*parts, self.stops, strict=True)]
