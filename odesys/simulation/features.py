"""The numbers of a sequence that reach the prediction of linear attention.

With  Sigma = X X^T / N  (the query's column included) the prediction is

    yhat = sum_abc Theta_abc Sigma_ab x_qc ,

linear in the features  Sigma_ab x_qc,  which are symmetric in ab: F = (D+1)(D+2)/2 * D of them. Where only
the blocks v_i and U_i are not zero, the D^2 features  z_ab = beta_a x_qb,  beta = (1/N) sum_n y_n
x_n,  suffice.

Source: the cubic features z are those of arXiv:2501.16265v2; the others follow from the definition of
attention.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = ["attention_features", "cubic_features", "symmetric_coefficients"]


def attention_features(prompts: Float[np.ndarray, "P E T"]) -> Float[np.ndarray, "P F"]:
    """phi_abc = Sigma_ab x_qc  for a <= b, flattened row-major; E = D+1, T = N+1, F = (D+1)(D+2)/2 * D."""
    rows, columns = np.triu_indices(prompts.shape[1])
    sigma = prompts @ prompts.transpose(0, 2, 1) / (prompts.shape[2] - 1)
    query = prompts[:, :-1, -1]
    return (sigma[:, rows, columns, None] * query[:, None, :]).reshape(len(prompts), -1)


def symmetric_coefficients(theta: Float[Array, "E E D"]) -> Float[Array, " F"]:
    """The coefficients of `attention_features` that give  sum_abc Theta_abc Sigma_ab x_qc."""
    rows, columns = np.triu_indices(theta.shape[0])
    both = theta + jnp.swapaxes(theta, 0, 1)
    return (both[rows, columns] * np.where(rows == columns, 0.5, 1.0)[:, None]).reshape(-1)


def cubic_features(prompts: Float[np.ndarray, "P E T"]) -> Float[np.ndarray, "P DD"]:
    """z = vec(beta x_q^T), row-major:  z_ab = beta_a x_qb,  beta = (1/N) sum_n y_n x_n;  DD = D^2."""
    beta = np.einsum("pdn,pn->pd", prompts[:, :-1], prompts[:, -1]) / (prompts.shape[2] - 1)
    return (beta[:, :, None] * prompts[:, None, :-1, -1]).reshape(len(prompts), -1)
