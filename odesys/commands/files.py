"""Output files: never overwritten unasked, never half-written."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from odesys.commands.faults import UsageFault

__all__ = ["check_free", "written"]


def check_free(target: Path, force: bool) -> None:
    """Refuse a file that cannot or must not be written; call it before the long work starts.

    Raises:
        UsageFault: it exists and `force` is not set, it is a folder, or its folder does not exist or is not writable.
    """
    if target.is_dir():
        raise UsageFault(f"`{target}` is a folder; name a file in it.")
    if target.exists() and not force:
        raise UsageFault(f"`{target}` exists and is not overwritten; give --force, or another name.")
    probe = _sibling(target)
    try:
        # Only trying tells: permission bits say nothing to an administrator, nor on a read-only disk.
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageFault(
            f"`{target}` cannot be written: {error.strerror or error}. Name another file."
        ) from error


@contextlib.contextmanager
def written(target: Path) -> Iterator[Path]:
    """A path to write to, which takes the target's place when all went well."""
    fresh = _sibling(target)
    try:
        yield fresh
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


def _sibling(target: Path) -> Path:
    return target.parent / f".{target.stem}-{uuid.uuid4().hex[:8]}{target.suffix}"
