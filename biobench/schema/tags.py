"""Token tags and spans: decoding by a declared mode, and the way back.

Two readings of the same tags exist and give different scores, so every reader declares one:

* ``strict`` is IOB2 as written: B-X opens an entity, I-X of the same type goes on with it, and
anything
  else ends it. An I-X with nothing open (or with another type open) starts nothing.
* ``lenient`` is what seqeval does in its default mode: an I-X with nothing open, or with another
type
  open, opens an entity.

``O I-X I-X`` holds no entity under strict and one, tokens 1 to 3, under lenient.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from biobench.schema.document import Span

Mode = Literal["strict", "lenient"]
Scheme = Literal["IOB1", "IOB2", "IOBES"]
"""IOBES, also with BILOU's letters: U is read as S, and L as E."""
TokenSpan = tuple[int, int, str]
"""Tokens [first, past the last) and the label."""


def split_tag(tag: str) -> tuple[str, str]:
    """``B-Disease`` to (``B``, ``Disease``); ``O`` to (``O``, ````). Raises ValueError on any other
    shape.
    """
    if tag == "O":
        return "O", ""
    match = _IOB2.fullmatch(tag)
    if match is None:
        raise ValueError(f"'{tag}' is not O, B-<type> or I-<type>")
    return match[1], match[2]


_OPENING: dict[Mode, tuple[str, ...]] = {"strict": ("B",), "lenient": ("B", "I")}
"""The letters that open an entity where none of their label is open."""


def decode_tags(tags: Sequence[str], mode: Mode) -> list[TokenSpan]:
    """Entities of one tag sequence (O, B-<type>, I-<type>) as token spans, in order of position.

    Raises ValueError when a tag has another shape. Entities never overlap.
    """
    spans: list[TokenSpan] = []
    begin = 0
    current: str | None = None  # the label of the entity that is open
    for number, tag in enumerate((*tags, "O")):
        prefix, label = split_tag(tag)
        if prefix == "I" and label == current:
            continue
        if current is not None:
            spans.append((begin, number, current))
        begin, current = number, None
        if prefix in _OPENING[mode]:
            current = label
    return spans


def tags_to_spans(
    tags: Sequence[str], tokens: Sequence[tuple[int, int]], mode: Mode
) -> tuple[Span, ...]:
    """Decoded entities in characters; tokens are the character offsets that the tags stand on."""
    if len(tags) != len(tokens):
        raise ValueError(f"{len(tags)} tags do not fit {len(tokens)} tokens")
    spans: list[Span] = []
    for first, past_last, label in decode_tags(tags, mode):
        start, _ = tokens[first]
        _, end = tokens[past_last - 1]
        spans.append(Span(start, end, label))
    return tuple(spans)


def spans_to_tags(spans: Sequence[Span], tokens: Sequence[tuple[int, int]]) -> list[str]:
    """IOB2 tags of `spans` (characters) on `tokens` (character offsets, ascending, not
    overlapping).

    Raises ValueError when a span does not begin and end with a token, or meets another span.
    """
    tags = ["O"] * len(tokens)
    begins = {start: number for number, (start, _) in enumerate(tokens)}
    ends = {end: number + 1 for number, (_, end) in enumerate(tokens)}
    for span in spans:
        place = f"{span.start}-{span.end}"
        try:
            begin, end = begins[span.start], ends[span.end]
        except KeyError:
            message = f"span {place} does not begin and end with a token"
            raise ValueError(message) from None
        taken = set(tags[begin:end]) - {"O"}
        if taken:
            message = f"span {place} meets another span; tags hold flat mentions only"
            raise ValueError(message)
        tags[begin:end] = [f"I-{span.label}"] * (end - begin)
        tags[begin] = f"B-{span.label}"
    return tags


class ReadTags(NamedTuple):
    """Tags of one sequence as IOB2 with the task's labels, and the labels of dropped mentions."""

    tags: tuple[str, ...]
    dropped: tuple[str, ...]
    """Of the mentions that begin with I- where `strict` wants B-, in order."""


Pair = tuple[str, str]
"""A tag's letter (O, B, I, E or S) and its label."""
_OUTSIDE: Pair = ("O", "")
_LONG_NAMES = {"U": "S", "L": "E"}
_WITHOUT_ENDS = {"S": "B", "E": "I"}
"""Letters of IOBES alone to those that begin and go on with a mention in IOB2."""
_IOB2 = re.compile(r"([BI])-(.+)", re.DOTALL)
_IOBES = re.compile(r"([BIESUL])-(.+)", re.DOTALL)
_TYPED = {"IOB1": _IOB2, "IOB2": _IOB2, "IOBES": _IOBES}
"""Scheme to its tags with a type."""
_BARE_IOB = re.compile(r"([BI])(?:-(.+))?", re.DOTALL)
_BARE_IOBES = re.compile(r"([BIESUL])(?:-(.+))?", re.DOTALL)
_TYPED_OR_BARE = {"IOB1": _BARE_IOB, "IOB2": _BARE_IOB, "IOBES": _BARE_IOBES}
"""Scheme to its tags where a corpus of one type may leave it out."""
_SHOWN = {
    "IOB1": "B-<type> or I-<type>",
    "IOB2": "B-<type> or I-<type>",
    "IOBES": "B-, I-, E- or S-<type>",
}


@dataclass(frozen=True)
class Tagging:
    """How a corpus writes its tags; gold and predictions are read by the same one.

    types: type in the tags to label, many to one; None drops one, and the type of a bare B or I is
    the empty text. spelled: a tag as the corpus writes it to the same tag as O, B-<type>, I-<type>.
    """

    scheme: Scheme = "IOB2"
    decode: Mode = "strict"
    types: Mapping[str, str | None] = field(default_factory=dict)
    spelled: Mapping[str, str] = field(default_factory=dict)

    @property
    def shapes(self) -> str:
        """The tags that the scheme has, for messages."""
        typed = _SHOWN[self.scheme]
        if self.has_bare_tags:
            return f"O, B, I, {typed}"
        return f"O, {typed}"

    @property
    def has_bare_tags(self) -> bool:
        """Whether a tag may be a letter without a type."""
        return "" in self.types

    def parse(self, tag: str) -> Pair:
        """(letter, type in the corpus) of a tag. Raises ValueError for one of another shape."""
        spelled = self.spelled.get(tag, tag)
        if spelled == "O":
            return _OUTSIDE
        patterns = _TYPED_OR_BARE if self.has_bare_tags else _TYPED
        match = patterns[self.scheme].fullmatch(spelled)
        if match is None:
            raise ValueError(f"'{tag}' is not {self.shapes}")
        letter, name = match.groups("")
        return _LONG_NAMES.get(letter, letter), name

    def label_of(self, name: str) -> str | None:
        """The label that a type becomes; None where it is dropped."""
        return self.types.get(name, name)

    def read(self, tags: Sequence[str]) -> ReadTags:
        """The sequence as IOB2. Raises ValueError as `parse`.

        IOB1 begins a mention where the type changes, so it is read before types become one.
        """
        pairs = list(map(self.parse, tags))
        if self.scheme == "IOB1":
            pairs = _iob1_pairs(pairs)
        labelled = list(map(self._labelled, pairs))
        written = self._written(labelled, self.decode)
        if self.decode == "lenient":
            return ReadTags(written, ())
        begins = {begin for begin, _, _ in decode_tags(written, "strict")}
        every = decode_tags(self._written(labelled, "lenient"), "lenient")
        dropped = [label for begin, _, label in every if begin not in begins]
        return ReadTags(written, tuple(dropped))

    def _written(self, pairs: Sequence[Pair], mode: Mode) -> tuple[str, ...]:
        """Labelled pairs as tags of IOB2."""
        if self.scheme == "IOBES":
            pairs = _without_ends(pairs, mode)
        return tuple(map(_tag, pairs))

    def _labelled(self, pair: Pair) -> Pair:
        letter, name = pair
        label = self.label_of(name)
        if letter == "O" or label is None:
            return _OUTSIDE
        return letter, label


def _tag(pair: Pair) -> str:
    if pair == _OUTSIDE:
        return "O"
    letter, label = pair
    return f"{letter}-{label}"


def _iob1_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """B on every first token."""
    result: list[Pair] = []
    for previous, (letter, name) in pairwise([_OUTSIDE, *pairs]):
        same_mention = (("B", name), ("I", name))
        if letter == "I" and previous not in same_mention:
            letter = "B"
        result.append((letter, name))
    return result


def _without_ends(pairs: Sequence[Pair], mode: Mode) -> list[Pair]:
    """IOBES as IOB2.

    E and S end a mention, so an I or E of the same label after them goes on with nothing. IOB2
    cannot write such a stray after a mention of its own label: it becomes a B- under lenient, which
    begins a mention there, and O under strict, which begins none.
    """
    result: list[Pair] = []
    open_label: str | None = None
    previous_label: str | None = None
    begun = False  # whether a B stands before the last tag and the I of its label that follow it
    for letter, label in pairs:
        written = _WITHOUT_ENDS.get(letter, letter)
        goes_on = written == "I" and label == previous_label
        is_stray = goes_on and label != open_label
        if is_stray and mode == "lenient":
            written = "B"
        elif is_stray and begun:
            written, label = _OUTSIDE
        begun = written == "B" or (written == "I" and goes_on and begun)
        result.append((written, label))
        previous_label = label
        open_label = label
        if letter in "OES":
            open_label = None
    return result
