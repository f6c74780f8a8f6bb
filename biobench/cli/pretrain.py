"""`biobench pretrain`, `pretrain-plan` and `ledger`: the faces of the trainer."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.common import DataDir, Json, Overrides, Threads, print_json
from biobench.core.packages import check_ours
from biobench.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.run.run import PretrainingResult

Recipe = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's YAML path, or the name of a shipped one.")]


ExcludeTasks = Annotated[
    bool,
    typer.Option(
        "--exclude-tasks/--no-exclude-tasks",
        help="Keep validation and test documents of every task whose data is available out of the corpus.",
    ),
]
RequireTasks = Annotated[
    str | None,
    typer.Option(
        "--require-tasks",
        metavar="IDS",
        help="Tasks, by commas, whose documents must be available to be kept out; or all. Without them: stop.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("pretrain")(pretrain)
    app.command("pretrain-new")(new)
    app.command("pretrain-plan")(plan)
    app.command("pretrain-bench")(bench)
    app.command("pretrain-schema")(schema)
    app.command("pretrain-average")(average)
    app.command("ledger")(ledger)


def pretrain(
    recipe: Recipe,
    *,
    overrides: Overrides = [],  # noqa: B006
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run that stands in --out.")] = False,
    out: Annotated[str | None, typer.Option("--out", help="Folder of the run (default: runs/NAME).")] = None,
    data_dir: DataDir = None,
    exclude_tasks: ExcludeTasks = True,
    require_tasks: RequireTasks = None,
    built_corpus: Annotated[
        bool, typer.Option("--built-corpus", help="Refuse where `corpus build` has not been before.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Report no progress.")] = False,
    threads: Threads = None,
) -> None:
    """Run a pretraining recipe; under torchrun or accelerate launch it is distributed."""
    first = os.environ.get("RANK", "0") == "0"
    check_ours("trainer")
    from biobench.workflows.decontamination import guard, record_exclusions, silent, texts_by_task
    from trainer import api

    kept_out, missing = guard(
        recipe,
        overrides,
        data_dir,
        exclude_tasks=exclude_tasks,
        require_tasks=require_tasks,
        say=stderr if first else silent,
    )
    wanted = api.load_recipe(recipe, overrides).logging.probe
    scores = None
    if wanted is not None and first:
        from biobench.core.machine import resolve_device
        from biobench.workflows.probe import check_tasks, probe

        check_tasks(wanted.tasks, data_dir)
        device = resolve_device(api.load_recipe(recipe, overrides).engine.device, "engine.device").type
        scores = probe(wanted.tasks, documents=wanted.documents, seed=wanted.seed, data_dir=data_dir, device=device)
    result = api.pretrain(
        recipe,
        out=out,
        resume=resume,
        overrides=overrides,
        progress="none" if quiet else "auto",
        exclude=texts_by_task(kept_out),
        unguarded=missing,
        probe=scores,
        built_corpus=built_corpus,
    )
    model = exported(result, "--resume continues", say=first)
    if not first:
        return
    if missing is not None:
        record_exclusions(result, kept_out, missing, stderr)
    typer.echo(f"{model}: an encoder that AutoModel loads; next: biobench run {model} --suite fr")


def new(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help="File or folder of text (.txt, .jsonl, .parquet, ...).")
    ],
    base: Annotated[str, typer.Option("--base", help="Checkpoint to start from: hub id or folder.")],
    *,
    twin: Annotated[bool, typer.Option("--twin", help="The recipe of the masked twin too.")] = False,
    tokens: Annotated[
        str | None, typer.Option("--tokens", help="Of the first phase, 2B say (default: one pass over the corpus).")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Of recipe and run.")] = "detour",
    out: Annotated[str, typer.Option("--out", help="Folder of the recipes.")] = ".",
) -> None:
    """Write a recipe for a corpus of your own, with comments; also as `biobench pretrain new`."""
    check_ours("trainer")
    from pathlib import Path

    from trainer.recipe.scaffold import next_steps, write_recipes

    paths = write_recipes(Path(corpus), base, Path(out), name, twin=twin, tokens=tokens)
    typer.echo(f"{', '.join(map(str, paths))}: look through them; then")
    for line in next_steps(paths):
        typer.echo(f"  {line}")


def stderr(line: str) -> None:
    """A line on stderr."""
    typer.echo(line, err=True)


def exported(result: PretrainingResult, remedy: str, *, say: bool = True) -> Path:
    """The encoder that a run exported; ends the command with the status of a stopped run where a signal stopped it.

    remedy: in words, what resumes the run. say: on stderr that it was stopped.
    """
    if result.model is None:
        if say:
            typer.echo(f"stopped and saved in {result.out}; {remedy}", err=True)
        from trainer.api import PREEMPTED_EXIT

        raise typer.Exit(PREEMPTED_EXIT)
    return result.model


def plan(
    recipe: Recipe,
    overrides: Overrides = [],  # noqa: B006
    gpu: Annotated[str, typer.Option("--gpu", help="GPU whose time is estimated.")] = "H200",
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="How many of them.")] = 1,
    speed: Annotated[
        str | None, typer.Option("--speed", help="Measurement of such a machine, by pretrain-bench --out.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Steps, tokens, FLOPs, memory and time of a recipe, without training."""
    check_ours("trainer")
    from trainer import api

    planned = api.plan(recipe, overrides=overrides, gpu=gpu, gpus=gpus, speed=speed)
    if as_json:
        print_json(planned.as_dict())
        return
    for line in planned.lines():
        typer.echo(line)


def bench(
    recipe: Recipe,
    overrides: Overrides = [],  # noqa: B006
    steps: Annotated[int, typer.Option("--steps", min=3, help="Steps of each phase that are timed.")] = 20,
    out: Annotated[
        str | None, typer.Option("--out", help="File for the measurement, for pretrain-plan --speed.")
    ] = None,
    trace: Annotated[str | None, typer.Option("--trace", help="File for the profiler's traces, .json.")] = None,
    as_json: Json = False,
) -> None:
    """Tokens a second of a recipe on this machine through the real loop, its utilisation, and a step's parts."""
    check_ours("trainer")
    from pathlib import Path

    from trainer import api
    from trainer.cost.speed import write_speed
    from trainer.disk import check_writable

    if out is not None:
        check_writable(Path(out))
    speed = api.bench(recipe, overrides=overrides, steps=steps, trace=trace)
    if out is not None:
        write_speed(speed, Path(out))
    if as_json:
        print_json(speed.model_dump(mode="json"))
        return
    for line in speed.lines():
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
    check_ours("trainer")
    from trainer import api

    folder = api.average([Path(m) for m in models], Path(out), shares)
    typer.echo(f"{folder}: the average of {len(models)} models; next: biobench run {folder} --suite fr")


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
                "verdict": diff.verdict,
                "rows": [asdict(row) | {"equal": row.equal} for row in diff.rows],
            }
        )
    else:
        for line in diff.lines():
            typer.echo(line)
    if not diff.matched:
        raise typer.Exit(1)
