"""Checkpoints that were fine-tuned before, asked as they are: `biobench run MODEL --no-training`.

Two forms: a checkpoint of the model library with a token- or sequence-classification head, whose labels are matched
with the task's by name or by a declared map; and a folder that `--keep-model` wrote, head and labels included.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from biobench.core.machine import Precision
from biobench.encode.tokens import Encoded
from biobench.errors import ModelError, UsageError
from biobench.finetune.engine import load_encoder
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.machine import micro_batch_tokens
from biobench.finetune.network import Network
from biobench.finetune.predict import decide, probabilities
from biobench.finetune.prepare import Prepared
from biobench.models.encoder import Attention
from biobench.models.loading import Checkpoint, weights_error
from biobench.schema.record import TrainingRecord
from biobench.schema.strict import suggest

HEAD_FILE, HEAD_ABOUT = "head.safetensors", "biobench_head.json"
"""What `--keep-model` writes beside an encoder whose head the model library has no place for."""
_PREFIX = re.compile(r"([BI])-(.+)")
_UNNAMED = re.compile(r"LABEL_\d+")


def parse_label_map(texts: Sequence[str]) -> dict[str, str]:
    """``MODEL_LABEL=TASK_LABEL`` texts; nothing behind the sign leaves a label out. Raises UsageError."""
    names: dict[str, str] = {}
    for text in texts:
        name, sign, target = text.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"--label-map '{text}' is not MODEL_LABEL=TASK_LABEL", hint="for example LABEL_0=Disease")
        if name.strip() in names:
            raise UsageError(f"--label-map names '{name.strip()}' twice", hint="map each label once")
        names[name.strip()] = target.strip()
    return names


def columns_of(labels: Sequence[str], outputs: Sequence[str], names: Mapping[str, str]) -> list[list[int]]:
    """For each of the task's outputs, which of the checkpoint's labels stand for it. Raises ModelError.

    names: the declared map; B- and I- of a tag are kept where only its entity is mapped.
    """
    columns: list[list[int]] = [[] for _ in outputs]
    unknown = sorted(set(names) - set(labels) - {m[2] for label in labels if (m := _PREFIX.fullmatch(label))})
    if unknown:
        raise ModelError(f"--label-map: the checkpoint has no label '{unknown[0]}'", hint=suggest(unknown[0], labels))
    for place, label in enumerate(labels):
        prefix, entity = ("", label)
        if label not in names and (match := _PREFIX.fullmatch(label)):
            prefix, entity = f"{match[1]}-", match[2]
        target = names.get(entity, entity)
        if not target:
            continue
        if prefix + target not in outputs:
            hint = f"--label-map '{entity}=TASK_LABEL' says which it is, '{entity}=' leaves it out; the task's: "
            what = f"the checkpoint's label '{label}' is not one of the task's"
            raise ModelError(what, hint=hint + ", ".join(outputs))
        columns[list(outputs).index(prefix + target)].append(place)
    bare = [output for output, places in zip(outputs, columns, strict=True) if not places]
    if bare:
        raise ModelError(
            f"no label of the checkpoint stands for '{bare[0]}'",
            hint="--label-map MODEL_LABEL=TASK_LABEL; the checkpoint's labels: " + ", ".join(labels),
        )
    return columns


class Ready(nn.Module):
    """The library's own model with its head; stands where `Network` stands."""

    attention: Attention = "padded"

    def __init__(self, model: Any, pad_id: int, columns: Sequence[Sequence[int]], *, tokens: bool) -> None:
        """columns: as `columns_of` gives. tokens: whether words are answered, else the whole sequence."""
        super().__init__()
        self.model, self.pad_id, self.columns, self.tokens = model, pad_id, columns, tokens

    @property
    def encoder(self) -> Ready:
        """What tells the device."""
        return self

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return torch.device(next(self.model.parameters()).device)

    def forward(self, encoded: Sequence[Encoded]) -> Tensor:
        """Logits in fp32: a row a visible word or a window, a column an output of the task.

        Several labels of the checkpoint for one output: the logarithm of their sum, which softmax adds up.
        """
        longest = max(len(e) for e in encoded)
        ids = np.full((len(encoded), longest), self.pad_id, dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, e in enumerate(encoded):
            ids[row, : len(e)], mask[row, : len(e)] = e.ids, 1
            types[row, : len(e.types)] = e.types
        inputs = {"input_ids": ids, "attention_mask": mask}
        if types.any():
            inputs["token_type_ids"] = types
        logits = self.model(**{k: torch.from_numpy(v).to(self.device) for k, v in inputs.items()}).logits.float()
        if self.tokens:
            rows = np.repeat(np.arange(len(encoded)), [len(e.first) for e in encoded])
            places = np.concatenate([e.first for e in encoded])
            logits = logits[torch.from_numpy(rows), torch.from_numpy(places)]
        return torch.stack([torch.logsumexp(logits[:, list(members)], dim=1) for members in self.columns], dim=1)


def load_ready(
    checkpoint: Checkpoint, prepared: Prepared, names: Mapping[str, str], device: torch.device
) -> Ready | Network:
    """The fine-tuned checkpoint for this task. Raises ModelError where it has no such head, or other labels."""
    if (checkpoint.folder / HEAD_FILE).is_file():
        return _kept(checkpoint, prepared, device)
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    kind = prepared.kind
    if kind.head not in ("token", "sequence") or not kind.counted:
        raise ModelError(
            f"the head of a {kind.name} task cannot be read from a checkpoint of the model library",
            hint="--no-training evaluates token and sequence classification, or a folder that --keep-model wrote",
        )
    loader: Any = AutoModelForTokenClassification if kind.head == "token" else AutoModelForSequenceClassification
    try:
        model, about = loader.from_pretrained(
            checkpoint.folder,
            dtype=torch.float32,
            trust_remote_code=checkpoint.trust_remote_code,
            output_loading_info=True,
        )
    except Exception as error:  # as where an encoder is loaded
        raise weights_error(checkpoint.folder, error) from error
    missing = sorted(about["missing_keys"])
    if missing:
        raise ModelError(
            f"the checkpoint has no fine-tuned {kind.head} classification head: '{missing[0]}' is missing",
            hint="fine-tune it: leave --no-training out",
            file=checkpoint.folder,
        )
    labels = [str(model.config.id2label[i]) for i in range(model.config.num_labels)]
    if all(_UNNAMED.fullmatch(label) for label in labels) and not names:
        raise ModelError(
            f"the checkpoint does not name its {len(labels)} labels",
            hint=f"--label-map {labels[0]}={prepared.outputs[0]} and so on, one for each",
        )
    columns = columns_of(labels, prepared.outputs, names)
    if kind.thresholds and any(len(members) > 1 for members in columns):
        raise ModelError(
            "several labels of the checkpoint stand for one of a task that decides each by itself",
            hint="map one to one with --label-map",
        )
    pad = model.config.pad_token_id
    return Ready(model.to(device), int(pad) if isinstance(pad, int) else 0, columns, tokens=kind.head == "token")


def _kept(checkpoint: Checkpoint, prepared: Prepared, device: torch.device) -> Network:
    """Encoder and head of a folder that `--keep-model` wrote."""
    path = checkpoint.folder / HEAD_ABOUT
    try:
        about = json.loads(path.read_bytes())
        kind, outputs, options = about["kind"], tuple(about["outputs"]), about["head"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        hint = "give the whole folder that --keep-model wrote"
        raise ModelError("does not describe the head beside it", hint=hint, file=path) from error
    declared = prepared.spec.head.model_dump(mode="json")
    if (kind, outputs, options) != (prepared.kind.name, prepared.outputs, declared):
        raise ModelError(
            f"the head was fine-tuned for another task or protocol ({about.get('task')})",
            hint="name that task with --task, with its --set head.* as then",
            file=path,
        )
    loaded = load_encoder(checkpoint, device)
    head = prepared.kind.build_head(prepared.spec.head, checkpoint, loaded.encoder.width, len(outputs))
    try:
        head.load_state_dict(load_file(Path(checkpoint.folder / HEAD_FILE)))
    except Exception as error:  # safetensors has errors of its own
        raise weights_error(checkpoint.folder, error) from error
    return Network(loaded.encoder, head.to(device))


def evaluate(network: Ready | Network, prepared: Prepared, precision: Precision, progress: Progress) -> Outcome:
    """Predictions on the test split without a step of training; a tuned threshold comes from validation."""
    began = time.perf_counter()
    budget = micro_batch_tokens(network.encoder.device)
    progress(0, 1, "test")
    threshold = 0.5 if prepared.spec.head.threshold == "tuned" else float(prepared.spec.head.threshold)
    if prepared.kind.thresholds and prepared.spec.head.threshold == "tuned":
        split = prepared.validation
        threshold = prepared.kind.threshold(prepared, split, probabilities(network, prepared, split, precision, budget))
    chances = probabilities(network, prepared, prepared.test, precision, budget)
    predictions = decide(prepared, prepared.test, chances, threshold)
    record = TrainingRecord(
        steps=0,
        best_step=0,
        curve=(),
        precision=precision,
        attention=network.attention,
        batch_size=prepared.spec.training.batch_size,
        micro_batch_tokens=budget,
        threshold=threshold if prepared.kind.thresholds else None,
    )
    progress(1, 1, "test")
    return Outcome(predictions, record, 0.0, time.perf_counter() - began, 0, threshold=threshold)
