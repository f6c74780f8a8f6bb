"""How long a plan takes, from what stored runs took and from those that it has made so far.

The time of a run is taken as proportional to the characters that it reads (training documents times epochs, and each
validation and test) and to the model's parameters, on one device. A run of the same model on the same task stands
before one of the same model, and that before any other.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, cast

from biobench.finetune.tuning import budget
from biobench.models.loading import load_tokenizer
from biobench.runs.execute import Reporter
from biobench.runs.jobs.plan_file import Basis
from biobench.runs.options import Track
from biobench.runs.plan import Item, RunPlan, TaskEntry
from biobench.runs.provenance import device_name
from biobench.runs.result import RunName, RunResult
from biobench.schema.document import Document
from biobench.store import Store

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
        amount = work(item)
        self.same[item.checkpoint.hash, item.task.id].append(seconds / amount)
        self.model[item.checkpoint.hash].append(seconds / amount)
        if parameters:
            self.any.append(seconds / amount / parameters)

    def seconds(self, item: Item, parameters: int | None) -> float | None:
        """What the item will take; None where nothing is known that it can be told from."""
        return self.expected(item, parameters)[0]

    def expected(self, item: Item, parameters: int | None) -> tuple[float | None, Basis]:
        """What the item will take, and whether runs of the same model and task or others tell it."""
        amount = work(item)
        if rates := self.same.get((item.checkpoint.hash, item.task.id)):
            return median(rates) * amount, "measured"
        if rates := self.model.get(item.checkpoint.hash):
            return median(rates) * amount, "estimated"
        if self.any and parameters:
            return median(self.any) * amount * parameters, "estimated"
        return None, "unknown"


def work(item: Item) -> float:
    """Characters that a run of the item reads, a training pass counted three times (forward and backward)."""
    data, recipe = item.task.data, item.task.loaded.spec.training
    assert data is not None
    train, validation, test = (_characters(data.documents[s]) for s in ("train", "validation", "test"))
    share = _share(item)
    passes = float(recipe.epochs or 0)
    if recipe.max_steps is not None:
        passes = recipe.max_steps * recipe.batch_size / max(1, share * len(data.train))
    trials = budget(recipe) if item.track == "tuned" else 1
    return max(1.0, trials * passes * (3 * share * train + validation) + test)


def steps_of(item: Item) -> int:
    """Optimiser steps of a run of the item, of all trials together, where nothing stops it earlier.

    Windows are not known before the texts are tokenised, so a document counts as one.
    """
    data, recipe, probe = item.task.data, item.task.loaded.spec.training, item.task.loaded.spec.probe
    assert data is not None
    if item.track != "frozen" and recipe.encoder == "trained":
        epochs, batch, steps = recipe.epochs or 1, recipe.batch_size, recipe.max_steps
        trials = budget(recipe) if item.track == "tuned" else 1
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
        self._rates: dict[tuple[str, str, str], float] = {}
        self._tokenizers: dict[str, PreTrainedTokenizerBase] = {}

    def of(self, item: Item) -> int:
        """Of a run of the item: each training document in each epoch, validation after each, and the test documents.

        An encoder that is not trained reads every document once. Windows that overlap, special tokens and text beyond
        the last window are not counted, so it is right to some percent.
        """
        data, recipe = item.task.data, item.task.loaded.spec.training
        assert data is not None
        train, validation, test = (_characters(data.documents[s]) for s in ("train", "validation", "test"))
        if item.track == "frozen" or recipe.encoder == "frozen":
            characters = float(train + validation + test)
        else:
            steps = steps_of(item)
            passes = steps * recipe.batch_size / max(1, len(data.train))
            epochs = passes / _share(item)
            characters = passes * train + epochs * validation + test
        return round(characters * self._rate(item))

    def _rate(self, item: Item) -> float:
        data, checkpoint = item.task.data, item.checkpoint
        assert data is not None
        key = (checkpoint.hash, item.task.hash, data.hash)
        if key not in self._rates:
            if checkpoint.hash not in self._tokenizers:
                self._tokenizers = {checkpoint.hash: load_tokenizer(checkpoint)}
            texts = [d.reading for d in data.train[:: max(1, len(data.train) // _SAMPLE)]]
            tokens = self._tokenizers[checkpoint.hash](texts, add_special_tokens=False, verbose=False)["input_ids"]
            self._rates[key] = sum(map(len, tokens)) / max(1, sum(map(len, texts)))
        return self._rates[key]


def savepoint_bytes(item: Item) -> int | None:
    """The most that a run's state takes on disk while the run is made; None where the parameters are not known.

    The network, its best weights and two moments of each, in fp32; and twice while a state replaces the last one.
    """
    if item.track == "frozen" or item.task.loaded.spec.training.encoder == "frozen":
        return 0
    if item.task.loaded.spec.access == "agreement":
        return 0  # no state of such data is kept
    parameters = item.checkpoint.parameters
    return None if parameters is None else 2 * 4 * 4 * parameters


def _characters(documents: Sequence[Document]) -> int:
    return sum(len(d.reading) for d in documents)


def _share(item: Item) -> float:
    """Of the training documents, how many a run sees."""
    data, recipe = item.task.data, item.task.loaded.spec.training
    assert data is not None
    if recipe.train_documents is None:
        return recipe.train_fraction
    return min(recipe.train_fraction, recipe.train_documents / len(data.train))


def measured_device(plan: RunPlan, store: Store) -> str:
    """The device whose stored runs tell what the plan costs: the plan's own, else the one with most runs."""
    here, specs = device_name(plan.device), {(e.id, e.hash) for e in plan.tasks}
    counts = Counter(b.device for b in store.briefs()[0] if (b.task, b.spec) in specs and b.origin == "run")
    return here if here in counts or not counts else counts.most_common(1)[0][0]


def pace_of(plan: RunPlan, store: Store | None = None, device: str | None = None) -> Pace:
    """From the stored runs of the plan's tasks on a device. None: in the plan's own folder, on the plan's device."""
    pace, store, device = Pace(), store or Store(plan.request.results_dir), device or device_name(plan.device)
    entries: dict[tuple[str, str], TaskEntry] = {(e.id, e.hash): e for e in plan.tasks if e.data is not None}
    models = {c.hash: c for c in plan.checkpoints}
    for brief in store.briefs()[0]:
        entry = entries.get((brief.task, brief.spec))
        if entry is None or (brief.device, brief.origin, brief.limit) != (device, "run", plan.request.limit):
            continue
        checkpoint = models.get(brief.weights) or replace(plan.checkpoints[0], hash=brief.weights)
        pace.add(
            Item(checkpoint, entry, brief.seed, brief.key, cast(Track, brief.track)), brief.seconds, brief.parameters
        )
    return pace


def total_seconds(pace: Pace, items: Sequence[Item]) -> float | None:
    """Of all items one after the other; None where one cannot be told."""
    times = [pace.seconds(item, item.checkpoint.parameters) for item in items]
    known = [t for t in times if t is not None]
    return sum(known) if len(known) == len(times) else None


class Paced:
    """A `Reporter` that adds to each finished run how long the rest of the plan takes."""

    def __init__(self, reporter: Reporter, plan: RunPlan, left: Sequence[Item], workers: int) -> None:
        self.reporter, self.workers = reporter, workers
        self.pace = pace_of(plan)
        self.left = {item.key: item for item in left}

    def start(self, run: RunName, position: int, total: int) -> None:
        """As the reporter."""
        self.reporter.start(run, position, total)

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """As the reporter."""
        self.reporter.step(run, done, total, what)

    def finish(self, result: RunResult) -> None:
        """As the reporter, with the seconds that are left where runs are."""
        item = None if result.key is None else self.left.pop(result.key, None)
        if item is not None and result.status == "done" and result.seconds:
            self.pace.add(item, result.seconds, item.checkpoint.parameters)
        left = total_seconds(self.pace, list(self.left.values())) if self.left else None
        self.reporter.finish(result if left is None else replace(result, seconds_left=left / self.workers))
