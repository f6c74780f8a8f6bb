"""Making the runs of a plan: skip what is done, share the rest with other processes, store each as it ends.

Runs are ordered so that a checkpoint is loaded once and a task is encoded once per checkpoint. A run that
another process is making is left for later, and is then done or made here.
"""

from __future__ import annotations

import logging
import re
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import torch

from biobench.core.memory import is_out_of_memory, peak_memory_bytes, reset_peak_memory, within_the_limit
from biobench.core.progress import QUIET
from biobench.core.stop import STOP, RunStoppedError
from biobench.errors import BioBenchError, ModelError, TrainingError
from biobench.finetune.engine import LoadedEncoder, finetune
from biobench.finetune.kept import evaluate, load_ready, save_finetuned
from biobench.finetune.loop import MemoryShortError, Outcome, Progress
from biobench.finetune.network import settled_precision
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import EVERY_SECONDS, Savepoint
from biobench.finetune.tuning import tuned
from biobench.models.loading import check_unchanged
from biobench.runs.contamination import contamination
from biobench.runs.energy import metered
from biobench.runs.plan import Item, RunPlan, TaskEntry, identity_of
from biobench.runs.provenance import provenance
from biobench.runs.result import RunName, RunResult, of_record, without_record
from biobench.runs.workshop import Workshop
from biobench.schema.document import TaskData
from biobench.schema.record import Cost, Resampling, RunRecord
from biobench.score import scored
from biobench.store import Store
from biobench.store.claims import Claim, read_heartbeat

_POLL_SECONDS = 0.5
_MORE_MEMORY = "use a machine, or a container, with more memory, or a smaller model"


class Reporter(Protocol):
    """What the command line shows while runs are made; several may be under way at once."""

    def start(self, run: RunName, position: int, total: int) -> None:
        """A run begins, the `position`-th (from 1) of `total`."""

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """A run moved on to step `done` of `total`."""

    def finish(self, result: RunResult) -> None:
        """A run ended, was skipped, failed, or had no data."""


class Silent:
    """Says nothing."""

    def start(self, run: RunName, position: int, total: int) -> None:
        """Nothing."""

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """Nothing."""

    def finish(self, result: RunResult) -> None:
        """Nothing."""


def execute(
    plan: RunPlan,
    reporter: Reporter,
    known: Mapping[str, RunResult] | None = None,
    workshop: Workshop | None = None,
    *,
    one_of_several: bool = False,
) -> Iterator[RunResult]:
    """Make every run of the plan; yields one result a run, as each ends. Raises RunStoppedError where a signal asks.

    known: results by key that workers have ended with and the reporter has heard of; they stand. workshop: of the plan
    that this one is a part of, so that what one part has loaded serves the next. one_of_several: the process is a
    worker beside others, which does not say that it waits for them.
    """
    known = known or {}
    for result in without_data(plan):
        reporter.finish(result)
        yield result
    with Workshop(plan) if workshop is None else nullcontext(workshop) as shared:
        yield from _walk(plan, shared, reporter, known, float("inf") if one_of_several else 0.0)


def _walk(
    plan: RunPlan, workshop: Workshop, reporter: Reporter, known: Mapping[str, RunResult], tell: float
) -> Iterator[RunResult]:
    """tell: when it is to be said next that runs of other processes are waited for, by the monotonic clock."""
    waiting = list(plan.items)
    position, total = 0, len(waiting)
    while waiting:
        left: list[Item] = []
        for item in waiting:
            if STOP():
                raise RunStoppedError
            finished = known.get(item.key) or _one(item, workshop, reporter, position + 1, total)
            if finished is None:
                left.append(item)
                continue
            position += 1
            if item.key not in known:
                reporter.finish(finished)
            yield finished
        waiting = left
        if waiting:
            if time.monotonic() >= tell:
                tell = time.monotonic() + QUIET
                logging.getLogger("biobench").warning(_waiting_for(waiting, workshop.store))
            time.sleep(_POLL_SECONDS)


def _waiting_for(items: Sequence[Item], store: Store) -> str:
    """How many runs other processes are making, and where the first of them is."""
    first = items[0]
    count = "a run that another process makes" if len(items) == 1 else f"{len(items)} runs that other processes make"
    line = f"waiting for {count}: {first.task.id}, seed {first.seed}"
    beat = read_heartbeat(store.heartbeat_path(first.task.id, first.key))
    if beat is None:
        return line
    where = f"{line} on {beat.host} (pid {beat.pid}{f', job {beat.job}' if beat.job else ''})"
    return where + (f", step {beat.step}/{beat.steps}" if beat.steps else "")


def without_data(plan: RunPlan) -> list[RunResult]:
    """One `unavailable` line per model and task without available data."""
    return [
        without_record(
            plan.request,
            entry,
            checkpoint.id,
            "unavailable",
            reason=f"{entry.unavailable}; {entry.unavailable.hint}",
        )
        for checkpoint in plan.checkpoints
        for entry in plan.tasks
        if entry.unavailable is not None
    ]


def _stored(item: Item, workshop: Workshop) -> RunResult | None:
    """The line of a run that is stored. With --force only what was made since this command began counts."""
    plan, store = workshop.plan, workshop.store
    record = store.get(item.task.id, item.key)
    if record is None:
        return None
    fresh = workshop.fresh(item)
    if plan.request.force and not fresh:
        return None
    path = str(store.path_of(record))
    if fresh and plan.workers > 1:
        return of_record(record, "done", path)
    reason = "another process made it meanwhile" if fresh else "the same run is stored already"
    if record.model.id != item.checkpoint.id:
        record, remark = _renamed(record, item, store, asked=bool(plan.request.name))
        reason += remark
    folder = plan.request.keep_model
    if folder is not None and not (Path(folder) / kept_name(item)).is_dir():
        reason += ", but its model was not kept; --force makes it again and keeps it"
    return of_record(record, "skipped", path, reason=reason)


def _renamed(record: RunRecord, item: Item, store: Store, *, asked: bool) -> tuple[RunRecord, str]:
    """A stored run of the same files under another name; where a name is asked for, the record takes it."""
    if not asked:
        return record, f", under the name '{record.model.id}'"
    model = record.model.model_copy(
        update={"id": item.checkpoint.id, "source": item.checkpoint.source or item.checkpoint.id}
    )
    changed = record.model_copy(update={"model": model})
    store.update(changed)
    return changed, f"; it was called '{record.model.id}' and now '{model.id}'"


def _one(item: Item, workshop: Workshop, reporter: Reporter, position: int, total: int) -> RunResult | None:
    """The item's result, or None while another process is making it."""
    plan, store = workshop.plan, workshop.store
    result = _stored(item, workshop)
    if result is not None:
        return result
    with store.claim(item.task.id, item.key) as claim:
        if claim is None:
            return None
        result = _stored(item, workshop)
        if result is not None:
            return result
        reason = store.failure(item.task.id, item.key, plan.request.started)
        if reason is not None:
            return _failed(item, plan, reason)
        name = RunName(item.key, item.checkpoint.id, item.task.id, item.seed)
        reporter.start(name, position, total)
        result = _make(item, workshop, partial(_step, claim, reporter, name))
        if result.status == "failed":
            store.note_failure(item.task.id, item.key, plan.request.started, result.reason or "")
        return result


def _step(claim: Claim, reporter: Reporter, name: RunName, done: int, total: int, what: str) -> None:
    claim.moved(done, total)
    reporter.step(name, done, total, what)


def _outcome(
    item: Item, plan: RunPlan, loaded: LoadedEncoder, prepared: Prepared, step: Progress, keep: Savepoint | None
) -> Outcome:
    """The run itself: the network trained and its predictions, or those of a model that is trained already."""
    if plan.request.no_training:
        ready = load_ready(item.checkpoint, prepared, plan.label_map, plan.device)
        precision, _ = settled_precision(loaded.encoder, item.task.precision)
        return evaluate(ready, prepared, precision, step)
    train = tuned if plan.request.track == "tuned" else finetune
    return train(loaded, prepared, item.seed, item.task.precision, step, keep)


def _make(item: Item, workshop: Workshop, step: Progress) -> RunResult:
    plan, store = workshop.plan, workshop.store
    began, threads = time.perf_counter(), torch.get_num_threads()
    keep = _savepoint(item, plan, store)
    try:
        reset_peak_memory(plan.device)
        with within_the_limit(plan.device, plan.sharing):
            loaded = workshop.encoder(item.checkpoint)
            prepared = workshop.prepared(item)
            check_unchanged(item.checkpoint)
            with metered(plan.request.energy) as meter:
                outcome = _outcome(item, plan, loaded, prepared, step, keep)
        seconds = outcome.earlier_seconds + time.perf_counter() - began
        energy = meter.kwh if outcome.record.resumed == 0 else None
        record = _record(
            item, workshop, loaded=loaded, prepared=prepared, outcome=outcome, seconds=seconds, energy_kwh=energy
        )
        record = scored(record, prepared.test.documents, outcome.predictions)
        model = _keep_model(plan, item, prepared, outcome)
        stored = store.save(record, prepared.test.documents, outcome.predictions)
        store.note_command(item.task.id, item.key, plan.request.started)
        _forget(keep)
    except (TrainingError, ModelError) as error:
        _forget(keep)
        if plan.sharing > 1 and (isinstance(error, MemoryShortError) or is_out_of_memory(error.__cause__)):
            raise  # not the run's fault: it is left to be made alone
        return _failed(item, plan, f"{error}; {error.hint}")
    except (RuntimeError, MemoryError, ValueError, TypeError, IndexError, KeyError, AssertionError) as error:
        if isinstance(error, BioBenchError):
            raise
        _forget(keep)
        if is_out_of_memory(error):
            if plan.sharing > 1:
                raise MemoryShortError("memory does not suffice beside other runs", hint="run it alone") from error
            return _failed(item, plan, f"memory does not suffice for this model; {_MORE_MEMORY}")
        # A checkpoint can break in ways nobody foresaw; the other runs of the plan must not die with it.
        where = traceback.extract_tb(error.__traceback__)[-1]
        # The message may quote the data; of agreement-bound data no word leaves its folder.
        message = "" if item.task.loaded.spec.access == "agreement" else f": {error}"
        return _failed(item, plan, f"{type(error).__name__}{message} ({where.filename}:{where.lineno})")
    finally:
        torch.set_num_threads(threads)  # a resumed run has the number of its first process
    return replace(of_record(stored, "done", str(store.path_of(stored))), model_folder=model)


def _keep_model(plan: RunPlan, item: Item, prepared: Prepared, outcome: Outcome) -> str | None:
    """Save the fine-tuned model where that is asked for; its folder."""
    if plan.request.keep_model is None:
        return None
    if outcome.network is None:
        raise TrainingError(
            "--keep-model: a probe on a frozen encoder leaves no fine-tuned model",
            hint="leave --keep-model out, or fine-tune: --set training.encoder=trained",
        )
    folder = Path(plan.request.keep_model) / kept_name(item)
    save_finetuned(outcome.network, prepared, item.checkpoint, folder)
    return str(folder)


def kept_name(item: Item) -> str:
    """The folder of a kept model: task, model, seed, and the run's key in brief."""
    model = re.sub(r"[^0-9A-Za-z._-]+", "-", item.checkpoint.id)
    return f"{item.task.id}-{model}-seed{item.seed}-{item.key[:8]}"


def _forget(keep: Savepoint | None) -> None:
    """A run that has ended, well or not, is not to be resumed."""
    if keep is not None:
        keep.remove()


def _savepoint(item: Item, plan: RunPlan, store: Store) -> Savepoint | None:
    """Where the run keeps its state; nowhere if it learns from text under an agreement, which stays in its folder."""
    if item.task.loaded.spec.access == "agreement":
        return None
    path = store.state_path(item.task.id, item.key)
    every = plan.request.save_every
    seconds = EVERY_SECONDS if every is None else every
    return Savepoint(path, plan.device, every=seconds, command=plan.request.started, anew=plan.request.force)


def _resampling(entry: TaskEntry, data: TaskData) -> Resampling | None:
    if entry.resampled is None:
        return None
    return Resampling(fold=entry.loaded.fold, folds=entry.resampled.count, train_documents=len(data.train))


def _failed(item: Item, plan: RunPlan, reason: str) -> RunResult:
    reason = " ".join(reason.split())
    return without_record(
        plan.request, item.task, item.checkpoint.id, "failed", seed=item.seed, reason=reason, key=item.key
    )


def _record(
    item: Item,
    workshop: Workshop,
    *,
    loaded: LoadedEncoder,
    prepared: Prepared,
    outcome: Outcome,
    seconds: float,
    energy_kwh: float | None,
) -> RunRecord:
    plan, spec, data = workshop.plan, item.task.loaded.spec, prepared.data
    return RunRecord(
        key=item.key,
        model=item.checkpoint.identity(loaded.parameters),
        task=identity_of(item.task.loaded, data, item.task.hash),
        seed=item.seed,
        resampling=_resampling(item.task, data),
        origin="checkpoint" if plan.request.no_training else "run",
        split="validation" if plan.request.no_test else "test",
        label_map=plan.label_map,
        track=plan.request.track,
        limit=plan.request.limit,
        protocol=item.task.identity,
        overrides=item.task.loaded.overrides,
        training=outcome.record,
        cost=Cost(
            seconds=round(seconds, 3),
            train_seconds=round(outcome.train_seconds, 3),
            evaluation_seconds=round(outcome.evaluation_seconds, 3),
            peak_memory_bytes=peak_memory_bytes(plan.device),
            train_tokens_per_second=round(outcome.train_tokens / outcome.train_seconds, 1)
            if outcome.train_seconds
            else 0,
            energy_kwh=energy_kwh,
        ),
        windows=prepared.windows,
        provenance=provenance(plan.device),
        predictions="",
        predictions_sha256="",
        contamination=contamination(
            item.checkpoint.folder, item.checkpoint.hash, spec.id, data.hash, plan.request.results_dir
        ),
        unexpressed_gold=data.unexpressed,
        count_problems=tuple(data.count_problems),
        redacted=spec.access == "agreement",
    )
