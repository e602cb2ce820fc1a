"""A folder that is replaced whole: a reader sees the old one or the new one, never a half-written one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

__all__ = ["ReportFolderError", "check_writable", "replacing"]

#: The file by which a report folder is recognised as ours; no other folder is ever replaced.
MARKER = "report.json"


class ReportFolderError(OSError):
    """The output folder cannot be written, or it is not a report folder and must not be replaced."""


def check_writable(folder: str | os.PathLike) -> Path:
    """The resolved path of a report folder that can be written; call it before the long work starts.

    A folder that does not exist, is empty, or holds an earlier report of ours may be written.

    Raises:
        ReportFolderError: the folder holds something else, is in use as the working folder, is a file,
            or the place where it would be created cannot be written.
    """
    target = Path(folder).expanduser().resolve()
    if target.exists() and not target.is_dir():
        raise ReportFolderError(f"`{folder}` is a file, not a folder. Name another output folder.")
    if Path.cwd().is_relative_to(target):
        raise ReportFolderError(
            f"`{folder}` holds the working folder, and a report folder is replaced whole. "
            "Name a folder of its own, such as ./odesys-report."
        )
    if target.exists() and any(target.iterdir()) and not _is_ours(target):
        raise ReportFolderError(
            f"`{folder}` is not empty and holds no report of ours (no {MARKER}), so it is not replaced. "
            "Name a new or empty folder."
        )
    ancestor = target.parent
    while not ancestor.exists():
        ancestor = ancestor.parent
    probe = _sibling(ancestor / target.name)
    try:
        # Only trying tells: permission bits say nothing to an administrator, nor on a read-only disk.
        probe.mkdir()
        probe.rmdir()
        if target.is_mount():
            raise OSError("it is a mount point and cannot be swapped; name a folder inside it")
    except OSError as error:
        raise ReportFolderError(
            f"The report folder `{folder}` cannot be written: {error.strerror or error}. "
            "Name another output folder."
        ) from None
    return target


@contextlib.contextmanager
def replacing(folder: str | os.PathLike, *, keep: bool = False) -> Iterator[Path]:
    """A temporary sibling folder to write into; when the block ends well, it takes the place of `folder`.

    An error or Ctrl-C inside the block leaves the old folder as it was and removes the temporary one.

    Args:
        folder: the folder to replace.
        keep: start from a copy of the old content instead of an empty folder.
    Raises:
        ReportFolderError: as `check_writable`.
    """
    target = check_writable(folder)
    fresh = _sibling(target)
    try:
        if keep and target.exists():
            shutil.copytree(target, fresh)
        else:
            fresh.mkdir(parents=True)
        yield fresh
        with _signals_deferred():
            _swap(fresh, target)
    finally:
        with _signals_deferred():
            shutil.rmtree(fresh, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    try:
        document = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and {"passed", "checks"} <= document.keys()


def _sibling(target: Path) -> Path:
    # A sibling, so that renaming never crosses a file system; a fresh name, so that two runs do not meet.
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}")


def _swap(fresh: Path, target: Path) -> None:
    if not target.exists():
        fresh.rename(target)
        return
    old = _sibling(target)
    target.rename(old)
    try:
        fresh.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """Hold Ctrl-C back for the few milliseconds between two renames; it is raised right after."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[tuple] = []
    previous = signal.signal(signal.SIGINT, lambda *event: arrived.append(event))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if arrived and callable(previous):
        previous(*arrived[-1])
