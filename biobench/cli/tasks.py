"""`biobench tasks`: list, show, validate, schema, new; gate stands in its own module."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from biobench.cli import gate
from biobench.cli.console.common import DataDir, Json, print_json, write_output
from biobench.errors import BioBenchError, UsageError, visible

tasks = typer.Typer(help="List, describe, validate and scaffold task specs.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    gate.register(tasks)
    app.add_typer(tasks, name="tasks")


@tasks.command("list")
def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """All shipped tasks and where their data stands."""
    from biobench.data.catalog import list_tasks
    from biobench.data.validate import data_state

    columns = ("id", "data", "language", "type", "access", "version", "name")
    rows = [
        {name: data_state(t, data_dir) if name == "data" else getattr(t.spec, name) for name in columns}
        for t in list_tasks()
    ]
    if as_json:
        print_json(rows)
        return
    lines = [columns, *(tuple(map(str, row.values())) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


@tasks.command()
def show(
    task: Annotated[str, typer.Argument(metavar="ID_OR_YAML")], data_dir: DataDir = None, as_json: Json = False
) -> None:
    """Describe a task: what it is, labels, licence, citation, and samples where the data is available."""
    from biobench.data.catalog import load_task
    from biobench.data.describe import describe

    described = describe(load_task(task), data_dir)
    if as_json:
        print_json(described)
    else:
        deviations = {d["aspect"]: f"here: {d['here']}; compared: {d['compared']}" for d in described["deviations"]}
        print_described(described | {"deviations": deviations or "none known"})


@tasks.command()
def validate(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="YAML files, or folders of them.")],
    data_dir: DataDir = None,
    recount: Annotated[
        bool, typer.Option("--recount", help="Write the counts and findings of the data into the specs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check specs, and open their data where --data-dir has it. Exit 2 when something is wrong.

    Data that is not there is wrong for a spec that is named itself with --data-dir; of a folder of specs it is told.
    """
    from biobench.data.catalog import load_task
    from biobench.data.counts import unexpressed_in_words
    from biobench.data.locate import data_folder
    from biobench.data.scaffold import recounted
    from biobench.data.validate import validate_task

    files = [f for p in paths for f in (sorted(p.rglob("*.yaml")) if p.is_dir() else [p])]
    if not files:
        raise UsageError("no YAML file to validate", hint="give a spec or a folder of specs")
    source = context.get_parameter_source("data_dir")
    explicit = source is not None and source.name == "COMMANDLINE"
    rows: list[dict[str, Any]] = []
    for file in files:
        try:
            task = load_task(file)
            if recount:
                write_output(file, recounted(task, data_folder(data_dir)))
                task = load_task(file)
            row = asdict(validate_task(task, data_dir))
            if explicit and file in paths and row["state"] != "ready":
                row["problems"].append(f"data {_state(row)}")
                row["hint"] = row["remedy"]
            rows.append({"valid": not row["problems"], **row})
        except BioBenchError as error:
            # A data file's error names that file; one without a place gets the spec's.
            problem = str(error) if error.file else f"{file}: {error}"
            rows.append({"valid": False, "path": str(file), "problems": [problem], "hint": error.hint, "placed": True})
    if as_json:
        print_json(rows)
    for row in rows:
        if not as_json and row["valid"]:
            typer.echo(visible(f"{row['path']}: valid, data {_state(row)}"))
            for warning in row["warnings"]:
                typer.echo(f"  - {warning}")
            if lost := unexpressed_in_words(row["unexpressed"]):
                typer.echo(f"  - {lost}")
        elif not row["valid"]:
            for problem in row["problems"]:
                where = "" if row.get("placed") or problem.startswith(row["path"]) else f"{row['path']}: "
                sys.stderr.write(f"{visible(where + problem)}\n")
            sys.stderr.write(f"hint: {row.get('hint') or 'correct the spec, or the data that it describes'}\n")
    if not all(row["valid"] for row in rows):
        raise typer.Exit(2)


def _state(row: dict[str, Any]) -> str:
    """The state of a validated spec's data and, where it is not there, the folders that were looked for."""
    state = "needs an agreement" if row["state"] == "agreement" else row["state"]
    return state + (f", looked for {' and '.join(row['looked_for'])}" if row["looked_for"] else "")


@tasks.command()
def schema() -> None:
    """JSON Schema of a task spec, for editor completion."""
    from biobench.data.catalog import task_json_schema

    print_json(task_json_schema())


@tasks.command()
def new(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A data file of the new task, or its folder.")],
    task_id: Annotated[str, typer.Option("--id", help="Id of the new task.")],
    text: Annotated[str | None, typer.Option("--text", help="Column or field of the text.")] = None,
    label: Annotated[str | None, typer.Option("--label", help="Column or field of the label.")] = None,
    group: Annotated[str | None, typer.Option("--group", help="Column of what belongs together (a patient).")] = None,
    language: Annotated[str, typer.Option("--language", help="ISO 639-1 code.")] = "en",
    separator: Annotated[str | None, typer.Option("--separator", help="What parts several labels of a cell.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="Where to write (default: ID.yaml).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Scaffold a spec from a data file or folder: format, labels, counts and findings are read from it."""
    from biobench.data.scaffold import check_task_id, scaffold
    from biobench.data.sniff import Wanted

    check_task_id(task_id)
    target = output or Path(f"{task_id}.yaml")
    # What cannot be looked at is no file here; writing it says why.
    if os.path.exists(target) and not force:
        raise UsageError(f"{target} exists already", hint="choose another --output, or --force")
    named = Wanted(text, label, group, separator)
    draft = scaffold(data, task_id, language=language, wanted=named)
    write_output(target, draft.text)
    typer.echo("\n".join(["detected:", *(f"  {visible(line)}" for line in draft.detected)]))
    here, folder = Path.cwd().resolve(), draft.data_dir
    below = folder.relative_to(here) if folder.is_relative_to(here) else folder
    next_ = shlex.join(["biobench", "tasks", "validate", str(target), "--data-dir", str(below)])
    typer.echo(f"{target}: written; fill in what it leaves open, then `{next_}`")


def print_described(described: dict[str, Any], indent: int = 0) -> None:
    """A description as indented lines; nested mappings one level deeper."""
    pad = " " * indent
    for name, value in described.items():
        if value in (None, [], {}, ""):
            continue
        if isinstance(value, dict):
            typer.echo(f"{pad}{name}:")
            print_described(value, indent + 2)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            typer.echo(f"{pad}{name}:")
            for item in value:
                typer.echo(f"{pad}  -")
                print_described(item, indent + 4)
        elif isinstance(value, list):
            typer.echo(f"{pad}{name}: {(' ' if name == 'notes' else ', ').join(map(str, value))}")
        else:
            typer.echo(f"{pad}{name}: {value}")
