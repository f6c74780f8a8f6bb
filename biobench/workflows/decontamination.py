"""Decontamination: benchmark documents that a pretraining run excludes from its text, and the
record of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biobench.core.files import write_atomic
from biobench.core.text import plural
from biobench.data import catalog
from biobench.data.load import load_data
from biobench.data.locate import find
from biobench.errors import DataUnavailableError, StoreError
from biobench.kinds import get_kind
from biobench.schema.contamination import EXCLUSION_FILE, ExcludedTask, Exclusions
from biobench.schema.document import TaskData
from biobench.schema.task import TaskSpec

if TYPE_CHECKING:
    from trainer.pretrain import PretrainingResult
    from trainer.recipe.spec import Recipe


MOST_NAMED = 5
"""Tasks without data that are named in one line."""


def guard(
    recipe: Recipe,
    data_dir: str | None,
    say: Callable[[str], None],
    *,
    exclude_tasks: bool,
    require_tasks: str | None,
) -> tuple[dict[str, TaskData], list[str] | None]:
    """The tasks whose documents a recipe's corpus excludes, and the ids of those that are not
    guarded.

    None for the second where the package makes the text itself. require_tasks: ids with commas
    between them, or
    `all`. say: prints both. Raises DataUnavailableError where required tasks cannot be excluded.
    """
    ids = guardable()
    # those of phases are among them
    generated = all(source.embedded is not None for source in recipe.corpus.sources)
    excluded: dict[str, TaskData] = {}
    if exclude_tasks and not generated:
        excluded = benchmark_documents(data_dir, only=ids)
    if require_tasks is not None:
        required = require_tasks.replace(" ", "").split(",")
        _check_required(ids if required == ["all"] else required, excluded)
    if generated:
        return {}, None
    for name, data in excluded.items():
        say(f"guarded: the corpus excludes {_excluded_documents(data)} documents of {name}")
    missing = _not_excluded(ids, excluded)
    if missing:
        reason = "--no-exclude-tasks"
        if exclude_tasks:
            reason = "their documents are not available (--data-dir DIR)"
        names = ", ".join(missing)
        if len(missing) > MOST_NAMED:
            names = "`biobench data status` lists them"
        say(f"{len(missing)} {plural(len(missing), 'task')} NOT guarded, {reason}: {names}")
    return excluded, missing


def _not_excluded(ids: Sequence[str], excluded: Container[str]) -> list[str]:
    return [name for name in ids if name not in excluded]


def _check_required(required: Sequence[str], excluded: Container[str]) -> None:
    """Raises DataUnavailableError where a required task is not excluded."""
    absent = _not_excluded(required, excluded)
    if absent:
        raise DataUnavailableError(
            f"--require-tasks: the corpus cannot exclude the documents of {', '.join(absent)}",
            hint="give ids of `biobench tasks list` and, with --data-dir, the folder that holds "
            "their data",
        )


def _excluded_documents(data: TaskData) -> int:
    """How many documents of a task a corpus excludes: those of validation and test."""
    return len(data.validation) + len(data.test)


def guardable() -> list[str]:
    """Ids of the shipped tasks whose documents training text could hold.

    Not of generated texts, nor of mere names, which every text on the matter may hold.
    """
    return [task.id for task in catalog.list_tasks() if _could_be_read(task.spec)]


def _could_be_read(spec: TaskSpec) -> bool:
    return get_kind(spec.type).trains and not spec.all_sources[0].generated


def benchmark_documents(data_dir: str | None, *, only: Container[str]) -> dict[str, TaskData]:
    """The shipped tasks among `only` whose data is available, by id."""
    data = {}
    for task in catalog.list_tasks():
        if task.id in only and find(task, data_dir) is not None:
            data[task.id] = load_data(task, data_dir)
    return data


def guarded_by(run: Path | None) -> Container[str]:
    """The tasks whose documents a run excluded; all that can be where it does not say. Raises
    StoreError.
    """
    if run is None:
        return guardable()
    file = run / EXCLUSION_FILE
    if not file.is_file():
        return guardable()
    try:
        return Exclusions.model_validate_json(file.read_bytes()).tasks
    except ValueError as error:
        raise StoreError(
            "the list of guarded tasks is damaged", hint="restore or delete it", file=file
        ) from error


def texts_by_task(tasks: Mapping[str, TaskData]) -> dict[str, list[str]]:
    """The texts of the validation and test documents of each task, each once a task."""
    texts = {}
    for name, data in tasks.items():
        documents = (*data.validation, *data.test)
        readings = [document.reading for document in documents]
        texts[name] = list(dict.fromkeys(readings))
    return texts


def pretrain(
    recipe: Recipe,
    data_dir: str | None,
    say: Callable[[str], None],
    *,
    exclude_tasks: bool = True,
    require_tasks: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    **options: Any,
) -> PretrainingResult:
    """Train on text without benchmark documents, and write which tasks are guarded, next to both
    copies of the ledger.

    out, resume, options: of `trainer.api.pretrain`. say: prints what is guarded and how much was
    removed. Raises as `guard` does.
    """
    from trainer import api
    from trainer.train.run_folder import check_free, folder_of

    # before the corpora are read, which takes a while
    check_free(folder_of(recipe, out), resume=resume)
    guarded, missing = guard(
        recipe, data_dir, say, exclude_tasks=exclude_tasks, require_tasks=require_tasks
    )
    result = api.pretrain(
        recipe,
        out=out,
        resume=resume,
        exclude=texts_by_task(guarded),
        unguarded=missing,
        **options,
    )
    is_first_process = os.environ.get("RANK", "0") == "0"
    if result.model is None or result.ledger is None or missing is None or not is_first_process:
        return result
    corpus = result.ledger.corpus
    removed = corpus.removed_by_task or {}
    listed = Exclusions(
        exclusion_hash=corpus.exclusion_hash,
        ngram=recipe.corpus.exclude.ngram,
        tasks=_excluded_tasks(guarded, removed),
        not_guarded=tuple(missing),
    )
    content = listed.model_dump_json(indent=1) + "\n"
    for folder in (result.out, result.model):
        write_atomic(folder / EXCLUSION_FILE, content.encode())
    for name, count in removed.items():
        if count:
            say(f"removed from the corpus because of {name}: {count:,} documents")
    if guarded and corpus.removed_documents is not None:
        say(
            f"removed from the corpus: {corpus.removed_documents:,} documents that hold text of a "
            f"guarded task"
        )
    return result


def _excluded_tasks(
    guarded: Mapping[str, TaskData], removed: Mapping[str, int]
) -> dict[str, ExcludedTask]:
    """What is recorded of each guarded task. removed: by task; empty where nothing was counted."""
    tasks = {}
    for name, data in guarded.items():
        tasks[name] = ExcludedTask(
            data_hash=data.hash,
            documents=_excluded_documents(data),
            removed=removed.get(name, 0) if removed else None,
        )
    return tasks
