"""States of a frozen encoder, computed once for a task and shared by all probe seeds.

Kept are few states only, in half precision. Sequence tasks: one vector a window, or the first token
and
`segments` means, so that memory does not grow with the length of the documents. Token tasks: one
vector a word, that of its first sub-token, which is what the fine-tuned head reads too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from biobench.core.arrays import Ints
from biobench.core.machine import Precision, computing_in, is_out_of_memory, to_device
from biobench.core.progress import ProgressNote
from biobench.core.stop import STOP, RunStoppedError
from biobench.encode.batches import inference_order
from biobench.errors import TrainingError
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.network import ids_and_types, micro_batch_tokens, settled_precision
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import NOT_KEPT, Savepoint, resumed_state
from biobench.kinds import Split
from biobench.models.encoder import Encoder

_LARGEST = 60_000.0
"""States beyond this do not fit half precision."""
_SAVED = ("precision", "backoffs", "budget", "ended", "resumed", "states", "real")


def unit_bounds(split: Split, *, words: bool) -> Ints:
    """(windows + 1,) place of each window's first unit, and at the end how many units there are.

    A unit is what gets one answer: a window, or a visible word (token tasks).
    """
    if not words:
        return np.arange(len(split.encoded) + 1)
    counts = [len(window.words) for window in split.encoded]
    return np.cumsum([0, *counts], dtype=np.int64)


class Features:
    """A pass of the frozen encoder over all splits, and what it has encoded so far.

    states: of each split (units, vectors, width) on the CPU; real: (units, vectors) which of them
    are real.
    wanted, precision: what the states were asked for and are computed in. budget: tokens of a
    micro-batch. backoffs: changes forced by memory or by values that are not finite. ended:
    micro-batches that are encoded, in the order of the splits and within each in that of
    `inference_order`. seconds, tokens: what the pass cost, earlier processes included. resumed: how
    often it was resumed from disk. earlier: seconds of those processes.
    """

    def __init__(
        self,
        encoder: Encoder,
        prepared: Prepared,
        precision: Precision,
        splits: Mapping[str, Split],
    ) -> None:
        self.encoder = encoder
        self.prepared = prepared
        self.splits = splits
        self.probe = prepared.probe
        self.words = prepared.kind.words
        self.wanted = precision
        self.precision, self.backoffs = settled_precision(encoder, precision)
        self.budget = micro_batch_tokens(encoder.device)
        self.tokens = sum(sum(split.lengths) for split in splits.values())
        self.began = time.perf_counter()
        self.seconds = self.earlier = 0.0
        self.resumed = 0
        self.bounds: dict[str, list[int]] = {}
        """Of each split, as `unit_bounds` gives them."""
        for name, split in splits.items():
            self.bounds[name] = unit_bounds(split, words=self.words).tolist()
        self.states: dict[str, Tensor] = {}
        self.real: dict[str, Tensor] = {}
        self._forget()

    def of(self, prepared: Prepared, precision: Precision) -> bool:
        """Whether these are the states of this task in this precision."""
        return self.prepared is prepared and self.wanted == precision

    def mark(self, outcome: Outcome) -> None:
        """Add what earlier processes did for these states to the run that they were made for."""
        outcome.record = outcome.record.model_copy(update={"resumed": self.resumed})
        outcome.earlier_seconds += self.earlier

    def restart(self, why: str) -> None:
        """Begin again, and record the reason."""
        self.backoffs.append(why)
        self._forget()

    def _forget(self) -> None:
        """Nothing is encoded."""
        vectors = 1
        if self.probe.pooling == "attention" and not self.words:
            vectors += self.probe.segments
        for name, bounds in self.bounds.items():
            shape = (bounds[-1], vectors)
            self.states[name] = torch.zeros(*shape, self.encoder.width, dtype=torch.float16)
            self.real[name] = torch.zeros(shape, dtype=torch.bool)
        self.ended = 0

    def run(self, progress: Progress, keep: Savepoint) -> None:
        """Encode what is left. Raises RunStoppedError where a signal asks, with the state saved."""
        done = 0
        for number, (name, batch) in enumerate(self._batches(), start=1):
            lengths = self.splits[name].lengths
            done += sum(lengths[index] for index in batch)
            if number <= self.ended:
                continue
            self._encode(name, batch)
            self.ended = number
            stops = STOP()
            if keep.is_due(stops=stops):
                keep.save(self._saved_state)
            if stops:
                raise RunStoppedError
            progress(done, self.tokens, "tokens encoded")

    def _batches(self) -> Iterator[tuple[str, list[int]]]:
        """The micro-batches, each with the name of its split."""
        padded = self.encoder.attention != "packed"
        for name, split in self.splits.items():
            for batch in inference_order(split.lengths, self.budget, padded=padded):
                yield name, batch

    def _saved_state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in _SAVED}
        return {**state, "earlier": self.spent()}

    def spent(self) -> float:
        """Seconds of this process and those before it."""
        return self.earlier + time.perf_counter() - self.began

    def _encode(self, name: str, batch: Sequence[int]) -> None:
        """Encode windows of a split and keep their states."""
        windows = [self.splits[name].encoded[index] for index in batch]
        ids, types = ids_and_types(windows)
        with computing_in(self.precision, self.encoder.device):
            hidden = self.encoder(ids, types)
        of_windows = torch.split(hidden.float(), list(map(len, windows)))
        for index, window, rows in zip(batch, windows, of_windows, strict=True):
            if self.words:
                states = rows[to_device(window.first, rows.device)][:, None]
            else:
                states = self._pooled(rows)[None]
            states = states.clamp(-_LARGEST, _LARGEST).to("cpu", torch.float16)
            begin, end = self.bounds[name][index : index + 2]
            vectors = states.shape[1]
            self.states[name][begin:end, :vectors] = states
            self.real[name][begin:end, :vectors] = True

    def _pooled(self, rows: Tensor) -> Tensor:
        """(vectors, width) of one document's (tokens, width)."""
        if self.probe.pooling == "cls":
            return rows[:1]
        if self.probe.pooling == "mean":
            return rows.mean(0, keepdim=True)
        segments = min(self.probe.segments, len(rows))
        edges = np.linspace(0, len(rows), segments + 1).round().astype(int)
        vectors = [rows[:1]]
        for piece in torch.split(rows, np.diff(edges).tolist()):
            vectors.append(piece.mean(0, keepdim=True))
        return torch.cat(vectors)


@torch.inference_mode()
def extract(
    encoder: Encoder,
    prepared: Prepared,
    precision: Precision,
    progress: Progress,
    splits: Mapping[str, Split] | None = None,
    keep: Savepoint = NOT_KEPT,
) -> Features:
    """Run the encoder once over all splits, or continue from what `keep` holds.

    splits: what is encoded in their place, by the names that the states get. Asked to stop, it
    saves what is encoded and raises RunStoppedError. Raises TrainingError where the states are not
    finite in fp32.
    """
    encoder.train(False)
    if splits is None:
        splits = {name: getattr(prepared, name) for name in ("train", "validation", "test")}
    work = Features(encoder, prepared, precision, splits)
    saved = resumed_state(keep, progress, work.tokens)
    if saved is not None:
        for name, value in saved.items():
            setattr(work, name, value)
        work.resumed += 1
        progress(0, work.tokens, ProgressNote("resumed"))
    while True:
        try:
            work.run(progress, keep)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or work.budget <= 1:
                raise
            work.budget //= 2
            work.restart(f"out of memory: micro-batch cut to {work.budget} tokens")
            continue
        if all(states.isfinite().all() for states in work.states.values()):
            work.seconds = work.spent()
            return work
        if work.precision == "fp32":
            raise TrainingError(
                "the encoder's states are not finite in fp32", hint="check the checkpoint's weights"
            )
        work.precision = "fp32"
        work.restart("states that are not finite: computed again in fp32")
