"""What the runs of a plan share in one process: the store, a checkpoint, and a task's windows."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from biobench.finetune.engine import LoadedEncoder, load_encoder
from biobench.finetune.prepare import Prepared, prepare
from biobench.models.loading import Checkpoint, load_tokenizer, window
from biobench.runs.freshness import Freshness
from biobench.runs.plan import Item, RunPlan
from biobench.store import Store

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Group = tuple[str, str, int]
"""Checkpoint, task and split; its runs differ in their seed alone."""


class Workshop:
    """The plan's store, and the last checkpoint and encoded task, one of each in memory."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.store = Store(plan.request.results_dir)
        self.fresh = Freshness(plan)
        self._loaded: LoadedEncoder | None = None
        self._tokenizer: tuple[str, PreTrainedTokenizerBase] | None = None
        self._prepared: tuple[Group, Prepared] | None = None

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Nothing is left open."""

    def encoder(self, checkpoint: Checkpoint) -> LoadedEncoder:
        """The checkpoint's encoder, loaded once."""
        if self._loaded is None or self._loaded.checkpoint.hash != checkpoint.hash:
            self._loaded = None
            self._loaded = load_encoder(checkpoint, self.plan.device)
        return self._loaded

    def prepared(self, item: Item) -> Prepared:
        """The item's task encoded for its checkpoint, once for all seeds."""
        assert item.task.data is not None
        group = group_of(item)
        if self._prepared is None or self._prepared[0] != group:
            spec = item.task.loaded.spec
            tokenizer, size = self._tokens(item)
            self._prepared = None
            self._prepared = group, prepare(spec, item.task.data, tokenizer, size)
        return self._prepared[1]

    def _tokens(self, item: Item) -> tuple[PreTrainedTokenizerBase, int]:
        """The item's tokenizer, and the window in tokens. Raises ModelError."""
        checkpoint = item.checkpoint
        if self._tokenizer is None or self._tokenizer[0] != checkpoint.hash:
            self._tokenizer = checkpoint.hash, load_tokenizer(checkpoint)
        tokenizer = self._tokenizer[1]
        return tokenizer, window(tokenizer, checkpoint.config, item.task.loaded.spec.protocol.max_length)


def group_of(item: Item) -> Group:
    """What the item shares with the task's other seeds."""
    return item.checkpoint.hash, item.task.hash, item.task.loaded.fold
