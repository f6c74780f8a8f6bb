"""A pretraining run in one sitting: set up, train phase after phase, save, evaluate, export with
ledger and card.

`pretrain` -> `_setup` -> `_train_phase` for each phase -> `_finish`, with one `State`. A resume
sets up from the latest checkpoint and goes the same way, so its result is that of an uninterrupted
run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import Tensor
from torch.profiler import record_function
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.machine import peak_memory_bytes
from biobench.core.tokenizer import load_tokenizer
from biobench.errors import TrainingError
from trainer.corpus.builder import Texts
from trainer.corpus.shards import Corpus
from trainer.cost.flops import device_name, peak_of, phase_cost
from trainer.disk import write_json
from trainer.export import export, model_card
from trainer.ledger import FILE, Ledger, intact_ledger, read_ledger
from trainer.model import attention
from trainer.model.network import LABEL, model_from_config
from trainer.order import roll
from trainer.recipe.phases import Phase
from trainer.recipe.spec import Recipe
from trainer.train.batches import Batches, vocabulary_of
from trainer.train.checkpoint import (
    Progress,
    latest_checkpoint,
    prune,
    read_progress,
    save_checkpoint,
)
from trainer.train.distributed import StoppedError, World, determinism, fast_products
from trainer.train.optimizer import factor
from trainer.train.phase import PreparedPhase, prepare
from trainer.train.progress import Listener, Metrics, Tick
from trainer.train.record import phase_record, run_ledger
from trainer.train.run_folder import (
    START,
    Start,
    adopt,
    claimed,
    is_finished,
    open_run,
    phase_end_name,
    recipe_hash,
)
from trainer.train.start import base_model, begin, open_corpora, reporting, tokenizer_for
from trainer.train.step import held_out_loss, train_step


@dataclass(frozen=True)
class PretrainingResult:
    """A run's outcome. model: the exported encoder's folder; both None when a signal stopped it
    before.
    """

    status: Literal["done", "preempted"]
    out: Path
    model: Path | None
    ledger: Ledger | None


@dataclass
class State:
    """A run as one process holds it; the fields from `progress` on are set by `_setup`.

    exclude: texts that must not be trained on, in addition to the recipe's list. unguarded: for the
    ledger. built: corpora must be there already. progress: how far training is; saved: its
    checkpoint.
    """

    recipe: Recipe
    out: Path
    world: World
    listener: Listener
    stop: Callable[[], bool]
    exclude: Texts = ()
    unguarded: Sequence[str] | None = None
    built: bool = False
    progress: Progress = field(init=False)
    saved: Path | None = field(init=False)
    tokenizer: PreTrainedTokenizerBase = field(init=False)
    model: PreTrainedModel | None = field(init=False)
    corpora: list[Corpus] = field(init=False)
    start: Start = field(init=False)
    metrics: Metrics | None = None


def pretrain(run: State, *, resume: bool) -> PretrainingResult:
    """Train what is left of a run and export it; all processes call this. Called by
    `trainer.api.pretrain`.
    """
    preempted = PretrainingResult("preempted", run.out, None, None)
    with ExitStack() as stack:
        if run.world.first:
            stack.enter_context(claimed(run.out))
        stack.enter_context(attention.preferred(run.world.device))
        stack.enter_context(fast_products(run.world.device))
        stack.enter_context(determinism(run.recipe.engine.deterministic))
        try:
            _setup(run, resume=resume)
            training: PreparedPhase | None = None
            while run.progress.phase < len(run.recipe.phases):
                training = None  # before the next model is made
                training = _train_phase(run)
                if training is None:
                    return preempted
            return _finish(run, training)
        except StoppedError:
            return preempted


def _setup(run: State, *, resume: bool) -> None:
    """Open the folder, then tokenizer, model, corpora and the state that training resumes from.

    Raises UsageError, ModelError, StoreError and what the building of a corpus raises;
    StoppedError.
    """
    recipe, world, out = run.recipe, run.world, run.out
    world.same(recipe_hash(recipe), "the recipe")
    recipe.check_shares(world.size, "processes")
    if world.first:
        open_run(recipe, out, resume=resume)
    world.barrier()
    run.saved = latest_checkpoint(out)
    begun, maker = run.saved is not None, None
    if run.saved is not None:
        run.progress = read_progress(run.saved)
        run.tokenizer = load_tokenizer(out / START)
        run.model = model_from_config(out / START)
    else:
        run.progress = Progress(recipe_hash=recipe_hash(recipe))
        run.tokenizer, maker, *_ = tokenizer_for(recipe, run.exclude)
        run.model = base_model(recipe, run.tokenizer)

    say = reporting(run.listener, run.stop, recipe.total_steps)
    run.corpora = open_corpora(
        recipe, run.tokenizer, out.parent, world, exclude=run.exclude, built=run.built, say=say
    )
    run.start = begin(
        recipe, out, world, run.model, run.tokenizer, run.corpora, begun=begun, maker=maker
    )
    if not begun and recipe.reuse is not None:
        run.progress, run.saved = adopt(recipe, run.start)
    if world.size not in run.progress.world_sizes:
        run.progress.world_sizes += (world.size,)
    if world.first:
        run.metrics = Metrics(out, from_step=run.progress.total_steps)


def _train_phase(run: State) -> PreparedPhase | None:
    """Train the phase under way to its end, record, export and save it; None when a signal stopped
    the run.

    Raises TrainingError when the loss is not finite.
    """
    recipe, world, at = run.recipe, run.world, run.progress
    index = at.phase
    phase = recipe.phases[index]
    number = recipe.corpora.index(recipe.corpus_of(phase))
    data = run.corpora[number]
    model = run.model or model_from_config(run.out / START)
    run.model = None
    if at.step == 0:
        at.first_sample = at.drawn = _first_sample(recipe, at, phase)
        at.order_hash = ""
        at.targets = 0
    training = prepare(recipe, index, model, run.saved, world)
    fixed = world.device.type == "cuda" or recipe.engine.compiles("cpu")
    vocabulary = vocabulary_of(run.tokenizer, model.config.vocab_size)
    cost = phase_cost(model, phase, length=recipe.length_of(phase))
    with closing(Batches(recipe, index, data, vocabulary, world, fixed=fixed)) as batches:
        loss = _loop(run, phase, training, batches, cost)
        if loss is None:
            return None
        validation = _evaluate(run, training, batches)
    at.done += (phase_record(recipe, at, data, training, cost, loss, validation),)
    at.phase, at.step = index + 1, 0
    # exports come before the checkpoint that they are made of: a kill between the two repeats both
    if at.phase < len(recipe.phases):
        folder = run.out / "phases" / phase.name
        export(training.module.model, run.out / START, folder, world)
    _save(run, training, phase_end_name(index, phase.name))
    return training


def _first_sample(recipe: Recipe, at: Progress, phase: Phase) -> int:
    """The first window of a phase: the one after those that phases on the same text have read."""
    drawn = 0
    if phase.data == "continue":
        spec = recipe.corpus_of(phase)
        for earlier, done in zip(recipe.phases, at.done, strict=False):
            if recipe.corpus_of(earlier) == spec:
                drawn = done.last_sample + 1
    return drawn


def _loop(
    run: State, phase: Phase, training: PreparedPhase, batches: Batches, cost: float
) -> float | None:
    """The steps of a phase that are left: its last loss, or None when a signal stopped the run,
    which is saved.
    """
    recipe, world, at = run.recipe, run.world, run.progress
    steps, step_tokens = recipe.steps(phase), recipe.step_tokens_of(phase)
    save_every = recipe.every(recipe.checkpoints.every, phase)
    evaluate_every = recipe.every(recipe.logging.evaluate, phase)
    logged_at, logged_step = time.perf_counter(), at.step
    begun = logged_at - at.seconds
    loss = math.nan
    while at.step < steps:
        step = _step(run, training, batches, steps)
        at.seconds = time.perf_counter() - begun
        due, is_last = _is_due(save_every, at.step), at.step == steps
        stopping = step.stops or (world.size == 1 and run.stop())
        if _is_due(recipe.logging.every, at.step) or is_last or due or stopping:
            summed = world.total(step.loss.clone())
            loss = float(summed) / max(step.targets, 1)
            logged = time.perf_counter()
            tokens = (at.step - logged_step) * step_tokens
            speed = tokens / max(logged - logged_at, 1e-9)
            logged_at, logged_step = logged, at.step
            _report(run, phase, loss, step, speed=speed, cost=cost)
        if is_last:
            break
        paused = time.perf_counter()
        if _is_due(evaluate_every, at.step):
            _evaluate(run, training, batches)
        if due or stopping:
            name = f"step-{at.total_steps:08d}"
            # no export where a signal alone stops the run: it ends with the same exports
            if due and recipe.checkpoints.export:
                folder = run.out / "exports" / name
                export(training.module.model, run.out / START, folder, world)
            _save(run, training, name)
        logged_at += time.perf_counter() - paused  # the logged speed is that of training alone
        if stopping:
            return None
    return loss


def _is_due(every: int | None, step: int) -> bool:
    """Whether what is done after each `every` steps is done after `step`."""
    return every is not None and step % every == 0


@dataclass(frozen=True)
class _Step:
    """An optimiser step. loss: this process's summed loss; targets: of all processes.

    stops: whether another process was asked to stop before it.
    """

    loss: Tensor
    norm: Tensor
    targets: int
    rate: float
    stops: bool


def _step(run: State, training: PreparedPhase, batches: Batches, steps: int) -> _Step:
    """Train on the next batch, and count it. steps: of the phase."""
    recipe = run.recipe
    phase = batches.phase
    at = run.progress
    step_tokens = recipe.step_tokens_of(phase)
    rate = recipe.optimizer.learning_rate * phase.schedule.peak
    rate *= factor(phase, at.step, steps=steps, step_tokens=step_tokens)
    with record_function(f"{LABEL}data"):
        batch = batches.at(at.drawn, prefetch=at.step + 1 < steps)
    # other processes' wish to stop travels with the targets and is met a step later
    targets, stops = run.world.sums(batch.targets, int(run.world.size > 1 and run.stop()))
    loss, norm = train_step(
        training, batches, batch, targets=targets, rate=rate, number=at.total_steps
    )
    at.step += 1
    at.drawn += batches.batch.sequences
    at.order_hash = roll(at.order_hash, batch.indices)
    at.targets += targets
    at.total_steps += 1
    at.total_tokens += step_tokens
    return _Step(loss, norm, targets, rate, stops > 0)


def _report(
    run: State,
    phase: Phase,
    loss: float,
    step: _Step,
    *,
    speed: float,
    cost: float,
) -> None:
    """Report a step on the display and in the metrics.

    loss: mean over targets; speed: tokens a second of all processes; cost: FLOPs a token. Raises
    TrainingError when the loss or the gradient is not finite.
    """
    recipe = run.recipe
    at = run.progress
    device = run.world.device
    norm = float(step.norm)
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise TrainingError(
            f"the loss of phase '{phase.name}' is not finite at step {at.step}",
            hint="continue from the last checkpoint with a smaller rate or engine.precision=fp32",
        )
    stage = f"phase {at.phase + 1}/{len(recipe.phases)} {phase.name}"
    seconds_left = (recipe.total_tokens - at.total_tokens) / speed
    run.listener(Tick(stage, at.total_steps, recipe.total_steps, loss, speed, seconds_left))
    utilisation: float | None = None
    peak = peak_of(device_name(device))
    if peak is not None:
        utilisation = round(speed * cost / peak / run.world.size, 4)
    _write(
        run,
        "train",
        objective=phase.objective,
        loss=loss,
        learning_rate=step.rate,
        gradient_norm=norm,
        targets=step.targets,
        tokens_per_second=round(speed, 1),
        mfu=utilisation,
        memory_bytes=peak_memory_bytes(device),
        seconds=round(at.seconds, 3),
    )


def _write(run: State, event: str, **fields: Any) -> None:
    """A line of the metrics, on the first process."""
    at = run.progress
    if run.metrics is not None:
        line = {"event": event, "total_step": at.total_steps}
        line |= {"phase": run.recipe.phases[at.phase].name, "step": at.step}
        run.metrics.write({**line, "tokens": at.total_tokens, **fields})


def _evaluate(run: State, training: PreparedPhase, batches: Batches) -> float | None:
    """The held-out loss, which the metrics get as well."""
    loss, targets = held_out_loss(training, batches)
    if loss is not None:
        _write(run, "evaluation", objective=batches.phase.objective, loss=loss, targets=targets)
    return loss


def _save(run: State, training: PreparedPhase, name: str) -> None:
    """Write a checkpoint, which training resumes from."""
    model = training.module.model
    keep = run.recipe.checkpoints
    run.saved = save_checkpoint(
        run.out, run.world, model, training.optimizer, run.progress, name=name
    )
    if run.world.first:
        prune(run.out, keep.keep, keep_phases=keep.keep_phases)


def _finish(run: State, training: PreparedPhase | None) -> PretrainingResult:
    """Export the trained model with its card and ledger, unless an earlier start did and both are
    whole.
    """
    recipe = run.recipe
    world = run.world
    folder = run.out / "model"
    ledger: Ledger | None = None
    if training is None:
        assert run.model is not None
        # an earlier start's says when, and with which code, the run ended
        ledger = intact_ledger(run.out / FILE)
        if not world.any(world.first and not is_finished(run.out)):
            return PretrainingResult("done", run.out, folder, ledger)
        training = prepare(recipe, len(recipe.phases) - 1, run.model, run.saved, world)
    record = ledger or run_ledger(
        recipe, run.progress, run.start, run.corpora[0], world, run.unguarded
    )

    def texts(model_hash: str) -> dict[str, str]:
        final = record.model_copy(update={"model_hash": model_hash})
        card = model_card(recipe, final)
        return {"README.md": card, FILE: final.model_dump_json(indent=2)}

    export(training.module.model, run.out / START, folder, world, texts=texts)
    ledger = read_ledger(folder)
    if world.first:
        write_json(run.out / FILE, ledger.model_dump(mode="json"))
    world.barrier()
    return PretrainingResult("done", run.out, folder, ledger)
