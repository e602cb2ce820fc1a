"""What a command tells people: its progress on standard error, its answer on standard output."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator

from rich.console import Console

from odesys.studies import Announce

__all__ = ["progress", "terminal"]


@contextlib.contextmanager
def progress() -> Iterator[Announce]:
    """Tell on stderr what is being done: one moving line on a terminal, a line per step elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        start = time.perf_counter()
        yield lambda text: print(
            f"[{time.perf_counter() - start:5.1f} s] {text}", file=sys.stderr, flush=True
        )
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        line = bar.add_task("starting", total=None)
        yield lambda text: bar.update(line, description=text)


def terminal() -> Console:
    """Standard output; wide where it is not a terminal, so that logs keep a row in a line."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=120)
