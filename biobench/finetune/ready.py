"""Checkpoints that bring a head and answer the test split as they are: `run --track ready`.

A classification model of the library runs as the library has it, windows of one length at a time,
so that no padding enters. An encoder with `head.safetensors` runs as after its fine-tuning.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from biobench.core.arrays import Array
from biobench.core.machine import Precision, to_device
from biobench.core.text import first_line
from biobench.encode.tokens import Encoded
from biobench.errors import ModelError
from biobench.finetune.engine import deterministic, load_encoder
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.network import (
    Network,
    decide,
    ids_and_types,
    micro_batch_tokens,
    probabilities,
    settled_precision,
    threshold_of,
)
from biobench.finetune.prepare import Prepared
from biobench.models.encoder import Attention
from biobench.models.inputs import by_length, padded_inputs
from biobench.models.loading import Checkpoint
from biobench.models.stored_head import HEAD_FILE, StoredHead
from biobench.models.weights import classifier_of, load_base
from biobench.schema.record import TrainingRecord
from biobench.schema.training import Head


class LibraryNetwork(Network):
    """A classification model of the library in the place of encoder and head."""

    def __init__(self, model: Any, *, words: bool) -> None:
        """words: whether words are classified, not texts."""
        nn.Module.__init__(self)
        self.model = model
        self.words = words
        self.encoder = model.base_model

    @property
    def attention(self) -> Attention:
        """Windows of one length at a time."""
        return "alone"

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return torch.device(next(self.model.parameters()).device)

    def forward(self, encoded: Sequence[Encoded]) -> Tensor:
        """Logits in fp32, a row a visible word or window, a column a label of the checkpoint."""
        rows: dict[int, Tensor] = {}
        for members in by_length(encoded).values():
            logits = self._logits([encoded[index] for index in members])
            for index, of_window in zip(members, logits, strict=True):
                rows[index] = of_window[None]
                if self.words:
                    rows[index] = of_window[to_device(encoded[index].first, self.device)]
        return torch.cat([rows[index] for index in range(len(encoded))])

    def _logits(self, encoded: Sequence[Encoded]) -> Tensor:
        """Of windows of one length: (windows, tokens, labels), or (windows, labels) for texts."""
        ids, types = ids_and_types(encoded)
        inputs = padded_inputs(ids, types, pad_id=0)
        tensors = {name: to_device(array, self.device) for name, array in inputs.items()}
        logits: Tensor = self.model(**tensors).logits
        return logits.float()


def load_ready(
    checkpoint: Checkpoint,
    head: StoredHead,
    prepared: Prepared,
    matched: Mapping[str, str],
    device: torch.device,
) -> Network:
    """The checkpoint with its head; its logits are those of the task's outputs.

    matched: label of the head to output of the task; empty where they are the same by nature, as
    with spans and numbers. Raises ModelError.
    """
    if head.options is None:
        network: Network = _library_network(checkpoint, head, device)
    else:
        network = _kept_network(checkpoint, head, head.options, prepared, device)
    if matched:
        # in tasks with tags, labels that stand for nothing say that a word is in no mention
        outside = None
        if prepared.kind.tagged:
            outside = "O"
        columns: dict[str | None, list[int]] = defaultdict(list)
        for number, label in enumerate(head.labels):
            columns[matched.get(label, outside)].append(number)
        of_outputs = [columns[output] for output in prepared.outputs]
        summed = not prepared.kind.thresholds
        network.register_forward_hook(
            lambda network, encoded, logits: outputs_of(logits, of_outputs, summed=summed)
        )
    return network


def _library_network(checkpoint: Checkpoint, head: StoredHead, device: torch.device) -> Network:
    words = head.kind == "token"
    model = load_base(checkpoint, torch.float32, classifier=classifier_of(words=words))
    return LibraryNetwork(model.to(device), words=words)  # type: ignore[arg-type]


def _kept_network(
    checkpoint: Checkpoint,
    head: StoredHead,
    options: Head,
    prepared: Prepared,
    device: torch.device,
) -> Network:
    """The encoder, reading as the head wants it, and the head that was fine-tuned with it."""
    encoder = load_encoder(checkpoint, device).encoder
    spec = prepared.spec.model_copy(update={"head": options})
    encoder.read_first_token(spec.reads_first_token)
    file = checkpoint.folder / HEAD_FILE

    def build() -> nn.Module:
        return prepared.kind.build_head(options, checkpoint, encoder.width, len(head.labels))

    try:
        weights = load_file(file)
        # without memory first, of which the description may ask for any amount
        with torch.device("meta"):
            build().load_state_dict(weights, assign=True)
        module = build()
        module.load_state_dict(weights)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise ModelError(
            f"the head cannot be loaded: {first_line(error)}",
            hint="give the whole folder that --keep-model wrote",
            file=file,
        ) from error
    return Network(encoder, module.to(device))


def answer(
    network: Network,
    prepared: Prepared,
    precision: Precision,
    progress: Progress,
    *,
    lenient: bool,
) -> Outcome:
    """Predict the test split without a step of training; a tuned threshold comes from validation.

    lenient: an I- with nothing open begins a mention, whatever the task's reading of tags.

    Raises ModelError where the model gives numbers that are not finite.
    """
    began = time.perf_counter()
    budget = micro_batch_tokens(network.device)
    backoffs: list[str] = []
    progress(0, 1, "test")
    if not isinstance(network, LibraryNetwork):
        precision, backoffs = settled_precision(network.encoder, precision)
    with deterministic(network.device):
        of_validation: list[Array] = []
        if prepared.spec.head.threshold == "tuned":
            split = prepared.validation
            of_validation = probabilities(network, prepared, split, precision, budget)
        threshold = threshold_of(prepared, of_validation)
        chances = probabilities(network, prepared, prepared.test, precision, budget)
    if not all(np.isfinite(answer).all() for answer in chances):
        raise ModelError(
            f"the model gives numbers that are not finite in {precision}",
            hint="add --set training.precision=fp32, or check the checkpoint's weights",
        )
    if lenient:
        prepared = replace(prepared, data=replace(prepared.data, decode="lenient"))
    predictions = decide(prepared, prepared.test, chances, threshold)
    record = TrainingRecord(
        steps=0,
        best_step=0,
        curve=(),
        precision=precision,
        attention=network.attention,
        batch_size=prepared.spec.training.batch_size,
        micro_batch_tokens=budget,
        backoffs=tuple(backoffs),
        threshold=prepared.kind.recorded_threshold(threshold),
    )
    progress(1, 1, "test")
    return Outcome(predictions, record, evaluation_seconds=time.perf_counter() - began)


def outputs_of(logits: Tensor, labels: Sequence[Sequence[int]], *, summed: bool) -> Tensor:
    """Logits of a task's outputs, (rows, outputs), from those of a head's labels, (rows, labels).

    labels: for each output those that stand for it. summed: the chances of these are added up
    by the softmax that follows; else each label is decided by itself, and the highest stands. An
    output without a label has no chance at all.
    """
    columns = []
    for members in labels:
        of_output = logits[:, list(members)]
        if not members:
            columns.append(torch.full_like(logits[:, 0], float("-inf")))
        elif summed:
            columns.append(of_output.logsumexp(dim=1))
        else:
            columns.append(of_output.amax(dim=1))
    return torch.stack(columns, dim=1)
