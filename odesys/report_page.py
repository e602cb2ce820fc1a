"""A report as HTML: a self-contained page for phone, print, light and dark; a fragment for notebooks."""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import metadata
from itertools import groupby
from typing import TYPE_CHECKING

from odesys.check import COLUMNS, Check, row

if TYPE_CHECKING:
    from odesys.report import Report

__all__ = ["fragment", "page"]

#: The packages whose versions a reader needs to repeat the numbers.
VERSIONS = ("odesys", "numpy", "scipy", "sympy", "jax", "diffrax")


def page(report: Report, images: Mapping[str, bytes]) -> str:
    """The whole page; `images` holds the PNG of each of the report's pictures by name."""
    title = escape(report.title)
    parts = [_heading(report), _table(report.checks)]
    if report.figures:
        parts.append("<h2>Figures</h2>")
        parts += [
            _figure(images[picture.name], escape(picture.caption), escape(picture.alt, quote=True))
            for picture in report.figures
        ]
    if report.data:
        files = "".join(
            f'<li><a href="data/{escape(n)}.nc">data/{escape(n)}.nc</a></li>' for n in report.data
        )
        parts.append(
            f"<h2>Data</h2><ul>{files}</ul><p class='note'>NetCDF files; in Python: "
            '<code>xarray.open_dataset(FILE, engine="h5netcdf")</code>.</p>'
        )
    parts.append(f"<footer>{_provenance()}</footer>")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}: {'passed' if report.passed else 'not passed'}</title>\n"
        f'<style>{PAGE_CSS}{TABLE_CSS}</style>\n</head>\n<body class="odesys">\n'
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def fragment(report: Report) -> str:
    """Title, verdict and table, for a notebook's output cell."""
    content = _heading(report, level=3) + _table(report.checks)
    return f'<div class="odesys"><style>{TABLE_CSS}</style>{content}</div>'


def _heading(report: Report, level: int = 1) -> str:
    kind, mark = ("good", "✓") if report.passed else ("bad", "✗")
    if not report.checks:
        kind, mark = "none", "·"
    return (
        f"<h{level}>{escape(report.title)}</h{level}>"
        f'<p class="summary {kind}"><span aria-hidden="true">{mark}</span> {escape(report.summary)}</p>'
    )


def _table(checks: Sequence[Check]) -> str:
    if not checks:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    bodies = []
    for study, group in groupby(checks, key=lambda check: check.study):
        title = f'<tr class="study"><th colspan="{len(COLUMNS)}" scope="rowgroup">{escape(study)}</th></tr>'
        bodies.append(f"<tbody>{title if study else ''}{''.join(map(_row, group))}</tbody>")
    return f"<table><thead><tr>{head}</tr></thead>{''.join(bodies)}</table>"


def _row(check: Check) -> str:
    name, *numbers, verdict, source = (escape(cell) for cell in row(check))
    about = "" if check.planted else "tolerance: "
    reason = f'<span class="reason">{about}{escape(check.reason)}</span>' if check.reason else ""
    cells = [f'<th scope="row">{name}{reason}</th>']
    cells += [
        f'<td class="number" data-label="{label}">{number}</td>'
        for label, number in zip(COLUMNS[1:4], numbers, strict=True)
    ]
    kind = "good" if check.passed else "bad"
    cells.append(f'<td data-label="verdict"><span class="verdict {kind}">{verdict}</span></td>')
    cells.append(f'<td class="source" data-label="source">{source}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _figure(image: bytes, caption: str, alt: str) -> str:
    source = "data:image/png;base64," + base64.b64encode(image).decode("ascii")
    return f'<figure><img alt="{alt}" src="{source}"><figcaption>{caption}</figcaption></figure>'


def _provenance() -> str:
    versions = [f"Python {platform.python_version()}"]
    for name in VERSIONS:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {' · '.join(versions)}"


#: Colours carry no meaning alone: each verdict is also a word.
TABLE_CSS = """
.odesys{--good:#00674a;--bad:#b3261e;--line:rgba(128,128,128,.38);
--mute:color-mix(in srgb,currentColor 68%,transparent)}
@media (prefers-color-scheme:dark){.odesys{--good:#4cc9a0;--bad:#ff8a7a}}
.odesys .summary{font-weight:600;border-left:.35rem solid var(--mute);padding:.4rem .8rem}
.odesys .summary.good{border-color:var(--good)}.odesys .summary.bad{border-color:var(--bad)}
.odesys .good{color:var(--good)}.odesys .bad{color:var(--bad)}
.odesys table{border-collapse:collapse;width:100%;font-size:.92em}
.odesys th,.odesys td{text-align:left;vertical-align:top;padding:.45rem .7rem;
border-bottom:1px solid var(--line);
overflow-wrap:anywhere;min-width:4.5rem;background:none}
.odesys thead th{border-bottom-width:2px;font-weight:600;overflow-wrap:normal}
.odesys tbody th{font-weight:500;min-width:11rem}
.odesys .study th{font-weight:700;padding-top:1.1rem}
.odesys .number{font-variant-numeric:tabular-nums;
font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
font-size:.95em;overflow-wrap:normal;white-space:nowrap}
.odesys .verdict{font-weight:700;white-space:nowrap}
.odesys .reason{display:block;font-weight:400;font-size:.85em;color:var(--mute)}
.odesys .source{color:var(--mute);font-size:.9em;min-width:7rem}
@media (max-width:46rem){
.odesys table,.odesys tbody,.odesys tr,.odesys td,.odesys tbody th{display:block;width:auto}
.odesys thead{display:none}
.odesys tbody tr{border-bottom:1px solid var(--line);padding:.6rem 0}
.odesys th,.odesys td{border:0;padding:.12rem 0}
.odesys td::before{content:attr(data-label);display:inline-block;min-width:6.5rem;color:var(--mute);
font-family:system-ui,sans-serif}
.odesys .number{white-space:normal}
.odesys .source:empty{display:none}}
"""

PAGE_CSS = """
:root{color-scheme:light dark}
body{max-width:72rem;margin:0 auto;padding:1.5rem clamp(1rem,4vw,3rem) 3rem;
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:#1c1b1a;background:#fdfcfa}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0}h2{font-size:1.2rem;margin:2.2rem 0 .6rem}
a{color:inherit}
figure{margin:0 0 2rem}
figure img{display:block;max-width:min(100%,52rem);height:auto;background:#fff;border-radius:.4rem;
border:1px solid var(--line)}
figcaption{max-width:60ch;margin-top:.5rem;color:var(--mute);font-size:.95em}
.note,footer{color:var(--mute);font-size:.88em}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.8rem}
@media (prefers-color-scheme:dark){body{color:#eae6e1;background:#191817}}
@media print{:root{color-scheme:light}body{max-width:none;padding:0;color:#000;background:#fff;font-size:10pt}
.odesys{--good:#00674a!important;--bad:#b3261e!important}
figure,tr{break-inside:avoid}h2{break-after:avoid}thead{display:table-header-group}}
"""
