"""The results as a folder of static files: one page that sorts and filters without a server, CSV and JSON beside it."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from biobench.core.files import write_atomic, writing
from biobench.errors import UsageError
from biobench.report.render import render
from biobench.report.rows import Report

FILES = {"index.html": "html", "results.csv": "csv", "results.json": "json"}
"""Name of a file of the site -> format of the report."""
ARCHIVE = "archive"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")

_SCRIPT = """
"use strict";
const value = cell => { const n = parseFloat(cell.textContent); return Number.isNaN(n) ? null : n; };
function sort(table, column, head) {
  const down = head.getAttribute("aria-sort") !== "descending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const text = head.classList.contains("text"), sign = down ? -1 : 1;
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    if (text) return sign * a.cells[column].textContent.localeCompare(b.cells[column].textContent);
    const x = value(a.cells[column]), y = value(b.cells[column]);
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (x - y);
  });
  table.tBodies[0].append(...rows);
}
for (const table of document.querySelectorAll("main table")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, column, head));
    head.append(button);
  });
}
const box = document.getElementById("filter");
box.parentElement.hidden = false;
box.addEventListener("input", () => {
  for (const row of document.querySelectorAll("main tbody tr"))
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(box.value.toLowerCase());
});
"""
_STYLE = """
thead button { all: unset; cursor: pointer; }
thead button:focus-visible { outline: 2px solid currentColor; }
[aria-sort=ascending] button::after { content: " \\2191"; }
[aria-sort=descending] button::after { content: " \\2193"; }
"""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a site was written. archive: the folder of this day's copy."""

    index: Path
    archive: Path
    size: int
    """Bytes of the page and of the files beside it, without archives."""


def write_site(report: Report, folder: str | Path, *, day: date | None = None) -> Site:
    """Write the report as a static site, with a copy below ``archive/YYYY-MM-DD`` (today's unless `day` is given).

    The pages load nothing from elsewhere; copies of other days stay. Raises UsageError where `folder` is a file.
    """
    out = Path(folder)
    if out.exists() and not out.is_dir():
        raise UsageError(f"'{out}' is a file", hint="name a folder for the site")
    archive = out / ARCHIVE / (day or date.today()).isoformat()
    with writing(archive):
        archive.mkdir(parents=True, exist_ok=True)
    texts = {name: render(report, format) for name, format in FILES.items()}
    days = sorted((d.name for d in archive.parent.iterdir() if _DAY.fullmatch(d.name)), reverse=True)
    page = texts["index.html"]
    texts["index.html"] = _interactive(page, [f"{ARCHIVE}/{d}/" for d in days])
    for name, text in texts.items():
        write_atomic(out / name, text.encode())
        copy = text if name != "index.html" else _interactive(page, [])
        write_atomic(archive / name, copy.encode())
    return Site(out / "index.html", archive, sum(len(text.encode()) for text in texts.values()))


def _interactive(page: str, archives: list[str]) -> str:
    """The report's page with links, a filter and sorting; the only script that its policy lets run is this one."""
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    links = [("results.csv", "CSV"), ("results.json", "JSON")]
    links += [(f"{path}index.html", path.split("/")[1]) for path in archives]
    nav = " · ".join(f'<a href="{target}">{label}</a>' for target, label in links)
    head = (
        f"<nav>{nav}</nav>\n"
        '<p hidden><label for="filter">Models whose name contains</label> '
        '<input id="filter" type="search"></p>\n<main>\n'
    )
    page = page.replace("default-src 'none';", f"default-src 'none'; script-src 'sha256-{digest}';", 1)
    page = page.replace("</style>", f"{_STYLE}</style>", 1)
    page = page.replace("</h1>\n", f"</h1>\n{head}", 1)
    before, _, after = page.rpartition("</body>")
    return f"{before}</main>\n<script>{_SCRIPT}</script>\n</body>{after}"
