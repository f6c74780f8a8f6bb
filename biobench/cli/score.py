"""`biobench score` and `biobench rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biobench.cli.console.arguments import (
    DataDir,
    IncludeAgreement,
    Json,
    ResultsDir,
    StoredResults,
    Tasks,
)
from biobench.cli.console.output import answer, percent, write_output
from biobench.errors import UsageError

if TYPE_CHECKING:
    from biobench.score.rescore import Rescored


def score(
    *,
    task: str,
    predictions: Path | None = None,
    model: str | None = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    documents: Path | None = None,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    include_agreement: IncludeAgreement = False,
    force: bool = False,
    gate: bool = True,
    as_json: Json = False,
) -> None:
    """Score predictions that were made elsewhere; the rows of the report say `external`.

    task (ID_OR_YAML): The task that was answered.
    predictions (FILE): JSON Lines, one object a test document.
    model (NAME): Name of the system.
    seed: Tells several runs of one system apart.
    documents: Write the documents to answer here.
    force: Replace stored predictions of this name and seed.
    gate: Score the task's baselines first.
    """
    if documents is not None:
        if predictions is not None or model is not None:
            raise UsageError(
                "--documents writes the documents to predict",
                hint="leave out --predictions and --model",
            )
        from biobench.data.catalog import check_agreement, load_task
        from biobench.data.load import load_data
        from biobench.score.external import documents_for_prediction

        loaded = load_task(task)
        check_agreement(loaded, include_agreement)
        data = load_data(loaded, data_dir)
        lines = documents_for_prediction(data.test)
        write_output(documents, "".join(f"{line}\n" for line in lines))
        typer.echo(f"{len(data.test)} test documents: {documents}", err=as_json)
        return
    if predictions is None or model is None:
        raise UsageError(
            "--predictions and --model are needed",
            hint="biobench score --predictions FILE --task T --model NAME",
        )
    from biobench.runs.external import score_external
    from biobench.runs.table import end_of_run, print_results

    result = score_external(
        predictions,
        task,
        model,
        seed=seed,
        data_dir=data_dir,
        results_dir=results_dir,
        force=force,
        gate=gate,
    )
    if not as_json:
        print_results([result])
    answer(as_json, [result], end_of_run([result], results_dir))


def rescore(
    results_dir: StoredResults = "results",
    data_dir: DataDir = None,
    task: Tasks = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Recompute every score from the stored predictions.

    Data under an agreement needs --data-dir, and the spec of an own task with such data --task.
    """
    from biobench.reporting.rescore import rescore_all

    results = rescore_all(results_dir, data_dir, task)
    answer(as_json, [_rescored(result) for result in results], map(_rescored_line, results))
    if any(result.outcome == "failed" for result in results):
        raise typer.Exit(1)


def _scores(result: Rescored) -> dict[str, float]:
    """Its scores, where it could be scored."""
    if result.record is None or result.outcome in ("failed", "unavailable"):
        return {}
    return result.record.scores


def _rescored(result: Rescored) -> dict[str, Any]:
    """The row of one record."""
    row: dict[str, Any] = {"model": "", "task": result.task, "seed": None, "primary": "macro_f1"}
    record = result.record
    if record is not None:
        row |= {"model": record.model.id, "seed": record.seed, "primary": record.task.primary}
    row |= {name: getattr(result, name) for name in ("key", "outcome", "reason", "hint")}
    return row | {"scores": _scores(result), "changed": result.changed or {}}


def _rescored_line(result: Rescored) -> str:
    """The record's name and what became of it."""
    task, scores, record = result.task or result.key, _scores(result), result.record
    line = f"record · {task}: {result.outcome}"
    if record is not None:
        line = f"{record.model.id} · {task} · seed {record.seed}: {result.outcome}"
        if scores:
            line += f", {record.task.primary} {percent(scores.get(record.task.primary))}"
    if result.reason:
        line += f" ({'; '.join(filter(None, (result.reason, result.hint)))})"
    return line
