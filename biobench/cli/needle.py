"""`biobench needle`: an alias of `run --suite needle`, which prints the grids at the end."""

from __future__ import annotations

from dataclasses import replace

import typer

from biobench.cli.console.common import Json
from biobench.cli.console.options import takes_request
from biobench.runs.options import RunRequest


@takes_request
def needle(request: RunRequest, as_json: Json = False) -> None:
    """Needle in a haystack: is the queried fact in the document? The runs of `run --suite needle`, and their grid."""
    from biobench.cli.run import run_request

    status = run_request(request if request.tasks else replace(request, suite="needle"), as_json=as_json)
    if not request.dry_run and not as_json:
        from biobench.report.details.needle import needle_grids, render_grid

        for grid in needle_grids(request.results_dir):
            typer.echo("\n" + render_grid(grid), nl=False)
    raise typer.Exit(status)
