"""`biobench compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from biobench.cli.console.common import DataDir, Json, ResultsDir, print_json, several, terminal_width


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("compare")(compare)


def compare(
    models: Annotated[
        list[str], typer.Argument(metavar="A B...", help="Models as in the report, their folders, or published models.")
    ] = [],  # noqa: B006
    *,
    task: Annotated[
        list[str],
        typer.Option(
            "--task", callback=several, help="Task id or YAML path; repeatable (default: all tasks in common)."
        ),
    ] = [],  # noqa: B006
    suite: Annotated[
        str | None, typer.Option("--suite", help="fr, en, needle, all, blurb, drbenchmark, or a YAML file of tasks.")
    ] = None,
    average: Annotated[
        str, typer.Option("--average", help="paper (each task's published one), macro, micro or weighted.")
    ] = "paper",
    results_dir: ResultsDir = "results",
    data_dir: DataDir = None,
    rope: Annotated[float, typer.Option("--rope", help="Points within which two models may be the same.")] = 0.0,
    alpha: Annotated[float, typer.Option("--alpha", help="Level of the corrected tests.")] = 0.05,
    pooled: Annotated[bool, typer.Option("--pooled", help="One verdict over several languages.")] = False,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="FILE", help="YAML file that declares what is compared.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare models: a verdict in words, then paired differences with intervals and corrected p values."""
    from typing import get_args

    from rich.console import Console

    from biobench.comparison.compare import compare as run
    from biobench.errors import UsageError
    from biobench.report.row import AverageName
    from biobench.schema.strict import suggest

    known: tuple[AverageName, ...] = get_args(AverageName)
    if average not in known:
        raise UsageError(f"unknown average '{average}'", hint=suggest(average, known))

    with Console(stderr=True).status("Reading runs and resampling their documents"):
        result = run(
            models,
            results_dir=results_dir,
            data_dir=data_dir,
            suite=suite,
            tasks=task or None,
            average=average,
            rope=rope / 100,
            alpha=alpha,
            pooled=pooled,
            plan=plan,
        )
    if as_json:
        print_json(result.as_json())
    else:
        typer.echo(result.text(terminal_width()), nl=False)
