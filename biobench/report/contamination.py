"""What the report says of test documents that stand in a model's training text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from biobench.report.groups import RunGroup
from biobench.schema.contamination import Contamination

MARK = "†"
"""Beside a score on a test set part of which was in the model's training text."""


def known(group: RunGroup) -> Contamination | None:
    """The worst of what the group's records say, None where they say nothing. Runs of one group share a model."""
    records = [Contamination.model_validate(b.contamination) for b in group.briefs if b.contamination is not None]
    return max(records, key=lambda c: (c.seen, c.test is not None, c.excluded), default=None)


def as_fields(contamination: Contamination | None) -> dict[str, Any] | None:
    """For a row: test documents seen, of how many, their share, and the counts that they come from."""
    if contamination is None:
        return None
    fields: dict[str, Any] = {
        "corpus": contamination.corpus,
        "base": contamination.base,
        "excluded": contamination.excluded,
    }
    fields["measured"] = contamination.test is not None
    if contamination.test is not None:
        test = contamination.test
        fields |= {
            "documents": test.documents,
            "seen": test.seen,
            "share": _share(test.seen, test.documents),
            "exact": test.exact,
            "ngram": test.touched,
            "ngram_share": _share(test.ngrams_seen, test.ngrams),
            "short": test.short,
        }
    return fields


def remark(group: RunGroup) -> list[str]:
    """The footnote on the group's training text, where something is known of it."""
    contamination = known(group)
    return [] if contamination is None else [_words(group, contamination)]


def marked(fields: Mapping[str, Any] | None) -> bool:
    """Whether the score carries the mark."""
    return fields is not None and fields.get("seen", 0) > 0


def _words(group: RunGroup, contamination: Contamination) -> str:
    base = ""
    if contamination.base and contamination.base != "fresh weights":
        base = f"; the text of its base {contamination.base} is not known"
    what, corpus, test = f"{group.model} on {group.task}", contamination.corpus, contamination.test
    if test is None and contamination.excluded:
        return f"{what}: validation and test documents were kept out of its training text '{corpus}'{base}"
    if test is None:
        return (
            f"{what}: its training text '{corpus}' has not been compared with the test documents (`biobench data "
            f"overlap`){base}"
        )
    if not test.seen:
        how = ", from which all of them were kept out" if contamination.excluded else ""
        return f"{what}: none of {test.documents} test documents was found in its training text '{corpus}'{how}{base}"
    return (
        f"{MARK} {what}: {test.seen} of {test.documents} test documents ({100 * test.seen / test.documents:.1f}%) "
        f"share 13 words in a row or all of their text with its training text '{corpus}', {test.exact} of them "
        f"verbatim; {100 * _share(test.ngrams_seen, test.ngrams):.1f}% of all runs of 13 words{base}"
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
