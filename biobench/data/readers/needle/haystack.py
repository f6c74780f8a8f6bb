"""The clinical text that needles are hidden in: documents cut into sentences, kept apart by
split."""

from __future__ import annotations

import math
import random
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from biobench.data.readers.base import FileLine, Request
from biobench.data.readers.files import parse_json, read_text
from biobench.data.readers.needle.notes import synthetic_note

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-zà-ÿ]|\d)")
_LONGEST_UNIT = 60
"""Words; lists and tables without a full stop are cut, so that a needle can stand at any place."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """One document. units: sentences in order; words: how many words each has."""

    id: str
    units: tuple[str, ...]
    words: tuple[int, ...]


def haystack_of(name: str, text: str) -> Haystack:
    """A document's sentences with single blanks, none longer than 60 words."""
    units: list[str] = []
    for line in unicodedata.normalize("NFC", text).splitlines():
        for sentence in _SENTENCE.split(line.strip()):
            words = sentence.split()
            for begin in range(0, len(words), _LONGEST_UNIT):
                units.append(" ".join(words[begin : begin + _LONGEST_UNIT]))
    sizes = [len(unit.split()) for unit in units]
    return Haystack(name, tuple(units), tuple(sizes))


def read_haystacks(request: Request[Any]) -> list[Haystack]:
    """The distinct documents of the source's `texts`, sorted by name: plain text, or JSON with a
    `text`.

    Raises DataFormatError for a file that is neither, or two of one name.
    """
    haystacks: dict[str, Haystack] = {}
    seen: set[tuple[str, ...]] = set()
    for location in sorted(request.places({"texts"}), key=lambda place: place.path.name):
        name = location.path.stem
        location.at(None).require(
            name not in haystacks,
            "two files have the name {}",
            "names of haystack files are unique",
            name,
        )
        haystack = haystack_of(name, _text(location))
        # The same text under two names would put one document into two splits.
        if haystack.units and haystack.units not in seen:
            seen.add(haystack.units)
            haystacks[name] = haystack
    return list(haystacks.values())


def _text(location: FileLine) -> str:
    content = read_text(location)
    if location.path.suffix != ".json":
        return content
    hint = 'a JSON object with the document under "text"'
    value = parse_json(location, content, hint)
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    raise location.bad("holds no text", hint)


def synthetic_haystacks(language: str, notes: int, seed: int) -> list[Haystack]:
    """Our own notes."""
    rng = random.Random(f"{seed}|notes|{language}")
    haystacks: list[Haystack] = []
    for number in range(1, notes + 1):
        note = synthetic_note(language, rng)
        haystacks.append(haystack_of(f"note-{number:05d}", note))
    return haystacks


def surround(
    pool: Sequence[Haystack], length: int, position: float, rng: random.Random
) -> tuple[list[str], list[str], list[str]] | None:
    """(units before, units after, document ids) around an insertion point at a sentence boundary.

    The sides have at least position x length and (1 - position) x length words; whole documents
    follow each other and none is used twice. None where the pool has too few words.
    """
    words_before = math.ceil(length * position)
    words_after = math.ceil(length * (1 - position))
    units: list[str] = []
    sizes: list[int] = []
    ids: list[str] = []
    chosen: set[int] = set()
    # The side before may run over by the rest of a sentence, hence the margin.
    missing = words_before + words_after + _LONGEST_UNIT
    while missing > 0:
        if len(chosen) == len(pool):
            return None
        index = rng.randrange(len(pool))
        if index in chosen:
            continue
        chosen.add(index)
        document = pool[index]
        units += document.units
        sizes += document.words
        ids.append(document.id)
        missing -= sum(document.words)
    words_by_unit = list(accumulate(sizes, initial=0))
    border = bisect_left(words_by_unit, words_before)
    return units[:border], units[border:], ids
