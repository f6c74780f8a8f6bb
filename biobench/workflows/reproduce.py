"""`biobench reproduce`: a stored run made again from nothing but its record, and whether it agrees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from biobench.errors import BioBenchError, ModelError, StoreError, UsageError
from biobench.schema.document import Prediction
from biobench.schema.record import ENGINE_VERSION, RunRecord, TaskIdentity
from biobench.score import counts
from biobench.stats import Average, Counts
from biobench.stats.intervals import document_interval
from biobench.store import Store

if TYPE_CHECKING:
    from biobench.runs.plan import Item, RunPlan

Agreement = Literal["identical", "within", "outside", "other", "unavailable", "failed"]
"""identical: the same predictions, bit for bit, and the same score. within: the score lies in the stored score's 95%
interval over test documents. outside: it does not, or the record's score is not that of its predictions. other: model,
task, data, engine or precision are not those of the record, so nothing was run. unavailable: checkpoint, data,
spec or the record's own predictions are missing or damaged, so nothing was run. failed: the run did not end."""

_AVERAGES: dict[str, tuple[Average, Literal["exact", "partial"]]] = {
    "macro_f1": ("macro", "exact"),
    "macro_f1_all": ("macro_all", "exact"),
    "micro_f1": ("micro", "exact"),
    "weighted_f1": ("weighted", "exact"),
    "accuracy": ("micro", "exact"),
    "partial_macro_f1": ("macro", "partial"),
    "partial_micro_f1": ("micro", "partial"),
    "partial_weighted_f1": ("weighted", "partial"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What became of one record. stored, again: the primary score. low, high: its interval, None where the record's
    gold is not stored. same: share of test documents whose predictions are equal. reason: why it does not agree.
    machine: in what the machine of the record and this one differ, as texts `threads 1 then, 2 now`."""

    model: str
    task: str
    seed: int
    metric: str
    agreement: Agreement
    stored: float
    again: float | None = None
    low: float | None = None
    high: float | None = None
    same: float | None = None
    reason: str | None = None
    machine: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the record stands."""
        return self.agreement in ("identical", "within")


def stored_runs(path: str | Path) -> tuple[Store, list[RunRecord]]:
    """The store and its records below `path`: a record's JSON file, a task's folder, `runs/` or a results folder.

    In order of task, model and seed. Raises UsageError where there is none, StoreError where one of them is damaged.
    """
    named = Path(path).absolute()
    root = next((p for p in (named, *named.parents) if (p / "runs").is_dir()), None)
    nothing = UsageError(
        f"{path}: there is no record here", hint="give results/runs/TASK/KEY.json, or a results folder"
    )
    if root is None or not named.exists():
        raise nothing
    store = Store(root)
    records, damaged = store.scan()
    for file in damaged:
        if _below(root, Path(file.file).absolute(), named):
            raise StoreError(file.what, hint=file.hint, file=file.file)
    records = [r for r in records if _below(root, root / "runs" / r.task.id / f"{r.key}.json", named)]
    if not records:
        raise nothing
    return store, sorted(records, key=lambda r: (r.task.id, r.model.id, r.seed))


def _below(root: Path, file: Path, named: Path) -> bool:
    return named in (file, root, *file.parents)


def reproduce(
    store: Store,
    records: Sequence[RunRecord],
    results_dir: str | Path,
    *,
    models: str | Path | None = None,
    data_dir: str | Path | None = None,
    specs: Sequence[str | Path] = (),
    device: str = "auto",
    offline: bool = False,
) -> Iterator[Reproduction]:
    """Make each record's run again in `results_dir` and compare; what is stored there already is not run twice.

    models: a folder of checkpoints by the records' names, or one checkpoint; None: the hub, by id and revision.
    specs: YAML files of tasks that are not shipped. A record whose checkpoint, data or spec is missing does not stop
    the others. Raises UsageError where `results_dir` is the records' own folder, or where `models`, `data_dir` or
    `device` is wrong for all.
    """
    from biobench.core.machine import resolve_device

    if Path(results_dir).absolute() == store.root.absolute():
        raise UsageError(
            f"{results_dir}: the records lie here, so their runs would be found and not made again",
            hint="give another --results-dir",
        )
    for option, folder in (("--models", models), ("--data-dir", data_dir)):
        if folder is not None and not Path(folder).is_dir():
            raise UsageError(f"{option} {folder}: there is no such folder", hint="give an existing folder")
    resolve_device(device)
    paths = _spec_paths(specs)
    for record in records:
        yield _again(store, record, results_dir, models, data_dir, paths, device, offline)


def _spec_paths(specs: Sequence[str | Path]) -> dict[str, str]:
    from biobench.data.catalog import load_task

    return {load_task(path).id: str(path) for path in specs}


def _model(record: RunRecord, models: str | Path | None) -> str:
    if models is None:
        revision = record.model.revision
        name = record.model.source or record.model.id
        return name if revision is None else f"{name}@{revision}"
    folder = Path(models).absolute()  # `models/name` would be an id of the hub where there is no such folder
    return str(folder if (folder / "config.json").is_file() else folder / (record.model.source or record.model.id))


def _again(
    store: Store,
    record: RunRecord,
    results_dir: str | Path,
    models: str | Path | None,
    data_dir: str | Path | None,
    specs: dict[str, str],
    device: str,
    offline: bool,
) -> Reproduction:
    from biobench.runs.api import run_plan
    from biobench.runs.options import RunRequest
    from biobench.runs.plan import make_plan
    from biobench.runs.result import Silent

    metric = record.task.primary
    stored = Reproduction(
        model=record.model.id,
        task=record.task.id,
        seed=record.seed,
        metric=metric,
        agreement="other",
        stored=record.scores[metric],
    )
    if record.origin == "outside":
        return replace(stored, reason="its predictions were made elsewhere; `biobench score` reads them")
    answered = record.origin == "checkpoint"
    request = RunRequest(
        _model(record, models),
        tasks=[specs.get(record.task.id, record.task.id)],
        seeds=None if answered else record.seed,
        overrides=record.overrides,
        limit=record.limit,
        track=record.track,
        data_dir=data_dir,
        results_dir=results_dir,
        device=device,
        offline=offline,
        parallel=1,
        gate=False,
        no_test=record.split == "validation",
        no_training=answered,
        label_map=[f"{name}={label}" for name, label in record.label_map.items()],
    )
    try:
        before, interval = _answers(store, record), _interval(store, record)
        plan = make_plan(request)
    except BioBenchError as error:
        hint = error.hint
        if models is None and isinstance(error, ModelError):
            hint = "name its folder with --models"
        return replace(stored, agreement="unavailable", reason=f"{error}; {hint}")
    if not plan.items:
        missing = plan.tasks[0].unavailable
        assert missing is not None
        return replace(stored, agreement="unavailable", reason=f"{missing}; {missing.hint}")
    if differences := _differences(record, plan, plan.items[0]):
        return replace(stored, reason=", ".join(differences))
    if interval is not None:
        stored = replace(stored, low=interval[0], high=interval[1])
    (result,) = run_plan(plan, Silent())
    fresh = Store(results_dir)
    repeated = fresh.get(record.task.id, plan.items[0].key)
    if repeated is None:
        return replace(stored, agreement="failed", reason=result.reason)
    score = repeated.scores[metric]
    after = _answers(fresh, repeated)
    repetition = replace(
        stored, again=score, same=_same(record.task, before, after), machine=_machine(record, repeated)
    )
    # a file's bytes depend on the library that wrote it too
    if record.predictions_sha256 == repeated.predictions_sha256 or (before is not None and before == after):
        if score == record.scores[metric]:
            return replace(repetition, agreement="identical", same=1.0)
        return replace(
            repetition, agreement="outside", reason="the predictions are the same, the record's score is not theirs"
        )
    within = score == record.scores[metric] if interval is None else interval[0] <= score <= interval[1]
    return replace(repetition, agreement="within" if within else "outside")


def _differences(record: RunRecord, plan: RunPlan, item: Item) -> list[str]:
    """What is not as it was, so that another run would be made."""
    data = item.task.data
    assert data is not None
    parts = (
        ("weights", record.model.hash, item.checkpoint.hash),
        ("spec", record.task.hash, item.task.hash),
        ("data", record.task.data_hash, data.hash),
        ("precision", record.training.precision, item.task.precision),
        ("engine", str(record.engine_version), str(ENGINE_VERSION)),
    )
    named = [f"{name} {now[:12]} instead of {then[:12]}" for name, then, now in parts if then != now]
    if not named and item.key != record.key:
        # no single part: the record was written by hand, or another program decided its key
        return [f"key {item.key[:12]} instead of {record.key[:12]}"]
    return named


def _machine(then: RunRecord, now: RunRecord) -> tuple[str, ...]:
    """What of the machine and the libraries differs between the two runs: where nothing does, bits are to be equal."""
    parts = [
        ("device", then.provenance.device, now.provenance.device),
        ("threads", then.provenance.threads, now.provenance.threads),
        *((name, old, now.provenance.packages.get(name)) for name, old in then.provenance.packages.items()),
    ]
    return tuple(f"{name} {old} then, {new} now" for name, old, new in parts if old != new)


def _interval(store: Store, record: RunRecord) -> tuple[float, float] | None:
    """The 95% interval of the stored score over test documents; None where it cannot be computed from the store."""
    metric = record.task.primary
    if record.redacted or metric not in _AVERAGES:
        return None
    average, match = _AVERAGES[metric]
    gold, predictions = store.load_predictions(record, None)
    by_group = counts(type=record.task.type, labels=record.task.labels, gold=gold, predictions=predictions, match=match)
    evaluated = [label in set(record.task.gold_labels) for label in by_group.labels]
    table = Counts.of(*(np.stack([getattr(by_group, name)]) for name in ("tp", "fp", "fn")))
    interval = document_interval(table, average, evaluated=evaluated).interval
    return None if interval is None else (interval.low, interval.high)


def _answers(store: Store, record: RunRecord) -> list[Prediction] | None:
    """The stored predictions by document; None of a redacted record, whose documents have no names."""
    return None if record.redacted else store.stored_predictions(record)[1]


def _same(task: TaskIdentity, before: Sequence[Prediction] | None, after: Sequence[Prediction] | None) -> float | None:
    """Share of test documents that both runs predict alike, whatever the probabilities; None where nobody can tell."""
    if not before or not after or len(before) != len(after):
        return None
    pairs = list(zip(before, after, strict=True))
    if not task.labels:  # numbers are predicted
        return float(np.mean([a == b for a, b in pairs]))
    return float(np.mean([(a.labels, a.spans) == (b.labels, b.spans) for a, b in pairs]))
