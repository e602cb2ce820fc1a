"""Full-batch gradient descent, w -> w - eta dL/dw: a network on a data set, or any JAX-differentiable loss.

Step k is the state after k updates: the loss recorded there is the loss of those weights, before update k+1.
A run of 6001 steps therefore records steps 0, ..., 6000, as the authors' training loop does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Literal, overload

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from odesys.clock import weight_scale
from odesys.simulation._arguments import positive, whole
from odesys.simulation._random import Stream, generator
from odesys.simulation.losses import GivenLoss, MomentLoss, SequenceLoss, pieces
from odesys.simulation.networks import Network
from odesys.simulation.observables import observe
from odesys.simulation.statistics import moments
from odesys.simulation.tasks import LinearRegression

__all__ = ["DescentError", "Gradient", "descend"]

Gradient = Literal["full", "restricted", "raw"]

_GRADIENTS = {
    "full": "every weight free; autodiff through the data set's sufficient statistics (exact)",
    "restricted": "blocks that theory sets to zero held there; autodiff through statistics (exact)",
    "raw": "every weight free; autodiff of the forward pass on the raw sequences",
}


class DescentError(RuntimeError):
    """Gradient descent diverged.

    Attributes:
        step: the first step whose loss is not finite.
        partial: the run before it, a Dataset.
    """

    def __init__(self, message: str, step: int, partial: xr.Dataset):
        super().__init__(message)
        self.step = step
        self.partial = partial

    def __reduce__(self):
        return type(self), (self.args[0], self.step, self.partial)


@overload
def descend(
    network: Network,
    task: LinearRegression,
    /,
    *,
    rate: float,
    steps: int,
    init: float | None = None,
    seed: int | Sequence[int] | None = None,
    weights: Any = None,
    gradient: Gradient = "full",
    every: int = 1,
) -> xr.Dataset: ...


@overload
def descend(
    loss: Callable[[Any], Any], weights: Any, /, *, rate: float, steps: int, every: int = 1
) -> xr.Dataset: ...


def descend(
    subject, start, /, *, rate, steps, init=None, seed=None, weights=None, gradient="full", every=1
) -> xr.Dataset:
    """Full-batch gradient descent  w -> w - eta dL/dw,  gradients by autodiff, in float64.

    `descend(network, task, init=..., seed=..., ...)` trains a network on the mean squared error of a data
    set, L = (1/P) sum (y_q - yhat)^2  without a half. The result holds `loss` and the observables in the
    theory's normalisation and the eigenbasis of the covariance: v, U, M of merged attention, v, k, q, KQ, M of
    separate attention (and vv, u, kk, which theory sets to zero). Several seeds, `seed=[0, 1, 2]`, train side
    by side on the same data: the result has the dim "seed" after "step".

    `descend(loss, weights, ...)` minimises any scalar function of an array or a pytree of arrays. The result
    holds `loss` and the weights: `w` for a single array, else named by their path in the pytree. The loss is
    compiled once for each function object, so pass the same one again rather than a new lambda.

    Args:
        network: from `odesys.simulation.networks`.
        task: from `odesys.simulation.tasks`.
        rate: eta.
        steps: how many steps to record, 0, ..., steps - 1.
        init: size of the initial weights in the network's own normalisation: their standard deviation, or what
            the network's `init_rule` makes of it.
        seed: of the initial weights, one or several; may equal the data's, the streams are independent.
        weights: initial weights instead of `init` and `seed`, as `network.init` returns them.
        gradient: "full", all weights of the network; "restricted", the blocks that theory sets to zero held
            there (on finite data the full gradient leaves that subspace); "raw", as "full" but through the
            forward pass on the raw sequences, which is slow and exists to judge the others, and for networks
            without sufficient statistics (softmax attention).
        every: keep each such step only; it must divide steps - 1, so that the last one is kept.
    Returns:
        A Dataset with dim "step" (and seed; head, rank, row, col from 1); its attrs say how it was made.
    Raises:
        DescentError: the loss became infinite or NaN; the error carries the step and the run before it.
        ValueError: a number out of its range, an unknown gradient or one that the network does not have, a
            start that is missing, given twice or zero (the saddle where descent would stay).
        TypeError: neither a network nor a function.

    Source: arXiv:2501.16265v2, gradient descent on the training set as in the authors' code.
    """
    settings = _Settings(rate, steps, every)
    if isinstance(subject, Network):
        if not isinstance(start, LinearRegression):
            raise TypeError(f"A network descends on a task from `odesys.simulation.tasks`; got {start!r}.")
        _usable(subject, gradient)
        return _train(subject, start, _initial(subject, start, init, seed, weights), gradient, settings)
    if not callable(subject):
        raise TypeError(
            f"`descend` takes a network and a task, or a loss function and weights; got {subject!r}."
        )
    if not (init is None and seed is None and weights is None and gradient == "full"):
        raise ValueError(
            "`init`, `seed`, `weights` and `gradient` belong to networks; a loss starts at its weights."
        )
    return _minimise(subject, start, settings)


@dataclass(frozen=True)
class _Settings:
    rate: float
    steps: int
    every: int

    def __post_init__(self):
        positive("rate", self.rate, "the learning rate eta")
        whole("steps", self.steps, 1, "the number of steps to record, step 0 included,")
        whole("every", self.every, 1, "the distance of recorded steps")
        if (self.steps - 1) % self.every:
            raise ValueError(
                f"`every` must divide steps - 1 so that the last step is recorded; got every = {self.every}, "
                f"steps = {self.steps}. Use steps = {(self.steps - 1) // self.every * self.every + 1}."
            )


@dataclass(frozen=True)
class _Start:
    """Weights to start from, with a leading axis of length len(seeds) unless `seeds` is None."""

    weights: Any
    init: float | str
    seed: int | list[int] | str
    seeds: list[int] | None = None


def _train(network: Network, task: LinearRegression, start: _Start, gradient, settings) -> xr.Dataset:
    scale = weight_scale(task, network.normalization, network.degree)
    trained, weights = network, start.weights
    if gradient == "restricted":
        trained, weights = network.restricted(weights)
    if gradient == "raw":
        loss, data = SequenceLoss(trained), pieces(task)
    else:
        loss, data = MomentLoss(trained), moments(task, trained.features, network.normalization)
    batched = start.seeds is not None
    losses, kept = _run(loss, weights, data, settings, batched)
    attrs = {
        "network": repr(network),
        "normalization": network.normalization,
        "weight_scale": scale,
        "observables": "theory's normalisation and eigenbasis: W_theory = weight_scale * W_network",
        "gradient": gradient,
        "gradient_meaning": _GRADIENTS[gradient],
        "init": start.init,
        "seed": start.seed,
        **task.description,
    }
    variables = observe(trained.blocks(kept), task.basis, scale, ("step", "seed") if batched else ("step",))
    sizes = {
        name: size
        for dims, values, _ in variables.values()
        for name, size in zip(dims, values.shape, strict=True)
    }
    coords = {name: np.arange(1, size + 1) for name, size in sizes.items() if name not in ("step", "seed")}
    if batched:
        coords["seed"] = np.array(start.seeds)
    return _dataset(losses, variables, coords, attrs, settings)


def _usable(network: Network, gradient: str) -> None:
    """ValueError unless the network has this gradient."""
    if gradient not in _GRADIENTS:
        raise ValueError(f"`gradient` must be one of {sorted(_GRADIENTS)}; got {gradient!r}.")
    if network.features is None and gradient != "raw":
        raise ValueError(
            f"{type(network).__name__} is not linear in any features of the sequence, so the sufficient "
            f'statistics of gradient="{gradient}" do not apply. Use gradient="raw".'
        )


def _minimise(function: Callable, weights, settings) -> xr.Dataset:
    weights = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), weights)
    if not jax.tree.leaves(weights):
        raise ValueError(f"`weights` holds no array; got {weights!r}.")
    losses, kept = _run(GivenLoss(function), weights, None, settings)
    variables = {}
    for path, values in jax.tree_util.tree_leaves_with_path(kept):
        name = jax.tree_util.keystr(path, simple=True, separator=".") or "w"
        axes = [f"{name}_{axis}" for axis in range(1, values.ndim)]
        variables[name] = (("step", *axes), values, {"long_name": f"weights {name}"})
    taken = sorted({"loss", "step"} & variables.keys())
    if taken:
        raise ValueError(f"The weights {taken} bear names that the result needs itself; rename them.")
    return _dataset(losses, variables, {}, {"gradient_meaning": "autodiff of the given loss"}, settings)


def _initial(network: Network, task: LinearRegression, init, seed, weights) -> _Start:
    """The weights to start from, and where they come from."""
    if weights is not None:
        if init is not None or seed is not None:
            raise ValueError("The start is given twice: give `weights`, or `init` and `seed`.")
        like = network.init(np.random.default_rng(0), 1.0, task.dim)
        wanted, shapes = (jax.tree.map(np.shape, tree) for tree in (like, weights))
        if type(weights) is not type(like) or shapes != wanted:
            raise ValueError(f"`weights` must be like those of `network.init`, {wanted}; got {shapes}.")
        if not any(np.any(leaf) for leaf in jax.tree.leaves(weights)):
            raise ValueError(f"All `weights` are zero. {_SADDLE}")
        return _Start(weights, "given", "given")
    if init is None or seed is None:
        raise ValueError(
            "A network needs a start: give `init` (standard deviation) and `seed`, or `weights`."
        )
    try:
        init = positive("init", init, "the standard deviation of the initial weights")
    except ValueError as error:
        raise ValueError(f"{error} {_SADDLE}" if init == 0 else str(error)) from None
    seeds = [
        whole("seed", each, 0, "the seed of the initial weights") for each in np.atleast_1d(seed).tolist()
    ]
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"Several seeds must differ, and there must be one at least; got {seeds}.")
    drawn = [network.init(generator(each, Stream.WEIGHTS), init, task.dim) for each in seeds]
    if np.ndim(seed) == 0:
        return _Start(drawn[0], init, seeds[0])
    return _Start(jax.tree.map(lambda *leaves: np.stack(leaves), *drawn), init, seeds, seeds)


_SADDLE = "At zero weights the gradient vanishes: descent would stay at that saddle. Start beside it."


def _dataset(losses, variables, coords, attrs, settings) -> xr.Dataset:
    """The run with its provenance, as far as all its losses are finite; a DescentError that carries it if they
    break off."""
    count = _finite(losses)
    recorded = np.arange(0, count, settings.every)
    dims = ("step", "seed")[: losses.ndim]
    result = xr.Dataset(
        {"loss": (dims, losses[recorded], {"long_name": "loss"}), **variables},
        coords={"step": ("step", recorded, {"long_name": "updates done"}), **coords},
        attrs={
            "method": "full-batch gradient descent, float64",
            "rate": settings.rate,
            "steps": settings.steps,
            "every": settings.every,
            **attrs,
            **{f"{name}_version": version(name) for name in ("odesys", "jax", "numpy")},
        },
    )
    if count == settings.steps:
        return result
    column = int(np.argmin(np.isfinite(losses[count])))
    which = f" for seed {coords['seed'][column]}" if losses.ndim == 2 else ""
    course = losses.reshape(len(losses), -1)[:, column]
    if count == 0:
        message = f"The loss is not finite at the start, step 0{which}. Check weights and data."
    else:
        message = (
            f"Gradient descent diverged{which}: the loss is not finite at step {count}; it was {course[0]:.6g} "
            f"at the start and {course[count - 1]:.6g} one step before. Lower `rate` = {settings.rate:g}."
        )
    raise DescentError(message, count, result)


def _run(loss: Callable, weights, data, settings: _Settings, batched: bool = False) -> tuple[np.ndarray, Any]:
    """Losses of all steps, and the weights of the recorded ones as far as the losses are finite; with a second
    axis for each start if `batched`."""
    intervals = (settings.steps - 1) // settings.every
    with jax.enable_x64(True):
        weights, data, rate = jax.tree.map(
            lambda leaf: jnp.asarray(leaf, dtype=jnp.float64), (weights, data, settings.rate)
        )
        one = jax.tree.map(lambda leaf: leaf[0], weights) if batched else weights
        shape = jax.eval_shape(loss, one, data)
        if getattr(shape, "shape", None) != ():
            raise ValueError(f"The loss must be one number; it returned {shape}.")
        losses, kept = jax.device_get(
            _descend(loss, weights, data, rate, intervals=intervals, every=settings.every, batched=batched)
        )
    recorded = len(range(0, _finite(losses), settings.every))
    return losses, jax.tree.map(lambda leaf: leaf[:recorded], kept)


def _finite(losses: np.ndarray) -> int:
    """How many steps pass before a loss, of any start, is not finite."""
    finite = np.isfinite(losses).reshape(len(losses), -1).all(axis=1)
    return len(losses) if finite.all() else int(np.argmin(finite))


@partial(jax.jit, static_argnames=("loss", "intervals", "every", "batched"))
def _descend(loss, weights, data, rate, *, intervals: int, every: int, batched: bool):
    """One scan over the recorded steps, in it one over the steps between; every number is an argument."""
    loss_and_gradient = jax.value_and_grad(loss)
    if batched:
        loss, loss_and_gradient = (jax.vmap(f, in_axes=(0, None)) for f in (loss, loss_and_gradient))

    def update(w, _):
        value, gradient = loss_and_gradient(w, data)
        return jax.tree.map(lambda a, g: a - rate * g, w, gradient), value

    def interval(w, _):
        after, losses = jax.lax.scan(update, w, length=every)
        return after, (losses, w)

    last, (losses, kept) = jax.lax.scan(interval, weights, length=intervals)
    final = loss(last, data)
    losses = jnp.concatenate([losses.reshape(intervals * every, *final.shape), final[None]])
    return losses, jax.tree.map(lambda leaves, leaf: jnp.concatenate([leaves, leaf[None]]), kept, last)
