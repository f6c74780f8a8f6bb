"""`biobench reproduce`: a stored run made again from its record; does it agree?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from biobench.errors import BioBenchError, ModelError, StoreError, UsageError
from biobench.runs.options import RunRequest
from biobench.runs.result import Reporter
from biobench.schema.document import Prediction
from biobench.schema.kind import get_metric
from biobench.schema.record import ENGINE_VERSION, Provenance, RunRecord
from biobench.score import counts
from biobench.stats import Counts, document_interval
from biobench.store import Store

if TYPE_CHECKING:
    from biobench.runs.plan import Item

Agreement = Literal["identical", "within", "outside", "not run"]
"""identical: the same predictions, bit for bit, and the same score. within: the score lies in the
stored score's 95% interval over test documents. outside: it does not, or the record's score is not
that of its predictions. not run: checkpoint, task, data, engine or precision are missing, damaged
or not those of the record, or the run failed.
"""


class Reproduction(NamedTuple):
    """What became of one record. stored, again: the primary score. low, high: its interval, None
    where the record's gold is not stored. same: share of test documents whose predictions are
    equal. reason: why it does not agree.
    machine: in what the machine of the record and this one differ, as texts `threads 1 then, 2
    now`.
    """

    model: str
    task: str
    seed: int
    metric: str
    stored: float
    agreement: Agreement = "not run"
    reason: str | None = None
    again: float | None = None
    low: float | None = None
    high: float | None = None
    same: float | None = None
    machine: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the record stands."""
        return self.agreement in ("identical", "within")


@dataclass(frozen=True, slots=True)
class Again:
    """How runs are made again, and where.

    how: options of the new runs; what its `results_dir` holds is not run twice, and its tasks are
    YAML files of those that are not shipped. models: a folder of checkpoints by the records' names,
    or one checkpoint; None: the hub, by id and revision. Raises UsageError where `models`,
    `data_dir` or `device` is wrong for all runs.
    """

    how: RunRequest
    models: Path | None = None

    def __post_init__(self) -> None:
        from biobench.core.machine import resolve_device

        for option, folder in (("--models", self.models), ("--data-dir", self.how.data_dir)):
            if folder is not None and not Path(folder).is_dir():
                raise UsageError(
                    f"{option} {folder}: there is no such folder", hint="give an existing folder"
                )
        resolve_device(self.how.device)

    def model_of(self, record: RunRecord) -> str:
        """What `biobench run` is given: a folder, or the hub's id and revision.

        Raises UsageError for a record that names a folder elsewhere as its model.
        """
        if self.models is not None and (self.models / "config.json").is_file():
            return str(self.models.absolute())
        name = record.model.source or record.model.id
        revision = record.model.revision
        path = Path(name)
        if path.is_absolute() or ".." in path.parts or name.startswith("~"):
            message = f"the record names '{name[:80]}' as its model, which is no id of the hub"
            raise UsageError(message, hint="name the checkpoint's folder with --models")
        if self.models is not None:
            # `models/name` would be an id of the hub where there is no such folder
            return str(self.models.absolute() / name)
        return name if revision is None else f"{name}@{revision}"

    def run(self, record: RunRecord, seed: int) -> tuple[RunRecord, list[Prediction]]:
        """A run of `seed` under the record's conditions, and its predictions.

        Raises UsageError where it fails or would be another run, and BioBenchError where it cannot
        be planned.
        """
        from biobench.data.catalog import load_task, spec_paths
        from biobench.runs.api import run_plan
        from biobench.runs.plan import make_plan

        specs = {load_task(path).id: path for path in self.how.tasks}
        task = record.task.id
        if task not in specs and task not in spec_paths():
            raise UsageError(
                f"task {task} is not shipped", hint=f"name its spec with --task {task}.yaml"
            )
        request = replace(
            self.how,
            model=self.model_of(record),
            tasks=(specs.get(task, task),),
            seeds=seed,
            overrides=record.overrides,
            limit=record.limit,
            track=record.track,
            no_test=record.split == "validation",
        )
        plan = make_plan(request)
        item = plan.items[0]
        _check_same_run(record, item, same_seed=seed == record.seed)
        (result,) = run_plan(plan, Reporter())
        store = Store(self.how.results_dir)
        new = store.get(item.task.id, item.key)
        if new is None:
            raise UsageError(f"the run failed: {result.reason}", hint="see `biobench status`")
        _, answers = store.stored_predictions(new)
        return new, answers


def _check_same_run(record: RunRecord, item: Item, *, same_seed: bool) -> None:
    """Raise UsageError where a planned run has other conditions than the record."""
    conditions = [
        ("weights", record.model.hash, item.checkpoint.hash),
        ("spec", record.task.hash, item.task.hash),
        ("data", record.task.data_hash, item.task.data.hash),
        ("precision", record.training.precision, item.task.precision),
        ("engine", str(record.engine_version), str(ENGINE_VERSION)),
    ]
    changed = [
        f"{name} {planned[:12]} instead of {stored[:12]}"
        for name, stored, planned in conditions
        if stored != planned
    ]
    if same_seed and not changed and record.key != item.key:
        # no single one: the record was written by hand, or another program decided its key
        changed.append(f"key {item.key[:12]} instead of {record.key[:12]}")
    if changed:
        raise UsageError(
            f"this would be another run of {record.task.id}: {', '.join(changed)}",
            hint="name its checkpoint with --models, on a machine of its precision",
        )


def stored_runs(path: Path) -> tuple[Store, list[RunRecord]]:
    """The store and its records below `path`: a record's JSON file, a task's folder, `runs/` or a
    results folder.

    In order of task, model and seed. Raises UsageError where there is none, StoreError where one of
    them is damaged.
    """
    named = path.absolute()
    root = next((p for p in (named, *named.parents) if (p / "runs").is_dir()), named)
    store = Store(root)
    records = []
    for file in root.glob("runs/*/[!.]*.json"):
        if file.is_relative_to(named):
            record = store.get(file.parent.name, file.stem)
            if record is not None:
                records.append(record)
    if not records:
        hint = "give results/runs/TASK/KEY.json, or a results folder"
        raise UsageError(f"{path}: there is no record here", hint=hint)
    return store, sorted(records, key=lambda r: (r.task.id, r.model.id, r.seed))


def reproduce(store: Store, records: Sequence[RunRecord], again: Again) -> Iterator[Reproduction]:
    """Make each record's run again and compare.

    A record whose checkpoint, data or spec is missing does not stop the others. Raises UsageError
    where the new runs would be stored in the records' own folder.
    """
    if Path(again.how.results_dir).absolute() == store.root.absolute():
        message = (
            f"{again.how.results_dir}: the records lie here, so their runs would not be made again"
        )
        raise UsageError(message, hint="give another --results-dir")
    for record in records:
        row = _not_run(store, record)
        try:
            yield _repeated(row, store, record, again)
        except BioBenchError as error:
            hint = error.hint
            if again.models is None and isinstance(error, ModelError):
                hint = "name its folder with --models"
            yield row._replace(reason=f"{error}; {hint}")


def _not_run(store: Store, record: RunRecord) -> Reproduction:
    """What the record says of its run. Raises StoreError where its primary score is missing."""
    task = record.task
    if task.primary not in record.scores:
        message = f"the record of {task.id} has no score '{task.primary[:80]}', its primary one"
        raise StoreError(message, hint="repeat the run", file=store.path_of(record))
    score = record.scores[task.primary]
    return Reproduction(record.model.id, task.id, record.seed, task.primary, score)


def _repeated(row: Reproduction, store: Store, record: RunRecord, again: Again) -> Reproduction:
    """The row with what a repeated run adds. Raises BioBenchError where it cannot be made."""
    if record.origin == "checkpoint":
        raise UsageError(
            "nothing was trained", hint="`biobench run --track ready --force` repeats it"
        )
    if record.origin != "run":
        raise UsageError("its predictions were made elsewhere", hint="`biobench score` reads them")
    _, stored_answers = store.stored_predictions(record)
    interval = _interval(store, record)
    repeated, answers = again.run(record, record.seed)
    score = repeated.scores[row.metric]
    row = row._replace(
        again=score,
        same=alike(record, stored_answers, answers),
        machine=_machine_changes(record.provenance, repeated.provenance),
    )
    low = row.stored
    high = row.stored
    if interval is not None:
        low, high = interval
        row = row._replace(low=low, high=high)
    if stored_answers == answers:
        if score == row.stored:
            return row._replace(agreement="identical")
        reason = "the predictions are the same, the record's score is not theirs"
        return row._replace(agreement="outside", reason=reason)
    return row._replace(agreement="within" if low <= score <= high else "outside")


def _machine_changes(stored: Provenance, repeated: Provenance) -> tuple[str, ...]:
    """In what two machines differ, as texts ``threads 1 then, 2 now``."""
    old = {"device": stored.device, "threads": stored.threads, **stored.packages}
    new = {"device": repeated.device, "threads": repeated.threads, **repeated.packages}
    changed = [name for name, value in old.items() if value != new.get(name)]
    return tuple(f"{name} {old[name]} then, {new.get(name)} now" for name in changed)


def _interval(store: Store, record: RunRecord) -> tuple[float, float] | None:
    """The 95% interval of the stored score over test documents; None where it cannot be computed
    from the store.
    """
    task = record.task
    metric = get_metric(task.primary)
    if record.redacted or metric.average is None or metric.positive or metric.share:
        return None
    gold, predictions = store.load_predictions(record, None)
    counted = counts(
        type=task.type,
        labels=task.labels,
        gold=gold,
        predictions=predictions,
        match=metric.match,
    )
    evaluated = np.isin(counted.labels, task.gold_labels)
    tp = counted.tp[None]
    fp = counted.fp[None]
    fn = counted.fn[None]
    table = Counts.of(tp, fp, fn, evaluated)
    interval = document_interval(table, metric.average)
    return None if interval is None else (interval.low, interval.high)


def alike(
    record: RunRecord, predictions: Sequence[Prediction], repeated: Sequence[Prediction]
) -> float:
    """Share of test documents that both predict alike, whatever the probabilities; 0 for other
    documents.
    """
    answers = _answers(record, predictions)
    others = _answers(record, repeated)
    if not answers or answers.keys() != others.keys():
        return 0.0
    equal = sum(answer == others[document] for document, answer in answers.items())
    return equal / len(answers)


def _answers(record: RunRecord, predictions: Sequence[Prediction]) -> dict[str, object]:
    """Document -> what is predicted of it; without labels the numbers are the answer."""
    answers: dict[str, object] = {}
    for prediction in predictions:
        answer: object = prediction
        if record.task.labels:
            answer = (prediction.labels, prediction.spans)
        answers[prediction.document] = answer
    return answers
