"""`biobench demo`: the whole story on embedded data, without a network.

A tiny encoder is pretrained by the causal detour on synthetic bilingual text, and its masked-LM
twin from the same recipe but for the objective; the ledgers are compared; both, and the same
architecture with random weights, are fine-tuned on two synthetic tasks whose test names stand in no
training split. The report shows what pretraining brings; its scores say nothing of any real
encoder.
"""

from __future__ import annotations

import textwrap
import time
from dataclasses import replace
from pathlib import Path

import typer

from biobench.cli.console.arguments import ResultsDir, Threads
from biobench.cli.console.output import terminal_width

TASKS = ("demo_names", "demo_first")
RECIPES = {"toy-detour": "toy_detour", "toy-mlm-twin": "toy_mlm_twin"}
"""Name of the encoder in the report to the shipped recipe that makes it."""
SHORTER = ("phases.0.tokens=200k", "phases.1.tokens=200k")
"""In place of the recipes' 300,000 each: what the story needs."""
UNTRAINED = "toy-untrained"
WORKERS = 2
"""Processes that fine-tune; more would only wait for their own start."""
NAMES = (
    "the pretraining text holds the test names, but no test sentence: what a name is can be "
    "known from it alone"
)
"""What makes a pretrained encoder better here than a dictionary; a test holds it to the texts."""
BOARD = "http://localhost:8501"
"""The default address of `biobench leaderboard`."""


def demo(
    results_dir: ResultsDir = "demo-results",
    seeds: str | None = None,
    threads: Threads = None,
) -> None:
    """The whole story on embedded data, in minutes on a CPU, no network.

    seeds: Seeds (default: the demo tasks').
    """
    from biobench.cli.runs import run_request
    from biobench.comparison.compare import compare
    from biobench.core.files import make_folder
    from biobench.core.threads import usable_cpus
    from biobench.models.dummy import write_untrained
    from biobench.models.loading import quiet_libraries
    from biobench.runs.options import RunRequest
    from trainer import api

    quiet_libraries()
    began = time.perf_counter()
    folder = make_folder(Path(results_dir)) / "pretraining"
    typer.echo("1. Pretraining a tiny encoder by the causal detour, and its masked-LM twin.")
    trained = [pretrain_once(recipe, folder / name, name) for name, recipe in RECIPES.items()]
    typer.echo(f"2. Their ledgers: {api.ledger_diff(*trained).verdict}.")
    untrained = folder / UNTRAINED
    if not untrained.is_dir():
        write_untrained(trained[0], untrained)
    say(
        f"3. Fine-tuning both, and {UNTRAINED} (random weights), on two generated tasks: "
        f"{TASKS[0]} (mark drugs, "
        f"symptoms and tests) and {TASKS[1]} (which of them is first). No name of a test split "
        f"occurs in training."
    )
    request = RunRequest(
        [*trained, untrained],
        tasks=TASKS,
        results_dir=results_dir,
        device="cpu",
        parallel=min(threads or usable_cpus(), WORKERS),
        threads=threads,
        seeds=seeds,
        offline=True,
    )
    status = run_request(request, as_json=False, summary=False, brief=True)
    if status:
        raise typer.Exit(status)
    option = f" --results-dir {results_dir}"
    say(f"4. `biobench report{option}`:")
    print_results(results_dir)
    say(f"5. `biobench compare {' '.join(RECIPES)}{option}`:")
    say(str(compare(list(RECIPES), results_dir=results_dir, tasks=TASKS).verdict[0]))
    say(f"All remarks: biobench report{option} --notes")
    say(f"Done in {time.perf_counter() - began:.0f} s.")
    say(f"See it in a browser: biobench leaderboard{option} opens {BOARD}")


def say(text: str) -> None:
    """A line of the story, broken between words where the terminal's width is known."""
    width = terminal_width()
    if width is not None:  # a command must be copied in one piece
        text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    typer.echo(text)


def print_results(results_dir: str) -> None:
    """The table of models and baselines, and at most three notes: what the story rests on, and
    which runs to doubt.

    That the training text was not compared with the test documents, which a report says of each
    model and task, is known here: it is generated, holds the test's names on purpose and none of
    its sentences.
    """
    from biobench.reporting.footnotes import remark
    from biobench.reporting.frame import build
    from biobench.reporting.printers import print_table
    from biobench.reporting.results import load

    results = load(results_dir)
    report = build(results, "paper", tasks=TASKS, sources=("run", "baseline"))
    compared = {str(each) for group in results.groups for each in remark(group)}
    remarks = [each for each in report.notes if str(each) not in compared]
    print_table(replace(report, notes=(NAMES, *remarks[:2])))


def pretrain_once(recipe: str, folder: Path, name: str) -> Path:
    """The encoder that `recipe` makes of fewer tokens, in `folder`/`name`; a finished one is used
    again, a stopped one continued.
    """
    from biobench.cli.pretrain import exported
    from trainer import api

    target = folder / name
    if (target / "config.json").is_file():
        return target
    result = api.pretrain(recipe, out=folder, resume=folder.is_dir(), overrides=SHORTER)
    # The folder's name is the model's name in the report; the rename comes last, so a killed demo
    # starts over here.
    exported(result, "`biobench demo` continues").rename(target)
    return target
