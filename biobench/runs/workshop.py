"""What the runs of a plan share in one process: the store, a checkpoint, a task's windows, and the next task's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import dropwhile
from types import TracebackType
from typing import TYPE_CHECKING

import torch

from biobench.core.memory import free_memory_bytes
from biobench.core.threads import spare_cpus
from biobench.errors import BioBenchError
from biobench.finetune.ahead import Ahead, NextTask
from biobench.finetune.engine import LoadedEncoder, load_encoder
from biobench.finetune.prepare import Prepared, documents_of, prepare
from biobench.finetune.token_cache import FOLDER, TokenCache
from biobench.kinds import get_kind
from biobench.models.loading import Checkpoint, load_tokenizer, window
from biobench.runs.freshness import Freshness
from biobench.runs.plan import Item, RunPlan
from biobench.store import Store

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Group = tuple[str, str, int]
"""Checkpoint, task and split; its runs differ in their seed alone."""
_SHARE_OF_MEMORY = 0.25
"""Of what is free, that the background process may take."""


class Workshop:
    """The plan's store, and the last checkpoint and encoded task, one of each in memory.

    Where a CPU is to spare, the next task is tokenised while this one trains (`finetune.ahead`). On a CPU that trains
    with as many threads as there are usable CPUs, or on a crowded machine, it would only compete.
    """

    def __init__(self, plan: RunPlan, *, alone: bool = True) -> None:
        """alone: whether no other worker of the plan may be on the same machine unknown to this one."""
        self.plan = plan
        self.store = Store(plan.request.results_dir)
        self.fresh = Freshness(plan)
        self._loaded: LoadedEncoder | None = None
        self._tokenizer: tuple[str, PreTrainedTokenizerBase] | None = None
        self._prepared: tuple[Group, Prepared] | None = None
        self._ahead = Ahead() if alone else None
        self._begun: Group | None = None
        self.prepared_ahead = False
        """Whether the windows of the task in hand were read, after the background process was given the task."""

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._ahead is not None:
            self._ahead.close()

    def encoder(self, checkpoint: Checkpoint) -> LoadedEncoder:
        """The checkpoint's encoder, loaded once."""
        if self._loaded is None or self._loaded.checkpoint.hash != checkpoint.hash:
            self._loaded = None
            self._loaded = load_encoder(checkpoint, self.plan.device)
        return self._loaded

    def prepared(self, item: Item) -> Prepared:
        """The item's task encoded for its checkpoint, once for all seeds; then the next task is begun."""
        assert item.task.data is not None
        group = group_of(item)
        if self._prepared is None or self._prepared[0] != group:
            spec = item.task.loaded.spec
            tokenizer, size = self._tokens(item)
            cache = None if spec.access == "agreement" else self._cache()
            self._prepared = None
            self._prepared = group, prepare(spec, item.task.data, tokenizer, size, cache)
            self.prepared_ahead = self._begun == group and cache is not None and cache.read > 0 and not cache.written
            self._look_ahead(item)
        return self._prepared[1]

    def _cache(self) -> TokenCache:
        return TokenCache(self.store.root / FOLDER)

    def _tokens(self, item: Item) -> tuple[PreTrainedTokenizerBase, int]:
        """The item's tokenizer, and the window in tokens. Raises ModelError."""
        checkpoint = item.checkpoint
        if self._tokenizer is None or self._tokenizer[0] != checkpoint.hash:
            self._tokenizer = checkpoint.hash, load_tokenizer(checkpoint)
        tokenizer = self._tokenizer[1]
        return tokenizer, window(tokenizer, checkpoint.config, item.task.loaded.spec.protocol.max_length)

    def _look_ahead(self, item: Item) -> None:
        """Give the task that follows the item's to the background process, where that is worth it."""
        if self._ahead is None or not has_spare_cpu(self.plan):
            return
        with suppress(BioBenchError):  # a damaged record or tokenizer is reported at its run's turn
            upcoming = next(self._upcoming(item), None)
            if upcoming is None or not self._is_kept(upcoming):
                return
            self._begun = group_of(upcoming)
            if not self._ahead.begin(self._described(upcoming)):
                self._ahead.close()
                self._ahead = None

    def _upcoming(self, item: Item) -> Iterator[Item]:
        """Items of other groups that follow and have no record yet."""
        request = self.plan.request
        for later in dropwhile(lambda other: other is not item, self.plan.items):
            if group_of(later) == group_of(item):
                continue
            record = self.store.get(later.task.id, later.key)
            if record is None or request.force:
                yield later

    def _is_kept(self, item: Item) -> bool:
        """Whether the item's task has a split that the token cache keeps."""
        spec, data = item.task.loaded.spec, item.task.data
        assert data is not None
        kind, cache = get_kind(spec.type), self._cache()
        return spec.access != "agreement" and any(cache.keeps(kind, part) for part in documents_of(spec, data))

    def _described(self, item: Item) -> NextTask:
        task, request = item.task.loaded, self.plan.request
        free = free_memory_bytes(torch.device("cpu"))
        return NextTask(
            spec=task.path,
            overrides=task.overrides,
            fold=task.fold,
            data_dir=request.data_dir,
            limit=request.limit,
            no_test=request.no_test,
            tokenizer=item.checkpoint.folder,
            trust_remote_code=item.checkpoint.trust_remote_code,
            window=self._tokens(item)[1],
            cache=self._cache(),
            memory=None if free is None else int(_SHARE_OF_MEMORY * free),
        )


def group_of(item: Item) -> Group:
    """What the item shares with the task's other seeds."""
    return item.checkpoint.hash, item.task.hash, item.task.loaded.fold


def has_spare_cpu(plan: RunPlan) -> bool:
    """Whether a CPU is left beside those that train, or that feed the devices."""
    if plan.device.type == "cpu":
        return spare_cpus(plan.sharing * torch.get_num_threads()) > 0
    return spare_cpus(max(plan.sharing, torch.cuda.device_count())) > 0
