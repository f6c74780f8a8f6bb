"""Making runs: skip what is done, share the rest with other processes, store each as it ends.

A run is claimed in the store before it is made. A run that another process is making is left for
later, and is then done, or made here where the other process ended without a result.
"""

from __future__ import annotations

import logging
import re
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
import transformers

from biobench.core.machine import is_out_of_memory, peak_memory_bytes, reset_peak_memory
from biobench.core.packages import from_package
from biobench.core.progress import QUIET, ProgressNote
from biobench.core.stop import STOP, RunStoppedError
from biobench.core.text import first_line
from biobench.errors import BioBenchError, ModelError, TrainingError
from biobench.finetune.engine import LoadedEncoder, finetune, load_encoder
from biobench.finetune.kept import save_finetuned
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.prepare import Prepared, prepare
from biobench.finetune.ready import answer, load_ready
from biobench.finetune.savepoint import EVERY_SECONDS, NOT_KEPT, Savepoint
from biobench.finetune.tuning import tuned
from biobench.models.loading import Checkpoint, check_unchanged, load_tokenizer, window
from biobench.runs.gates import ask_gate
from biobench.runs.plan import Item, RunPlan, changes_of, task_fields
from biobench.runs.provenance import contamination, provenance
from biobench.runs.result import Reporter, RunResult, of_record
from biobench.schema.record import Cost, Origin, Resampling, RunRecord
from biobench.score import scored
from biobench.store import Store
from biobench.store.claims import Claim, ReplacedError, read_heartbeat

_POLL_SECONDS = 0.5
NONE_MADE: Mapping[str, RunResult] = {}


class RunContext:
    """What the runs of one process share: the plan, its store, the last encoder and the last
    encoded task.

    One encoder and one task are in memory at a time.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.store = Store(plan.request.results_dir)
        self._loaded: LoadedEncoder | None = None
        self._prepared: tuple[tuple[str, str, int], Prepared] | None = None

    def encoder(self, checkpoint: Checkpoint, step: Progress) -> LoadedEncoder:
        """The checkpoint's encoder, loaded once."""
        if self._loaded is None or self._loaded.checkpoint.hash != checkpoint.hash:
            step(0, 0, ProgressNote("loading model"))
            self._loaded = None
            self._loaded = load_encoder(checkpoint, self.plan.device)
        return self._loaded

    def prepared(self, item: Item, step: Progress) -> Prepared:
        """The item's task encoded for its checkpoint, once for all seeds. Raises ModelError."""
        if self._prepared is None or self._prepared[0] != item.group:
            step(0, 0, "encoding texts")
            self._prepared = None
            spec = item.task.spec
            tokenizer = load_tokenizer(item.checkpoint)
            size = window(tokenizer, item.checkpoint.config, spec.protocol.max_length)
            self._prepared = item.group, prepare(spec, item.task.data, tokenizer, size)
        return self._prepared[1]


def execute(
    context: RunContext,
    items: Sequence[Item],
    reporter: Reporter,
    made: Mapping[str, RunResult] = NONE_MADE,
    *,
    aloud: bool = True,
) -> Iterator[RunResult]:
    """Make these runs of the context's plan; yields one result a run, as each ends.

    made: results by key of workers, which the reporter has heard of. aloud: say that runs of other
    processes are waited for. Raises RunStoppedError where a signal asks, and BioBenchError.
    """
    plan = context.plan
    waiting = list(items)
    position = 0
    next_line = 0.0 if aloud else float("inf")
    while waiting:
        elsewhere: list[Item] = []  # by other processes
        for item in waiting:
            if STOP():
                raise RunStoppedError
            finished = made.get(item.key)
            if finished is None:
                finished = _one(item, context, reporter, position + 1, len(items))
                if finished is None:
                    elsewhere.append(item)
                    continue
                finished = plan.told_apart(finished)
                reporter.finish(finished)
            position += 1
            yield finished
        if not plan.request.wait and len(elsewhere) == len(waiting):
            for item in elsewhere:
                line = item.result(plan.request, "skipped", "another process makes it")
                yield plan.told_apart(line)
            return
        waiting = elsewhere
        if waiting and plan.request.wait:
            next_line = _wait(waiting, context.store, next_line)


def _wait(items: Sequence[Item], store: Store, next_line: float) -> float:
    """Wait a little for these runs, and say where the first is; when the next line is due, in
    monotonic seconds.
    """
    if time.monotonic() >= next_line:
        next_line = time.monotonic() + QUIET
        item = items[0]
        runs = f"waiting for runs of other processes ({len(items)})"
        line = f"{runs}: {item.task.id}, seed {item.seed}"
        beat = read_heartbeat(store.heartbeat_path(item.task.id, item.key))
        if beat is not None:
            line += f" on {beat.host} (pid {beat.pid}), step {beat.step}/{beat.steps}"
        logging.getLogger("biobench").warning(line)
    time.sleep(_POLL_SECONDS)
    return next_line


def _stored(item: Item, context: RunContext) -> RunResult | None:
    """The line of a run that is stored. With --force only what this command made counts."""
    plan = context.plan
    store = context.store
    record = store.get(item.task.id, item.key)
    is_of_this_command = store.command_of(item.task.id, item.key) == plan.request.started
    if record is None or (plan.request.force and not is_of_this_command):
        return None
    reason = "the same run is stored already"
    if is_of_this_command:
        reason = "another process made it meanwhile"
    if record.model.id != item.checkpoint.id:
        reason += f", under the name '{record.model.id}'"
    folder = plan.request.keep_model
    if folder is not None and not (Path(folder) / kept_name(item)).is_dir():
        reason += ", but its model was not kept; --force makes it again and keeps it"
    return of_record(store, record, "skipped", reason)


def _one(
    item: Item, context: RunContext, reporter: Reporter, position: int, total: int
) -> RunResult | None:
    """The item's result, or None while another process is making it."""
    plan = context.plan
    store = context.store
    task = item.task.id
    result = _stored(item, context)
    if result is not None:
        return result
    with store.claim(task, item.key) as claim:
        if claim is None:
            return None
        result = _stored(item, context)
        if result is not None:
            return result
        reason = store.failure(task, item.key, plan.request.started)
        if reason is not None:
            return item.result(plan.request, "failed", reason)
        name = plan.name_of(item)

        def step(done: int, total: int, what: str) -> None:
            claim.moved(done, total)
            reporter.step(name, done, total, what)

        reporter.start(name, position, total)
        ask_gate(plan, task, reporter)
        try:
            result = _make(item, context, step, claim)
        except ReplacedError:
            return None  # the process that took the run over stores it
        if result.status == "failed":
            store.note_failure(task, item.key, plan.request.started, result.reason or "")
        return result


def _make(item: Item, context: RunContext, step: Progress, claim: Claim) -> RunResult:
    plan = context.plan
    store = context.store
    request = context.plan.request
    began = time.perf_counter()
    threads = torch.get_num_threads()
    quiet = item.task.spec.access == "agreement"
    keep: Savepoint = NOT_KEPT
    # what a run learns from text under an agreement stays in the data's folder
    if not quiet:
        keep = Savepoint(
            store.state_path(item.task.id, item.key),
            plan.device,
            every=EVERY_SECONDS if request.save_every is None else request.save_every,
            command=request.started,
            anew=request.force,
        )
    stopped = True  # only a run that was stopped is to be resumed
    try:
        reset_peak_memory(plan.device)
        prepared, parameters, outcome = _outcome(item, context, step, keep)
        wall = outcome.earlier_seconds + time.perf_counter() - began
        record = _record(item, plan, parameters, prepared, outcome, wall)
        record = scored(record, prepared.test.documents, outcome.predictions, prepared.parts)
        model = _keep_model(plan, item, prepared, outcome)
        stored = store.save(record, prepared.test.documents, outcome.predictions, claim)
        store.note_command(item.task.id, item.key, request.started)
        stopped = False
        return replace(of_record(store, stored, "done"), model_folder=model)
    except (TrainingError, ModelError) as error:
        stopped = False
        return item.result(request, "failed", f"{error}; {error.hint}")
    except BioBenchError:
        raise
    except _BROKEN as error:
        stopped = False
        return item.result(request, "failed", _why_broken(error, quiet=quiet))
    finally:
        if not stopped:
            keep.remove()
        torch.set_num_threads(threads)  # a resumed run has the number of its first process


def _outcome(
    item: Item, context: RunContext, step: Progress, keep: Savepoint
) -> tuple[Prepared, int, Outcome]:
    """The encoded task, the encoder's parameters, and what training, or the checkpoint's own head,
    answers.
    """
    precision = item.task.precision
    if item.ready is None:
        loaded = context.encoder(item.checkpoint, step)
        prepared = context.prepared(item, step)
        check_unchanged(item.checkpoint)
        train = tuned if item.track == "tuned" else finetune
        outcome = train(loaded, prepared, item.seed, precision, step, keep)
        return prepared, loaded.parameters, outcome
    prepared = context.prepared(item, step)
    head = item.ready.head
    matched = item.ready.matched
    network = load_ready(item.checkpoint, head, prepared, matched, context.plan.device)
    check_unchanged(item.checkpoint)
    outcome = answer(network, prepared, precision, step, lenient=item.ready.never_begins)
    parameters = sum(map(torch.numel, network.encoder.parameters()))
    return prepared, parameters, outcome


_BROKEN = (
    RuntimeError,
    MemoryError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    AssertionError,
)
"""What a checkpoint raises that breaks in a way nobody foresaw: the other runs must not die with
it.
"""


def _why_broken(error: Exception, *, quiet: bool) -> str:
    """What broke a run, and what to do. quiet: the message may quote data under an agreement, of
    which no word leaves its folder.
    """
    if is_out_of_memory(error):
        remedy = "make fewer runs at once, or use a machine or container with more memory"
        return f"memory does not suffice for this run; {remedy}"
    if from_package(error, transformers):
        library = f"transformers {transformers.__version__} itself cannot run this model"
        cause = "" if quiet else f": {first_line(error)}"
        return f"{library}{cause}; try another version of transformers, or another encoder"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    message = "" if quiet else f": {error}"
    return f"{type(error).__name__}{message} ({frame.filename}:{frame.lineno})"


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


def _record(
    item: Item, plan: RunPlan, parameters: int, prepared: Prepared, outcome: Outcome, seconds: float
) -> RunRecord:
    task = item.task
    data = prepared.data
    request = plan.request
    resampling = None
    if task.resampled is not None:
        resampling = Resampling(
            fold=task.loaded.fold, folds=task.resampled.fold_files, train_documents=len(data.train)
        )
    speed = outcome.train_tokens / outcome.train_seconds if outcome.train_seconds else 0
    model = item.checkpoint.identity(parameters, changes_of(item.checkpoint, task.spec))
    origin: Origin = "run"
    label_map: dict[str, str] = {}
    if item.ready is not None:
        origin = "checkpoint"
        label_map.update(item.ready.matched)
        notes = (*model.notes, *filter(None, [item.ready.note]))
        model = model.model_copy(update={"notes": notes})
    return RunRecord(
        key=item.key,
        model=model,
        origin=origin,
        label_map=label_map,
        seed=item.seed,
        resampling=resampling,
        split=request.split,
        track=request.track,
        limit=request.limit,
        train_documents=len(prepared.train.documents),
        training=outcome.record,
        cost=Cost(
            seconds=round(seconds, 3),
            train_seconds=round(outcome.train_seconds, 3),
            evaluation_seconds=round(outcome.evaluation_seconds, 3),
            peak_memory_bytes=peak_memory_bytes(plan.device),
            train_tokens_per_second=round(speed, 1),
        ),
        windows=prepared.windows,
        provenance=provenance(plan.device),
        contamination=contamination(
            item.checkpoint.folder, item.checkpoint.hash, task.id, data.hash, request.results_dir
        ),
        **task_fields(task.loaded, data, task.hash),
    )
