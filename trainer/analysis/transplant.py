"""Hybrids of two checkpoints: the recipient's weights with some of the donor's parts in their
place.

Works on the weight files themselves, name by name, so what is copied is bit for bit the donor's.
The parts of a block are its attention and its MLP, each with the norm before it; together they are
the whole block.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from biobench.core.files import temporary_folder
from biobench.core.layouts import layout_hint
from biobench.core.tokenizer import load_tokenizer
from biobench.errors import ModelError, StoreError, UsageError
from trainer.disk import PLACE, writing
from trainer.model.network import read_config

_COMPUTING = (
    "model_type",
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "hidden_activation",
    "position_embedding_type",
    "layer_types",
    "local_attention",
    "sliding_window",
    "rope_parameters",
    "use_bidirectional_attention",
)
"""Config fields by which a block computes; the hybrid has the recipient's, so both must have the
same.
"""

Part = Literal["attention", "mlp"]

_BLOCK = re.compile(r"(?:^|\.)(?:layers|layer|h|blocks)\.(\d+)\.([^.]+)")
_ATTENTION = re.compile(r"attn|attention|^(?:input_layernorm|ln_1|norm1|sa_layer_norm)$")
"""Modules of the attention; the last four are norms whose names do not contain the word."""
_NOTE = "transplant.json"
_ABOUT_TRAINING = ("ledger.json", _NOTE, "model.safetensors.index.json")
"""Files that describe the recipient's weights, not the hybrid's."""


@dataclass(frozen=True)
class Transplant:
    """What a hybrid was made of. rest: embeddings, final norm and head are the donor's.

    copied, total: parameters (numbers, not tensors).
    """

    folder: Path
    recipient: str
    donor: str
    layers: tuple[int, ...]
    modules: tuple[Part, ...]
    rest: bool
    copied: int
    total: int

    @property
    def note(self) -> dict[str, Any]:
        """What the hybrid's folder says of it."""
        note = asdict(self)
        del note["folder"]
        return note


def block_of(name: str, *, own_norms: bool = False) -> tuple[int, Part] | None:
    """The block and part that a parameter belongs to; None for embeddings, final norm and head.

    ModernBERT: attn and attn_norm, mlp and mlp_norm. BERT and RoBERTa: attention (its output and
    norm too), the rest is the MLP. EuroBERT: self_attn with input_layernorm, mlp with
    post_attention_layernorm. own_norms: the MLP has norms named after itself, as in Gemma-3, so
    that post_attention_layernorm is the attention's.
    """
    match = _BLOCK.search(name)
    if match is None:
        return None
    layer = int(match[1])
    module = match[2]
    # without norms of its own, the MLP's is named after the attention that it follows
    is_next = module == "post_attention_layernorm" and not own_norms
    if _ATTENTION.search(module) and not is_next:
        return layer, "attention"
    return layer, "mlp"


def transplant(
    recipient: str | Path,
    donor: str | Path,
    out: str | Path,
    *,
    layers: Iterable[int] | None = None,
    parts: Sequence[Part] = ("attention", "mlp"),
) -> Transplant:
    """Write the recipient with the donor's `parts` of `layers` to the folder `out`.

    layers: None for all. Embeddings, final norm and head are the recipient's; they go along only
    when every block is copied whole, so that all layers give the donor exactly. No layers give the
    recipient exactly. A folder that holds this very hybrid already is taken as it is. Raises
    ModelError for checkpoints whose depth, width, parameter names or vocabulary differ, UsageError
    for layers that are not there and for one checkpoint in both places, StoreError when `out` holds
    anything else.
    """
    a = Path(recipient)
    b = Path(donor)
    if a.resolve() == b.resolve():
        raise UsageError(f"'{a}' is both recipient and donor", hint="name two checkpoints")
    weights = _weights(a)
    donated = _weights(b)
    _check(a, b, weights, donated)
    own_norms = any("feedforward_layernorm" in name for name in weights)
    blocks = {name: block_of(name, own_norms=own_norms) for name in weights}
    depth = 1 + max((block[0] for block in blocks.values() if block), default=-1)
    if depth == 0:
        raise ModelError(
            f"no blocks are found in '{a}'", hint="encoders of the usual layout are supported"
        )
    chosen = _chosen_layers(layers, depth)
    is_whole = len(chosen) == depth and set(parts) == {"attention", "mlp"}
    copied = 0
    for name, block in blocks.items():
        if is_whole or (block and block[0] in chosen and block[1] in parts):
            weights[name] = donated[name]
            copied += donated[name].numel()
    hybrid = Transplant(
        folder=Path(out),
        recipient=str(a),
        donor=str(b),
        layers=chosen,
        modules=tuple(parts),
        rest=is_whole,
        copied=copied,
        total=sum(weight.numel() for weight in weights.values()),
    )
    _write(hybrid, weights, a)
    return hybrid


def _chosen_layers(layers: Iterable[int] | None, depth: int) -> tuple[int, ...]:
    if layers is None:
        return tuple(range(depth))
    chosen = tuple(sorted(set(layers)))
    if chosen and chosen[-1] >= depth:
        raise UsageError(
            f"layer {chosen[-1]} cannot be copied: the model has layers 0-{depth - 1}",
            hint="correct --layers",
        )
    return chosen


def _write(hybrid: Transplant, weights: dict[str, Tensor], recipient: Path) -> None:
    """Write the hybrid's folder whole, unless an earlier start did. Raises StoreError."""
    target = hybrid.folder
    note = json.dumps(hybrid.note, indent=2) + "\n"
    if target.exists():
        with suppress(OSError):
            if (target / _NOTE).read_text(encoding="utf-8") == note:
                return
        raise StoreError(
            "the folder exists already and holds something else",
            hint="give --out another name",
            file=target,
        )
    with temporary_folder(target, PLACE) as temporary, writing(target):
        for file in recipient.iterdir():
            describes = file.suffix in (".json", ".txt", ".model")
            if describes and file.is_file() and file.name not in _ABOUT_TRAINING:
                shutil.copy2(file, temporary / file.name)
        save_file(weights, temporary / "model.safetensors", metadata={"format": "pt"})
        (temporary / _NOTE).write_text(note, encoding="utf-8")


def _weights(folder: Path) -> dict[str, Tensor]:
    """Every weight of a checkpoint's folder by name. Raises ModelError where there are none or they
    are damaged.
    """
    if not folder.is_dir():
        raise ModelError(
            "there is no such folder", hint="give a checkpoint's folder, not a hub id", file=folder
        )
    weights: dict[str, Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        try:
            weights |= load_file(file)
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"damaged weights: {error}", hint="copy or download it again", file=file
            ) from error
    if not weights:
        raise ModelError(
            "no safetensors weights",
            hint=layout_hint(folder, "save the model there with save_pretrained"),
            file=folder,
        )
    return weights


def _check(a: Path, b: Path, weights: dict[str, Tensor], donated: dict[str, Tensor]) -> None:
    """Raise ModelError unless every part of one fits the other."""
    misfit = _misfit(a, b, weights, donated)
    if misfit is not None:
        raise ModelError(
            f"the checkpoints do not fit: {misfit}",
            hint="transplant between checkpoints of one architecture and start",
        )


def _misfit(a: Path, b: Path, weights: dict[str, Tensor], donated: dict[str, Tensor]) -> str | None:
    """In what two checkpoints compute differently, or None."""
    config = read_config(a)
    donor_config = read_config(b)
    for field in _COMPUTING:
        value = getattr(config, field, None)
        donor_value = getattr(donor_config, field, None)
        if value != donor_value:
            return f"{field} is {value} in {a} and {donor_value} in {b}"
    unpaired = sorted(weights.keys() ^ donated.keys())
    if unpaired:
        return f"'{unpaired[0]}' is in one of them alone"
    for name, weight in weights.items():
        shape = tuple(weight.shape)
        donor_shape = tuple(donated[name].shape)
        if shape != donor_shape:
            return f"'{name}' is {shape} and {donor_shape}"
    if load_tokenizer(a).get_vocab() != load_tokenizer(b).get_vocab():
        return f"the tokenizers of {a} and {b} have other vocabularies"
    return None
