"""A task's documents encoded once for one tokenizer and window, and shared by all seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from biobench.data.load import subset
from biobench.errors import withholding
from biobench.kinds import Split, Task, get_kind
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.record import Windows
from biobench.schema.task import TaskSpec
from biobench.schema.training import Probe
from biobench.score.averages import Scores
from biobench.score.compute import score_task
from biobench.score.slices import Part, parts_of
from biobench.store.tables import aliases

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Prepared(Task):
    """Everything about (task, data, tokenizer, window) that no seed changes."""

    train: Split
    validation: Split
    test: Split
    windows: Windows

    @property
    def probe(self) -> Probe:
        """How the states of the frozen encoder are read, where the encoder is frozen."""
        assert self.spec.probe is not None
        return self.spec.probe

    @cached_property
    def parts(self) -> dict[str, Part]:
        """What each slice holds of the test documents."""
        return parts_of(self.spec.type, self.train.documents, self.test.documents)

    def score(self, documents: Sequence[Document], predictions: Sequence[Prediction]) -> Scores:
        """All averages of these predictions; the one path by which this task is scored."""
        return score_task(self.spec, self.data, documents, predictions)


def prepare(
    spec: TaskSpec, data: TaskData, tokenizer: PreTrainedTokenizerBase, window: int
) -> Prepared:
    """Encode all splits into `window` tokens and measure what the window cuts off in test.

    Errors quote nothing of data under an agreement.
    """
    with withholding(spec.access == "agreement"):
        return _prepared(spec, data, tokenizer, window)


def _prepared(
    spec: TaskSpec, data: TaskData, tokenizer: PreTrainedTokenizerBase, window: int
) -> Prepared:
    kind = get_kind(spec.type)
    task = Task(spec, data, kind.head_outputs(spec, data.labels))

    def split(documents: Sequence[Document]) -> Split:
        cut_documents, units, encoded, owners = kind.cut(spec, documents, tokenizer, window)
        windows: list[list[int]] = [[] for _ in cut_documents]
        targets = []
        for number, (owner, of_window) in enumerate(zip(owners, encoded, strict=True)):
            windows[owner].append(number)
            targets.append(kind.target(task, units[owner], of_window))
        return Split(
            documents=cut_documents,
            units=units,
            encoded=encoded,
            targets=targets,
            lengths=list(map(len, encoded)),
            windows=windows,
            outputs=len(task.outputs),
        )

    recipe = spec.training
    train = split(subset(data.train, recipe.train_fraction, recipe.train_documents))
    validation = split(subset(data.validation, most=recipe.validation_documents))
    test = validation  # of --no-test: encoded once
    if data.test is not data.validation or recipe.validation_documents is not None:
        test = split(data.test)
    none = Windows(max_length=window, truncated_documents=0, lost_gold=0)
    prepared = Prepared(spec, data, task.outputs, train, validation, test, none)
    return replace(prepared, windows=_windows(prepared, tokenizer))


def _windows(prepared: Prepared, tokenizer: PreTrainedTokenizerBase) -> Windows:
    """What the protocol keeps from the head in test: documents cut, gold lost, and the scores of
    the best answer.
    """
    test = prepared.test
    window = prepared.windows.max_length
    lost, best = prepared.kind.ceiling(prepared, test, tokenizer, window)
    ceiling: dict[str, float] = {}
    if best is not None:
        ceiling = prepared.score(test.documents, best).values
    long = sum(test.encoded[windows[0]].truncated for windows in test.windows)
    truncated = long
    strided = 0
    shown: dict[str, int] = {}
    if prepared.spec.protocol.long_documents == "stride":
        truncated = 0
        strided = long
    elif prepared.kind.tagged:
        shown = _shown_words(prepared)
    return Windows(
        max_length=window,
        truncated_documents=truncated,
        strided_documents=strided,
        shown_words=shown,
        lost_gold=lost,
        ceiling=ceiling,
    )


def _shown_words(prepared: Prepared) -> dict[str, int]:
    """Words that the window shows of each truncated test document, as the predictions name it."""
    test = prepared.test
    names = {document.id: document.id for document in test.documents}
    if prepared.spec.access == "agreement":
        names, _ = aliases(test.documents)
    counts: dict[str, int] = {}
    for document, window in zip(test.documents, test.encoded, strict=True):
        if window.truncated:
            counts[names[document.id]] = int(window.words.max(initial=-1)) + 1
    return counts
