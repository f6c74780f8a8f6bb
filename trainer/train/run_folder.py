"""The folder of a run: what it was asked to do, what it started from, and whether a resume or
another run fits it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from biobench.core.files import canonical
from biobench.errors import ModelError, UsageError
from biobench.schema.checkpoint import content_hash
from biobench.schema.source import later
from trainer.disk import make_folder, read_json, write_json, writing
from trainer.export import BEGINNING
from trainer.ledger import FILE, intact_ledger
from trainer.recipe.fields import Growing
from trainer.recipe.spec import Recipe
from trainer.train.checkpoint import FOLDER, Progress, read_progress

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
    "engine": {
        "device",
        "distributed",
        "compile",
        "activation_checkpointing",
        "precision",
        "deterministic",
    },
}
"""Fields that may change between a run and its resume: they do not change what is trained. (The
precision that
`auto` came to is kept in `Start` and checked there.)
"""


class Start(Growing):
    """What a run started from, known once corpus and weights are available."""

    init_hash: str
    manifest_hash: str
    tokenizer_hash: str
    parameters: int
    architecture: str
    precision: str
    phase_manifests: tuple[str, ...] = later(())
    """Hashes of the phases' corpora, where a phase has one of its own."""
    base_commit: str | None = later(None)
    """Commit of the base checkpoint, where it came from the hub."""
    tokenizer: str | None = later(None)
    """`tokenizer.json`, or the class that read the tokenizer's other files."""


def training_fields(recipe: Recipe) -> dict[str, Any]:
    """The recipe without what a resume may change."""
    fields: dict[str, Any] = recipe.model_dump(mode="json", exclude=_FREE)
    return fields


def recipe_hash(recipe: Recipe) -> str:
    """sha256 of `training_fields`."""
    return hashlib.sha256(canonical(training_fields(recipe)).encode()).hexdigest()


def differences(a: Any, b: Any, at: str = "") -> list[str]:
    """Dotted names of the fields in which two recipes' `training_fields` differ."""
    if a == b:
        return []
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        a = dict(enumerate(a))
        b = dict(enumerate(b))
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return [at]
    found = []
    for key in {**a, **b}:
        name = f"{at}.{key}".removeprefix(".")
        found += differences(a.get(key), b.get(key), name)
    return found


def read_recipe(out: Path) -> Recipe:
    """The recipe of a run. Raises StoreError when the folder holds none, or one that cannot be run
    any more.
    """
    hint = "give the --out folder of a pretraining run, or start a new one"
    return read_json(Recipe, out / RECIPE, "the run's recipe cannot be read", hint)


@contextmanager
def claimed(out: Path) -> Iterator[None]:
    """Keep other starts out of a run's folder meanwhile; the system lets go of it with the process.

    Raises UsageError while another process is at work there, StoreError where the folder cannot be
    written.
    """
    make_folder(out)
    lock = FileLock(out / LOCK, timeout=0)
    with writing(out):
        try:
            lock.acquire()
        except Timeout:
            raise UsageError(
                f"another process is at work in {out}",
                hint="wait for it, or choose another folder with --out DIR",
            ) from None
    try:
        yield
    finally:
        lock.release()


def folder_of(recipe: Recipe, out: str | Path | None) -> Path:
    """Where the recipe's run lies unless `out` says it."""
    return Path("runs") / recipe.name if out is None else Path(out)


def holds_run(out: Path) -> bool:
    """Whether a run began there. A start that failed before anything could be trained (a missing
    source, say) leaves the folder free.
    """
    return (out / RECIPE).is_file() and (out / START / BEGINNING).is_file()


def check_free(out: Path, *, resume: bool) -> None:
    """Raise UsageError when the folder holds a run and `resume` is off."""
    if holds_run(out) and not resume:
        raise UsageError(
            f"{out} holds a run already",
            hint="continue it with --resume, or choose another folder with --out DIR",
        )


def open_run(recipe: Recipe, out: Path, *, resume: bool) -> None:
    """Take a folder for a run, or continue an earlier start of the same run. Raises UsageError
    when the folder holds a run and `resume` is off, or another run's.
    """
    if not holds_run(out):
        make_folder(out)
        write_json(out / RECIPE, recipe.model_dump(mode="json"))
        return
    check_free(out, resume=resume)
    changed = differences(training_fields(read_recipe(out)), training_fields(recipe))
    if changed:
        raise UsageError(
            f"the recipe has changed since the run in {out} began: {', '.join(changed[:4])}",
            hint="undo the change, or start a new run with --out DIR",
        )
    with writing(out):  # what a kill left of folders on their way; whole ones never end in .tmp
        for folder in (out, out / FOLDER, out / "exports", out / "phases"):
            for remnant in folder.glob("*.tmp"):
                if remnant.is_dir():
                    shutil.rmtree(remnant)
                else:
                    remnant.unlink()


def read_start(out: Path) -> Start:
    """What a run started from. Raises StoreError where it was stopped before that was known."""
    hint = "start the run again in another folder"
    return read_json(Start, out / START / BEGINNING, "the run's beginning is not there", hint)


def adopt(recipe: Recipe, start: Start) -> tuple[Progress, Path]:
    """The state after the phases that `reuse` takes from another run: (progress, its checkpoint).

    Raises UsageError when that run differs in anything but the phases after them, or has not kept
    the state.
    """
    assert recipe.reuse is not None
    donor = Path(recipe.reuse.run)
    through = recipe.reuse.through
    other_recipe = read_recipe(donor)
    count = [phase.name for phase in recipe.phases].index(through) + 1
    # later phases may have any corpus; without corpora of their own the runs' manifests tell all
    own_corpora = any(recipe.corpus_of(phase) != recipe.corpus for phase in recipe.phases[:count])
    adopted = []
    for run, beginning in ((recipe, start), (other_recipe, read_start(donor))):
        fields = training_fields(run) | {"start": beginning.model_dump()}
        fields["phases"] = fields["phases"][:count]
        compared = beginning.phase_manifests[:count] if own_corpora else ()
        fields["start"]["phase_manifests"] = compared
        adopted.append(fields)
    changed = differences(adopted[0], adopted[1])
    if changed:
        raise UsageError(
            f"reuse.run {donor} was not trained as this recipe begins: {', '.join(changed[:4])}",
            hint="reuse a run with equal base, corpus, batch, optimiser, seeds and first phases",
        )
    folder = donor / FOLDER / phase_end_name(count - 1, through)
    if not folder.is_dir():
        raise UsageError(
            f"reuse.run {donor} has no state at the end of phase '{through}'",
            hint="finish that run with --resume, or train it again with "
            "checkpoints.keep_phases=true",
        )
    progress = read_progress(folder)
    progress.recipe_hash = recipe_hash(recipe)
    progress.done = tuple(
        record.model_copy(update={"adopted_from": record.adopted_from or other_recipe.name})
        for record in progress.done
    )
    return progress, folder


def phase_end_name(index: int, name: str) -> str:
    """The checkpoint's folder name at the end of a phase."""
    return f"end-{index + 1}-{name}"


def is_finished(out: Path) -> bool:
    """Whether the exported encoder is there with its ledger, and is the one that the ledger
    names."""
    ledger = intact_ledger(out / FILE)
    model = out / "model"
    try:
        return (
            ledger is not None
            and intact_ledger(model / FILE) == ledger
            and content_hash(model) == ledger.model_hash
        )
    except (OSError, ModelError):
        return False
