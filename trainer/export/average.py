"""The average of several checkpoints of one architecture, as a model folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from biobench.core.files import choose_another, temporary_folder
from biobench.errors import ModelError, UsageError
from biobench.schema.checkpoint import content_hash
from trainer.disk import write_json, writing

WEIGHTS = "model.safetensors"
SOURCES = "average.json"
_REMEDY = choose_another("--out")


def average(models: Sequence[Path], out: Path, weights: Sequence[float] | None = None) -> Path:
    """Write the weighted mean of the models' weights to `out`, with the first one's config and tokenizer.

    models: exported folders (``exports/step-*``, ``phases/NAME``, ``model``). weights: one for each, by default equal;
    they are divided by their sum. Sums are taken in float64. `SOURCES` names what was averaged.
    Raises UsageError and, where the models do not have the same tensors, ModelError.
    """
    if len(models) < 2:
        raise UsageError("an average needs at least two models", hint="give the folders of two exported checkpoints")
    shares = [1.0] * len(models) if weights is None else list(weights)
    if len(shares) != len(models) or min(shares) < 0 or sum(shares) <= 0:
        raise UsageError(f"{len(shares)} weights for {len(models)} models", hint="give one of 0 or more for each")
    shares = [share / sum(shares) for share in shares]
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty", hint="choose another folder with --out DIR")
    average_weights = _mean(models, shares)
    about: list[dict[str, Any]] = [
        {"model": str(folder), "model_hash": content_hash(folder), "weight": share}
        for folder, share in zip(models, shares, strict=True)
    ]
    with temporary_folder(out, _REMEDY) as aside, writing(out, remedy=_REMEDY):
        for item in models[0].iterdir():
            if item.is_file() and item.name not in (WEIGHTS, "README.md", "ledger.json", "content.sha256"):
                shutil.copyfile(item, aside / item.name)
        save_file(average_weights, aside / WEIGHTS, metadata={"format": "pt"})
        write_json(aside / SOURCES, about)
    return out


def _mean(models: Sequence[Path], shares: Sequence[float]) -> dict[str, torch.Tensor]:
    """One model at a time is in memory, besides the sums."""
    sums: dict[str, torch.Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    for folder, share in zip(models, shares, strict=True):
        try:
            weights_of = load_file(folder / WEIGHTS)
        except (OSError, SafetensorError) as error:
            raise ModelError(
                f"'{folder}' has no readable {WEIGHTS}: {error}", hint="give folders that `biobench pretrain` wrote"
            ) from error
        if not sums:
            kinds = {name: tensor.dtype for name, tensor in weights_of.items()}
            sums = {name: torch.zeros(tensor.shape, dtype=torch.float64) for name, tensor in weights_of.items()}
        shapes, known = ({n: tuple(t.shape) for n, t in tensors.items()} for tensors in (weights_of, sums))
        if shapes != known:
            other = next(n for n in sorted({*shapes, *known}) if shapes.get(n) != known.get(n))
            raise ModelError(
                f"'{folder}' is of another architecture than '{models[0]}': {other}", hint="average one architecture"
            )
        for name, tensor in weights_of.items():
            sums[name] += share * tensor.double()
    return {name: total.to(kinds[name]) for name, total in sums.items()}
