"""PubTator: a title and an abstract by their id, then rows of mentions."""

from __future__ import annotations

import re
from collections import Counter

from biobench.data.readers.pubtator import parse_pubtator
from biobench.data.sniff.base import DataFiles, Proposal, Wanted, lines_of, not_read

_TITLE = re.compile(r"[^|\t]+\|t\|.*")


def pubtator_blocks(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Documents with mentions of every type. Raises DataFormatError for a bad row."""
    filled = filter(str.strip, lines_of(corpus.places()[0]))
    if _TITLE.fullmatch(next(filled, "")) is None:
        return []
    unread: Counter[str] = Counter()
    for location in corpus.places():
        for raw in parse_pubtator(location):
            unread.update(raw.unread)
    seen = not_read(unread)
    return [Proposal("span_ner", {"format": "pubtator"}, unit="document", seen=seen)]
