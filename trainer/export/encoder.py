"""The trained encoder as a folder that AutoModel loads: weights, tokenizer, card, ledger."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from biobench.schema.checkpoint import content_hash
from trainer.disk import write_json, writing
from trainer.model.network import model_from_config
from trainer.model.rotary import copy_rope
from trainer.train.distributed import World
from trainer.train.run_folder import BEGINNING

CONTENT = "content.sha256"
"""Holds the `content_hash` of an intermediate export; the final model's stands in its ledger."""


def full_weights(model: nn.Module) -> dict[str, Tensor]:
    """All weights on the CPU under their names, gathered where they are sharded. Called by all processes."""
    return {
        name: (p.full_tensor() if hasattr(p, "full_tensor") else p).detach().cpu()
        for name, p in model.named_parameters()
    }


def export(
    model: PreTrainedModel,
    start: Path,
    folder: Path,
    world: World,
    *,
    texts: Callable[[str], dict[str, str]] | None = None,
) -> None:
    """Write `folder` whole or not at all; the first process writes, all must call.

    start: the run's folder with config.json and the tokenizer's files, which are copied. texts: gives the files
    beside them, name to content, for the export's hash; by default `CONTENT` alone.
    Raises StoreError when the disk does not take it.
    """
    weights = full_weights(model)
    if world.first:
        temporary = folder.with_name(f"{folder.name}.tmp")
        plain = model_from_config(start)
        copy_rope(model.config, plain.config)
        with torch.no_grad():
            for name, p in plain.named_parameters():
                p.copy_(weights[name])
        with writing(folder):
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            disable_progress_bar()  # type: ignore[no-untyped-call]
            plain.save_pretrained(temporary)
            for item in tokenizer_files(start):
                shutil.copyfile(item, temporary / item.name)
            _both_spellings(temporary / "config.json")
            digest = content_hash(temporary)
            for name, text in (texts(digest) if texts is not None else {CONTENT: f"{digest}\n"}).items():
                (temporary / name).write_text(text, encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
    world.barrier()


def tokenizer_files(start: Path) -> list[Path]:
    """The tokenizer as the run's beginning saved it.

    A tokenizer that was loaded again, as on a resume, would be saved with other fields, under another hash.
    """
    return sorted(f for f in start.iterdir() if f.is_file() and f.name not in (BEGINNING, "config.json"))


def _both_spellings(file: Path) -> None:
    """Add the field names by which transformers 4 reads ModernBERT's layer pattern and rotary bases.

    Version 5 writes `layer_types` and `rope_parameters` only; older readers would fall back to defaults.
    """
    config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    types = config.get("layer_types")
    if config.get("model_type") != "modernbert" or not types:
        return
    wide = [number for number, kind in enumerate(types) if kind == "full_attention"]
    every = wide[1] - wide[0] if len(wide) > 1 else len(types)
    if types == ["full_attention" if n % every == 0 else "sliding_attention" for n in range(len(types))]:
        config["global_attn_every_n_layers"] = every
    rotary = config.get("rope_parameters", {})
    for name, kind in (("global_rope_theta", "full_attention"), ("local_rope_theta", "sliding_attention")):
        if kind in rotary:
            config[name] = rotary[kind]["rope_theta"]
    write_json(file, config)
