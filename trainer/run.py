"""A whole run: open or continue its folder, train phase after phase, export, write the ledger."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from biobench.errors import UsageError
from trainer import attention, corpus
from trainer.batches import Batches, vocabulary_of
from trainer.beginning import base_model, tokenizer_for
from trainer.card import model_card
from trainer.checkpoint import Checkpoints, Progress, read_progress
from trainer.disk import write_json
from trainer.distributed import World
from trainer.export import export
from trainer.flops import token_cost
from trainer.interventions import check_unchanged, fingerprint
from trainer.ledger import FILE, Ledger, LedgerBase, LedgerCorpus, PhaseRecord, read_ledger
from trainer.loop import Loop
from trainer.memory import keep_freed_memory
from trainer.metrics import Metrics, make_tracker
from trainer.model import (
    load_tokenizer,
    model_from_config,
    weights_hash,
)
from trainer.phase import Training, precision_of, prepare
from trainer.progress import Listener, Tick
from trainer.recipe import Recipe
from trainer.runfolder import (
    START,
    Start,
    adopt,
    open_run,
    phase_end_name,
    read_start,
    recipe_hash,
    save_start,
)
from trainer.schedule import factor
from trainer.shards import Corpus
from trainer.stop import StopFlag
from trainer.tokenization import tokenizer_hash

Status = Literal["done", "preempted"]


@dataclass(frozen=True)
class Result:
    """A run's outcome. model: the exported encoder's folder; both None when it was told to stop before."""

    status: Status
    out: Path
    model: Path | None
    ledger: Ledger | None


class Run:
    """One process's view of a run. Made and driven by `trainer.api.pretrain`."""

    def __init__(
        self, recipe: Recipe, out: Path, world: World, listener: Listener, exclude: list[str], stop: StopFlag
    ) -> None:
        self.recipe, self.out, self.world, self.listener, self.stop = recipe, out, world, listener, stop
        self.exclude = exclude
        self.checkpoints = Checkpoints(out, world)
        self.total_steps = sum(recipe.steps(p) for p in recipe.phases)

    def go(self, *, resume: bool) -> Result:
        """Train what is left and export."""
        world, recipe = self.world, self.recipe
        world.same(recipe_hash(recipe), "the recipe")
        if recipe.batch.sequences % world.size:
            raise UsageError(
                f"{recipe.batch.sequences} windows a step cannot be shared by {world.size} processes alike",
                hint="start a number of processes that divides batch.sequences",
            )
        if world.device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        else:
            keep_freed_memory()
        if world.first:
            open_run(recipe, self.out, resume=resume)
        world.barrier()
        state = self.checkpoints.latest()
        progress = Progress(recipe_hash=recipe_hash(recipe)) if state is None else read_progress(state)
        tokenizer = load_tokenizer(self.out / START) if state is not None else tokenizer_for(recipe)
        model = model_from_config(self.out / START) if state is not None else base_model(recipe, tokenizer)
        data = self._corpus(tokenizer)
        start = self._start(model, tokenizer, data, known=state is not None)
        if state is None and recipe.reuse is not None:
            progress, state = adopt(recipe, start, world)
        if world.size not in progress.world_sizes:
            progress = progress.model_copy(update={"world_sizes": (*progress.world_sizes, world.size)})
        metrics = self._metrics(progress)
        training: Training | None = None
        try:
            while progress.phase < len(recipe.phases):
                if training is not None:
                    training, model = None, model_from_config(self.out / START)
                progress, state, training = self._phase(model, tokenizer, data, progress, state, metrics)
                if training is None:
                    return Result("preempted", self.out, None, None)
        finally:
            if metrics is not None:
                metrics.close()
        ledger = self._ledger(progress, start, data)
        return self._finish(training, model, tokenizer, state, ledger)

    def _corpus(self, tokenizer: PreTrainedTokenizerBase) -> Corpus:
        spec = self.recipe.corpus
        cache = Path(spec.root) / spec.cache if spec.cache is not None else self.out.parent / "corpora"

        def say(what: str, _: float) -> None:
            if self.world.first:
                self.listener(Tick(what, 0, self.total_steps))

        built: Corpus | None = None
        if self.world.first:
            built = corpus.build(spec, tokenizer, cache, exclude=self.exclude, report=say)
        self.world.barrier()
        if built is None:
            built = corpus.build(spec, tokenizer, cache, exclude=self.exclude, verify=False)
        self.world.same(built.hash, "the corpus")
        return built

    def _start(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, data: Corpus, *, known: bool) -> Start:
        precision = precision_of(self.recipe, self.world.device)
        if known:
            start = read_start(self.out)
            if start is not None:
                if start.manifest_hash != data.hash:
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
    ) -> tuple[Progress, Path | None, Training | None]:
        """Train the phase under way to its end: (progress, its checkpoint, training); no training when stopped."""
        recipe, index = self.recipe, progress.phase
        phase = recipe.phases[index]
        fresh = progress.step == 0
        if fresh:
            drawn = 0 if phase.data == "restart" else progress.drawn
            progress = progress.model_copy(
                update={"drawn": drawn, "first_sample": drawn, "order_hash": "", "targets": 0}
            )
        training = prepare(recipe, index, model, state, self.world, fresh=fresh)
        before = fingerprint(training.module.model, training.frozen) if training.frozen else ""
        fixed = self.world.device.type == "cuda" or recipe.engine.compile
        vocabulary = vocabulary_of(tokenizer, model.config.vocab_size)
        batches = Batches(recipe, index, data, vocabulary, self.world, fixed=fixed)
        predicted = phase.masking.rate if phase.masking is not None else 1.0
        cost = token_cost(
            model, length=recipe.corpus.sequence_length, causal=phase.objective == "clm", predicted=predicted
        ).total
        saved: list[Path] = []

        def save(at: Progress) -> None:
            name = f"step-{at.total_steps:08d}"
            saved.append(self.checkpoints.save(training.module.model, training.optimizer, at, name=name))
            self.checkpoints.prune(recipe.checkpoints.keep, recipe.checkpoints.keep_phases)
            if recipe.checkpoints.export:
                self._export(training, tokenizer, self.out / "exports" / name)

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
            self.total_steps,
        )
        try:
            progress, reached = loop.run(progress)
            if not reached:
                return progress, saved[-1], None
            validation = loop.evaluate(progress)
        finally:
            batches.close()
        if training.frozen:
            check_unchanged(training.module.model, training.frozen, before)
        record = self._record(index, progress, data, training, cost, loop.last_loss, validation)
        progress = progress.model_copy(update={"phase": index + 1, "step": 0, "done": (*progress.done, record)})
        end = self.checkpoints.save(
            training.module.model, training.optimizer, progress, name=phase_end_name(index, phase.name)
        )
        self.checkpoints.prune(recipe.checkpoints.keep, recipe.checkpoints.keep_phases)
        if index + 1 < len(recipe.phases):
            self._export(training, tokenizer, self.out / "phases" / phase.name)
        return progress, end, training

    def _record(
        self,
        index: int,
        progress: Progress,
        data: Corpus,
        training: Training,
        cost: float,
        loss: float,
        validation: float | None,
    ) -> PhaseRecord:
        recipe, phase = self.recipe, self.recipe.phases[index]
        steps = recipe.steps(phase)
        peak = recipe.optimizer.learning_rate * phase.schedule.peak
        rates = [
            peak * factor(phase, s, steps=steps, step_tokens=recipe.step_tokens)
            for s in {0, steps - 1, *(range(steps) if steps <= 10_000 else range(0, steps, 100))}
        ]
        windows = steps * recipe.batch.sequences
        return PhaseRecord(
            name=phase.name,
            objective=phase.objective,
            masking=None if phase.masking is None else phase.masking.model_dump(mode="json"),
            tokens=steps * recipe.step_tokens,
            steps=steps,
            targets=progress.targets,
            first_sample=progress.first_sample,
            last_sample=progress.first_sample + windows - 1,
            order_hash=progress.order_hash,
            epochs=round(windows / len(data.train), 4),
            peak_rate=max(rates),
            final_rate=peak * factor(phase, steps - 1, steps=steps, step_tokens=recipe.step_tokens),
            schedule=phase.schedule.model_dump(mode="json"),
            frozen_layers=None if phase.freeze is None else phase.freeze.layers,
            head=phase.head,
            data=phase.data,
            isolate_documents=phase.isolate_documents,
            flops=cost * steps * recipe.step_tokens,
            leak=training.report.leak,
            reach={k: (v.left, v.right) for k, v in training.report.reaches.items()},
            train_loss=loss if math.isfinite(loss) else 0.0,
            validation_loss=validation,
        )

    def _ledger(self, progress: Progress, start: Start, data: Corpus) -> Ledger:
        recipe = self.recipe
        phases = progress.done
        return Ledger(
            name=recipe.name,
            recipe_hash=recipe_hash(recipe),
            base=LedgerBase(
                source=recipe.base.model or "fresh weights",
                revision=recipe.base.revision,
                architecture=start.architecture,
                parameters=start.parameters,
                init_hash=start.init_hash,
                tokenizer_hash=start.tokenizer_hash,
            ),
            corpus=LedgerCorpus(
                manifest_hash=data.hash,
                windows=len(data.train),
                tokens=int(data.manifest["train"]["tokens"]),
                sources={s["id"]: float(s["share"]) for s in data.manifest["sources"]},
                excluded_documents=int(data.manifest["exclusion"]["documents"]),
                exclusion_hash=str(data.manifest["exclusion"]["hash"]),
            ),
            sequence_length=recipe.corpus.sequence_length,
            batch_sequences=recipe.batch.sequences,
            step_tokens=recipe.step_tokens,
            optimizer=recipe.optimizer.model_dump(mode="json"),
            precision=start.precision,
            dropout=recipe.engine.dropout,
            attention=attention.describe(),
            distributed=recipe.engine.distributed if self.world.size > 1 else "none",
            world_sizes=progress.world_sizes,
            seeds=recipe.seeds.model_dump(),
            phases=phases,
            tokens=sum(p.tokens for p in phases),
            steps=sum(p.steps for p in phases),
            flops=sum(p.flops for p in phases),
            seconds=round(progress.seconds, 3),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            code_version=code_version(),
            packages={name: metadata.version(name) for name in ("torch", "transformers", "tokenizers", "numpy")},
        )

    def _finish(
        self,
        training: Training | None,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        state: Path | None,
        ledger: Ledger,
    ) -> Result:
        """Export the trained model with its card and ledger, unless an earlier start did."""
        folder = self.out / "model"
        if training is None and (folder / FILE).is_file():
            return Result("done", self.out, folder, read_ledger(folder))
        if training is None:
            assert state is not None
            training = prepare(self.recipe, len(self.recipe.phases) - 1, model, state, self.world, fresh=False)

        def texts(model_hash: str) -> dict[str, str]:
            own = ledger.model_copy(update={"model_hash": model_hash})
            return {"README.md": model_card(self.recipe, own), FILE: own.model_dump_json(indent=2)}

        self._export(training, tokenizer, folder, texts)
        if self.world.first:
            ledger = read_ledger(folder)
            write_json(self.out / FILE, ledger.model_dump(mode="json"))
        self.world.barrier()
        return Result("done", self.out, folder, ledger)

    def _export(
        self,
        training: Training,
        tokenizer: PreTrainedTokenizerBase,
        folder: Path,
        texts: Callable[[str], dict[str, str]] | None = None,
    ) -> None:
        export(training.module.model, self.out / START, tokenizer, folder, self.world, texts=texts)


def code_version() -> str:
    """The package's version, with the commit when it runs from a checkout."""
    try:
        version = metadata.version("biobench")
    except metadata.PackageNotFoundError:
        version = "uninstalled"
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return version
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False
    )
    return f"{version}+{done.stdout.strip()}" if done.returncode == 0 else version
