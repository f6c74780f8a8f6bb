"""Needle in a haystack, generated: is the queried medical fact in the document?

Same options, same haystack: same examples, on any machine. Examples come in pairs that share query,
haystack, length, position and template: one document holds the queried fact, the other one of the
same template with other values. The two facts of a pair are drawn alike and a coin says which is
queried, so neither the query nor the document alone tells the answer. Facts and haystack documents
belong to one split each.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from biobench.data.readers.base import ReaderOptions, Request, reader
from biobench.data.readers.needle.facts import TEMPLATES, fingerprint
from biobench.data.readers.needle.haystack import (
    Haystack,
    by_split,
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

    former: ClassVar = {"positions": "bins", "grid_steps": 11, "distractors": 0}
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
    hardness: Literal["all", "one"] = "all"
    """How many slots a negative's fact differs in from the query."""
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
    pools = by_split(haystacks, shares, options.seed)
    number = 0
    for split in SPLITS:
        maker = _Maker(options, language, split, pools[split], shares, fingerprint(language))
        size = options.examples[split]
        for index, cell in enumerate(cells(options, language, -(-size // 2), split)):
            pair = maker.pair(number, cell)
            # An odd number of examples ends with one side of a pair, by the toss of its coin.
            yield from pair if 2 * index + 2 <= size else pair[:1]
            number += 1


def cells(options: NeedleOptions, language: str, pairs: int, split: str) -> list[GridCell]:
    """The cell of each pair: all cells equally often, and a remainder that keeps each margin
    even."""
    every = [GridCell(n, p, t) for n in options.lengths for p in BINS for t in TEMPLATES[language]]
    random.Random(f"{options.seed}|cells|{split}").shuffle(every)
    rounds, remainder = divmod(pairs, len(every))
    used: dict[int | str, int] = {}
    unused, extra = list(every), []
    for _ in range(remainder):
        best = min(
            unused, key=lambda cell: sum(used.get(axis_value, 0) ** 2 for axis_value in cell)
        )
        unused.remove(best)
        extra.append(best)
        for axis_value in best:
            used[axis_value] = used.get(axis_value, 0) + 1
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
        options = self.options
        rng = random.Random(f"{options.seed}|{self.language}|{self.split}|{number}")
        low, high = BINS[cell.position]
        place = round(rng.uniform(low, high), 4)
        query, other = (
            self._sentence(cell.template, fact) for fact in self._facts(cell.template, rng)
        )
        before, after, ids = self._haystack(cell, place, rng, (query, other))
        group = f"needle-{self.language}-{self.split}-{number:05d}"
        around = tuple(before), tuple(after), tuple(ids), (), self.generator, options.fit
        documents = []
        for label, needle in ((PRESENT, query), (ABSENT, other)):
            plan = NeedlePlan(cell.length, place, needle, *around)
            words = cell.length * 3 // 5
            if options.fit == "words":
                words = cell.length - len(needle.split())
            id, text = example_id(self.language, cell, number, label), rendered(plan, words)
            documents.append(
                Document(id, group, text, self.split, labels=(label,), query=query, plan=plan)
            )
        return documents if rng.random() < 0.5 else documents[::-1]

    def _sentence(self, template: str, fact: Fact) -> str:
        text, slots = TEMPLATES[self.language][template]
        return text.format(**dict(zip(slots, fact, strict=True)))

    def _facts(self, template: str, rng: random.Random) -> list[Fact]:
        """Two distinct facts of this split, used nowhere else, in the order of a coin."""
        slots = list(TEMPLATES[self.language][template][1].values())
        for _ in range(_TRIES):
            one = tuple(rng.choice(values) for values in slots)
            changed = list(range(len(slots)))
            if self.options.hardness == "one":
                changed = [rng.randrange(len(slots))]
            two = tuple(
                rng.choice([v for v in slots[i] if v != value]) if i in changed else value
                for i, value in enumerate(one)
            )
            if any(
                (template, f) in self.used or self._home(template, f) != self.split
                for f in (one, two)
            ):
                continue
            self.used |= {(template, one), (template, two)}
            return [one, two] if rng.random() < 0.5 else [two, one]
        raise DataFormatError(
            f"template '{template}' has no unused facts left for {self.split}",
            hint="lower reader.examples",
        )

    def _home(self, template: str, fact: Fact) -> str:
        """The split that a fact belongs to, by its hash."""
        text = "|".join([str(self.options.seed), self.language, template, *fact])
        point = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
        for name in SPLITS[:-1]:
            if point < self.shares[name]:
                return name
            point -= self.shares[name]
        return SPLITS[-1]

    def _haystack(
        self, cell: GridCell, place: float, rng: random.Random, facts: tuple[str, ...]
    ) -> tuple[list[str], list[str], list[str]]:
        for _ in range(_TRIES):
            surrounding = surround(self.pool, cell.length, place, rng)
            if surrounding is None:
                raise DataFormatError(
                    f"the {len(self.pool)} haystack documents of {self.split} are shorter than "
                    f"{cell.length} words",
                    hint="give more text, raise reader.notes, or lower reader.lengths",
                )
            text = "\n".join((*surrounding[0], *surrounding[1]))
            if not any(fact in text for fact in facts):
                return surrounding
        raise DataFormatError(
            "the haystack states the facts that are to be hidden", hint="choose other text"
        )
