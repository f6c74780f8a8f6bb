"""`biobench data`: where each task's data stands."""

from __future__ import annotations

import typer

from biobench.cli.common import DataDir, Json, print_json

data = typer.Typer(help="Where each task's data stands and how to get it.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    app.add_typer(data, name="data")


@data.callback()
def _group() -> None:
    """Where each task's data stands and how to get it."""


@data.command()
def status(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Per task: ready, missing (what to fetch), or needs an agreement (which, and how)."""
    from pathlib import Path

    from biobench.data.catalog import list_tasks
    from biobench.data.locate import default_data_dir, remedy
    from biobench.data.validate import find

    folder = default_data_dir() if data_dir is None else Path(data_dir)
    rows = []
    for task in list_tasks():
        place = find(task, data_dir)
        missing = "missing" if task.spec.access == "open" else "agreement"
        rows.append(
            {
                "id": task.id,
                "data": missing if place is None else "ready",
                "source": None if place is None else place.source.id,
                "folder": None if place is None else str(place.folder),
                "remedy": remedy(task, folder) if place is None else None,
            }
        )
    if as_json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['id']}: {row['data']}" + (f" ({row['source']}, {row['folder']})" if row["source"] else ""))
        if row["remedy"]:
            typer.echo(f"  {row['remedy']}")
