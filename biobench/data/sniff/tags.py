"""How a corpus writes its tags: the spelling of each tag, then the schemes that may be meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse

from biobench.data.sniff.base import Options, first_names

_USUAL = re.compile(r"O|[BIESUL]-\S+")
_OUTSIDE = ("O", "o", "0", "OUT", "OUTSIDE", "OTHER", "_")
_BARE = re.compile(r"[BIESUL]", re.IGNORECASE)
_PREFIXED = re.compile(r"([BIESUL])[-_:./](\S+)", re.IGNORECASE)
_SUFFIXED = re.compile(r"(\S+)[-_:./]([BIESUL])", re.IGNORECASE)
UNNAMED = "Entity"
"""The label of tags without a type."""
_MOST_SHOWN = 6
_MOST_NAMES = 100
"""More different tags are no names of entity types."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the tags are to be read. tag_map: tag to itself as O, B-<type>, I-<type>."""

    tag_map: dict[str, str] = field(default_factory=dict)
    bare: bool = False
    """Tags are B and I without a type."""
    names_only: bool = False
    """Tags are types without B or I, so neighbours of one type are one mention."""

    def usual(self, tag: str) -> str:
        """The tag as O, B-<type>, I-<type>."""
        return self.tag_map.get(tag, tag)


def spelling_of(tags: Mapping[str, int]) -> Spelling | None:
    """The spelling of tags with their numbers; None where they are no tags.

    A few tags of another shape are left to the reader, whose message names their line.
    """
    usual = set(filter(_USUAL.fullmatch, tags))
    number = sum(map(tags.__getitem__, usual))
    share = number / max(1, sum(tags.values()))
    if share > 0.9 and usual != {"O"}:
        return Spelling()
    if not 2 <= len(tags) <= _MOST_NAMES:
        return None
    spelled, unspelled = _all_spelled(tags)
    if unspelled:
        return _names_only(tags)
    tag_map = {tag: usual_tag for tag, usual_tag in spelled.items() if usual_tag != tag}
    return Spelling(tag_map, bare=any(map(_BARE.fullmatch, tags)))


def _all_spelled(tags: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """(tags as O, B-<type>, I-<type> or bare, those in no known spelling).

    Where nothing else is outside, a single unknown one is the corpus's own word for it (NONE).
    """
    spelled = {tag: _spelled(tag) for tag in filter(_spelled, tags)}
    unspelled = list(filterfalse(_spelled, tags))
    usual_tags = spelled.values()
    if len(unspelled) == 1 and "-" in "".join(usual_tags) and "O" not in usual_tags:
        spelled[unspelled.pop()] = "O"
    return spelled, unspelled


def _names_only(tags: Mapping[str, int]) -> Spelling | None:
    """Tags that are names of types, and a word for outside that most tokens have; None where none
    is such a word.
    """
    outside = next(filter(tags.__contains__, _OUTSIDE), None)
    if outside is None or 2 * tags[outside] < sum(tags.values()):
        return None
    tag_map = {tag: f"I-{tag}" for tag in tags if tag != outside}
    if outside != "O":
        tag_map[outside] = "O"
    return Spelling(tag_map, names_only=True)


def _spelled(tag: str) -> str:
    """The tag as O, B-<type>, I-<type> or bare; empty where it is none in any known spelling."""
    if tag in _OUTSIDE:
        return "O"
    if _BARE.fullmatch(tag):
        return tag.upper()
    if (match := _PREFIXED.fullmatch(tag)) is not None:
        return f"{match[1].upper()}-{match[2]}"
    if (match := _SUFFIXED.fullmatch(tag)) is not None:
        return f"{match[2].upper()}-{match[1]}"
    return ""


def scheme_options(
    spelling: Spelling, sequences: Iterable[Sequence[str]]
) -> tuple[list[Options], str]:
    """(reader options of each scheme that may be meant, the likeliest first; what was seen).

    The reader's count of dropped mentions decides between them.
    """
    shared: Options = {}
    if spelling.tag_map:
        shared["tag_map"] = spelling.tag_map
    if spelling.bare:
        shared["types"] = {"": UNNAMED}
    if spelling.names_only:
        names = ", ".join(first_names(spelling.tag_map, _MOST_SHOWN))
        seen = f"tags are names without B or I ({names}): neighbours of one name are one mention"
        return [{"scheme": "IOB1", "decode": "strict", **shared}], seen
    letters, begins = _letters(spelling, sequences)
    schemes = _likely_schemes(letters, begins)
    seen = f"{begins['I']} of {begins.total()} mentions begin with I-"
    if spelling.bare:
        seen += f"; tags are B and I without a type, which is called {UNNAMED} here"
    if spelling.tag_map:
        seen += f"; tags are spelled {', '.join(first_names(spelling.tag_map, _MOST_SHOWN))}"
    return [{"scheme": scheme, "decode": decode, **shared} for scheme, decode in schemes], seen


def _letters(
    spelling: Spelling, sequences: Iterable[Sequence[str]]
) -> tuple[set[str], Counter[str]]:
    """The letters of the tags (O, B, I, ...), and how many mentions begin with each."""
    letters, begins = set[str](), Counter[str]()
    for sequence in sequences:
        mention_before = (False, "")  # whether the token before is in one, and of which type
        for tag in sequence:
            letter, _, name = spelling.usual(tag).partition("-")
            mention = (letter != "O", name)
            letters.add(letter)
            if letter in ("B", "S", "U") or (letter == "I" and mention != mention_before):
                begins[letter] += 1
            mention_before = mention
    return letters, begins


def _likely_schemes(letters: set[str], begins: Counter[str]) -> list[tuple[str, str]]:
    """(scheme, decoding) of each that may be meant, the likeliest first."""
    if not letters.isdisjoint("ESUL"):
        return [("IOBES", "strict"), ("IOBES", "lenient")]
    if begins["I"] > begins["B"]:
        return [("IOB2", "strict"), ("IOB1", "strict"), ("IOB2", "lenient")]
    return [("IOB2", "strict"), ("IOB2", "lenient"), ("IOB1", "strict")]
