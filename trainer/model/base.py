"""Whether a checkpoint can be a base of pretraining, told by its config and the headers of its weights."""

from __future__ import annotations

import json
from pathlib import Path

from huggingface_hub import try_to_load_from_cache
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, PreTrainedConfig

from biobench.errors import ModelError
from trainer.model.families import family_of


def check_base(source: str | Path, revision: str | None = None) -> PreTrainedConfig | None:
    """The config of a checkpoint; None where it is not on this machine. No weight is read and nothing downloaded.

    Raises ModelError for an architecture that cannot be pretrained, and where the weights of the prediction head are
    missing, which would begin at random.
    """
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(str(source), revision=revision, local_files_only=True)
    except (OSError, ValueError):
        return None
    family = family_of(config.model_type)
    head = [*family.head, *([] if getattr(config, "tie_word_embeddings", True) else [family.decoder])]
    names = _weight_names(source, revision)
    for path in head:
        if names and not any(name.startswith(f"{path}.") for name in names):
            raise ModelError(
                f"the checkpoint '{source}' lacks the weights of its prediction head, '{path}'",
                hint="use the masked language model's checkpoint, which holds the prediction head",
            )
    return config


def _weight_names(source: str | Path, revision: str | None) -> list[str]:
    """Names of the weights in safetensors that are on this machine; none for other formats and damaged files."""
    files = sorted(Path(source).glob("*.safetensors"))
    if not Path(source).is_dir():
        whole, index = (
            try_to_load_from_cache(str(source), name, revision=revision)
            for name in ("model.safetensors", "model.safetensors.index.json")
        )
        if isinstance(index, str):
            return list(json.loads(Path(index).read_text(encoding="utf-8"))["weight_map"])
        files = [Path(whole)] if isinstance(whole, str) else []
    names: list[str] = []
    for file in files:
        try:
            with safe_open(file, framework="pt") as weights:
                names += weights.keys()
        except (SafetensorError, OSError):
            return []
    return names
