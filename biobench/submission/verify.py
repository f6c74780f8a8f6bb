"""A submission checked from the outside in, and scored again; findings are coded (docs/results-repository.md).

Codes begin with the level at which the submission fails: layout, manifest, record, task, data, predictions, scores,
gate, completeness.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from biobench.core.files import read_regular
from biobench.data.catalog import load_task
from biobench.data.load import load_folds
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.report.escape import plain
from biobench.report.results import SUBMITTED
from biobench.report.tasks import NEEDLE, shipped
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.kind import is_numeric
from biobench.schema.record import RunRecord
from biobench.schema.task import parse_seeds
from biobench.score import ScoreError, scored
from biobench.store import Store
from biobench.store.floors import floor_key, scan_floors
from biobench.store.redact import under_aliases
from biobench.submission.checks import Bounded, Check, RunState, State, Verification, unbounded
from biobench.submission.claims import TOLERANCE, check_canonical, check_record
from biobench.submission.content import check_content, check_predictions
from biobench.submission.layout import check_layout, check_manifest
from biobench.submission.names import check_near_names
from biobench.submission.twins import Print, check_scores, check_twins, print_of


def examine(
    folder: str | Path,
    data_dir: str | Path | None = None,
    against: str | Path | None = None,
    bounded: Bounded = unbounded,
) -> Verification:
    """Check one submission against the shipped tasks, the data in `data_dir` and the results in `against`.

    Nothing of the submission is trusted: it is opened only once its layout holds, and where the data is at
    hand its gold is replaced by the data's. Without the data a run is consistent at best, never verified.
    against: a results folder; its own runs and its `submitted/` are compared with these. bounded: the limits under
    which files of the submission are read (`guard.verify` calls this in a process of its own, with limits).
    """
    folder = Path(folder)
    checks = check_layout(folder)
    if any(c.grade == "error" for c in checks):
        return Verification(str(folder), "", tuple(map(_printable, checks)))
    with bounded("submission.json"):
        manifest, manifest_checks = check_manifest(folder)
    checks += manifest_checks
    if manifest is None:
        return Verification(str(folder), "", tuple(map(_printable, checks)))
    store, records = Store(folder), list[RunRecord]()
    refused: set[str] = set()
    for path in sorted(folder.glob("runs/*/*.json")):
        where = _inside(folder, str(path))
        with bounded(where):
            try:
                record = store.get(path.parent.name, path.stem)
                record_checks = [] if record is None else check_record(record, manifest)
                record_checks += check_canonical(read_regular(path), path, where)
            except StoreError as error:
                record, record_checks = None, [Check("R01", "error", where, error.what)]
        checks += record_checks
        if record is not None:
            records.append(record)
            refused |= {record.key} if any(c.grade == "error" for c in record_checks) else set()
    if not records and not any(c.code == "R01" for c in checks):
        checks.append(Check("R01", "error", "runs", "holds no record"))
    records.sort(key=lambda r: (r.task.id, r.model.id, r.seed, r.key))
    desk = Desk(store, None if data_dir is None else Path(data_dir), bounded)
    states: dict[str, State] = {}
    for record in records:
        if record.key in refused:
            continue
        record_checks, states[record.key] = desk.check(record)
        checks += record_checks
    checks += desk.remarks() + check_scores(records) + _of_one_model(records)
    earlier = [] if against is None else list(_earlier(Path(against), folder, desk.prints, bounded))
    checks += check_twins(desk.prints, earlier) + check_near_names(
        manifest.model.partition("@")[0], {run.model for run in earlier}
    )
    with bounded("floors"):
        checks += _check_floors(folder, records)
    checks += _completeness(records)
    persons = {c.where for c in checks if c.grade == "person"}
    runs = [RunState(r.task.id, r.key, r.seed, _state(r, states.get(r.key, "refused"), persons)) for r in records]
    name = plain(manifest.model)
    return Verification(str(folder), name, tuple(dict.fromkeys(map(_printable, checks))), tuple(runs))


def _state(record: RunRecord, state: State, persons: set[str]) -> State:
    folder = f"runs/{record.task.id}"
    asked = persons & {folder, f"{folder}/{record.key}.json", f"{folder}/{record.key}.parquet"}
    return "person" if asked and state != "refused" else state


def _earlier(results: Path, folder: Path, prints: Sequence[Print], bounded: Bounded) -> Iterator[Print]:
    """The runs of a results folder on tasks and data of these; what cannot be read there is passed over."""
    wanted = {(run.task, run.data) for run in prints}
    submitted = results / SUBMITTED
    packs = sorted(submitted.iterdir()) if submitted.is_dir() else []
    for place in [results, *packs]:
        if not (place / "runs").is_dir() or place.resolve() == folder.resolve():
            continue
        store, name = Store(place), place.name if place != results else "the results"
        for task in sorted({run.task for run in prints}):
            for path in sorted(place.glob(f"runs/{task}/*.json")):
                with bounded(_inside(results, str(path))):
                    try:
                        record = store.get(task, path.stem)
                        if record is None or (task, record.task.data_hash) not in wanted or record.limit is not None:
                            continue
                        if check_content(store.path_of(record), "", record):
                            continue
                        earlier = print_of(record, *store.stored_predictions(record), place=plain(name))
                    except StoreError:
                        continue
                yield earlier


def _printable(check: Check) -> Check:
    """File names and pieces of the records' own text are one line of visible characters in what is printed."""
    what = plain(check.what) if check.code in ("R01", "R07", "G01") else check.what
    return check._replace(where=plain(check.where), what=what)


def _inside(folder: Path, file: str) -> str:
    path = Path(file)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


def _check_floors(folder: Path, records: Sequence[RunRecord]) -> list[Check]:
    """G codes: the gate's verdicts that came along. The board asks its own gate and takes none of these over."""
    floors, findings = scan_floors(folder)
    idle = len(list(folder.glob("floors/*/*.json"))) - len(floors) - len(findings)
    checks = [Check("G01", "error", _inside(folder, f.file), f.what) for f in findings]
    data = {(r.task.id, r.task.data_hash) for r in records}
    for floor in floors:
        where = f"floors/{floor.task}/{floor_key(floor.task_hash, floor.data_hash)}.json"
        if (floor.task, floor.data_hash) not in data:
            checks.append(Check("G02", "error", where, "is a gate verdict on data that no run here was made on"))
        elif not floor.passed:
            checks.append(Check("G03", "error", where, "says that the task fails its gate: its runs are not ranked"))
    if idle:
        checks.append(Check("G04", "warning", "floors", f"{idle} verdicts are of another version of the gate"))
    return checks


def _of_one_model(records: Sequence[RunRecord]) -> list[Check]:
    """R09: runs of several checkpoints under one name. What is known of one checkpoint is the same in all its runs."""
    for name in ("hash", "revision", "architecture", "parameters", "max_positions"):
        if len({getattr(r.model, name) for r in records}) > 1:
            return [Check("R09", "error", "runs", f"are of several checkpoints (model.{name}) under one name")]
    # a run from before licences were recorded names none
    if len({r.model.licence for r in records} - {None}) > 1:
        return [Check("R09", "error", "runs", "name several licences of one checkpoint (model.licence)")]
    return []


@dataclass(slots=True)
class Desk:
    """Scores records again, with the data of each task read once. prints: what the runs so far say."""

    store: Store
    data_dir: Path | None
    bounded: Bounded
    prints: list[Print] = field(default_factory=list)
    _data: dict[tuple[str, int], TaskData | str] = field(default_factory=dict)

    def check(self, record: RunRecord) -> tuple[list[Check], State]:
        """D, P and S codes, and how far the run is proved."""
        where = f"runs/{record.task.id}/{record.key}.parquet"
        data = self._of(record)
        with self.bounded(where):
            try:
                checks = check_content(self.store.path_of(record), where, record)
                checks = checks or list(self._check(record, where, data if isinstance(data, TaskData) else None))
            except (StoreError, ScoreError) as error:
                checks = [Check("R07", "error", where, error.what)]
            except (MemoryError, pa.ArrowMemoryError):
                checks = [Check("L07", "error", where, "needs more memory than is given")]
        if checks:
            return checks, "refused"
        return [], "verified" if isinstance(data, TaskData) else "consistent"

    def _check(self, record: RunRecord, where: str, data: TaskData | None) -> Iterator[Check]:
        """The first thing that is wrong with predictions or scores."""

        def error(code: str, what: str) -> Iterator[Check]:
            yield Check(code, "error", where, what)

        if data is not None:
            mismatch = _other_data(record, data)
            if mismatch is not None:
                yield from error(*mismatch)
                return
        documents = None if data is None else _read_by(record, data.test)
        stored, predictions = self.store.stored_predictions(record)
        wrong = check_predictions(record, where, stored, predictions)
        if wrong:
            yield from wrong
            return
        if len({d.id for d in stored}) < len(stored):
            yield from error("S02", "a document is there twice")
            return
        # a needle run scores the lengths that its window holds, and no others
        whole = len(stored) == record.task.test_documents or record.task.type == NEEDLE
        if not whole:
            yield from error("D01", "the number of documents is not that of its gold")
            return
        if len(predictions) != len(stored):
            yield from error("S02", f"{len(stored) - len(predictions)} documents lack a prediction")
            return
        gold = stored
        if documents is not None:
            expected = under_aliases(documents) if record.redacted else documents
            same = {d.id for d in expected} == {d.id for d in stored}
            if not same or (not record.redacted and _truth(stored) != _truth(expected)):
                yield from error("D01", "its documents or their gold are not those of the data")
                return
            gold = expected
            lengths = {d.id: len(d.text) for d in gold}
            if any(p.spans and max(s.end for s in p.spans) > lengths[p.document] for p in predictions):
                yield from error("P01", "holds spans that end beyond the text")
                return
        self.prints.append(print_of(record, gold, predictions))
        if record.redacted and documents is None:
            return  # its gold is nowhere to be had
        labels = {s.label for d in gold for s in d.spans} | {label for d in gold for label in d.labels}
        if not is_numeric(record.task.type) and set(record.task.gold_labels) != labels:  # a number is no label
            yield from error("D01", "the labels with gold are not those of its gold")
            return
        yield from _scores(record, where, gold, predictions)

    def remarks(self) -> list[Check]:
        """One warning a task whose data is not at hand."""
        return [
            Check("D03", "warning", f"runs/{task}", f"not scored again, the data is not at hand: {data}")
            for (task, fold), data in self._data.items()
            if isinstance(data, str) and not fold
        ]

    def _of(self, record: RunRecord) -> TaskData | str:
        task, resampling = record.task.id, record.resampling
        wanted = (task, 0 if resampling is None else resampling.fold)
        if wanted not in self._data:
            try:
                folds: list[TaskData | str] = [*load_folds(load_task(task), self.data_dir, offline=True)]
            except (DataUnavailableError, DataFormatError) as error:
                folds = [error.what] * (wanted[1] + 1)
            self._data |= {(task, fold): data for fold, data in enumerate(folds)}
        return self._data.get(wanted, "its split is none of the task's")


def _other_data(record: RunRecord, data: TaskData) -> tuple[str, str] | None:
    """(code, what) where the record speaks of other data than that at hand."""
    task = record.task
    if data.source != task.source or data.hash != task.data_hash:
        return "D02", "was made on other data than the data at hand"
    if data.gold_labels != task.gold_labels or data.labels != task.labels:
        return "D01", "the labels, or those with gold, are not those of the data"
    if len(data.test) != task.test_documents:
        return "D01", "the number of documents is not that of the data"
    if record.resampling is not None and len(data.train) != record.resampling.train_documents:
        return "D01", "the number of training documents is not that of the data"
    if record.unexpressed_gold != data.unexpressed:
        return "D01", "the mentions that no score counts (unexpressed_gold) are not those of the data"
    return None


def _scores(
    record: RunRecord, where: str, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> Iterator[Check]:
    """S01 and S03: the claimed scores against those of the predictions."""
    after = scored(record, gold, predictions)
    differing = [n for n, v in after.scores.items() if abs(record.scores.get(n, math.inf) - v) > TOLERANCE]
    differing += [n for n in record.scores if n not in after.scores]
    if differing:
        what = f"the predictions do not give the claimed {', '.join(plain(n) for n in sorted(differing)[:5])}"
        yield Check("S01", "error", where, what)
        return
    bent = [
        label
        for label in record.per_label.keys() | after.per_label.keys()
        if not _equal(record.per_label.get(label, {}), after.per_label.get(label, {}))
    ]
    if bent:
        yield Check("S03", "error", where, f"the predictions do not give the numbers of label {plain(min(bent))}")


def _read_by(record: RunRecord, documents: Sequence[Document]) -> list[Document]:
    """The documents that a run scores: of needle examples those whose length its window holds, else all."""
    window = record.windows.max_length
    return [d for d in documents if d.plan is None or d.plan.fit != "tokens" or d.plan.length <= window]


def _equal(claimed: Mapping[str, float], computed: Mapping[str, float]) -> bool:
    """Whether both hold the same numbers under the same names."""
    return claimed.keys() == computed.keys() and all(abs(claimed[n] - computed[n]) <= TOLERANCE for n in claimed)


def _truth(documents: Sequence[Document]) -> set[tuple[Any, ...]]:
    return {(d.id, d.group, frozenset(d.spans), frozenset(d.labels)) for d in documents}


def _completeness(records: Sequence[RunRecord]) -> list[Check]:
    """C codes: what a complete submission would hold beyond this."""
    checks = []
    seeds: dict[str, list[int]] = defaultdict(list)
    folds: dict[str, range] = {}
    for record in records:
        seeds[record.task.id].append(record.seed)
        if record.resampling is not None:
            first = record.seed - record.resampling.fold
            folds[record.task.id] = range(first, first + record.resampling.folds)
    tasks = shipped()
    for task, present in sorted(seeds.items()):
        spec = tasks[task].spec if task in tasks else None
        if len(set(present)) < len(present):
            checks.append(Check("C03", "error", f"runs/{task}", "a seed is there twice"))
        needed = folds.get(task) or ([] if spec is None else parse_seeds(spec.seeds))
        missing = sorted(set(needed) - set(present))
        others = sorted(set(present) - set(needed))
        if missing:
            what = f"seeds {', '.join(map(str, missing))} of the protocol are missing"
            checks.append(Check("C02", "warning", f"runs/{task}", what))
        if missing and others and needed:
            what = f"seeds {', '.join(map(str, others[:10]))} stand in their place: they may have been chosen"
            checks.append(Check("C05", "person", f"runs/{task}", what))
    for suite in sorted({tasks[t].suite for t in seeds if t in tasks and tasks[t].in_suite}):
        lacking = [i.id for i in tasks.values() if i.in_suite and i.suite == suite and i.id not in seeds]
        if lacking:
            what = f"no results on {', '.join(lacking)}: no average over the {suite} suite"
            checks.append(Check("C01", "warning", "runs", what))
    return checks
