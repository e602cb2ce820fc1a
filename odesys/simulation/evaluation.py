"""What a network knows: its loss on fresh sequences, and how many principal components its predictions use.

Along its course separate attention predicts as principal component regression with m = 0, 1, ..., D components
would, after m of its drops:

    yhat_m = beta^T sum_{d<=m} e_d e_d^T / (lambda_d a_d) x_q ,    a_d = 1 + (1 + tr(Lambda)/lambda_d)/N ,

eigenvalues in falling order, beta = (1/N) sum_n y_n x_n. A test on sequences that training has not seen shows
whether it does.

Source: arXiv:2501.16265v2, ATTN_S at its plateaus.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from odesys.simulation.networks import Network
from odesys.simulation.statistics import Estimate, estimate
from odesys.simulation.tasks import LinearRegression

__all__ = ["component_predictions", "evaluate_loss", "in_context_test", "predictions"]


def predictions(
    network: Network, weights: Any, prompts: Float[np.ndarray, "P E T"]
) -> Float[np.ndarray, " P"]:
    """yhat of each sequence in float64, by the network's forward pass."""
    with jax.enable_x64(True):
        weights, prompts = jax.tree.map(partial(jnp.asarray, dtype=jnp.float64), (weights, prompts))
        return np.asarray(_predict(network, weights, prompts))


@partial(jax.jit, static_argnames="network")
def _predict(network, weights, prompts):
    return network.predict(weights, prompts)


def evaluate_loss(network: Network, weights: Any, task: LinearRegression) -> Estimate:
    """The loss (1/P) sum (y_q - yhat)^2 on a data set, usually `task.fresh(seed)`, and its standard error.

    Args:
        network, weights: as for `descend`; the weights at a step of a run are `observables.weights_of`.
        task: the data set.
    Raises:
        ValueError: a single sequence has no standard error.
    """
    return estimate(task, lambda prompts, labels: (labels - predictions(network, weights, prompts)) ** 2)


def component_predictions(
    task: LinearRegression, prompts: Float[np.ndarray, "P E T"]
) -> Float[np.ndarray, "P components"]:
    """yhat_m of principal component regression with m = 0, ..., D components, one column for each m.

    Args:
        task: gives eigenvalues, eigenvectors and N (1/mean(1/n) where the context length varies).
        prompts: the sequences.
    """
    order = np.argsort(-task.eigenvalues, kind="stable")
    eigenvalues, basis = task.eigenvalues[order], task.basis[:, order]
    excess = 1 + (1 + eigenvalues.sum() / eigenvalues) / task.effective_context
    beta = np.einsum("pdn,pn->pd", prompts[:, :-1], prompts[:, -1]) / (prompts.shape[2] - 1)
    parts = (beta @ basis) * (prompts[:, :-1, -1] @ basis) / (eigenvalues * excess)
    return np.cumsum(np.pad(parts, ((0, 0), (1, 0))), axis=1)


def in_context_test(network: Network, weights: Any, task: LinearRegression) -> xr.Dataset:
    """Compare a network with principal component regression on the same sequences, usually fresh ones.

    Args:
        network, weights: as for `descend`; the weights at a step of a run are `observables.weights_of`.
        task: the data set, of P sequences.
    Returns:
        Dataset with dim "components", m = 0, ..., D: `loss` of the network, `component_loss` of yhat_m and
        `distance`, the mean of (yhat - yhat_m)^2; each with its standard error, `loss_error` and so on. The
        attribute `closest` is the m of the smallest distance.
    Raises:
        ValueError: a single sequence has no standard error.

    Source: arXiv:2501.16265v2, ATTN_S at its plateaus.
    """

    def quantities(prompts, labels):
        network_says, components = (
            predictions(network, weights, prompts),
            component_predictions(task, prompts),
        )
        return np.column_stack(
            [
                (labels - network_says) ** 2,
                (labels[:, None] - components) ** 2,
                (network_says[:, None] - components) ** 2,
            ]
        )

    variables = {}
    for values, suffix in zip(estimate(task, quantities), ("", "_error"), strict=True):
        component_loss, distance = values[1:].reshape(2, -1)
        variables[f"loss{suffix}"] = ((), values[0])
        variables[f"component_loss{suffix}"] = ("components", component_loss)
        variables[f"distance{suffix}"] = ("components", distance)
    return xr.Dataset(
        variables,
        coords={"components": np.arange(task.dim + 1)},
        attrs={
            "network": repr(network),
            "closest": int(np.argmin(variables["distance"][1])),
            **task.description,
        },
    )
