"""From stored predictions to the scores that other test documents would have given."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path

import numpy as np

from biobench.comparison.tasks import CommonTasks
from biobench.core.files import write_atomic
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.report.groups import RunGroup
from biobench.report.rescore import run_documents
from biobench.report.tasks import TaskInfo
from biobench.schema.document import Document
from biobench.schema.kind import is_numeric, number_of
from biobench.schema.record import RunRecord
from biobench.score import GroupCounts, ScoreError, counts, shares
from biobench.score.averages import AVERAGES
from biobench.stats import Average, Counts, Redrawn, StatsInputError, TaskRuns, f1_scores, redraw
from biobench.stats.correlation import Measure, pearson, redraw_numbers, spearman
from biobench.store import Store
from biobench.store.store import paused_collector

#: How far a score recomputed from counts may lie from the stored one.
ROUNDING = 1e-9
_FORMAT = "biobench.counts.1"

_PARTIAL: dict[str, Average] = {f"partial_{of}_f1": of for of in ("macro", "micro", "weighted")}
_SHARES = ("exact_match", "hamming", "accuracy_at_1", "accuracy_at_5", "mrr")
"""Means over documents, which are the micro average of whole parts (`score.shares`)."""
_AVERAGES: dict[str, Average] = (
    AVERAGES | _PARTIAL | dict.fromkeys(("micro_f1_positive", "accuracy", *_SHARES), "micro")
)
_NUMBERS: dict[str, Measure] = {"pearson": pearson, "spearman": spearman}


Drawn = dict[tuple[int, str], Redrawn | str]
"""(entrant, task) -> what other documents would have given with all the entrant's seeds, or why it
is unknown.
"""


@dataclass(slots=True)
class Evidence:
    """Reads stored predictions. data_dir: the corpora, needed where gold is under an agreement;
    specs: by task, those that are not shipped (a record says what was read from where it lay, but
    not where that is).
    """

    data_dir: Path | None = None
    specs: Mapping[str, Path] = field(default_factory=dict)
    _test: dict[tuple[str, str, int | None, int | None], list[Document]] = field(
        default_factory=dict
    )

    def drawn(self, common: CommonTasks) -> Drawn:
        """Every entrant on every task, redrawn once for all pairs, corpus by corpus."""
        drawn: Drawn = {}
        for _, infos in groupby(common.tasks, key=lambda info: info.corpus):
            counted: dict[int, dict[str, TaskRuns]] = {}
            for info, who in product(infos, range(len(common.entrants))):
                stored = self._of(common, who, info)
                if isinstance(stored, TaskRuns):
                    counted.setdefault(who, {})[info.id] = stored
                else:
                    drawn[who, info.id] = stored
            # entrants that have counts of the same tasks of the corpus are drawn together
            for tasks in dict.fromkeys(tuple(mine) for mine in counted.values()):
                whose = [who for who, mine in counted.items() if tuple(mine) == tasks]
                try:
                    runs = [
                        _together(task, [counted[who][task] for who in whose]) for task in tasks
                    ]
                except StatsInputError as error:
                    drawn |= dict.fromkeys(product(whose, tasks), f"{error} ({error.hint})")
                    continue
                for task, row in zip(tasks, redraw(runs), strict=True):
                    drawn |= {(who, task): one for who, one in zip(whose, row, strict=True)}
        return drawn

    def _of(self, common: CommonTasks, who: int, info: TaskInfo) -> TaskRuns | Redrawn | str:
        """What is stored of one entrant on one task, or why it is of no use, in words."""
        cell, metric = common.cells[who][info.id], common.metrics[info.id]
        if cell.group is None:
            return "printed without spread"
        if cell.group.ratio:
            return (
                "each split has a test set of its own, whose noise is part of the corrected t "
                "over the splits"
            )
        try:
            if is_numeric(info.type) and metric in _NUMBERS:
                return self._numbers(cell.group, _NUMBERS[metric])
            stored = self._counts(cell.group, metric)
        except (
            StoreError,
            DataUnavailableError,
            DataFormatError,
            ScoreError,
            StatsInputError,
        ) as error:
            return f"{error} ({error.hint})"
        if not isinstance(stored, str):
            again = f1_scores(stored.models[0], stored.average, stored.evaluated)
            if np.abs(again - np.array(cell.scores)).max() > ROUNDING:
                return (
                    "stored scores are not those of the stored predictions; run `biobench rescore`"
                )
        return stored

    def _numbers(self, group: RunGroup, measure: Measure) -> Redrawn:
        """In order of document id: runs that were scored on the same documents see the same
        draws."""
        rows = []
        for record in group.records:
            gold, predictions = group.store.load_predictions(record, self._full(record))
            documents = sorted(gold, key=lambda d: d.id)
            by_id = {p.document: number_of(p) for p in predictions}
            if len(by_id) < len(documents):
                raise ScoreError("a document has no prediction", hint="repeat the run")
            rows.append([by_id[d.id] for d in documents])
        truth = np.array([float(d.labels[0]) for d in documents])
        (drawn,) = redraw_numbers(truth, [np.array(rows)], [d.group for d in documents], measure)
        return drawn

    def _counts(self, group: RunGroup, metric: str) -> TaskRuns | str:
        """The counts of all seeds of a group, or why there are none, in words. Raises what damaged
        records raise.

        They are stored next to the store's index (never those of data under an agreement) until a
        file of the runs
        changes: 1,800 predictions are read in about 15 ms, the counts of a group in 1 ms.
        """
        if metric not in _AVERAGES:
            return f"{metric} is no average of F1 counts"
        file = _kept_file(group, metric)
        kept = _read_kept(file, group.task)
        if kept is None:
            kept = self._count(group, metric)
            if not any(record.redacted for record in group.records):
                _keep(file, kept)
        return kept

    def _count(self, group: RunGroup, metric: str) -> TaskRuns:
        with paused_collector():  # predictions are many small objects, none of them in a circle
            single = [self._run_counts(group.store, record, metric) for record in group.records]
        first, task = single[0], group.records[0].task
        labels = list(first.labels)
        dropped = {task.negative_label} if metric == "micro_f1_positive" else set()
        columns = [i for i, label in enumerate(labels) if label not in dropped]
        for other in single[1:]:
            if other.groups != first.groups or other.labels != first.labels:
                raise StatsInputError(
                    f"{task.id}: seeds were scored on different documents or labels",
                    hint="repeat the runs",
                )
        stacked = Counts.of(
            *(
                np.stack([getattr(c, name)[:, columns] for c in single])
                for name in ("tp", "fp", "fn")
            )
        )
        gold = set(task.gold_labels)
        mask = [labels[i] in gold or metric in _SHARES for i in columns]
        return TaskRuns.of(
            task.id, [stacked], _AVERAGES[metric], groups=first.groups, evaluated=mask
        )

    def _run_counts(self, store: Store, record: RunRecord, metric: str) -> GroupCounts:
        gold, predictions = store.load_predictions(record, self._full(record))
        task = record.task
        about = {"type": task.type, "labels": task.labels, "gold": gold, "predictions": predictions}
        if metric not in _SHARES:
            return counts(**about, match="partial" if metric in _PARTIAL else "exact")  # type: ignore[arg-type]
        run_shares = shares(**about, metric=metric)  # type: ignore[arg-type]
        if run_shares is None:
            raise StatsInputError(
                f"{task.id}: {metric} is no mean over documents", hint="compare another average"
            )
        return run_shares

    def _full(self, record: RunRecord) -> list[Document] | None:
        """The test documents with gold and text, where the store may hold neither."""
        if not record.redacted:
            return None
        fold = None if record.resampling is None else record.resampling.fold
        key = (record.task.id, record.task.data_hash, record.limit, fold)
        if key not in self._test:
            self._test[key] = run_documents(record, self.data_dir, self.specs.get(record.task.id))
        return self._test[key]


def _kept_file(group: RunGroup, metric: str) -> Path:
    """Where the group's counts are kept: another name when a record or its predictions are written
    again.
    """
    states = []
    for brief in group.briefs:
        path = group.store.root / "runs" / brief.task / f"{brief.key}.parquet"
        with suppress(FileNotFoundError):  # reading it says so
            for status in (path.stat(), path.with_suffix(".json").stat()):
                states.append((brief.key, status.st_mtime_ns, status.st_size, status.st_ino))
    name = hashlib.sha256(repr((_FORMAT, metric, states)).encode()).hexdigest()
    return group.store.counts_folder / f"{name}.npz"


def _read_kept(file: Path, task: str) -> TaskRuns | None:
    try:
        with np.load(file) as arrays:
            counts, groups = (
                Counts(arrays["tp"], arrays["fp"], arrays["fn"]),
                tuple(arrays["groups"].tolist()),
            )
            return TaskRuns(task, (counts,), str(arrays["average"]), arrays["evaluated"], groups)  # type: ignore[arg-type]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):  # none yet, or not whole
        return None


def _keep(file: Path, stored: TaskRuns) -> None:
    """A folder that cannot be written goes without."""
    parts = {name: getattr(stored.models[0], name) for name in ("tp", "fp", "fn")}
    parts = {name: part.astype(np.min_scalar_type(part.max())) for name, part in parts.items()}
    parts |= {name: np.array(getattr(stored, name)) for name in ("groups", "average", "evaluated")}
    stream = io.BytesIO()
    np.savez_compressed(stream, **parts)
    with suppress(StoreError):
        write_atomic(file, stream.getvalue())


def _together(task: str, runs: Sequence[TaskRuns]) -> TaskRuns:
    first = runs[0]
    if any(other.groups != first.groups for other in runs[1:]):
        raise StatsInputError(
            f"{task}: the models were scored on other documents", hint="repeat the runs"
        )
    counted = [counts for one in runs for counts in one.models]
    return TaskRuns.of(task, counted, first.average, groups=first.groups, evaluated=first.evaluated)
