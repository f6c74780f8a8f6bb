"""`biobench data overlap`."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biobench.cli.common import DataDir, Json, ResultsDir, print_json

if TYPE_CHECKING:
    from biobench.data.desk.overlap import Overlap
    from biobench.schema.contamination import Contamination
    from biobench.schema.document import TaskData
    from trainer.corpus.exclusion import Excluded


def overlap(
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS_OR_LEDGER",
            help="Training text (folder, .txt, .jsonl, .parquet), or the ledger or folder of a pretraining run.",
        ),
    ],
    task: Annotated[list[str], typer.Option("--task", help="Only this task; repeatable.")] = [],  # noqa: B006
    model: Annotated[
        str | None, typer.Option("--model", help="The model that was trained on CORPUS; a run names its own.")
    ] = None,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    as_json: Json = False,
) -> None:
    """Exact and 13-gram overlap of training text with each task's validation and test documents.

    Where the model is known, the result is kept in --results-dir, in its records and in those of later runs.
    """
    from biobench.cli.pretrain import benchmark_documents, trainer_api, unique_texts
    from biobench.data.catalog import list_tasks, load_task
    from biobench.data.desk.overlap import Digested, corpus_texts
    from biobench.data.desk.overlap import overlap as count
    from biobench.data.load import load_data
    from biobench.data.validate import find

    loaded = [load_task(t) for t in task] or [t for t in list_tasks() if find(t, data_dir) is not None]
    folder = None if data_dir is None else Path(data_dir)
    data = {t.id: load_data(t, folder) for t in loaded}
    excluded, base, told = None, None, None
    if corpus.name == "ledger.json" or (corpus / "ledger.json").is_file():
        trainer_api()
        from trainer.run.reread import reread, run_folder

        listed = _guarded_by(run_folder(corpus))
        run = reread(corpus, lambda: unique_texts(benchmark_documents(data_dir, say=False, only=listed)))
        excluded, base, told = run.excluded, run.ledger.base.source, run.ledger
        texts = Digested(run.documents())
        model = model or str(run.model)
    else:
        texts = Digested(corpus_texts(corpus))
    rows = count(texts, {name: held.documents for name, held in data.items()})
    found = _gathered(
        rows,
        data,
        name=corpus.resolve().name if told is None else told.name,
        digest=texts.hexdigest if told is None else told.corpus.manifest_hash,
        base=base,
        excluded=excluded,
    )
    noted = _keep(found, data, model, results_dir) if model is not None else None
    if as_json:
        print_json([row.as_dict() | {"excluded": found[row.task].excluded} for row in rows])
        return
    for row in rows:
        kept_out = "; all were on the list kept out of it" if found[row.task].excluded else ""
        typer.echo(
            f"{row.task} {row.split}: {row.exact} of {row.documents} documents verbatim, "
            f"{row.touched} share a 13-gram, {row.ngrams_seen} of {row.ngrams} 13-grams seen "
            f"({row.short} documents too short to tell){kept_out}"
        )
    if noted is not None:
        typer.echo(f"kept in {Path(results_dir) / 'overlap'}, {noted} stored runs of {model} noted", err=True)


def _guarded_by(run: Path | None) -> Container[str] | None:
    """The tasks whose documents a run was told to keep out; None where it does not say."""
    from biobench.errors import StoreError
    from biobench.schema.contamination import EXCLUSION_FILE, Exclusions

    file = None if run is None else run / EXCLUSION_FILE
    if file is None or not file.is_file():
        return None
    try:
        return Exclusions.model_validate_json(file.read_bytes()).tasks
    except ValueError as error:
        raise StoreError("the list of guarded tasks is damaged", hint="restore or delete it", file=file) from error


def _gathered(
    rows: list[Overlap],
    data: Mapping[str, TaskData],
    *,
    name: str,
    digest: str,
    base: str | None,
    excluded: Excluded | None,
) -> dict[str, Contamination]:
    """Both splits of each task together."""
    from dataclasses import asdict

    from biobench.schema.contamination import Contamination, SplitOverlap

    splits: dict[str, dict[str, Any]] = {}
    for row in rows:
        fields = asdict(row)
        task, split = fields.pop("task"), fields.pop("split")
        splits.setdefault(task, {})[split] = SplitOverlap(**fields)
    return {
        task: Contamination(
            corpus=name,
            corpus_hash=digest,
            base=base,
            excluded=excluded is not None
            and all(excluded.why(d.reading) == "same" for d in (*data[task].validation, *data[task].test)),
            **own,
        )
        for task, own in splits.items()
    }


def _keep(found: Mapping[str, Contamination], data: Mapping[str, TaskData], model: str, results_dir: str | Path) -> int:
    """Store the measurements of a model; how many records of its runs were changed."""
    import biobench
    from biobench.models.loading import find_checkpoint
    from biobench.schema.contamination import OverlapRecord
    from biobench.store.overlaps import note_in_records, save_overlap

    checkpoint = find_checkpoint(model)
    changed = 0
    for task, contamination in found.items():
        record = OverlapRecord(
            task=task,
            data_hash=data[task].hash,
            model=checkpoint.id,
            model_hash=checkpoint.hash,
            contamination=contamination,
            biobench=biobench.__version__,
            made=datetime.now(UTC).isoformat(timespec="microseconds"),
        )
        save_overlap(results_dir, record)
        changed += note_in_records(results_dir, task, checkpoint.hash, record.data_hash)
    return changed
