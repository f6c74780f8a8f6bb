"""`biobench site`."""

from __future__ import annotations

from typing import Annotated

import typer

from biobench.cli.compare import check_average
from biobench.cli.console.common import Json, ResultsDir, check_results_dir, print_json
from biobench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("site")(site)


def site(
    context: typer.Context,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder of the site; written over, archives stay.")],
    results_dir: ResultsDir = "results",
    pair: Annotated[
        list[str],
        typer.Option("--pair", metavar="A,B", help="Two models to compare on a page, besides each suite's first two."),
    ] = [],  # noqa: B006
    average: Annotated[
        str | None, typer.Option("--average", help="macro, micro, weighted or paper (default: as the report's).")
    ] = None,
    as_json: Json = False,
) -> None:
    """The results as static pages for any host: page one, models, tasks, comparisons, CSV, JSON, a dated archive."""
    check_results_dir(context, results_dir)
    from biobench.site.write import write_site

    pairs = [_two(text) for text in pair]
    written = write_site(results_dir, out, average=check_average(average), pairs=pairs)
    if as_json:
        facts = {"index": str(written.index), "archive": str(written.archive), "bytes": written.size}
        print_json(facts | {"pages": written.pages})
        return
    print(
        f"{written.index} ({written.pages} pages, {written.size / 1e6:.1f} MB with data), archive in {written.archive}"
    )


def _two(text: str) -> tuple[str, str]:
    """The two names of a pair. Raises UsageError."""
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise UsageError(f"--pair '{text}' does not name two models", hint="two names with a comma between: --pair A,B")
    return names[0], names[1]
