"""Every constant factor between the papers, their code and the theory, once.

Linear attention (Zhang, Singh, Latham, Saxe, arXiv:2501.16265v2) exists in two normalisations:

    "mean"  X + (1/N) sum_i W^V_i X X^T W^KQ_i X      the paper, N = number of context pairs
    "sum"   X +       sum_i W^V_i X X^T W^KQ_i X      the authors' code at fixed length

The theory speaks of the first one, with  tau dW/dt = -(1/2) dL/dW  and  L = E (y_q - yhat)^2  without a half.
The prediction of merged attention is of degree two in the weights, so a network of the second kind with
weights W_code is one of the first kind with  W = N^{1/2} W_code,  hence  M = N M_code,  and a step
W_code -> W_code - eta dL/dW_code  moves it by

    -eta N dL/dW :   one step takes the time  2 eta N tau   ("mean":  2 eta tau).

The authors' `seq_len` counts the query: 32 means N = 31 (`context_length`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

__all__ = [
    "Clock",
    "Normalization",
    "context_length",
    "gradient_flow",
    "merged",
    "prediction_scale",
    "weight_scale",
]

Normalization = Literal["sum", "mean"]


class _HasContext(Protocol):
    @property
    def context(self) -> int: ...


@dataclass(frozen=True)
class Clock:
    """The line between steps of gradient descent and the time of the theory,  t = k * step_time.

    Args:
        step_time: theory time that one step takes, positive.
        time_constant: tau, in the units of theory time.
        weight_scale: weights of the theory = weight_scale * weights of the network that descends.
        description: the rule in words, for reports.
    Raises:
        ValueError: a number is not positive and finite.
    """

    step_time: float
    time_constant: float = 1.0
    weight_scale: float = 1.0
    description: str = ""

    def __post_init__(self):
        for name in ("step_time", "time_constant", "weight_scale"):
            _positive(name, getattr(self, name))

    def time(self, steps) -> np.ndarray:
        """t = k * step_time, for a number of steps k or an array of them."""
        return np.asarray(steps, dtype=np.float64) * self.step_time

    def step(self, times) -> np.ndarray:
        """k = t / step_time, as a real number: the inverse of `time`."""
        return np.asarray(times, dtype=np.float64) / self.step_time

    @property
    def time_constant_in_steps(self) -> float:
        """tau / step_time: how many steps one time constant takes."""
        return self.time_constant / self.step_time


def gradient_flow(rate: float, time_constant: float = 1.0) -> Clock:
    """The clock of  tau dw/dt = -dL/dw:  step k of rate eta is at  t = k * eta * tau.

    Raises:
        ValueError: `rate` or `time_constant` is not positive and finite.
    """
    step_time = _positive("rate", rate) * _positive("time_constant", time_constant)
    return Clock(
        step_time, time_constant, description=f"t = k eta tau, eta = {rate:g}, tau = {time_constant:g}"
    )


def merged(
    task: _HasContext, rate: float, normalization: Normalization = "sum", time_constant: float = 1.0
) -> Clock:
    """The clock of merged attention,  tau dW/dt = -(1/2) dL/dW:  step k is at  t = 2 k eta N tau  ("sum").

    For "mean" it is at  t = 2 k eta tau. One time constant takes 1/(2 eta N) or 1/(2 eta) steps, and W_theory
    is N^{1/2} W_code or W_code.

    Args:
        task: anything whose `.context` is N, the number of context pairs (the query not counted).
        rate: eta, the learning rate.
        normalization: "sum", the authors' code without 1/N; or "mean", the paper's 1/N.
        time_constant: tau of the theory.
    Raises:
        ValueError: `rate` or `time_constant` is not positive and finite, N < 1, or an unknown normalization.

    Source: arXiv:2501.16265v2, definitions of ATTN_M and of the gradient flow; the authors' code (no 1/N).
    """
    scale = prediction_scale(task.context, normalization)
    rule = "t = 2 k eta N tau" if normalization == "sum" else "t = 2 k eta tau"
    return Clock(
        step_time=2 * _positive("rate", rate) * scale * _positive("time_constant", time_constant),
        time_constant=time_constant,
        weight_scale=weight_scale(task.context, normalization),
        description=f"{rule}, eta = {rate:g}, N = {task.context}, tau = {time_constant:g}",
    )


def prediction_scale(context: int, normalization: Normalization) -> float:
    """N for "sum" and 1 for "mean":  M_theory = prediction_scale * M_network,  yhat = beta^T M_theory x_q.

    Raises:
        ValueError: N < 1 or an unknown normalization.
    """
    if normalization not in ("sum", "mean"):
        raise ValueError(
            f'`normalization` must be "sum" (the authors\' code, no 1/N) or "mean" (the paper\'s 1/N); '
            f"got {normalization!r}."
        )
    if context < 1:
        raise ValueError(
            f"`context` counts the context pairs N without the query and must be >= 1; got {context}."
        )
    return float(context) if normalization == "sum" else 1.0


def weight_scale(context: int, normalization: Normalization) -> float:
    """N^{1/2} for "sum" and 1 for "mean":  W_theory = weight_scale * W_network  for merged attention.

    Raises:
        ValueError: N < 1 or an unknown normalization.
    """
    return math.sqrt(prediction_scale(context, normalization))


def context_length(sequence_length: int) -> int:
    """N of a sequence length that counts the query token, as the authors' `seq_len` does:  N = seq_len - 1.

    Raises:
        ValueError: no context is left.
    """
    if sequence_length < 2:
        raise ValueError(
            f"`sequence_length` counts the query and must leave a context pair, >= 2; got {sequence_length}."
        )
    return sequence_length - 1


def _positive(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"`{name}` must be positive and finite; got {value!r}.")
    return value
