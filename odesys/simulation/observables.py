"""From the weights of a run to the coordinates that theory speaks of.

Theory writes the paper's normalisation and the eigenbasis of the covariance; a run has the network's
normalisation and the basis of the data. So every block is multiplied by `odesys.clock.weight_scale` and each
of its axes of length D is turned: entry d is the component along the eigenvector e_d.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

__all__ = ["effective_start", "observe"]

#: Blocks by the paper's names: the axes after (step, head), all of length D, and what they are.
_BLOCKS = {
    "v": ((), "v_i, the corner entry of W^V_i"),
    "U": (("row", "col"), "U_i, the upper left block of W^KQ_i"),
    "vv": (("row",), "vv_i, the rest of the last row of W^V_i (zero in theory)"),
    "u": (("col",), "u_i, the last row of W^KQ_i (zero in theory)"),
}


def observe(
    blocks: Mapping[str, Float[np.ndarray, "*axes"]], basis: Float[np.ndarray, "D D"], scale: float
) -> dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, str]]]:
    """The observables of a run as xarray variables: the blocks, and  M = sum_i v_i U_i,  so that yhat =
    beta^T M x_q.

    Args:
        blocks: v (steps, H), U (steps, H, D, D) and, where the network has them, vv and u (steps, H, D).
        basis: eigenvectors e_d of the covariance as columns.
        scale: W_theory / W_network.
    """
    variables = {}
    for name, block in blocks.items():
        axes, meaning = _BLOCKS[name]
        turned = scale * np.asarray(block)
        for axis in range(-len(axes), 0):
            turned = np.moveaxis(np.moveaxis(turned, axis, -1) @ basis, -1, axis)
        variables[name] = (("step", "head", *axes), turned, {"long_name": meaning})
    product = np.einsum("kh,khab->kab", variables["v"][1], variables["U"][1])
    variables["M"] = (("step", "row", "col"), product, {"long_name": "M = sum_i v_i U_i"})
    return variables


def effective_start(
    v: Float[np.ndarray, " H"], U: Float[np.ndarray, "H D D"], eigenvalues: Float[np.ndarray, " D"]
) -> float:
    """The size  |v + U chat| / 2,  chat = vec(Lambda^2)/|Lambda^2|_F,  of the aligned start that escapes like
    this one.

    Near zero the flow is linear and only this part of the weights grows.

    Args:
        v, U: the start in the theory's normalisation and the eigenbasis, as in a run at step 0.
        eigenvalues: of the covariance, in the order of U's axes.

    Source: the flow of arXiv:2501.16265v2 linearised at zero weights; derived here, not in the paper.
    """
    squares = np.square(eigenvalues)
    along = np.einsum("hdd,d->h", U, squares) / np.linalg.norm(squares)
    return float(np.linalg.norm(v + along) / 2)
