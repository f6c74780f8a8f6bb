"""`biobench analyze variance`: where the variance of a model's scores comes from."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from biobench.cli.console.common import DataDir, Json, Overrides, ResultsDir, print_json, several


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("variance")(variance)


def variance(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name in the report, or a folder.")],
    task: Annotated[
        list[str], typer.Option("--task", callback=several, metavar="ID", help="Only this task; repeatable.")
    ] = [],  # noqa: B006
    average: Annotated[
        Literal["macro", "micro", "weighted", "paper"], typer.Option("--average", help="The scores that are looked at.")
    ] = "macro",
    plan: Annotated[bool, typer.Option("--plan", help="Print the runs to make and stop.")] = False,
    heads: Annotated[int, typer.Option("--heads", help="Of --plan: head initialisations.")] = 4,
    orders: Annotated[int, typer.Option("--orders", help="Of --plan: data orders.")] = 4,
    seeds: Annotated[str, typer.Option("--seeds", help="Of --plan: training seeds of each.")] = "42",
    overrides: Overrides = [],  # noqa: B006
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    as_json: Json = False,
) -> None:
    """Task, head initialisation, data order and test sampling: what each adds to the spread of scores."""
    from biobench.comparison.variance import planned_commands, variance_report

    if plan:
        more = [part for text in overrides for part in ("--set", text)]
        more += ["--results-dir", results_dir] if results_dir != "results" else []
        more += ["--data-dir", data_dir] if data_dir is not None else []
        commands = planned_commands(model, task, heads=heads, orders=orders, seeds=seeds, more=more)
        if as_json:
            print_json({"commands": commands})
        else:
            typer.echo("\n".join(commands))
        return
    report = variance_report(model, results_dir, tasks=task, average=average, data_dir=data_dir)
    if as_json:
        print_json(report.as_json())
    else:
        typer.echo(report.text())
