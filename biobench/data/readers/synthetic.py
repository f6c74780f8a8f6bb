"""Generated clinical sentences, French and English, for the demo: always at hand, same seed same
text.

Sentences are written here, in our own words; no corpus stands behind them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal

from pydantic import Field

from biobench.core.packages import read_words
from biobench.data.readers.base import ReaderOptions, Request, reader
from biobench.data.readers.tokens import mention_tags, tagged
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.tags import Tagging

_WORDS = read_words(__package__, "synthetic.json")
"""Lexicon, templates of mentions and templates of topics by language; tokens are separated by
blanks.
"""
_CONDITIONS = read_words("biobench.core", "conditions.json")
"""What the toy pretraining text is about: conditions with their symptoms, drugs and test, English
and French.
"""
_SHARES = (("train", 0.6), ("validation", 0.2), ("test", 0.2))
_APART = {"train": (0, 6), "validation": (6, 8), "test": (8, 12)}
"""Conditions of each split of the contents with unseen names."""
_KINDS = ("Drug", "Symptom", "Test")
_SEVERAL = {
    name
    for name, count in Counter(s[0] for c in _CONDITIONS for s in c["symptoms"]).items()
    if count > 1
}
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
    if options.content in ("unseen_ner", "unseen_first"):
        yield from _unseen(options, rng)
        return
    templates: list[tuple[str, str, str]] = []
    for language in options.languages:
        if options.content == "ner":
            templates += [(language, "", text) for text in _WORDS["ner"][language]]
        else:
            templates += [
                (language, topic, text)
                for topic, texts in _WORDS["topic"][language].items()
                for text in texts
            ]

    def draw() -> _Drawn:
        tongue, topic, template = templates[rng.randrange(len(templates))]
        # Slots in capitals (`{AGE}`) are plain words; the others (`{Disease}`) are mentions of that
        # type.
        lexicon = _WORDS["lexicon"][tongue]
        return topic, *_fill(
            template, lambda slot: (rng.choice(lexicon[slot]), "" if slot.isupper() else slot)
        )

    sentences = _different(draw, options.sentences, "")
    cut = [round(sum(share for _, share in _SHARES[: i + 1]) * options.sentences) for i in range(3)]
    for number, drawn in enumerate(sentences):
        split = next(name for (name, _), end in zip(_SHARES, cut, strict=True) if number < end)
        yield _document(f"synthetic-{number + 1}", split, drawn, ner=options.content == "ner")


_Drawn = tuple[str, list[str], list[str]]
"""A label of a sentence, its words and their tags."""


def _different(draw: Callable[[], _Drawn], wanted: int, split: str) -> list[_Drawn]:
    """So many different sentences, in the order of drawing."""
    sentences: dict[str, _Drawn] = {}
    for _ in range(200 * wanted):
        if len(sentences) == wanted:
            break
        drawn = draw()
        sentences.setdefault(" ".join(drawn[1]), drawn)
    if len(sentences) < wanted:
        message = (
            f"the templates make only {len(sentences)} different {split}sentences, {wanted} "
            f"are asked for"
        )
        raise DataFormatError(message, hint="lower reader.sentences")
    return list(sentences.values())


def _document(id: str, split: str, drawn: _Drawn, *, ner: bool) -> Document:
    label, words, tags = drawn
    if ner:
        return Document(id=id, group=id, split=split, **tagged(words, tags, Tagging()))
    return Document(id=id, group=id, text=" ".join(words), split=split, labels=(label,))


def _fill(template: str, filled: Callable[[str], tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Words and IOB2 tags of a template; `filled` gives text and type (empty: none) of a
    ``{slot}``.
    """
    words: list[str] = []
    tags: list[str] = []
    for word in template.split():
        text, kind = filled(word.strip("{}")) if word.startswith("{") else (word, "")
        drawn = text.split()
        words += drawn
        if kind:
            tags += mention_tags(kind, len(drawn))
        else:
            tags += ["O"] * len(drawn)
    return words, tags


def _unseen(options: SyntheticOptions, rng: random.Random) -> Iterator[Document]:
    """Sentences over names that no other split holds; split by split, in the order of drawing."""
    is_ner = options.content == "unseen_ner"
    templates = _WORDS["unseen"]["ner" if is_ner else "first"]
    for split, share in _SHARES:

        def draw(split: str = split) -> _Drawn:
            language = rng.choice(options.languages)
            kinds = rng.choices(_KINDS, k=3) if is_ner else rng.sample(_KINDS, 2)
            names = [_name(kind, split, language, rng) for kind in kinds]
            template, page = rng.choice(templates[language]), str(rng.randint(2, 40))
            slots = {
                str(i): (name, kind)
                for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
            }
            return kinds[0].lower(), *_fill(template, (slots | {"page": (page, "")}).__getitem__)

        for number, drawn in enumerate(
            _different(draw, round(share * options.sentences), f"{split} "), 1
        ):
            yield _document(f"synthetic-{split}-{number}", split, drawn, ner=is_ner)


def _name(kind: str, split: str, language: str, rng: random.Random) -> str:
    """A drug, symptom or test of one of the split's conditions."""
    condition = _CONDITIONS[rng.randrange(*_APART[split])]
    side = ("en", "fr").index(language)
    names = {
        "Test": [condition["test"]],
        "Drug": condition["drugs"],
        "Symptom": condition["symptoms"],
    }[kind]
    return str(rng.choice([name for name in names if name[0] not in _SEVERAL])[side])
