"""`biobench reproduce`: a stored run made again from nothing but its record, and whether it agrees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from biobench.errors import StoreError, UsageError
from biobench.schema.record import ENGINE_VERSION, RunRecord
from biobench.score import counts
from biobench.stats import Average, Counts
from biobench.stats.intervals import document_interval
from biobench.store import Store

if TYPE_CHECKING:
    from biobench.runs.plan import Item, RunPlan

Agreement = Literal["identical", "within", "outside", "other", "failed"]
"""identical: the same predictions, bit for bit. within: the score lies in the stored score's 95% interval over test
documents. outside: it does not. other: model, task, data, engine or precision are not those of the record, so nothing
was run. failed: the run did not end."""

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
    gold is not stored. same: share of test documents whose predictions are equal. reason: of `other` and `failed`."""

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

    @property
    def agrees(self) -> bool:
        """Whether the record stands."""
        return self.agreement in ("identical", "within")


def stored_runs(path: str | Path) -> tuple[Store, list[RunRecord]]:
    """The store and its records below `path`: a record's JSON file, a task's folder, `runs/` or a results folder.

    In order of task, model and seed. Raises UsageError where there is none, StoreError where one is damaged.
    """
    named = Path(path).absolute()
    root = next((p for p in (named, *named.parents) if (p / "runs").is_dir()), None)
    if root is None or not named.exists():
        raise UsageError(
            f"{path}: there is no record here", hint="give results/runs/TASK/KEY.json, or a results folder"
        )
    store = Store(root)
    records = [r for r in store.records() if _below(root, r, named)]
    if not records:
        raise UsageError(
            f"{path}: there is no record here", hint="give results/runs/TASK/KEY.json, or a results folder"
        )
    return store, sorted(records, key=lambda r: (r.task.id, r.model.id, r.seed))


def _below(root: Path, record: RunRecord, named: Path) -> bool:
    path = root / "runs" / record.task.id / f"{record.key}.json"
    return named in (path, root, *path.parents)


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
    specs: YAML files of tasks that are not shipped. Raises UsageError where `results_dir` is the records' own folder.
    """
    if Path(results_dir).absolute() == store.root.absolute():
        raise UsageError(
            f"{results_dir}: the records lie here, so their runs would be found and not made again",
            hint="give another --results-dir",
        )
    paths = _spec_paths(specs)
    for record in records:
        yield _again(store, record, results_dir, _model(record, models), data_dir, paths, device, offline)


def _spec_paths(specs: Sequence[str | Path]) -> dict[str, str]:
    from biobench.data.catalog import load_task

    return {load_task(path).id: str(path) for path in specs}


def _model(record: RunRecord, models: str | Path | None) -> str:
    if models is None:
        revision = record.model.revision
        name = record.model.source or record.model.id
        return name if revision is None else f"{name}@{revision}"
    folder = Path(models)
    return str(folder if (folder / "config.json").is_file() else folder / (record.model.source or record.model.id))


def _again(
    store: Store,
    record: RunRecord,
    results_dir: str | Path,
    model: str,
    data_dir: str | Path | None,
    specs: dict[str, str],
    device: str,
    offline: bool,
) -> Reproduction:
    from biobench.runs.api import run_plan
    from biobench.runs.execute import Silent
    from biobench.runs.options import RunRequest
    from biobench.runs.plan import make_plan

    def outcome(
        agreement: Agreement, again: float | None = None, reason: str | None = None, same: float | None = None
    ) -> Reproduction:
        return Reproduction(
            model=record.model.id,
            task=record.task.id,
            seed=record.seed,
            metric=metric,
            agreement=agreement,
            stored=record.scores[metric],
            again=again,
            low=None if interval is None else interval[0],
            high=None if interval is None else interval[1],
            same=same,
            reason=reason,
        )

    metric = record.task.primary
    interval = _interval(store, record)
    if record.origin == "outside":
        return outcome("other", reason="its predictions were made elsewhere; `biobench score` reads them")
    answered = record.origin == "checkpoint"
    request = RunRequest(
        model,
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
    plan = make_plan(request)
    if not plan.items:
        return outcome("other", reason=str(plan.tasks[0].unavailable))
    if differences := _differences(record, plan, plan.items[0]):
        return outcome("other", reason=", ".join(differences))
    (result,) = run_plan(plan, Silent())
    repeated = Store(results_dir).get(record.task.id, plan.items[0].key)
    if repeated is None:
        return outcome("failed", reason=result.reason)
    score = repeated.scores[metric]
    if repeated.predictions_sha256 == record.predictions_sha256:
        return outcome("identical", score, same=1.0)
    within = score == record.scores[metric] if interval is None else interval[0] <= score <= interval[1]
    return outcome("within" if within else "outside", score, same=_same(store, record, Store(results_dir), repeated))


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
    return [f"{name} {now[:12]} instead of {then[:12]}" for name, then, now in parts if then != now]


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


def _same(first: Store, one: RunRecord, second: Store, other: RunRecord) -> float | None:
    """Share of test documents that both runs predict alike; None where the store does not hold predictions by id."""
    if one.redacted:
        return None
    try:
        before = first.stored_predictions(one)[1]
        after = second.stored_predictions(other)[1]
    except StoreError:
        return None
    if len(before) != len(after) or not before:
        return None
    return float(np.mean([(a.labels, a.spans) == (b.labels, b.spans) for a, b in zip(before, after, strict=True)]))
