"""`odesys simulate`: gradient descent on a real network with the authors' settings, and its course as a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesys.commands.faults import UsageFault
from odesys.commands.files import check_free, written

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["MODELS", "Options", "simulate"]


@dataclass(frozen=True)
class Options:
    """What the user asked for; None where nothing was said, and the model's defaults hold.

    `seeds` seed the initial weights, the first one the data too. `corrected` data are those of the authors: tokens
    centred at each position, task vectors centred and whitened over the sample, a random eigenbasis.
    """

    dim: int | None = None
    context: int | None = None
    heads: int | None = None
    rank: int | None = None
    eigenvalues: Sequence[float] | None = None
    sequences: int | None = None
    init: float | None = None
    init_rule: str | None = None
    rate: float | None = None
    steps: int | None = None
    every: int | None = None
    seeds: Sequence[int] = (10,)
    gradient: str = "full"
    normalization: str = "sum"
    corrected: bool = True

    def completed(self, **defaults: Any) -> Options:
        """With the defaults where nothing was said."""
        return replace(
            self, **{name: value for name, value in defaults.items() if getattr(self, name) is None}
        )


def simulate(
    model: str, options: Options, target: Path | None, force: bool, announce: Callable[[str], None]
) -> str:
    """Run a model and write its course; returns what to print, a JSON object on one line.

    Raises:
        UsageFault: there is no such model, it does not take these options, or the file is there already.
    """
    if model not in MODELS:
        raise UsageFault(f"There is no model {model!r}; the models are {', '.join(MODELS)}.")
    if target is not None:
        check_free(target, force)
    try:
        run = MODELS[model](options, announce)
    except UsageFault:
        raise
    except ValueError as error:
        raise UsageFault(str(error)) from error
    if target is not None:
        with written(target) as fresh:
            run.to_netcdf(fresh, engine="h5netcdf")
    return json.dumps(_summary(run, target))


def merged(options: Options, announce: Callable[[str], None]) -> Dataset:
    """Merged key and query, by default at the settings of Fig. 1."""
    from odesys.simulation import networks

    if options.rank is not None or options.init_rule is not None:
        raise UsageFault("--rank and --init-rule mean nothing for merged; leave them out.")
    known = options.completed(heads=8, sequences=5000, init=1e-6, rate=1e-3, steps=6001)
    return _descend(networks.MergedAttention(known.heads, known.normalization), known, announce)


def separate(options: Options, announce: Callable[[str], None]) -> Dataset:
    """Separate key and query, by default at the settings of Fig. 3."""
    from odesys.simulation import networks

    known = options.completed(
        heads=5, rank=1, sequences=80_000, init=0.01, init_rule="per-head", rate=0.02, steps=10_001
    )
    network = networks.SeparateAttention(known.heads, known.rank, known.normalization, known.init_rule)
    return _descend(network, known, announce)


def _descend(network, options: Options, announce: Callable[[str], None]) -> Dataset:
    from odesys.simulation import descend, tasks

    dim = len(options.eigenvalues) if options.eigenvalues is not None else 4
    if options.dim is not None:
        if options.eigenvalues is not None and options.dim != dim:
            raise UsageFault(
                f"--dim {options.dim} and the {dim} numbers of --eigenvalues disagree; give one of them."
            )
        dim = options.dim
    seeds = list(options.seeds)
    task = tasks.linear_regression(
        dim=dim,
        context=31 if options.context is None else options.context,
        eigenvalues=options.eigenvalues,
        sequences=options.sequences,
        seed=seeds[0],
        rotate=options.corrected,
        whiten_tasks=options.corrected,
        centre_inputs=options.corrected,
    )
    announce(f"training {network!r} on P = {task.sequences} sequences, {options.steps} steps")
    return descend(
        network,
        task,
        init=options.init,
        rate=options.rate,
        steps=options.steps,
        every=_spacing(options),
        seed=seeds if len(seeds) > 1 else seeds[0],
        gradient=options.gradient,
    )


def _spacing(options: Options) -> int:
    """As asked for, or the smallest spacing that keeps at most 1001 steps, the last one among them."""
    if options.every is not None:
        return options.every
    last = (options.steps or 1) - 1
    return next((every for every in range(max(1, -(-last // 1000)), last + 1) if last % every == 0), 1)


def _summary(run: Dataset, target: Path | None) -> dict[str, Any]:
    first, last = (run["loss"].isel(step=place).values.tolist() for place in (0, -1))
    seeds = {"seeds": run["seed"].values.tolist()} if "seed" in run.dims else {}
    return {
        "network": run.attrs["network"],
        "steps": int(run["step"][-1]),
        **seeds,
        "first_loss": first,
        "last_loss": last,
        "file": None if target is None else str(target),
    }


#: What can be trained; to add a model is to add its function here.
MODELS: dict[str, Callable[[Options, Callable[[str], None]], Dataset]] = {
    "merged": merged,
    "separate": separate,
}
