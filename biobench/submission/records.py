"""What a record says of itself, held against the shipped spec under the conditions that the record
names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import filterfalse

from biobench.core.files import canonical, sha256_of
from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash
from biobench.errors import SpecError
from biobench.reporting.tasks import NEEDLE, shipped
from biobench.schema.kind import get_metric, traits_of
from biobench.schema.protocols import FROZEN, protocol_named_by
from biobench.schema.record import ENGINE_VERSION, RunRecord
from biobench.schema.source import Source, TopLabels
from biobench.schema.task import TaskSpec
from biobench.score.slices import SLICES
from biobench.store import Brief, run_key
from biobench.submission.checks import Problem, found
from biobench.submission.names import DEVICE, REVISION

TOLERANCE = 1e-9
"""How far a claimed score may lie from the recomputed one: rounding of the arithmetic, no more."""
ADAPTATION = ("training.adapter", "training.top_layers")
"""What may be trained in place of the whole encoder (docs/running.md), at rates of its own."""
RATES = ("training.learning_rate", "training.head_learning_rate")


def why_not_submitted(run: RunRecord | Brief) -> str:
    """Why no submission holds a run of these conditions; empty where one may.

    Submissions hold runs of the spec as it is, of a declared protocol, of the tracks tuned and
    frozen, and of adapters and partly trained encoders. The board shows each under its conditions.
    """
    if run.origin != "run" or run.split != "test":
        return "was not fine-tuned here and scored on the test split"
    if run.limit is not None:
        return f"is limited to {run.limit} training documents"
    overrides = list(run.overrides)
    if run.track == "frozen":
        overrides = [text for text in overrides if text not in FROZEN]
    if protocol_named_by(overrides) is not None:
        return ""
    fields = [text.partition("=")[0].strip() for text in overrides]
    refused = [field for field in fields if not _is_below(field, ADAPTATION)]
    if len(refused) < len(fields):  # adapted, so rates of its own are allowed
        refused = [field for field in refused if not _is_below(field, RATES)]
    if not refused:
        return ""
    return (
        f"sets {', '.join(refused)} of the spec; submissions set adapters, or use --protocol or "
        f"--track"
    )


def _is_below(field: str, parents: tuple[str, ...]) -> bool:
    """Whether a dotted field is one of these, or a field of one."""
    return any(f"{field}.".startswith(f"{parent}.") for parent in parents)


def check_record(record: RunRecord, model: str) -> Iterator[Problem]:
    """R and T codes. model: the name in the manifest."""
    for field in _impossible(record):
        yield Problem("R02", f"{field}: no run can have this value")
    name = record.model.id
    engine = record.engine_version
    if record.model.revision is not None:
        name = f"{name}@{record.model.revision}"
    engines = f"was made by engine {engine}, this is engine {ENGINE_VERSION}"
    other_engine = Problem("R03", engines)
    other_key = Problem("R05", "the key does not follow from what the record says")
    other_model = Problem("R06", "is of another model than the manifest names")
    yield from found(
        {
            other_engine: engine != ENGINE_VERSION,
            other_key: record.key not in _keys(record),
            other_model: model != name,
        }
    )
    reason = why_not_submitted(record)
    if not reason and record.label_map:
        reason = "maps the labels of another head"
    if record.task.id not in shipped():
        yield Problem("T01", f"task {record.task.id} is not shipped")
    elif reason:
        yield Problem("R04", reason)
    else:
        yield from _spec_problems(record)


def _spec_problems(record: RunRecord) -> Iterator[Problem]:
    """T02, T03: the record against the shipped spec with its overrides; C04: a claim."""
    try:
        task = load_task(record.task.id, record.overrides)
        source = task.source(record.task.source)
        same_spec = task_hash(task, source.id) == record.task.hash
    except (SpecError, KeyError):
        same_spec = False
    if not same_spec:
        yield Problem("T02", "was run on another spec than the shipped one")
    elif _says_otherwise(record, task.spec, source):
        message = "labels, split, protocol, metric, type or language are not those of the spec"
        yield Problem("T03", message)
    if record.contamination is not None:
        message = (
            "what it says of the model's training text is the submitter's word: nothing here "
            "shows it"
        )
        yield Problem("C04", message, "warning")


def _impossible(record: RunRecord) -> Iterator[str]:
    """Names of fields whose value no run has."""
    training = record.training
    model = record.model
    slices = record.slices
    windows = record.windows
    scores_of_slices_possible = all(_are_possible(part.scores) for part in slices.values())
    ceiling_possible = all(0 <= score <= 1 for score in windows.ceiling.values())
    too_many_truncated = windows.truncated_documents > record.task.test_documents
    last_step = max([training.best_step, *(point.step for point in training.curve)])
    has_threshold = training.threshold is not None
    has_odd_revision = model.revision is not None and not REVISION.fullmatch(model.revision)
    least_seconds = _counted_seconds(record)
    seconds = record.cost.seconds
    return found(
        {
            "scores": not _are_possible(record.scores),
            "slices": not (scores_of_slices_possible and slices.keys() <= set(SLICES)),
            "windows": too_many_truncated or not ceiling_possible,
            "training.precision": training.precision not in ("bf16", "fp32"),
            "training.steps": last_step > training.steps,
            "training.threshold": has_threshold != traits_of(record.task.type).thresholds,
            "model.parameters": model.parameters < 1,
            "model.revision": has_odd_revision,
            "provenance.device": not DEVICE.fullmatch(record.provenance.device),
            "cost.peak_memory_bytes": record.cost.peak_memory_bytes < 2 * model.parameters,
            "cost.seconds": not seconds or least_seconds > 1.1 * seconds + 1e-3,
        }
    )


def _counted_seconds(record: RunRecord) -> float:
    """What the seconds of a run cannot be less than."""
    if record.track == "frozen" or record.task.type == NEEDLE:
        # a frozen encoder's states are computed once for several seeds; their seconds stand in each
        # of these runs
        return 0.0
    return record.cost.train_seconds + record.cost.evaluation_seconds


def _are_possible(scores: dict[str, float]) -> bool:
    """Whether there are any, and each lies where its metric does."""
    return bool(scores) and all(get_metric(name).allows(value) for name, value in scores.items())


def differing(claimed: dict[str, float], computed: dict[str, float]) -> list[str]:
    """Names whose numbers are not the same in both, or are in one alone."""

    def is_same(name: str) -> bool:
        distance = abs(claimed.get(name, math.inf) - computed.get(name, -math.inf))
        return distance <= TOLERANCE  # NaN is none either

    return [*filterfalse(is_same, sorted(claimed.keys() | computed.keys()))]


def _keys(record: RunRecord) -> set[str]:
    """The keys that the record's fields can have: a run repeated in fp32 keeps the key of its first
    try.
    """
    protocol: dict[str, int | list[str]] = {}
    if record.resampling is not None:
        protocol["fold"] = record.resampling.fold
    if record.model.changes:
        protocol["checkpoint"] = list(record.model.changes)
    key_in = partial(
        run_key,
        model_hash=record.model.hash,
        task_hash=record.task.hash,
        data_hash=record.task.data_hash,
        seed=record.seed,
        track=record.track,
        limit=record.limit,
        protocol=protocol or None,
        engine_version=record.engine_version,
    )
    return {key_in(precision=p) for p in (record.training.precision, "bf16", "fp32")}


def _says_otherwise(record: RunRecord, spec: TaskSpec, source: Source) -> bool:
    """Whether the record's fields are not those of the spec."""
    task = record.task
    metric = spec.metric
    rule = spec.resampled(source)
    splits = record.resampling
    split = None if rule is None else (rule.fold_files, rule.seed)
    claimed_split = None if splits is None else (splits.folds, record.seed - splits.fold)
    claimed_and_declared = (
        (task.type, spec.type),
        (task.language, spec.language),
        (task.version, spec.version),
        (task.primary, metric.primary),
        (task.paper, metric.paper),
        (task.corpus, spec.corpus_id),
        (task.negative_label, metric.negative_label),
        (record.redacted, spec.access == "agreement"),
        (claimed_split, split),
        (task.hash, sha256_of(canonical(record.protocol).encode())),
        (splits is None or splits.fold < splits.folds, True),
        (fits(task.labels, spec), True),
        (set(task.gold_labels) <= set(task.labels), True),
    )
    return any(claimed != declared for claimed, declared in claimed_and_declared)


def fits(labels: tuple[str, ...], spec: TaskSpec) -> bool:
    """Whether a run of this task can have these labels; where the data decides which, their number
    is known.
    """
    if isinstance(spec.labels, list):
        return list(labels) == spec.labels
    rule = spec.labels
    number = rule.top_k if isinstance(rule, TopLabels) else rule.collected
    return len(labels) == number and list(labels) == sorted(set(labels))
