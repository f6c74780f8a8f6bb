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

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from biobench.core.files import writing
from biobench.finetune.network import Network
from biobench.finetune.prepare import Prepared
from biobench.models.encoder import padded_inputs
from biobench.models.heads import LinearHead
from biobench.models.loading import Checkpoint, load_tokenizer

KEEPING = "--keep-model"
HEAD_FILE, HEAD_ABOUT = "head.safetensors", "biobench_head.json"
"""What is written with an encoder whose head the model library has no place for."""
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
            save_file(
                {k: v.contiguous().cpu() for k, v in network.head.state_dict().items()},
                folder / HEAD_FILE,
            )
            spec, outputs = prepared.spec, list(prepared.outputs)
            about = {
                "task": spec.id,
                "kind": spec.type,
                "outputs": outputs,
                "head": spec.head.model_dump(mode="json"),
            }
            (folder / HEAD_ABOUT).write_text(
                json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
        load_tokenizer(checkpoint).save_pretrained(folder)
    return full is not None


def _library_model(network: Network, prepared: Prepared, checkpoint: Checkpoint) -> Any:
    """The library's classification model with the run's weights, or None where it computes
    something else.
    """
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    head = network.head
    if not prepared.kind.counted or not isinstance(head, LinearHead):
        return None
    names = prepared.outputs
    config = type(checkpoint.config).from_dict(checkpoint.config.to_dict())
    config.id2label, config.label2id = (
        dict(enumerate(names)),
        {name: i for i, name in enumerate(names)},
    )
    config.problem_type = (
        "multi_label_classification" if prepared.kind.thresholds else "single_label_classification"
    )
    tokens = head.pooling is None
    as_linear = config.model_type == "modernbert"
    if as_linear:
        config.classifier_activation, config.classifier_bias, config.classifier_pooling = (
            "linear",
            False,
            "cls",
        )
    loader: Any = AutoModelForTokenClassification if tokens else AutoModelForSequenceClassification
    try:
        with torch.random.fork_rng():
            full = loader.from_config(config).float().to(network.device).eval()
    except (ValueError, KeyError):  # a family without such a model
        return None
    if full.base_model.load_state_dict(
        network.encoder.model.state_dict(), strict=False
    ).unexpected_keys:
        return None
    classifier = getattr(full, "classifier", None)
    if not isinstance(classifier, nn.Linear) or classifier.weight.shape != head.linear.weight.shape:
        return None
    classifier.load_state_dict(head.linear.state_dict(), strict=True)
    if as_linear:
        _pass_through(full)
    encoded = [e for e in prepared.test.encoded if len(e)][:_PROBES]
    inputs = padded_inputs(
        [e.ids for e in encoded], [e.types for e in encoded], network.encoder.pad_id
    )
    with torch.no_grad():
        wanted = network(encoded).float()
        logits = full(
            **{k: torch.from_numpy(v).to(network.device) for k, v in inputs.items()}
        ).logits.float()
    if tokens:
        rows = np.repeat(np.arange(len(encoded)), [len(e.first) for e in encoded])
        logits = logits[
            torch.from_numpy(rows), torch.from_numpy(np.concatenate([e.first for e in encoded]))
        ]
    return full if (wanted - logits).abs().max() <= _ALIKE * wanted.std().clamp_min(1e-6) else None


@torch.no_grad()
def _pass_through(full: Any) -> None:
    """Let ModernBERT's dense head give back the states it is given, so that its classifier is the
    run's linear layer.

    The head ends in a norm. A norm changes nothing that it has normed before; so the encoder's last
    norm hands its scale on to the head's.
    """
    last = full.base_model.final_norm
    nn.init.eye_(full.head.dense.weight)
    full.head.norm.load_state_dict(last.state_dict())
    last.weight.fill_(1.0)
