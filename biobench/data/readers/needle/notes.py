"""Synthetic clinical notes to hide needles in, written here; used where no corpus of real text is
at hand.

No sentence has the form of a fact template, so a note can never answer a query by chance.
"""

from __future__ import annotations

import random
import re

from biobench.core.packages import read_words

_FILE = read_words(__package__, "notes.json")
SECTIONS: dict[str, list[tuple[str, list[str]]]] = _FILE["sections"]
"""Language to (title, sentence frames) of each section."""
WORDS: dict[str, dict[str, list[str]]] = _FILE["words"]
"""Language to slot to what may fill it."""


def synthetic_note(language: str, rng: random.Random) -> str:
    """One note of some 100 to 200 words, sections as paragraphs."""
    paragraphs = []
    for title, frames in SECTIONS[language]:
        number = rng.randint(2, len(frames))
        chosen = rng.sample(frames, number)
        sentences = " ".join(_filled(frame, language, rng) for frame in chosen)
        paragraphs.append(f"{title} : {sentences}")
    return "\n".join(paragraphs)


_SLOT = re.compile(r"{(\w+)}")


def _filled(frame: str, language: str, rng: random.Random) -> str:
    def draw(slot: re.Match[str]) -> str:
        name = slot[1]
        if name == "age":
            return str(rng.randint(19, 94))
        value = rng.choice(WORDS[language][name.lower()])
        if name.islower():
            return value
        return value[0].upper() + value[1:]

    return _SLOT.sub(draw, frame)
