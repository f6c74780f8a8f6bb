"""What runs and rows are called in selections, charts and tables: never two by one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from biobench.report.details.needle import NeedleGrid
from biobench.report.entrants import line_name
from biobench.report.groups import RunGroup
from biobench.report.names import without_revisions
from biobench.report.rows import Row

_SOURCE = "\x1e"


def key_of(group: RunGroup) -> str:
    """Names a group's line in a link: model and variant, the source if not one's own."""
    name = line_name(group.model, group.variant)
    return name if group.source == "run" else f"{name}{_SOURCE}{group.source}"


def titles_of(keys: Iterable[str], words: Mapping[str, str]) -> dict[str, str]:
    """What a reader sees for each `key_of`: without its revision where no other is left the same."""
    parts = {key: key.partition(_SOURCE) for key in keys}
    names = {
        key: f"{name} · {words[source]}" if source in words else key.replace(_SOURCE, " ")
        for key, (name, _, source) in parts.items()
    }
    shown = without_revisions(names.values())
    return {key: shown[name] for key, name in names.items()}


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
