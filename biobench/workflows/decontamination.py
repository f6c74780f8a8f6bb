"""Decontamination: benchmark documents that a pretraining run excludes from its text, and the record of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from biobench.core.files import write_atomic
from biobench.data import catalog
from biobench.data.load import load_data
from biobench.data.validate import find
from biobench.errors import DataUnavailableError, StoreError, UsageError
from biobench.kinds import get_kind
from biobench.schema.contamination import EXCLUSION_FILE, ExcludedTask, Exclusions
from biobench.schema.document import TaskData

if TYPE_CHECKING:
    from trainer.recipe.spec import Recipe
    from trainer.run.run import PretrainingResult


def silent(_: str) -> None:
    """Tell nobody."""


def guard(
    recipe: Recipe,
    data_dir: str | None,
    *,
    exclude_tasks: bool,
    require_tasks: str | None,
    say: Callable[[str], None] = silent,
) -> tuple[dict[str, TaskData], list[str] | None]:
    """The tasks whose documents a recipe's corpus excludes, and the ids of those that are not guarded.

    None for the second where the package makes the text itself. say: told of both.
    Raises UsageError and DataUnavailableError where tasks are required that are not available.
    """
    generated = all(source.embedded is not None for spec in recipe.corpora for source in spec.sources)
    guarded = exclude_tasks and not generated
    if require_tasks is not None and not guarded:
        why = "the text is made by the package itself" if generated else "--no-exclude-tasks lets all documents in"
        raise UsageError(f"--require-tasks asks for a guard, but {why}", hint="leave one of the two out")
    missing = None
    if not generated:
        tasks = catalog.list_tasks()
        missing = [t.id for t in tasks if _has_texts(t) and not (guarded and find(t, data_dir) is not None)]
    if require_tasks is not None:
        _require(require_tasks, missing or [])
    excluded = benchmark_documents(data_dir, say) if guarded else {}
    if missing:
        why = "their documents are not available (--data-dir DIR)" if guarded else "--no-exclude-tasks"
        say(f"{len(missing)} task{'s' * (len(missing) > 1)} NOT guarded, {why}: {', '.join(missing)}")
    return excluded, missing


def guardable() -> list[str]:
    """Ids of the shipped tasks whose documents training text could hold."""
    return [task.id for task in catalog.list_tasks() if _has_texts(task)]


def _has_texts(task: catalog.LoadedTask) -> bool:
    """Not of generated texts, nor of mere names, which every text on the matter may hold."""
    return not task.spec.all_sources[0].generated and get_kind(task.spec.type).trains


def _require(wanted: str, missing: Sequence[str]) -> None:
    """Raise DataUnavailableError where the documents of a wanted task are missing, UsageError for no task."""
    names = [name for name in wanted.replace(" ", "").split(",") if name]
    known = guardable()
    unknown = [name for name in names if name not in known and name != "all"]
    if unknown or not names:
        what = f"--require-tasks names an unknown task '{(unknown or [wanted])[0]}'"
        raise UsageError(what, hint="give ids of `biobench tasks list`, or all")
    absent = [name for name in missing if name in names or "all" in names]
    if absent:
        raise DataUnavailableError(
            f"the documents of {', '.join(absent)} are not available, so the corpus cannot exclude them",
            hint="give the folder that holds them with --data-dir, or ask for fewer with --require-tasks",
        )


def benchmark_documents(
    data_dir: str | None, say: Callable[[str], None] = silent, *, only: Container[str] | None = None
) -> dict[str, TaskData]:
    """Every shipped task whose data is available, by id. say: told of each. only: of these alone."""
    by_task = {}
    for task in catalog.list_tasks():
        named = only is None or task.id in only
        if named and _has_texts(task) and find(task, data_dir) is not None:
            data = load_data(task, None if data_dir is None else Path(data_dir))
            say(f"guarded: the corpus excludes {len(data.validation) + len(data.test)} documents of {task.id}")
            by_task[task.id] = data
    return by_task


def guarded_by(run: Path | None) -> Container[str] | None:
    """The tasks whose documents a run was told to exclude; None where it does not say."""
    file = None if run is None else run / EXCLUSION_FILE
    if file is None or not file.is_file():
        return None
    try:
        return Exclusions.model_validate_json(file.read_bytes()).tasks
    except ValueError as error:
        raise StoreError("the list of guarded tasks is damaged", hint="restore or delete it", file=file) from error


def texts_by_task(tasks: Mapping[str, TaskData]) -> dict[str, list[str]]:
    """The texts of the validation and test documents of each task, each once a task."""
    return {name: unique_texts({name: data}) for name, data in tasks.items()}


def unique_texts(tasks: Mapping[str, TaskData]) -> list[str]:
    """The texts of all validation and test documents, each once."""
    return list(dict.fromkeys(d.reading for data in tasks.values() for d in (*data.validation, *data.test)))


def record_exclusions(
    result: PretrainingResult,
    tasks: Mapping[str, TaskData],
    missing: Sequence[str],
    say: Callable[[str], None] = silent,
) -> None:
    """Write beside both copies of the ledger which tasks are guarded and which not. say: told how much was removed."""
    from trainer.train.run_folder import read_recipe

    assert result.model is not None
    assert result.ledger is not None
    by_task = result.ledger.corpus.removed_by_task
    exclusions = Exclusions(
        exclusion_hash=result.ledger.corpus.exclusion_hash,
        ngram=read_recipe(result.out).corpus.exclude.ngram,
        tasks={
            name: ExcludedTask(
                data_hash=data.hash,
                documents=len(data.validation) + len(data.test),
                removed=None if by_task is None else by_task.get(name, 0),
            )
            for name, data in tasks.items()
        },
        not_guarded=tuple(missing),
    )
    for name, count in (by_task or {}).items():
        if count:
            say(f"removed from the corpus because of {name}: {count:,} documents")
    removed = result.ledger.corpus.removed_documents
    if removed is not None and tasks:
        say(f"removed from the corpus: {removed:,} documents that hold text of a guarded task")
    for folder in (result.out, result.model):
        write_atomic(folder / EXCLUSION_FILE, (exclusions.model_dump_json(indent=1) + "\n").encode())
