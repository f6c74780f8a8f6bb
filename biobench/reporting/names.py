"""What models are called on pages and in charts: short, and never two by one name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from biobench.reporting.charts import cut
from biobench.reporting.escape import plain

_REVISION = re.compile(r"@([0-9a-f]{7})[0-9a-f]{33}(?![0-9a-f])")
_OWNER = re.compile(r"^[\w.-]+/(?=[^/\s])")


def shorten(text: str) -> str:
    """Revisions of 40 hexadecimal digits cut to seven, as people write them."""
    return _REVISION.sub(r"@\1", text)


def without_revisions(names: Iterable[str]) -> dict[str, str]:
    """Name -> without its revision, where no other of the names is left the same."""
    return _apart(names, [_without_revision])


def in_sentences(names: Iterable[str]) -> dict[str, str]:
    """Name -> what it is called in a sentence: without owner and revision where that tells it
    apart.
    """
    return _apart(names, [lambda name: _OWNER.sub("", _without_revision(name)), _without_revision])


def _without_revision(name: str) -> str:
    return _REVISION.sub("", name)


def labels(names: Iterable[str]) -> dict[str, str]:
    """Name -> what stands beside a chart: as `in_sentences`, not too long."""
    return {name: cut(short) for name, short in in_sentences(names).items()}


def _apart(
    names: Iterable[str],
    ways: Sequence[Callable[[str], str]],
) -> dict[str, str]:
    """The first of the ways, most of it left out, that gives a name no other name has; else
    `shorten`.
    """
    shown = {name: shorten(name) for name in names}
    for way in reversed(ways):
        times = Counter(map(way, shown))
        for name in shown:
            if times[way(name)] == 1:
                shown[name] = way(name)
    return {name: plain(short) for name, short in shown.items()}
