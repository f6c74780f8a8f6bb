"""The clinical text that needles are hidden in: documents cut into sentences, kept apart by
split."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from biobench.data.readers.base import FileLine, Request
from biobench.data.readers.files import parse_json, read_text
from biobench.data.readers.needle.notes import synthetic_note
from biobench.schema.task import SPLITS

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
            units += [
                " ".join(words[i : i + _LONGEST_UNIT]) for i in range(0, len(words), _LONGEST_UNIT)
            ]
    return Haystack(name, tuple(units), tuple(len(u.split()) for u in units))


def read_haystacks(request: Request[Any]) -> list[Haystack]:
    """The distinct documents of the source's `texts`, sorted by name: plain text, or JSON with a
    `text`.

    Raises DataFormatError for a file that is neither, or two of one name.
    """
    haystacks: dict[str, Haystack] = {}
    seen: set[tuple[str, ...]] = set()
    for _, path in sorted(request.only_splits("texts"), key=lambda item: item[1].name):
        if path.stem in haystacks:
            place = FileLine(request, "", path, None)
            raise place.bad(
                "two files have the name {}", "names of haystack files are unique", path.stem
            )
        haystack = haystack_of(path.stem, _text(FileLine(request, "", path)))
        # The same text under two names would put one document into two splits.
        if haystack.units and haystack.units not in seen:
            seen.add(haystack.units)
            haystacks[path.stem] = haystack
    return list(haystacks.values())


def _text(place: FileLine) -> str:
    content = read_text(place.path)
    if place.path.suffix != ".json":
        return content
    hint = 'a JSON object with the document under "text"'
    value = parse_json(place, content, hint)
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise place.bad("holds no text", hint)
    return str(value["text"])


def synthetic_haystacks(language: str, notes: int, seed: int) -> list[Haystack]:
    """Our own notes."""
    rng = random.Random(f"{seed}|notes|{language}")
    return [haystack_of(f"note-{i + 1:05d}", synthetic_note(language, rng)) for i in range(notes)]


def by_split(
    haystacks: Sequence[Haystack], shares: dict[str, float], seed: int
) -> dict[str, list[Haystack]]:
    """The documents divided among the splits in these shares; every document is in one of them."""
    order = list(haystacks)
    random.Random(f"{seed}|haystack").shuffle(order)
    result: dict[str, list[Haystack]] = {}
    begin, total = 0, 0.0
    for name in SPLITS:
        total += shares[name]
        end = round(total * len(order))
        result[name] = order[begin:end]
        begin = end
    return result


def surround(
    pool: Sequence[Haystack], length: int, place: float, rng: random.Random
) -> tuple[list[str], list[str], list[str]] | None:
    """(units before, units after, document ids) around an insertion point at a sentence boundary.

    The sides have at least place x length and (1 - place) x length words; whole documents follow
    each other and none is used twice. None where the pool has too few words.
    """
    words_before, words_after = -(-length * place // 1), -(-length * (1 - place) // 1)
    units: list[str] = []
    sizes: list[int] = []
    ids: list[str] = []
    total = 0
    chosen: set[int] = set()
    while total < words_before + words_after + _LONGEST_UNIT:
        # The side before may run over by the rest of a sentence, hence the margin.
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
        total += sum(document.words)
    at, words = 0, 0
    while words < words_before:
        words += sizes[at]
        at += 1
    return units[:at], units[at:], ids
