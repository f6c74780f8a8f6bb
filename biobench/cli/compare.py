"""`biobench compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.common import DataDir, Json, ResultsDir, print_json, several, terminal_width

if TYPE_CHECKING:
    from biobench.report.row import AverageName


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
        str | None,
        typer.Option("--average", help="macro, micro, weighted or paper (default: macro; paper for published models)."),
    ] = None,
    results_dir: ResultsDir = "results",
    data_dir: DataDir = None,
    ledger: Annotated[
        list[str], typer.Option("--ledger", metavar="MODEL=PATH", help="A model's training ledger; repeatable.")
    ] = [],  # noqa: B006
    rope: Annotated[float, typer.Option("--rope", help="Points within which two models may be the same.")] = 0.0,
    alpha: Annotated[float, typer.Option("--alpha", help="Level of the corrected tests.")] = 0.05,
    against_first: Annotated[
        bool, typer.Option("--against-first", help="Test the first model against each other one only.")
    ] = False,
    pooled: Annotated[bool, typer.Option("--pooled", help="One verdict over several languages.")] = False,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="FILE", help="YAML file that declares what is compared.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare models: a verdict in words, then paired differences with intervals and corrected p values."""
    from rich.console import Console

    from biobench.comparison.compare import compare as run

    with Console(stderr=True).status("Reading runs and resampling their documents"):
        result = run(
            models,
            results_dir=results_dir,
            data_dir=data_dir,
            suite=suite,
            tasks=task or None,
            average=check_average(average),
            rope=rope / 100,
            alpha=alpha,
            ledgers=_ledgers(ledger),
            against_first=against_first,
            pooled=pooled,
            plan=plan,
        )
    if as_json:
        print_json(result.as_json())
    else:
        typer.echo(result.text(terminal_width()), nl=False)


def check_average(average: str | None) -> AverageName | None:
    """The average itself when it is one. Raises UsageError."""
    from typing import get_args

    from biobench.errors import UsageError
    from biobench.report.row import AverageName
    from biobench.schema.strict import suggest

    if average is None:
        return None
    for known in get_args(AverageName):
        if average == known:
            return known  # type: ignore[no-any-return]
    raise UsageError(f"unknown average '{average}'", hint=suggest(average, list(get_args(AverageName))))


def _ledgers(texts: list[str]) -> dict[str, str]:
    from biobench.errors import UsageError

    ledgers = {}
    for text in texts:
        # a model's name may hold the sign, its path rarely does
        model, sign, path = text.rpartition("=")
        if not sign or not model or not path:
            raise UsageError(f"--ledger '{text}' is not MODEL=PATH", hint="for example --ledger A=runs/a/ledger.json")
        ledgers[model] = path
    return ledgers
