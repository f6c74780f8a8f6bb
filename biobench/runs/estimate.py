"""How long runs take, what they read, and in which order they are made.

The time of a run is taken as proportional to the characters that it reads and to the model's
parameters, on one device. A run of the same model on the same task counts before one of the same
model, and that before any other of its size; where none reads the same texts as often, the speed
of training counts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, groupby
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from biobench.models.loading import load_tokenizer
from biobench.runs.plan import Item, RunPlan
from biobench.runs.provenance import device_name
from biobench.schema.document import Document
from biobench.schema.protocols import FROZEN
from biobench.schema.record import READY
from biobench.store import Brief, Store

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SAMPLE = 64
"""Texts of a task that are tokenised to tell how many tokens a character is."""


ALIKE = 10
"""A model with more than ten times the parameters, or less than a tenth, tells nothing of another:
tiny ones spend their time elsewhere.
"""


class Rate(NamedTuple):
    """How fast a model was. seconds: a character or a token."""

    parameters: int
    seconds: float


class Pace:
    """How long the stored runs of the plan's tasks took on its device.

    by_characters: seconds a character, by (model, task) and by model. by_tokens: seconds a token of
    every run there that trained an encoder, by model. characters_of_all, tokens_of_all: the same of
    all models, each with its parameters.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.by_characters: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self.by_tokens: dict[str, list[float]] = defaultdict(list)
        self.characters_of_all: list[Rate] = []
        self.tokens_of_all: list[Rate] = []
        device = device_name(plan.device)
        origin = "checkpoint" if plan.request.track == READY else "run"
        read = {(item.task.id, item.task.hash): characters(item) for item in plan.items}
        briefs, _ = Store(plan.request.results_dir).briefs()
        for brief in briefs:
            if brief.device != device:
                continue
            self._note_training(brief)
            length = read.get((brief.task, brief.spec))
            if length and (brief.origin, brief.limit) == (origin, plan.request.limit):
                self._note_reading(brief, length)

    def _note_training(self, brief: Brief) -> None:
        """Count a stored run's speed of training, where it trained an encoder."""
        if brief.train_tokens_per_second and _trains_encoder(brief):
            seconds = 1 / brief.train_tokens_per_second
            self.by_tokens[brief.weights].append(seconds)
            self.tokens_of_all.append(Rate(brief.parameters, seconds))

    def _note_reading(self, brief: Brief, length: float) -> None:
        """Count the time of a stored run that read so many characters."""
        rate = brief.seconds / length
        self.by_characters[brief.weights, brief.task].append(rate)
        self.by_characters[brief.weights,].append(rate)
        self.characters_of_all.append(Rate(brief.parameters, rate))

    def seconds(self, item: Item, tokens: int) -> float | None:
        """What the item, which reads so many tokens, will take; None where no stored run tells."""
        model = item.checkpoint.hash
        length = characters(item)
        parameters = item.checkpoint.parameters or 0
        nearest_first = [
            (self.by_characters[model, item.task.id], length),
            (self.by_characters[model,], length),
            (_scaled(self.characters_of_all, parameters), length),
        ]
        if not item.is_frozen and item.track != READY:
            nearest_first.append((self.by_tokens[model], tokens))
            nearest_first.append((_scaled(self.tokens_of_all, parameters), tokens))
        for rates, work in nearest_first:
            if rates and work:
                seconds = median(rates) * work
                return round(seconds, 1)
        return None


def _scaled(rates: Sequence[Rate], parameters: int) -> list[float]:
    """Seconds a unit of a model with so many parameters, by those of models of its size."""
    smallest = parameters / ALIKE
    largest = parameters * ALIKE
    scaled: list[float] = []
    for rate in rates:
        if smallest <= rate.parameters <= largest:
            scaled.append(rate.seconds * parameters / max(1, rate.parameters))
    return scaled


def _trains_encoder(brief: Brief) -> bool:
    """Not of a run that trained a probe alone, as those of needle tasks do by their specs."""
    is_frozen = brief.track == "frozen" or FROZEN[0] in brief.overrides
    return not is_frozen and brief.type != "needle"


def longest_first(items: Sequence[Item]) -> list[Item]:
    """The order in which processes claim runs: the longest first, so that short ones fill the
    devices at the end.

    Workers that claim one by one in this order end at most a third later than the best packing
    could (Graham 1969). Length is characters times parameters: what is measured would come from
    other devices. Runs of one checkpoint and task stay together, as these are loaded and encoded
    once.
    """
    groups: dict[tuple[str, str, int], list[Item]] = defaultdict(list)
    for item in items:
        groups[item.group].append(item)

    def work(members: list[Item]) -> float:
        return characters(members[0]) * (members[0].checkpoint.parameters or 1)

    ordered = sorted(groups.values(), key=work, reverse=True)
    return list(chain.from_iterable(ordered))


class _Shape(NamedTuple):
    """What a run trains: nothing by default. documents: of training. max_steps: of a trial."""

    documents: int
    epochs: int = 0
    batch_size: int = 1
    max_steps: int | None = None
    trials: int = 0


def _shape(item: Item) -> _Shape:
    recipe = item.task.spec.training
    probe = item.task.spec.probe
    documents = max(1, round(len(item.task.data.train) * recipe.train_fraction))
    if recipe.train_documents is not None:
        documents = min(documents, recipe.train_documents)
    if item.track == READY:
        return _Shape(documents)
    if not item.is_frozen:
        trials = len(recipe.grid) if item.track == "tuned" else 1
        epochs = recipe.epochs or 1
        return _Shape(documents, epochs, recipe.batch_size, recipe.max_steps, trials)
    if probe is None or not probe.trained:
        return _Shape(documents)
    trials = len(probe.learning_rates)
    return _Shape(documents, probe.epochs, probe.batch_size, trials=trials)


def steps_of(item: Item) -> int:
    """Optimiser steps of a run of the item, of all trials together, where nothing stops it earlier.

    Windows are not known before the texts are tokenised, so a document counts as one.
    """
    shape = _shape(item)
    steps = shape.epochs * math.ceil(shape.documents / shape.batch_size)
    return shape.trials * (shape.max_steps or steps)


def characters(item: Item) -> float:
    """Characters that a run of the item reads: the training documents in each epoch, validation
    after each, and test.

    An encoder that is not trained reads every document once.
    """
    read = item.task.characters
    shape = _shape(item)
    if item.is_frozen:
        return max(1.0, float(sum(read.values())))
    if item.track == READY:
        return max(1.0, float(read["test"]))
    epochs = steps_of(item) * shape.batch_size / shape.documents
    share = shape.documents / max(1, len(item.task.data.train))
    of_epoch = share * read["train"] + read["validation"]
    return max(1.0, epochs * of_epoch + read["test"])


def tokens_read(items: Sequence[Item]) -> dict[str, int]:
    """Tokens that each item reads, by key, from a sample of each task's texts under each
    checkpoint's tokenizer.

    Windows that overlap, special tokens and text beyond the last window are not counted: right to
    some percent.
    """
    tokens: dict[str, int] = {}
    rates: dict[tuple[str, str, int], float] = {}
    for checkpoint, of_model in groupby(items, key=attrgetter("checkpoint")):
        tokenizer = load_tokenizer(checkpoint)
        for item in of_model:
            if item.group not in rates:
                rates[item.group] = _tokens_a_character(item.task.data.train, tokenizer)
            tokens[item.key] = round(characters(item) * rates[item.group])
    return tokens


def _tokens_a_character(train: Sequence[Document], tokenizer: PreTrainedTokenizerBase) -> float:
    """Of a sample of these documents."""
    sample = train[:: max(1, len(train) // _SAMPLE)]
    texts = [document.reading for document in sample]
    ids = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    return sum(map(len, ids)) / max(1, sum(map(len, texts)))
