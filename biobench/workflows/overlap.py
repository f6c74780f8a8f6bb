"""How much of the tasks' validation and test text a training corpus holds, and the record of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from biobench.core.packages import check_ours
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.data.overlap import overlap
from biobench.errors import DataUnavailableError, UsageError
from biobench.models.loading import Checkpoint, find_checkpoint
from biobench.schema.contamination import Contamination, OverlapRecord, SplitOverlap
from biobench.schema.document import TaskData
from biobench.store.overlaps import note_in_records, save_overlap
from biobench.version import __version__
from biobench.workflows.decontamination import (
    benchmark_documents,
    guardable,
    guarded_by,
    texts_by_task,
)

if TYPE_CHECKING:
    from trainer.train.reread import TrainingText


def measure(
    corpus: Path,
    tasks: Sequence[str],
    model: str | None,
    data_dir: str | None,
    results_dir: str | Path,
) -> tuple[dict[tuple[str, str], SplitOverlap], dict[str, Contamination], tuple[str, int] | None]:
    """The overlap of each split; the same of each task as records hold it; (model, stored runs that
    were changed).

    corpus: training text, or a pretraining run or its ledger. tasks: all whose data is available
    where none is named.
    model: trained on the corpus; a run names its own. Where it is known, the result is kept in
    `results_dir`. Raises BioBenchError for a corpus, a task or a model that cannot be read.
    """
    named = {task.id: load_data(task, data_dir) for task in map(load_task, tasks)}
    data = named or benchmark_documents(data_dir, only=guardable())
    run = _read_again(corpus, data_dir)
    texts = _training_texts(corpus) if run is None else run.documents()
    documents = {name: task.documents for name, task in data.items()}
    rows, digest = overlap(texts, documents)
    if run is None:
        source = Contamination(corpus=corpus.resolve().name, corpus_hash=digest)
    else:
        model = model or str(run.model)
        source = Contamination(
            corpus=run.ledger.name,
            corpus_hash=run.ledger.corpus.manifest_hash,
            base=run.ledger.base.source,
        )
    checkpoint = None if model is None else find_checkpoint(model)
    measured = {}
    changed = 0
    for name, task in data.items():
        contamination = source.model_copy(
            update={
                "excluded": run is not None and _excludes(run, task),
                "validation": rows[name, "validation"],
                "test": rows[name, "test"],
            }
        )
        measured[name] = contamination
        if checkpoint is not None:
            changed += _keep(contamination, name, task.hash, checkpoint, results_dir)
    return rows, measured, None if model is None else (model, changed)


def _keep(
    contamination: Contamination,
    task: str,
    data_hash: str,
    checkpoint: Checkpoint,
    results_dir: str | Path,
) -> int:
    """Save a measurement and write it into stored runs; gives how many were changed."""
    record = OverlapRecord(
        task=task,
        data_hash=data_hash,
        model=checkpoint.id,
        model_hash=checkpoint.hash,
        contamination=contamination,
        biobench=__version__,
        made=datetime.now(UTC).isoformat(timespec="microseconds"),
    )
    save_overlap(results_dir, record)
    return note_in_records(results_dir, task, checkpoint.hash, data_hash)


def _excludes(run: TrainingText, task: TaskData) -> bool:
    """Whether a run left out all validation and test documents of a task."""
    documents = (*task.validation, *task.test)
    return all(run.excluded.why(document.reading) == "same" for document in documents)


def _training_texts(corpus: Path) -> Iterator[str]:
    """The texts of a file or folder, as pretraining reads them (field or column `text`).

    Raises UsageError where there is none: nothing would be found in it.
    """
    check_ours("trainer")
    from trainer.corpus.sources import files_of, texts
    from trainer.recipe.corpus import CorpusSource

    path = corpus.resolve()
    source = CorpusSource(id="corpus", path=path.name)
    hint = "give text, JSON lines or tables (field or column `text`), their folder, or a run"
    try:
        files_of(source, path.parent)
    except DataUnavailableError:
        raise UsageError(f"there is no training text at '{corpus}'", hint=hint) from None
    is_empty = True
    for text in texts(source, path.parent):
        is_empty = False
        yield text
    if is_empty:
        raise UsageError(f"'{corpus}' holds no text", hint=hint)


def _read_again(corpus: Path, data_dir: str | None) -> TrainingText | None:
    """The pretraining run that `corpus` is, or is the ledger of; None for training text."""
    if corpus.name != "ledger.json" and not (corpus / "ledger.json").is_file():
        return None
    check_ours("trainer")
    from trainer.train.reread import reread, run_folder

    def excluded() -> list[str]:
        guarded = benchmark_documents(data_dir, only=guarded_by(run_folder(corpus)))
        return list(dict.fromkeys(chain(*texts_by_task(guarded).values())))

    return reread(corpus, excluded)
