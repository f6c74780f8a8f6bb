"""A needle-in-a-haystack example as a plan that no model has a part in, and the cell that its id
names.

A plan says what is inserted, where, and how long the whole may become; the encoder side fits it to
a model's own tokens. Ids carry the cell (length, position, template), so that every result by cell
can be counted from stored predictions alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PRESENT, ABSENT = "present", "absent"
"""The two answers to: is the queried fact in the document?"""

BINS: dict[str, tuple[float, float]] = {
    "start": (0.0, 0.10),
    "middle": (0.45, 0.55),
    "end": (0.90, 1.0),
}
"""Position bins: the share of the haystack that stands before the needle."""

_ID = re.compile(r"needle-([a-z]{2})-(\d+)-([a-z]+\d*)-([a-z]+)-(\d+)-([pn])")


class NeedlePlan(NamedTuple):
    """What an example is made of.

    length: the target (tokens, special tokens and query included; or words of the document). place:
    share of the haystack before the needle, 0-1. before, after: haystack units (sentences) in
    reading order around the needle, each side with at least as many words as the target can hold.
    haystack: ids of the documents that the units come from. distractors: none; of an earlier
    generator. generator: version and content hash of templates and lexicons. fit: what the length
    is counted in.
    """

    length: int
    place: float
    needle: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    haystack: tuple[str, ...]
    distractors: tuple[str, ...]
    generator: str
    fit: str


class GridCell(NamedTuple):
    """Where an example stands in the grid. length: tokens (or words); position: start, middle or
    end.
    """

    length: int
    position: str
    template: str


def example_id(language: str, cell: GridCell, number: int, label: str) -> str:
    """``needle-fr-512-start-drug-00017-p``: shared by all models."""
    mark = label[0].replace("a", "n")
    grid_place = f"{cell.length}-{cell.position}-{cell.template}"
    return f"needle-{language}-{grid_place}-{number:05d}-{mark}"


def cell_of(document_id: str) -> GridCell | None:
    """The cell that an id names; None where the id is not one of ours (salted, or of another
    task)."""
    match = _ID.fullmatch(document_id)
    if match is None:
        return None
    _, length, position, template, *_ = match.groups()
    return GridCell(int(length), position, template)


def rendered(plan: NeedlePlan, words: int) -> str:
    """The document with `words` words of haystack around the needle (if any), the share `place` of
    them before it.
    """
    to_left = round(plan.place * words)
    left = " ".join(plan.before).split()
    left = left[len(left) - to_left :]
    right = " ".join(plan.after).split()[: words - to_left]
    return " ".join(filter(None, [*left, plan.needle, *right]))


Key = tuple[int | None, str | None, str | None]
"""A slice of the grid: length, position and template, None for all."""


def keys_of(cell: GridCell) -> tuple[Key, ...]:
    """The slices that a cell counts in: all, each margin, and length x position."""
    length, position, template = cell
    return (
        (None, None, None),
        (length, None, None),
        (None, position, None),
        (None, None, template),
        (length, position, None),
    )


def name_of(key: Key) -> str:
    """How a slice is called in the scores: ``accuracy.512.start``, ``accuracy.drug``."""
    return ".".join(["accuracy", *(str(part) for part in key if part is not None)])
