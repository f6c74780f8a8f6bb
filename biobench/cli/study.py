"""`biobench study`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.common import DataDir, Json, percent, print_json
from biobench.core.packages import check_ours

if TYPE_CHECKING:
    from biobench.workflows.study import ArmRow, Study, StudyRun


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("study")(study)


def study(
    folder: Annotated[
        Path, typer.Argument(metavar="STUDY", help="Folder of study.yaml, or another declaration's file.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the pretraining runs and their results.")] = Path(
        "study"
    ),
    data_dir: DataDir = None,
    device: Annotated[str, typer.Option("--device", help="Of the benchmark: auto, cpu or cuda.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the runs and what they cost, and stop.")] = False,
    table_only: Annotated[bool, typer.Option("--table", help="Only the table of what is finished.")] = False,
    as_json: Json = False,
) -> None:
    """Pretrain every arm of a declared study, check the pairs and benchmark the encoders; run it again to resume."""
    check_ours("trainer")
    from biobench.cli.pretrain import exported, stderr
    from biobench.models.loading import quiet_libraries
    from biobench.workflows.study import cost, load_study, mismatches, planned_runs, pretrain_run, scores_of, table

    quiet_libraries()
    declared = load_study(folder)
    runs = planned_runs(declared, data_dir)
    if dry_run:
        for run in runs:
            typer.echo(f"{run.name}: {run.budget:,} tokens")
        tokens, operations = cost(runs)
        typer.echo(f"{len(runs)} runs, {tokens:,} tokens, {operations:.2e} floating-point operations")
        return
    if not table_only:
        for number, run in enumerate(runs, 1):
            stderr(f"[{number}/{len(runs)}] {run.name}")
            result = pretrain_run(run, out, data_dir, stderr)
            if result is not None:
                exported(result, "run the same command to resume")
            _score(declared, run, out, data_dir, device)
    scores = scores_of(declared, runs, out)
    rows = table(declared, runs, scores)
    if as_json:
        rows_out = [asdict(row) | {"mean": row.mean} for row in rows]
        print_json({"study": declared.name, "rows": rows_out, "runs": scores})
        return
    for line in mismatches(declared, runs, out):
        typer.echo(f"not matched: {line}")
    _print(declared, rows)


def _score(declared: Study, run: StudyRun, out: Path, data_dir: str | None, device: str) -> None:
    from biobench.cli.console.progress import RunTerminal
    from biobench.runs.api import run as make_runs

    make_runs(
        str(out / "runs" / run.name / "model"),
        tasks=declared.benchmark.all_tasks,
        seeds=declared.benchmark.seeds,
        protocol=declared.benchmark.protocol,
        overrides=declared.benchmark.overrides,
        data_dir=data_dir,
        results_dir=out / "results",
        device=device,
        reporter=RunTerminal(),
    )


def _print(declared: Study, rows: Sequence[ArmRow]) -> None:
    typer.echo(declared.question)
    typer.echo(f"{'arm':<16} {'tokens':>12}  {'mean':>6}  {'sd':>5}  seeds  difference to {declared.reference}")
    for row in rows:
        spread = "–" if row.spread is None else percent(row.spread)
        difference = "–" if row.difference is None else f"{100 * row.difference:+.2f}"
        if row.low is not None and row.high is not None:
            difference += f" [{100 * row.low:+.2f}, {100 * row.high:+.2f}]"
        typer.echo(
            f"{row.arm:<16} {row.budget:>12,}  {percent(row.mean):>6}  {spread:>5}  {len(row.scores):>5}  {difference}"
        )
    typer.echo(
        f"mean: over {len(declared.benchmark.tasks)} tasks, then over pretraining seeds; sd, interval (95%, t): over "
        "pretraining seeds, paired by seed"
    )
