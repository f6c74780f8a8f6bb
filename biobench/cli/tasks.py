"""`biobench tasks`: list, show, validate, schema, new, gate."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from biobench.cli.console.arguments import (
    DataDir,
    Json,
    Overrides,
    ResultsDir,
    Threads,
    check_known,
)
from biobench.cli.console.options import shown
from biobench.cli.console.output import (
    answer,
    percent,
    print_json,
    table,
    terminal_width,
    write_output,
)
from biobench.errors import BioBenchError, UsageError, visible

if TYPE_CHECKING:
    from biobench.schema.baseline import BaselineRecord

tasks = typer.Typer(help="List, describe, validate and scaffold task specs.", no_args_is_help=True)

MOST_LABELS = 12
"""Labels that the overview of a task names."""
SAMPLE_WIDTH = 150
"""Characters of a sample's text in the overview, and of what is marked in it."""
_OVERVIEW = (
    *("id", "version", "name", "language", "type", "corpus", "unit", "labels", "metric"),
    *("access", "licence", "homepage", "citation"),
)
_SCORES = ("macro_f1", "micro_f1", "weighted_f1", "macro_f1_all")
_EXPECTS = {
    "text_informative": "the text must tell something of the labels",
    "chance": "the text must tell nothing of the labels",
    "beyond_words": "counted words need not reach the labels",
}


@tasks.command("list")
def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """All shipped tasks and where their data stands."""
    from biobench.data.catalog import list_tasks
    from biobench.data.status import status

    rows = []
    for task in list_tasks():
        row = {"id": task.id, "data": status(task, data_dir).state.replace("generated", "ready")}
        for name in ("language", "type", "access", "version", "name"):
            row[name] = getattr(task.spec, name)
        rows.append(row)
    rows.sort(key=itemgetter("language", "id"))
    answer(as_json, rows, _listing(rows, terminal_width()))


_LISTED = ("id", "data", "language", "type", "name")
"""Columns of the list of tasks; the others are in its JSON."""


def _listing(rows: Sequence[dict[str, Any]], width: int | None) -> Iterator[str]:
    """The tasks as lines of at most this width: a longer name is cut."""
    lines = [_LISTED, *(tuple(str(row[column]) for column in _LISTED) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        shown = "  ".join(map(str.ljust, line, widths)).rstrip()
        if width is not None and len(shown) > width:
            shown = f"{shown[: width - 1]}…"
        yield shown


@tasks.command()
def show(
    task: str,
    data_dir: DataDir = None,
    full: bool = False,
    as_json: Json = False,
) -> None:
    """Describe a task: what it is, labels, licence, citation, and samples where the data is
    available.

    task (ID_OR_YAML): Id, or a YAML file.
    full: Protocol, deviations, notes and all counts too.
    """
    import yaml

    from biobench.data.catalog import load_task
    from biobench.data.describe import describe

    described = describe(load_task(task), data_dir)
    overview = _overview(described)
    if full:
        overview = described | {"deviations": described["deviations"] or "none known"}
    overview = {name: value for name, value in overview.items() if value not in (None, [], {}, "")}
    answer(
        as_json,
        described,
        [yaml.safe_dump(overview, sort_keys=False, allow_unicode=True, width=120).rstrip()],
    )
    if not (full or as_json):
        typer.echo("--full shows protocol, deviations, notes and counts too.", err=True)


def _overview(described: dict[str, Any]) -> dict[str, Any]:
    """What fits on a screen: the task, its labels, how many documents, where its data stands, and
    samples in a line each.
    """
    from biobench.core.text import listed
    from biobench.data.locate import name_in_commands

    data, labels = described["data"], described["labels"]
    overview = {name: described[name] for name in _OVERVIEW}
    if isinstance(labels, list | tuple):
        overview["labels"] = listed(labels, MOST_LABELS)
    counts = described.get("counts", described["declared_counts"])
    sizes = [f"{split} {numbers['documents']}" for split, numbers in counts.items()]
    overview["documents"] = ", ".join(sizes)
    overview["metric"] = ", ".join(f"{role} {name}" for role, name in described["metric"].items())
    name = name_in_commands(described["id"], described["path"])
    overview["data"] = f"{data['state']}; `biobench data status {name} --steps` says more"
    if "folder" in data:
        overview["data"] = f"{data['state']} in {data['folder']}"
    overview["count_problems"] = described.get("count_problems")
    overview["samples"] = [_sample_line(each) for each in described["samples"]]
    overview["samples_withheld"] = described["samples_withheld"]
    return overview


def _sample_line(sample: dict[str, Any]) -> str:
    """The text, then its labels and mentions."""
    mentions = [f"{surface} ({label})" for surface, label in sample["mentions"]]
    text = textwrap.shorten(sample["text"], SAMPLE_WIDTH, placeholder=" …")
    marked = textwrap.shorten(
        ", ".join([*sample["labels"], *mentions]), SAMPLE_WIDTH, placeholder=" …"
    )
    return f"{text} -> {marked or 'nothing'}"


@tasks.command()
def validate(
    context: typer.Context,
    paths: list[Path],
    data_dir: DataDir = None,
    recount: bool = False,
    as_json: Json = False,
) -> None:
    """Check specs, and open their data where --data-dir has it. Exit 2 when something is wrong.

    Missing data is wrong for a spec that is named itself with --data-dir; of a folder of specs it
    is shown.

    paths (PATH...): YAML files, or folders of them.
    recount: Write the data's counts and findings.
    """
    files = _spec_files(paths)
    source = context.get_parameter_source("data_dir")
    explicit = source is not None and source.name == "COMMANDLINE"
    rows = []
    for file in files:
        needs_data = explicit and file in paths
        rows.append(_validated(file, data_dir, recount=recount, needs_data=needs_data))
    if as_json:
        print_json(rows)
    for row in rows:
        if not row["valid"]:
            _write_problems(row)
        elif not as_json:
            _print_valid(row)
    if not all(row["valid"] for row in rows):
        raise typer.Exit(2)


def _spec_files(paths: Sequence[Path]) -> list[Path]:
    """The files themselves, and those below folders. Raises UsageError for a path without any."""
    files: list[Path] = []
    for path in paths:
        specs = [path]
        if path.is_dir():
            specs = sorted(path.rglob("*.yaml"))
        if not specs or not specs[0].exists():
            hint = "give a spec or a folder of specs"
            raise UsageError(f"{path}: no YAML file is there", hint=hint)
        files += specs
    return files


def _validated(
    file: Path, data_dir: str | None, *, recount: bool, needs_data: bool
) -> dict[str, Any]:
    """The row of one spec, with `valid` and `problems`.

    recount: write the counts into the file before. needs_data: missing data is a problem.
    """
    from biobench.data.catalog import load_task
    from biobench.data.describe import validate as opened
    from biobench.data.locate import data_folder
    from biobench.data.scaffold import recounted

    try:
        task = load_task(file)
        if recount:
            write_output(file, recounted(task, data_folder(data_dir)))
            task = load_task(file)
        row = asdict(opened(task, data_dir))
    except BioBenchError as error:
        # A data file's error names that file; one without a place gets the spec's.
        problem = str(error) if error.file else f"{file}: {error}"
        return {"valid": False, "path": str(file), "problems": [problem], "remedy": error.hint}
    if needs_data and row["state"] != "ready":
        row["problems"].append(f"data {row['state']}")
    problems = [f"{file}: {problem}" for problem in row["problems"]]
    return {"valid": not problems, **row, "problems": problems}


def _print_valid(row: dict[str, Any]) -> None:
    """A line on the spec, then remedy, lost mentions and findings."""
    from biobench.data.checks.findings import Finding
    from biobench.data.counts import unexpressed_in_words

    typer.echo(visible(f"{row['path']}: valid, data {row['state']}"))
    for line in filter(None, (row["remedy"], unexpressed_in_words(row["unexpressed"]))):
        typer.echo(f"  - {visible(line)}")
    if row["unfilled"]:
        typer.echo(f"  - still to fill in: {', '.join(row['unfilled'])}")
    for finding in row["findings"]:
        typer.echo(f"  ! {visible(Finding(**finding).line)}")


def _write_problems(row: dict[str, Any]) -> None:
    """The problems and what to do, on stderr."""
    for problem in row["problems"]:
        sys.stderr.write(f"{visible(problem)}\n")
    remedy = row["remedy"] or "correct the spec, or the data that it describes"
    sys.stderr.write(f"hint: {remedy}\n")


@tasks.command()
def schema() -> None:
    """JSON Schema of a task spec, for editor completion."""
    from biobench.data.catalog import task_json_schema

    print_json(task_json_schema())


@tasks.command()
def new(
    data: str,
    task_id: Annotated[str, typer.Option("--id")],
    text: str | None = None,
    label: str | None = None,
    group: str | None = None,
    clinical: bool = False,
    language: str | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    revision: str | None = None,
    # given by hand it goes with the hub alone; $BIOBENCH_DATA_DIR may be set for other commands
    data_dir: Annotated[str | None, shown("data_dir", envvar=None)] = None,
    output: Annotated[Path | None, typer.Option("--output", "--out", "-o")] = None,
    force: bool = False,
) -> None:
    """Scaffold a spec from a data file, a folder or a data set of the hub: format, labels, counts
    and findings are read from it.

    data: A data file, its folder, or hub:ORG/NAME[:CONFIG].
    task_id: Id of the new task.
    text: Column or field of the text.
    label: Column or field of the label.
    group: Column of what belongs together (a patient).
    clinical: The texts are patients': access needs an agreement.
    language: ISO 639-1 code (default: en or fr, by the texts).
    separator: What parts several labels of a cell.
    encoding: Of text files, such as cp1252 for many of Windows.
    revision: Branch, tag or commit of a hub:... data set.
    output: Default: ID.yaml.
    force: Overwrite an existing file.
    """
    from biobench.data.hub import PREFIX
    from biobench.data.readers.base import Encoding
    from biobench.data.scaffold import scaffold, scaffold_named
    from biobench.data.sniff import Wanted

    target = output or Path(f"{task_id}.yaml")
    # What cannot be looked at is no file here; writing it says why.
    if os.path.exists(target) and not force:
        raise UsageError(f"{target} exists already", hint="choose another --output, or --force")
    check_known([encoding], get_args(Encoding), "--encoding")
    wanted = Wanted(text, label, group, separator, cast(Encoding, encoding))
    options: dict[str, Any] = {"language": language, "wanted": wanted, "clinical": clinical}
    if data.startswith(PREFIX):
        draft = scaffold_named(data, task_id, revision, data_dir, **options)
    elif revision is None:
        draft = scaffold(data, task_id, data_dir=data_dir, **options)
    else:
        hint = "leave it out, or name a data set of the hub"
        raise UsageError("--revision goes with hub:ORG/NAME", hint=hint)
    write_output(target, draft.text)
    typer.echo("\n".join(["detected:", *(f"  {visible(line)}" for line in draft.detected)]))
    here, folder = Path.cwd().resolve(), draft.data_dir
    if folder.is_relative_to(here):
        folder = folder.relative_to(here)
    command = shlex.join(["biobench", "tasks", "validate", str(target), "--data-dir", str(folder)])
    typer.echo(f"{target}: written; fill in what it leaves open, then `{command}`")


@tasks.command()
def gate(
    task: str,
    *,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    overrides: Overrides = [],  # noqa: B006
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Score majority, prior, random, dictionary or bag of words, and the oracle; exit 1 where the
    gate fails.

    task (ID_OR_YAML): Id, or a YAML file.
    """
    from biobench.baselines import gate as judge
    from biobench.data.catalog import load_task
    from biobench.data.load import load_data
    from biobench.store.baselines import save_baseline

    loaded = load_task(task, overrides)
    verdict = judge(loaded, load_data(loaded, data_dir))
    path = save_baseline(results_dir, verdict)
    data = verdict.model_dump(mode="json") | {"reasons": list(verdict.reasons), "file": str(path)}
    answer(as_json, data, [*_verdict_lines(verdict), f"stored: {path}"])
    if not verdict.passed:
        raise typer.Exit(1)


def _verdict_lines(verdict: BaselineRecord) -> Iterator[str]:
    """The baselines' scores in percent (errors on their own scale), every question with its answer,
    the verdict.
    """
    from biobench.schema.kind import get_metric

    scores = verdict.policies[0].scores
    names = [name for name in _SCORES if name in scores] or list(scores)

    def cell(name: str, value: float) -> str:
        return f"{value:.3f}" if get_metric(name).falls else percent(value)

    rows = [
        (policy.name, *(cell(name, policy.scores[name]) for name in names))
        for policy in verdict.policies
    ]
    yield table(
        ("baseline", *(name.removesuffix("_f1").replace("_f1_", " ") for name in names)), rows
    )
    for check in verdict.checks:
        mark = "(!)" if check.flagged else "ok "
        yield f"{mark if check.passed else 'NO '} {check.words}"
    message = "passes" if verdict.passed else "FAILS"
    yield (
        f"{verdict.task} {message} its gate ({_EXPECTS[verdict.expect]}): "
        f"{len(verdict.checks) - len(verdict.reasons)} of "
        f"{len(verdict.checks)} questions answered as they must be, on {verdict.test_documents} "
        f"test documents, "
        f"{verdict.seconds:.1f} s"
    )
