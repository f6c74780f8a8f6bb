"""A task's documents encoded once for one tokenizer and window, and shared by all seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from biobench.data.load import subset
from biobench.finetune.token_cache import TokenCache
from biobench.kinds import Split, Task, get_kind
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.record import Windows
from biobench.schema.task import TaskSpec
from biobench.score.averages import Scores
from biobench.score.compute import compute

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Prepared(Task):
    """Everything about (task, data, tokenizer, window) that no seed changes."""

    train: Split
    validation: Split
    test: Split
    windows: Windows

    def score(self, documents: Sequence[Document], predictions: Sequence[Prediction]) -> Scores:
        """All averages of these predictions; the one path by which this task is scored."""
        return compute(
            type=self.spec.type,
            labels=self.data.labels,
            gold_labels=self.data.gold_labels,
            gold=documents,
            predictions=predictions,
            negative_label=self.spec.metric.negative_label,
            scale=self.spec.scale,
        )


def documents_of(spec: TaskSpec, data: TaskData) -> tuple[Sequence[Document], Sequence[Document], Sequence[Document]]:
    """What is encoded for training, validation and test; the last is the second itself where nothing else is asked."""
    recipe = spec.training
    train = subset(data.train, recipe.train_fraction, recipe.train_documents)
    validation = subset(data.validation, most=recipe.validation_documents)
    spared = data.test is data.validation and recipe.validation_documents is None
    return train, validation, validation if spared else data.test


def prepare(
    spec: TaskSpec, data: TaskData, tokenizer: PreTrainedTokenizerBase, window: int, cache: TokenCache | None = None
) -> Prepared:
    """Encode all splits into `window` tokens and measure what the window cuts off in test.

    cache: where tokenised documents are kept; None for text that may not be.
    """
    kind = get_kind(spec.type)
    task = Task(spec, data, kind.head_outputs(spec, data.labels))

    def split(documents: Sequence[Document]) -> Split:
        cut = kind.cut if cache is None else partial(cache.cut, kind)
        kept, units, encoded, owner = cut(spec, documents, tokenizer, window)
        windows: list[list[int]] = [[] for _ in kept]
        for place, document in enumerate(owner):
            windows[document].append(place)
        targets = [kind.target(task, units[d], e) for d, e in zip(owner, encoded, strict=True)]
        return Split(kept, units, encoded, targets, [len(e) for e in encoded], windows, len(task.outputs))

    parts = documents_of(spec, data)
    train, validation = split(parts[0]), split(parts[1])
    test = validation if parts[2] is parts[1] else split(parts[2])
    none = Windows(max_length=window, truncated_documents=0, lost_gold=0)
    prepared = Prepared(spec, data, task.outputs, train, validation, test, none)
    return replace(prepared, windows=_windows(prepared, tokenizer))


def _windows(prepared: Prepared, tokenizer: PreTrainedTokenizerBase) -> Windows:
    """What the protocol keeps from the head in test: documents cut, gold lost, and the scores of the best answer."""
    test, window = prepared.test, prepared.windows.max_length
    long = sum(test.encoded[places[0]].truncated for places in test.windows)
    strided = prepared.spec.protocol.long_documents == "stride"
    lost, best = prepared.kind.ceiling(prepared, test, tokenizer, window)
    return Windows(
        max_length=window,
        truncated_documents=0 if strided else long,
        strided_documents=long if strided else 0,
        lost_gold=lost,
        ceiling={} if best is None else prepared.score(test.documents, best).values,
    )
