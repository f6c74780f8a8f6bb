"""The parts of `biobench analyze` that read or make fine-tuning runs: transplant, freeze-report, stability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.common import DataDir, Json, Overrides, ResultsDir, Threads, percent, print_json, several
from biobench.core.packages import check_ours
from biobench.errors import UsageError
from biobench.runs.options import RunRequest

if TYPE_CHECKING:
    from rich.console import Console

    from biobench.report.details.mechanism import Stability, Standings
    from biobench.stats import MeanTest
    from biobench.workflows.mechanism import Scores

Task = Annotated[
    list[str], typer.Option("--task", callback=several, metavar="ID_OR_YAML", help="Task id or YAML path; repeatable.")
]
Seeds = Annotated[str | None, typer.Option("--seeds", help="42-50 or 42,43 (default: the spec's).")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
Figure = Annotated[list[str], typer.Option("--figure", help="Write a figure: .svg, .png, .html, .json.")]

Limit = Annotated[int | None, typer.Option("--limit", help="Training documents; the rest in proportion.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the group."""
    app.command("transplant")(transplant)
    app.command("freeze-report")(freeze_report)
    app.command("stability")(stability)


def transplant(
    recipient: Annotated[str, typer.Argument(metavar="A", help="Folder of the checkpoint that receives.")],
    donor: Annotated[str, typer.Argument(metavar="B", help="Folder of the checkpoint that gives.")],
    *,
    out: Annotated[str, typer.Option("--out", help="Folder of the hybrid; with several, each in a folder below.")],
    layers: Annotated[
        list[str], typer.Option("--layers", help="0-7, 0,2,8-14, all or none; repeatable, one hybrid each.")
    ] = [],  # noqa: B006
    modules: Annotated[
        list[str], typer.Option("--modules", help="attention or mlp, of all layers; repeatable, one hybrid each.")
    ] = [],  # noqa: B006
    keep_rest: Annotated[
        bool, typer.Option("--keep-rest", help="Leave A's embeddings, final norm and head even with all layers.")
    ] = False,
    task: Task = [],  # noqa: B006
    probe: Annotated[
        bool, typer.Option("--probe", help="Score by a linear probe on frozen states in place of fine-tuning.")
    ] = False,
    seeds: Seeds = None,
    overrides: Overrides = [],  # noqa: B006
    limit: Limit = None,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    device: Device = "auto",
    threads: Threads = None,
    figure: Figure = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Copy B's layers or modules into A; with --task, score A, B and the hybrids and say what is recovered."""
    check_ours("trainer")
    from biobench.models.loading import quiet_libraries
    from biobench.report.details.mechanism import standings
    from biobench.workflows.mechanism import PROBE, check_runs, hybrids
    from trainer.analysis.transplant import transplant as make

    if (probe or figure) and not task:
        raise UsageError("nothing is scored without a task", hint="add --task ID, or leave out --probe and --figure")
    quiet_libraries()
    _check_figures(figure)
    wanted = hybrids(layers, modules)
    scoring = RunRequest(
        tasks=task,
        seeds=seeds,
        overrides=[*(PROBE if probe else ()), *overrides],
        results_dir=results_dir,
        data_dir=data_dir,
        device=device,
        limit=limit,
    )
    if task:
        check_runs([recipient, donor], scoring)
    copies = []
    for name, chosen, parts in wanted:
        folder = Path(out) if len(wanted) == 1 else Path(out) / name
        copies.append(make(recipient, donor, folder, layers=chosen, parts=parts, keep_rest=keep_rest))
    report = None
    if task:
        models = [recipient, donor, *(str(m.folder) for m in copies)]
        scores = scored(models, scoring)
        names = list(scores)
        report = standings(scores, reference=names[1], twin=names[0], roles=("donor", "recipient", "hybrid"))
    if as_json:
        print_json(
            {
                "hybrids": [
                    {
                        "folder": str(m.folder),
                        "layers": list(m.layers),
                        "modules": list(m.parts),
                        "rest": m.rest,
                        "copied": m.copied,
                        "total": m.total,
                    }
                    for m in copies
                ],
                "by": "linear probe" if probe else "fine-tuning",
                "scores": None if report is None else report.as_json(),
            }
        )
    else:
        for m in copies:
            rest = ", embeddings, final norm and head too" if m.rest else ""
            typer.echo(f"{m.folder}: {m.copied:,} of {m.total:,} parameters are {donor}'s{rest}")
        if report is not None:
            print_standings(report, "recovered")
            if probe:
                typer.echo("by a linear probe on frozen states: seeds differ by the probe's start and order alone")
    if report is not None:
        _figures(report, figure)


def freeze_report(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="REFERENCE TWIN FROZEN...", help="Models with scores: folders, or names in the report."),
    ],
    task: Task = [],  # noqa: B006
    results_dir: ResultsDir = "results",
    figure: Figure = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """The detour, its twin and runs with frozen layers, side by side with paired intervals."""
    check_ours("trainer")
    from biobench.report.details.mechanism import standings, stored_scores
    from biobench.workflows.mechanism import frozen_layers

    if len(runs) < 3:
        raise UsageError("a reference, its twin and one frozen run or more are needed", hint="give three models")
    _check_figures(figure)
    scores = stored_scores(runs, results_dir, task)
    names = list(scores)
    frozen = {name: frozen_layers(run) for name, run in zip(names, runs, strict=True)}
    report = standings(scores, reference=names[0], twin=names[1], frozen=frozen)
    if as_json:
        print_json(report.as_json())
    else:
        print_standings(report, "kept")
    _figures(report, figure)


def stability(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Hub id or folder.")],
    *,
    rates: Annotated[str, typer.Option("--learning-rates", help="Fine-tuning rates, e.g. 1e-5,2e-5,5e-5,1e-4.")],
    task: Task,
    seeds: Seeds = None,
    overrides: Overrides = [],  # noqa: B006
    limit: Limit = None,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    device: Device = "auto",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Spread of scores over fine-tuning learning rates."""
    from biobench.models.loading import quiet_libraries
    from biobench.report.details.mechanism import stability as summarise
    from biobench.workflows.mechanism import check_runs

    try:
        asked = list(dict.fromkeys(float(part) for part in rates.split(",")))
    except ValueError:
        raise UsageError(f"learning rates '{rates}' are not understood", hint="write 1e-5,2e-5,5e-5") from None
    if len(asked) < 2:
        raise UsageError("one learning rate has no spread", hint="give --learning-rates two values or more")
    quiet_libraries()
    how = RunRequest(
        tasks=task,
        seeds=seeds,
        overrides=overrides,
        results_dir=results_dir,
        data_dir=data_dir,
        device=device,
        limit=limit,
    )
    at_rate = {rate: replace(how, overrides=(*how.overrides, f"training.learning_rate={rate!r}")) for rate in asked}
    for one in at_rate.values():
        check_runs(models, one)
    scores = {rate: scored(models, one) for rate, one in at_rate.items()}
    report = summarise(scores)
    if as_json:
        print_json(report.as_json())
    else:
        _print_stability(report)


def scored(models: Sequence[str], how: RunRequest) -> Scores:
    """The scores of models on what `how` says, runs under way on the terminal."""
    from biobench.cli.console.progress import RunTerminal
    from biobench.workflows.mechanism import run_scores

    with RunTerminal() as reporter:
        return run_scores(models, how, reporter)


def _check_figures(paths: Sequence[str]) -> None:
    from trainer.analysis.cka import check_ending

    for path in paths:
        check_ending(path)


def _figures(report: Standings, paths: Sequence[str]) -> None:
    from biobench.report.details.mechanism import standings_chart
    from trainer.analysis.cka import save

    for path in paths:
        save(standings_chart(report), path)


def wide_console() -> Console:
    """A console for wide tables: 150 columns at least where the output is no terminal."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 150)
    return console


def _over(report: Standings | Stability) -> str:
    return f"{', '.join(report.tasks)}; seeds {', '.join(map(str, report.seeds))}"


def print_standings(report: Standings, share: str) -> None:
    """The table of a freeze report or of transplants; scores and differences in percent and points."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    for name in ("model", "role"):
        table.add_column(name, overflow="fold")
    for name in ("mean", f"to {report.twin}", "p", f"to {report.reference}", "p", share):
        table.add_column(name, justify="right", no_wrap=True)
    for row in report.rows:
        kept = "–"
        if row.kept is not None and row.kept.value is not None:
            ends = row.kept.interval
            kept = percent(row.kept.value) + (f" [{percent(ends.low)}, {percent(ends.high)}]" if ends else " [?]")
        table.add_row(
            Text(row.model),
            Text(row.frozen or row.role),
            percent(row.mean),
            *cells(row.to_twin),
            *cells(row.to_reference),
            kept,
        )
    console = wide_console()
    console.print(table)
    console.print(
        f"{_over(report)}; 95% intervals over other seeds, "
        "paired, these tasks and test sets; p values are not corrected for the number of rows",
        highlight=False,
        soft_wrap=True,
    )
    for note in dict.fromkeys(row.note for row in report.rows if row.note):
        console.print(f"{share} [?]: {note}", markup=False, highlight=False, soft_wrap=True)


def cells(test: MeanTest | None) -> tuple[str, str]:
    """A difference in points with its interval, and its p; dashes where there is none."""
    if test is None:
        return "–", "–"
    ends = test.interval
    text = f"{100 * test.estimate:+.2f}" + (f" [{100 * ends.low:+.2f}, {100 * ends.high:+.2f}]" if ends else "")
    return text, "–" if test.p is None else f"{test.p:.3f}"


def _print_stability(report: Stability) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    table.add_column("model", overflow="fold")
    rates = [f"{rate:g}" for rate in report.spreads[0].by_rate]
    for name in (*rates, "best rate", "range", "sd over rates", "to first"):
        table.add_column(name, justify="right", no_wrap=True)
    for s in report.spreads:
        table.add_row(
            Text(s.model),
            *(percent(v) for v in s.by_rate.values()),
            f"{s.best_rate:g}",
            percent(s.range),
            cells(s.test)[0].replace("+", ""),
            " p ".join(cell for cell in cells(report.against_first.get(s.model)) if cell != "–") or "–",
        )
    console = wide_console()
    console.print(table)
    console.print(
        f"{_over(report)}; points; sd over rates: within each "
        "seed and task, then the mean; 95% intervals over other seeds",
        highlight=False,
        soft_wrap=True,
    )
