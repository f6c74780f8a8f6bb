"""What a run writes down of itself: a record for each phase, and the ledger of all of them."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata

from biobench.version import PACKAGE, __version__
from trainer.corpus.shards import Corpus
from trainer.cost.flops import device_name
from trainer.ledger import Ledger, LedgerBase, LedgerCorpus, PhaseRecord
from trainer.model import attention
from trainer.recipe.spec import Recipe
from trainer.train.checkpoint import Progress
from trainer.train.distributed import World
from trainer.train.optimizer import factor
from trainer.train.phase import PreparedPhase
from trainer.train.run_folder import Start, recipe_hash


def phase_record(
    recipe: Recipe,
    progress: Progress,
    corpus: Corpus,
    training: PreparedPhase,
    cost: float,
    loss: float,
    validation: float | None,
) -> PhaseRecord:
    """The phase under way as it was trained. corpus: what it read. cost: FLOPs a token. loss: the
    last one reported.

    validation: the held-out loss at its end.
    """
    index = progress.phase
    report = training.report
    phase = recipe.phases[index]
    steps = recipe.steps(phase)
    step_tokens = recipe.step_tokens_of(phase)
    peak = recipe.optimizer.learning_rate * phase.schedule.peak
    factors = [factor(phase, s, steps=steps, step_tokens=step_tokens) for s in range(steps)]
    frozen: str | None = None
    if phase.freeze is not None:
        frozen = phase.freeze.layers
        if phase.freeze.zeroed_gradients:
            frozen += " (gradients zeroed)"
    read = steps * recipe.batch_of(phase).sequences
    spec = recipe.corpus_of(phase)
    return PhaseRecord(
        **phase.model_dump(mode="json", exclude={"tokens", "freeze", "corpus", "batch"}),
        tokens=steps * step_tokens,
        steps=steps,
        targets=progress.targets,
        first_sample=progress.first_sample,
        last_sample=progress.first_sample + read - 1,
        order_hash=progress.order_hash,
        epochs=round(read / len(corpus.train), 4),
        peak_rate=peak * max(factors),
        final_rate=peak * factors[-1],
        frozen_layers=frozen,
        flops=cost * steps * step_tokens,
        leak=report.leak,
        reach={k: (v.left, v.right) for k, v in report.reaches.items()},
        kernels=training.kernels,
        train_loss=loss,
        validation_loss=validation,
        corpus=None if spec == recipe.corpus else ledger_corpus(corpus, None),
        batch_sequences=None if phase.batch is None else phase.batch.sequences,
    )


def ledger_corpus(data: Corpus, unguarded: Sequence[str] | None) -> LedgerCorpus:
    """A corpus as ledgers describe it. unguarded: tasks whose documents were not excluded."""
    by_task: Counter[str] = Counter()
    cleaned: Counter[str] = Counter()
    removed = 0
    shares = {}
    revisions = {}
    for counts in data.removed_by_task().values():
        by_task.update(counts)
    for source in data.manifest["sources"]:
        cleaned.update(source.get("cleaned", {}))
        removed += sum(source.get("excluded", {}).values())
        shares[source["id"]] = float(source["share"])
        if "revision" in source:
            revisions[source["id"]] = source["revision"]
    excluded = data.manifest["exclusion"]
    return LedgerCorpus(
        removed_by_task=dict(sorted(by_task.items())) or None,
        cleaned=dict(cleaned) or None,
        manifest_hash=data.hash,
        windows=len(data.train),
        tokens=data.manifest["train"]["tokens"],
        sources=shares,
        excluded_documents=excluded["documents"],
        exclusion_hash=excluded["hash"],
        removed_documents=removed,
        unguarded=None if unguarded is None else tuple(unguarded),
        revisions=revisions,
    )


def run_ledger(
    recipe: Recipe,
    progress: Progress,
    start: Start,
    data: Corpus,
    world: World,
    unguarded: Sequence[str] | None,
) -> Ledger:
    """The ledger of a run whose phases are all trained. unguarded: tasks whose documents were not
    excluded.
    """
    phases = progress.done
    return Ledger(
        name=recipe.name,
        recipe_hash=recipe_hash(recipe),
        base=LedgerBase(
            source=recipe.base.model or "fresh weights",
            revision=start.base_commit or recipe.base.revision,
            architecture=start.architecture,
            parameters=start.parameters,
            init_hash=start.init_hash,
            tokenizer_hash=start.tokenizer_hash,
            tokenizer=start.tokenizer,
        ),
        corpus=ledger_corpus(data, unguarded),
        sequence_length=recipe.corpus.sequence_length,
        batch_sequences=recipe.batch.sequences,
        step_tokens=recipe.step_tokens,
        optimizer=recipe.optimizer.model_dump(mode="json"),
        precision=start.precision,
        dropout=recipe.engine.dropout,
        attention=attention.describe(),
        distributed=recipe.engine.distributed if world.size > 1 else "none",
        world_sizes=progress.world_sizes,
        seeds=recipe.seeds.model_dump(),
        device=device_name(world.device),
        compiled=recipe.engine.compiles(world.device.type),
        deterministic=recipe.engine.deterministic,
        micro_windows=recipe.batch.micro or recipe.batch.sequences // world.size,
        phases=phases,
        tokens=sum(p.tokens for p in phases),
        steps=sum(p.steps for p in phases),
        flops=sum(p.flops for p in phases),
        seconds=round(progress.seconds, 3),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        code_version=code_version(),
        packages={
            name: metadata.version(name)
            for name in ("torch", "transformers", "tokenizers", "numpy")
        },
    )


def code_version() -> str:
    """The package's version, with the commit when it runs from a checkout, installed or not."""
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return __version__
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        commit = subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True)
    except (OSError, subprocess.CalledProcessError):  # no git on the machine, or not its checkout
        return __version__
    return f"{__version__}+{commit.strip()}"
