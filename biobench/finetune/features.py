"""States of a frozen encoder, computed once for a task and shared by all probe seeds.

Kept are few states only, in half precision. Sequence tasks: one vector a window, or the first token
and
`segments` means, so that memory does not grow with the length of the documents. Token tasks: one
vector a word, that of its first sub-token, which is what the fine-tuned head reads too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from biobench.core.machine import Precision, is_out_of_memory
from biobench.core.progress import ProgressNote
from biobench.core.stop import STOP, RunStoppedError
from biobench.encode.batches import inference_order
from biobench.errors import TrainingError
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.network import micro_batch_tokens, settled_precision
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import Savepoint, resumed_state
from biobench.kinds import Split
from biobench.models.encoder import Encoder

_LARGEST = 60_000.0
"""States beyond this do not fit half precision."""
_SAVED = ("precision", "backoffs", "budget", "ended", "resumed", "states", "real")


def unit_bounds(split: Split, *, words: bool) -> NDArray[np.int64]:
    """(windows + 1,) place of each window's first unit, and at the end how many units there are.

    A unit is what gets one answer: a window, or a visible word (token tasks).
    """
    return np.cumsum([0, *(len(e.words) if words else 1 for e in split.encoded)], dtype=np.int64)


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
        assert prepared.spec.probe is not None
        self.encoder, self.prepared, self.splits, self.wanted = encoder, prepared, splits, precision
        self.probe, self.words = prepared.spec.probe, prepared.kind.words
        self.precision, self.backoffs = settled_precision(encoder, precision)
        self.budget = micro_batch_tokens(encoder.device)
        self.tokens = sum(sum(s.lengths) for s in splits.values())
        self.began, self.seconds, self.earlier, self.resumed = time.perf_counter(), 0.0, 0.0, 0
        self.states: dict[str, Tensor] = {}
        self.real: dict[str, Tensor] = {}
        self.restart()

    def of(self, prepared: Prepared, precision: Precision) -> bool:
        """Whether these are the states of this task in this precision."""
        return self.prepared is prepared and self.wanted == precision

    def mark(self, outcome: Outcome) -> Outcome:
        """`outcome` of the run that these states were computed for, with what earlier processes did
        for them.
        """
        outcome.record = outcome.record.model_copy(update={"resumed": self.resumed})
        outcome.earlier_seconds += self.earlier
        return outcome

    def restart(self, why: str | None = None) -> None:
        """Forget what is encoded."""
        if why is not None:
            self.backoffs.append(why)
        vectors = 1
        if self.probe.pooling == "attention" and not self.words:
            vectors += self.probe.segments
        for name, split in self.splits.items():
            units = int(unit_bounds(split, words=self.words)[-1])
            self.states[name] = torch.zeros(units, vectors, self.encoder.width, dtype=torch.float16)
            self.real[name] = torch.zeros(units, vectors, dtype=torch.bool)
        self.ended = 0

    def run(self, progress: Progress, keep: Savepoint | None) -> None:
        """Encode what is left. Raises RunStoppedError where a signal asks, with the state saved."""
        done = number = 0
        for name, split in self.splits.items():
            begins = unit_bounds(split, words=self.words)
            padded = self.encoder.attention != "packed"
            for batch in inference_order(split.lengths, self.budget, padded=padded):
                number += 1
                done += sum(split.lengths[i] for i in batch)
                if number <= self.ended:
                    continue
                self._encode(name, split, batch, begins)
                self.ended = number
                stops = STOP()
                if keep is not None and (stops or keep.due()):
                    keep.save(self._saved_state)
                if stops:
                    raise RunStoppedError
                progress(done, self.tokens, "tokens encoded")

    def _saved_state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in _SAVED}
        return {**state, "earlier": self.spent()}

    def spent(self) -> float:
        """Seconds of this process and those before it."""
        return self.earlier + time.perf_counter() - self.began

    def _encode(
        self, name: str, split: Split, batch: Sequence[int], begins: NDArray[np.int64]
    ) -> None:
        """Encode windows of a split and keep their states. begins: as `unit_bounds` gives them."""
        windows = [split.encoded[i] for i in batch]
        in_bf16 = self.precision == "bf16"
        with torch.autocast(self.encoder.device.type, torch.bfloat16, enabled=in_bf16):
            hidden = self.encoder([w.ids for w in windows], [w.types for w in windows])
        of_windows = torch.split(hidden.float(), [len(window) for window in windows])
        for i, window, rows in zip(batch, windows, of_windows, strict=True):
            if self.words:
                states = rows[torch.from_numpy(np.array(window.first)).to(rows.device)][:, None]
            else:
                states = self._pooled(rows)[None]
            states = states.clamp(-_LARGEST, _LARGEST).to("cpu", torch.float16)
            units = slice(int(begins[i]), int(begins[i + 1]))
            self.states[name][units, : states.shape[1]] = states
            self.real[name][units, : states.shape[1]] = True

    def _pooled(self, rows: Tensor) -> Tensor:
        """(vectors, width) of one document's (tokens, width)."""
        if self.probe.pooling == "cls":
            return rows[:1]
        if self.probe.pooling == "mean":
            return rows.mean(0, keepdim=True)
        segments = min(self.probe.segments, len(rows))
        edges = np.linspace(0, len(rows), segments + 1).round().astype(int)
        pieces = torch.split(rows, np.diff(edges).tolist())
        return torch.cat([rows[:1], torch.stack([piece.mean(0) for piece in pieces])])


@torch.inference_mode()
def extract(
    encoder: Encoder,
    prepared: Prepared,
    precision: Precision,
    progress: Progress,
    splits: Mapping[str, Split] | None = None,
    keep: Savepoint | None = None,
) -> Features:
    """Run the encoder once over all splits, or continue from what `keep` holds.

    splits: what is encoded in their place, by the names that the states get. Asked to stop, it
    saves what is encoded and raises RunStoppedError. Raises TrainingError where the states are not
    finite in fp32.
    """
    encoder.train(False)
    all_splits = {"train": prepared.train, "validation": prepared.validation, "test": prepared.test}
    work = Features(encoder, prepared, precision, all_splits if splits is None else splits)
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
        if all(bool(torch.isfinite(states).all()) for states in work.states.values()):
            work.seconds = work.spent()
            return work
        if work.precision == "fp32":
            raise TrainingError(
                "the encoder's states are not finite in fp32", hint="check the checkpoint's weights"
            )
        work.precision = "fp32"
        work.restart("states that are not finite: computed again in fp32")
