"""Throughput and memory of one checkpoint: fine-tuning steps and inference, by document length.

Documents are random token ids of one length each, so that the figures depend on the model and the
machine alone. A token head with three outputs does the work of a real one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch

from biobench.core.configs import position_limit
from biobench.core.machine import (
    peak_memory_bytes,
    reset_peak_memory,
    resolve_device,
    resolve_precision,
)
from biobench.encode.batches import cut_packed, cut_padded
from biobench.encode.tokens import Encoded
from biobench.errors import UsageError
from biobench.finetune.adapters import make_optimizer
from biobench.finetune.engine import load_encoder
from biobench.finetune.network import Network, micro_batch_tokens, settled_precision
from biobench.models.encoder import Encoder
from biobench.models.heads import LinearHead
from biobench.models.loading import find_checkpoint
from biobench.schema.training import Training


@dataclass(frozen=True, slots=True)
class Speed:
    """At one document length. Rates in tokens per second (median over steps), memory in bytes."""

    model: str
    length: int
    batch_size: int
    precision: str
    attention: str
    train_tokens_per_second: float
    inference_tokens_per_second: float
    peak_memory_bytes: int
    parameters: int


def measure(
    model: str,
    lengths: Sequence[int],
    *,
    batch_size: int,
    steps: int,
    device: str,
    offline: bool,
) -> list[Speed]:
    """One line per length. The first step of each length warms up and is not counted. Raises
    BioBenchError.
    """
    machine = resolve_device(device)
    checkpoint = find_checkpoint(model, offline=offline)
    limit = position_limit(checkpoint.config)
    for length in lengths:
        if length < 8 or (limit is not None and length > limit):
            raise UsageError(
                f"length {length} is not a length that {model} reads (8 to {limit})",
                hint="give --lengths",
            )
    loaded = load_encoder(checkpoint, machine)
    precision, _ = settled_precision(loaded.encoder, resolve_precision("auto", machine))
    lines = []
    for length in lengths:
        torch.manual_seed(0)
        head = LinearHead(loaded.encoder.width, 3, 0.1, 0.02).to(machine)
        network = Network(loaded.encoder, head)
        work = _Work(network, _micro_batches(network, batch_size, length), precision, machine)
        reset_peak_memory(machine)
        optimizer = make_optimizer(network, Training(max_steps=1, learning_rate=1e-6))
        train_seconds = work.seconds(steps, optimizer)
        seconds = work.seconds(steps, None)
        lines.append(
            Speed(
                model=checkpoint.id,
                length=length,
                batch_size=batch_size,
                precision=precision,
                attention=network.attention,
                train_tokens_per_second=round(batch_size * length / train_seconds, 1),
                inference_tokens_per_second=round(batch_size * length / seconds, 1),
                peak_memory_bytes=peak_memory_bytes(machine),
                parameters=loaded.parameters,
            )
        )
        loaded.encoder.load_state_dict(loaded.initial)
        loaded.encoder.zero_grad(set_to_none=True)
    return lines


@dataclass
class _Work:
    """What is timed: a batch of documents, in micro-batches that the memory takes."""

    network: Network
    batches: list[list[Encoded]]
    precision: str
    place: torch.device

    def seconds(self, steps: int, optimizer: torch.optim.Optimizer | None) -> float:
        """Median of `steps` steps, after one to warm up: of training, or without an optimiser of
        inference.
        """
        self.network.train(optimizer is not None)
        taken = []
        for _ in range(steps + 1):
            began = time.perf_counter()
            for batch in self.batches:
                self._pass(batch, training=optimizer is not None)
            if optimizer is not None:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            if self.place.type == "cuda":
                torch.cuda.synchronize(self.place)
            taken.append(time.perf_counter() - began)
        return median(taken[1:])

    def _pass(self, batch: list[Encoded], *, training: bool) -> None:
        in_bf16 = self.precision == "bf16"
        with (
            torch.inference_mode(not training),
            torch.autocast(self.place.type, torch.bfloat16, enabled=in_bf16),
        ):
            logits = self.network(batch)
        if training:
            targets = torch.zeros(len(logits), dtype=torch.long, device=self.place)
            loss = torch.nn.functional.cross_entropy(logits, targets)
            loss.backward()  # type: ignore[no-untyped-call]


def _micro_batches(network: Network, batch_size: int, length: int) -> list[list[Encoded]]:
    documents = _documents(batch_size, length, network.encoder)
    cut = cut_packed if network.attention == "packed" else cut_padded
    batches = cut(range(batch_size), [length] * batch_size, micro_batch_tokens(network.device))
    return [[documents[i] for i in indices] for indices in batches]


def _documents(count: int, length: int, encoder: Encoder) -> list[Encoded]:
    positions = np.arange(length, dtype=np.int64)
    ordinary = encoder.vocabulary[encoder.vocabulary != encoder.pad_id]
    ids = np.random.default_rng(0).choice(ordinary, size=(count, length))
    return [
        Encoded(row.astype(np.int64), positions, positions, False, stop=positions + 1)
        for row in ids
    ]
