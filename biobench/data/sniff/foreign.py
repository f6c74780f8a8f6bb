"""Shapes that no reader reads, refused by name and with the way out."""

from __future__ import annotations

import re
from itertools import islice

from biobench.data.readers.base import FileLine
from biobench.data.readers.files import read_lines
from biobench.data.sniff.base import DataFiles, Proposal, Wanted

LOOKED_AT = 50
"""Lines of a file that decide what it is."""
SHAPES = {
    r"__label__\S+(\s|$)": (
        "is labelled text of fastText (`__label__NAME TEXT`)",
        "write each line as NAME, a tab and TEXT",
    ),
    r"[^|\t]{1,60}\|[^|\t]*": (
        "has lines of two parts joined by |, which no reader splits",
        "write a tab in its place",
    ),
}
"""Form of every line -> what the file is, and what to do."""


def foreign_lines(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Proposes nothing. Raises DataFormatError for an empty file, and for lines of a known foreign
    form.
    """
    for place in corpus.places():
        _refuse_foreign(place)
    return []


def _refuse_foreign(place: FileLine) -> None:
    if place.path.suffix in {".ann", ".parquet"}:
        return
    if place.path.stat().st_size == 0:
        raise place.bad("is empty", "fetch it again, or leave it out")
    lines = [line for _, line in islice(read_lines(place.path), LOOKED_AT) if line.strip()]
    for form, (words, hint) in SHAPES.items():
        if lines and all(re.fullmatch(f"(?:{form}).*", line) for line in lines):
            raise place.bad(words, hint)
