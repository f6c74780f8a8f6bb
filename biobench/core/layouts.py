"""Folders that hold a checkpoint in another form than `config.json` beside its weights."""

from __future__ import annotations

from pathlib import Path

from biobench.core.checkpoint_safety import read_mapping
from biobench.errors import ModelError

WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.index.json")


def check_may_be_on_hub(model: str) -> None:
    """Raise ModelError for what reads as a path and is no folder."""
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise ModelError(
            f"no such folder: {model}",
            hint="give an existing folder, or a hub id such as owner/name",
        )


def layout_hint(source: str | Path, otherwise: str) -> str:
    """What to give, or to do, in the place of a folder whose layout is known; else `otherwise`.

    Known are adapters of PEFT, and a checkpoint in a folder below (`model` of a pretraining run,
    `0_Transformer` of sentence-transformers, `checkpoint-500` of a trainer).
    """
    folder = Path(source)
    if (folder / "adapter_config.json").is_file():
        return _merge(folder)
    inside: list[Path] = []
    if not (folder / "config.json").is_file():
        inside = [path for path in sorted(folder.glob("*")) if _is_checkpoint(path)]
    if not inside:
        return otherwise
    if inside[0].name == "model":
        return f"this is a run: give {inside[0]}"
    hint = f"the checkpoint is below: give {inside[-1]}"
    if len(inside) > 1:
        hint += f", one of {len(inside)} in this folder"
    return hint


def _is_checkpoint(folder: Path) -> bool:
    """Whether a config and weights are there; a pooling layer has a config alone."""
    if not (folder / "config.json").is_file():
        return False
    return folder.name == "model" or any(any(folder.glob(pattern)) for pattern in WEIGHTS)


def _merge(folder: Path) -> str:
    """How to make a checkpoint of an adapter and its base."""
    try:
        adapter = read_mapping(folder / "adapter_config.json", "adapter's config")
        base = str(adapter["base_model_name_or_path"])
    except (ModelError, KeyError):
        base = "BASE"
    merged = (
        f"PeftModel.from_pretrained(AutoModel.from_pretrained('{base}'), '{folder}')"
        ".merge_and_unload().save_pretrained('MERGED')"
    )
    return (
        f"this is an adapter of '{base}': merge the two in Python, {merged}, "
        "copy the base's tokenizer there, and give MERGED"
    )
