"""Generated clinical sentences, French and English, for the demo: always at hand, same seed same text.

Sentences are written here, in our own words; no corpus stands behind them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from biobench.core.packages import read_words
from biobench.data.readers.base import ReaderOptions, Request, reader
from biobench.data.readers.tokens import tagged
from biobench.errors import DataFormatError
from biobench.schema.document import Document

_WORDS = read_words(__package__, "synthetic.json")
"""Lexicon, templates of mentions and templates of topics by language; tokens are separated by blanks."""
_CONDITIONS = read_words("biobench.core", "conditions.json")
"""What the toy pretraining text is about: conditions with their symptoms, drugs and test, English and French."""
_SHARES = (("train", 0.6), ("validation", 0.2), ("test", 0.2))
_APART = {"train": (0, 6), "validation": (6, 8), "test": (8, 12)}
"""Conditions of each split of the contents with unseen names."""
_KINDS = ("Drug", "Symptom", "Test")
_SEVERAL = {name for name, count in Counter(s[0] for c in _CONDITIONS for s in c["symptoms"]).items() if count > 1}
"""English names of symptoms that belong to several conditions, and so to several splits: left out."""


class SyntheticOptions(ReaderOptions):
    """Options of format `synthetic`."""

    format: Literal["synthetic"]
    content: Literal["ner", "topic", "unseen_ner", "unseen_first"]
    """unseen_*: each split names the drugs, symptoms and tests of conditions of its own, in sentences that fit any of
    them. What a name is can be known from other text alone; `unseen_first` asks which kind stands first."""
    languages: list[Literal["fr", "en"]] = ["fr", "en"]
    sentences: int = Field(400, ge=50, le=2000)
    seed: int = 7


@reader(SyntheticOptions)
def read_synthetic(request: Request[SyntheticOptions]) -> Iterator[Document]:
    """Sentences from templates and small lexicons: entity mentions, or the specialty that they come from.

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
        yield Document(id=document_id, group=document_id, split=split, **tagged(words, tags, "IOB2", "strict"))


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


def _unseen(options: SyntheticOptions, rng: random.Random) -> Iterator[Document]:
    """Sentences over names that no other split holds; split by split, in the order of drawing."""
    is_ner = options.content == "unseen_ner"
    templates = _WORDS["unseen"]["ner" if is_ner else "first"]
    for split, share in _SHARES:
        wanted, drawn = round(share * options.sentences), dict[str, tuple[str, list[str], list[str]]]()
        for _ in range(200 * wanted):
            if len(drawn) == wanted:
                break
            language = rng.choice(options.languages)
            kinds = rng.choices(_KINDS, k=3) if is_ner else rng.sample(_KINDS, 2)
            names = [_name(kind, split, language, rng) for kind in kinds]
            words, tags = _filled(rng.choice(templates[language]), kinds, names, str(rng.randint(2, 40)))
            drawn.setdefault(" ".join(words), (kinds[0].lower(), words, tags))
        if len(drawn) < wanted:
            raise DataFormatError(
                f"the templates make only {len(drawn)} different {split} sentences, {wanted} are asked for",
                hint="lower reader.sentences",
            )
        for number, (text, (first, words, tags)) in enumerate(drawn.items(), 1):
            name = f"synthetic-{split}-{number}"
            if is_ner:
                yield Document(id=name, group=name, split=split, **tagged(words, tags, "IOB2", "strict"))
            else:
                yield Document(id=name, group=name, text=text, split=split, labels=(first,))


def _name(kind: str, split: str, language: str, rng: random.Random) -> str:
    """A drug, symptom or test of one of the split's conditions."""
    condition = _CONDITIONS[rng.randrange(*_APART[split])]
    side = ("en", "fr").index(language)
    names = [condition["test"]] if kind == "Test" else condition["drugs" if kind == "Drug" else "symptoms"]
    return str(rng.choice([name for name in names if name[0] not in _SEVERAL])[side])


def _filled(template: str, kinds: Sequence[str], names: Sequence[str], page: str) -> tuple[list[str], list[str]]:
    """Words and IOB2 tags of a template whose ``{0}`` is the first name and whose ``{page}`` is a number."""
    words: list[str] = []
    tags: list[str] = []
    for part in template.split():
        if part in ("{0}", "{1}", "{2}"):
            kind, name = kinds[int(part[1])], names[int(part[1])].split()
            words += name
            tags += [f"B-{kind}", *[f"I-{kind}"] * (len(name) - 1)]
        else:
            words.append(page if part == "{page}" else part)
            tags.append("O")
    return words, tags
