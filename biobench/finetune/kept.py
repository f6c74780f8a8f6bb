"""Fine-tuned checkpoints, written by `--keep-model DIR`.

Where the model library has a classification model that computes what the run's head computes, the
folder holds that model and loads in its pipelines; whether it does is not looked up but measured,
on windows of the task. Otherwise the folder holds the encoder, which loads as any other, and the
head in a file of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from biobench.core.files import writing
from biobench.core.machine import to_device
from biobench.finetune.network import Network, ids_and_types
from biobench.finetune.prepare import Prepared
from biobench.models.heads import LinearHead
from biobench.models.inputs import padded_inputs
from biobench.models.loading import Checkpoint, load_tokenizer
from biobench.models.stored_head import HEAD_ABOUT, HEAD_FILE
from biobench.models.weights import classifier_of

KEEPING = "--keep-model"
_ALIKE = 1e-3
"""Largest difference between logits that are the same, relative to their standard deviation."""
_PROBES = 8
"""Windows on which both are computed."""


def save_finetuned(
    network: Network, prepared: Prepared, checkpoint: Checkpoint, folder: Path
) -> bool:
    """Write the model to `folder`; True where it is a classification model of the library. Raises
    StoreError.
    """
    network.eval()
    with writing(folder, KEEPING):
        folder.mkdir(parents=True, exist_ok=True)
        full = _library_model(network, prepared, checkpoint)
        if full is not None:
            full.save_pretrained(folder)
        else:
            network.encoder.model.save_pretrained(folder)
            _save_head(network.head, prepared, folder)
        load_tokenizer(checkpoint).save_pretrained(folder)
    return full is not None


def _save_head(head: nn.Module, prepared: Prepared, folder: Path) -> None:
    """The head's weights in a file of their own, and what they are in another."""
    weights = {name: value.contiguous().cpu() for name, value in head.state_dict().items()}
    save_file(weights, folder / HEAD_FILE)
    about = {
        "task": prepared.spec.id,
        "kind": prepared.spec.type,
        "outputs": list(prepared.outputs),
        "head": prepared.spec.head.model_dump(mode="json"),
    }
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    (folder / HEAD_ABOUT).write_text(text, encoding="utf-8")


def _library_model(network: Network, prepared: Prepared, checkpoint: Checkpoint) -> Any:
    """The library's classification model with the run's weights, or None where it computes
    something else.
    """
    head = network.head
    if not prepared.kind.counted or not isinstance(head, LinearHead):
        return None
    words = head.pooling is None
    full = _fresh_model(prepared, checkpoint, words=words)
    if full is None:
        return None
    full.to(network.device)
    loaded = full.base_model.load_state_dict(network.encoder.model.state_dict(), strict=False)
    classifier = getattr(full, "classifier", None)
    fits = isinstance(classifier, nn.Linear) and classifier.weight.shape == head.linear.weight.shape
    if loaded.unexpected_keys or not fits:
        return None
    full.classifier.load_state_dict(head.linear.state_dict(), strict=True)
    if full.config.model_type == "modernbert":
        _pass_through(full)
    if not _computes_alike(network, prepared, full, words=words):
        return None
    return full


def _fresh_model(prepared: Prepared, checkpoint: Checkpoint, *, words: bool) -> Any:
    """A classification model of the library with random weights, None for a family without one.

    words: whether words are classified, not texts.
    """
    config = type(checkpoint.config).from_dict(checkpoint.config.to_dict())
    config.id2label = dict(enumerate(prepared.outputs))
    config.label2id = {name: index for index, name in config.id2label.items()}
    config.problem_type = "single_label_classification"
    if prepared.kind.thresholds:
        config.problem_type = "multi_label_classification"
    if config.model_type == "modernbert":
        config.classifier_activation = "linear"
        config.classifier_bias = False
        config.classifier_pooling = "cls"
    try:
        with torch.random.fork_rng():
            return classifier_of(words=words).from_config(config).float().eval()
    except (ValueError, KeyError):
        return None


@torch.no_grad()
def _computes_alike(network: Network, prepared: Prepared, full: Any, *, words: bool) -> bool:
    """Whether both give the same logits on the first windows of the test split."""
    encoded = list(filter(len, prepared.test.encoded))[:_PROBES]
    wanted = network(encoded).float()
    ids, types = ids_and_types(encoded)
    inputs = padded_inputs(ids, types, network.encoder.pad_id)
    tensors = {name: to_device(array, network.device) for name, array in inputs.items()}
    logits = full(**tensors).logits.float()
    if words:
        firsts = []
        for of_window, window in zip(logits, encoded, strict=True):
            firsts.append(of_window[window.first])
        logits = torch.cat(firsts)
    difference = (wanted - logits).abs().max()
    spread = wanted.std().clamp_min(1e-6)
    return bool(difference <= _ALIKE * spread)


@torch.no_grad()
def _pass_through(full: Any) -> None:
    """Let ModernBERT's dense head give back the states it is given, so that its classifier is the
    run's linear layer.

    The head ends in a norm. A norm changes nothing that it has normed before; so the encoder's last
    norm hands its scale on to the head's.
    """
    final_norm = full.base_model.final_norm
    nn.init.eye_(full.head.dense.weight)
    full.head.norm.load_state_dict(final_norm.state_dict())
    final_norm.weight.fill_(1.0)
