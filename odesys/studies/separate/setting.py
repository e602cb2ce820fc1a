"""The numbers of the study: the paper's settings, and expected values that this package did not make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["CONTEXT", "DIM", "EIGENVALUES", "HEADS", "PAPER", "PLATEAUS", "numbers", "spectrum"]

PAPER = "Zhang et al., arXiv:2501.16265v2"

#: Fig. 3: D, H, R = 1, N (the query not counted) and the eigenvalues of the covariance.
DIM, HEADS, CONTEXT = 4, 5, 31
EIGENVALUES = (0.4, 0.3, 0.2, 0.1)

FORTY_DIGITS = "closed formula in 40-digit arithmetic"
#: L(M_0) ... L(M_4) at those settings, tr - sum lambda_d/a_d, evaluated with 40 digits.
PLATEAUS = (1.0, 0.64057971014492753, 0.37737216297511600, 0.20980459540754837, 0.13599507159802484)
#: Mode 1 from v_0 = 0.01: where it ends, and when half of its loss drop is made; evaluated with 40 digits.
MODE_START, MODE_END, MODE_HALF_TIME = 0.01, 1.3096669533079181441, 619.0184203884589747
#: d gap/d ln(1/eps) within a head of rank 2 that learns modes 1 and 2: (1 - lambda_2^2/lambda_1^2)/(v_1* lambda_2^2).
IN_HEAD_SLOPE = 3.7117154852484147


def spectrum(dim: int) -> tuple[float, ...]:
    """The authors' eigenvalues: D, ..., 1 with trace one."""
    return tuple(2 * (dim - d) / (dim * (dim + 1)) for d in range(dim))


def numbers(eigenvalues: Sequence[float] = EIGENVALUES) -> Mapping[str, float]:
    """Parameter values of the full flow: lambda_1 ..., N, and tau = 1."""
    return {f"lambda_{d}": value for d, value in enumerate(eigenvalues, 1)} | {"N": CONTEXT, "tau": 1.0}
