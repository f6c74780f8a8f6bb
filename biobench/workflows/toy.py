"""The pretraining runs and hybrids of `biobench analyze toy`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from biobench.errors import UsageError

if TYPE_CHECKING:
    from trainer.recipe.spec import Recipe
    from trainer.run.run import PretrainingResult

SHARES = {"short": 1 / 3, "middle": 1.0, "long": 2.0}
"""Tokens of the decay over those of the first phase, as in the shipped toy recipes."""
FROZEN = {"freeze-low": "freeze_low", "freeze-mid": "freeze_mid", "freeze-low-decay": "freeze_low_decay"}
"""Name of a run to the arm of toy_detour."""
DOCUMENTS = 3_000
"""Texts of the shipped toy recipes."""
LAYERS = ("0-1", "2", "3")
QUICK = ("probe.learning_rates=[1e-3, 1e-2]", "probe.epochs=10")
"""Settings of the probe besides the usual ones."""


def pretrain_all(
    folder: Path, tokens: int, finished: Callable[[PretrainingResult], Path], say: Callable[[str], None]
) -> dict[str, str]:
    """Name to exported model of every run. Decays and the run frozen in its decay adopt a finished first phase.

    finished: gives the model of a run, or ends the command where a signal stopped it. say: told of each run made.
    """
    from trainer.api import load_recipe

    # of about 100 tokens; many more than the longest run reads would only train the tokenizer longer
    documents = min(DOCUMENTS, round(tokens * (1 + max(SHARES.values())) / 40))
    common = [
        f"phases.0.tokens={tokens}",
        f"phases.0.schedule.warmup={tokens // 8}",
        f"corpus.sources.0.embedded.documents={documents}",
    ]
    models = {}

    def make(name: str, arm: str | None, decay: float, reuse: str | None = None, through: str = "") -> None:
        settings = [*common, f"phases.1.tokens={round(tokens * decay)}"]
        if reuse is not None:
            settings += [f"reuse.run={folder / reuse}", f"reuse.through={through}"]
        recipe = load_recipe("toy_detour", settings, () if arm is None else (arm,))
        models[name] = _pretrained(recipe, folder / name, finished, say)

    make("detour", None, 1.0)
    make("twin", "twin", 1.0)
    make("noise-twin", "noise_twin", 1.0)
    for name, arm in FROZEN.items():
        # frozen in the decay alone: the causal phase is the detour's own
        reuse = "detour" if name.endswith("decay") else None
        make(name, arm, 1.0, reuse, "detour")
    for length, share in SHARES.items():
        if length != "middle":
            make(f"detour-{length}", None, share, "detour", "detour")
            make(f"twin-{length}", "twin", share, "twin", "masked")
    return models


def _pretrained(
    recipe: Recipe,
    folder: Path,
    finished: Callable[[PretrainingResult], Path],
    say: Callable[[str], None],
) -> str:
    """The exported model of a run, trained now unless it is there. Raises UsageError for a run of other settings."""
    from trainer import api
    from trainer.train.run_folder import differences, read_recipe, training_fields

    model = folder / "model"
    if not (model / "config.json").is_file():
        say(f"   {folder.name}")
        result = api.pretrain(recipe, out=folder, resume=folder.is_dir(), progress="none")
        return str(finished(result))
    if changed := differences(training_fields(read_recipe(folder)), training_fields(recipe)):
        raise UsageError(
            f"the run in {folder} was made with other settings: {', '.join(changed[:4])}",
            hint="give the same --tokens, or another folder with --out",
        )
    return str(model)


def phase_end(model: str, phase: str) -> str:
    """The export at the end of a phase of the same run."""
    return str(Path(model).parent / "phases" / phase)


def transplant_all(recipient: str, donor: str, folder: Path) -> dict[str, str]:
    """Name to folder of a hybrid for each group of layers and each kind of module."""
    from trainer.analysis.transplant import transplant
    from trainer.recipe.phases import parse_layers

    shutil.rmtree(folder, ignore_errors=True)
    folders = {}
    for layers in LAYERS:
        name = f"layers-{layers}"
        folders[name] = str(transplant(recipient, donor, folder / name, layers=parse_layers(layers)).folder)
    folders["attention"] = str(transplant(recipient, donor, folder / "attention", parts=("attention",)).folder)
    folders["mlp"] = str(transplant(recipient, donor, folder / "mlp", parts=("mlp",)).folder)
    return folders
