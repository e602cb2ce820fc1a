"""Sufficient statistics: the second moments that make a step of gradient descent exact and independent of P.

For a prediction <theta, phi> the mean squared error over the data set is

    L = E[y^2] - 2 theta.E[y phi] + theta.E[phi phi^T] theta ,      E = mean over the P sequences,

so the three moments, computed once in float64, replace the data; nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from odesys.clock import Normalization, prediction_scale
from odesys.simulation.tasks import LinearRegression

__all__ = ["Estimate", "Moments", "estimate", "mean_squared_error", "moments"]


class Moments(NamedTuple):
    """Second moments of labels and features over a data set; a pytree, so compiled code takes it whole."""

    gram: Float[Array | np.ndarray, "F F"]
    """E[phi phi^T]."""
    cross: Float[Array | np.ndarray, " F"]
    """E[y phi]."""
    power: Float[Array | np.ndarray, ""]
    """E[y^2]."""


@lru_cache(maxsize=8)  # a study trains on one data set many times; tasks are compared by identity
def moments(
    task: LinearRegression,
    features: Callable[[np.ndarray], np.ndarray],
    normalization: Normalization = "mean",
) -> Moments:
    """The moments of `features(X)` and y_q over the data set, summed in float64 batch by batch.

    Args:
        task: the data set, P sequences.
        features: prompts (P, D+1, N+1) -> features (P, F) with the paper's 1/N.
        normalization: of the network that the moments are for; the features are multiplied by its
            `odesys.clock.prediction_scale`, for each context length its own.
    """
    totals = (0.0, 0.0, 0.0)
    for prompts, labels in task.batches():
        phi = prediction_scale(prompts.shape[2] - 1, normalization) * features(prompts)
        with jax.enable_x64(True):
            products = jax.device_get(_products(phi, labels))
        totals = tuple(total + product for total, product in zip(totals, products, strict=True))
    result = Moments(*(np.asarray(total / task.examples) for total in totals))
    for array in result:
        array.setflags(write=False)
    return result


@jax.jit  # rather than NumPy, whose many small products suffer where other processes use the cores
def _products(phi, labels):
    return phi.T @ phi, labels @ phi, labels @ labels


def mean_squared_error(theta: Float[Array, " F"], data: Moments) -> Float[Array, ""]:
    """E (y - <theta, phi>)^2  from the moments."""
    return data.power - 2 * theta @ data.cross + theta @ data.gram @ theta


class Estimate(NamedTuple):
    """A mean over the P sequences of a data set, and how far sampling may have moved it."""

    mean: Float[np.ndarray, "*axes"]
    standard_error: Float[np.ndarray, "*axes"]


def estimate(task: LinearRegression, quantity: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Estimate:
    """Mean and standard error,  m = (1/P) sum f_p  and  sqrt( sum (f_p - m)^2 / (P (P-1)) ),  of any
    quantity.

    What a data set of finite size may be asked: a sampled moment, or the loss of a given predictor
    (`quantity = lambda prompts, labels: (labels - cubic_features(prompts) @ M.reshape(-1)) ** 2`).

    Args:
        task: the data set; its P sequences count as independent (the two corrections of the authors' data tie
            them together, but only to order 1/P), the prompts of one sequence, where the context length
            varies, do not: a sequence counts once, by its mean.
        quantity: prompts (P, D+1, N+1), labels (P,) -> values (P, ...).
    Raises:
        ValueError: a single sequence has no standard error.
    """
    if task.sequences < 2:
        raise ValueError(f"A standard error needs at least 2 sequences; the task has {task.sequences}.")
    parts = [np.asarray(quantity(*batch), dtype=np.float64) for batch in task.batches()]
    lengths = len(task.lengths)
    if lengths > 1:  # consecutive batches hold the same sequences, cut at each length
        parts = [sum(parts[i : i + lengths]) / lengths for i in range(0, len(parts), lengths)]
    mean = sum(part.sum(axis=0) for part in parts) / task.sequences
    scatter = sum(((part - mean) ** 2).sum(axis=0) for part in parts)
    return Estimate(mean, np.sqrt(scatter / (task.sequences * (task.sequences - 1))))
