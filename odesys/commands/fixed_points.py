"""`odesys fixed-points`: each model that can be named, and where it stops.

A model is a function from the options to an `Answer`; to add one is to add it to `MODELS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from odesys import textbook
from odesys.commands.answers import Answer, ComponentRow, PointRow, general
from odesys.commands.faults import UsageFault, refuse
from odesys.commands.own_models import is_file, loaded, unknown
from odesys.commands.softmax_data import chosen

if TYPE_CHECKING:
    from fixedpoints.linear_attention import Lattice, Point

__all__ = ["MODELS", "Options", "answer"]

#: Numbers that one answer may hold; a hundred points of D = H = 150 stay below.
_MOST_EIGENVALUES = 5_000_000


@dataclass(frozen=True)
class Options:
    """What the user asked for; None where nothing was said. `limit` is the most points to show."""

    dim: int | None = None
    context: int | None = None
    heads: int | None = None
    rank: int | None = None
    eigenvalues: Sequence[float] | None = None
    limit: int = 100
    case: str | None = None

    def refuse(self, *names: str, model: str) -> None:
        """Raise a UsageFault if one of these options was given."""
        refuse(model, **{name: getattr(self, name) for name in names})

    @property
    def spectrum(self) -> tuple[float, ...]:
        """The eigenvalues: as given, or the authors' choice, proportional to D, ..., 1 with trace 1."""
        if self.eigenvalues is None:
            dim = 4 if self.dim is None else self.dim
            if dim < 1:
                raise UsageFault(f"--dim is the dimension D of the tokens and must be at least 1; got {dim}.")
            return tuple(2 * d / (dim * (dim + 1)) for d in range(dim, 0, -1))
        if self.dim not in (None, len(self.eigenvalues)):
            raise UsageFault(
                f"--dim {self.dim} and the {len(self.eigenvalues)} numbers of --eigenvalues disagree; give one of them."
            )
        return tuple(self.eigenvalues)

    @property
    def pairs(self) -> int:
        """N, by default the authors' 31."""
        return 31 if self.context is None else self.context


def answer(model: str, options: Options) -> Answer:
    """Where a model stops.

    Raises:
        UsageFault: there is no such model, or it does not take these options.
    """
    if is_file(model):
        return own(model, options)
    if model not in MODELS:
        raise unknown(model, MODELS)
    try:
        return MODELS[model](options)
    except UsageFault:
        raise
    except ValueError as error:
        raise UsageFault(str(error)) from error


def merged(options: Options) -> Answer:
    """Merged key and query: two functions, each a manifold of weights."""
    from fixedpoints.linear_attention import merged as fixed_point_sets

    options.refuse("rank", "case", model="merged")
    heads = 8 if options.heads is None else options.heads
    found = fixed_point_sets(options.spectrum, options.pairs, heads)
    index = [dict(zip(("negative", "zero", "positive"), s.index, strict=True)) for s in found]
    return Answer(
        f"merged key and query: D = {len(options.spectrum)}, N = {options.pairs}, H = {heads}, {_listed(options)}",
        "complete",
        "found 2; complete: if some v_i is not zero then G = 0, that is M = M*; else G = Lambda^2",
        [PointRow(s.modes, s.eigenvalues().tolist(), s.stability, s.index, s.loss) for s in found],
        2,
        [
            ComponentRow([s.equation], s.dimension, {"name": s.name, "loss": s.loss, "index": i})
            for s, i in zip(found, index, strict=True)
        ],
        notes=[
            "The index is the same all over a component; eigenvalues (tau = 1) are of these weights: "
            + "; ".join(f"{s.name}: {s.representative}" for s in found)
            + "."
        ],
    )


def separate(options: Options) -> Answer:
    """Separate key and query: the lattice of learned modes, by falling loss."""
    from fixedpoints.linear_attention import Lattice

    options.refuse("case", model="separate")
    heads = 5 if options.heads is None else options.heads
    lattice = Lattice(options.spectrum, options.pairs, heads, 1 if options.rank is None else options.rank)
    shown, which = _shown(lattice, options.limit)
    continua = [point for point in shown if point.dimension]
    return Answer(
        f"separate key and query: D = {lattice.task.dim}, N = {options.pairs}, H = {lattice.heads}, "
        f"R = {lattice.rank}, {_listed(options)}",
        lattice.certificate.kind,
        str(lattice.certificate),
        [PointRow(p.modes, p.eigenvalues().tolist(), p.stability, p.index, p.loss) for p in shown],
        lattice.size,
        [
            ComponentRow(
                [f"{e} = 0" for e in p.component.equations],
                p.dimension,
                {"modes": list(p.modes), "loss": p.loss},
            )
            for p in continua
        ],
        # Where eigenvalues meet, functions at which the flow stops merge into a continuum.
        exceptions=[f"lambda_{space[-1] + 1} = lambda_{space[-1] + 2}" for space in lattice.task.spaces[:-1]],
        notes=[
            *which,
            "Eigenvalues (tau = 1) and index are of the structured weights: one head for every R modes, all else "
            "zero. Other weights of the same function may have another index.",
        ],
    )


def _shown(lattice: Lattice, limit: int) -> tuple[Sequence[Point], list[str]]:
    """The points to show, and a note that says which of them these are."""
    from fixedpoints.linear_attention.lattice import MOST

    coordinates = lattice.heads * (1 + 2 * lattice.rank * lattice.task.dim)
    if min(limit, lattice.size) * coordinates > _MOST_EIGENVALUES:
        raise UsageFault(
            f"Each point has {coordinates} eigenvalues, too many to show {limit} points; "
            f"give --limit {max(1, _MOST_EIGENVALUES // coordinates)} or fewer heads."
        )
    if lattice.size > MOST:
        nested = lattice.nested[:limit]
        return nested, [
            f"Shown are {len(nested)} of {lattice.size} points, those that have learned the first m modes; all are "
            "too many to sort."
        ]
    points = [lattice[int(place)] for place in lattice.order[:limit]]
    if len(points) == lattice.size:
        return points, []
    return points, [
        f"Shown are the first {len(points)} of {lattice.size} points by falling loss; see --limit."
    ]


def softmax(options: Options) -> Answer:
    """Softmax regression on the data of the study, by name: complete on the whole space."""
    from fixedpoints.softmax_regression import points

    options.refuse("dim", "context", "heads", "rank", "eigenvalues", model="softmax")
    case = chosen(options.case or "two-minima")
    stops = points(case.data.derived(case.loss))
    answer = general(case.title, stops.found)
    rows = [replace(row, loss=loss) for row, loss in zip(answer.points, stops.losses, strict=True)]
    kept = ", ".join(str(integral.expression) for integral in stops.flat)
    flat = [
        f"The flow conserves {kept}, so that each point stands for a whole family; shown is the one where the flat "
        "weights are zero."
    ]
    compared = f"The indices sum to {stops.index_sum}, and infinity demands {stops.expected}"
    if None in (stops.index_sum, stops.expected):
        compared = "No sum of indices is compared with infinity"
    notes = [*answer.notes, *(flat if kept else ()), f"{compared}: {stops.witness}."]
    return replace(answer, points=rows, notes=notes)


def book(name: str, problem: Callable[[], textbook.Problem], options: Options) -> Answer:
    """A system of `odesys.textbook`, by `fixedpoints.find`."""
    import fixedpoints

    options.refuse("dim", "context", "heads", "rank", "eigenvalues", "case", model=name)
    system = problem().system
    numbers = ", ".join(f"{parameter} = {value:.6g}" for parameter, value in system.parameters.items())
    return general(f"{name}: {numbers}" if numbers else name, fixedpoints.find(system))


def own(path: str, options: Options) -> Answer:
    """A model file at its exact numbers, in its box if it has one."""
    import fixedpoints
    from odesys.lambdify import compile_expressions

    options.refuse("dim", "context", "heads", "rank", "eigenvalues", "case", model="a model file")
    model = loaded(path)
    numbers = ", ".join(f"{name} = {value}" for name, value in model.numbers.items())
    title = f"{model.name}: {numbers}" if numbers else model.name
    try:
        found = fixedpoints.find(model.exact, box=model.box)
    except ValueError as error:
        raise UsageFault(f"{path}: {error}") from error
    if model.loss is None:
        return general(title, found)
    loss = compile_expressions((model.at_numbers(model.loss),), model.rule.state)
    return general(title, found, lambda place: float(loss(*(float(place[x]) for x in model.rule.names))[0]))


def _listed(options: Options) -> str:
    spectrum = options.spectrum
    text = ", ".join(f"{value:.4g}" for value in spectrum[:8])
    return f"eigenvalues {text}{', ...' if len(spectrum) > 8 else ''}"


MODELS: dict[str, Callable[[Options], Answer]] = {
    "merged": merged,
    "separate": separate,
    "softmax": softmax,
    **{name: partial(book, name, problem) for name, problem in textbook.BY_NAME.items()},
}
