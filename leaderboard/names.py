"""What runs and rows are called in selections, charts and tables: never two by one name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from biobench.report.charts import cut
from biobench.report.details.needle import NeedleGrid
from biobench.report.entrants import line_name
from biobench.report.escape import plain
from biobench.report.groups import RunGroup
from biobench.report.rows import Row

_REVISION = re.compile(r"@([0-9a-f]{7})[0-9a-f]{33}(?![0-9a-f])")
_OWNER = re.compile(r"^[\w.-]+/(?=[^/\s])")
_SOURCE = "\x1e"


def key_of(group: RunGroup) -> str:
    """Names a group's line in a link, whatever the page's language: model and variant, the source if not one's own."""
    name = line_name(group.model, group.variant)
    return name if group.source == "run" else f"{name}{_SOURCE}{group.source}"


def shorten(text: str) -> str:
    """Revisions of 40 hexadecimal digits cut to seven, as people write them."""
    return _REVISION.sub(r"@\1", text)


def without_revisions(names: Iterable[str]) -> dict[str, str]:
    """Name -> without its revision, where no other of the names is left the same."""
    return _apart(list(dict.fromkeys(names)), [lambda name: _REVISION.sub("", name)])


def labels(names: Iterable[str]) -> dict[str, str]:
    """Name -> what stands beside a chart: without owner and revision where that tells it apart, not too long."""
    bare = [lambda name: _OWNER.sub("", _REVISION.sub("", name)), lambda name: _REVISION.sub("", name)]
    return {name: cut(short) for name, short in _apart(list(dict.fromkeys(names)), bare).items()}


def _apart(names: Sequence[str], ways: Sequence[Callable[[str], str]]) -> dict[str, str]:
    """The first of the ways, most of it left out, that gives a name no other name has; else `shorten`."""
    shown: dict[str, str] = {}
    for way in ways:
        times = Counter(way(name) for name in names)
        shown |= {name: way(name) for name in names if name not in shown and times[way(name)] == 1}
    return {name: plain(shown.get(name, shorten(name))) for name in names}


def title_of(key: str, words: Mapping[str, str]) -> str:
    """What a reader sees for `key_of`."""
    name, _, source = key.partition(_SOURCE)
    return f"{shorten(plain(name))} · {words[source]}" if source in words else shorten(plain(key))


def shown_names(lines: Sequence[Row | RunGroup | NeedleGrid], words: Mapping[str, str]) -> list[str]:
    """A name each: model and variant, and the source where another line has the same; a number for what is left."""
    whole = [line_name(one.model, one.variant) for one in lines]
    bare = without_revisions(whole)
    short = [bare[name] for name in whole]
    times = Counter(short)
    names = [
        f"{name} · {words[one.source]}" if times[name] > 1 else name for name, one in zip(short, lines, strict=True)
    ]
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[place] = f"{name} #{seen[name]}"
    return names
