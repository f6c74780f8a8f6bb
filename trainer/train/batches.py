"""From a counter to the tensors of one step, prepared one step ahead."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from biobench.core.machine import to_device
from trainer.corpus.shards import Corpus
from trainer.model import objectives
from trainer.model.network import Packing
from trainer.model.objectives import Targets, Vocabulary
from trainer.model.tokens import end_token
from trainer.order import draw
from trainer.recipe.phases import Phase
from trainer.recipe.spec import Recipe
from trainer.train.distributed import World


@dataclass(frozen=True)
class Micro:
    """One forward pass: arguments of `Trainee.forward`."""

    input_ids: Tensor
    positions: Tensor
    targets: Tensor
    packing: Packing | None


@dataclass(frozen=True)
class StepBatch:
    """This process's part of a step. indices: the windows of the whole step, for the order hash."""

    micros: list[Micro]
    targets: int
    indices: NDArray[np.int64]


def vocabulary_of(tokenizer: PreTrainedTokenizerBase, rows: int) -> Vocabulary:
    """The ids that the objectives need; `rows`: the model's vocabulary, which may be padded beyond
    the tokenizer's.
    """
    special = np.isin(np.arange(rows), tokenizer.all_special_ids)
    ordinary = np.setdiff1d(list(tokenizer.get_vocab().values()), tokenizer.all_special_ids)
    return Vocabulary(
        end_token(tokenizer), tokenizer.mask_token_id, special, ordinary.astype(np.int64)
    )


class Batches:
    """The steps of one phase; `fixed` pads targets to a fixed count, for compiled and GPU runs."""

    def __init__(
        self,
        recipe: Recipe,
        phase: int,
        corpus: Corpus,
        vocabulary: Vocabulary,
        world: World,
        *,
        fixed: bool,
    ) -> None:
        self.recipe = recipe
        self.number = phase
        self.corpus = corpus
        self.phase: Phase = recipe.phases[phase]
        self.batch = recipe.batch_of(self.phase)
        self.vocabulary = vocabulary
        self.world = world
        self.fixed = fixed
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._ahead: dict[int, Future[StepBatch]] = {}

    def at(self, first: int, *, prefetch: bool) -> StepBatch:
        """The step whose first window is number `first`; with `prefetch`, the next one is begun
        meanwhile.
        """
        ahead = self._ahead.pop(first, None)
        batch = self.make(first) if ahead is None else ahead.result()
        following = first + self.batch.sequences
        if prefetch:
            self._ahead[following] = self._pool.submit(self.make, following)
        return batch

    def close(self) -> None:
        """Stop preparing ahead."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def make(self, first: int) -> StepBatch:
        """This process's micro-batches of the step that starts at window number `first`."""
        count = self.batch.sequences
        indices, epochs = draw(
            first, count, windows=len(self.corpus.train), seed=self.recipe.seeds.data
        )
        share = self.world.slice(count)
        size = self.batch.micro or len(share)
        micros: list[Micro] = []
        targets = 0
        seed = self.recipe.seeds.training
        for start in range(0, len(share), size):
            rows = list(share[start : start + size])
            of_micro = indices[rows]
            drawn = zip(epochs[rows].tolist(), of_micro.tolist(), strict=True)
            keys = [(seed, self.number, epoch, index) for epoch, index in drawn]
            windows = self.corpus.train.read(of_micro)
            batch = self._targets(windows, keys)
            targets += batch.positions.size
            micros.append(self._micro(batch))
        return StepBatch(micros, targets, indices)

    def held_out(self, rows: range) -> tuple[Micro, int]:
        """A validation batch with masks that never change, and its number of targets."""
        windows = self.corpus.held_out.read(np.arange(rows.start, rows.stop))
        batch = self._targets(windows, [("held out", i) for i in rows])
        return self._micro(batch), batch.positions.size

    def _targets(self, windows: NDArray[np.int64], keys: Sequence[tuple[object, ...]]) -> Targets:
        if self.phase.masking is None:
            return objectives.next_token(
                windows, self.vocabulary, isolate=self.phase.isolate_documents
            )
        return objectives.masked(windows, self.vocabulary, self.phase.masking, keys)

    def _micro(self, batch: Targets) -> Micro:
        length = batch.inputs.shape[1]
        device = self.world.device
        if self.fixed:
            size = objectives.capacity(batch.inputs.size, length, self.phase.masking)
            batch = objectives.pad(batch, size)
        packing = None
        if self.phase.isolate_documents:
            # by their end tokens, which masks never hide
            numbers = objectives.document_numbers(batch.inputs, self.vocabulary.end)
            ends = objectives.boundaries(numbers)
            # a power of two, so that compiled code meets few values
            longest = min(1 << (int(np.diff(ends).max()) - 1).bit_length(), length)
            packing = Packing(to_device(numbers, device), to_device(ends, device), longest)
        return Micro(
            to_device(batch.inputs, device),
            to_device(batch.positions, device),
            to_device(batch.targets, device),
            packing,
        )
