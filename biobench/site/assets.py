"""Script and style of the pages; both stand in the page, whose policy knows them by their hashes."""

from __future__ import annotations

import re
from importlib.resources import files

from biobench.report.details.needle_html import STYLE as NEEDLE_STYLE

_ROOM = re.compile(r" *([{};,=+?&|<>]|=>) *")


def _short(name: str) -> str:
    """A file of this room without the blanks that say nothing: its text stands in every page."""
    lines = files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    text = "\n".join(line.strip() for line in lines if line.strip()) + "\n"
    return _ROOM.sub(r"\1", text) if name.endswith(".js") else re.sub(r" *([{};,]) *|(?<=:) (?=\S)", r"\1", text)


_START, _SORT, _FILTER, _LAST = (_short(f"{name}.js") for name in ("page", "sort", "filter", "last"))
_PLAIN, _RICH = _short("page.css"), _short("sorted.css")
SCRIPTS = {
    "plain": _START + _LAST,
    "more": _START + _LAST,
    "sorted": _START + _SORT + _LAST,
    "first": _START + _SORT + _FILTER + _LAST,
}
"""Kind of page -> its script: texts in two languages, tables that sort, and the filters of page one."""
STYLES = {
    "plain": _PLAIN,
    "more": _PLAIN + NEEDLE_STYLE,
    "sorted": _PLAIN + _RICH,
    "first": _PLAIN + _RICH + _short("first.css"),
}
"""Kind of page -> its style."""
