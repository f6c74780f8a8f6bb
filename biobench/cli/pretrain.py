"""`biobench pretrain RECIPE`, `pretrain new|plan|bench|schema`, `ledger` and `study`: the faces of
the trainer.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from biobench.cli.console.arguments import Count, DataDir, Json, SliceName, Threads
from biobench.cli.console.options import shown
from biobench.cli.console.output import answer, percent, print_json, table, with_interval
from biobench.core.stop import STOPPED_EXIT

if TYPE_CHECKING:
    from biobench.workflows.study import Study, StudyRun
    from biobench.workflows.study_table import ArmRow
    from trainer.pretrain import PretrainingResult

Recipe = Annotated[
    str,
    typer.Argument(metavar="RECIPE", help="A recipe's YAML file, or the name of a shipped one."),
]
Fields = Annotated[
    list[str],
    shown(
        "overrides",
        metavar="KEY=VALUE",
        help="Change a field of the recipe, e.g. seeds.training=2.",
    ),
]
Arms = Annotated[
    list[str], typer.Option("--arm", metavar="NAME", help="An arm of the recipe, such as twin.")
]
ExcludeTasks = Annotated[
    bool, typer.Option("--exclude-tasks/--no-exclude-tasks", help="Exclude benchmark documents.")
]
RequireTasks = Annotated[
    str | None,
    typer.Option(
        "--require-tasks", metavar="IDS", help="Stop unless these tasks (or all) can be excluded."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Report no progress.")]


class RecipeOrCommand(TyperGroup):
    """A group whose first word may be a recipe: that is `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Begin with the name of a command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


pretrain = typer.Typer(
    cls=RecipeOrCommand,
    no_args_is_help=True,
    help="Run a pretraining recipe: `biobench pretrain RECIPE [--arm NAME]`; write, plan and "
    "measure one.",
)


@pretrain.command()
def run(
    recipe: Recipe,
    *,
    arms: Arms = [],  # noqa: B006
    overrides: Fields = [],  # noqa: B006
    resume: bool = False,
    out: str | None = None,
    data_dir: DataDir = None,
    exclude_tasks: ExcludeTasks = True,
    require_tasks: RequireTasks = None,
    built_corpus: bool = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Run a recipe; the word `run` may be left out. It is distributed under torchrun or accelerate
    launch.

    resume: Resume the run in --out.
    out: Folder of the run (default: runs/NAME).
    built_corpus: Build no corpus; stop without one.
    """
    from biobench.workflows.decontamination import pretrain as train
    from trainer import api

    read = api.checked(api.load_recipe(recipe, overrides, arms))
    options: dict[str, Any] = {
        "exclude_tasks": exclude_tasks,
        "require_tasks": require_tasks,
        "built_corpus": built_corpus,
    }
    progress = "none" if quiet else "auto"
    result = train(read, data_dir, stderr, **options, out=out, resume=resume, progress=progress)
    model = exported(result, "--resume continues it")
    if _first():
        command = f"biobench run {model} --suite en"
        typer.echo(f"{model}: an encoder that AutoModel loads; next: {command} (or fr)")


@pretrain.command()
def new(
    corpus: str,
    *,
    base: str,
    twin: bool = False,
    field: str = "text",
    tokens: str | None = None,
    name: str = "detour",
    out: str = ".",
) -> None:
    """Write a recipe for a corpus of your own, with comments.

    corpus: File or folder of text (.txt, .jsonl, .csv, ...).
    base: Checkpoint to start from: hub id or folder.
    twin: Show how to run the masked twin too.
    field: Key or column of the text.
    tokens: Of the first phase, such as 2B.
    name: Name of recipe and run.
    out: Folder of the recipe.
    """
    from trainer.recipe.scaffold import write_recipe

    path = write_recipe(Path(corpus), base, Path(out), name, field=field, tokens=tokens)
    runs = [f"runs/{name}"]
    lines = [
        f"{path}: read it, then",
        f"  biobench pretrain plan {path}",
        f"  biobench pretrain {path} --out runs/{name}",
    ]
    if twin:
        runs.append(f"runs/{name}_twin")
        lines.append(f"  biobench pretrain {path} --arm twin --out runs/{name}_twin")
        lines.append(f"  biobench ledger {' '.join(runs)}")
    models = " ".join(f"{run}/model" for run in runs)
    typer.echo("\n".join([*lines, f"  biobench run {models} --suite en    (or fr)"]))


def _first() -> bool:
    return os.environ.get("RANK", "0") == "0"


def stderr(line: str) -> None:
    """A line on stderr, of the first process alone."""
    if _first():
        typer.echo(line, err=True)


def exported(result: PretrainingResult, remedy: str) -> Path:
    """The encoder that a run exported; ends the command with the status of a stopped run where a
    signal stopped it.

    remedy: in words, what resumes the run.
    """
    if result.model is None:
        stderr(f"stopped and saved in {result.out}; {remedy}")
        raise typer.Exit(STOPPED_EXIT)
    return result.model


@pretrain.command()
def plan(
    recipe: Recipe,
    arms: Arms = [],  # noqa: B006
    overrides: Fields = [],  # noqa: B006
    gpu: str = "H200",
    gpus: Count = 1,
    as_json: Json = False,
) -> None:
    """Steps, tokens, FLOPs, memory and time of a recipe, without training.

    gpu: GPU whose time is estimated.
    gpus: How many of them.
    """
    from trainer import api

    planned = api.plan(api.load_recipe(recipe, overrides, arms), gpu=gpu, gpus=gpus)
    answer(as_json, planned, [*planned.lines(), *_machine_lines(recipe)])


def _machine_lines(recipe: str) -> Iterator[str]:
    """What this machine is, where it has no GPU: its time cannot be told from a data sheet."""
    import torch

    from biobench.core.threads import usable_cpus
    from biobench.runs.provenance import device_name

    if not torch.cuda.is_available():
        yield (
            f"  this machine: no GPU, {usable_cpus()} CPUs ({device_name(None)}); "
            f"`biobench pretrain bench {shlex.quote(recipe)}` measures its speed"
        )


@pretrain.command()
def bench(
    recipe: Recipe,
    arms: Arms = [],  # noqa: B006
    overrides: Fields = [],  # noqa: B006
    steps: Annotated[int, typer.Option(min=3)] = 20,
    as_json: Json = False,
) -> None:
    """Tokens a second of a recipe on this machine, share of its peak, and the parts of a step.

    steps: Steps of each phase that are timed.
    """
    from trainer import api

    speed = api.bench(api.load_recipe(recipe, overrides, arms), steps=steps)
    answer(as_json, speed, speed.lines())


@pretrain.command()
def schema() -> None:
    """JSON Schema of a pretraining recipe, for editor completion."""
    from trainer import api

    print_json(api.recipe_schema())


def ledger(
    first: str,
    second: str,
    as_json: Json = False,
) -> None:
    """Two runs' training ledgers side by side; exit 1 unless they are a matched pair.

    first (A): Ledger, run folder or exported model.
    second (B): Another.
    """
    from trainer import api

    diff = api.ledger_diff(first, second)
    rows = [row._asdict() | {"equal": row.equal} for row in diff.rows]
    answer(as_json, {"matched": diff.matched, "verdict": diff.verdict, "rows": rows}, diff.lines())
    if not diff.matched:
        raise typer.Exit(1)


def study(
    folder: Path,
    out: Path = Path("study"),
    data_dir: DataDir = None,
    device: str = "auto",
    dry_run: bool = False,
    table_only: Annotated[bool, typer.Option("--table")] = False,
    slice_: SliceName = None,
    as_json: Json = False,
) -> None:
    """Pretrain every arm of a declared study, check the pairs and benchmark the encoders; run it
    again to resume.

    folder (STUDY): Folder of study.yaml, or a declaration's file.
    out: Folder of the runs and their results.
    device: Of the benchmark: auto, cpu or cuda.
    dry_run: Print the runs and what they cost, and stop.
    table_only: Print only the table of finished runs.
    """
    from biobench.data.catalog import load_task
    from biobench.models.loading import quiet_libraries
    from biobench.runs.selection import check_data
    from biobench.workflows import study as studies
    from biobench.workflows.study_table import table as study_table
    from trainer import api

    quiet_libraries()
    declared = studies.load_study(folder)
    runs = studies.planned_runs(declared, data_dir)
    if dry_run:
        for run in runs:
            typer.echo(f"{run.name}: {run.budget:,} tokens")
        operations = sum(phase.flops for run in runs for phase in api.plan(run.recipe()).phases)
        tokens = sum(run.budget for run in runs)
        typer.echo(
            f"{len(runs)} runs, {tokens:,} tokens, {operations:.2e} floating-point operations"
        )
        return
    if not table_only:
        check_data(
            [
                load_task(task)
                for task in (*declared.benchmark.tasks, *declared.benchmark.secondary)
            ],
            data_dir,
        )
        for number, run in enumerate(runs, 1):
            stderr(f"[{number}/{len(runs)}] {run.name}")
            result = studies.pretrain_run(run, out, data_dir, stderr)
            if result is not None:
                exported(result, "run the same command to resume")
            _score(declared, run, out, data_dir, device)
    scores, documents = studies.scores_of(declared, runs, out, data_dir, slice_)
    rows = study_table(declared, runs, scores, documents)
    data = {
        "study": declared.name,
        "replicates": declared.replicates,
        "rows": [asdict(row) | {"mean": row.mean} for row in rows],
        "runs": scores,
        "slice": slice_,
    }
    lines = [*studies.mismatches(declared, runs, out), *_study_lines(declared, rows, slice_)]
    answer(as_json, data, lines)


STUDY_WORDS = {None: "–", True: "shown", False: "not shown"}


def _study_lines(declared: Study, rows: Sequence[ArmRow], slice_: str | None) -> Iterator[str]:
    """The question, the table and what its numbers are."""
    cells = []
    for row in rows:
        level = "–" if row.level is None else f"{100 * row.level:.4g}%"
        difference = with_interval(row.difference, row, "+")
        numbers = (f"{row.budget:,}", percent(row.mean), percent(row.spread), str(len(row.scores)))
        cells.append((row.arm, *numbers, difference, level, STUDY_WORDS[row.shown]))
    yield declared.question
    if slice_ is not None:
        from biobench.score.slices import SLICES

        yield f"Scores of {SLICES[slice_].words}: {SLICES[slice_].meaning}."
    to_reference = f"difference to {declared.reference}"
    yield table(("arm", "tokens", "mean", "sd", "seeds", to_reference, "level", "verdict"), cells)
    tested = [row for row in rows if row.shown is not None]
    noises = "pretraining seeds"
    if tested and all(row.test_sets for row in tested):
        noises = "pretraining seeds and test sets"
    yield (
        f"mean: over the corpora of {len(declared.benchmark.tasks)} tasks, then over pretraining "
        f"seeds, as sd"
    )
    yield f"interval: over {noises}, paired by pretraining seed"
    if len(tested) > 1:
        yield f"verdicts after Holm's correction for {len(tested)} differences"


def _score(declared: Study, run: StudyRun, out: Path, data_dir: str | None, device: str) -> None:
    from biobench.cli.console.progress import RunTerminal
    from biobench.runs.api import run as make_runs

    make_runs(
        str(out / "runs" / run.name / "model"),
        tasks=(*declared.benchmark.tasks, *declared.benchmark.secondary),
        seeds=declared.benchmark.seeds,
        protocol=declared.benchmark.protocol,
        overrides=declared.benchmark.overrides,
        data_dir=data_dir,
        results_dir=out / "results",
        device=device,
        reporter=RunTerminal(),
    )
