"""`biobench site`."""

from __future__ import annotations

from typing import Annotated

import typer

from biobench.cli.console.common import Json, ResultsDir, check_results_dir, print_json


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("site")(site)


def site(
    context: typer.Context,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder of the site; written over, archives stay.")],
    results_dir: ResultsDir = "results",
    as_json: Json = False,
) -> None:
    """The results as static files for any host: a page that sorts and filters, CSV, JSON, a dated archive."""
    check_results_dir(context, results_dir)
    from biobench.export.site import write_site
    from biobench.report.table import build, first_average, load

    results = load(results_dir)
    written = write_site(build(results, first_average(results)), out)
    if as_json:
        print_json({"index": str(written.index), "archive": str(written.archive), "bytes": written.size})
        return
    print(f"{written.index} ({written.size / 1e6:.1f} MB with CSV and JSON), archive in {written.archive}")
