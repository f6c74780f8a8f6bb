"""How long runs take, what they read, and in which order they are made.

The time of a run is taken as proportional to the characters that it reads (training documents times epochs, and each
validation and test) and to the model's parameters, on one device. A run of the same model on the same task stands
before one of the same model, and that before any other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, cast

from biobench.models.loading import load_tokenizer
from biobench.runs.options import Track
from biobench.runs.plan import Item, RunPlan, TaskEntry
from biobench.runs.provenance import device_name
from biobench.runs.result import Reporter, RunResult
from biobench.store import Store
from biobench.store.claims import is_alive

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SAMPLE = 64
"""Texts of a task that are tokenised to tell how many tokens a character is."""


@dataclass
class Pace:
    """Seconds a unit of work that runs took on this device. same: (model, task); model, any: unit of work."""

    same: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    model: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    any: list[float] = field(default_factory=list)

    def add(self, item: Item, seconds: float, parameters: int | None) -> None:
        """A run like this item took so long."""
        rate = seconds / work(item)
        self.same[item.checkpoint.hash, item.task.id].append(rate)
        self.model[item.checkpoint.hash].append(rate)
        if parameters:
            self.any.append(rate / parameters)

    def seconds(self, item: Item) -> float | None:
        """What the item will take; None where nothing is known that it can be told from."""
        parameters = item.checkpoint.parameters
        rates = self.same.get((item.checkpoint.hash, item.task.id)) or self.model.get(item.checkpoint.hash)
        if rates:
            return median(rates) * work(item)
        return median(self.any) * work(item) * parameters if self.any and parameters else None

    def total(self, items: Sequence[Item]) -> float | None:
        """Seconds of all items one after the other; None where one cannot be told, or there is none."""
        times = [self.seconds(item) for item in items]
        known = [t for t in times if t is not None]
        return sum(known) if known and len(known) == len(times) else None


def pace_of(plan: RunPlan) -> Pace:
    """From the stored runs of the plan's tasks on its device."""
    pace, device = Pace(), device_name(plan.device)
    entries: dict[tuple[str, str], TaskEntry] = {(e.id, e.hash): e for e in plan.tasks if e.data is not None}
    models = {c.hash: c for c in plan.checkpoints}
    for brief in Store(plan.request.results_dir).briefs()[0]:
        entry = entries.get((brief.task, brief.spec))
        if entry is None or (brief.device, brief.origin, brief.limit) != (device, "run", plan.request.limit):
            continue
        checkpoint = models.get(brief.weights) or replace(plan.checkpoints[0], hash=brief.weights)
        item = Item(checkpoint, entry, brief.seed, brief.key, cast(Track, brief.track))
        pace.add(item, brief.seconds, brief.parameters)
    return pace


def longest_first(items: Sequence[Item], pace: Pace) -> list[Item]:
    """The order in which processes claim runs: the longest first, so that short ones fill the devices at the end.

    Workers that claim one by one in this order end at most a third later than the best packing could (Graham 1969).
    Runs of one checkpoint and task stay together, as these are loaded and encoded once.
    """
    groups: dict[tuple[str, str, int], list[Item]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    typical = median(pace.any) if pace.any else 1.0

    def cost(members: list[Item]) -> float:
        first = members[0]
        known = pace.seconds(first)
        return typical * work(first) * (first.checkpoint.parameters or 1) if known is None else known

    return [item for members in sorted(groups.values(), key=cost, reverse=True) for item in members]


def work(item: Item) -> float:
    """Characters that a run of the item reads, a training pass counted three times (forward and backward)."""
    recipe, read = item.task.loaded.spec.training, item.task.characters
    assert item.task.data is not None
    share = _share(item)
    passes = float(recipe.epochs or 0)
    if recipe.max_steps is not None:
        passes = recipe.max_steps * recipe.batch_size / max(1, share * len(item.task.data.train))
    trials = len(recipe.grid) if item.track == "tuned" else 1
    return max(1.0, trials * passes * (3 * share * read["train"] + read["validation"]) + read["test"])


def _share(item: Item) -> float:
    """Of the training documents, how many a run sees."""
    data, recipe = item.task.data, item.task.loaded.spec.training
    assert data is not None
    if recipe.train_documents is None:
        return recipe.train_fraction
    return min(recipe.train_fraction, recipe.train_documents / len(data.train))


def steps_of(item: Item) -> int:
    """Optimiser steps of a run of the item, of all trials together, where nothing stops it earlier.

    Windows are not known before the texts are tokenised, so a document counts as one.
    """
    data, recipe, probe = item.task.data, item.task.loaded.spec.training, item.task.loaded.spec.probe
    assert data is not None
    if item.track != "frozen" and recipe.encoder == "trained":
        epochs, batch, steps = recipe.epochs or 1, recipe.batch_size, recipe.max_steps
        trials = len(recipe.grid) if item.track == "tuned" else 1
    elif probe is None or not probe.trained:
        return 0
    else:
        epochs, batch, steps, trials = probe.epochs, probe.batch_size, None, len(probe.learning_rates)
    documents = round(len(data.train) * recipe.train_fraction)
    if recipe.train_documents is not None:
        documents = min(documents, recipe.train_documents)
    return trials * (steps or epochs * math.ceil(max(documents, 1) / batch))


class TokensRead:
    """Tokens that runs read, from a sample of each task's texts under each checkpoint's tokenizer."""

    def __init__(self) -> None:
        self._rates: dict[tuple[str, str, int], float] = {}
        self._tokenizers: dict[str, PreTrainedTokenizerBase] = {}

    def of(self, item: Item) -> int:
        """Of a run of the item: each training document in each epoch, validation after each, and the test documents.

        An encoder that is not trained reads every document once. Windows that overlap, special tokens and text beyond
        the last window are not counted, so it is right to some percent.
        """
        recipe, read = item.task.loaded.spec.training, item.task.characters
        assert item.task.data is not None
        if item.track == "frozen" or recipe.encoder == "frozen":
            characters = float(sum(read.values()))
        else:
            passes = steps_of(item) * recipe.batch_size / max(1, len(item.task.data.train))
            characters = passes * read["train"] + passes / _share(item) * read["validation"] + read["test"]
        return round(characters * self._rate(item))

    def _rate(self, item: Item) -> float:
        data, checkpoint = item.task.data, item.checkpoint
        assert data is not None
        if item.group not in self._rates:
            if checkpoint.hash not in self._tokenizers:
                self._tokenizers = {checkpoint.hash: load_tokenizer(checkpoint)}
            texts = [d.reading for d in data.train[:: max(1, len(data.train) // _SAMPLE)]]
            tokens = self._tokenizers[checkpoint.hash](texts, add_special_tokens=False, verbose=False)["input_ids"]
            self._rates[item.group] = sum(map(len, tokens)) / max(1, sum(map(len, texts)))
        return self._rates[item.group]


class Paced(Reporter):
    """Adds to each finished run how long the rest of the plan takes.

    workers: of this command. Where other commands are at runs of the same plan, they count too.
    """

    def __init__(self, reporter: Reporter, plan: RunPlan, left: Sequence[Item], pace: Pace, workers: int) -> None:
        self.workers, self.pace, self._finish = workers, pace, reporter.finish
        self.stage, self.start, self.step = reporter.stage, reporter.start, reporter.step  # type: ignore[method-assign]
        self.store = Store(plan.request.results_dir)
        self.left = {item.key: item for item in left}

    def finish(self, result: RunResult) -> None:
        """With the seconds that are left where runs are."""
        item = None if result.key is None else self.left.pop(result.key, None)
        if item is not None and result.status == "done" and result.seconds:
            self.pace.add(item, result.seconds, item.checkpoint.parameters)
        left = self.pace.total(list(self.left.values()))
        if left is not None:
            at_work = sum(is_alive(self.store.heartbeat_path(i.task.id, i.key)) for i in self.left.values())
            result = replace(result, seconds_left=left / max(self.workers, at_work + 1))
        self._finish(result)
