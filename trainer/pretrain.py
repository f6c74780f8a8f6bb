"""A pretraining run in one sitting: set up, train phase after phase, export with ledger and card.

`pretrain` -> `_setup` -> `_train_phase` (`trainer.train.fit`) for each phase -> `_finish`, with one `State`. A resume
sets up from the latest checkpoint and goes the same way, so its result is that of an uninterrupted run.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.hub import model_commit
from biobench.core.memory import keep_freed_memory
from biobench.core.tokenizer import load_tokenizer
from biobench.errors import BioBenchError, UsageError
from trainer.corpus import builder as corpus
from trainer.corpus.cleaning import check_packages
from trainer.corpus.shards import Corpus, tokenizer_hash, train_tokenizer
from trainer.corpus.sources import pinned
from trainer.cost.flops import phase_cost
from trainer.disk import write_json
from trainer.export import export, model_card
from trainer.ledger import FILE, Ledger, intact_ledger, read_ledger
from trainer.model import attention
from trainer.model.guard import check_phases, check_unchanged, fingerprint
from trainer.model.network import load_model, model_from_config, new_model, weights_hash
from trainer.model.tokens import added_tokens, check_fit, check_own_ids, extend_model, extend_tokenizer
from trainer.recipe.corpus import CorpusSpec
from trainer.recipe.spec import Recipe, TokenizerTraining
from trainer.train.batches import Batches, vocabulary_of
from trainer.train.checkpoint import CheckpointStore, Progress, read_progress
from trainer.train.distributed import StoppedError, World, determinism
from trainer.train.fit import PhaseLoop
from trainer.train.phase import PreparedPhase, precision_of, prepare
from trainer.train.progress import Listener, Metrics, Stages, check_tracker, make_tracker
from trainer.train.record import phase_record, run_ledger
from trainer.train.run_folder import (
    START,
    Start,
    adopt,
    claimed,
    finished_ledger,
    model_is_whole,
    open_run,
    phase_end_name,
    read_start,
    recipe_hash,
    restore_exports,
    save_start,
)


@dataclass(frozen=True)
class PretrainingResult:
    """A run's outcome. model: the exported encoder's folder; both None when it was told to stop before."""

    status: Literal["done", "preempted"]
    out: Path
    model: Path | None
    ledger: Ledger | None


@dataclass
class State:
    """A run as one process holds it; what stands below `checkpoints` is known once `_setup` is through.

    exclude: texts that must not be trained on, besides the recipe's own list. unguarded: for the ledger. probe: scores
    an exported model. built: corpora must be there already. progress: where training stands; saved: its checkpoint.
    """

    recipe: Recipe
    out: Path
    world: World
    listener: Listener
    stop: Callable[[], bool]
    exclude: corpus.Texts = ()
    unguarded: Sequence[str] | None = None
    probe: Callable[[Path], dict[str, float]] | None = None
    built: bool = False
    checkpoints: CheckpointStore = field(init=False)
    progress: Progress = field(init=False)
    saved: Path | None = field(init=False)
    tokenizer: PreTrainedTokenizerBase = field(init=False)
    model: PreTrainedModel | None = field(init=False)
    corpora: list[Corpus] = field(init=False)
    start: Start = field(init=False)
    metrics: Metrics | None = None

    def __post_init__(self) -> None:
        self.checkpoints = CheckpointStore(self.out, self.world)


def pretrain(run: State, *, resume: bool) -> PretrainingResult:
    """Train what is left of a run and export it; all processes call this. Called by `trainer.api.pretrain`."""
    preempted = PretrainingResult("preempted", run.out, None, None)
    with contextlib.ExitStack() as stack:
        if run.world.first:
            stack.enter_context(claimed(run.out))
        stack.enter_context(attention.preferred(run.world.device))
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
        finally:
            run.checkpoints.abandon()
            if run.metrics is not None:
                run.metrics.close()


def _setup(run: State, *, resume: bool) -> None:
    """Open the folder, then tokenizer, model, corpora and the state that training resumes from.

    Raises UsageError, ModelError, StoreError and what the building of a corpus raises; StoppedError.
    """
    recipe, world = run.recipe, run.world
    world.same(recipe_hash(recipe), "the recipe")
    for batch in map(recipe.batch_of, recipe.phases):
        if batch.sequences % world.size:
            raise UsageError(
                f"{batch.sequences} windows a step cannot be shared by {world.size} processes alike",
                hint="start a number of processes that divides batch.sequences",
            )
    if world.device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    else:
        keep_freed_memory()
    if world.first:
        check_tracker(recipe.logging.tracker)
        for spec in recipe.corpora:
            check_packages(spec.clean)
        open_run(recipe, run.out, resume=resume)
    world.barrier()
    run.saved = run.checkpoints.latest()
    known = run.saved is not None
    run.progress = read_progress(run.saved) if run.saved else Progress(recipe_hash=recipe_hash(recipe))
    run.tokenizer = load_tokenizer(run.out / START) if known else tokenizer_for(recipe, run.exclude)
    run.model = model_from_config(run.out / START) if known else base_model(recipe, run.tokenizer)
    run.corpora = [_corpus(run, spec) for spec in recipe.corpora]
    run.start = _start(run, known=known)
    if known:
        restore_exports(recipe, run.out, run.progress, world)
    elif recipe.reuse is not None:
        run.progress, run.saved = adopt(recipe, run.start, world)
    if world.size not in run.progress.world_sizes:
        sizes = (*run.progress.world_sizes, world.size)
        run.progress = run.progress.model_copy(update={"world_sizes": sizes})
    if world.first:
        config = recipe.model_dump(mode="json")
        tracker = make_tracker(recipe.logging.tracker, run.out, recipe.name, config)
        run.metrics = Metrics(run.out, from_step=run.progress.total_steps, tracker=tracker)


def tokenizer_for(recipe: Recipe, exclude: corpus.Texts = ()) -> PreTrainedTokenizerBase:
    """The run's tokenizer: the checkpoint's, a named one, or one trained on the corpus.

    exclude: texts of documents that must not be trained on, besides the recipe's own list; no tokenizer is
    trained on them either.
    """
    base, root = recipe.base, Path(recipe.corpus.root)
    if isinstance(base.tokenizer, TokenizerTraining):
        excluded = corpus.excluded_documents(recipe.corpus, exclude)
        everything = (text for source in pinned(recipe.corpus).sources for text in corpus.documents(source, root))
        allowed = (text for text in everything if excluded.why(text) is None)
        return train_tokenizer(allowed, base.tokenizer.vocabulary, recipe.corpus.sequence_length)
    named = base.tokenizer is not None
    tokenizer = load_tokenizer(base.tokenizer or str(base.model), revision=None if named else _commit(recipe))
    if base.added_tokens is not None:
        extend_tokenizer(tokenizer, added_tokens(base.added_tokens, root))
    return tokenizer


def _commit(recipe: Recipe) -> str | None:
    """The revision of a base checkpoint: its commit on the hub where that is known, the same for all of its files."""
    base = recipe.base
    if base.model is None or Path(base.model).is_dir():
        return base.revision
    return model_commit(base.model, base.revision) or base.revision


def base_model(recipe: Recipe, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model with the weights that training starts from, checked against the tokenizer and all phases."""
    base = recipe.base
    if base.config is not None:
        model = new_model(base.config, tokenizer, recipe.seeds.init)
    else:
        model = load_model(str(base.model), revision=_commit(recipe))
        if base.added_tokens is not None:
            extend_model(model, tokenizer, base, revision=_commit(recipe))
    check_phases(model, recipe)
    check_fit(model, tokenizer, masked=any("mlm" in p.directions for p in recipe.phases))
    if base.model is not None and base.tokenizer is not None:
        check_own_ids(base.model, tokenizer, revision=_commit(recipe))
    return model


def _corpus(run: State, spec: CorpusSpec) -> Corpus:
    """A corpus of the recipe, built by the first process while the others wait."""
    cache = Path(spec.root) / spec.cache if spec.cache is not None else run.out.parent / "corpora"
    stages = Stages(run.listener, run.recipe.total_steps)
    if run.built and not corpus.is_built(spec, run.tokenizer, cache, run.exclude):
        raise UsageError(
            f"a corpus of {run.recipe.name} is not built below {cache}, and --built-corpus builds none",
            hint=f"run `biobench corpus build` before, with the same options and --cache {cache}",
        )

    def say(what: str, fraction: float) -> None:
        stages(what, fraction)
        if run.stop():
            raise StoppedError

    built: Corpus | None = None
    if run.world.first:
        with contextlib.suppress(StoppedError):
            built = corpus.build(spec, run.tokenizer, cache, exclude=run.exclude, report=say)
    run.world.barrier()
    if run.world.any(run.world.first and built is None):
        raise StoppedError
    if built is None:
        built = corpus.build(spec, run.tokenizer, cache, exclude=run.exclude, verify=False)
    run.world.same(built.hash, "the corpus")
    return built


def _start(run: State, *, known: bool) -> Start:
    """What the run starts from, written down now or read and compared with what is there. Raises UsageError."""
    recipe, model = run.recipe, run.model
    assert model is not None
    phases = tuple(_corpus_of(run, index).hash for index in range(len(recipe.phases)))
    data, phases = run.corpora[0], phases if len(run.corpora) > 1 else ()
    precision = precision_of(recipe, run.world.device)
    start = read_start(run.out) if known else None
    if start is not None:
        if (start.manifest_hash, start.phase_manifests) != (data.hash, phases):
            raise UsageError(
                "the corpus has changed since the run began",
                hint="restore its sources and exclusions, or start a new run with --out DIR",
            )
        if start.precision != precision:
            raise UsageError(
                f"the run began in {start.precision} and would go on in {precision} on this device",
                hint=f"continue with --set engine.precision={start.precision}",
            )
        return start
    base = recipe.base
    remote = base.model is not None and not Path(base.model).is_dir()
    start = Start(
        init_hash=weights_hash(model),
        manifest_hash=data.hash,
        tokenizer_hash=tokenizer_hash(run.tokenizer),
        parameters=sum(p.numel() for p in model.parameters()),
        architecture=type(model).__name__,
        precision=precision,
        phase_manifests=phases,
        base_commit=model_commit(str(base.model), base.revision) if remote else None,
    )
    run.world.same(start.init_hash, "the initial weights")
    if run.world.first:
        save_start(run.out, model, run.tokenizer, start)
    run.world.barrier()
    return start


def _corpus_of(run: State, index: int) -> Corpus:
    return run.corpora[run.recipe.corpora.index(run.recipe.corpus_of(run.recipe.phases[index]))]


def _train_phase(run: State) -> PreparedPhase | None:
    """Train the phase under way to its end, record, save and export it; None when the run was told to stop."""
    recipe, world, index = run.recipe, run.world, run.progress.phase
    phase, data = recipe.phases[index], _corpus_of(run, index)
    model, run.model = run.model or model_from_config(run.out / START), None
    fresh = run.progress.step == 0
    if fresh:
        drawn = 0 if phase.data == "restart" else _drawn(run)
        begun = {"drawn": drawn, "first_sample": drawn, "order_hash": "", "targets": 0, "skipped": 0}
        run.progress = run.progress.model_copy(update=begun)
    training = prepare(recipe, index, model, run.saved, world, fresh=fresh)
    trained = training.module.model
    before = fingerprint(trained, training.frozen) if training.frozen else ""
    fixed = world.device.type == "cuda" or recipe.engine.compiles("cpu")
    vocabulary = vocabulary_of(run.tokenizer, model.config.vocab_size)
    batches = Batches(recipe, index, data, vocabulary, world, fixed=fixed, first=run.progress.first_sample)
    cost = phase_cost(model, phase, length=recipe.length_of(phase)).total

    def save(at: Progress) -> None:
        name = f"step-{at.total_steps:08d}"
        background = recipe.checkpoints.background and not recipe.checkpoints.export
        run.saved = run.checkpoints.save(trained, training.optimizer, at, name=name, background=background)
        run.checkpoints.prune(recipe.checkpoints.keep, recipe.checkpoints.keep_phases)
        if recipe.exports_at(at.step, phase):
            export(trained, run.out / START, run.out / "exports" / name, world)

    def probe(at: Progress) -> None:
        _probe(run, fit, at)

    ways = (run.metrics, run.listener, save, run.stop)
    fit = PhaseLoop(recipe, index, training, batches, data, world, *ways, cost, probe)
    try:
        run.progress, reached = fit.run(run.progress)
        if not reached:
            run.checkpoints.finish()
            return None
        validation = fit.evaluate(run.progress)
        if recipe.logging.probe is not None:
            probe(run.progress)
    finally:
        batches.close()
    if training.frozen:
        check_unchanged(trained, training.frozen, before)
    record = phase_record(recipe, run.progress, data, training, cost, fit, validation)
    done = (*run.progress.done, record)
    run.progress = run.progress.model_copy(update={"phase": index + 1, "step": 0, "done": done})
    end = phase_end_name(index, phase.name)
    run.saved = run.checkpoints.save(trained, training.optimizer, run.progress, name=end)
    run.checkpoints.prune(recipe.checkpoints.keep, recipe.checkpoints.keep_phases)
    if index + 1 < len(recipe.phases):
        export(trained, run.out / START, run.out / "phases" / phase.name, world)
    return training


def _drawn(run: State) -> int:
    """Windows that earlier phases have drawn of the corpus that the phase under way reads."""
    recipe = run.recipe
    spec = recipe.corpus_of(recipe.phases[run.progress.phase])
    before = zip(recipe.phases, run.progress.done, strict=False)
    ends = [record.last_sample + 1 for p, record in before if recipe.corpus_of(p) == spec]
    return ends[-1] if ends else 0


def _probe(run: State, fit: PhaseLoop, progress: Progress) -> None:
    """Score the model as it is; the first process does, the others wait."""
    if run.world.any(run.world.first and run.probe is None):
        return
    folder = run.out / "probe"
    export(fit.training.module.model, run.out / START, folder, run.world)
    if run.world.first and run.probe is not None:
        try:
            with torch.random.fork_rng(), determinism(None):
                scores = run.probe(folder)
        except BioBenchError as error:  # no reason to lose a run of days; the metrics have no scores then
            logging.getLogger("trainer").warning("no probe at step %d: %s", progress.step, error.what)
            scores = {}
        fit.write("probe", progress, {"scores": scores})
        shutil.rmtree(folder, ignore_errors=True)
    run.world.barrier()


def _finish(run: State, training: PreparedPhase | None) -> PretrainingResult:
    """Export the trained model with its card and ledger, unless an earlier start did and both are whole."""
    recipe, world, folder = run.recipe, run.world, run.out / "model"
    ledger = run_ledger(recipe, run.progress, run.start, run.corpora[0], world, run.unguarded)
    if training is None:
        ledger = finished_ledger(run.out, ledger)
        if world.any(world.first and not model_is_whole(run.out, ledger)):
            assert run.model is not None
            training = prepare(recipe, len(recipe.phases) - 1, run.model, run.saved, world, fresh=False)

    def texts(model_hash: str) -> dict[str, str]:
        final = ledger.model_copy(update={"model_hash": model_hash})
        return {"README.md": model_card(recipe, final), FILE: final.model_dump_json(indent=2)}

    if training is not None:
        export(training.module.model, run.out / START, folder, world, texts=texts)
        ledger = read_ledger(folder) if world.first else ledger
    if world.first and intact_ledger(run.out / FILE) != ledger:
        write_json(run.out / FILE, ledger.model_dump(mode="json"))
    world.barrier()
    return PretrainingResult("done", run.out, folder, ledger)
