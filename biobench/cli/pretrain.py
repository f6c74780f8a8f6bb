"""`biobench pretrain`, `pretrain-plan` and `ledger`: the faces of the trainer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biobench.cli.common import DataDir, Json, Overrides, print_json
from biobench.core.packages import check_ours

if TYPE_CHECKING:
    from pathlib import Path

    from biobench.schema.document import TaskData
    from trainer.run.run import Result

Recipe = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's YAML path, or the name of a shipped one.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("pretrain")(pretrain)
    app.command("pretrain-plan")(plan)
    app.command("pretrain-schema")(schema)
    app.command("ledger")(ledger)


def pretrain(
    recipe: Recipe,
    overrides: Overrides = [],  # noqa: B006
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run that stands in --out.")] = False,
    out: Annotated[str | None, typer.Option("--out", help="Folder of the run (default: runs/NAME).")] = None,
    data_dir: DataDir = None,
    exclude_tasks: Annotated[
        bool,
        typer.Option(
            "--exclude-tasks/--no-exclude-tasks",
            help="Keep validation and test documents of every task whose data is at hand out of the corpus.",
        ),
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="Report no progress.")] = False,
) -> None:
    """Run a pretraining recipe; under torchrun or accelerate launch it is distributed."""
    first = os.environ.get("RANK", "0") == "0"
    check_ours("trainer")
    from trainer import api

    sources = api.load_recipe(recipe, overrides).corpus.sources
    generated = all(source.embedded is not None for source in sources)
    kept_out = benchmark_documents(data_dir, say=first) if exclude_tasks and not generated else {}
    result = api.pretrain(
        recipe,
        out=out,
        resume=resume,
        overrides=overrides,
        progress="none" if quiet else "auto",
        exclude=unique_texts(kept_out),
    )
    model = exported(result, "--resume continues", say=first)
    if not first:
        return
    if kept_out:
        _say_excluded(result, kept_out)
    typer.echo(f"{model}: an encoder that AutoModel loads; next: biobench run {model} --suite fr")


def exported(result: Result, remedy: str, *, say: bool = True) -> Path:
    """The encoder that a run exported; ends the command with the status of a stopped run where a signal stopped it.

    remedy: in words, what goes on with the run. say: on stderr that it was stopped.
    """
    if result.model is None:
        if say:
            typer.echo(f"stopped and saved in {result.out}; {remedy}", err=True)
        from trainer.api import PREEMPTED_EXIT

        raise typer.Exit(PREEMPTED_EXIT)
    return result.model


def benchmark_documents(data_dir: str | None, *, say: bool = True) -> dict[str, TaskData]:
    """Every shipped task whose data is at hand, by id. say: name each on stderr."""
    from pathlib import Path

    from biobench.data.catalog import list_tasks
    from biobench.data.load import load_data
    from biobench.data.validate import find

    found = {}
    for task in list_tasks():
        if task.spec.all_sources[0].generated or find(task, data_dir) is None:
            continue
        data = load_data(task, None if data_dir is None else Path(data_dir))
        if say:
            count = len(data.validation) + len(data.test)
            typer.echo(f"kept out of the corpus: {count} documents of {task.id}", err=True)
        found[task.id] = data
    return found


def unique_texts(tasks: Mapping[str, TaskData]) -> list[str]:
    """The texts of all validation and test documents, each once."""
    return list(dict.fromkeys(d.reading for data in tasks.values() for d in (*data.validation, *data.test)))


def _say_excluded(result: Any, tasks: Mapping[str, TaskData]) -> None:
    """Write beside both copies of the ledger which tasks' documents were kept out."""
    from biobench.core.files import write_atomic
    from biobench.schema.contamination import EXCLUSION_FILE, ExcludedTask, Exclusions
    from trainer.train.run_folder import read_recipe

    held = Exclusions(
        exclusion_hash=result.ledger.corpus.exclusion_hash,
        ngram=read_recipe(result.out).corpus.exclude.ngram,
        tasks={
            name: ExcludedTask(data_hash=data.hash, documents=len(data.validation) + len(data.test))
            for name, data in tasks.items()
        },
    )
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
    check_ours("trainer")
    from trainer import api

    planned = api.plan(recipe, overrides=overrides, gpu=gpu, gpus=gpus)
    if as_json:
        print_json(planned.as_dict())
        return
    for line in planned.lines():
        typer.echo(line)


def schema() -> None:
    """JSON Schema of a pretraining recipe, for editor completion."""
    check_ours("trainer")
    from trainer import api

    print_json(api.recipe_schema())


def ledger(
    first: Annotated[str, typer.Argument(metavar="A", help="Ledger, run folder or exported model.")],
    second: Annotated[str, typer.Argument(metavar="B")],
    as_json: Json = False,
) -> None:
    """Two runs' training ledgers side by side; exit 1 unless they are a matched pair."""
    check_ours("trainer")
    from trainer import api

    diff = api.ledger_diff(first, second)
    if as_json:
        print_json(
            {
                "matched": diff.matched,
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
