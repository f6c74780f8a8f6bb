"""The trained encoder as a folder that AutoModel loads: weights, tokenizer, ledger, and a card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from transformers import PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from biobench.core.files import temporary_folder
from biobench.schema.checkpoint import content_hash
from trainer.disk import PLACE, write_json, writing
from trainer.ledger import FILE, Ledger, LedgerCorpus, PhaseRecord
from trainer.model.network import model_from_config
from trainer.recipe.fields import human
from trainer.recipe.spec import Recipe
from trainer.train.distributed import World, whole_tensor

BEGINNING = "start.json"
"""Of a run's `start` folder, the file that is neither config nor tokenizer."""


def export(
    model: PreTrainedModel,
    start: Path,
    folder: Path,
    world: World,
    *,
    texts: Callable[[str], dict[str, str]] | None = None,
) -> None:
    """Write `folder` whole or not at all; the first process writes, all must call.

    start: the run's folder with config.json and the tokenizer's files, which are copied. texts:
    gives more files, name to content, for the export's hash; none by default.
    Raises StoreError when the disk does not take it.
    """
    weights = {}
    for name, parameter in model.named_parameters():
        weights[name] = whole_tensor(parameter.detach()).cpu()
    if world.first:
        plain = model_from_config(start)
        with torch.no_grad():
            for name, parameter in plain.named_parameters():
                parameter.copy_(weights[name])
        with temporary_folder(folder, PLACE) as temporary, writing(folder):
            disable_progress_bar()  # type: ignore[no-untyped-call]
            plain.save_pretrained(temporary)
            # a tokenizer that was loaded again, as on a resume, would be saved with other fields,
            # under another hash
            for item in start.iterdir():
                if item.is_file() and item.name not in (BEGINNING, "config.json"):
                    shutil.copyfile(item, temporary / item.name)
            _both_spellings(temporary / "config.json")
            if texts is not None:
                for name, text in texts(content_hash(temporary)).items():
                    (temporary / name).write_text(text, encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
    world.barrier()


def _both_spellings(file: Path) -> None:
    """Add the field names by which transformers 4 reads ModernBERT's layer pattern and rotary
    bases.

    Version 5 writes `layer_types` and `rope_parameters` only; older readers would fall back to
    defaults.
    """
    config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if config.get("model_type") != "modernbert":
        return
    is_global = [kind == "full_attention" for kind in config["layer_types"]]
    every = [*is_global, True].index(True, 1)
    if is_global == [number % every == 0 for number in range(len(is_global))]:
        config["global_attn_every_n_layers"] = every
    for kind, rotary in config["rope_parameters"].items():
        name = "global_rope_theta" if kind == "full_attention" else "local_rope_theta"
        config[name] = rotary["rope_theta"]
    write_json(file, config)


def model_card(recipe: Recipe, ledger: Ledger) -> str:
    """README.md of an exported encoder."""
    masked = recipe.phases[-1].objective == "mlm"
    both_sides = not ledger.base.architecture.endswith("ForCausalLM")
    front: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": _pipeline(masked, both_sides),
        "tags": ["biomedical", "encoder" if masked or both_sides else "decoder", "biobench"],
    }
    if recipe.base.model is not None:
        front["base_model"] = recipe.base.model
    fields = recipe.model_dump(mode="json", exclude_defaults=True)
    corpus = ledger.corpus
    sources = ", ".join(f"{name} {share:.1%}" for name, share in corpus.sources.items())
    sections = [
        f"---\n{yaml.safe_dump(front, sort_keys=False).strip()}\n---",
        f"# {recipe.name}",
        recipe.description,
        _summary(ledger, masked, both_sides),
        "## Phases",
        _phases(ledger.phases),
        "## Data",
        f"Corpus `{corpus.manifest_hash[:16]}`, {human(corpus.tokens)} tokens: {sources}.",
        _guard(corpus),
        "## Recipe",
        f"```yaml\n{yaml.safe_dump(fields, sort_keys=False, allow_unicode=True).strip()}\n```",
        f"What was trained on, in numbers and hashes: [{FILE}]({FILE}).",
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _pipeline(masked: bool, both_sides: bool) -> str:
    """The hub's task name: one whose pipeline can load the class of the exported model."""
    by_class = {(True, True): "fill-mask", (False, False): "text-generation"}
    return by_class.get((masked, both_sides), "feature-extraction")


def _summary(ledger: Ledger, masked: bool, both_sides: bool) -> str:
    """What the model is and how it loads. both_sides: how its classes let tokens attend."""
    model = "A bidirectional encoder" if masked else "A causal model"
    auto = "AutoModelForMaskedLM" if both_sides else "AutoModelForCausalLM"
    text = (
        f"{model} ({ledger.base.architecture}, {human(ledger.base.parameters)} parameters), "
        f"trained by `biobench pretrain` for {human(ledger.tokens)} tokens in {ledger.steps} "
        f"steps. It loads with `AutoModel` and `{auto}`; nothing of the training's attention is "
        f"saved."
    )
    if masked == both_sides:
        return text
    objective = "causal"
    reach = "to both sides"
    if masked:
        objective = "masked"
        reach = "to those before it only"
    return f"{text} The last phase was {objective}, while these classes let tokens attend {reach}."


def _phases(phases: Sequence[PhaseRecord]) -> str:
    """The table of the phases."""
    lines = [
        "| phase | objective | masking | tokens | frozen | validation loss |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for phase in phases:
        masking = "-"
        loss = "-"
        if phase.masking is not None:
            masking = f"{phase.masking['rate']:.0%} {phase.masking['rule']}"
        if phase.validation_loss is not None:
            loss = f"{phase.validation_loss:.3f}"
        lines.append(
            f"| {phase.name} | {phase.objective} | {masking} | {human(phase.tokens)} | "
            f"{phase.frozen_layers or '-'} | {loss} |"
        )
    return "\n".join(lines)


def _guard(corpus: LedgerCorpus) -> str:
    """What was excluded from the training text, what that took from it, and which tasks were not
    guarded.
    """
    text = f"Benchmark documents to exclude: {corpus.excluded_documents:,}"
    if corpus.removed_documents is not None:
        text += f"; documents removed for it: {corpus.removed_documents:,}"
    if not corpus.unguarded:
        return f"{text}."
    return (
        f"{text}.\n\n**Tasks that were not guarded ({len(corpus.unguarded)})**, as their "
        f"documents were not available: {', '.join(corpus.unguarded)}. Their text may be in the "
        f"corpus."
    )
