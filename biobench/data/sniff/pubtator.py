"""PubTator: a title and an abstract by their id, then rows of mentions."""

from __future__ import annotations

import re

from biobench.data.sniff.base import DataFiles, Proposal, Wanted, lines_of

_TITLE = re.compile(r"[^|\t]+\|t\|.*")


def pubtator_blocks(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Documents with mentions of every type."""
    filled = filter(str.strip, lines_of(corpus.places()[0]))
    if _TITLE.fullmatch(next(filled, "")) is None:
        return []
    return [Proposal("span_ner", {"format": "pubtator"}, unit="document")]
