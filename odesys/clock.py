"""Every constant factor between the papers, their code and the theory, once.

Linear attention (Zhang, Singh, Latham, Saxe, arXiv:2501.16265v2) exists in three normalisations:

    "mean"    X + (1/N) sum_i W^V_i X X^T W^KQ_i X        the paper, N = number of context pairs
    "sum"     X +       sum_i W^V_i X X^T W^KQ_i X        the authors' code at fixed length
    "tokens"  X + (1/(N+1)) sum_i W^V_i X X^T W^KQ_i X    the authors' code at varying length

The theory speaks of the first one, with  tau dW/dt = -(1/2) dL/dW  and  L = E (y_q - yhat)^2  without a half.
A network of another kind predicts  s = N  or  N/(N+1)  times what one of the first kind would with the same
weights (`prediction_scale`). The prediction is of degree d in the weights, d = 2 for merged and 3 for separate
key and query, so that it is one of the first kind with weights  W = s^{1/d} W_code,  hence  M = s M_code,  and
a step  W_code -> W_code - eta dL/dW_code  moves it by

    -eta s^{2/d} dL/dW :   one step takes the time  2 eta s^{2/d} tau ,

for "sum"  2 eta N tau  (merged)  or  2 eta N^{2/3} tau  (separate),  for "mean"  2 eta tau.

Where the context length n varies within a data set, no rescaling of the weights turns one normalisation into
another. The theory then has N replaced by 1/mean(1/n) for "mean"; for "tokens" mean(n/(n+1)) and
mean((n/(n+1))^2 S_n) take the places of 1 and S. Weights and time need no factor: s = 1 (`theory_scale`).

The authors' `seq_len` counts the query: 32 means N = 31 (`context_length`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

__all__ = [
    "Clock",
    "Normalization",
    "context_length",
    "gradient_flow",
    "merged",
    "prediction_scale",
    "separate",
    "theory_scale",
    "weight_scale",
]

Normalization = Literal["sum", "mean", "tokens"]


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
        normalization: "sum", the authors' code without 1/N; "mean", the paper's 1/N; "tokens", 1/(N+1).
        time_constant: tau of the theory.
    Raises:
        ValueError: `rate` or `time_constant` is not positive and finite, N < 1, an unknown normalization, or
            "sum" for a task whose context length varies.

    Source: arXiv:2501.16265v2, definitions of ATTN_M and of the gradient flow; the authors' code (no 1/N).
    """
    return _attention(task, rate, normalization, time_constant, degree=2)


def separate(
    task: _HasContext, rate: float, normalization: Normalization = "sum", time_constant: float = 1.0
) -> Clock:
    """The clock of separate attention,  tau dW/dt = -(1/2) dL/dW:  step k is at  t = 2 k eta N^{2/3} tau  ("sum").

    For "mean" it is at  t = 2 k eta tau. One time constant takes 1/(2 eta N^{2/3}) or 1/(2 eta) steps, and
    W_theory is N^{1/3} W_code or W_code. The rank makes no difference.

    Args and errors: as for `merged`.

    Source: arXiv:2501.16265v2, definitions of ATTN_S and of the gradient flow; the authors' code (no 1/N).
    """
    return _attention(task, rate, normalization, time_constant, degree=3)


def _attention(task, rate, normalization, time_constant, degree: int) -> Clock:
    scale = theory_scale(task, normalization)
    factor = "" if scale == 1 else {"sum": " N", "tokens": " (N/(N+1))"}[normalization]
    power = "^{2/3}" if factor and degree == 3 else ""
    return Clock(
        step_time=2
        * _positive("rate", rate)
        * scale ** (2 / degree)
        * _positive("time_constant", time_constant),
        time_constant=time_constant,
        weight_scale=weight_scale(task, normalization, degree),
        description=f"t = 2 k eta{factor}{power} tau, eta = {rate:g}, N = {task.context}, tau = {time_constant:g}",
    )


def prediction_scale(context: int, normalization: Normalization) -> float:
    """N for "sum", 1 for "mean", N/(N+1) for "tokens":  yhat_network = prediction_scale * yhat_mean  of the same
    weights.

    Raises:
        ValueError: N < 1 or an unknown normalization.
    """
    if normalization not in get_args(Normalization):
        raise ValueError(
            f'`normalization` must be "sum" (the authors\' code, no 1/N), "mean" (the paper\'s 1/N) or "tokens" '
            f"(1/(N+1), the authors' code at varying length); got {normalization!r}."
        )
    if context < 1:
        raise ValueError(
            f"`context` counts the context pairs N without the query and must be >= 1; got {context}."
        )
    return {"sum": float(context), "mean": 1.0, "tokens": context / (context + 1)}[normalization]


def theory_scale(task: _HasContext, normalization: Normalization) -> float:
    """s of  M_theory = s M_network,  yhat = beta^T M_theory x_q:  `prediction_scale`, or 1 where the context
    length varies.

    Args:
        task: its `.context` is N; where it has `.lengths`, these are the context lengths that occur.
    Raises:
        ValueError: as `prediction_scale`; "sum" for a context length that varies.
    """
    scale = prediction_scale(task.context, normalization)
    if len(getattr(task, "lengths", (task.context,))) == 1:
        return scale
    if normalization == "sum":
        raise ValueError(
            "A network without 1/N has no fixed theory where the context length varies: long sequences would "
            'weigh more. Use normalization="mean" (1/n) or "tokens" (1/(n+1), the authors\' code).'
        )
    return 1.0


def weight_scale(task: _HasContext, normalization: Normalization, degree: int) -> float:
    """s^{1/d}, N^{1/2} or N^{1/3} for "sum":  W_theory = weight_scale * W_network  for a prediction of degree d.

    Raises:
        ValueError: as `theory_scale`.
    """
    return theory_scale(task, normalization) ** (1 / degree)


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
