"""The folder of a run: what it was asked to do, what it started from, whether a resume fits it, and what a kill took.

Checkpoints are written before the exports that are made of them, so a run can be killed between the two. A resume looks
for the export of every checkpoint that is kept, and for both copies of the ledger.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import Field, ValidationError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.files import canonical
from biobench.errors import ModelError, StoreError, UsageError
from biobench.schema.checkpoint import content_hash
from trainer.disk import make_folder, write_json, writing
from trainer.export import BEGINNING, CONTENT, export
from trainer.ledger import FILE, Ledger, intact_ledger
from trainer.model.families import set_rope_base
from trainer.model.network import model_from_config
from trainer.recipe.fields import LATER, Growing
from trainer.recipe.spec import Recipe
from trainer.train.checkpoint import PROGRESS, CheckpointStore, Progress, load_weights, read_progress, verify
from trainer.train.distributed import World

RECIPE = "recipe.json"
START = "start"
LOCK = ".lock"

_FREE: Any = {
    "name": True,
    "description": True,
    "logging": True,
    "checkpoints": True,
    "reuse": True,
    "corpus": {"root", "cache"},
    "batch": {"micro"},
    "phases": {"__all__": {"batch": {"micro"}}},
    "engine": {"device", "distributed", "compile", "activation_checkpointing", "precision", "deterministic"},
}
"""Fields that may change between a run and its resume: they do not change what is trained. (The precision that
`auto` came to is kept in `Start` and checked there.)"""


class Start(Growing):
    """What a run started from, known once corpus and weights are available."""

    init_hash: str
    manifest_hash: str
    tokenizer_hash: str
    parameters: int
    architecture: str
    precision: str
    phase_manifests: tuple[str, ...] = Field((), json_schema_extra=LATER)
    """Hashes of the phases' corpora, where a phase has one of its own."""
    base_commit: str | None = Field(None, json_schema_extra=LATER)
    """Commit of the base checkpoint, where it came from the hub."""


def training_fields(recipe: Recipe) -> dict[str, Any]:
    """The recipe without what a resume may change."""
    fields: dict[str, Any] = recipe.model_dump(mode="json", exclude=_FREE)
    return fields


def recipe_hash(recipe: Recipe) -> str:
    """sha256 of `training_fields`."""
    return hashlib.sha256(canonical(training_fields(recipe)).encode()).hexdigest()


def differences(a: Any, b: Any, at: str = "") -> list[str]:
    """Dotted names of the fields in which two recipes' `training_fields` differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        keys = [*a, *(k for k in b if k not in a)]
        return [d for k in keys for d in differences(a.get(k), b.get(k), f"{at}.{k}" if at else k)]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b, strict=True)) for d in differences(x, y, f"{at}.{i}")]
    return [] if a == b else [at]


def read_recipe(out: Path) -> Recipe:
    """The recipe of a run. Raises StoreError when the folder holds none, or one that cannot be run any more."""
    file = out / RECIPE
    try:
        return Recipe.model_validate_json(file.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise StoreError(
            f"the run's recipe cannot be taken up: {where}: {first['msg'].splitlines()[0]}",
            hint="restore the file, or start a new run with --out DIR",
            file=file,
        ) from error
    except (OSError, ValueError) as error:
        raise StoreError(
            "this is not the folder of a run", hint="give the --out folder of a pretraining run", file=file
        ) from error


@contextmanager
def claimed(out: Path) -> Iterator[None]:
    """Keep other starts out of a run's folder meanwhile; the system lets go of it with the process.

    Raises UsageError while another process is at work there, StoreError where the folder cannot be written.
    """
    make_folder(out)
    lock = FileLock(out / LOCK, timeout=0)
    with writing(out):
        try:
            lock.acquire()
        except Timeout:
            raise UsageError(
                f"another process is at work in {out}", hint="wait for it, or choose another folder with --out DIR"
            ) from None
    try:
        yield
    finally:
        lock.release()


def open_run(recipe: Recipe, out: Path, *, resume: bool) -> bool:
    """Take a folder for a run; True when an earlier start of the same run is continued.

    A start that failed before anything could be trained (a missing source, say) leaves the folder free.
    Raises UsageError when the folder holds a run and `resume` is off, or another run's.
    """
    if not (out / RECIPE).is_file() or not (out / START / BEGINNING).is_file():
        make_folder(out)
        write_json(out / RECIPE, recipe.model_dump(mode="json"))
        return False
    if not resume:
        raise UsageError(
            f"{out} holds a run already", hint="continue it with --resume, or choose another folder with --out DIR"
        )
    changed = differences(training_fields(read_recipe(out)), training_fields(recipe))
    if changed:
        raise UsageError(
            f"the recipe has changed since the run in {out} began: {', '.join(changed[:4])}",
            hint="undo the change, or start a new run with --out DIR",
        )
    _remove_leftovers(out)
    return True


def _remove_leftovers(out: Path) -> None:
    """Delete the parts that a kill left of folders and files on their way; whole ones never end in .tmp."""
    places = (("exports", "*"), ("phases", "*"), ("checkpoints", "*"), (".", "model"), (".", "*.json.*"))
    with writing(out):
        for folder, name in places:
            for left in (out / folder).glob(f"{name}.tmp"):
                if left.is_dir():
                    shutil.rmtree(left)
                else:
                    left.unlink()


def save_start(out: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, start: Start) -> None:
    """Write the architecture, the tokenizer and the hashes of the run's beginning."""
    folder = make_folder(out / START)
    with writing(folder):
        model.config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    write_json(folder / BEGINNING, start.model_dump(mode="json"))


def read_start(out: Path) -> Start | None:
    """What a run started from; None when it was stopped before that was known."""
    file = out / START / BEGINNING
    if not file.is_file():
        return None
    try:
        return Start.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            "the run's beginning is damaged", hint="start the run again in another folder", file=file
        ) from error


def adopt(recipe: Recipe, start: Start, world: World) -> tuple[Progress, Path]:
    """The state after the phases that `reuse` takes from another run: (progress, its checkpoint).

    Raises UsageError when that run differs in anything but the phases after them.
    """
    assert recipe.reuse is not None
    other = Path(recipe.reuse.run)
    theirs = read_recipe(other)
    names = [p.name for p in recipe.phases]
    count = names.index(recipe.reuse.through) + 1
    a, b = training_fields(recipe), training_fields(theirs)
    a["phases"], b["phases"] = a["phases"][:count], b["phases"][:count]
    changed = differences(a, b)
    own_corpora = any(recipe.corpus_of(p) != recipe.corpus for p in recipe.phases[:count])
    their_start = read_start(other)
    if their_start is not None and not changed:
        first, second = (
            s.model_copy(update={"phase_manifests": s.phase_manifests[:count]}).model_dump(
                exclude=None if own_corpora else {"phase_manifests"}
            )
            for s in (start, their_start)
        )
        changed = differences(first, second)
    if changed or their_start is None:
        raise UsageError(
            f"reuse.run {other} was not trained as this recipe begins: {', '.join(changed[:4]) or 'it never began'}",
            hint="reuse a run with equal base, corpus, batch, optimiser, seeds and first phases",
        )
    folder = CheckpointStore(other, world).folder / phase_end_name(count - 1, recipe.reuse.through)
    if not folder.is_dir():
        raise _no_phase_end(other, theirs, recipe.reuse.through, folder)
    progress = read_progress(folder)
    done = tuple(r.model_copy(update={"adopted_from": r.adopted_from or theirs.name}) for r in progress.done)
    return progress.model_copy(update={"done": done, "recipe_hash": recipe_hash(recipe)}), folder


def _no_phase_end(run: Path, theirs: Recipe, phase: str, folder: Path) -> UsageError:
    """Why another run has no state at the end of `phase`: it was not kept, not reached, or taken away."""
    if not theirs.checkpoints.keep_phases:
        return UsageError(
            f"reuse.run {run} did not keep its state at the end of phase '{phase}' (checkpoints.keep_phases is false)",
            hint="train that run again with checkpoints.keep_phases=true, or leave reuse out",
        )
    return UsageError(
        f"reuse.run {run} has no state at the end of phase '{phase}'",
        hint=f"finish that run with --resume, or restore {folder}",
    )


def phase_end_name(index: int, name: str) -> str:
    """The checkpoint's folder name at the end of a phase."""
    return f"end-{index + 1}-{name}"


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
