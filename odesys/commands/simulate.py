"""`odesys simulate`: gradient descent on a real network or on a loss, and its course as a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from odesys.commands.faults import UsageFault, refuse
from odesys.commands.files import check_free, written
from odesys.commands.own_models import is_file, loaded, unknown
from odesys.commands.softmax_data import chosen

if TYPE_CHECKING:
    from xarray import Dataset

    from odesys.model_file import ModelFile

__all__ = ["MODELS", "Options", "simulate"]


#: What the command line calls those that it does not call by the name here.
_OPTIONS = {"corrected": "plain", "seeds": "seed"}


@dataclass(frozen=True)
class Options:
    """What the user asked for; None where nothing was said, and the model's defaults hold.

    `seeds` seed the initial weights, the first one the data too. `corrected` data are those of the authors: tokens
    centred at each position, task vectors centred and whitened over the sample, a random eigenbasis. `case` and
    `start` are of softmax regression: which data, and the first weights by name.
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
    case: str | None = None
    start: Mapping[str, float] | None = None

    def refuse(self, *names: str, model: str) -> None:
        """Raise a UsageFault if one of these options was given."""
        default = Options()
        said = {name: value for name in names if (value := getattr(self, name)) != getattr(default, name)}
        refuse(model, **{_OPTIONS.get(name, name): value for name, value in said.items()})

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
    if not is_file(model) and model not in MODELS:
        raise unknown(model, MODELS)
    if target is not None:
        check_free(target, force)
    try:
        run = own(model, options, announce) if is_file(model) else MODELS[model](options, announce)
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

    options.refuse("rank", "init_rule", "case", "start", model="merged")
    known = options.completed(heads=8, sequences=5000, init=1e-6, rate=1e-3, steps=6001)
    return _descend(networks.MergedAttention(known.heads, known.normalization), known, announce)


def separate(options: Options, announce: Callable[[str], None]) -> Dataset:
    """Separate key and query, by default at the settings of Fig. 3."""
    from odesys.simulation import networks

    options.refuse("case", "start", model="separate")
    known = options.completed(
        heads=5, rank=1, sequences=80_000, init=0.01, init_rule="per-head", rate=0.02, steps=10_001
    )
    network = networks.SeparateAttention(known.heads, known.rank, known.normalization, known.init_rule)
    return _descend(network, known, announce)


#: What is of networks on data sets alone.
_OF_NETWORKS = (
    "dim", "context", "heads", "rank", "eigenvalues", "sequences", "init", "init_rule", "seeds", "gradient",
    "normalization", "corrected",
)  # fmt: skip


def softmax(options: Options, announce: Callable[[str], None]) -> Dataset:
    """Softmax regression on the data of the study, by name, with the verdict on where it ends."""
    from fixedpoints.softmax_regression import verdict
    from odesys.simulation import descend

    options.refuse(*_OF_NETWORKS, model="softmax")
    case = chosen(options.case or "two-minima")
    known = options.completed(rate=0.1, steps=5001)
    model, judged = case.data.derived(case.loss), case.data.judged(case.loss)
    begin = _start(options.start, [x.name for x in model.weights])
    announce(f"descending: {case.title}, {known.steps} steps")
    run = descend(
        judged,
        np.reshape(list(begin.values()), judged.shape),
        rate=known.rate,
        steps=known.steps,
        every=_spacing(known),
    )
    course = run["w"].values.reshape(run.sizes["step"], -1).T
    weights = {x: ("step", values, {"long_name": x}) for x, values in zip(begin, course, strict=True)}
    run = run.drop_vars("w").assign(weights)
    ended = verdict(model, {x: float(run[x][-1]) for x in begin})
    return run.assign_attrs(model=case.title, verdict=ended.kind, sentence=ended.sentence)


def own(path: str, options: Options, announce: Callable[[str], None]) -> Dataset:
    """Gradient descent on the loss of a model file, by autodiff, with the file's observables."""
    from odesys.lambdify import compile_expressions
    from odesys.simulation import descend
    from odesys.studies._model_file.loss import jax_loss, weights

    options.refuse(*_OF_NETWORKS, "case", model="a model file")
    model = loaded(path)
    if model.loss is None:
        raise UsageFault(f"{path}: has no [loss] to descend; `odesys solve` runs the rule as it is.")
    begin = _start(
        options.start or model.required("start", "Descent begins there, or at --start"), model.rule.names
    )
    rate = _rate(model, options)
    known = replace(options, rate=rate, steps=_steps(model, options, rate))
    announce(f"descending the loss of {model.name}, {known.steps} steps of rate {rate:g}")
    run = descend(
        jax_loss(model), weights(model, begin), rate=known.rate, steps=known.steps, every=_spacing(known)
    )
    if model.observables:
        values = compile_expressions(
            tuple(map(model.at_numbers, model.observables.values())), model.rule.state
        )
        found = values(*(run[x].values for x in model.rule.names))
        run = run.assign({name: ("step", each) for name, each in zip(model.observables, found, strict=True)})
    return run.assign_attrs(model=model.name, source=model.source)


def _start(given: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    """A number for each weight, zero where nothing was said at all."""
    if given is None:
        return dict.fromkeys(names, 0.0)
    if set(given) != set(names):
        raise UsageFault(f"--start must name each of {', '.join(names)} once; got {', '.join(given)}.")
    return {name: given[name] for name in names}


def _rate(model: ModelFile, options: Options) -> float:
    if model.step is not None:
        if options.rate is not None:
            raise UsageFault(f"{model.path} says the step, {model.step}; leave --rate out.")
        return float(model.at_numbers(model.step))
    return options.rate or model.required("rate", "Say the learning rate, here or with --rate")


def _steps(model: ModelFile, options: Options, rate: float) -> int:
    """As asked for, or as the file says, or as many as reach its end: step k is at the time k rate tau."""
    if options.steps is not None:
        return options.steps
    if model.run.steps is not None:
        return model.run.steps + 1
    end = model.required("end", "Say how long to descend, or --steps")
    return round(end / (rate * float(model.at_numbers(model.time_constant or sp.Integer(1))))) + 1


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
    what = "network" if "network" in run.attrs else "model"
    ends = (
        {"end": {name: float(run[name][-1]) for name in run.data_vars if name != "loss"}}
        if what == "model"
        else {}
    )
    judged = {name: run.attrs[name] for name in ("verdict", "sentence") if name in run.attrs}
    return {
        what: run.attrs[what],
        "steps": int(run["step"][-1]),
        **seeds,
        "first_loss": first,
        "last_loss": last,
        **ends,
        **judged,
        "file": None if target is None else str(target),
    }


#: What can be trained; to add a model is to add its function here.
MODELS: dict[str, Callable[[Options, Callable[[str], None]], Dataset]] = {
    "merged": merged,
    "separate": separate,
    "softmax": softmax,
}
