"""The benchmark's documents that a pretraining run keeps out of its text, and the record of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from biobench.core.files import write_atomic
from biobench.data.catalog import list_tasks
from biobench.data.load import load_data
from biobench.data.validate import find
from biobench.schema.contamination import EXCLUSION_FILE, ExcludedTask, Exclusions
from biobench.schema.document import TaskData

if TYPE_CHECKING:
    from trainer.run.run import Result


def silent(_: str) -> None:
    """Tell nobody."""


def benchmark_documents(data_dir: str | None, say: Callable[[str], None] = silent) -> dict[str, TaskData]:
    """Every shipped task whose data is at hand, by id. say: told of each."""
    found = {}
    for task in list_tasks():
        if task.spec.all_sources[0].generated or find(task, data_dir) is None:
            continue
        data = load_data(task, None if data_dir is None else Path(data_dir))
        say(f"kept out of the corpus: {len(data.validation) + len(data.test)} documents of {task.id}")
        found[task.id] = data
    return found


def unique_texts(tasks: Mapping[str, TaskData]) -> list[str]:
    """The texts of all validation and test documents, each once."""
    return list(dict.fromkeys(d.reading for data in tasks.values() for d in (*data.validation, *data.test)))


def record_exclusions(result: Result, tasks: Mapping[str, TaskData]) -> None:
    """Write beside both copies of the ledger which tasks' documents were kept out."""
    from trainer.train.run_folder import read_recipe

    assert result.model is not None
    assert result.ledger is not None
    held = Exclusions(
        exclusion_hash=result.ledger.corpus.exclusion_hash,
        ngram=read_recipe(result.out).corpus.exclude.ngram,
        tasks={
            name: ExcludedTask(data_hash=data.hash, documents=len(data.validation) + len(data.test))
            for name, data in tasks.items()
        },
    )
    for folder in (result.out, result.model):
        write_atomic(folder / EXCLUSION_FILE, (held.model_dump_json(indent=1) + "\n").encode())
