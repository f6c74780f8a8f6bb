"""`biobench needle`: the runs of suite needle, then their grid and controls."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from biobench.cli.console.common import Json
from biobench.cli.console.options import takes_request
from biobench.runs.options import RunRequest


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("needle")(needle)


@takes_request(
    only=(
        *("model", "tasks", "seeds", "data_dir", "results_dir", "limit", "overrides", "dry_run"),
        *("device", "threads", "parallel", "offline", "force"),
    ),
    helps={"tasks": "These needle tasks only.", "overrides": "Change a field of the spec."},
)
def needle(
    request: RunRequest,
    show_controls: Annotated[
        bool | None,
        typer.Option(
            "--controls/--no-controls",
            help="Also controls through each encoder, or none.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Needle in a haystack: is the queried fact in the document? The runs of `run --suite needle`, and their grid."""
    from biobench.cli.run import run_request

    status = run_request(request if request.tasks else replace(request, suite="needle"), as_json=as_json)
    if not request.dry_run and not as_json:
        print_grids(request, controlled=show_controls is not False, encoders=show_controls is True)
    raise typer.Exit(status)


def print_grids(request: RunRequest, *, controlled: bool, encoders: bool = False) -> None:
    """The grids of the request's models and tasks, each task followed by its controls.

    encoders: also the controls that go through each model.
    """
    from biobench.data.catalog import load_task, suite
    from biobench.data.load import load_data
    from biobench.models.loading import find_checkpoint
    from biobench.report.details.needle import needle_grids, render_grid
    from biobench.runs.needle_controls import controls, encoder_controls, render_controls

    # The checkpoint's name in records to the model as it was asked for.
    names = {find_checkpoint(m, offline=request.offline).id: m for m in request.model}
    tasks = request.tasks or tuple(str(member.path) for member in suite("needle"))
    for loaded in (load_task(t, request.overrides) for t in tasks):
        grids = needle_grids(request.results_dir, tasks=[loaded.id], models=set(names))
        for grid in grids:
            typer.echo("\n" + render_grid(grid), nl=False)
        if not controlled or not grids:
            continue
        longest = max(n for g in grids for n in g.lengths if g.share(n) is not None)
        data = load_data(loaded, request.data_dir, request.limit)
        results = controls(data, longest)
        for model in names.values() if encoders else ():
            results += encoder_controls(
                model,
                loaded,
                data,
                seeds=request.seeds,
                device=request.device,
                offline=request.offline,
                trust_remote_code=request.trust_remote_code,
            )
        typer.echo("\n" + render_controls(loaded.id, results, longest), nl=False)
