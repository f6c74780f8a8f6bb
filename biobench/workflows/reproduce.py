"""`biobench reproduce`: a stored run made again from its record, or one more seed of a submission; does it agree?"""

from __future__ import annotations

import math
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from scipy import special

from biobench.errors import BioBenchError, ModelError, StoreError, UsageError
from biobench.schema.document import Prediction
from biobench.schema.record import ENGINE_VERSION, RunRecord
from biobench.score import counts
from biobench.stats import Average, Counts, document_interval
from biobench.stats.counts import check_average
from biobench.store import Store
from biobench.store.statements import Draw, Statement, make_statement

if TYPE_CHECKING:
    from biobench.runs.plan import Item, RunPlan
from biobench.runs.result import Reporter

Agreement = Literal["identical", "within", "outside", "other", "unavailable", "failed"]
"""identical: the same predictions, bit for bit, and the same score. within: the score lies in the stored score's 95%
interval over test documents. outside: it does not, or the record's score is not that of its predictions. other: model,
task, data, engine or precision are not those of the record, so nothing was run. unavailable: checkpoint, data,
spec or the record's own predictions are missing or damaged, so nothing was run. failed: the run did not end."""
LEAST_SEEDS = 3
"""Submitted seeds from which the spread of one more can be told."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """How runs are made again, and where.

    results_dir: of the new runs; what it holds is not run twice. models: a folder of checkpoints by the records' names,
    or one checkpoint; None: the hub, by id and revision. specs: YAML files of tasks that are not shipped. Raises
    UsageError where `models`, `data_dir` or `device` is wrong for all runs.
    """

    results_dir: str | Path
    models: str | Path | None = None
    data_dir: str | Path | None = None
    specs: Sequence[str | Path] = ()
    device: str = "auto"
    offline: bool = False
    _paths: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from biobench.core.machine import resolve_device
        from biobench.data.catalog import load_task

        for option, folder in (("--models", self.models), ("--data-dir", self.data_dir)):
            if folder is not None and not Path(folder).is_dir():
                raise UsageError(f"{option} {folder}: there is no such folder", hint="give an existing folder")
        resolve_device(self.device)
        self._paths.update((load_task(path).id, str(path)) for path in self.specs)

    def model_of(self, record: RunRecord) -> str:
        """What `biobench run` is given: a folder, or the hub's id and revision."""
        name = record.model.source or record.model.id
        if self.models is None:
            return name if record.model.revision is None else f"{name}@{record.model.revision}"
        folder = Path(self.models).absolute()  # `models/name` would be an id of the hub where there is no such folder
        return str(folder if (folder / "config.json").is_file() else folder / name)

    def plan(self, record: RunRecord, seed: int) -> RunPlan:
        """The plan of one run under the record's conditions. Raises BioBenchError where it cannot be made."""
        from biobench.runs.options import RunRequest
        from biobench.runs.plan import make_plan

        request = RunRequest(
            self.model_of(record),
            tasks=[self._paths.get(record.task.id, record.task.id)],
            seeds=seed,
            overrides=record.overrides,
            limit=record.limit,
            track=record.track,
            data_dir=self.data_dir,
            results_dir=self.results_dir,
            device=self.device,
            offline=self.offline,
            parallel=1,
            gate=False,
            no_test=record.split == "validation",
        )
        plan = make_plan(request)
        if (missing := plan.tasks[0].unavailable) is not None:
            raise missing
        return plan


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

    def is_below(file: Path) -> bool:
        return named in (file, root, *file.parents)

    for unusable in damaged:
        if is_below(Path(unusable.file).absolute()):
            raise StoreError(unusable.what, hint=unusable.hint, file=unusable.file)
    records = [r for r in records if is_below(root / "runs" / r.task.id / f"{r.key}.json")]
    if not records:
        raise nothing
    return store, sorted(records, key=lambda r: (r.task.id, r.model.id, r.seed))


def reproduce(store: Store, records: Sequence[RunRecord], again: Again) -> Iterator[Reproduction]:
    """Make each record's run again and compare.

    A record whose checkpoint, data or spec is missing does not stop the others. Raises UsageError where the new runs
    would be stored in the records' own folder.
    """
    if Path(again.results_dir).absolute() == store.root.absolute():
        raise UsageError(
            f"{again.results_dir}: the records lie here, so their runs would not be made again",
            hint="give another --results-dir",
        )
    for record in records:
        yield _repeated(store, record, again)


def _repeated(store: Store, record: RunRecord, again: Again) -> Reproduction:
    metric = record.task.primary
    score = record.scores[metric]
    row = partial(
        Reproduction, model=record.model.id, task=record.task.id, seed=record.seed, metric=metric, stored=score
    )
    if record.origin != "run":
        return row(agreement="other", reason="its predictions were made elsewhere; `biobench score` reads them")
    try:
        before = None if record.redacted else store.stored_predictions(record)[1]
        low, high = _interval(store, record) or (None, None)
        plan = again.plan(record, record.seed)
    except BioBenchError as error:
        by_name = again.models is None and isinstance(error, ModelError)
        hint = "name its folder with --models" if by_name else error.hint
        return row(agreement="unavailable", reason=f"{error}; {hint}")
    differences = _differences(record, plan.items[0])
    if not differences and plan.items[0].key != record.key:
        # no single part: the record was written by hand, or another program decided its key
        differences = [f"key {plan.items[0].key[:12]} instead of {record.key[:12]}"]
    if differences:
        return row(agreement="other", reason=", ".join(differences))
    repeated, after, reason = _run_again(plan, again)
    if repeated is None:
        return row(agreement="failed", low=low, high=high, reason=reason)
    same = None if before is None or after is None else alike(record, before, after)
    new = repeated.scores[metric]
    row = partial(row, again=new, low=low, high=high, machine=_machine(record, repeated))
    # a file's bytes depend on the library that wrote it too
    if record.predictions_sha256 == repeated.predictions_sha256 or (before is not None and before == after):
        if new == score:
            return row(agreement="identical", same=1.0)
        reason = "the predictions are the same, the record's score is not theirs"
        return row(agreement="outside", same=same, reason=reason)
    within = new == score if low is None or high is None else low <= new <= high
    return row(agreement="within" if within else "outside", same=same)


def _run_again(plan: RunPlan, again: Again) -> tuple[RunRecord | None, list[Prediction] | None, str | None]:
    """The record of the one run of a plan and its predictions; None and why where it failed."""
    from biobench.runs.api import run_plan

    (result,) = run_plan(plan, Reporter())
    fresh = Store(again.results_dir)
    record = fresh.get(plan.items[0].task.id, plan.items[0].key)
    if record is None:
        return None, None, result.reason
    return record, None if record.redacted else list(fresh.stored_predictions(record)[1]), None


def _differences(record: RunRecord, item: Item) -> list[str]:
    """What is not as it was, so that another run would be repeated."""
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
    name = record.task.primary.removeprefix("partial_").removesuffix("_f1")
    average = {"accuracy": "micro", "macro_f1_all": "macro_all"}.get(record.task.primary, name)
    if record.redacted or average not in get_args(Average):
        return None
    match: Literal["exact", "partial"] = "partial" if record.task.primary.startswith("partial_") else "exact"
    gold, predictions = store.load_predictions(record, None)
    by_group = counts(type=record.task.type, labels=record.task.labels, gold=gold, predictions=predictions, match=match)
    evaluated = [label in set(record.task.gold_labels) for label in by_group.labels]
    table = Counts.of(*(np.stack([getattr(by_group, name)]) for name in ("tp", "fp", "fn")))
    interval = document_interval(table, check_average(average), evaluated=evaluated).interval
    return None if interval is None else (interval.low, interval.high)


def alike(record: RunRecord, one: Sequence[Prediction], other: Sequence[Prediction]) -> float | None:
    """Share of test documents that both predict alike, whatever the probabilities; None where nobody can tell."""
    if not one or {p.document for p in one} != {p.document for p in other}:
        return None
    by_id = {p.document: p for p in other}
    if not record.task.labels:  # numbers are predicted
        return float(np.mean([p == by_id[p.document] for p in one]))
    return float(np.mean([(p.labels, p.spans) == (by_id[p.document].labels, by_id[p.document].spans) for p in one]))


def draw(submission: str | Path, waiting: Collection[str], again: Again) -> Statement:
    """Runs of seeds drawn at random where a submission waits (else on a random task), and whether they agree with it.

    A drawn run agrees if its score lies in the 95% prediction interval of the submitted seeds, and so does the share
    of test documents that it answers as they do. Raises UsageError for fewer than `LEAST_SEEDS` seeds, and where the
    run cannot be made as the submitted ones were.
    """
    store, records = stored_runs(submission)
    groups: dict[tuple[str, str, str], list[RunRecord]] = defaultdict(list)
    for record in records:
        groups[record.task.id, record.task.hash, record.track].append(record)
    chosen = [key for key in groups if key[0] in waiting] or [secrets.choice(list(groups))]
    draws = tuple(_drawn(store, groups[key], again) for key in chosen)
    return make_statement(Path(submission), "reproduced" if all(d.agrees for d in draws) else "claimed", draws)


def _drawn(store: Store, runs: Sequence[RunRecord], again: Again) -> Draw:
    first = runs[0]
    folds, seed = first.resampling, secrets.randbelow(2**31)
    if folds is not None:  # each seed is a split, and there are no others
        seed = first.seed - folds.fold + secrets.randbelow(folds.folds)
    others = [run for run in runs if run.seed != seed]
    if len(others) < LEAST_SEEDS:
        raise UsageError(
            f"{first.task.id}: {len(others)} submitted seeds do not tell what one more would score",
            hint=f"ask the submitter for {LEAST_SEEDS} seeds or more",
        )
    plan = again.plan(first, seed)
    if differences := _differences(first, plan.items[0]):
        raise UsageError(
            f"{first.task.id}: {', '.join(differences)}",
            hint="name the submitted checkpoint with --models, on a machine of that precision",
        )
    repeated, answers, reason = _run_again(plan, again)
    if repeated is None or answers is None:
        raise UsageError(f"{first.task.id}, seed {seed}: the run failed: {reason}", hint="see `biobench status`")
    metric, number = first.task.primary, first.task.test_documents
    scores = np.array([run.scores[metric] for run in others])
    low, high = prediction_interval(scores.mean(), scores, 1 / number**2)
    submitted = [store.stored_predictions(run)[1] for run in others]
    pairs = np.array([[1.0 if a is b else alike(first, a, b) or 0.0 for b in submitted] for a in submitted])
    new = float(np.mean([alike(first, answers, other) or 0.0 for other in submitted]))
    alike_low, alike_high = agreement_interval(pairs, number)
    agrees = low <= repeated.scores[metric] <= high and (folds is not None or alike_low <= new <= alike_high)
    return Draw(
        task=first.task.id,
        task_hash=first.task.hash,
        track=first.track,
        seed=seed,
        metric=metric,
        score=repeated.scores[metric],
        low=low,
        high=high,
        alike=new,
        alike_low=alike_low,
        alike_high=alike_high,
        agrees=bool(agrees),
    )


def prediction_interval(centre: float, values: np.ndarray, noise: float) -> tuple[float, float]:
    """The 95% interval for one more value like these: `centre` ± √(t(n - 1)² s² (1 + 1/n) + 1.96² noise).

    noise: a known variance besides theirs: equal scores of a few seeds do not say that no document ever changes.
    """
    n = len(values)
    spread = float(np.var(values, ddof=1)) * (1 + 1 / n)
    half = math.sqrt(special.stdtrit(n - 1, 0.975) ** 2 * spread + special.ndtri(0.975) ** 2 * noise)
    return float(centre - half), float(centre + half)


def agreement_interval(pairs: np.ndarray, documents: int) -> tuple[float, float]:
    """The 95% interval for the mean agreement of one more run with these.

    pairs: (runs, runs), the share of documents that two of them answer alike. Two runs agree as mean + a + b + rest,
    where a and b belong to one run each: of the effects of the known runs (least squares) comes that of a new one.
    """
    n = len(pairs)
    means = (pairs.sum(axis=1) - np.diag(pairs)) / (n - 1)
    centre = float(means.mean())
    # Laplace's estimate: runs that agree on every document may still differ on the next one
    share = (centre * documents + 1) / (documents + 2)
    return prediction_interval(centre, (means - centre) * (n - 1) / (n - 2), share * (1 - share) / documents)
