"""RUN: numbers. Systems, integrators, full gradient-descent simulation, comparison and reports.

Reading order: `system`, `lambdify`, `integrators.contract`, `evaluation`; then `simulation`, `clock`,
`comparison`, `report`; `model_file` for models of one's own. Importing this package loads nothing else; every name
loads when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odesys import clock as clock
    from odesys import simulation as simulation
    from odesys import textbook as textbook
    from odesys.check import Check as Check
    from odesys.comparison import compare as compare
    from odesys.evaluation import DomainError as DomainError
    from odesys.evaluation import evaluate as evaluate
    from odesys.integrators.contract import solve as solve
    from odesys.integrators.ensemble import solve_ensemble as solve_ensemble
    from odesys.integrators.errors import IntegrationError as IntegrationError
    from odesys.iteration import iterate as iterate
    from odesys.lambdify import CompiledField as CompiledField
    from odesys.lambdify import compile_field as compile_field
    from odesys.report import Report as Report
    from odesys.system import MapSystem as MapSystem
    from odesys.system import ODESystem as ODESystem

    __version__: str

_HOMES = {
    "ODESystem": "odesys.system",
    "MapSystem": "odesys.system",
    "CompiledField": "odesys.lambdify",
    "compile_field": "odesys.lambdify",
    "solve": "odesys.integrators.contract",
    "solve_ensemble": "odesys.integrators.ensemble",
    "IntegrationError": "odesys.integrators.errors",
    "iterate": "odesys.iteration",
    "evaluate": "odesys.evaluation",
    "DomainError": "odesys.evaluation",
    "compare": "odesys.comparison",
    "Check": "odesys.check",
    "Report": "odesys.report",
}
_SUBMODULES = ("clock", "simulation", "textbook")

__all__ = [
    # systems and their callables
    "ODESystem",
    "MapSystem",
    "CompiledField",
    "compile_field",
    # trajectories
    "solve",
    "solve_ensemble",
    "iterate",
    "evaluate",
    # what goes wrong
    "IntegrationError",
    "DomainError",
    # judging
    "compare",
    "Check",
    "Report",
    # rooms within the room
    "clock",
    "simulation",
    "textbook",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"odesys.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("odesys")
    else:
        raise AttributeError(f"odesys has no {name!r}; its names are {sorted(__all__)}.")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
