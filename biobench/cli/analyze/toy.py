"""`biobench analyze toy`: the mechanism experiments at toy size, on embedded data, in minutes on a CPU.

Trains the shipped toy recipes (detour, twin, second-seed twin, frozen runs, decays of several lengths), then
prints the CKA table and the three tables of the paper's analysis: freezing, decay length, transplants. Models
are scored by a linear probe on frozen states, which takes seconds where fine-tuning takes minutes.
The encoders are tiny and so is the task: the tables show the tools at work and say nothing of real encoders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.analyze import runs as analyze_runs
from biobench.cli.analyze.cka import cka
from biobench.cli.console.common import Threads, percent
from biobench.core.packages import check_ours
from biobench.errors import UsageError
from biobench.runs.options import RunRequest

if TYPE_CHECKING:
    from biobench.workflows.mechanism import Scores
    from trainer.pretrain import PretrainingResult

TASK = "demo_topic"


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("toy")(toy)


def toy(
    out: Annotated[str, typer.Option("--out", help="Folder of everything that is made.")] = "toy-analysis",
    tokens: Annotated[int, typer.Option("--tokens", min=8_000, help="Tokens of the first phase.")] = 40_000,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds of the scores.")] = "42-44",
    finetune: Annotated[
        bool, typer.Option("--finetune", help="Score by fine-tuning, minutes longer, in place of a linear probe.")
    ] = False,
    n: Annotated[int, typer.Option("--n", min=5, help="Texts of the CKA drawings.")] = 80,
    threads: Threads = None,
) -> None:
    """Freeze, decay-sweep, transplant and CKA on toy runs: trains, scores and prints the tables."""
    check_ours("trainer")
    from biobench.cli.pretrain import stderr
    from biobench.models.loading import quiet_libraries
    from biobench.report.details.mechanism import standings, standings_chart
    from biobench.workflows.mechanism import PROBE, frozen_layers
    from biobench.workflows.toy import FROZEN, QUICK, phase_end, pretrain_all, transplant_all
    from trainer.analysis.cka import save

    quiet_libraries()
    _check_seeds(seeds)
    began = time.perf_counter()
    root = Path(out)
    typer.echo("1. Pretraining; what is finished already is used again.")
    models = pretrain_all(root / "runs", tokens, _finished, stderr)
    typer.echo("2. Divergence of detour and twin beside two twins of other seeds.")
    figures = [str(root / f"cka{ending}") for ending in (".svg", ".png", ".html")]
    cka(
        models["detour"],
        models["twin"],
        texts="embedded",
        noise=(models["twin"], models["noise-twin"]),
        n=n,
        figure=figures,
        series=[f"{phase_end(models['detour'], 'detour')}={phase_end(models['twin'], 'masked')}"],
    )
    settings = () if finetune else (*PROBE, *QUICK)
    how = RunRequest(tasks=[TASK], seeds=seeds, overrides=settings, results_dir=str(root / "results"), device="cpu")

    def score(names: Sequence[str]) -> Scores:
        return analyze_runs.scored([models[x] for x in names], how)

    typer.echo("3. Freezing.")
    frozen = standings(
        score(["detour", "twin", *FROZEN]),
        reference=models["detour"],
        twin=models["twin"],
        frozen={models[x]: frozen_layers(models[x]) for x in FROZEN},
    )
    analyze_runs.print_standings(frozen, "kept")
    for ending in (".svg", ".png"):
        save(standings_chart(frozen), root / f"freeze{ending}")
    typer.echo("4. Length of the decay.")
    print_decays(models, score)
    typer.echo("5. Transplants from the detour into the twin.")
    hybrids = transplant_all(models["twin"], models["detour"], root / "hybrids")
    models |= hybrids
    transplants = standings(
        score(["twin", "detour", *hybrids]),
        reference=models["detour"],
        twin=models["twin"],
        roles=("donor", "recipient", "hybrid"),
    )
    analyze_runs.print_standings(transplants, "recovered")
    typer.echo(f"Done in {time.perf_counter() - began:.0f} s; figures and models are in {root}")


def _finished(result: PretrainingResult) -> Path:
    from biobench.cli.pretrain import exported

    return exported(result, "the same command goes on")


def _check_seeds(seeds: str) -> None:
    """Raise UsageError before minutes of training, not after."""
    from biobench.schema.strict import FieldError
    from biobench.schema.task import parse_seeds

    try:
        parse_seeds(seeds)
    except FieldError as error:
        raise UsageError(f"--seeds: {error.what}", hint=error.hint) from None


def print_decays(models: dict[str, str], score: Callable[[Sequence[str]], Scores]) -> None:
    """The decay sweep: detour and twin at each length, and their paired difference."""
    from rich.console import Console
    from rich.table import Table

    from biobench.report.details.mechanism import standings
    from biobench.workflows.toy import SHARES

    table = Table(box=None)
    for name in ("decay / first phase", "detour", "twin", "difference", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for length, share in SHARES.items():
        ending = "" if length == "middle" else f"-{length}"
        names = [f"detour{ending}", f"twin{ending}"]
        rows = standings(score(names), reference=models[names[0]], twin=models[names[1]]).rows
        table.add_row(
            f"{100 * share:.0f}%", percent(rows[0].mean), percent(rows[1].mean), *analyze_runs.cells(rows[0].to_twin)
        )
    Console(width=110).print(table)
