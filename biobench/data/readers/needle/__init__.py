"""Needle in a haystack, generated: is the queried medical fact in the document?

Same options, same haystack: same examples, on any machine. Examples come in pairs that share query,
haystack, length, position and template: one document holds the queried fact, the other one of the
same template with other values. The two facts of a pair are drawn alike and a coin says which is
queried, so neither the query nor the document alone tells the answer. Facts and haystack documents
belong to one split each.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from biobench.data.readers.base import ReaderOptions, Request, in_shares, reader
from biobench.data.readers.needle.facts import TEMPLATES, fingerprint
from biobench.data.readers.needle.haystack import (
    Haystack,
    read_haystacks,
    surround,
    synthetic_haystacks,
)
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.needle import ABSENT, BINS, PRESENT, GridCell, NeedlePlan, example_id, rendered
from biobench.schema.source import fail
from biobench.schema.task import SPLITS

Fact = tuple[str, ...]
"""Slot values of a template, in its order."""

_TRIES = 20_000


class NeedleOptions(ReaderOptions):
    """Options of format `needle`."""

    former: ClassVar = {
        "positions": "bins",
        "grid_steps": 11,
        "distractors": 0,
        "hardness": "all",
    }
    format: Literal["needle"]
    haystack: Literal["synthetic", "files"] = "synthetic"
    """Our own notes, or the source's `texts` (plain text, or JSON with a `text`)."""
    notes: int = Field(2000, ge=60)
    """How many synthetic notes there are to draw from."""
    lengths: list[int] = [512, 1024, 2048, 4096, 8192]
    fit: Literal["tokens", "words"] = "tokens"
    """tokens: lengths count each model's own tokens, query and special tokens included. words: the
    words of the document, the same text for every model.
    """
    examples: dict[str, int] = {"train": 2400, "validation": 480, "test": 1920}
    seed: int = 42

    @field_validator("examples")
    @classmethod
    def _examples(cls, value: dict[str, int]) -> dict[str, int]:
        if set(value) != set(SPLITS) or min(value.values()) < 2:
            raise fail(
                "examples must name train, validation and test, at least 2 each",
                "{train: 2400, ...}",
            )
        return value

    @field_validator("lengths")
    @classmethod
    def _lengths(cls, value: list[int]) -> list[int]:
        if not value or sorted(set(value)) != value or value[0] < 128:
            raise fail(
                "lengths must rise and begin at 128 or more", "for example [512, 1024, 2048]"
            )
        return value


@reader(NeedleOptions)
def read_needle(request: Request[NeedleOptions]) -> Iterator[Document]:
    """Generated needle-in-a-haystack examples over synthetic notes or a folder of clinical text.

    Order: as made with the seed, split by split, the two examples of a pair in the order of a coin.
    """
    options = request.options
    language = request.spec.language
    if language not in TEMPLATES:
        raise DataFormatError(
            f"there are no fact templates for language '{language}'", hint="use fr or en"
        )
    if options.haystack == "files":
        haystacks = read_haystacks(request)
    else:
        haystacks = synthetic_haystacks(language, options.notes, options.seed)
    total = sum(options.examples.values())
    shares = {name: options.examples[name] / total for name in SPLITS}
    random.Random(f"{options.seed}|haystack").shuffle(haystacks)
    pools = in_shares(haystacks, shares)
    numbers = itertools.count()
    for split in SPLITS:
        maker = _Maker(options, language, split, pools[split], shares, fingerprint(language))
        examples: list[Document] = []
        wanted = options.examples[split]
        for cell in cells(options, language, math.ceil(wanted / 2), split):
            examples += maker.pair(next(numbers), cell)
        # An odd number of examples ends with one side of a pair, by the toss of its coin.
        yield from examples[:wanted]


def cells(options: NeedleOptions, language: str, pairs: int, split: str) -> list[GridCell]:
    """The cell of each pair: all cells equally often, and a remainder that keeps each margin
    even."""
    axes = (options.lengths, BINS, TEMPLATES[language])
    every = [GridCell(*values) for values in itertools.product(*axes)]
    random.Random(f"{options.seed}|cells|{split}").shuffle(every)
    rounds, remainder = divmod(pairs, len(every))
    used: Counter[int | str] = Counter()
    unused, extra = list(every), list[GridCell]()
    for _ in range(remainder):
        rarest = min(unused, key=lambda cell: sum(used[value] ** 2 for value in cell))
        unused.remove(rarest)
        extra.append(rarest)
        used.update(rarest)
    return every * rounds + extra


@dataclass(slots=True)
class _Maker:
    """Makes the pairs of one split."""

    options: NeedleOptions
    language: str
    split: str
    pool: list[Haystack]
    shares: dict[str, float]
    generator: str
    used: set[tuple[str, Fact]] = field(default_factory=set)

    def pair(self, number: int, cell: GridCell) -> list[Document]:
        """The two examples of a pair, in the order that a coin gives."""
        options, language = self.options, self.language
        group = f"needle-{language}-{self.split}-{number:05d}"
        rng = random.Random(f"{options.seed}|{language}|{self.split}|{number}")
        position = round(rng.uniform(*BINS[cell.position]), 4)
        queried, stated = self._facts(cell.template, rng)
        units_before, units_after, ids = self._haystack(cell, position, rng, (queried, stated))
        documents: list[Document] = []
        for label, needle in ((PRESENT, queried), (ABSENT, stated)):
            plan = NeedlePlan(
                length=cell.length,
                place=position,
                needle=needle,
                before=tuple(units_before),
                after=tuple(units_after),
                haystack=tuple(ids),
                distractors=(),
                generator=self.generator,
                fit=options.fit,
            )
            words = cell.length * 3 // 5
            if options.fit == "words":
                words = cell.length - len(needle.split())
            documents.append(
                Document(
                    id=example_id(language, cell, number, label),
                    group=group,
                    text=rendered(plan, words),
                    split=self.split,
                    labels=(label,),
                    query=queried,
                    plan=plan,
                )
            )
        return documents if rng.random() < 0.5 else documents[::-1]

    def _facts(self, template: str, rng: random.Random) -> list[str]:
        """Sentences of two facts of this split that differ in every slot, used nowhere else, in the
        order of a coin.
        """
        sentence, slots = TEMPLATES[self.language][template]
        for _ in range(_TRIES):
            fact = tuple(rng.choice(values) for values in slots.values())
            counterpart = _counterpart(fact, slots.values(), rng)
            pair = {(template, fact), (template, counterpart)}
            at_home = self._home(template, fact) == self._home(template, counterpart) == self.split
            if at_home and pair.isdisjoint(self.used):
                self.used |= pair
                facts = [fact, counterpart] if rng.random() < 0.5 else [counterpart, fact]
                return [sentence.format(**dict(zip(slots, f, strict=True))) for f in facts]
        raise DataFormatError(
            f"template '{template}' has no unused facts left for {self.split}",
            hint="lower reader.examples",
        )

    def _home(self, template: str, fact: Fact) -> str:
        """The split that a fact belongs to, by its hash."""
        text = "|".join([str(self.options.seed), self.language, template, *fact])
        digest = hashlib.sha256(text.encode()).digest()
        point = int.from_bytes(digest[:6], "big") / 2**48
        for name in SPLITS[:-1]:
            if point < self.shares[name]:
                return name
            point -= self.shares[name]
        return SPLITS[-1]

    def _haystack(
        self, cell: GridCell, position: float, rng: random.Random, facts: tuple[str, ...]
    ) -> tuple[list[str], list[str], list[str]]:
        for _ in range(_TRIES):
            surrounding = surround(self.pool, cell.length, position, rng)
            if surrounding is None:
                raise DataFormatError(
                    f"the {len(self.pool)} haystack documents of {self.split} are shorter than "
                    f"{cell.length} words",
                    hint="give more text, raise reader.notes, or lower reader.lengths",
                )
            units_before, units_after, _ = surrounding
            text = "\n".join((*units_before, *units_after))
            if not any(fact in text for fact in facts):
                return surrounding
        raise DataFormatError(
            "the haystack states the facts that are to be hidden", hint="choose other text"
        )


def _counterpart(fact: Fact, lexicons: Collection[list[str]], rng: random.Random) -> Fact:
    """Another value in each slot."""
    values: list[str] = []
    for value, lexicon in zip(fact, lexicons, strict=True):
        remaining = list(lexicon)
        remaining.remove(value)
        values.append(rng.choice(remaining))
    return tuple(values)
