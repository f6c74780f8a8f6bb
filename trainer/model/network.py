"""The module that is trained: a transformers model, driven with a direction and sparse targets.

`Trainee` keeps the transformers model inside, under its own parameter names, so checkpoints and
exports are those of transformers. Loading goes through the registered attention; nothing about it
is saved.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.profiler import record_function
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.hub import cached_file
from transformers.utils.logging import disable_progress_bar

from biobench.core.checkpoint_safety import check_folder, check_index, only_safetensors
from biobench.core.configs import forget_attention
from biobench.core.layouts import check_may_be_on_hub, layout_hint
from biobench.core.text import first_line
from biobench.errors import ModelError
from biobench.schema.strict import suggest
from trainer.model import attention
from trainer.model.families import decoder_of, family_of
from trainer.model.loss import linear_cross_entropy_sum
from trainer.model.tokens import ROLES

_TAKEN_TOO = {
    *(f"{role}_token_id" for role in ROLES),
    "num_labels",
    "output_attentions",
    "torch_dtype",
    # modernbert
    "global_attn_every_n_layers",
    "global_rope_theta",
    "local_rope_theta",
    "rope_scaling",
    # gemma3, llama
    "sliding_window_pattern",
    "rope_theta",
    "rope_local_base_freq",
    "partial_rotary_factor",
}
"""Names that configs read besides their fields (transformers 5)."""
_BAD_VALUE = (
    ValueError,
    TypeError,
    LookupError,
    AssertionError,
    ArithmeticError,
    AttributeError,
    RuntimeError,
    StrictDataclassError,
)


LABEL = "step: "
"""Before the names of a step's parts in a profiler's trace."""


class Packing(NamedTuple):
    """Where attention stops inside windows.

    documents: (batch, tokens) document number of each token. boundaries: the same as int32 offsets
    into the flattened batch, for variable-length kernels. longest: no document has more tokens.
    """

    documents: Tensor
    boundaries: Tensor | None = None
    longest: int | None = None


class Trainee(nn.Module):
    """The model as the loop sees it: ids, positions and targets in, summed loss out.

    model: the transformers model (attention `trainer.model.attention.NAME`).
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        if getattr(model.config, "final_logit_softcapping", None):
            raise ModelError(
                "the model bounds its logits (final_logit_softcapping)", hint="give a model without"
            )
        self.model = model
        self._family = family_of(model.config.model_type)
        self._extra: dict[str, Any] = {}
        if hasattr(model.config, "use_cache"):
            self._extra["use_cache"] = False
        self.compiled_loss = False

    def hidden(self, input_ids: Tensor, *, causal: bool, packing: Packing | None = None) -> Tensor:
        """Hidden states (batch, tokens, width) of `input_ids` (batch, tokens)."""
        body = self.model.get_submodule(self._family.body)
        extra = dict(self._extra)
        if packing is not None:
            extra |= {f"detour_{name}": value for name, value in packing._asdict().items()}
        states: Tensor = body(input_ids=input_ids, detour_causal=causal, **extra)[0]
        return states

    def logits(self, input_ids: Tensor, *, causal: bool, packing: Packing | None = None) -> Tensor:
        """Scores (batch, tokens, vocabulary) of every position; for tests and the guard."""
        hidden = self.hidden(input_ids, causal=causal, packing=packing)
        scores: Tensor = decoder_of(self.model)(self._family.transform(self.model, hidden))
        return scores

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        targets: Tensor,
        *,
        causal: bool,
        packing: Packing | None = None,
    ) -> Tensor:
        """Summed loss (float32 scalar) at `positions` of the flattened batch.

        input_ids: (batch, tokens). positions, targets: (count,), targets
        `trainer.model.loss.IGNORE` for padding.
        """
        hidden = self.hidden(input_ids, causal=causal, packing=packing)
        with record_function(f"{LABEL}loss"):
            picked = hidden.reshape(-1, hidden.shape[-1]).index_select(0, positions)
            transformed = self._family.transform(self.model, picked)
            if torch.is_autocast_enabled(hidden.device.type):
                transformed = transformed.to(torch.get_autocast_dtype(hidden.device.type))
            head = decoder_of(self.model)
            compiled = self.compiled_loss
            return linear_cross_entropy_sum(
                transformed, head.weight, head.bias, targets, compiled=compiled
            )


def check_base(source: str | Path, revision: str | None = None) -> PreTrainedConfig | None:
    """The config of a checkpoint; None where it is not on this machine. Nothing is downloaded.

    Raises ModelError for an architecture that cannot be pretrained, and where no weight of the
    prediction head is in the checkpoint's safetensors files.
    """
    options: dict[str, Any] = {"revision": revision, "local_files_only": True}
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(str(source), **options)
        folder = Path(str(cached_file(str(source), "config.json", **options))).parent
        weights: set[str] = set()
        for file in folder.glob("*.safetensors"):
            opened: Any = safe_open(file, framework="pt")
            weights.update(opened.keys())
    except (OSError, ValueError, SafetensorError):
        return None
    family_of(config.model_type)
    with torch.device("meta"):
        model = build_model(config)
    body = f"{model.base_model_prefix}."
    head = [name for name, _ in model.named_parameters() if not name.startswith(body)]
    if weights and head and weights.isdisjoint(head):
        raise ModelError(
            f"the checkpoint '{source}' has no prediction head: '{min(head)}' is missing",
            hint="give a base that was exported with its masked or causal LM head",
        )
    return config


def check_source(source: str | Path, revision: str | None = None) -> None:
    """Refuse a checkpoint (hub id or folder) whose files lead elsewhere. Raises ModelError."""
    folder = Path(source)
    if folder.is_dir():
        if (folder / "config.json").exists():
            check_folder(folder)
        return
    name = "model.safetensors.index.json"
    options = {"_raise_exceptions_for_missing_entries": False}
    try:
        index = cached_file(str(source), name, revision=revision, **options)
    except (OSError, ValueError):
        return  # whoever loads it says why it cannot be had
    if index is not None:
        check_index(Path(index), ".safetensors", downloaded=False)


def read_config(source: str | Path, revision: str | None = None) -> PreTrainedConfig:
    """The config of a checkpoint (hub id or folder). Raises ModelError where there is none."""
    if Path(source).is_dir():  # of the hub, `load_weights` asks for the index of the weights
        check_source(source)
    else:
        check_may_be_on_hub(str(source))
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(str(source), revision=revision)
    except (OSError, ValueError) as error:
        hint = (
            "give a hub id that can be reached, or a folder with config.json and model.safetensors"
        )
        raise ModelError(
            f"the checkpoint '{source}' is not available: {first_line(error, 200)}",
            hint=layout_hint(source, hint),
        ) from error
    return config


def load_weights(
    auto: Any, source: str | Path, *, revision: str | None = None, **options: Any
) -> PreTrainedModel:
    """A checkpoint in float32 by one of transformers' `auto` classes; a pooler may be missing.

    Raises ModelError when it cannot be loaded, and when weights are missing, which would be random.
    """
    disable_progress_bar()  # type: ignore[no-untyped-call]
    check_source(source, revision)
    options |= {
        "dtype": torch.float32,
        "output_loading_info": True,
        "use_safetensors": only_safetensors(source),
    }
    try:
        if "attn_implementation" not in options:
            config = read_config(source, revision)
            options |= {} if forget_attention(config) is None else {"config": config}
        model, info = auto.from_pretrained(str(source), revision=revision, **options)
    except (OSError, ValueError, RuntimeError, EOFError, UnpicklingError, SafetensorError) as error:
        hint = "check the folder's model.safetensors and config.json, or download it again"
        if not Path(source).is_dir():
            commit = f" --revision {revision}" if revision else ""
            hint = (
                f"put all of it into the hub's cache: `hf download {source}{commit}`, on a "
                f"machine with a network"
            )
        raise ModelError(
            f"the checkpoint '{source}' cannot be loaded: {first_line(error, 200)}", hint=hint
        ) from error
    if missing := sorted(key for key in info.get("missing_keys", ()) if "pooler" not in key):
        raise ModelError(
            f"the checkpoint '{source}' lacks weights, among them '{missing[0]}'",
            hint="use a whole checkpoint; for training, one that holds the prediction head",
        )
    loaded: PreTrainedModel = model
    return loaded


def load_model(source: str | Path, *, revision: str | None = None) -> PreTrainedModel:
    """A checkpoint (hub id or folder) with float32 weights and the registered attention.

    Raises ModelError when it cannot be found, is not a known family, or lacks the prediction head.
    """
    auto = getattr(transformers, family_of(read_config(source, revision).model_type).auto)
    return load_weights(auto, source, revision=revision, attn_implementation=attention.NAME)


def new_model(
    config: dict[str, Any], tokenizer: PreTrainedTokenizerBase, seed: int
) -> PreTrainedModel:
    """A model with fresh weights: `config` is a transformers config with its ``model_type``.

    The vocabulary and the special tokens come from `tokenizer`. The weights depend on `seed` alone.
    Raises ModelError when the config is not understood, or names other special tokens than
    `tokenizer`.
    """
    fields = {name: value for name, value in config.items() if value is not None}
    stand_in = {"bos": "cls", "eos": "sep"}  # configs default to ids of another vocabulary
    for role in ROLES:
        name = f"{role}_token_id"
        token = getattr(tokenizer, name)
        if token is not None and fields.get(name, token) != token:
            raise ModelError(
                f"{name} is {fields[name]} by base.config and {token} by the tokenizer",
                hint="take the id out of the config",
            )
        if token is None and role in stand_in:
            token = getattr(tokenizer, f"{stand_in[role]}_token_id")
        if token is not None:
            fields.setdefault(name, token)
    fields.setdefault("vocab_size", len(tokenizer))
    built = make_config(fields)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build_model(built)


def build_model(config: PreTrainedConfig) -> PreTrainedModel:
    """A model with random float32 weights and the registered attention. Raises ModelError for
    values of the config.
    """
    auto = getattr(transformers, family_of(config.model_type).auto)
    with config_values(config.model_type):
        model: PreTrainedModel = auto.from_config(
            config, attn_implementation=attention.NAME, dtype=torch.float32
        )
    return model


def make_config(fields: dict[str, Any]) -> PreTrainedConfig:
    """The transformers config of `fields`, its ``model_type`` among them.

    Raises ModelError for a name that the config does not know, and for a value that it does not
    take.
    """
    kind = str(fields.get("model_type"))
    family_of(kind)
    values = {name: value for name, value in fields.items() if name != "model_type"}
    shape = transformers.CONFIG_MAPPING[kind]
    names = (
        {field.name for field in dataclasses.fields(shape)} | set(shape.attribute_map) | _TAKEN_TOO
    )
    for name, value in values.items():
        if name not in names:
            raise ModelError(
                f"base.config.{name} is no field of a {kind} config",
                hint=suggest(name, sorted(names)),
            )
        counted = name.startswith("num_") or (name.endswith("_size") and name != "type_vocab_size")
        if counted and isinstance(value, int) and value < 1:
            raise ModelError(
                f"base.config.{name} is {value}", hint="give a whole number of 1 or more"
            )
    with config_values(kind):
        config: PreTrainedConfig = AutoConfig.for_model(kind, **values)
    return config


@contextmanager
def config_values(kind: str) -> Iterator[None]:
    """Turn what transformers raises over a config's values into one ModelError."""
    try:
        yield
    except _BAD_VALUE as error:
        message = " ".join(str(error).split())[:200] or type(error).__name__
        raise ModelError(
            f"base.config is not a {kind} config: {message}",
            hint="check the value against the transformers config of that model type",
        ) from error


def model_from_config(folder: Path) -> PreTrainedModel:
    """The run's architecture with any weights, for a checkpoint to be read into."""
    with torch.random.fork_rng(devices=[]):
        return build_model(AutoConfig.from_pretrained(str(folder)))


def set_dropout(model: PreTrainedModel, rate: float) -> None:
    """Set every dropout of the running model, not of its config (pretraining's default is 0)."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = rate  # type: ignore[assignment]


def has_dropout(module: nn.Module) -> bool:
    """Whether anything in the running model drops in training."""
    return any(
        (isinstance(part, nn.Dropout) and part.p > 0.0) or getattr(part, "attention_dropout", 0.0)
        for part in module.modules()
    )


def weights_hash(model: PreTrainedModel) -> str:
    """sha256 over the names, shapes and bytes of all parameters."""
    digest = hashlib.sha256()
    for name, value in sorted(model.named_parameters()):
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
