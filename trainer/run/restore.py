"""What a kill or a damaged disk took from a run's results, written again when the run is resumed.

Checkpoints are written before the exports that are made of them, so a run can be killed between the two. A
resume looks for the export of every checkpoint that is kept, and for both copies of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from biobench.errors import ModelError
from biobench.schema.checkpoint import content_hash
from trainer.export.encoder import CONTENT, export
from trainer.ledger.fields import FILE, Ledger, intact_ledger
from trainer.model.network import model_from_config
from trainer.model.rotary import set_rope_base
from trainer.recipe.spec import Recipe
from trainer.train.checkpoint import PROGRESS, CheckpointStore, Progress, load_weights, read_progress, verify
from trainer.train.distributed import World
from trainer.train.run_folder import START, phase_end_name


def restore_exports(recipe: Recipe, out: Path, progress: Progress, world: World) -> None:
    """Write the missing and damaged exports of the checkpoints up to `progress` again. Called by all processes.

    Raises StoreError when the checkpoint of one is damaged too.
    """
    for state, folder, index in _expected(recipe, out, progress, world):
        if world.any(world.first and not is_whole(folder)):
            model = model_from_config(out / START)
            set_rope_base(model, recipe.rope_base_at(index), length=recipe.length_of(recipe.phases[index]))
            verify(state, world)
            load_weights(state, model, world)
            export(model, out / START, folder, world)


def _expected(recipe: Recipe, out: Path, progress: Progress, world: World) -> Iterator[tuple[Path, Path, int]]:
    """(checkpoint, its export, number of its phase) of those that are kept, as an uninterrupted run exports them."""
    checkpoints = CheckpointStore(out, world).folder
    for index, phase in enumerate(recipe.phases[: min(progress.phase, len(recipe.phases) - 1)]):
        end = checkpoints / phase_end_name(index, phase.name)
        if (end / PROGRESS).is_file():
            yield end, out / "phases" / phase.name, index
    for state in sorted(checkpoints.glob("step-*")):
        if (state / PROGRESS).is_file() and not state.name.endswith(".tmp"):
            at = read_progress(state)
            if at.total_steps <= progress.total_steps and recipe.exports_at(at.step, recipe.phases[at.phase]):
                yield state, out / "exports" / state.name, at.phase


def is_whole(folder: Path) -> bool:
    """Whether an intermediate export holds what was written: weights, config and tokenizer, byte by byte."""
    try:
        return content_hash(folder) == (folder / CONTENT).read_text(encoding="utf-8").strip()
    except (OSError, ValueError, ModelError):
        return False


def model_is_whole(out: Path, ledger: Ledger) -> bool:
    """Whether the exported encoder has its card, this ledger, and the content that the ledger names."""
    folder = out / "model"
    if not (folder / "README.md").is_file() or intact_ledger(folder / FILE) != ledger:
        return False
    try:
        return content_hash(folder) == ledger.model_hash
    except (OSError, ModelError):
        return False


def finished_ledger(out: Path, made_now: Ledger) -> Ledger:
    """The ledger that an earlier start wrote, from the copy that is intact; `made_now` when none is.

    It says when, and with which code, the run ended; `made_now` could only say that of the resume.
    """
    for file in (out / "model" / FILE, out / FILE):
        known = intact_ledger(file)
        if known is not None and (known.recipe_hash, known.phases) == (made_now.recipe_hash, made_now.phases):
            return known
    return made_now
