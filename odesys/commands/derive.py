"""`odesys derive`: what SymPy derives and proves of a model, in reading order, and plainly what was not found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from odesys import textbook
from odesys.commands import derived_models, derived_rules
from odesys.commands.derivation import Derivation
from odesys.commands.faults import UsageFault, refuse
from odesys.commands.own_models import is_file, loaded, unknown

__all__ = ["MODELS", "Options", "derive"]


@dataclass(frozen=True)
class Options:
    """What the user asked for; None where nothing was said.

    `dim`, `heads` and `rank` are of linear attention; `case` names the data of softmax regression, or is "letters" for
    `n` targets on `d` weights.
    """

    dim: int | None = None
    heads: int | None = None
    rank: int | None = None
    case: str | None = None
    n: int | None = None
    d: int | None = None

    def refuse(self, *names: str, model: str) -> None:
        """Raise a UsageFault if one of these options was given."""
        refuse(model, **{name: getattr(self, name) for name in names})


def derive(model: str, options: Options, announce: Callable[[str], None]) -> Derivation:
    """Derive a model by name, or one of the user's own from its file.

    Raises:
        UsageFault: there is no such model, it does not take these options, or the file is faulty.
    """
    if is_file(model):
        options.refuse("dim", "heads", "rank", "case", "n", "d", model="a model file")
        return derived_rules.of_file(loaded(model), announce)
    if model not in MODELS:
        raise unknown(model, MODELS)
    try:
        return MODELS[model](options, announce)
    except UsageFault:
        raise
    except ValueError as error:
        raise UsageFault(str(error)) from error


def merged(options: Options, announce: Callable[[str], None]) -> Derivation:
    """Merged key and query, by default D = 2 and one head."""
    options.refuse("rank", "case", "n", "d", model="merged")
    return derived_models.merged(_or(options.dim, 2), _or(options.heads, 1), announce)


def separate(options: Options, announce: Callable[[str], None]) -> Derivation:
    """Separate key and query, by default D = 2, one head of rank one."""
    options.refuse("case", "n", "d", model="separate")
    return derived_models.separate(_or(options.dim, 2), _or(options.heads, 1), _or(options.rank, 1), announce)


def softmax(options: Options, announce: Callable[[str], None]) -> Derivation:
    """Softmax regression, by default of letters, three targets on one weight."""
    options.refuse("dim", "heads", "rank", model="softmax")
    return derived_models.softmax(options.case or "letters", options.n, options.d, announce)


def book(
    problem: Callable[[], textbook.Problem], name: str, options: Options, announce: Callable
) -> Derivation:
    """A system of `odesys.textbook`."""
    options.refuse("dim", "heads", "rank", "case", "n", "d", model=name)
    return derived_rules.of_problem(problem(), announce)


def _or(given: Any, default: Any) -> Any:
    return default if given is None else given


MODELS: dict[str, Callable[[Options, Callable[[str], None]], Derivation]] = {
    "merged": merged,
    "separate": separate,
    "softmax": softmax,
    **{name: partial(book, problem, name) for name, problem in textbook.BY_NAME.items()},
}
