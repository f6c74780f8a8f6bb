"""Generated clinical sentences, French and English, for the demo: always at hand, same seed same
text.

Sentences are written here, in our own words; no corpus stands behind them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Literal, NamedTuple

from pydantic import Field

from biobench.core.packages import read_words
from biobench.data.readers.base import ReaderOptions, Request, in_shares, reader
from biobench.data.readers.tokens import mention_tags, tagged
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.strict import repeated
from biobench.schema.tags import Tagging

_WORDS = read_words(__package__, "synthetic.json")
"""Lexicon, templates of mentions and templates of topics by language; tokens are separated by
blanks.
"""
_CONDITIONS = read_words("biobench.core", "conditions.json")
"""What the toy pretraining text is about: conditions with their symptoms, drugs and test, English
and French.
"""
_SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}
_APART = {"train": (0, 6), "validation": (6, 8), "test": (8, 12)}
"""Conditions of each split of the contents with unseen names."""
_KINDS = ("Drug", "Symptom", "Test")
_SEVERAL = repeated(name for condition in _CONDITIONS for name, _ in condition["symptoms"])
"""English names of symptoms that belong to several conditions, and so to several splits: skipped.
"""


class SyntheticOptions(ReaderOptions):
    """Options of format `synthetic`."""

    format: Literal["synthetic"]
    content: Literal["ner", "topic", "unseen_ner", "unseen_first"]
    """unseen_*: each split names the drugs, symptoms and tests of conditions of its own, in
    sentences that fit any of them. What a name is can be known from other text alone;
    `unseen_first` asks which kind stands first.
    """
    languages: list[Literal["fr", "en"]] = ["fr", "en"]
    sentences: int = Field(400, ge=50, le=2000)
    seed: int = 7


@reader(SyntheticOptions)
def read_synthetic(request: Request[SyntheticOptions]) -> Iterator[Document]:
    """Sentences from templates and small lexicons: entity mentions, or the specialty that they come
    from.

    Order: as drawn with the seed; train, validation and test follow each other.
    """
    options = request.options
    rng = random.Random(options.seed)
    if options.content.startswith("unseen"):
        yield from _unseen(options, rng)
        return
    templates: list[_Template] = []
    for language in options.languages:
        by_topic = {"": _WORDS["ner"][language]}
        if options.content == "topic":
            by_topic = _WORDS["topic"][language]
        for topic, texts in by_topic.items():
            templates += [_Template(language, topic, text) for text in texts]
    sentences = _different(partial(_sentence, templates, rng), options.sentences, "")
    numbers = count(1)
    for split, drawn_sentences in in_shares(sentences, _SHARES).items():
        for drawn in drawn_sentences:
            yield _document(f"synthetic-{next(numbers)}", split, drawn, options)


class _Template(NamedTuple):
    language: str
    topic: str
    text: str


class _Drawn(NamedTuple):
    label: str
    words: list[str]
    tags: list[str]


def _different(draw: Callable[[], _Drawn], wanted: int, split: str) -> list[_Drawn]:
    """So many different sentences, in the order of drawing."""
    sentences: dict[str, _Drawn] = {}
    for _ in range(200 * wanted):
        drawn = draw()
        sentences.setdefault(" ".join(drawn.words), drawn)
        if len(sentences) == wanted:
            return list(sentences.values())
    raise DataFormatError(
        f"the templates make only {len(sentences)} different {split}sentences, not {wanted}",
        hint="lower reader.sentences",
    )


def _document(id: str, split: str, drawn: _Drawn, options: SyntheticOptions) -> Document:
    content = tagged(drawn.words, drawn.tags, Tagging())
    if not options.content.endswith("ner"):
        content = {"text": content["text"], "labels": (drawn.label,)}
    return Document(id=id, group=id, split=split, **content)


def _filled(template: str, fill: Callable[[str], tuple[str, str]], label: str) -> _Drawn:
    """Label, words and IOB2 tags of a template; `fill` gives text and type (empty: none) of a
    ``{slot}``.
    """
    words: list[str] = []
    tags: list[str] = []
    for word in template.split():
        text, kind = word, ""
        if word.startswith("{"):
            text, kind = fill(word.strip("{}"))
        slot_words = text.split()
        words += slot_words
        tags += mention_tags(kind, len(slot_words))
    return _Drawn(label, words, tags)


def _sentence(templates: list[_Template], rng: random.Random) -> _Drawn:
    number = rng.randrange(len(templates))
    template = templates[number]
    lexicon = _WORDS["lexicon"][template.language]

    def fill(slot: str) -> tuple[str, str]:
        # Slots in capitals (`{AGE}`) are plain words; the others are mentions of that type.
        kind = "" if slot.isupper() else slot
        return rng.choice(lexicon[slot]), kind

    return _filled(template.text, fill, template.topic)


def _unseen(options: SyntheticOptions, rng: random.Random) -> Iterator[Document]:
    """Sentences over names that no other split holds; split by split, in the order of drawing."""
    for split, share in _SHARES.items():
        draw = partial(_unseen_sentence, options, split, rng)
        sentences = _different(draw, round(share * options.sentences), f"{split} ")
        for number, drawn in enumerate(sentences, start=1):
            yield _document(f"synthetic-{split}-{number}", split, drawn, options)


def _unseen_sentence(options: SyntheticOptions, split: str, rng: random.Random) -> _Drawn:
    content = options.content.removeprefix("unseen_")
    language = rng.choice(options.languages)
    kinds = rng.sample(_KINDS, 2) if content == "first" else rng.choices(_KINDS, k=3)
    slots: dict[str, tuple[str, str]] = {}
    for number, kind in enumerate(kinds):
        slots[str(number)] = _name(kind, split, language, rng), kind
    templates = _WORDS["unseen"][content][language]
    template = rng.choice(templates)
    page = rng.randint(2, 40)
    slots["page"] = (str(page), "")
    return _filled(template, slots.__getitem__, kinds[0].lower())


def _name(kind: str, split: str, language: str, rng: random.Random) -> str:
    """A drug, symptom or test of one of the split's conditions."""
    first, past_last = _APART[split]
    condition = _CONDITIONS[rng.randrange(first, past_last)]
    names = {
        "Drug": condition["drugs"],
        "Symptom": [name for name in condition["symptoms"] if name[0] not in _SEVERAL],
        "Test": [condition["test"]],
    }
    english, french = rng.choice(names[kind])
    by_language: dict[str, str] = {"en": english, "fr": french}
    return by_language[language]
