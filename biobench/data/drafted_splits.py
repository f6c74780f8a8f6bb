"""The `splits` of a new task: a test part that the gate can judge, where there is text enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from biobench.core.text import plural
from biobench.data.checks.similar import normalised
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


def drafted_splits(parts: Parts, documents: Sequence[Document], type: str) -> str:
    """The value of `splits`, by groups where some group has several documents.

    Files of splits stay as they are; of files without any, the test part is the smallest on which
    the gate can judge a task of this type.
    """
    files = parts.corpus.files
    if "validation" in files:
        return "official"
    grouped = len({d.group for d in documents}) < len(documents) and not parts.folds
    by_group = ", by: group" if grouped else ""
    if "train" not in files:
        drawn = _ratios(documents, type, grouped=grouped)
        shares = ", ".join(map(str, drawn.ratios))
        return f"{{ratios: [{shares}], seed: {drawn.seed}, method: {drawn.method}{by_group}}}"
    folds = f"fold_files: {parts.folds}, " if parts.folds else ""
    train = {d.group if grouped else d.id for d in documents if d.split == "train"}
    carve = f"validation_from_train_tail: {max(1, len(train) // 10)}"
    return f"{{{folds}{carve}{by_group}}}  # check: the end of train, about a tenth"


def _ratios(documents: Sequence[Document], type: str, *, grouped: bool) -> SplitRatios:
    """The draw with the smallest test share that has enough telling units, else the one with most
    of them; that with the usual tenth where no share has as many as the gate needs.
    """
    enough = _ENOUGH_WITH_MENTIONS if get_kind(type).spans else _ENOUGH
    candidates: list[tuple[int, SplitRatios]] = []
    for test in _TEST_SHARES:
        train = round(1 - _VALIDATION_SHARE - test, 2)
        drawn = SplitRatios(
            ratios=(train, _VALIDATION_SHARE, test),
            seed=42,
            method="datasets",
            by="group" if grouped else "document",
        )
        number = telling_units(assign_splits(documents, drawn, None), type)
        if number >= enough:
            return drawn
        candidates.append((number, drawn))
    number, drawn = max(candidates, key=lambda candidate: candidate[0])
    return drawn if number >= UNITS else candidates[0][1]


def telling_units(documents: SplitDocuments, type: str) -> int:
    """How many units of the test part tell a reader from a constant answer, as the gate asks it:
    groups, or documents where the groups are fewer than `UNITS`.

    Copies of training texts and groups that training has too tell nothing, nor do the commonest
    labels, or texts without a mention.
    """
    trained_groups = {d.group for d in documents["train"]}
    trained_texts = {normalised(d.reading) for d in documents["train"]}
    fresh: list[Document] = []
    for document in documents["test"]:
        is_copy = normalised(document.reading) in trained_texts
        if not is_copy and document.group not in trained_groups:
            fresh.append(document)
    kind = get_kind(type)
    constant = Counter(d.labels for d in fresh).most_common(1)
    telling = fresh
    if kind.spans:
        telling = [d for d in fresh if d.spans]
    elif kind.counted and constant:
        telling = [d for d in fresh if d.labels != constant[0][0]]
    if len({d.group for d in fresh}) >= UNITS:
        return len({d.group for d in telling})
    return len(telling)


def gate_remark(documents: SplitDocuments, type: str) -> list[str]:
    """A line where no reader can pass the gate on the test part, as it is too small."""
    number = telling_units(documents, type)
    if number >= UNITS:
        return []
    telling = "other labels than the commonest"
    if get_kind(type).spans:
        telling = "mentions"
    elif not get_kind(type).counted:
        telling = "an answer"
    texts = plural(number, "new test text")
    return [
        f"gate: too small for any split: {number} {texts} with {telling}, and the gate needs "
        f"{UNITS}; add texts"
    ]
