"""`biobench pretrain`, `pretrain-plan` and `ledger`: the faces of the trainer."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biobench.cli.common import DataDir, Json, Overrides, print_json
from biobench.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from biobench.schema.document import TaskData
    from trainer.run.run import Result

Recipe = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's YAML path, or the name of a shipped one.")]


ExcludeTasks = Annotated[
    bool,
    typer.Option(
        "--exclude-tasks/--no-exclude-tasks",
        help="Keep validation and test documents of every task whose data is at hand out of the corpus.",
    ),
]
RequireTasks = Annotated[
    str | None,
    typer.Option(
        "--require-tasks",
        metavar="IDS",
        help="Tasks, by commas, whose documents must be at hand to be kept out; or all. Without them: stop.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("pretrain")(pretrain)
    app.command("pretrain-plan")(plan)
    app.command("pretrain-schema")(schema)
    app.command("pretrain-average")(average)
    app.command("ledger")(ledger)


def pretrain(
    recipe: Recipe,
    overrides: Overrides = [],  # noqa: B006
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run that stands in --out.")] = False,
    out: Annotated[str | None, typer.Option("--out", help="Folder of the run (default: runs/NAME).")] = None,
    data_dir: DataDir = None,
    exclude_tasks: ExcludeTasks = True,
    require_tasks: RequireTasks = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Report no progress.")] = False,
) -> None:
    """Run a pretraining recipe; under torchrun or accelerate launch it is distributed."""
    first = os.environ.get("RANK", "0") == "0"
    kept_out, missing = guard(
        recipe, overrides, data_dir, exclude_tasks=exclude_tasks, require_tasks=require_tasks, say=first
    )
    result = trainer_api().pretrain(
        recipe,
        out=out,
        resume=resume,
        overrides=overrides,
        progress="none" if quiet else "auto",
        exclude=unique_texts(kept_out),
        unguarded=missing,
    )
    model = exported(result, "--resume continues", say=first)
    if not first:
        return
    if missing is not None:
        _say_excluded(result, kept_out, missing)
    typer.echo(f"{model}: an encoder that AutoModel loads; next: biobench run {model} --suite fr")


def guard(
    recipe: str,
    overrides: Sequence[str],
    data_dir: str | None,
    *,
    exclude_tasks: bool,
    require_tasks: str | None,
    say: bool = True,
) -> tuple[dict[str, TaskData], list[str] | None]:
    """The tasks whose documents are kept out of a recipe's corpus, and the ids of those that nobody guards.

    None for the second where the package makes the text itself. say: tell both on stderr.
    Raises UsageError and DataUnavailableError where tasks are required that are not at hand.
    """
    sources = trainer_api().load_recipe(recipe, overrides).corpus.sources
    generated = all(source.embedded is not None for source in sources)
    guarded = exclude_tasks and not generated
    if require_tasks is not None and not guarded:
        why = "the text is made by the package itself" if generated else "--no-exclude-tasks lets all documents in"
        raise UsageError(f"--require-tasks asks for a guard, but {why}", hint="leave one of the two out")
    missing = None if generated else not_at_hand(data_dir) if guarded else guardable()
    if require_tasks is not None:
        _require(require_tasks, missing or [])
    kept_out = benchmark_documents(data_dir, say=say) if guarded else {}
    if say and missing:
        why = "their documents are not at hand (--data-dir DIR)" if guarded else "--no-exclude-tasks"
        typer.echo(f"{len(missing)} task{'s' * (len(missing) > 1)} NOT guarded, {why}: {', '.join(missing)}", err=True)
    return kept_out, missing


def exported(result: Result, remedy: str, *, say: bool = True) -> Path:
    """The encoder that a run exported; ends the command with the status of a stopped run where a signal stopped it.

    remedy: in words, what goes on with the run. say: on stderr that it was stopped.
    """
    if result.model is None:
        if say:
            typer.echo(f"stopped and saved in {result.out}; {remedy}", err=True)
        raise typer.Exit(trainer_api().PREEMPTED_EXIT)
    return result.model


def guardable() -> list[str]:
    """Ids of the shipped tasks whose documents training text could hold."""
    from biobench.data.catalog import list_tasks

    return [task.id for task in list_tasks() if not task.spec.all_sources[0].generated]


def not_at_hand(data_dir: str | None) -> list[str]:
    """Those of them whose documents are not there."""
    from biobench.data.catalog import list_tasks
    from biobench.data.validate import find

    names = guardable()
    return [task.id for task in list_tasks() if task.id in names and find(task, data_dir) is None]


def _require(wanted: str, missing: Sequence[str]) -> None:
    """Raise DataUnavailableError where the documents of a wanted task are not at hand, UsageError for no task."""
    from biobench.errors import DataUnavailableError

    names = [name for name in wanted.replace(" ", "").split(",") if name]
    known = guardable()
    unknown = [name for name in names if name not in known and name != "all"]
    if unknown or not names:
        raise UsageError(
            f"--require-tasks knows no task '{(unknown or [wanted])[0]}'", hint="give ids of `biobench tasks`, or all"
        )
    absent = [name for name in missing if name in names or "all" in names]
    if absent:
        raise DataUnavailableError(
            f"the documents of {', '.join(absent)} are not at hand, so nothing would keep them out of the corpus",
            hint="give the folder that holds them with --data-dir, or ask for fewer with --require-tasks",
        )


def benchmark_documents(
    data_dir: str | None, *, say: bool = True, only: Container[str] | None = None
) -> dict[str, TaskData]:
    """Every shipped task whose data is at hand, by id. say: name each on stderr. only: of these alone."""
    from pathlib import Path

    from biobench.data.catalog import list_tasks
    from biobench.data.load import load_data
    from biobench.data.validate import find

    found = {}
    for task in list_tasks():
        if task.spec.all_sources[0].generated or (only is not None and task.id not in only):
            continue
        if find(task, data_dir) is None:
            continue
        data = load_data(task, None if data_dir is None else Path(data_dir))
        if say:
            count = len(data.validation) + len(data.test)
            typer.echo(f"guarded: {count} documents of {task.id} may not stand in the corpus", err=True)
        found[task.id] = data
    return found


def unique_texts(tasks: Mapping[str, TaskData]) -> list[str]:
    """The texts of all validation and test documents, each once."""
    return list(dict.fromkeys(d.reading for data in tasks.values() for d in (*data.validation, *data.test)))


def _say_excluded(result: Any, tasks: Mapping[str, TaskData], missing: Sequence[str]) -> None:
    """Say how many documents were removed; write beside both copies of the ledger for which tasks, and which not."""
    from biobench.schema.contamination import EXCLUSION_FILE, ExcludedTask, Exclusions
    from biobench.store.files import write_atomic
    from trainer.train.run_folder import read_recipe

    held = Exclusions(
        exclusion_hash=result.ledger.corpus.exclusion_hash,
        ngram=read_recipe(result.out).corpus.exclude.ngram,
        tasks={
            name: ExcludedTask(data_hash=data.hash, documents=len(data.validation) + len(data.test))
            for name, data in tasks.items()
        },
        not_guarded=tuple(missing),
    )
    removed = result.ledger.corpus.removed_documents
    if removed is not None and tasks:
        typer.echo(f"removed from the corpus: {removed:,} documents that hold text of a guarded task", err=True)
    for folder in (result.out, result.model):
        write_atomic(folder / EXCLUSION_FILE, (held.model_dump_json(indent=1) + "\n").encode())


def plan(
    recipe: Recipe,
    overrides: Overrides = [],  # noqa: B006
    gpu: Annotated[str, typer.Option("--gpu", help="GPU whose time is estimated.")] = "H200",
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="How many of them.")] = 1,
    as_json: Json = False,
) -> None:
    """Steps, tokens, FLOPs, memory and time of a recipe, without training."""
    planned = trainer_api().plan(recipe, overrides=overrides, gpu=gpu, gpus=gpus)
    if as_json:
        print_json(planned.as_dict())
        return
    for line in planned.lines():
        typer.echo(line)


def average(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Exported checkpoints of one architecture.")],
    out: Annotated[str, typer.Option("--out", help="Folder of the average.")],
    weights: Annotated[str | None, typer.Option("--weights", help="One number for each model, by commas.")] = None,
) -> None:
    """Average the weights of checkpoints, a run's latest ones say, into a model of its own."""
    from pathlib import Path

    try:
        shares = None if weights is None else [float(part) for part in weights.split(",")]
    except ValueError:
        raise UsageError(f"--weights '{weights}' are no numbers", hint="write 1,1,2") from None
    made = trainer_api().average([Path(m) for m in models], Path(out), shares)
    typer.echo(f"{made}: the average of {len(models)} models; next: biobench run {made} --suite fr")


def schema() -> None:
    """JSON Schema of a pretraining recipe, for editor completion."""
    print_json(trainer_api().recipe_schema())


def ledger(
    first: Annotated[str, typer.Argument(metavar="A", help="Ledger, run folder or exported model.")],
    second: Annotated[str, typer.Argument(metavar="B")],
    as_json: Json = False,
) -> None:
    """Two runs' training ledgers side by side; exit 1 unless they are a matched pair."""
    diff = trainer_api().ledger_diff(first, second)
    if as_json:
        print_json(
            {
                "matched": diff.matched,
                "verdict": diff.verdict,
                "rows": [
                    {"name": r.name, "first": r.first, "second": r.second, "binding": r.binding, "equal": r.equal}
                    for r in diff.rows
                ],
            }
        )
    else:
        for line in diff.lines():
            typer.echo(line)
    if not diff.matched:
        raise typer.Exit(1)


def trainer_api() -> Any:
    """The trainer's functions. The import name is used by other distributions too; check that it is ours."""
    from pathlib import Path

    import biobench
    import trainer

    here = Path(biobench.__file__).resolve().parents[1]
    if trainer.__file__ is None or Path(trainer.__file__).resolve().parents[1] != here:
        raise UsageError(
            f"the import name 'trainer' belongs to another package here ({trainer.__file__})",
            hint="uninstall that package, or install biobench in an environment of its own",
        )
    from trainer import api

    return api
