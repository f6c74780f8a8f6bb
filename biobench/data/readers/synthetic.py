"""Generated clinical sentences, French and English, for the demo: always at hand, same seed same text.

Sentences are written here, in our own words; no corpus stands behind them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from biobench.core.words import read_words
from biobench.data.formats.tagged import tagged_document
from biobench.data.readers.base import ReaderOptions, Request, reader
from biobench.errors import DataFormatError
from biobench.schema.document import Document

_WORDS = read_words(__package__, "synthetic.json")
"""Lexicon, templates of mentions and templates of topics by language; tokens are separated by blanks."""
_SHARES = (("train", 0.6), ("validation", 0.2), ("test", 0.2))


class SyntheticOptions(ReaderOptions):
    """Options of format `synthetic`."""

    format: Literal["synthetic"]
    content: Literal["ner", "topic"]
    languages: list[Literal["fr", "en"]] = ["fr", "en"]
    sentences: int = Field(400, ge=50, le=2000)
    seed: int = 7


@reader(SyntheticOptions)
def read_synthetic(request: Request) -> Iterator[Document]:
    """Sentences from templates and small lexicons: entity mentions, or the specialty that they come from.

    Order: as drawn with the seed; train, validation and test follow each other.
    """
    options = request.options
    assert isinstance(options, SyntheticOptions)
    rng = random.Random(options.seed)
    templates: list[tuple[str, str, str]] = []
    for language in options.languages:
        if options.content == "ner":
            templates += [(language, "", text) for text in _WORDS["ner"][language]]
        else:
            templates += [
                (language, topic, text) for topic, texts in _WORDS["topic"][language].items() for text in texts
            ]
    sentences: dict[str, tuple[str, list[str], list[str]]] = {}
    for _ in range(200 * options.sentences):
        if len(sentences) == options.sentences:
            break
        tongue, topic, template = templates[rng.randrange(len(templates))]
        words, tags = _fill(template, tongue, rng)
        sentences.setdefault(" ".join(words), (topic, words, tags))
    if len(sentences) < options.sentences:
        raise DataFormatError(
            f"the templates make only {len(sentences)} different sentences, {options.sentences} are asked for",
            hint="lower reader.sentences",
        )
    cut = [round(sum(share for _, share in _SHARES[: i + 1]) * options.sentences) for i in range(3)]
    for number, (text, (topic, words, tags)) in enumerate(sentences.items()):
        split = next(name for (name, _), end in zip(_SHARES, cut, strict=True) if number < end)
        document_id = f"synthetic-{number + 1}"
        if options.content == "topic":
            yield Document(id=document_id, group=document_id, text=text, split=split, labels=(topic,))
            continue
        yield tagged_document(words, tags, "IOB2", "strict", id=document_id, group=document_id, split=split, origin="")


def _fill(template: str, language: str, rng: random.Random) -> tuple[list[str], list[str]]:
    """Words and IOB2 tags of a template whose ``{Slot}`` words are drawn from the lexicon.

    Slots in capitals (``{AGE}``) are plain words; the others (``{Disease}``) are mentions of that type.
    """
    words: list[str] = []
    tags: list[str] = []
    for part in template.split():
        if not part.startswith("{"):
            words.append(part)
            tags.append("O")
            continue
        slot = part.strip("{}")
        drawn = rng.choice(_WORDS["lexicon"][language][slot]).split()
        words += drawn
        tags += ["O"] * len(drawn) if slot.isupper() else [f"B-{slot}", *[f"I-{slot}"] * (len(drawn) - 1)]
    return words, tags
