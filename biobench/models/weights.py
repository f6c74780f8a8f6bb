"""Loading the weights of a checkpoint's encoder; what cannot be built, or would not fit, is refused
before.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoModel, AutoModelForTextEncoding, PreTrainedModel

from biobench.core.checkpoint_safety import only_safetensors
from biobench.core.files import broken_file
from biobench.core.machine import free_memory_bytes, is_out_of_memory
from biobench.core.text import first_line
from biobench.errors import ModelError
from biobench.models.loading import Checkpoint

_LOADS = "the folder must load with AutoModel.from_pretrained"
_MORE_MEMORY = "use a machine, or a container, with more memory, or a smaller model"


def load_base(
    checkpoint: Checkpoint, dtype: torch.dtype, classifier: Any = None
) -> PreTrainedModel:
    """The bare encoder (no head), in `dtype`, evaluation mode. classifier: the library's class that
    loads it with its head instead.

    Raises ModelError; also where the files lack weights of the encoder, which the library would
    draw at random.
    """
    folder, architectures = (
        checkpoint.folder,
        getattr(checkpoint.config, "architectures", None) or [""],
    )
    alone = architectures[0].endswith("EncoderModel")  # the encoder half of T5 and its kind
    loader: Any = classifier or (AutoModelForTextEncoding if alone else AutoModel)
    if checkpoint.shapes and not checkpoint.trust_remote_code:
        _check_shapes(checkpoint, loader)
    try:
        options: dict[str, Any] = {
            "ignore_mismatched_sizes": True,
            "output_loading_info": True,
            "use_safetensors": only_safetensors(folder, checkpoint.id),
        }
        if checkpoint.saved_attention is not None:
            options["config"] = copy.deepcopy(checkpoint.config)
        code = checkpoint.trust_remote_code
        model, report = loader.from_pretrained(
            folder, dtype=dtype, trust_remote_code=code, **options
        )
    except (
        Exception
    ) as error:  # safetensors, pickle and the model's own code have errors of their own
        if is_out_of_memory(error):
            raise ModelError(
                "memory does not suffice to load the weights", hint=_MORE_MEMORY, file=folder
            ) from error
        broken = broken_file(folder, "*.safetensors", lambda path: safe_open(path, framework="pt"))
        hint = "copy or download it again, or save the model again" if broken else _LOADS
        what = f"the weights cannot be loaded: {first_line(error)}"
        raise ModelError(what, hint=hint, file=broken or folder) from error
    _answer_plainly(model.config)
    for name, weights, config in sorted(report["mismatched_keys"]):
        raise _other_shape(checkpoint, name, tuple(weights), tuple(config))
    for name, weights in model.named_parameters():
        if not bool(weights.isfinite().all()):
            hint = "the checkpoint diverged or is damaged; take an earlier one"
            raise ModelError(
                f"the weights '{name}' hold NaN or infinite numbers", hint=hint, file=folder
            )
    if getattr(model.config, "is_encoder_decoder", False) and not alone:
        raise ModelError(
            "an encoder-decoder model is not an encoder", hint="give an encoder checkpoint"
        )
    # Masked-LM checkpoints have no pooler, and nothing here reads one.
    missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if missing:
        stray = sorted(report["unexpected_keys"])
        detail = f"; they hold '{stray[0]}', which the model does not know" if stray else ""
        what = (
            f"the files lack {len(missing)} of the encoder's weights, such as "
            f"'{missing[0]}'{detail}"
        )
        hint = (
            "save the model again with save_pretrained, without wrappers that change the "
            "weights' names"
        )
        raise ModelError(what, hint=hint, file=folder)
    restore_buffers(model, folder)
    return model  # type: ignore[no-any-return]


def _answer_plainly(config: Any) -> None:
    """Leave aside what a config asks a model to give besides its states, and in which form."""
    config.return_dict = True
    config.output_hidden_states = False
    config.output_attentions = False


def restore_buffers(model: PreTrainedModel, folder: Path) -> None:
    """Give the buffers that no file holds the values with which the model's own code builds them.

    transformers builds a model without memory and fills such buffers of its own families alone; in
    a checkpoint's own code they would hold what the memory held before. Raises ModelError for one
    that is not the same in two builds.
    """
    if type(model).__module__.startswith("transformers."):
        return
    stored = set(model.state_dict())
    loose = {name: value for name, value in model.named_buffers() if name not in stored}
    if not loose:
        return
    first, second = (_fresh_buffers(model, folder, seed) for seed in (0, 1))
    for name, value in loose.items():
        fresh = first.get(name)
        if fresh is None or fresh.shape != value.shape or not _same(fresh, second[name]):
            raise ModelError(
                f"the buffer '{name}' is in no file, and the model's own code does not say its "
                f"value",
                hint="save the model again with persistent buffers, or initialise the buffer in "
                "_init_weights",
                file=folder,
            )
        value.data = fresh.to(value.device, value.dtype)


def _fresh_buffers(model: PreTrainedModel, folder: Path, seed: int) -> dict[str, torch.Tensor]:
    """The buffers of a model that is built from the same config."""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            built = type(model)(copy.deepcopy(model.config))
    except Exception as error:  # not narrower: the model's own code may raise anything
        message = f"no encoder can be built from the config: {first_line(error)}"
        raise ModelError(message, hint=_LOADS, file=folder) from error
    return dict(built.named_buffers())


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether both hold the same, NaN included."""
    return torch.allclose(first, second, rtol=0, atol=0, equal_nan=True)


def _check_shapes(checkpoint: Checkpoint, loader: Any) -> None:
    """Refuse a config that contradicts the headers of the weights, or whose encoder memory does not
    hold. ModelError.

    Not by total bytes: fp16, tied, sharded and head-carrying checkpoints are sound. The config is
    built without memory (device `meta`), after the number of layers, which could take minutes even
    so.
    """
    config, shapes, file = checkpoint.config, checkpoint.shapes, checkpoint.folder / "config.json"
    layers = getattr(config, "num_hidden_layers", None)
    if (
        isinstance(layers, int) and layers > len(shapes) and config.model_type != "albert"
    ):  # which shares them
        hint = "config and weights come from different checkpoints"
        raise ModelError(
            f"the config says {layers} layers, the files hold {len(shapes)} weights",
            hint=hint,
            file=file,
        )
    try:
        with torch.device("meta"):
            model = loader.from_config(copy.deepcopy(config))
    except Exception as error:  # as where the weights are loaded
        what = f"no encoder can be built from the config: {first_line(error)}"
        raise ModelError(what, hint=_LOADS, file=file) from error
    for name, parameter in model.named_parameters():
        shape = shapes.get(name, shapes.get(f"{model.base_model_prefix}.{name}"))
        if shape is not None and shape != tuple(parameter.shape):
            raise _other_shape(checkpoint, name, shape, tuple(parameter.shape))
    needed, free = (
        4 * sum(p.numel() for p in model.parameters()),
        free_memory_bytes(torch.device("cpu")),
    )
    if free is not None and needed > free:
        what = (
            f"the encoder needs {needed / 2**30:.1f} GiB in fp32, {free / 2**30:.1f} GiB are free"
        )
        raise ModelError(what, hint=_MORE_MEMORY, file=checkpoint.folder)


def _other_shape(
    checkpoint: Checkpoint, name: str, weights: tuple[int, ...], config: tuple[int, ...]
) -> ModelError:
    what = f"the weights '{name}' have shape {weights}, by the config it is {config}"
    return ModelError(
        what, hint="config and weights come from different checkpoints", file=checkpoint.folder
    )
