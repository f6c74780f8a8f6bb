"""`biobench tasks`: list, show, validate, schema, new; gate stands in its own module."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from biobench.cli.console.common import DataDir, Json, print_json, write_output
from biobench.cli.gate import gate
from biobench.errors import BioBenchError, UsageError, visible

tasks = typer.Typer(help="List, describe, validate and scaffold task specs.", no_args_is_help=True)
tasks.command()(gate)


@tasks.command("list")
def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """All shipped tasks and where their data stands."""
    from biobench.data.catalog import list_tasks
    from biobench.data.status import status

    columns = ("id", "data", "language", "type", "access", "version", "name")
    rows = []
    for task in list_tasks():
        state = status(task, data_dir).state.replace("generated", "ready")
        rows.append({name: state if name == "data" else getattr(task.spec, name) for name in columns})
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
    import yaml

    from biobench.data.catalog import load_task
    from biobench.data.describe import describe

    described = describe(load_task(task), data_dir)
    if as_json:
        print_json(described)
    else:
        described["deviations"] = described["deviations"] or "none known"
        shown = {name: value for name, value in described.items() if value not in (None, [], {}, "")}
        typer.echo(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=120), nl=False)


@tasks.command()
def validate(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="YAML files, or folders of them.")],
    data_dir: DataDir = None,
    recount: Annotated[bool, typer.Option("--recount", help="Write the data's counts and findings.")] = False,
    as_json: Json = False,
) -> None:
    """Check specs, and open their data where --data-dir has it. Exit 2 when something is wrong.

    Missing data is wrong for a spec that is named itself with --data-dir; of a folder of specs it is shown.
    """
    from biobench.data.catalog import load_task
    from biobench.data.counts import unexpressed_in_words
    from biobench.data.describe import validate as opened
    from biobench.data.locate import data_folder
    from biobench.data.scaffold import recounted

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
            row = asdict(opened(task, data_dir))
            if explicit and file in paths and row["state"] != "ready":
                row["problems"].append(f"data {row['state']}")
            problems = [f"{file}: {problem}" for problem in row["problems"]]
            rows.append({"valid": not problems, **row, "problems": problems})
        except BioBenchError as error:
            # A data file's error names that file; one without a place gets the spec's.
            problem = str(error) if error.file else f"{file}: {error}"
            rows.append({"valid": False, "path": str(file), "problems": [problem], "remedy": error.hint})
    if as_json:
        print_json(rows)
    for row in rows:
        if not as_json and row["valid"]:
            typer.echo(visible(f"{row['path']}: valid, data {row['state']}"))
            for line in filter(None, (row["remedy"], unexpressed_in_words(row["unexpressed"]))):
                typer.echo(f"  - {visible(line)}")
        elif not row["valid"]:
            for problem in row["problems"]:
                sys.stderr.write(f"{visible(problem)}\n")
            sys.stderr.write(f"hint: {row['remedy'] or 'correct the spec, or the data that it describes'}\n")
    if not all(row["valid"] for row in rows):
        raise typer.Exit(2)


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
    output: Annotated[Path | None, typer.Option("--output", "--out", "-o", help="Default: ID.yaml.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Scaffold a spec from a data file or folder: format, labels, counts and findings are read from it."""
    from biobench.data.scaffold import scaffold
    from biobench.data.sniff import Wanted

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
