"""States of a frozen encoder, computed once for a task and shared by all probe seeds.

Kept are few states only, in half precision. Sequence tasks: one vector a window, or the first token and
`segments` means, so that memory does not grow with the length of the documents. Token tasks: one vector a word,
that of its first sub-token, which is what the fine-tuned head reads too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from biobench.core.machine import Precision
from biobench.core.memory import is_out_of_memory
from biobench.core.stop import STOP, RunStoppedError
from biobench.encode.batches import inference_order
from biobench.errors import TrainingError
from biobench.finetune.loop import Outcome, Progress, ProgressNote
from biobench.finetune.machine import micro_batch_tokens, settled_precision
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import Savepoint
from biobench.kinds import Split
from biobench.models.encoder import Encoder

_LARGEST = 60_000.0
"""States beyond this do not fit half precision."""


@dataclass(slots=True)
class Features:
    """Of each split (units, vectors, width) on the CPU, and (units, vectors) which are real.

    A unit is what gets one answer: a window, or a visible word (token tasks).
    precision: what the states were computed in. backoffs: changes forced by memory or by values that are not
    finite. seconds, tokens: what it cost, earlier processes included. resumed: how often the states were continued
    from disk. earlier_seconds: what those processes took.
    """

    prepared: Prepared
    wanted: Precision
    precision: Precision
    states: dict[str, Tensor]
    real: dict[str, Tensor]
    backoffs: tuple[str, ...]
    budget: int
    seconds: float
    tokens: int
    resumed: int = 0
    earlier_seconds: float = 0.0

    def of(self, prepared: Prepared, precision: Precision) -> bool:
        """Whether these are the states of this task in this precision."""
        return self.prepared is prepared and self.wanted == precision

    def mark(self, outcome: Outcome) -> Outcome:
        """`outcome` of the run that these states were computed for, with what earlier processes did for them."""
        outcome.record = outcome.record.model_copy(update={"resumed": self.resumed})
        outcome.earlier_seconds += self.earlier_seconds
        return outcome


def unit_bounds(split: Split, *, words: bool) -> NDArray[np.int64]:
    """(windows + 1,) place of each window's first unit, and at the end how many units there are."""
    sizes = [len(e.words) if words else 1 for e in split.encoded]
    return np.cumsum([0, *sizes], dtype=np.int64)


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

    splits: what is encoded in their place, by the names that the states get. Asked to stop, it saves what is encoded
    and raises RunStoppedError. Raises TrainingError where the states are not finite in fp32.
    """
    if splits is None:
        splits = {"train": prepared.train, "validation": prepared.validation, "test": prepared.test}
    encoder.train(False)
    work = _Extraction(encoder, prepared, precision, progress, splits, keep)
    while True:
        try:
            work.run()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or work.budget <= 1:
                raise
            work.again(budget=work.budget // 2, why=f"out of memory: micro-batch cut to {work.budget // 2} tokens")
            continue
        if all(bool(torch.isfinite(states).all()) for states in work.states.values()):
            break
        if work.precision == "fp32":
            raise TrainingError("the encoder's states are not finite in fp32", hint="check the checkpoint's weights")
        work.again(precision="fp32", why="states that are not finite: computed again in fp32")
    return Features(
        prepared,
        precision,
        work.precision,
        work.states,
        work.real,
        tuple(work.backoffs),
        work.budget,
        work.seconds,
        work.tokens,
        work.resumed,
        work.earlier,
    )


class _Extraction:
    """A pass over all splits; its state is what is encoded so far, and how.

    ended: micro-batches that are encoded, in the order of the splits and within each in that of `inference_order`.
    """

    def __init__(
        self,
        encoder: Encoder,
        prepared: Prepared,
        precision: Precision,
        progress: Progress,
        splits: Mapping[str, Split],
        keep: Savepoint | None,
    ) -> None:
        assert prepared.spec.probe is not None
        self.encoder, self.progress, self.splits, self.keep = encoder, progress, splits, keep
        self.probe = prepared.spec.probe
        self.words = prepared.kind.words
        self.tokens = sum(sum(s.lengths) for s in splits.values())
        self.began, self.earlier, self.resumed = time.perf_counter(), 0.0, 0
        self.precision, self.backoffs = settled_precision(encoder, precision)
        self.budget = micro_batch_tokens(encoder.device)
        self.states: dict[str, Tensor] = {}
        self.real: dict[str, Tensor] = {}
        self.ended = 0
        saved = None if keep is None else keep.load()
        if keep is not None and keep.refusal is not None:
            progress(0, self.tokens, ProgressNote(f"starts again: {keep.refusal}"))
        if saved is None:
            self._empty()
        else:
            for name, value in saved.items():
                setattr(self, name, value)
            self.resumed += 1
            progress(0, self.tokens, ProgressNote("continues where it was stopped"))

    @property
    def seconds(self) -> float:
        """Of this process and those before it."""
        return self.earlier + time.perf_counter() - self.began

    def again(self, *, why: str, precision: Precision | None = None, budget: int | None = None) -> None:
        """Begin the pass anew in another way."""
        self.precision = self.precision if precision is None else precision
        self.budget = self.budget if budget is None else budget
        self.backoffs.append(why)
        self._empty()

    def _empty(self) -> None:
        vectors = 1 + self.probe.segments if self.probe.pooling == "attention" and not self.words else 1
        for name, split in self.splits.items():
            units = int(unit_bounds(split, words=self.words)[-1])
            self.states[name] = torch.zeros(units, vectors, self.encoder.width, dtype=torch.float16)
            self.real[name] = torch.zeros(units, vectors, dtype=torch.bool)
        self.ended = 0

    def _saved_state(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("precision", "backoffs", "budget", "ended", "resumed")}
        return {**kept, "states": self.states, "real": self.real, "earlier": self.seconds}

    def run(self) -> None:
        """Encode what is left. Raises RunStoppedError where a signal asks, with the state saved."""
        done = number = 0
        for name, split in self.splits.items():
            begins = unit_bounds(split, words=self.words)
            for part in inference_order(split.lengths, self.budget, padded=self.encoder.attention != "packed"):
                number += 1
                done += sum(split.lengths[i] for i in part)
                if number <= self.ended:
                    continue
                self._encode(name, split, part, begins)
                self.ended = number
                stops = STOP()
                if self.keep is not None and (stops or self.keep.due()):
                    self.keep.save(self._saved_state)
                if stops:
                    raise RunStoppedError
                self.progress(done, self.tokens, "tokens encoded")

    def _encode(self, name: str, split: Split, part: Sequence[int], begins: NDArray[np.int64]) -> None:
        sequences, types = [split.encoded[i].ids for i in part], [split.encoded[i].types for i in part]
        with torch.autocast(self.encoder.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            hidden = self.encoder(sequences, types)
        for i, rows in zip(part, torch.split(hidden.float(), [len(s) for s in sequences]), strict=True):
            units = slice(int(begins[i]), int(begins[i + 1]))
            first = torch.from_numpy(np.array(split.encoded[i].first)).to(rows.device)
            kept = rows[first][:, None] if self.words else self._pooled(rows)[None]
            self.states[name][units, : kept.shape[1]] = kept.clamp(-_LARGEST, _LARGEST).to("cpu", torch.float16)
            self.real[name][units, : kept.shape[1]] = True

    def _pooled(self, rows: Tensor) -> Tensor:
        """(vectors, width) of one document's (tokens, width)."""
        if self.probe.pooling == "cls":
            return rows[:1]
        if self.probe.pooling == "mean":
            return rows.mean(0, keepdim=True)
        edges = np.linspace(0, len(rows), min(self.probe.segments, len(rows)) + 1).round().astype(int)
        sizes = np.diff(edges).tolist()
        return torch.cat([rows[:1], torch.stack([piece.mean(0) for piece in torch.split(rows, sizes)])])
