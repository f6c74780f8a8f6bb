"""What a BRAT folder holds: the labels of its mentions, and where they stand when the types are concept ids."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from biobench.data.readers.brat import note_of
from biobench.data.sniff import Sniffed, lines_of
from biobench.errors import DataFormatError

MANY = 100
"""So many types are no classes, whatever they are called."""
_ID = re.compile(r"[A-Za-z]{0,5}[:_-]?[A-Za-z]?\d[\d./:-]{2,}\w*")
_MATCHES = (r"^[^\s:]+:(\w+)$", r"^\s*(\S+)\s*$", r"(\w+)\W*$", r"^\W*(\w+)")
"""Where in a note the label may stand: the id after its resource, all of it, the last word, the first."""
_COVERED, _MOST = 0.9, 60
"""A note holds the label where it gives this share of the mentions one, of at most so many."""


def looks_like_ids(labels: Collection[str]) -> bool:
    """Whether most of the labels are made like concept ids (C0018787, D003920, 8500/3), or they are too many."""
    return len(labels) >= MANY or 2 * sum(_ID.fullmatch(label) is not None for label in labels) > len(labels)


def sniff_brat(texts: Sequence[Path]) -> Sniffed:
    """Labels and reader options of these texts with the .ann beside them. Raises DataFormatError for a bad line."""
    types: Counter[str] = Counter()
    notes: dict[str, list[str]] = {}
    pieces, lonely = False, 0
    for text in texts:
        ann = text.with_suffix(".ann")
        if not ann.is_file():
            lonely += 1
            continue
        mentions: set[str] = set()
        note_texts: dict[tuple[str, str], str] = {}
        for number, line in lines_of(ann):
            fields = line.split("\t", 2)
            if line.startswith("T"):
                if len(fields) < 2 or " " not in fields[1]:
                    what = "is not a text-bound line: T<n>, tab, TYPE START END, tab, text"
                    raise DataFormatError(what, hint="repair the line", file=ann, line=number)
                mentions.add(fields[0])
                types[fields[1].split(" ", 1)[0]] += 1
                pieces |= ";" in fields[1]
            elif line[:1] in ("#", "N"):
                note = note_of(fields)
                if note is not None:
                    note_texts[note[:2]] = note[2]
        for (kind, mention), words in note_texts.items():
            if mention in mentions:
                notes.setdefault(kind, []).append(words)
    labels, options, remark = Counter(types), "", ""
    if looks_like_ids(types):
        choice = _in_a_note(notes, types.total())
        remark = f"{len(types)} types that look like concept ids"
        if choice is None:
            remark += ", and no note gives few labels: map them by reader.types"
        else:
            kind, match, labels = choice
            options = f", label_note: {json.dumps(kind, ensure_ascii=False)}, label_match: {json.dumps(match)}"
            remark += f"; the labels are from note {kind}"
            without = types.total() - labels.total()
            if without:
                options += ", other_types: drop"
                remark += f", which {without} of {types.total()} mentions lack"
            once = sorted(label for label, number in labels.items() if number == 1)
            remark += f"; once only: {', '.join(once)}" if once else ""
    options += ", discontinuous: hull" if pieces else ""
    options += ", missing_ann: skip" if lonely else ""
    return Sniffed("span_ner", f"{{format: brat{options}}}", set(labels), "span", len(texts), remark=remark)


def _in_a_note(notes: dict[str, list[str]], mentions: int) -> tuple[str, str, Counter[str]] | None:
    """(kind of note, expression, labels) of the first place that gives nearly all mentions one of a few labels."""
    for kind, texts in notes.items():
        for match in _MATCHES:
            values = Counter(hit[1] for text in texts if (hit := re.search(match, text)))
            few = 2 <= len(values) <= min(_MOST, values.total() // 2)
            if few and values.total() >= _COVERED * mentions and not looks_like_ids(values):
                return kind, match, values
    return None
