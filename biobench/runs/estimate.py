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
from biobench.schema.record import READY
from biobench.store import Store

_SAMPLE = 64
"""Texts of a task that are tokenised to tell how many tokens a character is."""


class Pace:
    """Seconds a character that the stored runs of the plan's tasks took on its device, by (model,
    task) and model; under the empty key seconds a character and parameter, of all models.

    speeds: tokens a second of every run that trained an encoder there, by model; under the empty
    key tokens times parameters a second.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.rates: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self.speeds: dict[tuple[str, ...], list[float]] = defaultdict(list)
        origin = "checkpoint" if plan.request.track == READY else "run"
        conditions = (device_name(plan.device), origin, plan.request.limit)
        read = {(item.task.id, item.task.hash): characters(item) for item in plan.items}
        for brief in Store(plan.request.results_dir).briefs()[0]:
            if brief.device == conditions[0] and brief.train_tokens_per_second:
                self.speeds[brief.weights,].append(brief.train_tokens_per_second)
                self.speeds[()].append(brief.train_tokens_per_second * brief.parameters)
            length = read.get((brief.task, brief.spec))
            made_alike = (brief.device, brief.origin, brief.limit) == conditions
            if length is None or not made_alike:
                continue
            rate = brief.seconds / length
            self.rates[brief.weights, brief.task].append(rate)
            self.rates[brief.weights,].append(rate)
            if brief.parameters:
                self.rates[()].append(rate / brief.parameters)

    def seconds(self, item: Item, tokens: int) -> float | None:
        """What the item, which reads so many tokens, will take; None where no stored run tells."""
        weights, parameters = item.checkpoint.hash, item.checkpoint.parameters
        rates = self.rates.get((weights, item.task.id)) or self.rates.get((weights,))
        if rates:
            return median(rates) * characters(item)
        any_model = self.rates.get(())
        if any_model and parameters:
            return median(any_model) * characters(item) * parameters
        if item.is_frozen or item.track == READY:
            return None
        if (weights,) in self.speeds:
            return tokens / median(self.speeds[weights,])
        if () in self.speeds and parameters:
            return tokens * parameters / median(self.speeds[()])
        return None


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
