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

from biobench.schema.checkpoint import content_hash
from trainer.disk import write_json, writing
from trainer.ledger import Ledger
from trainer.model.network import model_from_config
from trainer.recipe.fields import human
from trainer.recipe.spec import Recipe
from trainer.train.distributed import World

BEGINNING = "start.json"
"""Of a run's `start` folder, the file that is neither config nor tokenizer."""
"""Holds the `content_hash` of an intermediate export; the final model's stands in its ledger."""


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
    weights = {  # gathered where they are sharded
        name: (p.full_tensor() if hasattr(p, "full_tensor") else p).detach().cpu()
        for name, p in model.named_parameters()
    }
    if world.first:
        temporary = folder.with_name(f"{folder.name}.tmp")
        plain = model_from_config(start)
        with torch.no_grad():
            for name, p in plain.named_parameters():
                p.copy_(weights[name])
        with writing(folder):
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            disable_progress_bar()  # type: ignore[no-untyped-call]
            plain.save_pretrained(temporary)
            # a tokenizer that was loaded again, as on a resume, would be saved with other fields,
            # under another hash
            for item in start.iterdir():
                if item.is_file() and item.name not in (BEGINNING, "config.json"):
                    shutil.copyfile(item, temporary / item.name)
            _both_spellings(temporary / "config.json")
            for name, text in (texts(content_hash(temporary)) if texts is not None else {}).items():
                (temporary / name).write_text(text, encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
    world.barrier()


def _both_spellings(file: Path) -> None:
    """Add the field names by which transformers 4 reads ModernBERT's layer pattern and rotary
    bases.

    Version 5 writes `layer_types` and `rope_parameters` only; older readers would fall back to
    defaults.
    """
    config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    types = config.get("layer_types")
    if config.get("model_type") != "modernbert" or not types:
        return
    wide = [number for number, kind in enumerate(types) if kind == "full_attention"]
    every = wide[1] - wide[0] if len(wide) > 1 else len(types)
    if types == [
        "full_attention" if n % every == 0 else "sliding_attention" for n in range(len(types))
    ]:
        config["global_attn_every_n_layers"] = every
    rotary = config.get("rope_parameters", {})
    for name, kind in (
        ("global_rope_theta", "full_attention"),
        ("local_rope_theta", "sliding_attention"),
    ):
        if kind in rotary:
            config[name] = rotary[kind]["rope_theta"]
    write_json(file, config)


def model_card(recipe: Recipe, ledger: Ledger) -> str:
    """README.md of an exported encoder."""
    masked = recipe.phases[-1].objective == "mlm"
    both_sides = not ledger.base.architecture.endswith("ForCausalLM")
    auto = "AutoModelForMaskedLM" if both_sides else "AutoModelForCausalLM"
    # the hub's task name: one whose pipeline can load the class of the exported model
    pipeline, direction = ("fill-mask" if masked else "text-generation"), ""
    if masked != both_sides:
        pipeline, last = "feature-extraction", "masked" if masked else "causal"
        seen = "to both sides" if both_sides else "to those before it only"
        direction = (
            f" The last phase was {last}, while these classes let every token attend {seen}."
        )
    front: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": pipeline,
        "tags": ["biomedical", "encoder" if masked or both_sides else "decoder", "biobench"],
    }
    if recipe.base.model is not None:
        front["base_model"] = recipe.base.model
    phases = [
        {
            "phase": p.name,
            "objective": p.objective,
            "masking": "-" if p.masking is None else f"{p.masking['rate']:.0%} {p.masking['rule']}",
            "tokens": human(p.tokens),
            "frozen": p.frozen_layers or "-",
            "validation loss": "-" if p.validation_loss is None else f"{p.validation_loss:.3f}",
        }
        for p in ledger.phases
    ]
    sources = [
        {"source": name, "share of tokens": f"{share:.1%}"}
        for name, share in ledger.corpus.sources.items()
    ]
    dumped = recipe.model_dump(mode="json", exclude_defaults=True)
    parts = [
        f"---\n{yaml.safe_dump(front, sort_keys=False).strip()}\n---",
        f"# {recipe.name}",
        recipe.description,
        f"{'A bidirectional encoder' if masked else 'A causal model'} ({ledger.base.architecture}, "
        f"{human(ledger.base.parameters)} parameters), trained by `biobench pretrain` for "
        f"{human(ledger.tokens)} "
        f"tokens in {ledger.steps} steps. It loads with `AutoModel` and `{auto}`; nothing of the "
        f"training's attention "
        f"is saved.{direction}",
        "## Phases",
        _table(phases),
        "## Data",
        _table(sources),
        f"Corpus `{ledger.corpus.manifest_hash[:16]}`, {human(ledger.corpus.tokens)} tokens. "
        f"{_guard(ledger)}",
        "## Recipe\n\n```yaml\n"
        + yaml.safe_dump(dumped, sort_keys=False, allow_unicode=True).strip()
        + "\n```",
        "## Ledger\n\n```json\n" + json.dumps(ledger.model_dump(mode="json"), indent=2) + "\n```",
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _guard(ledger: Ledger) -> str:
    """What was excluded from the training text, what that took from it, and which tasks were not
    guarded.
    """
    corpus = ledger.corpus
    removed = (
        ""
        if corpus.removed_documents is None
        else f"; documents removed for it: {corpus.removed_documents:,}"
    )
    text = f"Benchmark documents to exclude: {corpus.excluded_documents:,}{removed}."
    if not corpus.unguarded:
        return text
    names = (
        f"Tasks that were not guarded ({len(corpus.unguarded)})**, as their documents were "
        f"not available: "
    )
    return f"{text}\n\n**{names}{', '.join(corpus.unguarded)}. Their text may be in the corpus."


def _table(rows: Sequence[dict[str, Any]]) -> str:
    header = list(rows[0])
    lines: list[Sequence[object]] = [
        header,
        ["---"] * len(header),
        *(list(row.values()) for row in rows),
    ]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
