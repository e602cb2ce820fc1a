"""A Report is what was found: checks, with the figures and the data behind them."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from odesys.check import COLUMNS, Check, control, row
from odesys.folder import MARKER, replacing
from odesys.report_page import fragment, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table
    from xarray import Dataset

__all__ = ["Check", "Picture", "Report", "add_pictures", "control"]


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with what a reader needs around it.

    Args:
        name: the stem of its file name: letters, digits, dots, underscores and hyphens.
        figure: the matplotlib Figure.
        caption: one sentence shown under it.
        alt: what the figure shows, for readers who cannot see it.
    Raises:
        ValueError: the name is no file name, or the caption or the alternative text is empty.
    """

    name: str
    figure: Figure
    caption: str
    alt: str

    def __post_init__(self):
        _check_stem(self.name, "picture")
        if not self.caption.strip() or not self.alt.strip():
            raise ValueError(f"The picture {self.name!r} needs both a caption and an alternative text.")

    def png(self) -> bytes:
        """The picture as PNG."""
        from io import BytesIO

        stream = BytesIO()
        self.figure.savefig(stream, format="png", dpi=160, facecolor="white")
        return stream.getvalue()


@dataclass(frozen=True, eq=False)
class Report:
    """Checks with the figures and the data behind them.

    Args:
        title: what was studied.
        checks: the checks, in the order in which they are shown.
        figures: pictures, each with its own name.
        data: datasets by name; each name is the stem of a file name.
    Raises:
        TypeError: an entry is not a Check, or not a Picture.
        ValueError: two pictures share a name, or a name is no file name.
    """

    title: str
    checks: Sequence[Check]
    figures: Sequence[Picture] = ()
    data: Mapping[str, Dataset] = field(default_factory=dict)

    def __post_init__(self):
        for name, kind in (("checks", Check), ("figures", Picture)):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            for entry in getattr(self, name):
                if not isinstance(entry, kind):
                    raise TypeError(
                        f"`{name}` must hold {kind.__name__} objects; got {type(entry).__name__}."
                    )
        object.__setattr__(self, "data", dict(self.data))
        repeated = sorted(
            name for name, count in Counter(picture.name for picture in self.figures).items() if count > 1
        )
        if repeated:
            raise ValueError(
                f"The pictures' names must differ, since they name files; {repeated} come twice."
            )
        for name in self.data:
            _check_stem(name, "dataset")

    @property
    def passed(self) -> bool:
        """True when there are checks and all of them pass."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def summary(self) -> str:
        """The verdict in one sentence."""
        if not self.checks:
            return "No checks were run."
        failed = [check for check in self.checks if not check.passed]
        faults = sum(check.planted for check in self.checks)
        claims = len(self.checks) - faults
        if failed:
            return f"{len(failed)} of {len(self.checks)} checks failed, first {failed[0].name!r}."
        caught = f", and {_counted(faults, 'planted fault')} {'was' if faults == 1 else 'were'} caught"
        return f"{_counted(claims, 'check')} {'holds' if claims == 1 else 'hold'}{caught if faults else ''}."

    def table(self) -> Table:
        """A rich table for the terminal: check, measured, expected, tolerance, verdict, source."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        table.title, table.title_justify = Text(self.title, style="bold"), "left"
        for heading in COLUMNS:
            if heading in ("check", "source"):
                table.add_column(heading, overflow="fold")
            else:
                table.add_column(heading, justify="left" if heading == "verdict" else "right", no_wrap=True)
        study = ""
        for check in self.checks:
            if check.study != study:
                study = check.study
                table.add_section()
                table.add_row(Text(study, style="bold cyan"))
            cells = [Text(cell) for cell in row(check)]
            cells[4].stylize("green" if check.passed else "bold red")
            table.add_row(*cells)
        return table

    def to_json(self) -> str:
        """The verdicts as one JSON object,  {"passed": bool, "checks": [{"name": ..., "passed": ...}, ...]}.

        A check has "name", "measured", "expected", "tolerance", "passed", "source", "reason" and "study";
        numbers that are not finite become strings, never NaN.
        """
        checks = [
            {
                "name": check.name,
                "measured": _json_number(check.measured),
                "expected": _json_number(check.expected),
                "tolerance": check.tolerance,
                "passed": check.passed,
                "source": check.source,
                "reason": check.reason,
                "study": check.study,
            }
            for check in self.checks
        ]
        return json.dumps(
            {"passed": self.passed, "checks": checks}, indent=2, allow_nan=False, ensure_ascii=False
        )

    def save(self, folder: str | os.PathLike) -> Path:
        """Write `report.html` (self-contained), `report.json`, `figures/NAME.png` and `data/NAME.nc`.

        The folder is replaced whole: after an error or Ctrl-C the old report is still there, untouched.

        Returns:
            The path of `report.html`.
        Raises:
            ReportFolderError: the folder cannot be written, or holds something that is not a report of ours.
        """
        with replacing(folder) as fresh:
            images = _write_files(fresh, self.figures, self.data)
            (fresh / "report.html").write_text(page(self, images), encoding="utf-8")
            (fresh / MARKER).write_text(self.to_json() + "\n", encoding="utf-8")
        return Path(folder) / "report.html"

    def _repr_html_(self) -> str:
        return fragment(self)


def add_pictures(
    folder: str | os.PathLike, pictures: Sequence[Picture], data: Mapping[str, Dataset]
) -> list[Path]:
    """Add pictures and their data to a report folder, whose report stays; a new one reports no checks.

    Returns:
        The paths of the PNG files, in order.
    Raises:
        ReportFolderError: as `Report.save`.
    """
    if not (Path(folder) / MARKER).exists():
        Report("Figures", (), pictures, data).save(folder)
    else:
        with replacing(folder, keep=True) as fresh:
            _write_files(fresh, pictures, data)
    return [Path(folder) / "figures" / f"{picture.name}.png" for picture in pictures]


def _write_files(folder: Path, pictures: Sequence[Picture], data: Mapping[str, Dataset]) -> dict[str, bytes]:
    """Write the PNG and NetCDF files; the images by name, so that none is drawn twice."""
    images = {picture.name: picture.png() for picture in pictures}
    for subfolder, wanted in (("figures", images), ("data", data)):
        if wanted:
            (folder / subfolder).mkdir(exist_ok=True)
    for name, image in images.items():
        (folder / "figures" / f"{name}.png").write_bytes(image)
    for name, dataset in data.items():
        dataset.to_netcdf(folder / "data" / f"{name}.nc", engine="h5netcdf")
    return images


def _json_number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _check_stem(name: str, what: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(
            f"The name of a {what} becomes a file name of letters, digits, dots, underscores and hyphens; "
            f"got {name!r}."
        )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
