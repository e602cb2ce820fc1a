"""The command line: `odesys check` runs studies and writes a report, `odesys derive` derives a model,
`odesys fixed-points` says where it stops, `odesys solve` integrates it, `odesys simulate` trains it,
`odesys portrait` draws it. A model is one by name, or FILE.toml for one of the user's own.

Exit codes: 0 done and all checks hold; 1 a check fails or a run breaks off; 2 wrong usage or a faulty input;
130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from odesys import studies
from odesys.commands.faults import BrokenRun, UsageFault
from odesys.commands.option_texts import box_of, numbers_of, start_of
from odesys.commands.own_models import is_file
from odesys.commands.terminal import progress, terminal
from odesys.folder import ReportFolderError, check_writable
from odesys.report import Picture, Report, add_pictures

__all__ = ["main"]

DEFAULT_FOLDER = Path("odesys-report")

#: The seed of the linear-attention paper's own runs.
DEFAULT_SEED = 10

INTERRUPTED = 130

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# Arguments and options that commands share: an alias where all say the same, a function where each has its own word.
Dim = Annotated[int | None, typer.Option(help="D, the dimension of the tokens; 4 by default.")]
Context = Annotated[int | None, typer.Option(help="N, the number of context pairs; 31 by default.")]
Heads = Annotated[int | None, typer.Option(help="H, the number of heads; by default 8 merged, 5 separate.")]
Rank = Annotated[
    int | None, typer.Option(help="R, rows of a head's key and query matrices (separate); 1 by default.")
]


#: What may stand wherever a model is named.
_OWN = ", or FILE.toml of your own"


def _model(which: str) -> Any:
    return typer.Argument(metavar="MODEL", help=which)


def _eigenvalues(what: str) -> Any:
    return typer.Option(metavar="L1,L2,...", help=f"{what}; by default like D, ..., 1, trace 1.")


def _case(which: str) -> Any:
    return typer.Option("--case", help=f"Which data (softmax){which}.")


def _out(what: str) -> Any:
    return typer.Option("-o", "--out", help=what)


def _force(what: str) -> Any:
    return typer.Option("--force", help=f"Overwrite {what}.")


def _json(what: str) -> Any:
    return typer.Option("--json", help=f"Print the {what} as one JSON object.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; faults are one line on stderr, never a traceback."""
    try:
        given = None if arguments is None else list(arguments)
        code = app(given, prog_name="odesys", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (UsageFault, ReportFolderError) as error:
        return _fault(error, 2)
    except Exception as error:
        # Typer's usage errors share this method but, from one release to the next, no importable class.
        if hasattr(error, "format_message"):
            return _fault(f"{error.format_message().rstrip('.')}. See odesys --help.", 2)
        if not isinstance(error, _broken_runs()):
            raise
        return _fault(error, 1)
    # Typer answers Ctrl-C with this code or with Abort, from one release to the next.
    return _fault("interrupted; no half-written report is left.", code) if code == INTERRUPTED else code


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        print(f"odesys {metadata.version('odesys')}")
        raise typer.Exit(0)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Derive gradient flows, run them, explain their fixed points, and judge all of it by training."""
    del version
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


@app.command()
def check(
    study: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY|FILE.toml]...",
            help="Which studies, or models of your own; all studies by default.",
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Paper-size runs instead of quick ones.")] = False,
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only draw this figure of a paper; may be repeated."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seeds every random number.")
    ] = DEFAULT_SEED,
    out: Annotated[Path, typer.Option(help="The report folder; an earlier report in it is replaced.")] = (
        DEFAULT_FOLDER
    ),
    as_json: Annotated[bool, _json("verdicts")] = False,
) -> int:
    """Derive, integrate, train, compare: a table of verdicts, and a report with figures and data."""
    chosen = tuple(dict.fromkeys(study or studies.names()))
    files = [name for name in chosen if is_file(name)]
    unknown = [name for name in chosen if name not in (*studies.names(), *files)]
    if unknown:
        raise UsageFault(
            f"There is no study {unknown[0]!r}; the studies are {', '.join(studies.names())}. "
            "A model of your own is named by its file, FILE.toml."
        )
    if figure and files:
        raise UsageFault(f"--figure draws figures of studies; those of {files[0]} come with its report.")
    scale = "full" if full else "quick"
    check_writable(out)
    own = _own_models(files)
    _enable_float64()
    if figure:
        return _draw(tuple(dict.fromkeys(figure)), studies.figures(chosen), scale, seed, out, as_json)
    runs: dict[str, Callable[[studies.Announce], studies.StudyResult]] = {
        name: own[name] if name in own else partial(studies.run, name, scale, seed) for name in chosen
    }
    return _judge(runs, out, as_json)


def _own_models(files: Sequence[str]) -> dict[str, Callable[[studies.Announce], studies.StudyResult]]:
    """The study of each model file, by the file; all files are read before the first long run."""
    if not files:
        return {}
    from odesys.commands.check_file import checked, models

    return {name: partial(checked, model) for name, model in zip(files, models(files), strict=True)}


def _judge(
    runs: Mapping[str, Callable[[studies.Announce], studies.StudyResult]], out: Path, as_json: bool
) -> int:
    found = studies.StudyResult()
    with progress() as announce:
        for name, run in runs.items():
            found += run(lambda text, name=name: announce(f"{name}: {text}"))
        announce("writing the report")
        report = Report(f"odesys check {' '.join(runs)}", found.checks, found.figures, found.data)
        page = report.save(out)
    if as_json:
        print(report.to_json())
    else:
        console = terminal()
        console.print(report.table())
        console.print(Text(report.summary, style="bold green" if report.passed else "bold red"))
        console.print(
            f"The report with figures and data is {page}", soft_wrap=True, highlight=False, markup=False
        )
    return 0 if report.passed else 1


def _draw(
    wanted: Sequence[str],
    known: Mapping[str, studies.Drawing],
    scale: studies.Scale,
    seed: int,
    out: Path,
    as_json: bool,
) -> int:
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageFault(f"There is no figure {unknown[0]!r}; the figures are {', '.join(sorted(known))}.")
    pictures: list[Picture] = []
    data = {}
    with progress() as announce:
        for name in wanted:
            picture, datasets = known[name](scale, seed, lambda text, name=name: announce(f"{name}: {text}"))
            pictures.append(picture)
            data |= datasets
    paths = [str(path) for path in add_pictures(out, pictures, data)]
    if as_json:
        print(json.dumps({"figures": paths, "data": [str(out / "data" / f"{name}.nc") for name in data]}))
    else:
        print("\n".join(paths))
    return 0


@app.command()
def derive(
    model: Annotated[str, _model(f"merged, separate, softmax, a textbook system such as lorenz{_OWN}.")],
    dim: Annotated[int | None, typer.Option(help="D, the dimension of the tokens; 2 by default.")] = None,
    heads: Annotated[int | None, typer.Option(help="H, the number of heads; 1 by default.")] = None,
    rank: Rank = None,
    case: Annotated[
        str | None, _case(", such as two-minima; by default letters, --n of them on --d weights")
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", help="Targets of the letters (softmax); 3 by default.")
    ] = None,
    d: Annotated[
        int | None, typer.Option("--d", help="Weights of the letters (softmax); 1 by default.")
    ] = None,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print a LaTeX document with all expressions whole.")
    ] = False,
    as_json: Annotated[bool, _json("derivation")] = False,
) -> int:
    """Loss, flow, conserved quantities, smaller flows, time courses, fixed points: derived and proven by SymPy."""
    from odesys.commands.derive import Options
    from odesys.commands.derive import derive as run

    if latex and as_json:
        raise UsageFault("--latex and --json are two forms of one answer; give one of them.")
    with progress() as announce:
        found = run(model, Options(dim, heads, rank, case, n, d), announce)
    print(found.to_latex() if latex else found.to_json() if as_json else found.to_text())
    return 0


@app.command()
def solve(
    file: Annotated[str, typer.Argument(metavar="FILE.toml", help="A model of your own.")],
    method: Annotated[
        str | None, typer.Option(help="RK45, DOP853, LSODA, Radau, BDF, Tsit5, Dopri8 or Kvaerno5.")
    ] = None,
    rtol: Annotated[float | None, typer.Option(help="Relative tolerance; 1e-8 by default.")] = None,
    end: Annotated[float | None, typer.Option(help="The last time, counted from 0.")] = None,
    points: Annotated[int | None, typer.Option(min=2, help="How many times to keep; 201 by default.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="How often to apply a map.")] = None,
    out: Annotated[Path | None, _out("NetCDF file for the run.")] = None,
    force: Annotated[bool, _force("that file")] = False,
) -> int:
    """Integrate a model of your own from its start; one JSON object says how it went, -o keeps the whole run."""
    from odesys.commands.solve import solve as run

    changes = {"method": method, "rtol": rtol, "end": end, "points": points, "steps": steps}
    print(run(file, changes, out, force))
    return 0


@app.command("fixed-points")
def fixed_points(
    model: Annotated[str, _model(f"merged, separate, softmax, a textbook system such as lorenz{_OWN}.")],
    dim: Dim = None,
    context: Context = None,
    heads: Heads = None,
    rank: Rank = None,
    eigenvalues: Annotated[str | None, _eigenvalues("Of the covariance, falling")] = None,
    case: Annotated[str | None, _case(", such as two-minima")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The most points to show.")] = 100,
    as_json: Annotated[bool, _json("answer")] = False,
) -> int:
    """Where a model stops, what it does there, and how sure it is that nothing is missing."""
    from odesys.commands.fixed_points import Options, answer

    spectrum = numbers_of("--eigenvalues", eigenvalues)
    found = answer(model, Options(dim, context, heads, rank, spectrum, limit, case))
    if as_json:
        print(found.to_json())
        return 0
    console = terminal()
    console.print(Text(found.title, style="bold"))
    if found.points:
        console.print(found.table())
    for line in found.lines:
        console.print(line, highlight=False, markup=False)
    return 0


@app.command()
def simulate(
    model: Annotated[str, _model(f"merged, separate, softmax{_OWN}.")],
    dim: Dim = None,
    context: Context = None,
    heads: Heads = None,
    rank: Rank = None,
    eigenvalues: Annotated[str | None, _eigenvalues("Of the covariance")] = None,
    sequences: Annotated[
        int | None, typer.Option(help="P, the sequences of the data; by default 5000 merged, 80000 separate.")
    ] = None,
    init: Annotated[float | None, typer.Option(help="Size of the initial weights.")] = None,
    init_rule: Annotated[
        str | None, typer.Option(help="What that size means (separate): per-head, per-layer or entry.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps to record, step 0 included.")] = None,
    every: Annotated[
        int | None, typer.Option(help="Keep each such step; by default at most 1001 of them.")
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Of the initial weights, the first one of the data too; repeatable."),
    ] = None,
    gradient: Annotated[str, typer.Option(help="full, restricted or raw.")] = "full",
    normalization: Annotated[str, typer.Option(help="sum (the authors' code), mean or tokens.")] = "sum",
    plain: Annotated[
        bool, typer.Option("--plain", help="Data as drawn: not centred, not whitened, covariance diagonal.")
    ] = False,
    case: Annotated[str | None, _case(", such as two-minima")] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="X=NUMBER,...", help="First weights (softmax, files); by default 0, or the file's."
        ),
    ] = None,
    out: Annotated[Path | None, _out("NetCDF file for the run.")] = None,
    force: Annotated[bool, _force("that file")] = False,
) -> int:
    """Train by gradient descent on the real loss; one JSON object says how it went, -o keeps the whole run."""
    from odesys.commands.simulate import Options
    from odesys.commands.simulate import simulate as run

    spectrum = numbers_of("--eigenvalues", eigenvalues)
    options = Options(
        dim, context, heads, rank, spectrum, sequences, init, init_rule, rate, steps, every,
        tuple(seed or (DEFAULT_SEED,)), gradient, normalization, not plain, case, start_of(start),
    )  # fmt: skip
    _enable_float64()
    with progress() as announce:
        found = run(model, options, out, force, announce)
    print(found)
    return 0


@app.command()
def portrait(
    model: Annotated[str, _model(f"merged, separate, softmax, a textbook system such as van-der-pol{_OWN}.")],
    out: Annotated[Path, _out("The picture, a PNG.")],
    case: Annotated[str | None, _case(": two-minima, three-points, three-points-rescaled")] = None,
    box: Annotated[
        str | None, typer.Option(metavar="X=LOW:HIGH,...", help="Where to look (textbook systems and files).")
    ] = None,
    force: Annotated[bool, _force("the picture")] = False,
) -> int:
    """Draw the phase portrait of a model: fixed points, nullclines, separatrices, streamlines."""
    from odesys.commands.portrait import draw

    print(draw(model, case, box_of(box), out, force))
    return 0


def _enable_float64() -> None:
    # Theory and training are compared to better than float32 resolves. This process is the command's own, so
    # the switch is global here and only here. No persistent compilation cache is set up: compiled code in a
    # folder shared by unlike machines may not run on all of them, and it would save a tenth of the time.
    import jax

    jax.config.update("jax_enable_x64", True)


def _broken_runs() -> tuple[type[Exception], ...]:
    """The errors by which a run or a proof says that it broke off: findings, not faults of the program."""
    from odesys.integrators.errors import IntegrationError
    from odesys.simulation.descent import DescentError
    from symbolic import errors

    return (BrokenRun, IntegrationError, DescentError, *(getattr(errors, name) for name in errors.__all__))


def _fault(message: object, code: int) -> int:
    print(f"odesys: {' '.join(str(message).split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
