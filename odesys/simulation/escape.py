"""How merged attention leaves zero weights, on any of the data sets: the linear part of its flow.

With  B_a,bc = E[y_q Sigma_ab x_qc],  Sigma = X X^T / N,  the flow  tau dW/dt = -(1/2) dL/dW  near zero is

    tau d(vv_i, v_i)/dt = B (U_i; u_i) ,    tau d(U_i; u_i)/dt = B^T (vv_i, v_i) ,

so weights grow at 1/tau times the singular values of B. Where every task is random only the blocks
(v, U) and (vv, u) of B are not zero; a fixed task breaks the symmetry w -> -w, and all of them are. Separate
attention has no linear part: its escape is not exponential.

Source: the flow of arXiv:2501.16265v2 linearised at zero weights, with all blocks; derived here, not in the
paper.
"""

from __future__ import annotations

import numpy as np

from odesys.simulation.features import attention_features
from odesys.simulation.statistics import Estimate, estimate
from odesys.simulation.tasks import LinearRegression

__all__ = ["escape_matrix", "escape_rate"]


def escape_matrix(task: LinearRegression) -> Estimate:
    """B, shape (D+1, D+1, D), and its standard errors over the data set.

    Raises:
        ValueError: a single sequence has no standard error.
    """
    rows, columns = np.triu_indices(task.dim + 1)
    sampled = estimate(task, lambda prompts, labels: labels[:, None] * attention_features(prompts))
    unfolded = []
    for values in sampled:
        matrix = np.empty((task.dim + 1, task.dim + 1, task.dim))
        matrix[rows, columns] = matrix[columns, rows] = values.reshape(len(rows), task.dim)
        unfolded.append(matrix)
    return Estimate(*unfolded)


def escape_rate(task: LinearRegression, time_constant: float = 1.0) -> float:
    """Growth rate of merged attention from zero weights, |B|_2 / tau: the largest singular value over tau.

    Time is the theory's, that of `odesys.clock.merged`, and the normalisation the paper's 1/N.

    Args:
        task: the data set; the rate is that of its sample.
        time_constant: tau.
    """
    matrix = escape_matrix(task).mean
    return float(np.linalg.norm(matrix.reshape(len(matrix), -1), ord=2) / time_constant)
