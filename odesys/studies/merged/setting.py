"""The numbers of the study: the paper's settings, and expected values that this package did not make."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CONTEXT", "DIM", "EIGENVALUES", "HEADS", "PAPER", "WHITE", "numbers"]

PAPER = "Zhang et al., arXiv:2501.16265v2"

#: Fig. 1: D, H, N (the query not counted) and the eigenvalues of the covariance.
DIM, HEADS, CONTEXT = 4, 8, 31
EIGENVALUES = (0.4, 0.3, 0.2, 0.1)
#: A white covariance, for which the time course is known in closed form.
WHITE = (1.0, 1.0, 1.0, 1.0)

#: L* = tr - sum lambda_d/a_d at those settings, a_d = 1 + (1 + tr/lambda_d)/N, evaluated with 40 digits.
OPTIMAL_LOSS = 0.13599507159802483839
#: Half times of the balanced white start, D = 4, N = 31, w = 0.01, by eigenvalue, evaluated with 40 digits.
HALF_TIMES = {1.0: 2.4384744380908064959, 0.25: 44.56094265380265052}
#: Where the white time course ends, D = 4, N = 31, lambda = 1: sigma = 1/a = 31/36.
WHITE_END = 31 / 36
FORTY_DIGITS = "closed formula in 40-digit arithmetic"


def numbers(eigenvalues=EIGENVALUES, **others: float) -> Mapping[str, float]:
    """Parameter values of the full flow: lambda_1 ..., N, and tau = 1."""
    return (
        {f"lambda_{d}": value for d, value in enumerate(eigenvalues, 1)} | {"N": CONTEXT, "tau": 1.0} | others
    )
