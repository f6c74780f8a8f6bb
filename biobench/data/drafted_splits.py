"""The `splits` of a new task: a test part that the gate can judge, where there is text enough."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from statistics import mode
from typing import Any

from biobench.core.text import plural
from biobench.data.checks.similar import readings, same
from biobench.data.counts import groups_of
from biobench.data.sniff.parts import Parts
from biobench.data.splits import SplitDocuments, assign_splits
from biobench.kinds import get_kind
from biobench.schema.baseline import UNITS
from biobench.schema.document import Document
from biobench.schema.source import SplitRatios

_TEST_SHARES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
_VALIDATION_SHARE = 0.1
_ENOUGH, _ENOUGH_WITH_MENTIONS = 3 * UNITS, 2 * UNITS
"""Telling units of a test part on which a reader that is often wrong still shows itself; fewer do
where each has several mentions.
"""


def drafted_splits(layout: Parts, documents: Sequence[Document], type: str) -> str:
    """The value of `splits`, by groups where some group has several documents.

    Files of splits stay as they are; of files without any, the test part is the smallest on which
    the gate can judge a task of this type.
    """
    files = layout.corpus.files
    if "validation" in files:
        return "official"
    by, by_group = "document", ""
    if len(groups_of(documents)) < len(documents) and not layout.folds:
        by, by_group = "group", ", by: group"
    if "train" not in files:
        drawn = _ratios(documents, type, by)
        shares = ", ".join(map(str, drawn.ratios))
        how = f"seed: {drawn.seed}, method: {drawn.method}"
        value = f"{{ratios: [{shares}], {how}{by_group}}}"
        if max(drawn.ratios[1:]) > _TEST_SHARES[0]:
            value += "  # the test part is as large as the gate needs"
        return value
    folds = f"fold_files: {layout.folds}, " if layout.folds else ""
    train = [document for document in documents if document.split == "train"]
    units = len(groups_of(train)) if by == "group" else len(train)
    size = max(1, units // 10)
    tail = f"validation_from_train_tail: {size}"
    return f"{{{folds}{tail}{by_group}}}  # check: the end of train, about a tenth"


def _ratios(documents: Sequence[Document], type: str, by: str) -> SplitRatios:
    """The draw with the smallest test share that has enough telling units, else the one with most
    of them; that with the usual tenth where no share has as many as the gate needs.
    """
    enough = _ENOUGH_WITH_MENTIONS if get_kind(type).spans else _ENOUGH
    numbers: list[int] = []
    draws: list[SplitRatios] = []
    for test in _TEST_SHARES:
        shares = (round(1 - _VALIDATION_SHARE - test, 2), _VALIDATION_SHARE, test)
        fields = {"ratios": shares, "seed": 42, "method": "datasets", "by": by}
        draws.append(SplitRatios.model_validate(fields))
        numbers.append(telling_units(assign_splits(documents, draws[-1], None), type))
        if numbers[-1] >= enough:
            return draws[-1]
    most = max(numbers)
    return draws[numbers.index(most)] if most >= UNITS else draws[0]


def telling_units(documents: SplitDocuments, type: str) -> int:
    """How many units of the test part tell a reader from a constant answer, as the gate asks it:
    groups, or documents where the groups are fewer than `UNITS`.

    The commonest labels tell nothing, nor does a text without a mention.
    """
    kind = get_kind(type)
    answer_of = attrgetter("spans" if kind.spans else "labels")
    unknown = _unknown_to_training(documents)
    constant: Any = ()
    if unknown and kind.counted and not kind.spans:
        constant = mode(map(answer_of, unknown))
    telling = [d for d in unknown if answer_of(d) != constant]
    if len(groups_of(unknown)) >= UNITS:
        return len(groups_of(telling))
    return len(telling)


def _unknown_to_training(documents: SplitDocuments) -> list[Document]:
    """The test documents that are no copies of training texts and of no group of training."""
    train, test = documents["train"], documents["test"]
    copies = set(same(readings(test), readings(train)))
    train_groups = groups_of(train)
    new = [document for number, document in enumerate(test) if number not in copies]
    return [document for document in new if document.group not in train_groups]


def gate_remark(layout: Parts, documents: SplitDocuments, type: str) -> list[str]:
    """A line where no reader can pass the gate on the test part, as it is too small, or training
    knows most of it.
    """
    number = telling_units(documents, type)
    if number >= UNITS:
        return []
    test = len(documents["test"])
    known = test - len(_unknown_to_training(documents))
    kind = get_kind(type)
    answers = "other labels than the commonest" if kind.counted else "an answer"
    if kind.spans:
        answers = "mentions"
    texts = f"{number} {plural(number, 'new test text')} with {answers}"
    if known > number and "test" in layout.corpus.files:
        return [
            f"gate: {known} of {test} test texts are copies of training texts, or of groups "
            f"(patients, articles) that training has; that leaves {texts}, and the gate needs "
            f"{UNITS}; draw the splits anew: `files: {{all: [...]}}` and "
            "`splits: {ratios: [0.8, 0.1, 0.1], by: group}`"
        ]
    problem = "too small for any split"
    if "test" in layout.corpus.files:
        problem = "the test files are too small"
    return [f"gate: {problem}: {texts}, and the gate needs {UNITS}; add texts"]
