"""Writing the static site: its files, what an earlier writing left, and a dated archive."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath

from biobench.core.files import choose_another, write_atomic, writing
from biobench.errors import UsageError
from biobench.report.rows import AverageName
from biobench.report.table import first_average, load
from biobench.site.build import site_files
from biobench.site.markup import say

ARCHIVE = "archive"
LIST = "files.json"
"""Names of the files of the last writing, so that the next one removes those that are no more."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ZIP = 'href="site.zip"'
_LOCAL = re.compile(r'<a href="[^":]+"([^>]*)>(.*?)</a>')
"""A link inside the site; those to elsewhere name a protocol."""
_PAGES = ("models", "tasks", "compare")
_REMEDY = choose_another("folder")


@dataclass(frozen=True, slots=True)
class Site:
    """Where a site was written. archive: the folder of this day; size: bytes of pages and data, without archives."""

    index: Path
    archive: Path
    size: int
    pages: int


def write_site(
    results_dir: str | Path,
    folder: str | Path,
    *,
    average: AverageName | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    day: date | None = None,
) -> Site:
    """Write the results as a static site, with page one and a zip of all files below ``archive/YYYY-MM-DD``.

    average: as of the report, by default the one that has rows; pairs: comparisons besides the first two models of
    each suite; day: of the archive, today's by default. Files of an earlier writing that are no more are removed;
    archives of other days stay. Raises UsageError where `folder` is a file or a pair cannot be compared.
    """
    out = Path(folder)
    if out.exists() and not out.is_dir():
        raise UsageError(f"'{out}' is a file", hint="name a folder for the site")
    today = day or date.today()
    archive = out / ARCHIVE / today.isoformat()
    earlier = [d.name for d in archive.parent.iterdir() if _DAY.fullmatch(d.name)] if archive.parent.is_dir() else []
    days = sorted({*earlier, archive.name}, reverse=True)
    results = load(results_dir)
    texts = site_files(results, results_dir, average or first_average(results), pairs, today, days)
    bound = {name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()}
    with writing(out, _REMEDY):
        for name in _PAGES:
            (out / name).mkdir(parents=True, exist_ok=True)
        archive.mkdir(parents=True, exist_ok=True)
    _remove_earlier(out, bound)
    for name, content in bound.items():
        write_atomic(out / name, content, _REMEDY)
    write_atomic(out / LIST, (json.dumps(sorted(bound), indent=0) + "\n").encode(), _REMEDY)
    write_atomic(archive / "site.zip", _zipped(bound, today), _REMEDY)
    first = _to_archive(texts["index.html"]).encode("utf-8", "backslashreplace")
    write_atomic(archive / "index.html", first, _REMEDY)
    size = sum(map(len, bound.values()))
    return Site(out / "index.html", archive, size, sum(name.endswith(".html") for name in bound))


def _remove_earlier(out: Path, texts: Mapping[str, bytes]) -> None:
    """Pages that the last writing made and this one does not; nothing else of the folder."""
    try:
        names = json.loads((out / LIST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for name in names if isinstance(names, list) else []:
        path = PurePosixPath(str(name))
        if len(path.parts) == 2 and path.parts[0] in _PAGES and path.name not in ("..", "") and name not in texts:
            (out / path).unlink(missing_ok=True)


def _zipped(texts: Mapping[str, bytes], day: date) -> bytes:
    """The same files, the same bytes: every member bears the day alone."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(texts):
            info = zipfile.ZipInfo(name, (max(day.year, 1980), day.month, day.day, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, texts[name])
    return stream.getvalue()


def _to_archive(index: str) -> str:
    """Page one of a day by itself: the other pages of that day and its data are in the zip beside it."""
    page = _LOCAL.sub(r"<span\1>\2</span>", index)
    return page.replace("</nav>", f"{say('whole_day', 'a', _ZIP)}</nav>", 1)
