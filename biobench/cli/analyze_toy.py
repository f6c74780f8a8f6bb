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
from typing import Annotated

import typer

from biobench.cli import analyze_runs
from biobench.cli.analyze_cka import cka
from biobench.cli.common import percent
from biobench.core.packages import check_ours
from biobench.errors import UsageError

TASK = "demo_topic"
SHARES = {"short": 1 / 3, "middle": 1.0, "long": 2.0}
"""Tokens of the decay over those of the first phase, as in the shipped toy recipes."""
FROZEN = {"freeze-low": "toy_freeze_low", "freeze-mid": "toy_freeze_mid", "freeze-low-decay": "toy_freeze_low_decay"}
DOCUMENTS = 3_000
"""Texts of the shipped toy recipes."""
LAYERS = ("0-1", "2", "3")
PROBE = (*analyze_runs.PROBE, "probe.learning_rates=[1e-3, 1e-2]", "probe.epochs=10")


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
) -> None:
    """Freeze, decay-sweep, transplant and CKA on toy runs: trains, scores and prints the tables."""
    check_ours("trainer")
    from biobench.models.loading import quiet_libraries
    from biobench.report.mechanism import standings, standings_chart
    from trainer.analysis.figures import save

    quiet_libraries()
    _check_seeds(seeds)
    began = time.perf_counter()
    root = Path(out)
    typer.echo("1. Pretraining; what is finished already is used again.")
    models = pretrain_all(root / "runs", tokens)
    typer.echo("2. Divergence of detour and twin beside two twins of other seeds.")
    figures = [str(root / f"cka{ending}") for ending in (".svg", ".png", ".html")]
    cka(
        models["detour"],
        models["twin"],
        "embedded",
        (models["twin"], models["noise-twin"]),
        n=n,
        figure=figures,
        series=[f"{phase_end(models['detour'], 'detour')}={phase_end(models['twin'], 'masked')}"],
    )
    settings = () if finetune else PROBE
    how = analyze_runs.Scoring([TASK], seeds, settings, str(root / "results"), None, "cpu")

    def score(names: Sequence[str]) -> analyze_runs.Scores:
        return analyze_runs.run_scores([models[x] for x in names], how)

    typer.echo("3. Freezing.")
    frozen = standings(
        score(["detour", "twin", *FROZEN]),
        reference=models["detour"],
        twin=models["twin"],
        frozen={models[x]: analyze_runs.frozen_layers(models[x]) for x in FROZEN},
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


def _check_seeds(seeds: str) -> None:
    """Raise UsageError before minutes of training, not after."""
    from biobench.schema.task import parse_seeds

    try:
        parse_seeds(seeds)
    except ValueError as error:
        what, _, hint = str(error).partition(" | hint: ")
        raise UsageError(f"--seeds: {what}", hint=hint) from None


def pretrain_all(folder: Path, tokens: int) -> dict[str, str]:
    """Name to exported model of every run. Decays and the run frozen in its decay adopt a finished first phase."""
    # of about 100 tokens; many more than the longest run reads would only train the tokenizer longer
    documents = min(DOCUMENTS, round(tokens * (1 + max(SHARES.values())) / 40))
    common = [
        f"phases.0.tokens={tokens}",
        f"phases.0.schedule.warmup={tokens // 8}",
        f"corpus.sources.0.embedded.documents={documents}",
    ]
    models = {}

    def make(name: str, recipe: str, decay: float, reuse: str | None = None, through: str = "") -> None:
        settings = [*common, f"phases.1.tokens={round(tokens * decay)}"]
        if reuse is not None:
            settings += [f"reuse.run={folder / reuse}", f"reuse.through={through}"]
        models[name] = pretrained(recipe, folder / name, settings)

    make("detour", "toy_detour", 1.0)
    make("twin", "toy_mlm_twin", 1.0)
    make("noise-twin", "toy_noise_twin", 1.0)
    for name, recipe in FROZEN.items():
        # frozen in the decay alone: the causal phase is the detour's own
        reuse = "detour" if name.endswith("decay") else None
        make(name, recipe, 1.0, reuse, "detour")
    for length, share in SHARES.items():
        if length != "middle":
            make(f"detour-{length}", "toy_detour", share, "detour", "detour")
            make(f"twin-{length}", "toy_mlm_twin", share, "twin", "masked")
    return models


def pretrained(recipe: str, folder: Path, overrides: Sequence[str]) -> str:
    """The exported model of a run, trained now unless it is there. Raises UsageError for a run of other settings."""
    from biobench.cli.pretrain import exported
    from trainer import api
    from trainer.train.run_folder import differences, read_recipe, training_fields

    model = folder / "model"
    if not (model / "config.json").is_file():
        typer.echo(f"   {folder.name}", err=True)
        made = api.pretrain(recipe, out=folder, resume=folder.is_dir(), overrides=overrides, progress="none")
        return str(exported(made, "the same command goes on"))
    wanted = training_fields(api.load_recipe(recipe, overrides))
    if changed := differences(training_fields(read_recipe(folder)), wanted):
        raise UsageError(
            f"the run in {folder} was made with other settings: {', '.join(changed[:4])}",
            hint="give the same --tokens, or another folder with --out",
        )
    return str(model)


def phase_end(model: str, phase: str) -> str:
    """The export at the end of a phase of the same run."""
    return str(Path(model).parent / "phases" / phase)


def print_decays(models: dict[str, str], score: Callable[[Sequence[str]], analyze_runs.Scores]) -> None:
    """The decay sweep: detour and twin at each length, and their paired difference."""
    from rich.console import Console
    from rich.table import Table

    from biobench.report.mechanism import standings

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


def transplant_all(recipient: str, donor: str, folder: Path) -> dict[str, str]:
    """Name to folder of a hybrid for each group of layers and each kind of module."""
    import shutil

    from trainer.analysis.transplant import transplant
    from trainer.recipe.spec import parse_layers

    shutil.rmtree(folder, ignore_errors=True)
    made = {}
    for layers in LAYERS:
        name = f"layers-{layers}"
        made[name] = str(transplant(recipient, donor, folder / name, layers=parse_layers(layers)).folder)
    made["attention"] = str(transplant(recipient, donor, folder / "attention", parts=("attention",)).folder)
    made["mlp"] = str(transplant(recipient, donor, folder / "mlp", parts=("mlp",)).folder)
    return made
