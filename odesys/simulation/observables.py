"""From the weights of a run to the coordinates that theory speaks of, and back.

Theory writes the paper's normalisation and the eigenbasis of the covariance; a run has the network's
normalisation and the basis of the data. So every block is multiplied by `odesys.clock.weight_scale` and each
of its axes of length D is turned: entry d is the component along the eigenvector e_d.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from odesys.clock import weight_scale
from odesys.simulation.networks import Network
from odesys.simulation.tasks import LinearRegression

__all__ = ["effective_start", "leakage", "observe", "weights_of"]

_GAUGE = "(K, Q) -> (O K, O Q), O orthogonal, is the same network: for R > 1 compare KQ instead of rows"

#: Blocks by the paper's names: their axes after head, those of length D called row or col, and what they are.
_BLOCKS = {
    "v": ((), "v_i, the corner entry of W^V_i"),
    "U": (("row", "col"), "U_i, the upper left block of W^KQ_i"),
    "k": (("rank", "row"), "k_ir, the rows of W^K_i without their last entry"),
    "q": (("rank", "col"), "q_ir, the rows of W^Q_i without their last entry"),
    "vv": (("row",), "vv_i, the rest of the last row of W^V_i (zero in theory)"),
    "u": (("col",), "u_i, the last row of W^KQ_i (zero in theory)"),
    "kk": (("rank",), "kk_ir, the last column of W^K_i (zero in theory)"),
}


def observe(
    blocks: Mapping[str, Float[np.ndarray, "*axes"]],
    basis: Float[np.ndarray, "D D"],
    scale: float,
    leading: tuple[str, ...] = ("step",),
) -> dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, str]]]:
    """The observables of a run as xarray variables: the blocks;  KQ_i = K_i^T Q_i  for separate key and query;
    and  M = sum_i v_i U_i  or  sum_i v_i KQ_i,  so that yhat = beta^T M x_q.

    Args:
        blocks: v (*leading, H), U (*leading, H, D, D) or k and q (*leading, H, R, D) and, where the network has
            them, vv, u (*leading, H, D) and kk (*leading, H, R).
        basis: eigenvectors e_d of the covariance as columns.
        scale: W_theory / W_network.
        leading: the names of the leading axes.
    """
    variables = {}
    for name, block in blocks.items():
        axes, meaning = _BLOCKS[name]
        attrs = {"long_name": meaning, **({"gauge": _GAUGE} if name in ("k", "q", "kk") else {})}
        variables[name] = ((*leading, "head", *axes), scale * _turn(np.asarray(block), axes, basis), attrs)
    weighted = "U"
    if "k" in variables:
        weighted, product = "KQ", np.einsum("...ra,...rb->...ab", variables["k"][1], variables["q"][1])
        attrs = {"long_name": "K_i^T Q_i without last row and column; the same in every gauge"}
        variables["KQ"] = ((*leading, "head", "row", "col"), product, attrs)
    total = np.einsum("...h,...hab->...ab", variables["v"][1], variables[weighted][1])
    variables["M"] = ((*leading, "row", "col"), total, {"long_name": f"M = sum_i v_i {weighted}_i"})
    return variables


def weights_of(network: Network, task: LinearRegression, blocks: Mapping[str, Any] | xr.Dataset) -> Any:
    """The weights that `observe` shows as these blocks: a start for `descend(weights=...)` from the theory's
    coordinates, or the network as it was at one step of a run,

        weights_of(network, task, run.sel(step=500)) .

    Args:
        network: takes the weights; a "restricted" run's own network needs no other blocks than it recorded.
        task: gives eigenbasis and context length.
        blocks: v, U or v, k, q, in the theory's normalisation and the eigenbasis, without leading axes; vv, u, kk
            may be left out and are zero then. Other variables are ignored.
    Raises:
        ValueError: a block is missing, or has not the shape that heads, rank and D give it.
    """
    like = network.blocks(network.init(np.random.default_rng(0), 1.0, task.dim))
    scale = weight_scale(task, network.normalization, network.degree)
    found = {}
    for name, block in like.items():
        if name in blocks:
            found[name] = np.asarray(blocks[name], dtype=np.float64)
            if found[name].shape != block.shape:
                raise ValueError(
                    f"The block `{name}` of {network!r} has shape {block.shape}; got {found[name].shape}."
                )
        elif name in network.held:
            found[name] = np.zeros(block.shape)
        else:
            raise ValueError(f"The block `{name}` of {network!r} is missing; got {sorted(map(str, blocks))}.")
        found[name] = _turn(found[name] / scale, _BLOCKS[name][0], task.basis.T)
    with jax.enable_x64(True):
        return jax.device_get(network.assemble(found))


def _turn(block: np.ndarray, axes: tuple[str, ...], basis: np.ndarray) -> np.ndarray:
    """The block with its axes of length D, row and col, multiplied by the basis."""
    for position, name in enumerate(reversed(axes), start=1):
        if name in ("row", "col"):
            block = np.moveaxis(np.moveaxis(block, -position, -1) @ basis, -1, -position)
    return block


def leakage(run: xr.Dataset) -> xr.Dataset:
    """The Euclidean norm, over all heads, of each block of a run that theory sets to zero: vv, u, kk.

    Zero stays zero for infinitely many sequences; on finite data these blocks leak.
    """
    kept = ("step", "seed")
    norms = {
        name: np.sqrt((run[name] ** 2).sum([axis for axis in run[name].dims if axis not in kept]))
        for name in ("vv", "u", "kk")
        if name in run
    }
    return xr.Dataset({name: norm.assign_attrs(long_name=f"|{name}|") for name, norm in norms.items()})


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
