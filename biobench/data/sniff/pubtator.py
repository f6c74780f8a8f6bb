"""PubTator: a title and an abstract by their id, then rows of mentions."""

from __future__ import annotations

import re

from biobench.data.readers.files import read_lines
from biobench.data.sniff.base import DataFiles, Proposal, Wanted

_TITLE = re.compile(r"[^|\t]+\|t\|.*")


def pubtator_blocks(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Documents with mentions of every type."""
    filled = (line for _, line in read_lines(corpus.paths[0]) if line.strip())
    if _TITLE.fullmatch(next(filled, "")) is None:
        return []
    return [Proposal("span_ner", {"format": "pubtator"}, unit="document")]
