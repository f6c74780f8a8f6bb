"""What a record says of itself, held against the shipped spec and against its own other fields."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from biobench.core.files import canonical
from biobench.errors import StoreError
from biobench.report.tasks import TaskInfo, shipped
from biobench.schema.kind import KINDS, has_f1, is_possible, traits_of
from biobench.schema.record import ENGINE_VERSION, RunRecord
from biobench.schema.source import TopLabels
from biobench.schema.task import TaskSpec
from biobench.score import ScoreError
from biobench.score.averages import Sums, f1_averages, per_label, ratio
from biobench.store import run_key
from biobench.store.records import canonical_json, parsed
from biobench.submission import course
from biobench.submission.checks import Check
from biobench.submission.pack import Manifest

TOLERANCE = 1e-9
"""How far a claimed score may lie from the recomputed one: rounding of the arithmetic, no more."""

_HASH = re.compile(r"[0-9a-f]{64}")
_PLAIN = re.compile(r"[0-9A-Za-z ()@+_.,:;/#|-]*")
"""What operating systems, processors and revisions are called."""
_MOST = {
    "model.parameters": 10**12,
    "model.max_positions": 10**8,
    "task.version": 10**4,
    "task.test_documents": 10**6,
    "seed": 2**32 - 1,
    "training.steps": 10**8,
    "training.batch_size": 10**5,
    "training.micro_batch_tokens": 10**8,
    "training.resumed": 10**4,
    "cost.seconds": 10**8,
    "cost.train_tokens_per_second": 10**9,
    "cost.peak_memory_bytes": 2**45,
    "cost.energy_kwh": 10**5,
    "windows.max_length": 10**8,
    "windows.lost_gold": 10**7,
    "provenance.threads": 10**4,
}
"""Above these no run lies; below them a claim of speed or memory cannot be recomputed."""


def check_record(record: RunRecord, manifest: Manifest) -> list[Check]:
    """R and T codes."""
    where = f"runs/{record.task.id}/{record.key}.json"

    def error(code: str, what: str) -> Check:
        return Check(code, "error", where, what)

    checks = []
    fractions = ("precision", "recall", "f1")
    numbers = [v[n] for v in record.per_label.values() for n in fractions if n in v]
    possible = all(is_possible(name, value) for name, value in record.scores.items())
    if any(not 0 <= v <= 1 for v in numbers) or not possible or not record.scores:
        checks.append(error("R02", "a score is missing or not a fraction between 0 and 1"))
    impossible = list(dict.fromkeys(_impossible(record)))
    if impossible:
        checks.append(error("R02", f"{', '.join(impossible)}: no run can have this value"))
    if record.engine_version != ENGINE_VERSION:
        checks.append(error("R03", f"was made by engine {record.engine_version}, this is engine {ENGINE_VERSION}"))
    if record.limit is not None or record.track != "fixed" or record.overrides or record.training.trials:
        checks.append(error("R04", "is a limited, tuned or overridden run; submissions hold full runs"))
    if (record.origin, record.split) != ("run", "test") or record.label_map:
        checks.append(error("R04", "is no run that was fine-tuned here and scored on the test split"))
    if record.key not in _keys(record):
        checks.append(error("R05", "the key does not follow from what the record says"))
    name = record.model.id if record.model.revision is None else f"{record.model.id}@{record.model.revision}"
    if name != manifest.model:
        checks.append(error("R06", "is of another model than the manifest names"))
    info = shipped().get(record.task.id)
    if info is None or info.spec is None:
        return [*checks, error("T01", f"task {record.task.id} is not shipped")]
    if info.hashes.get(record.task.source) != record.task.hash:
        checks.append(error("T02", "was run on another spec than the shipped one"))
    elif _expected(record, info.spec) not in (None, record.task.data_hash):
        checks.append(error("D02", "was made on other data than the spec expects"))
    elif _says_otherwise(record, info, info.spec):
        checks.append(error("T03", "labels, protocol, metric, type or language are not those of the shipped spec"))
    elif not any(c.code == "R02" for c in checks):
        lies = [*_contradictions(record), *course.contradictions(record, info.spec)]
        checks += [error("S06", f"{what}: these claims contradict each other") for what in lies]
    if record.contamination is not None:
        what = "what it says of the model's training text is the submitter's word: nothing here shows it"
        checks.append(Check("C04", "warning", where, what))
    return checks


def check_canonical(content: bytes, path: Path, where: str) -> list[Check]:
    """R08 where a record is not written as we write records, so that no two readers see two things in it."""
    try:
        same = canonical_json(parsed(content, path, "")) == content
    except StoreError:
        return []  # its damage is a finding of its own
    what = "is not written as `biobench submit` writes records (blanks, escapes, forms of numbers)"
    return [] if same else [Check("R08", "error", where, what)]


def _impossible(record: RunRecord) -> Iterator[str]:
    """Fields whose value no run can have; within these bounds, claims beside the scores cannot be recomputed."""
    training, windows, documents = record.training, record.windows, record.task.test_documents
    fields = record.model_dump()
    for name, most in _MOST.items():
        value = fields
        for step in name.split("."):
            value = value[step]
        if value is not None and value > most:  # type: ignore[operator]
            yield name
    if record.model.parameters < 1:
        yield "model.parameters"
    if documents < 1:
        yield "task.test_documents"
    for name in ("truncated_documents", "strided_documents"):
        if getattr(windows, name) > documents:
            yield f"windows.{name}"
    if any(not 0 <= v <= 1 for v in windows.ceiling.values()):
        yield "windows.ceiling"
    if training.precision not in ("bf16", "fp32"):
        yield "training.precision"
    if training.attention not in ("packed", "padded", "alone"):
        yield "training.attention"
    if training.best_step > training.steps or any(t.best_step > training.steps for t in training.trials):
        yield "training.best_step"
    steps = [point.step for point in training.curve]
    if steps != sorted(set(steps)) or any(step > training.steps for step in steps):
        yield "training.curve"
    if any(abs(p.train_loss) > 1e6 or p.learning_rate > 1e3 or p.epoch > 1e5 for p in training.curve):
        yield "training.curve"
    if any(not is_possible(name, v) for p in training.curve for name, v in p.validation.items()):
        yield "training.curve"
    if (training.threshold is not None) != traits_of(record.task.type).thresholds:
        yield "training.threshold"
    hashes = {"model.hash": record.model.hash, "task.hash": record.task.hash, "task.data_hash": record.task.data_hash}
    yield from (name for name, value in hashes.items() if not _HASH.fullmatch(value))
    texts = {"model.revision": record.model.revision, "provenance.platform": record.provenance.platform}
    texts |= {"provenance.device": record.provenance.device}
    yield from (name for name, value in texts.items() if value is not None and not _PLAIN.fullmatch(value))
    if datetime.fromisoformat(record.provenance.started) > datetime.now(UTC) + timedelta(days=1):
        yield "provenance.started"
    yield from course.impossible_texts(record)
    yield from _contamination(record)


def _contamination(record: RunRecord) -> Iterator[str]:
    claimed = record.contamination
    if claimed is None:
        return
    if not _HASH.fullmatch(claimed.corpus_hash):
        yield "contamination.corpus_hash"
    if claimed.test is not None and claimed.test.documents != record.task.test_documents:
        yield "contamination.test"
    for name, split in (("validation", claimed.validation), ("test", claimed.test)):
        if split is None:
            continue
        most = max(split.exact, split.touched)
        if split.ngrams_seen > split.ngrams or not most <= split.seen <= split.documents or (
            split.seen > split.exact + split.touched or split.short > split.documents
        ):  # fmt: skip
            yield f"contamination.{name}"


def _contradictions(record: RunRecord) -> Iterator[str]:
    """Scores that cannot stand beside each other, whatever the predictions are."""
    task, rows = record.task, record.per_label
    if not has_f1(task.type):
        if rows or record.scores.keys() != set(KINDS[task.type].metrics):
            yield "scores and the type of task"
        return
    if rows.keys() != set(task.labels):
        yield "per_label and the task's labels"
        return
    try:
        counts = np.array([[rows[label][n] for n in ("tp", "predicted", "support")] for label in task.labels])
    except KeyError:
        yield "per_label lacks a count"
        return
    whole = counts.astype(np.int64)
    tp, predicted, support = whole.T
    if (whole != counts).any() or (counts < 0).any() or (tp > np.minimum(predicted, support)).any():
        yield "counts of a label"
        return
    sums = Sums(task.labels, tp, predicted - tp, support - tp)
    if any(not _equal(rows[label], row) for label, row in per_label(sums).items()):
        yield "counts and fractions of a label"
    try:
        averages = f1_averages(sums, task.gold_labels)
    except ScoreError:
        yield "task.gold_labels"
        return
    traits = traits_of(task.type)
    if traits.single and not traits.spans:
        averages["accuracy"] = ratio(int(tp.sum()), int(support.sum()))
    for name, value in averages.items():
        if abs(record.scores.get(name, math.inf) - value) > TOLERANCE:
            yield f"{name} and the labels' counts"
    if traits.spans:
        for name, value in record.windows.ceiling.items():
            if record.scores.get(name, 0.0) > value + TOLERANCE:
                yield f"{name} and the ceiling of its window"


def _equal(claimed: dict[str, float], computed: dict[str, float]) -> bool:
    return claimed.keys() == computed.keys() and all(abs(claimed[n] - computed[n]) <= TOLERANCE for n in computed)


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
            protocol=None if record.resampling is None else {"fold": record.resampling.fold},
            engine_version=record.engine_version,
        )
        for precision in {record.training.precision, "bf16", "fp32"}
    }


def _says_otherwise(record: RunRecord, info: TaskInfo, spec: TaskSpec) -> bool:
    task = record.task
    return (
        not _fits(task.labels, spec)
        or task.type != spec.type
        or task.language != spec.language
        or task.version != spec.version
        or task.corpus != info.corpus
        or task.negative_label != spec.metric.negative_label
        or (task.primary, task.paper) != (spec.metric.primary, spec.metric.paper)
        or hashlib.sha256(canonical(record.protocol).encode()).hexdigest() != task.hash
        or not set(task.gold_labels) <= set(task.labels)
        or record.redacted != (spec.access == "agreement")
    )


def _expected(record: RunRecord, spec: TaskSpec) -> str | None:
    return next((s.expect for s in spec.all_sources if s.id == record.task.source), None)


def _fits(labels: tuple[str, ...], spec: TaskSpec) -> bool:
    """Whether a run of this task can have these labels; where the data decides which, their number is known."""
    if isinstance(spec.labels, list):
        return list(labels) == spec.labels
    number = spec.labels.top_k if isinstance(spec.labels, TopLabels) else spec.labels.collected
    return list(labels) == sorted(set(labels)) and len(labels) == number
