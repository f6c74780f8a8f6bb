"""A submission judged: layout, manifest, records, and every score computed again from the predictions.

Codes: L layout, M manifest, R record, T task, D data, S score, G gate, C completeness. Errors refuse, warnings do not.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from biobench.core.files import canonical
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.report.escape import plain
from biobench.report.tasks import NEEDLE, TaskInfo, shipped
from biobench.schema.document import Document, TaskData
from biobench.schema.record import ENGINE_VERSION, RunRecord
from biobench.schema.task import TaskSpec, parse_seeds
from biobench.score import ScoreError, scored
from biobench.store import Store, run_key
from biobench.store.floors import floor_key, scan_floors
from biobench.submission.layout import Check, check_layout, check_manifest
from biobench.submission.pack import Manifest

TOLERANCE = 1e-9
"""How far a claimed score may lie from the recomputed one: rounding of the arithmetic, no more."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found. rescored: records whose scores came out as claimed, of `records` in all."""

    folder: str
    model: str
    checks: tuple[Check, ...]
    records: int
    rescored: int

    @property
    def accepted(self) -> bool:
        """No error among the findings."""
        return not any(c.grade == "error" for c in self.checks)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "folder": self.folder,
            "model": self.model,
            "accepted": self.accepted,
            "records": self.records,
            "rescored": self.rescored,
            "findings": [c._asdict() for c in self.checks],
        }


def verify(folder: str | Path, data_dir: str | Path | None = None) -> Verification:
    """Check one submission against the shipped tasks and, where at hand, the data in `data_dir`.

    Nothing of the submission is trusted: it is opened only once its layout holds, and where the data is at
    hand its gold is replaced by the data's. Data that is not at hand gives a warning.
    """
    folder = Path(folder)
    checks = check_layout(folder)
    if any(c.grade == "error" for c in checks):
        return Verification(str(folder), "", tuple(map(_printable, checks)), 0, 0)
    manifest, found = check_manifest(folder)
    checks += found
    if manifest is None:
        return Verification(str(folder), "", tuple(map(_printable, checks)), 0, 0)
    records, findings = Store(folder).scan()
    checks += [Check("R01", "error", _inside(folder, f.file), f.what) for f in findings]
    if not records and not findings:
        checks.append(Check("R01", "error", "runs", "holds no record"))
    desk = _Desk(Store(folder), None if data_dir is None else Path(data_dir))
    rescored = 0
    for record in records:
        own = _check_record(record, manifest)
        if not own:
            own, same = desk.check(record)
            rescored += same
        checks += own
    checks += desk.remarks() + _check_floors(folder, records) + _completeness(records)
    name = plain(manifest.model)
    return Verification(str(folder), name, tuple(dict.fromkeys(map(_printable, checks))), len(records), rescored)


def _printable(check: Check) -> Check:
    """File names and pieces of the records' own text are one line of visible characters in what is printed."""
    what = plain(check.what) if check.code in ("R01", "R07", "G01") else check.what
    return check._replace(where=plain(check.where), what=what)


def _inside(folder: Path, file: str) -> str:
    path = Path(file)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


def _check_record(record: RunRecord, manifest: Manifest) -> list[Check]:
    """R and T codes: what the record says of itself, held against the shipped spec."""
    where = f"runs/{record.task.id}/{record.key}.json"

    def error(code: str, what: str) -> Check:
        return Check(code, "error", where, what)

    found = []
    fractions = ("precision", "recall", "f1")
    numbers = [*record.scores.values(), *(v[n] for v in record.per_label.values() for n in fractions if n in v)]
    if any(not math.isfinite(v) or not 0 <= v <= 1 for v in numbers) or not record.scores:
        found.append(error("R02", "a score is missing or not a fraction between 0 and 1"))
    impossible = _impossible(record)
    if impossible:
        found.append(error("R02", f"{', '.join(impossible)}: no run can have this value"))
    if record.engine_version != ENGINE_VERSION:
        found.append(error("R03", f"was made by engine {record.engine_version}, this is engine {ENGINE_VERSION}"))
    if record.limit is not None or record.track != "fixed":
        found.append(error("R04", "is a limited or tuned run; submissions hold full runs"))
    if record.key not in _keys(record):
        found.append(error("R05", "the key does not follow from what the record says"))
    name = record.model.id if record.model.revision is None else f"{record.model.id}@{record.model.revision}"
    if name != manifest.model:
        found.append(error("R06", "is of another model than the manifest names"))
    info = shipped().get(record.task.id)
    if info is None or info.spec is None:
        return [*found, error("T01", f"task {record.task.id} is not shipped")]
    if info.hashes.get(record.task.source) != record.task.hash:
        found.append(error("T02", "was run on another spec than the shipped one"))
    elif _says_otherwise(record, info, info.spec):
        found.append(error("T03", "labels, protocol, metric, type or language are not those of the shipped spec"))
    return found


def _impossible(record: RunRecord) -> list[str]:
    """What the record says beside its scores that is out of range; within it, such claims cannot be recomputed."""
    documents, windows = record.task.test_documents, record.windows
    sizes = {
        "model.parameters": record.model.parameters,
        "task.test_documents": documents,
        "windows.max_length": windows.max_length,
    }
    counts: dict[str, float] = {f"cost.{name}": value or 0 for name, value in record.cost}
    counts |= {f"training.{name}": getattr(record.training, name) for name in ("steps", "best_step")}
    cut = {f"windows.{name}": getattr(windows, name) for name in ("truncated_documents", "strided_documents")}
    counts |= cut | {"windows.lost_gold": windows.lost_gold}
    found = [name for name, value in sizes.items() if value < 1]
    found += [name for name, value in counts.items() if not 0 <= value < math.inf]
    found += [name for name, value in cut.items() if value > documents]
    found += ["windows.ceiling"] if any(not 0 <= v <= 1 for v in windows.ceiling.values()) else []
    found += [] if record.training.precision in ("bf16", "fp32") else ["training.precision"]
    try:
        datetime.fromisoformat(record.provenance.started)
    except ValueError:
        found.append("provenance.started")
    return found


def _keys(record: RunRecord) -> set[str]:
    """The keys that the record's fields can have: a run repeated in fp32 keeps the key of its first try."""
    return {
        run_key(
            model_hash=record.model.hash,
            task_hash=record.task.hash,
            data_hash=record.task.data_hash,
            seed=record.seed,
            precision=precision,
            track=record.track,
            limit=record.limit,
            engine_version=record.engine_version,
        )
        for precision in {record.training.precision, "bf16", "fp32"}
    }


def _says_otherwise(record: RunRecord, info: TaskInfo, spec: TaskSpec) -> bool:
    task = record.task
    return (
        list(task.labels) != list(spec.labels)
        or task.type != spec.type
        or task.language != spec.language
        or task.version != spec.version
        or task.corpus != info.corpus
        or task.negative_label != spec.metric.negative_label
        or (task.primary, task.paper) != (spec.metric.primary, spec.metric.paper)
        or hashlib.sha256(canonical(record.protocol).encode()).hexdigest() != task.hash
        or not set(task.gold_labels) <= set(spec.labels)
        or record.redacted != (spec.access == "agreement")
    )


def _check_floors(folder: Path, records: Sequence[RunRecord]) -> list[Check]:
    """G codes: the gate's verdicts that came along. The board asks its own gate and takes none of these over."""
    floors, findings = scan_floors(folder)
    found = [Check("G01", "error", _inside(folder, f.file), f.what) for f in findings]
    data = {(r.task.id, r.task.data_hash) for r in records}
    for floor in floors:
        where = f"floors/{floor.task}/{floor_key(floor.task_hash, floor.data_hash)}.json"
        if (floor.task, floor.data_hash) not in data:
            found.append(Check("G02", "error", where, "is a gate verdict on data that no run here was made on"))
        elif not floor.passed:
            found.append(Check("G03", "error", where, "says that the task fails its gate: its runs are not ranked"))
    return found


@dataclass(slots=True)
class _Desk:
    """Scores records again, with the data of each task read once."""

    store: Store
    data_dir: Path | None
    _data: dict[str, TaskData | str] = field(default_factory=dict)

    def check(self, record: RunRecord) -> tuple[list[Check], bool]:
        """D and S codes, and whether the scores came out as claimed."""
        where = f"runs/{record.task.id}/{record.key}.parquet"
        data = self._of(record.task.id)
        documents: Sequence[Document] | None = None
        if isinstance(data, TaskData):
            if data.source != record.task.source or data.hash != record.task.data_hash:
                return [Check("D02", "error", where, "was made on other data than the data at hand")], False
            if data.gold_labels != record.task.gold_labels:
                return [Check("D01", "error", where, "the labels with gold are not those of the data")], False
            if len(data.test) != record.task.test_documents:
                return [Check("D01", "error", where, "the number of documents is not that of the data")], False
            documents = _read_by(record, data.test)
        elif record.redacted:
            return [], False
        try:
            gold, predictions = self.store.load_predictions(record, documents)
            if len({d.id for d in gold}) < len(gold):
                return [Check("S02", "error", where, "a document is there twice")], False
            if documents is not None and not record.redacted:
                if _truth(gold) != _truth(documents):
                    return [Check("D01", "error", where, "its gold is not the gold of the data")], False
                gold = list(documents)
            own = {s.label for d in gold for s in d.spans} | {label for d in gold for label in d.labels}
            # a needle run scores the lengths that its window holds, and no others
            whole = len(gold) == record.task.test_documents or record.task.type == NEEDLE
            if set(record.task.gold_labels) != own or not whole:
                what = "the labels with gold, or the number of documents, are not those of its gold"
                return [Check("D01", "error", where, what)], False
            if len(predictions) != len(gold):
                lacking = len(gold) - len(predictions)
                return [Check("S02", "error", where, f"{lacking} documents lack a prediction")], False
            after = scored(record, gold, predictions)
        except (StoreError, ScoreError) as error:
            return [Check("R07", "error", where, error.what)], False
        differing = [n for n, v in after.scores.items() if abs(record.scores.get(n, math.inf) - v) > TOLERANCE]
        differing += [n for n in record.scores if n not in after.scores]
        if differing:
            what = f"the predictions do not give the claimed {', '.join(plain(n) for n in sorted(differing)[:5])}"
            return [Check("S01", "error", where, what)], False
        bent = [
            label
            for label in record.per_label.keys() | after.per_label.keys()
            if not _equal(record.per_label.get(label, {}), after.per_label.get(label, {}))
        ]
        if bent:
            what = f"the predictions do not give the numbers of label {plain(min(bent))}"
            return [Check("S03", "error", where, what)], False
        return [], True

    def remarks(self) -> list[Check]:
        """One warning a task whose data is not at hand."""
        return [
            Check("D03", "warning", f"runs/{task}", f"not checked against the data: {data}")
            for task, data in self._data.items()
            if isinstance(data, str)
        ]

    def _of(self, task: str) -> TaskData | str:
        if task not in self._data:
            try:
                self._data[task] = load_data(load_task(task), self.data_dir, offline=True)
            except (DataUnavailableError, DataFormatError) as error:
                self._data[task] = error.what
        return self._data[task]


def _read_by(record: RunRecord, documents: Sequence[Document]) -> list[Document]:
    """The documents that a run scores: of needle examples those whose length its window holds, else all."""
    window = record.windows.max_length
    return [d for d in documents if d.plan is None or d.plan.fit != "tokens" or d.plan.length <= window]


def _equal(said: Mapping[str, float], found: Mapping[str, float]) -> bool:
    """Whether both hold the same numbers under the same names."""
    return said.keys() == found.keys() and all(abs(said[n] - found[n]) <= TOLERANCE for n in said)


def _truth(documents: Sequence[Document]) -> set[tuple[Any, ...]]:
    return {(d.id, d.group, frozenset(d.spans), frozenset(d.labels)) for d in documents}


def _completeness(records: Sequence[RunRecord]) -> list[Check]:
    """C codes: what a complete submission would hold beyond this."""
    found = []
    seeds: dict[str, list[int]] = defaultdict(list)
    for record in records:
        seeds[record.task.id].append(record.seed)
    tasks = shipped()
    for task, own in sorted(seeds.items()):
        spec = tasks[task].spec if task in tasks else None
        if len(set(own)) < len(own):
            found.append(Check("C03", "error", f"runs/{task}", "a seed is there twice"))
        missing = [] if spec is None else sorted(set(parse_seeds(spec.seeds)) - set(own))
        if missing:
            what = f"seeds {', '.join(map(str, missing))} of the protocol are missing"
            found.append(Check("C02", "warning", f"runs/{task}", what))
    for suite in sorted({tasks[t].suite for t in seeds if t in tasks and tasks[t].in_suite}):
        lacking = [i.id for i in tasks.values() if i.in_suite and i.suite == suite and i.id not in seeds]
        if lacking:
            what = f"no results on {', '.join(lacking)}: no average over the {suite} suite"
            found.append(Check("C01", "warning", "runs", what))
    return found
