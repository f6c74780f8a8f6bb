"""`biobench run`, and `needle`, an alias of `run --suite needle` that prints the grids at the
end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from biobench.cli.console.arguments import Json
from biobench.cli.console.options import takes_request
from biobench.cli.console.output import print_json
from biobench.core.stop import STOP, STOPPED_EXIT, RunStoppedError
from biobench.errors import BioBenchError
from biobench.runs.options import RunRequest

if TYPE_CHECKING:
    from biobench.cli.console.progress import RunTerminal
    from biobench.reporting.results import Results
    from biobench.runs.plan import RunPlan
    from biobench.runs.result import RunResult

KEPT = "Stopped. Finished runs are kept; to resume the others, repeat the same command."


@takes_request
def run(
    request: RunRequest,
    *,
    as_json: Json = False,
    against: Annotated[str | None, typer.Option(rich_help_panel="More")] = None,
) -> None:
    """Fine-tune checkpoints on tasks over several seeds, and score them.

    Started several times on machines that share the results folder, the same command divides the
    work.

    against (MODEL): Compare with this model at the end.
    """
    raise typer.Exit(run_request(request, as_json=as_json, against=against))


@takes_request
def needle(request: RunRequest, as_json: Json = False) -> None:
    """Needle in a haystack: is the queried fact in the document? The runs of `run --suite needle`,
    and their grid.
    """
    if not request.tasks:
        request = replace(request, suite="needle")
    status = run_request(request, as_json=as_json)
    if not request.dry_run and not as_json:
        from biobench.reporting.details.needle import needle_grids, render_grid

        for grid in needle_grids(request.results_dir):
            typer.echo("\n" + render_grid(grid), nl=False)
    raise typer.Exit(status)


def run_request(
    request: RunRequest,
    *,
    as_json: bool,
    summary: bool = True,
    brief: bool = False,
    against: str | None = None,
) -> int:
    """Plan, make and print the runs; the exit status.

    summary: with the table of runs and what follows it. brief: a line a run while they go on.
    against: a model of the results folder to compare with.
    """
    from biobench.models.loading import quiet_libraries

    quiet_libraries()
    if against is not None:
        from biobench.reporting.entrants import find_entrants
        from biobench.reporting.results import load

        find_entrants([against], load(request.results_dir))
    from biobench.cli.console.progress import BriefRunTerminal, RunTerminal
    from biobench.runs.api import run_plan
    from biobench.runs.gates import announce
    from biobench.runs.plan import make_plan

    terminal = BriefRunTerminal if brief else RunTerminal
    try:
        with STOP.watching(), terminal() as reporter:
            plan = make_plan(request, reporter)
            announce(plan, reporter)
            results = run_plan(plan, reporter)
    except KeyboardInterrupt:
        typer.echo(KEPT, err=True)
        return 130
    except RunStoppedError:
        typer.echo(KEPT, err=True)
        return STOPPED_EXIT
    if not request.dry_run:
        _repeat_failed_gates(plan, reporter)
    if as_json:
        print_json(results)
    elif summary:
        _print_summary(results, request.results_dir)
    if against is not None:
        for line in _comparison(results, against, request.results_dir, request.data_dir):
            typer.echo(line, err=as_json)
    return 1 if any(r.status == "failed" for r in results) else 0


def _repeat_failed_gates(plan: RunPlan, reporter: RunTerminal) -> None:
    """Say which tasks are not ranked: what was said before the runs, maybe hours ago, in short;
    with its reasons where another process found it, on a cluster say.
    """
    from biobench.runs.gates import failure_line, stored_verdicts

    for task, verdict in stored_verdicts(plan).items():
        if verdict.passed:
            continue
        line = failure_line(verdict)
        if line in reporter.warned:
            line = f"{task} fails its gate, reports will not rank it"
        typer.echo(line, err=True)


def _print_summary(results: Sequence[RunResult], results_dir: str) -> None:
    from biobench.runs.table import end_of_run, print_results

    print_results(results)
    for line in end_of_run(results, results_dir):
        typer.echo(line)


def _comparison(
    results: Sequence[RunResult], against: str, results_dir: str, data_dir: str | None
) -> Iterator[str]:
    """The verdict of `compare` for each model with scores, on the tasks that were run and of the
    runs of this command, which other runs of the same model do not replace; why where it has none.
    """
    from biobench.comparison.compare import compare
    from biobench.reporting.results import load

    stored = load(results_dir)
    for line, tasks in _lines_of(results, stored).items():
        rival = _with_variant_of(line, against, stored)
        if line.name == rival:
            continue
        try:
            verdict = compare(
                line.name, rival, results_dir=stored, data_dir=data_dir, tasks=list(tasks)
            ).verdict
        except BioBenchError as error:  # the runs are stored and shown: this alone has no answer
            yield f"{line.name} and {against} are not compared: {error.what}"
            if error.hint:
                yield f"hint: {error.hint}"
            continue
        yield from map(str, verdict)


class _Line(NamedTuple):
    """A line of the report: a model, and what sets its runs apart from full ones."""

    model: str
    variant: str

    @property
    def name(self) -> str:
        """What `compare` calls it."""
        from biobench.reporting.entrants import line_name

        return line_name(self.model, self.variant)


def _lines_of(results: Sequence[RunResult], stored: Results) -> dict[_Line, dict[str, None]]:
    """The lines of the runs that have scores -> their tasks, in the order of the runs."""
    line_by_key: dict[str | None, _Line] = {}
    for group in stored.groups:
        for brief in group.briefs:
            line_by_key[brief.key] = _Line(group.model, group.variant)
    tasks_of: dict[_Line, dict[str, None]] = {}
    for result in results:
        if result.is_scored:
            # what no report shows, as its gate fails, is named as it was asked for
            asked = _Line(result.folder or result.model, "")
            line = line_by_key.get(result.key, asked)
            tasks_of.setdefault(line, {})[result.task] = None
    return tasks_of


def _with_variant_of(line: _Line, rival: str, stored: Results) -> str:
    """The rival's name, with the variant where it has runs of it."""
    from biobench.reporting.entrants import groups_named

    for group in groups_named(rival, stored.groups):
        if group.variant == line.variant:
            return _Line(group.model, group.variant).name
    return rival
