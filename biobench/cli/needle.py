"""`biobench needle`: the runs of suite needle, then their grid and controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.common import DataDir, Json, Overrides, ResultsDir

if TYPE_CHECKING:
    from biobench.runs import Request


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("needle")(needle)


def needle(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Hub id, id@revision, or local folder.")],
    task: Annotated[
        list[str], typer.Option("--task", metavar="ID_OR_YAML", help="These needle tasks only; repeatable.")
    ] = [],  # noqa: B006
    seeds: Annotated[str | None, typer.Option("--seeds", help="42-50 or 42,43 (default: the spec's).")] = None,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    parallel: Annotated[str, typer.Option("--parallel", help="auto, or a number of worker processes.")] = "auto",
    overrides: Overrides = [],  # noqa: B006
    limit: Annotated[int | None, typer.Option("--limit", help="Training documents; the rest in proportion.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Make runs anew that are stored already.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Open no connection.")] = False,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let checkpoints run their own code.")
    ] = False,
    show_controls: Annotated[
        bool | None,
        typer.Option(
            "--controls/--no-controls",
            help="Also controls through each encoder, which cost two runs more; or none. Default: those without one.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Needle in a haystack: is the queried fact in the document? The runs of `run --suite needle`, and their grid."""
    from biobench.cli.run import run_request
    from biobench.runs import Request

    request = Request(
        models=tuple(models),
        tasks=tuple(task),
        suite=None if task else "needle",
        seeds=seeds,
        data_dir=data_dir,
        results_dir=results_dir,
        device=device,
        parallel=parallel,
        overrides=tuple(overrides),
        limit=limit,
        force=force,
        offline=offline,
        trust_remote_code=trust_remote_code,
    )
    status = run_request(request, dry_run=dry_run, as_json=as_json)
    if not dry_run and not as_json:
        print_grids(request, controlled=show_controls is not False, encoders=show_controls is True)
    raise typer.Exit(status)


def print_grids(request: Request, *, controlled: bool, encoders: bool = False) -> None:
    """The grids of the request's models and tasks, each task followed by its controls.

    encoders: also the controls that go through each model.
    """
    from biobench.data.catalog import load_task, suite
    from biobench.data.load import load_data
    from biobench.models.loading import find_checkpoint
    from biobench.report.needle import needle_grids, render_grid
    from biobench.runs.controls import controls, render_controls
    from biobench.runs.encoder_controls import encoder_controls

    # The checkpoint's name in records to the model as it was asked for.
    names = {find_checkpoint(m, offline=request.offline).id: m for m in request.models}
    tasks = request.tasks or tuple(str(member.path) for member in suite("needle"))
    for loaded in (load_task(t, request.overrides) for t in tasks):
        grids = needle_grids(request.results_dir, tasks=[loaded.id], models=set(names))
        for grid in grids:
            typer.echo("\n" + render_grid(grid), nl=False)
        if not controlled or not grids:
            continue
        longest = max(n for g in grids for n in g.lengths if g.share(n) is not None)
        data = load_data(loaded, request.data_dir, request.limit)
        found = controls(data, longest)
        for model in names.values() if encoders else ():
            found += encoder_controls(
                model,
                loaded,
                data,
                seeds=request.seeds,
                device=request.device,
                offline=request.offline,
                trust_remote_code=request.trust_remote_code,
            )
        typer.echo("\n" + render_controls(loaded.id, found, longest), nl=False)
