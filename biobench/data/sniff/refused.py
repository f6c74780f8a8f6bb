"""Shapes of text that no reader reads, refused by their name."""

from __future__ import annotations

import re

from biobench.data.sniff.base import DataFiles, Proposal, Wanted, lines_of

_FASTTEXT = re.compile("__label__")
_TWO_PARTS = re.compile(r"[^|\t]*\|[^|\t]*")
_REMEDY = "write each row as label, tab, text, below a header `label`, tab, `text`"


def unread_lines(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """No proposal. Raises DataFormatError for an empty file, for fastText's labelled lines, and for
    lines of `label|text`.
    """
    for location in corpus.places():
        lines = list(filter(str.strip, lines_of(location)))
        if not lines:
            raise location.bad("is empty", "put the data of the split there, or remove the file")
        if all(map(_FASTTEXT.match, lines)):
            raise location.bad("is text in fastText's format (`__label__NAME text`)", _REMEDY)
        if all(map(_TWO_PARTS.fullmatch, lines)):
            raise location.bad("holds rows that `|` cuts in two", _REMEDY)
    return []
