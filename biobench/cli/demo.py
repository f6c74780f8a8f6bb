"""`biobench demo`: the whole story on embedded data, without a network.

A tiny encoder is pretrained by the causal detour on synthetic bilingual text, and its masked-LM twin from the same
recipe but for the objective; the ledgers are compared; both, and the same architecture with random weights, are
fine-tuned on two synthetic tasks whose test names stand in no training split. The report shows what pretraining
brings; its scores say nothing of any real encoder.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.console.common import ResultsDir, Threads
from biobench.core.packages import check_ours

TASKS = ("demo_names", "demo_first")
RECIPES = {"toy-detour": "toy_detour", "toy-mlm-twin": "toy_mlm_twin"}
"""Name of the encoder in the report to the shipped recipe that makes it."""
UNTRAINED = "toy-untrained"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("demo")(demo)


def demo(
    results_dir: ResultsDir = "demo-results",
    seeds: Annotated[str | None, typer.Option("--seeds", help="Seeds (default: the demo tasks').")] = None,
    threads: Threads = None,
) -> None:
    """The whole story on embedded data, in minutes on a CPU, no network."""
    check_ours("trainer")
    from biobench.cli.report import print_report
    from biobench.cli.run import run_request
    from biobench.comparison.compare import compare
    from biobench.models.dummy import write_untrained
    from biobench.models.loading import quiet_libraries
    from biobench.runs import RunRequest
    from trainer import api

    quiet_libraries()
    began = time.perf_counter()
    folder = Path(results_dir) / "pretraining"
    typer.echo("1. Pretraining a tiny encoder by the causal detour, and its masked-LM twin.")
    trained = [pretrain_once(recipe, folder / name, name) for name, recipe in RECIPES.items()]
    typer.echo(f"2. Their ledgers: {api.ledger_diff(*trained).verdict}.")
    untrained = folder / UNTRAINED
    if not untrained.is_dir():
        write_untrained(trained[0], untrained)
    typer.echo(f"3. Fine-tuning both, and {UNTRAINED} (random weights), on {' and '.join(TASKS)}.")
    request = RunRequest(
        [*trained, untrained],
        tasks=TASKS,
        results_dir=results_dir,
        device="cpu",
        seeds=seeds,
        offline=True,
    )
    status = run_request(request, as_json=False, summary=False)
    if status:
        raise typer.Exit(status)
    shown = f" --results-dir {results_dir}"
    typer.echo(f"4. `biobench report{shown}`:")
    print_report(results_dir, tasks=TASKS, sources=("run", "floor"))
    models = next(iter(RECIPES)), UNTRAINED
    typer.echo(f"5. `biobench compare {' '.join(models)}{shown}`:")
    typer.echo(compare(*models, results_dir=results_dir, tasks=TASKS).verdict[0])
    typer.echo(f"Done in {time.perf_counter() - began:.0f} s. See it in a browser: biobench leaderboard{shown}")


def pretrain_once(recipe: str, folder: Path, name: str) -> Path:
    """The encoder that `recipe` makes, in `folder`/`name`; a finished one is used again, a stopped one continued."""
    from biobench.cli.pretrain import exported
    from trainer import api

    target = folder / name
    if (target / "config.json").is_file():
        return target
    result = api.pretrain(recipe, out=folder, resume=folder.is_dir())
    # The folder's name is the model's name in the report; the rename comes last, so a killed demo starts over here.
    exported(result, "biobench demo goes on").rename(target)
    return target
