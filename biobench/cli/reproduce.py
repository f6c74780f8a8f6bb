"""`biobench reproduce`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.arguments import DataDir, Device, Json, Offline, Threads
from biobench.cli.console.output import answer, percent, print_json
from biobench.core.threads import prepare_threads
from biobench.errors import UsageError, visible

if TYPE_CHECKING:
    from biobench.schema.record import RunRecord
    from biobench.store import Store
    from biobench.store.statements import Draw
    from biobench.workflows.reproduce import Again, Reproduction

_WORDS = {
    "identical": "agrees, the same predictions bit for bit",
    "within": "agrees, within the stored score's 95% interval over test documents",
    "outside": "does not agree",
    "not run": "not run",
}


def reproduce(
    record: Annotated[Path | None, typer.Argument()] = None,
    submission: Annotated[Path | None, typer.Option("--of")] = None,
    drawn: Annotated[bool, typer.Option("--draw")] = False,
    against: Path | None = None,
    models: Path | None = None,
    data_dir: DataDir = None,
    results_dir: str = "reproduced",
    task: list[str] = [],  # noqa: B006
    device: Device = "auto",
    offline: Offline = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make a stored run again and say whether it agrees; exit 1 where one does not or was not run.

    It uses as many threads as the record names, unless --threads says otherwise. With --of
    SUBMISSION --draw, a maintainer runs one more seed of a submission that would lead the board,
    and writes the statement that admits it.

    record: A run's JSON file, or a folder.
    submission (DIR): A submission; with --draw.
    drawn: Run a seed drawn at random; write a statement.
    against: With --draw: results that it would join.
    models: A checkpoint or a folder (default: hub).
    results_dir: Folder of the new runs.
    task (YAML): Spec that is not shipped.
    """
    from biobench.runs.options import RunRequest
    from biobench.workflows.reproduce import Again, stored_runs

    store, records = stored_runs(_named(record, submission, drawn=drawn))
    if threads is None:
        threads = _threads_of(records)
    from biobench.models.loading import quiet_libraries

    quiet_libraries()
    request = RunRequest(
        tasks=task,
        results_dir=results_dir,
        data_dir=data_dir,
        device=device,
        offline=offline,
        threads=threads,
        parallel=1,
        gate=False,
    )
    again = Again(request, models)
    if submission is not None:
        _draw(submission, against, again, as_json=as_json)
        return
    rows = _made_again(store, records, again, aloud=not as_json)
    if as_json:
        print_json([row._asdict() | {"agrees": row.agrees} for row in rows])
    elif len(rows) > 1:
        typer.echo(_numbers(rows))
    if not all(row.agrees for row in rows):
        raise typer.Exit(1)


def _named(record: Path | None, submission: Path | None, *, drawn: bool) -> Path:
    """The folder or file of what is made again. Raises UsageError unless it is RECORD, or with
    --draw a submission.
    """
    named, unfit = (submission, record) if drawn else (record, submission)
    if named is None or unfit is not None:
        raise UsageError(
            "nothing is named that can be made again", hint="give RECORD, or --of SUBMISSION --draw"
        )
    return named


def _threads_of(records: Sequence[RunRecord]) -> int | None:
    """The threads that all records name, set before torch is loaded; None where they differ."""
    numbers = {record.provenance.threads for record in records}
    if len(numbers) != 1:
        return None
    (threads,) = numbers
    prepare_threads(threads)
    return threads


def _made_again(
    store: Store, records: Sequence[RunRecord], again: Again, *, aloud: bool
) -> list[Reproduction]:
    """What became of each record. aloud: printed as it is known."""
    from biobench.workflows.reproduce import reproduce as make_again

    if aloud:
        seconds = sum(record.cost.seconds for record in records)
        typer.echo(f"{len(records)} runs, {seconds:,.0f} s when made", err=True)
    rows = []
    for row in make_again(store, records, again):
        rows.append(row)
        if aloud:
            typer.echo(visible(_line(row)))
    return rows


def _numbers(rows: Sequence[Reproduction]) -> str:
    """How many runs agree."""
    agreeing = sum(row.agrees for row in rows)
    counts = Counter(row.agreement for row in rows)
    line = f"{agreeing} of {len(rows)} runs agree, {counts['identical']} bit for bit"
    if counts["not run"]:
        line += f", {counts['not run']} not run"
    return line


def _draw(submission: Path, against: Path | None, again: Again, *, as_json: bool) -> None:
    from biobench.store.statements import save_statement
    from biobench.submission.guard import verify
    from biobench.workflows.draws import draw

    folder = submission.resolve().parent
    results = against
    if results is None and folder.name == "submitted":
        results = folder.parent
    if results is None or not results.is_dir():
        raise UsageError(
            f"{submission}: no results that it would join", hint="name their folder with --against"
        )
    verification = verify(submission, again.how.data_dir, results)
    waiting = set()
    for check in verification.checks:
        if check.code in ("W01", "W02"):
            waiting.add(check.where.removeprefix("runs/"))
        elif check.grade == "error":
            message = f"the submission is refused: {check.where}: {check.what}"
            raise UsageError(message, hint="see `biobench verify-submission`")
    statement = draw(submission, waiting, again)
    path = save_statement(submission, results, statement)
    lines = [_draw_line(d) for d in statement.draws]
    data = statement.model_dump(mode="json") | {"statement": str(path)}
    answer(as_json, data, [*lines, f"statement: {path} ({statement.mark})"])
    if statement.mark != "reproduced":
        raise typer.Exit(1)


def _draw_line(draw: Draw) -> str:
    words = "agrees" if draw.agrees else "does not agree"
    return (
        f"{draw.task} · seed {draw.seed}: {draw.metric} {percent(draw.score)}, submitted seeds "
        f"promise {percent(draw.low)} to {percent(draw.high)}; {draw.alike:.1%} of documents "
        f"answered alike, usual are {draw.alike_low:.1%} to {draw.alike_high:.1%}: {words}"
    )


def _line(row: Reproduction) -> str:
    """One run: both scores, whether they agree, and why not."""
    line = f"{row.model} · {row.task} · seed {row.seed}: {row.metric} {percent(row.stored)}"
    if row.again is not None:
        line += f", again {percent(row.again)}"
        if row.low is not None:
            line += f" (interval {percent(row.low)} to {percent(row.high)})"
    if row.same is not None and row.same < 1:
        line += f", {row.same:.1%} of documents predicted alike"
    if row.agreement == "within" and row.low is None:
        line += ": agrees, the same score"
    else:
        line += f": {_WORDS[row.agreement]}"
    reasons = list(filter(None, [row.reason]))
    if row.agreement != "identical":
        reasons += row.machine
    if reasons:
        line += f" ({'; '.join(reasons)})"
    return line
