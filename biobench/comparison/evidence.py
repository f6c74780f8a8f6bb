"""From stored predictions to the counts that test-set noise is computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from biobench.comparison.contest import Match
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.report.groups import RunGroup
from biobench.report.rescore import run_documents
from biobench.report.tasks import TaskInfo
from biobench.schema.document import Document
from biobench.schema.kind import number_of
from biobench.schema.record import RunRecord
from biobench.score import GroupCounts, ScoreError, counts, shares
from biobench.stats import Average, Counts, StatsInputError, TaskRuns, f1_scores
from biobench.stats.correlation import Measure, pearson, spearman
from biobench.stats.types import FloatArray
from biobench.store import Store

#: How far a score recomputed from counts may lie from the stored one.
ROUNDING = 1e-9

_UNREADABLE = (StoreError, DataUnavailableError, DataFormatError, ScoreError, StatsInputError)

_EXACT: dict[str, Average] = {
    "macro_f1": "macro",
    "macro_f1_all": "macro_all",
    "micro_f1": "micro",
    "weighted_f1": "weighted",
    "micro_f1_positive": "micro",
    "accuracy": "micro",
}
_PARTIAL: dict[str, Average] = {
    "partial_macro_f1": "macro",
    "partial_micro_f1": "micro",
    "partial_weighted_f1": "weighted",
}


_SHARES = ("exact_match", "hamming", "accuracy_at_1", "accuracy_at_5", "mrr")
"""Means over documents, which are the micro average of whole parts (`score.shares`)."""


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """counts: (seeds, groups, labels) in the order of `seeds`. average: the one to take, over the labels that are
    `evaluated` (those with gold). groups: the groups' ids."""

    seeds: tuple[int, ...]
    counts: Counts
    average: Average
    evaluated: list[bool]
    groups: tuple[str, ...]

    def of(self, seeds: Sequence[int]) -> Counts:
        """The counts of these seeds alone."""
        if tuple(seeds) == self.seeds:
            return self.counts
        rows = [self.seeds.index(seed) for seed in seeds]
        return Counts(self.counts.tp[rows], self.counts.fp[rows], self.counts.fn[rows])


_NUMBERS: dict[str, Measure] = {"pearson": pearson, "spearman": spearman}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Two models on a regression task. gold: (documents,); first, second: (seeds, documents); groups of documents."""

    gold: FloatArray
    first: FloatArray
    second: FloatArray
    groups: tuple[str, ...]
    measure: Measure


@dataclass(slots=True)
class Evidence:
    """Reads counts of stored predictions. data_dir: the corpora, needed where gold is under an agreement; specs:
    by task, those that are not shipped (a record says what was read from where it lay, but not where that is)."""

    data_dir: Path | None = None
    specs: Mapping[str, Path] = field(default_factory=dict)
    _test: dict[tuple[str, str, int | None, int | None], list[Document]] = field(default_factory=dict)
    _read: dict[tuple[Path, tuple[str, ...], str], GroupEvidence] = field(default_factory=dict)

    def task_runs(self, match: Match, info: TaskInfo) -> TaskRuns | str:
        """The counts of all models on one task, or why there are none, in words."""
        cells = [mine[info.id] for mine in match.cells]
        metric = match.metrics[info.id]
        if match.ratio(info.id):
            return "each split has a test set of its own, whose noise is part of the corrected t over the splits"
        if any(cell.group is None and not cell.policy for cell in cells):
            return "published means come without predictions"
        if any(cell.policy for cell in cells):
            return "the gate's policies are stored without predictions"
        if metric not in _EXACT and metric not in _PARTIAL and metric not in _SHARES:
            return f"{metric} is no average of F1 counts"
        try:
            evidence = [self._evidence_of(cast(RunGroup, c.group), metric) for c in cells]
            runs = [side.of(cell.seeds) for side, cell in zip(evidence, cells, strict=True)]
            first = evidence[0]
            for cell, counted in zip(cells, runs, strict=True):
                again = f1_scores(counted, first.average, first.evaluated)
                if np.abs(again - np.array(cell.scores)).max() > ROUNDING:
                    return "stored scores are not those of the stored predictions; run `biobench rescore`"
            return TaskRuns.of(
                info.id,
                runs,
                first.average,
                cluster=info.corpus,
                groups=first.groups,
                evaluated=first.evaluated,
                paired_seeds=match.paired[info.id],
                resolution=match.unit(info.id),
            )
        except _UNREADABLE as error:
            return f"{error} ({error.hint})"

    def numbers(self, match: Match, info: TaskInfo) -> Numbers | str:
        """Gold and predicted numbers of two models on a regression task, or why there are none, in words."""
        metric = match.metrics[info.id]
        cells = [mine[info.id] for mine in match.cells]
        if match.ratio(info.id):
            return "each split has a test set of its own, whose noise is part of the corrected t over the splits"
        if metric not in _NUMBERS or any(cell.group is None for cell in cells):
            return f"{metric} is no average of F1 counts"
        try:
            runs = [self._numbers(cast(RunGroup, cell.group), cell.seeds) for cell in cells]
        except (StoreError, DataUnavailableError, DataFormatError, ScoreError) as error:
            return f"{error} ({error.hint})"
        gold, groups, _ = runs[0]
        if any(groups != other[1] or (gold != other[0]).any() for other in runs[1:]):
            return "the models were scored on other documents"
        return Numbers(gold, runs[0][2], runs[1][2], groups, _NUMBERS[metric])

    def _numbers(self, group: RunGroup, seeds: Sequence[int]) -> tuple[FloatArray, tuple[str, ...], FloatArray]:
        """Gold (documents,), the documents' groups, and predictions (seeds, documents), in order of document id."""
        rows: dict[int, FloatArray] = {}
        gold, groups = np.zeros(0), tuple[str, ...]()
        for record in group.records:
            full_documents = self._documents(record) if record.redacted else None
            documents, predictions = group.store.load_predictions(record, full_documents)
            documents = sorted(documents, key=lambda d: d.id)
            by_id = {p.document: number_of(p) for p in predictions}
            if len(by_id) < len(documents):
                raise ScoreError("a document has no prediction", hint="repeat the run")
            gold, groups = np.array([float(d.labels[0]) for d in documents]), tuple(d.group for d in documents)
            rows[record.seed] = np.array([by_id[d.id] for d in documents])
        return gold, groups, np.stack([rows[seed] for seed in seeds])

    def group_counts(self, group: RunGroup, metric: str) -> GroupEvidence | str:
        """The counts of all seeds of a group, or why there are none, in words."""
        if metric not in _EXACT and metric not in _PARTIAL and metric not in _SHARES:
            return f"{metric} is no average of F1 counts"
        try:
            return self._evidence_of(group, metric)
        except _UNREADABLE as error:
            return f"{error} ({error.hint})"

    def _evidence_of(self, group: RunGroup, metric: str) -> GroupEvidence:
        """The counts of all seeds, read once however many pairs ask for them."""
        key = (group.store.root, tuple(b.key for b in group.briefs), metric)
        if key not in self._read:
            self._read[key] = self._counts(group, metric)
        return self._read[key]

    def _counts(self, group: RunGroup, metric: str) -> GroupEvidence:
        single = [self._run_counts(group.store, record, metric) for record in group.records]
        first, task = single[0], group.records[0].task
        labels = list(first.labels)
        dropped = {task.negative_label} if metric == "micro_f1_positive" else set()
        columns = [i for i, label in enumerate(labels) if label not in dropped]
        for other in single[1:]:
            if other.groups != first.groups or other.labels != first.labels:
                raise StatsInputError(
                    f"{task.id}: seeds were scored on different documents or labels", hint="repeat the runs"
                )
        stacked = Counts.of(*(np.stack([getattr(c, name)[:, columns] for c in single]) for name in ("tp", "fp", "fn")))
        gold = set(task.gold_labels)
        mask = [labels[i] in gold or metric in _SHARES for i in columns]
        averages: dict[str, Average] = {**_EXACT, **_PARTIAL, **dict.fromkeys(_SHARES, "micro")}
        return GroupEvidence(group.seeds, stacked, averages[metric], mask, first.groups)

    def _run_counts(self, store: Store, record: RunRecord, metric: str) -> GroupCounts:
        documents = self._documents(record) if record.redacted else None
        gold, predictions = store.load_predictions(record, documents)
        if metric in _SHARES:
            task = record.task
            run_shares = shares(type=task.type, metric=metric, labels=task.labels, gold=gold, predictions=predictions)
            if run_shares is None:
                raise StatsInputError(f"{task.id}: {metric} is no mean over documents", hint="compare another average")
            return run_shares
        return counts(
            type=record.task.type,
            labels=record.task.labels,
            gold=gold,
            predictions=predictions,
            match="partial" if metric in _PARTIAL else "exact",
        )

    def _documents(self, record: RunRecord) -> list[Document]:
        fold = None if record.resampling is None else record.resampling.fold
        key = (record.task.id, record.task.data_hash, record.limit, fold)
        if key not in self._test:
            self._test[key] = run_documents(record, self.data_dir, self.specs.get(record.task.id))
        return self._test[key]
