"""Documents as sequences of words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from biobench.schema.document import Document, Span

_WORD = re.compile(r"\w+|[^\w\s]")

Place = tuple[int, int, str]
"""Words [first, past the last) and the label."""


@dataclass(frozen=True, slots=True)
class Words:
    """offsets: characters [start, end) of each word, ascending. surfaces: their texts."""

    offsets: tuple[tuple[int, int], ...]
    surfaces: tuple[str, ...]

    @classmethod
    def of(cls, document: Document) -> Words:
        """The document's tokens; without any, runs of letters and digits, and each other sign
        alone.
        """
        offsets = document.tokens or tuple(m.span() for m in _WORD.finditer(document.text))
        return cls(offsets, tuple(document.text[a:b] for a, b in offsets))

    def __len__(self) -> int:
        """How many words."""
        return len(self.offsets)

    def places(self, spans: Iterable[Span], step: int = 0) -> list[Place]:
        """The spans that begin and end with a word, as word positions, moved by `step` words; the
        others, and those that would leave the document, are skipped.
        """
        begins = {start: number for number, (start, _) in enumerate(self.offsets, start=step)}
        ends = {end: number for number, (_, end) in enumerate(self.offsets, start=step + 1)}
        places = []
        for start, end, label in spans:
            begin = begins.get(start, -1)
            past = ends.get(end, -1)
            if begin >= 0 and 0 <= past <= len(self):
                places.append((begin, past, label))
        return places

    def span(self, place: Place) -> Span:
        """Back to characters."""
        begin, end, label = place
        return Span(self.offsets[begin][0], self.offsets[end - 1][1], label)
