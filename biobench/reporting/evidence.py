"""What a model's scores vary by: seeds, and the groups of test documents in stored predictions."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from biobench.core.files import write_atomic
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.reporting.groups import RunGroup
from biobench.reporting.literature.published import PublishedValue
from biobench.reporting.rescore import RunTextReader
from biobench.schema.document import Document
from biobench.schema.kind import get_metric, is_numeric, number_of
from biobench.schema.metric import Metric
from biobench.schema.record import RunRecord
from biobench.score import GroupCounts, ScoreError, counts, shares
from biobench.score.slices import part_counts
from biobench.stats import (
    Counts,
    LeftOut,
    Part,
    StatsInputError,
    f1_scores,
    left_out,
    seed_part,
)
from biobench.stats.correlation import Measure, numbers_left_out
from biobench.store.store import paused_collector

LEAST_SEEDS = 3
"""Runs of a trained model, below which the spread over further seeds is taken as unknown."""
#: How far a score recomputed from counts may lie from the stored one.
ROUNDING = 1e-9
_FORMAT = "biobench.counts.2"


def seed_noise(
    scores: Sequence[float], group: RunGroup | None, printed: PublishedValue | None = None
) -> tuple[Part, ...] | None:
    """The variance over seeds of the mean of a group's scores, or of a printed mean, as a sum of
    parts.

    Empty where nothing was trained, so that seeds play no part; None for fewer than three seeds,
    and where a publication prints no spread over them.
    """
    if group is None:
        if printed is None or printed.sd is None or printed.seeds < LEAST_SEEDS:
            return None
        # a mean is known no better than to half of its last digit
        variance = max(printed.sd**2 / printed.seeds, (printed.step / 2) ** 2)
        return ((variance, printed.seeds - 1.0),)
    if group.is_untrained:
        return ()
    if len(scores) < LEAST_SEEDS:
        return None
    return (seed_part(scores, resolution=group.unit),)


@dataclass(frozen=True)
class StoredCounts:
    """The counts of a group's runs, one row a group of documents.

    groups: ids, in the order of the rows.
    """

    counts: Counts
    groups: tuple[str, ...]


@dataclass
class Evidence:
    """Reads stored predictions, once for each group of runs and score.

    data_dir: the corpora, needed where gold is under an agreement. specs: by task, those that are
    not shipped (a record says what was read from where it lay, but not where that is).
    """

    data_dir: Path | None = None
    specs: Mapping[str, Path] = field(default_factory=dict)
    _read: dict[tuple[str, ...], LeftOut | str] = field(default_factory=dict)

    def left_out(self, group: RunGroup, metric: str) -> LeftOut | str:
        """The scores of the group's runs without each group of documents; why they are unknown, in
        words.
        """
        key = (metric, group.slice, group.task, *(brief.key for brief in group.briefs))
        if key not in self._read:
            self._read[key] = self._left_out(group, metric)
        return self._read[key]

    def _left_out(self, group: RunGroup, metric: str) -> LeftOut | str:
        if group.ratio:
            return (
                "each split has a test set of its own, whose noise is part of the corrected t over "
                "the splits"
            )
        try:
            scored = get_metric(metric)
            if is_numeric(group.briefs[0].type) and scored.measure is not None:
                return self._numbers(group, scored.measure)
            if scored.average is None:
                return f"{metric} is no average of F1 counts"
            stored = self._counts(group, scored)
        except (
            StoreError,
            DataUnavailableError,
            DataFormatError,
            ScoreError,
            StatsInputError,
        ) as error:
            return f"{error} ({error.hint})"
        again = f1_scores(stored.counts, scored.average)
        if np.abs(again - np.array(group.scores(metric))).max() > ROUNDING:
            return "stored scores are not those of the stored predictions; run `biobench rescore`"
        return left_out(stored.counts, scored.average, groups=stored.groups)

    def _numbers(self, group: RunGroup, measure: Measure) -> LeftOut:
        """In order of document id, as for every other model."""
        predicted = []
        for record in group.records:
            gold, predictions = group.store.load_predictions(record, self._full(record))
            number_by_id = {p.document: number_of(p) for p in predictions}
            truth = []
            groups = []
            numbers = []
            for document in sorted(gold, key=lambda document: document.id):
                if document.id not in number_by_id:
                    raise ScoreError("a document has no prediction", hint="repeat the run")
                truth.append(float(document.labels[0]))
                groups.append(document.group)
                numbers.append(number_by_id[document.id])
            predicted.append(numbers)
        return numbers_left_out(np.array(truth), np.array(predicted), groups, measure)

    def _counts(self, group: RunGroup, metric: Metric) -> StoredCounts:
        """The counts of all seeds of a group. Raises what damaged records raise.

        They are stored next to the store's index (never those of data under an agreement) until a
        file of the runs changes: 1,800 predictions are read in about 15 ms, the counts of a group
        in 1 ms.
        """
        file = _cache_file(group, metric.name)
        stored = _read_cache(file)
        if stored is None:
            stored = self._count(group, metric)
            if not any(record.redacted for record in group.records):
                _write_cache(file, stored)
        return stored

    def _count(self, group: RunGroup, metric: Metric) -> StoredCounts:
        with paused_collector():  # predictions are many small objects, none of them in a circle
            by_run = [self._run_counts(group, record, metric) for record in group.records]
        task, (labels, groups) = group.records[0].task, (by_run[0].labels, by_run[0].groups)
        if any(run.labels != labels or run.groups != groups for run in by_run):
            raise StatsInputError(
                f"{task.id}: seeds were scored on different documents or labels",
                hint="repeat the runs",
            )
        columns = []
        for number, label in enumerate(labels):
            if not (metric.positive and label == task.negative_label):
                columns.append(number)
        tables = [np.stack([run.tp, run.fp, run.fn]) for run in by_run]
        tp, fp, fn = np.stack(tables, axis=1)[..., columns]
        if metric.share:
            evaluated = np.ones(len(columns), dtype=bool)
        elif group.slice:
            evaluated = (tp[0] + fn[0]).sum(axis=0) > 0
        else:
            evaluated = np.isin(np.array(labels)[columns], list(task.gold_labels))
        return StoredCounts(Counts.of(tp, fp, fn, evaluated), groups=tuple(groups))

    def _run_counts(
        self,
        group: RunGroup,
        record: RunRecord,
        metric: Metric,
    ) -> GroupCounts:
        if group.slice:
            return self._part_counts(group, record)
        gold, predictions = group.store.load_predictions(record, self._full(record))
        task = record.task
        if not metric.share:
            return counts(
                type=task.type,
                labels=task.labels,
                gold=gold,
                predictions=predictions,
                match=metric.match,
            )
        run_shares = shares(
            type=task.type,
            metric=metric.name,
            labels=task.labels,
            gold=gold,
            predictions=predictions,
        )
        if run_shares is None:
            raise StatsInputError(
                f"{task.id}: {metric.name} is no mean over documents",
                hint="compare another average",
            )
        return run_shares

    def _part_counts(self, group: RunGroup, record: RunRecord) -> GroupCounts:
        """The counts on the group's slice, which only the texts of the corpus tell."""
        texts = self._texts(record)
        part = texts.parts.get(group.slice)
        if part is None:
            raise StatsInputError(
                f"{record.task.id} has no slice '{group.slice}'", hint="run `biobench rescore`"
            )
        _, predictions = group.store.load_predictions(record, texts.scored_on)
        return part_counts(record.task, part, predictions)

    @cached_property
    def _texts(self) -> RunTextReader:
        return RunTextReader(self.data_dir, self.specs)

    def _full(self, record: RunRecord) -> Sequence[Document] | None:
        """The test documents with gold and text, where the store may hold neither."""
        return self._texts(record).scored_on if record.redacted else None


def _cache_file(group: RunGroup, metric: str) -> Path:
    """Where the group's counts are kept: another name when a record or its predictions are written
    again.
    """
    states = []
    for brief in group.briefs:
        path = group.store.root / "runs" / brief.task / f"{brief.key}.parquet"
        with suppress(FileNotFoundError):  # reading it says so
            for status in (path.stat(), path.with_suffix(".json").stat()):
                states.append((brief.key, status.st_mtime_ns, status.st_size, status.st_ino))
    name = hashlib.sha256(repr((_FORMAT, metric, group.slice, states)).encode()).hexdigest()
    return group.store.counts_folder / f"{name}.npz"


def _read_cache(file: Path) -> StoredCounts | None:
    try:
        with np.load(file) as arrays:
            return StoredCounts(
                counts=Counts(arrays["tp"], arrays["fp"], arrays["fn"], arrays["evaluated"]),
                groups=tuple(arrays["groups"].tolist()),
            )
    # none yet, or not whole
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _write_cache(file: Path, stored: StoredCounts) -> None:
    """A folder that cannot be written goes without."""
    stream = io.BytesIO()
    np.savez_compressed(
        stream,
        tp=stored.counts.tp,
        fp=stored.counts.fp,
        fn=stored.counts.fn,
        groups=np.array(stored.groups),
        evaluated=stored.counts.evaluated,
    )
    with suppress(StoreError):
        write_atomic(file, stream.getvalue())
