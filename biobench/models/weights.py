"""Loading the weights of a checkpoint's encoder; what cannot be built, or would not fit, is refused
before.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoModel, AutoModelForTextEncoding, PreTrainedModel
from transformers.utils import logging

from biobench.core.checkpoint_safety import only_safetensors
from biobench.core.files import broken_file
from biobench.core.machine import free_memory_bytes, is_out_of_memory
from biobench.core.text import first_line
from biobench.errors import ModelError
from biobench.models.loading import Checkpoint

_LOADS = "the folder must load with AutoModel.from_pretrained"
_OTHER_CONFIG = "config and weights come from different checkpoints"
_MORE_MEMORY = "use a machine, or a container, with more memory, or a smaller model"


def load_base(
    checkpoint: Checkpoint, dtype: torch.dtype, classifier: Any = None
) -> PreTrainedModel:
    """The bare encoder (no head), in `dtype`, evaluation mode. classifier: the library's class that
    loads it with its head instead.

    Raises ModelError; also where the files lack weights of the encoder, which the library would
    draw at random.
    """
    architectures = getattr(checkpoint.config, "architectures", None) or [""]
    is_encoder_half = architectures[0].endswith("EncoderModel")  # of T5 and its kind
    loader: Any = AutoModel
    if is_encoder_half:
        loader = AutoModelForTextEncoding
    if classifier is not None:
        loader = classifier
    if checkpoint.shapes and not checkpoint.trust_remote_code:
        _check_shapes(checkpoint, loader)
    model, report = _read_weights(checkpoint, loader, dtype)
    _answer_plainly(model.config)
    _check_weights(checkpoint, model, report)
    if getattr(model.config, "is_encoder_decoder", False) and not is_encoder_half:
        raise ModelError(
            "an encoder-decoder model is not an encoder", hint="give an encoder checkpoint"
        )
    _check_complete(checkpoint, report)
    restore_buffers(model, checkpoint.folder)
    return model


def _read_weights(
    checkpoint: Checkpoint, loader: Any, dtype: torch.dtype
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """The library's model, and its report on names and shapes of the weights. Raises ModelError."""
    folder = checkpoint.folder
    options: dict[str, Any] = {
        "ignore_mismatched_sizes": True,
        "output_loading_info": True,
        "use_safetensors": only_safetensors(folder, checkpoint.id),
        "trust_remote_code": checkpoint.trust_remote_code,
    }
    if checkpoint.saved_attention is not None:
        options["config"] = copy.deepcopy(checkpoint.config)
    try:
        with _without_report():
            model, report = loader.from_pretrained(folder, dtype=dtype, **options)
    # Not narrower: safetensors, pickle and the model's own code have errors of their own.
    except Exception as error:
        if is_out_of_memory(error):
            message = "memory does not suffice to load the weights"
            raise ModelError(message, hint=_MORE_MEMORY, file=folder) from error
        message = f"the weights cannot be loaded: {first_line(error)}"
        broken = broken_file(folder, "*.safetensors", lambda path: safe_open(path, framework="pt"))
        if broken is None:
            raise ModelError(message, hint=_LOADS, file=folder) from error
        hint = "copy or download it again, or save the model again"
        raise ModelError(message, hint=hint, file=broken) from error
    return model, report


@contextmanager
def _without_report() -> Iterator[None]:
    """The library prints no report on missing and unexpected weights: they are checked here."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def _check_weights(
    checkpoint: Checkpoint, model: PreTrainedModel, report: Mapping[str, Any]
) -> None:
    """Weights have the config's shapes and are finite. Raises ModelError."""
    for name, weights, config in sorted(report["mismatched_keys"]):
        raise _other_shape(checkpoint, name, tuple(weights), tuple(config))
    for name, values in model.named_parameters():
        if not bool(values.isfinite().all()):
            raise ModelError(
                f"the weights '{name}' hold NaN or infinite numbers",
                hint="the checkpoint diverged or is damaged; take an earlier one",
                file=checkpoint.folder,
            )


def _check_complete(checkpoint: Checkpoint, report: Mapping[str, Any]) -> None:
    """Only a pooler is missing: masked-LM checkpoints have none, and nothing here reads one."""
    missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if not missing:
        return
    message = f"the files lack {len(missing)} of the encoder's weights, such as '{missing[0]}'"
    stray = sorted(report["unexpected_keys"])
    if stray:
        message += f"; they hold '{stray[0]}', which the model does not know"
    raise ModelError(
        message,
        hint="save the model again with save_pretrained, without wrappers that change the "
        "weights' names",
        file=checkpoint.folder,
    )


def classifier_of(*, words: bool) -> Any:
    """The library's class of models that classify words, or texts."""
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    if words:
        return AutoModelForTokenClassification
    return AutoModelForSequenceClassification


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
    loose = dict(model.named_buffers())
    for name in loose.keys() & model.state_dict().keys():
        del loose[name]
    if not loose:
        return
    fresh, again = (_fresh_buffers(model, folder, seed) for seed in (0, 1))
    for name, value in loose.items():
        built = fresh.get(name)
        if built is None or built.shape != value.shape or not _same(built, again[name]):
            raise ModelError(
                f"the buffer '{name}' is in no file, and the model's own code does not say its "
                f"value",
                hint="save the model again with persistent buffers, or initialise the buffer in "
                "_init_weights",
                file=folder,
            )
        value.data = built.to(value.device, value.dtype)


def _fresh_buffers(model: PreTrainedModel, folder: Path, seed: int) -> dict[str, torch.Tensor]:
    """The buffers of a model that is built from the same config."""
    with torch.random.fork_rng(devices=[]), _building(folder):
        torch.manual_seed(seed)
        built = type(model)(copy.deepcopy(model.config))
    return dict(built.named_buffers())


@contextmanager
def _building(file: Path) -> Iterator[None]:
    """Meanwhile a model is built from a config; what stops that is a ModelError about this file."""
    try:
        yield
    except Exception as error:  # not narrower: the model's own code may raise anything
        message = f"no encoder can be built from the config: {first_line(error)}"
        raise ModelError(message, hint=_LOADS, file=file) from error


def _same(buffer: torch.Tensor, again: torch.Tensor) -> bool:
    """Whether both hold the same, NaN included."""
    return torch.allclose(buffer, again, rtol=0, atol=0, equal_nan=True)


def _check_shapes(checkpoint: Checkpoint, loader: Any) -> None:
    """Refuse a config that contradicts the headers of the weights, or whose encoder memory does not
    hold. ModelError.

    Not by total bytes: fp16, tied, sharded and head-carrying checkpoints are sound. The config is
    built without memory (device `meta`), after the number of layers, which could take minutes even
    so.
    """
    config = checkpoint.config
    shapes = checkpoint.shapes
    file = checkpoint.folder / "config.json"
    layers = getattr(config, "num_hidden_layers", None)
    shares_layers = config.model_type == "albert"
    if isinstance(layers, int) and layers > len(shapes) and not shares_layers:
        message = f"the config says {layers} layers, the files hold {len(shapes)} weights"
        raise ModelError(message, hint=_OTHER_CONFIG, file=file)
    with torch.device("meta"), _building(file):
        model = loader.from_config(copy.deepcopy(config))
    for name, parameter in model.named_parameters():
        built = tuple(parameter.shape)
        prefixed = f"{model.base_model_prefix}.{name}"
        stored = shapes.get(name, shapes.get(prefixed, built))
        if stored != built:
            raise _other_shape(checkpoint, name, stored, built)
    _check_memory(checkpoint.folder, model)


def _check_memory(folder: Path, model: torch.nn.Module) -> None:
    """Refuse a model whose weights, in fp32, do not fit what the machine has left. ModelError."""
    needed = sum(4 * parameter.numel() for parameter in model.parameters())
    free = free_memory_bytes(torch.device("cpu"))
    if free is not None and needed > free:
        in_fp32 = needed / 2**30
        left = free / 2**30
        raise ModelError(
            f"the encoder needs {in_fp32:.1f} GiB in fp32, {left:.1f} GiB are free",
            hint=_MORE_MEMORY,
            file=folder,
        )


def _other_shape(
    checkpoint: Checkpoint, name: str, weights: tuple[int, ...], config: tuple[int, ...]
) -> ModelError:
    message = f"the weights '{name}' have shape {weights}, by the config it is {config}"
    return ModelError(message, hint=_OTHER_CONFIG, file=checkpoint.folder)
