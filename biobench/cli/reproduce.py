"""`biobench reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.arguments import DataDir, Device, Json, Offline, Threads
from biobench.cli.console.output import answer, percent, print_json
from biobench.core.threads import prepare_threads
from biobench.errors import UsageError, visible

if TYPE_CHECKING:
    from biobench.workflows.reproduce import Again, Reproduction

_WORDS = {
    "identical": "agrees, the same predictions bit for bit",
    "within": "agrees, within the stored score's 95% interval over test documents",
    "outside": "does not agree",
    "not run": "not run",
}


def reproduce(
    record: Annotated[
        Path | None, typer.Argument(metavar="RECORD", help="A run's JSON file, or a folder.")
    ] = None,
    submission: Annotated[
        Path | None, typer.Option("--of", metavar="DIR", help="A submission; with --draw.")
    ] = None,
    drawn: Annotated[
        bool, typer.Option("--draw", help="Run a seed drawn at random; write a statement.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option("--against", help="With --draw: results that it would join.")
    ] = None,
    models: Annotated[
        Path | None, typer.Option("--models", help="A checkpoint or a folder (default: hub).")
    ] = None,
    data_dir: DataDir = None,
    results_dir: Annotated[
        str, typer.Option("--results-dir", help="Folder of the new runs.")
    ] = "reproduced",
    task: Annotated[
        list[str], typer.Option("--task", metavar="YAML", help="Spec that is not shipped.")
    ] = [],  # noqa: B006
    device: Device = "auto",
    offline: Offline = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make a stored run again and say whether it agrees; exit 1 where one does not or was not run.

    It uses as many threads as the record names, unless --threads says otherwise. With --of
    SUBMISSION --draw, a maintainer runs one more seed of a submission that would lead the board,
    and writes the statement that admits it.
    """
    from biobench.runs.options import RunRequest
    from biobench.workflows.reproduce import Again, stored_runs
    from biobench.workflows.reproduce import reproduce as make_again

    if (submission is None) == (record is None) or drawn != (submission is not None):
        raise UsageError(
            "nothing is named that can be made again", hint="give RECORD, or --of SUBMISSION --draw"
        )
    store, records = stored_runs(record or submission or Path())
    counts = {r.provenance.threads for r in records}
    if threads is None and len(counts) == 1:
        (threads,) = counts
        prepare_threads(threads)
    from biobench.models.loading import quiet_libraries

    quiet_libraries()
    how = RunRequest(
        tasks=task,
        results_dir=results_dir,
        data_dir=data_dir,
        device=device,
        offline=offline,
        threads=threads,
        parallel=1,
        gate=False,
    )
    again = Again(how, models)
    if submission is not None:
        _draw(submission, against, again, as_json=as_json)
        return
    if not as_json:
        typer.echo(
            f"{len(records)} runs, {sum(r.cost.seconds for r in records):,.0f} s when made",
            err=True,
        )
    rows = []
    for row in make_again(store, records, again):
        rows.append(row)
        if not as_json:
            typer.echo(visible(_line(row)))
    if as_json:
        print_json([row._asdict() | {"agrees": row.agrees} for row in rows])
    elif len(rows) > 1:
        same, idle = (
            sum(row.agreement == word for row in rows) for word in ("identical", "not run")
        )
        agree = f"{sum(row.agrees for row in rows)} of {len(rows)} runs agree, {same} bit for bit"
        typer.echo(agree + (f", {idle} not run" if idle else ""))
    if not all(row.agrees for row in rows):
        raise typer.Exit(1)


def _draw(submission: Path, against: Path | None, again: Again, *, as_json: bool) -> None:
    from biobench.store.statements import save_statement
    from biobench.submission.guard import verify
    from biobench.workflows.reproduce import draw

    folder = submission.resolve().parent
    results = against or (folder.parent if folder.name == "submitted" else None)
    if results is None or not results.is_dir():
        raise UsageError(
            f"{submission}: no results that it would join", hint="name their folder with --against"
        )
    verification = verify(submission, again.how.data_dir, results)
    errors = [c for c in verification.checks if c.grade == "error" and c.code != "W02"]
    if errors:
        what = f"the submission is refused: {errors[0].where}: {errors[0].what}"
        raise UsageError(what, hint="see `biobench verify-submission`")
    waiting = {
        c.where.removeprefix("runs/") for c in verification.checks if c.code in ("W01", "W02")
    }
    statement = draw(submission, waiting, again)
    path = save_statement(submission, results, statement)
    lines = [
        f"{d.task} · seed {d.seed}: {d.metric} {percent(d.score)}, submitted seeds promise "
        f"{percent(d.low)} to "
        f"{percent(d.high)}; {d.alike:.1%} of documents answered alike, usual are "
        f"{d.alike_low:.1%} to "
        f"{d.alike_high:.1%}: {'agrees' if d.agrees else 'does not agree'}"
        for d in statement.draws
    ]
    data = statement.model_dump(mode="json") | {"statement": str(path)}
    answer(as_json, data, [*lines, f"statement: {path} ({statement.mark})"])
    if statement.mark != "reproduced":
        raise typer.Exit(1)


def _line(row: Reproduction) -> str:
    scores = f"{row.metric} {percent(row.stored)}"
    if row.again is not None:
        scores += f", again {percent(row.again)}"
        scores += (
            "" if row.low is None else f" (interval {percent(row.low)} to {percent(row.high)})"
        )
    if row.same is not None and row.same < 1:
        scores += f", {row.same:.1%} of documents predicted alike"
    exact = row.agreement == "within" and row.low is None
    words = "agrees, the same score" if exact else _WORDS[row.agreement]
    reason = "; ".join(
        (
            *([row.reason] if row.reason else []),
            *(() if row.agreement == "identical" else row.machine),
        )
    )
    return f"{row.model} · {row.task} · seed {row.seed}: {scores}: {words}" + (
        f" ({reason})" if reason else ""
    )
