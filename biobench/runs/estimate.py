"""How long runs take, what they read, and in which order they are made.

The time of a run is taken as proportional to the characters that it reads and to the model's
parameters, on one device. A run of the same model on the same task counts before one of the same
model, and that before any other; where none reads the same texts as often, the speed of training
counts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from statistics import median

from biobench.models.loading import load_tokenizer
from biobench.runs.plan import Item, RunPlan
from biobench.runs.provenance import device_name
from biobench.schema.protocols import FROZEN
from biobench.schema.record import READY
from biobench.store import Brief, Store

_SAMPLE = 64
"""Texts of a task that are tokenised to tell how many tokens a character is."""


class Pace:
    """How long the stored runs of the plan's tasks took on its device.

    by_characters: seconds a character, by (model, task) and by model; under the empty key seconds a
    character and parameter, of all models. by_tokens: seconds a token of every run there that
    trained an encoder, by model; under the empty key seconds a token and parameter.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.by_characters: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self.by_tokens: dict[tuple[str, ...], list[float]] = defaultdict(list)
        device = device_name(plan.device)
        origin = "checkpoint" if plan.request.track == READY else "run"
        read = {(item.task.id, item.task.hash): characters(item) for item in plan.items}
        for brief in Store(plan.request.results_dir).briefs()[0]:
            if brief.device != device:
                continue
            model, parameters = brief.weights, max(1, brief.parameters)
            if brief.train_tokens_per_second and _trains_encoder(brief):
                seconds = 1 / brief.train_tokens_per_second
                self.by_tokens[model,].append(seconds)
                self.by_tokens[()].append(seconds / parameters)
            length = read.get((brief.task, brief.spec))
            if length and (brief.origin, brief.limit) == (origin, plan.request.limit):
                rate = brief.seconds / length
                self.by_characters[model, brief.task].append(rate)
                self.by_characters[model,].append(rate)
                self.by_characters[()].append(rate / parameters)

    def seconds(self, item: Item, tokens: int) -> float | None:
        """What the item, which reads so many tokens, will take; None where no stored run tells."""
        model, length = item.checkpoint.hash, characters(item)
        parameters = item.checkpoint.parameters or 0
        nearest_first = [
            (self.by_characters[model, item.task.id], length),
            (self.by_characters[model,], length),
            (self.by_characters[()], length * parameters),
        ]
        if not item.is_frozen and item.track != READY:
            nearest_first += [
                (self.by_tokens[model,], tokens),
                (self.by_tokens[()], tokens * parameters),
            ]
        for rates, work in nearest_first:
            if rates and work:
                return round(median(rates) * work, 1)
        return None


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


def _shape(item: Item) -> tuple[int, int, int | None, int, int]:
    """Epochs, batch size, most steps, trials and training documents of what a run of the item
    trains.
    """
    recipe, probe = item.task.spec.training, item.task.spec.probe
    documents = max(1, round(len(item.task.data.train) * recipe.train_fraction))
    if recipe.train_documents is not None:
        documents = min(documents, recipe.train_documents)
    if item.track == READY:
        return 0, 1, None, 0, documents
    if not item.is_frozen:
        trials = len(recipe.grid) if item.track == "tuned" else 1
        return recipe.epochs or 1, recipe.batch_size, recipe.max_steps, trials, documents
    if probe is None or not probe.trained:
        return 0, 1, None, 0, documents
    return probe.epochs, probe.batch_size, None, len(probe.learning_rates), documents


def steps_of(item: Item) -> int:
    """Optimiser steps of a run of the item, of all trials together, where nothing stops it earlier.

    Windows are not known before the texts are tokenised, so a document counts as one.
    """
    epochs, batch, most_steps, trials, documents = _shape(item)
    return trials * (most_steps or epochs * math.ceil(documents / batch))


def characters(item: Item) -> float:
    """Characters that a run of the item reads: the training documents in each epoch, validation
    after each, and test.

    An encoder that is not trained reads every document once.
    """
    data, read = item.task.data, item.task.characters
    if item.is_frozen:
        return max(1.0, float(sum(read.values())))
    if item.track == READY:
        return max(1.0, float(read["test"]))
    _, batch, _, _, documents = _shape(item)
    epochs = steps_of(item) * batch / documents
    share = documents / max(1, len(data.train))
    return max(1.0, epochs * (share * read["train"] + read["validation"]) + read["test"])


def tokens_read(items: Sequence[Item]) -> dict[str, int]:
    """Tokens that each item reads, by key, from a sample of each task's texts under each
    checkpoint's tokenizer.

    Windows that overlap, special tokens and text beyond the last window are not counted: right to
    some percent.
    """
    tokens, rates, loaded = {}, dict[tuple[str, str, int], float](), ""
    for item in items:
        train = item.task.data.train
        if item.group not in rates:
            if loaded != item.checkpoint.hash:
                loaded, tokenizer = item.checkpoint.hash, load_tokenizer(item.checkpoint)
            texts = [document.reading for document in train[:: max(1, len(train) // _SAMPLE)]]
            ids = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
            rates[item.group] = sum(map(len, ids)) / max(1, sum(map(len, texts)))
        tokens[item.key] = round(characters(item) * rates[item.group])
    return tokens
