"""`biobench corpus build|inspect|stats`: the text of a recipe as shards, made and looked at without
training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from biobench.cli.console.arguments import DataDir, Json
from biobench.cli.console.output import answer, table
from biobench.cli.pretrain import Arms, ExcludeTasks, Fields, Quiet, Recipe, RequireTasks, stderr
from biobench.core.stop import STOPPED_EXIT

corpus = typer.Typer(
    no_args_is_help=True, help="Text to shards for pretraining: build, inspect, stats."
)
Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A built corpus: a folder below `corpora`.")
]


@corpus.command()
def build(
    recipe: Recipe,
    *,
    arms: Arms = [],  # noqa: B006
    overrides: Fields = [],  # noqa: B006
    cache: str = "runs/corpora",
    data_dir: DataDir = None,
    exclude_tasks: ExcludeTasks = True,
    require_tasks: RequireTasks = None,
    quiet: Quiet = False,
) -> None:
    """Build a recipe's corpus; the same command resumes after a stop. `pretrain` uses it as it
    is.

    cache: Folder, where the recipe names none.
    """
    from biobench.workflows.decontamination import guard, texts_by_task
    from trainer import api

    read = api.load_recipe(recipe, overrides, arms)
    excluded, _ = guard(
        read, data_dir, stderr, exclude_tasks=exclude_tasks, require_tasks=require_tasks
    )
    folders = api.build_corpus(
        read, cache=cache, exclude=texts_by_task(excluded), progress="none" if quiet else "auto"
    )
    if folders is None:
        typer.echo("stopped; the same command continues the build", err=True)
        raise typer.Exit(STOPPED_EXIT)
    for folder in folders:
        typer.echo(f"{folder}: a corpus; next: biobench corpus stats {folder}")


@corpus.command()
def inspect(
    folder: Folder,
    window: Annotated[int | None, typer.Option(min=0)] = None,
    tokenizer: str | None = None,
) -> None:
    """Check every shard against its hash; show what the corpus is, or what a window holds.

    window: Show the tokens of this window.
    tokenizer: Show it as text by this tokenizer.
    """
    from trainer.corpus.shards import Corpus

    built = Corpus(folder)
    built.verify()
    if window is None:
        typer.echo(f"corpus {built.hash[:16]}: all shards are whole")
        for split in ("train", "held_out"):
            numbers = built.manifest[split]
            typer.echo(
                f"{split}: {numbers['windows']:,} windows of {built.length:,} tokens, "
                f"{numbers['documents']:,} documents"
            )
        listed = built.manifest["exclusion"]
        typer.echo(
            f"documents to exclude: {listed['documents']:,}, by runs of {listed['ngram']} words"
        )
        return
    import numpy as np

    from biobench.core.tokenizer import load_tokenizer
    from biobench.errors import UsageError

    if window >= len(built.train):
        raise UsageError(
            f"there is no window {window}", hint=f"give one below {len(built.train):,}"
        )
    ids = built.train.read(np.array([window]))[0].tolist()
    words = " ".join(map(str, ids))
    if tokenizer is not None:
        words = str(load_tokenizer(tokenizer).decode(ids))
    typer.echo(words)


@corpus.command()
def stats(folder: Folder, as_json: Json = False) -> None:
    """Documents, tokens, repeats, and what was removed of each source by which step and for which
    task.
    """
    from trainer.corpus.shards import Corpus

    built = Corpus(folder)
    by_task = built.removed_by_task()
    rows: list[dict[str, Any]] = []
    for source in built.manifest["sources"]:
        counts = by_task.get(source["id"], {})
        row = {
            "source": source["id"],
            "documents": source["documents"],
            "tokens": source["tokens"],
            "trained on": source["drawn_tokens"],
            "share": source["share"],
            "repeats": round(source["drawn_documents"] / max(source["documents"], 1), 3),
            "removed": sum(source["excluded"].values()),
            "removed by step": source.get("cleaned", {}),
            "removed by task": {task: count for task, count in counts.items() if count},
        }
        rows.append(row)
    columns = ("documents", "tokens", "trained on", "share", "repeats", "removed")
    cells = [[row["source"], *(f"{row[name]:,}" for name in columns)] for row in rows]
    lines = [table(("source", *columns), cells)]
    for row in rows:
        steps = {name.replace("_", " "): count for name, count in row["removed by step"].items()}
        for reason, count in (*steps.items(), *sorted(row["removed by task"].items())):
            lines.append(f"{row['source']}: {count:,} documents removed because of {reason}")
    answer(as_json, rows, lines)
