"""`biobench data`: where each task's data stands, getting it, checking it, packing it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.analyze import overlap
from biobench.cli.console.arguments import DataDir, IncludeAgreement, Json
from biobench.cli.console.output import answer, print_json, write_output

if TYPE_CHECKING:
    from biobench.data.verify import DataReport

data = typer.Typer(
    help="Status of each task's data, how to get it, and what is in it.", no_args_is_help=True
)

Tasks = Annotated[list[str], typer.Argument(metavar="TASK...", help="Task ids or YAML paths.")]
SomeTasks = Annotated[
    list[str], typer.Argument(metavar="[TASK...]", help="Task ids or YAML paths (default: all).")
]


@data.command("status")
def status_(
    tasks: SomeTasks = [],  # noqa: B006
    suite: str | None = None,
    data_dir: DataDir = None,
    steps: bool = False,
    as_json: Json = False,
) -> None:
    """One line per task: ready, missing (what would be fetched), or needs an agreement.

    suite: The tasks of this suite.
    steps: What to do for each task whose data is not there.
    """
    from biobench.data.catalog import list_tasks, load_task
    from biobench.data.locate import data_folder
    from biobench.data.status import status
    from biobench.data.suite import suite_tasks

    loaded = [load_task(t) for t in tasks]
    if suite is not None:
        loaded += suite_tasks(suite)
    states = [status(task, data_dir) for task in loaded or list_tasks()]
    lines = []
    for state in states:
        lines.append(state.line)
        if steps:
            lines += [f"  {number}. {step}" for number, step in enumerate(state.steps, start=1)]
            lines += [f"     downloads {address}" for address in state.fetch]
    answer(as_json, states, lines)
    if not as_json and not steps and any(state.steps for state in states):
        folder = shlex.quote(str(data_folder(data_dir)))
        command = f"biobench data status --steps TASK --data-dir {folder}"
        sys.stderr.write(f"`{command}` says what to do\n")


@data.command("fetch")
def fetch_(
    tasks: Tasks,
    data_dir: DataDir = None,
    source: str | None = None,
    as_json: Json = False,
) -> None:
    """Download the data of open tasks into --data-dir, checked and unpacked safely.

    source: Id (default: the first with an address).
    """
    from biobench.data.catalog import load_task
    from biobench.data.fetch import fetch

    fetched, lines = [], []
    for task in tasks:
        done = fetch(load_task(task), data_dir, source, _print_progress)
        fetched.append(done)
        lines.append(
            f"{done.task}: {len(done.files)} files in {done.folder} (source {done.source})"
        )
        lines += [f"  {note}" for note in done.notes]
    answer(as_json, fetched, lines)


@data.command("verify")
def verify_(
    tasks: SomeTasks = [],  # noqa: B006
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Re-count and hash the data; exit 1 where counts or release differ from the spec.

    Texts that stand twice and other findings are printed. Without TASK all shipped tasks; those
    whose data is not available are named.
    """
    from biobench.data.catalog import list_tasks, load_task
    from biobench.data.verify import verify
    from biobench.errors import DataUnavailableError

    reports: list[DataReport] = []
    for task in [load_task(t) for t in tasks] or list_tasks():
        try:
            reports.append(verify(task, data_dir))
        except DataUnavailableError as error:
            if tasks:
                raise
            sys.stderr.write(f"{error}\n")
            continue
        if not as_json:
            typer.echo("\n".join(_lines(reports[-1])))
    if as_json:
        print_json([report.as_dict() for report in reports])
    if not all(report.clean for report in reports):
        raise typer.Exit(1)


def _lines(report: DataReport) -> list[str]:
    """Hashes, counts and findings; below alarms the line that makes them known."""
    from biobench.data.counts import unexpressed_in_words
    from biobench.errors import visible

    has_alarm = any(finding.alarms for finding in report.findings)
    verdict = "counts as declared, but look at the findings (!)" if has_alarm else "clean"
    if not report.clean:
        verdict = "NOT clean"
    lines = [f"{report.task}: {verdict} (source {report.source}, {report.folder})"]
    release = f", release {report.release}" if report.release else ""
    lines.append(f"  data {report.data_hash[:16]}{release}")
    for split, counts in report.counts.items():
        lines.append(f"  {split}: {', '.join(f'{name} {n}' for name, n in counts.items())}")
    lost = unexpressed_in_words(report.unexpressed)
    if lost:
        lines.append(f"  - {lost}")
    lines += [f"  ! {problem}" for problem in report.problems]
    declared = []
    for finding in report.findings:
        declared.append(f"{finding.name}: {finding.number}")
        if finding.alarms:
            lines.append(f"  ! {finding.line}; the spec knows {finding.known}")
        else:
            lines.append(f"  - {finding.name}: {finding.number} {finding.what} (known)")
    if has_alarm:
        lines.append(
            f"  if the corpus itself is like this, declare it in the spec: "
            f"findings: {{{', '.join(declared)}}}"
        )
    return list(map(visible, lines))


@data.command("export")
def export_(
    task: str,
    *,
    split: str = "train",
    output: Annotated[Path | None, typer.Option("--out", "-o")] = None,
    data_dir: DataDir = None,
    include_agreement: IncludeAgreement = False,
) -> None:
    """Write a split with its gold as JSON Lines, for a training script of your own and `biobench
    score`.

    task: Task id or YAML path.
    split: train, validation or test.
    output: The file to write (default: stdout).
    """
    import json

    from biobench.data.catalog import check_agreement
    from biobench.data.export import load_task, rows

    loaded = load_task(task)
    check_agreement(loaded, include_agreement)
    documents = loaded.split(split, data_dir)
    lines = [
        json.dumps(row, ensure_ascii=False) for row in rows(documents, spans=loaded.spec.is_ner)
    ]
    if output is None:
        typer.echo("\n".join(lines))
    else:
        write_output(output, "\n".join([*lines, ""]))
        typer.echo(f"{output}: {len(lines)} documents of {loaded.id}, {split}", err=True)
    if loaded.spec.access == "agreement":
        typer.echo(
            f"the agreement on the data of {loaded.id} holds for this copy too: share neither",
            err=True,
        )


@data.command("bundle")
def bundle_(
    tasks: SomeTasks = [],  # noqa: B006
    *,
    output: Annotated[Path, typer.Option("--output", "-o")] = Path("biobench-bundle.tar"),
    data_dir: DataDir = None,
    model: Path | None = None,
    include_agreement: bool = False,
    as_json: Json = False,
) -> None:
    """Pack specs, data and a model for a machine without network.

    output: The tar file.
    model: A model folder to pack too.
    include_agreement: Pack data under an agreement too.
    """
    from biobench.data.bundle import bundle
    from biobench.data.catalog import list_tasks, load_task

    loaded = [load_task(t) for t in tasks] or list_tasks()
    packed = bundle(loaded, data_dir, output, model=model, include_agreement=include_agreement)
    lines = [
        f"{packed.path}: {len(packed.tasks)} tasks, {packed.files} files, "
        f"{packed.bytes / 2**20:.1f} MiB"
    ]
    lines += [f"  skipped {name}: {why}" for name, why in packed.skipped.items()]
    answer(as_json, packed, lines)


def _print_progress(file: str, done: int, total: int | None) -> None:
    """So many bytes of a file are here: one live line on a terminal, a line for each file
    otherwise.
    """
    line = f"{file}: {done / 2**20:.1f} of {(total or done) / 2**20:.1f} MiB"
    if done == total:
        sys.stderr.write(f"{line}\n")
    elif sys.stderr.isatty():
        sys.stderr.write(f"{line}\r")


data.command("overlap", hidden=True)(overlap)  # its place until 0.1.0
