"""A whole run: open or continue its folder, train phase after phase, export, write the ledger."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.memory import keep_freed_memory
from biobench.core.tokenizer import load_tokenizer
from biobench.errors import BioBenchError, UsageError
from trainer.corpus import builder as corpus
from trainer.corpus.cleaning import check_packages
from trainer.corpus.shards import Corpus
from trainer.corpus.tokenization import tokenizer_hash
from trainer.cost.flops import phase_cost
from trainer.disk import write_json
from trainer.export.card import model_card
from trainer.export.encoder import export
from trainer.ledger.fields import FILE, Ledger, intact_ledger, read_ledger
from trainer.model import attention
from trainer.model.interventions import check_unchanged, fingerprint
from trainer.model.network import (
    model_from_config,
    weights_hash,
)
from trainer.recipe.corpus import CorpusSpec
from trainer.recipe.spec import Recipe
from trainer.run.beginning import base_commit, base_model, tokenizer_for
from trainer.run.record import phase_record, run_ledger
from trainer.run.restore import finished_ledger, model_is_whole, restore_exports
from trainer.train.batches import Batches, vocabulary_of
from trainer.train.checkpoint import CheckpointStore, Progress, read_progress
from trainer.train.determinism import determinism
from trainer.train.distributed import World
from trainer.train.loop import Loop
from trainer.train.metrics import Metrics, check_tracker, make_tracker
from trainer.train.phase import PreparedPhase, precision_of, prepare
from trainer.train.progress import Listener, Stages
from trainer.train.run_folder import (
    START,
    Start,
    adopt,
    claimed,
    open_run,
    phase_end_name,
    read_start,
    recipe_hash,
    save_start,
)
from trainer.train.stop import StopFlag, StoppedError

Status = Literal["done", "preempted"]


@dataclass(frozen=True)
class PretrainingResult:
    """A run's outcome. model: the exported encoder's folder; both None when it was told to stop before."""

    status: Status
    out: Path
    model: Path | None
    ledger: Ledger | None


class PretrainingRun:
    """One process's view of a run. Made and driven by `trainer.api.pretrain`."""

    def __init__(
        self,
        recipe: Recipe,
        out: Path,
        world: World,
        listener: Listener,
        exclude: corpus.Texts,
        stop: StopFlag,
        unguarded: Sequence[str] | None = None,
        probe: Callable[[Path], dict[str, float]] | None = None,
        *,
        built: bool = False,
    ) -> None:
        """built: corpora must be there already."""
        self.recipe, self.out, self.world, self.listener, self.stop = recipe, out, world, listener, stop
        self.exclude, self.unguarded, self.probe, self.built = exclude, unguarded, probe, built
        self.checkpoints = CheckpointStore(out, world)

    def go(self, *, resume: bool) -> PretrainingResult:
        """Train what is left and export."""
        with claimed(self.out) if self.world.first else contextlib.nullcontext():
            try:
                with attention.preferred(self.world.device), determinism(self.recipe.engine.deterministic):
                    return self._go(resume=resume)
            except StoppedError:
                return PretrainingResult("preempted", self.out, None, None)

    def _go(self, *, resume: bool) -> PretrainingResult:
        world, recipe = self.world, self.recipe
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
            open_run(recipe, self.out, resume=resume)
        world.barrier()
        state = self.checkpoints.latest()
        progress = Progress(recipe_hash=recipe_hash(recipe)) if state is None else read_progress(state)
        tokenizer = load_tokenizer(self.out / START) if state is not None else tokenizer_for(recipe, self.exclude)
        model = model_from_config(self.out / START) if state is not None else base_model(recipe, tokenizer)
        corpora = [self._corpus(spec, tokenizer) for spec in recipe.corpora]
        data = corpora[0]
        start = self._start(model, tokenizer, corpora, known=state is not None)
        if state is not None:
            restore_exports(recipe, self.out, progress, world)
        elif recipe.reuse is not None:
            progress, state = adopt(recipe, start, world)
        if world.size not in progress.world_sizes:
            progress = progress.model_copy(update={"world_sizes": (*progress.world_sizes, world.size)})
        metrics = self._metrics(progress)
        training: PreparedPhase | None = None
        try:
            while progress.phase < len(recipe.phases):
                if training is not None:
                    training, model = None, model_from_config(self.out / START)
                spec = recipe.corpus_of(recipe.phases[progress.phase])
                read = corpora[recipe.corpora.index(spec)]
                progress, state, training = self._phase(model, tokenizer, read, progress, state, metrics)
                if training is None:
                    return PretrainingResult("preempted", self.out, None, None)
        finally:
            self.checkpoints.abandon()
            if metrics is not None:
                metrics.close()
        ledger = run_ledger(recipe, progress, start, data, world, self.unguarded)
        return self._finish(training, model, state, ledger)

    def _corpus(self, spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase) -> Corpus:
        cache = Path(spec.root) / spec.cache if spec.cache is not None else self.out.parent / "corpora"

        stages = Stages(self.listener, self.recipe.total_steps)
        if self.built and not corpus.is_built(spec, tokenizer, cache, self.exclude):
            raise UsageError(
                f"a corpus of {self.recipe.name} is not built below {cache}, and --built-corpus builds none",
                hint=f"run `biobench corpus build` before, with the same options and --cache {cache}",
            )

        def say(what: str, fraction: float) -> None:
            stages(what, fraction)
            if self.stop():
                raise StoppedError

        built: Corpus | None = None
        if self.world.first:
            with contextlib.suppress(StoppedError):
                built = corpus.build(spec, tokenizer, cache, exclude=self.exclude, report=say)
        self.world.barrier()
        if self.world.any(self.world.first and built is None):
            raise StoppedError
        if built is None:
            built = corpus.build(spec, tokenizer, cache, exclude=self.exclude, verify=False)
        self.world.same(built.hash, "the corpus")
        return built

    def _start(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, corpora: list[Corpus], *, known: bool
    ) -> Start:
        """corpora: those of the recipe, in its order."""
        specs = self.recipe.corpora
        phases = tuple(corpora[specs.index(self.recipe.corpus_of(p))].hash for p in self.recipe.phases)
        data, phases = corpora[0], phases if len(corpora) > 1 else ()
        precision = precision_of(self.recipe, self.world.device)
        if known:
            start = read_start(self.out)
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
        start = Start(
            init_hash=weights_hash(model),
            manifest_hash=data.hash,
            tokenizer_hash=tokenizer_hash(tokenizer),
            parameters=sum(p.numel() for p in model.parameters()),
            architecture=type(model).__name__,
            precision=precision,
            phase_manifests=phases,
            base_commit=base_commit(self.recipe),
        )
        self.world.same(start.init_hash, "the initial weights")
        if self.world.first:
            save_start(self.out, model, tokenizer, start)
        self.world.barrier()
        return start

    def _metrics(self, progress: Progress) -> Metrics | None:
        if not self.world.first:
            return None
        tracker = make_tracker(
            self.recipe.logging.tracker, self.out, self.recipe.name, self.recipe.model_dump(mode="json")
        )
        return Metrics(self.out, from_step=progress.total_steps, tracker=tracker)

    def _phase(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        data: Corpus,
        progress: Progress,
        state: Path | None,
        metrics: Metrics | None,
    ) -> tuple[Progress, Path | None, PreparedPhase | None]:
        """Train the phase under way to its end: (progress, its checkpoint, training); no training when stopped."""
        recipe, index = self.recipe, progress.phase
        phase = recipe.phases[index]
        fresh = progress.step == 0
        if fresh:
            drawn = 0 if phase.data == "restart" else self._drawn(progress)
            progress = progress.model_copy(
                update={"drawn": drawn, "first_sample": drawn, "order_hash": "", "targets": 0, "skipped": 0}
            )
        training = prepare(recipe, index, model, state, self.world, fresh=fresh)
        before = fingerprint(training.module.model, training.frozen) if training.frozen else ""
        fixed = self.world.device.type == "cuda" or recipe.engine.compiles("cpu")
        vocabulary = vocabulary_of(tokenizer, model.config.vocab_size)
        batches = Batches(recipe, index, data, vocabulary, self.world, fixed=fixed, first=progress.first_sample)
        cost = phase_cost(model, phase, length=recipe.length_of(phase)).total
        saved: list[Path] = []

        def save(at: Progress) -> None:
            name = f"step-{at.total_steps:08d}"
            background = recipe.checkpoints.background and not recipe.checkpoints.export
            model, optimizer = training.module.model, training.optimizer
            saved.append(self.checkpoints.save(model, optimizer, at, name=name, background=background))
            self.checkpoints.prune(recipe.checkpoints.keep, recipe.checkpoints.keep_phases)
            if recipe.exports_at(at.step, phase):
                self._export(training, self.out / "exports" / name)

        def probe(at: Progress) -> None:
            self._probe(training, at, metrics)

        loop = Loop(
            recipe,
            index,
            training,
            batches,
            data,
            self.world,
            metrics,
            self.listener,
            save,
            self.stop,
            cost,
            probe,
        )
        try:
            progress, reached = loop.run(progress)
            if not reached:
                self.checkpoints.finish()
                return progress, saved[-1], None
            validation = loop.evaluate(progress)
            if recipe.logging.probe is not None:
                probe(progress)
        finally:
            batches.close()
        if training.frozen:
            check_unchanged(training.module.model, training.frozen, before)
        record = phase_record(
            recipe,
            index,
            progress,
            corpus=data,
            report=training.report,
            kernels=training.kernels,
            cost=cost,
            loss=loop.last_loss,
            validation=validation,
            losses=loop.losses,
        )
        progress = progress.model_copy(update={"phase": index + 1, "step": 0, "done": (*progress.done, record)})
        end = self.checkpoints.save(
            training.module.model, training.optimizer, progress, name=phase_end_name(index, phase.name)
        )
        self.checkpoints.prune(recipe.checkpoints.keep, recipe.checkpoints.keep_phases)
        if index + 1 < len(recipe.phases):
            self._export(training, self.out / "phases" / phase.name)
        return progress, end, training

    def _probe(self, training: PreparedPhase, progress: Progress, metrics: Metrics | None) -> None:
        """Score the model as it is; the first process does, the others wait."""
        if self.world.any(self.world.first and self.probe is None):
            return
        folder = self.out / "probe"
        self._export(training, folder)
        if self.world.first and self.probe is not None and metrics is not None:
            try:
                with torch.random.fork_rng():
                    scores = self.probe(folder)
            except BioBenchError as error:  # no reason to lose a run of days; the metrics have no scores then
                logging.getLogger("trainer").warning("no probe at step %d: %s", progress.step, error.what)
                scores = {}
            where = {"phase": self.recipe.phases[progress.phase].name, "step": progress.step}
            metrics.write(
                {
                    "event": "probe",
                    "total_step": progress.total_steps,
                    **where,
                    "tokens": progress.total_tokens,
                    "scores": scores,
                }
            )
            shutil.rmtree(folder, ignore_errors=True)
        self.world.barrier()

    def _drawn(self, progress: Progress) -> int:
        """Windows that earlier phases have drawn of the corpus that the phase under way reads."""
        spec = self.recipe.corpus_of(self.recipe.phases[progress.phase])
        before = zip(self.recipe.phases, progress.done, strict=False)
        ends = [record.last_sample + 1 for p, record in before if self.recipe.corpus_of(p) == spec]
        return ends[-1] if ends else 0

    def _finish(
        self,
        training: PreparedPhase | None,
        model: PreTrainedModel,
        state: Path | None,
        ledger: Ledger,
    ) -> PretrainingResult:
        """Export the trained model with its card and ledger, unless an earlier start did and both are whole."""
        folder = self.out / "model"
        if training is None:
            ledger = finished_ledger(self.out, ledger)
            if not self.world.any(self.world.first and not model_is_whole(self.out, ledger)):
                return self._done(folder, ledger)
            assert state is not None
            training = prepare(self.recipe, len(self.recipe.phases) - 1, model, state, self.world, fresh=False)

        def texts(model_hash: str) -> dict[str, str]:
            final = ledger.model_copy(update={"model_hash": model_hash})
            return {"README.md": model_card(self.recipe, final), FILE: final.model_dump_json(indent=2)}

        self._export(training, folder, texts)
        return self._done(folder, read_ledger(folder) if self.world.first else ledger)

    def _done(self, folder: Path, ledger: Ledger) -> PretrainingResult:
        """Write the run's own copy of the ledger where it is not there or another."""
        if self.world.first and intact_ledger(self.out / FILE) != ledger:
            write_json(self.out / FILE, ledger.model_dump(mode="json"))
        self.world.barrier()
        return PretrainingResult("done", self.out, folder, ledger)

    def _export(
        self,
        training: PreparedPhase,
        folder: Path,
        texts: Callable[[str], dict[str, str]] | None = None,
    ) -> None:
        export(training.module.model, self.out / START, folder, self.world, texts=texts)
