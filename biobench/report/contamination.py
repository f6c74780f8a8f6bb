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
    found = [Contamination.model_validate(b.contamination) for b in group.briefs if b.contamination is not None]
    return max(found, key=lambda c: (c.seen, c.test is not None, c.excluded), default=None)


def as_fields(held: Contamination | None) -> dict[str, Any] | None:
    """For a row: test documents seen, of how many, their share, and the counts that they come from."""
    if held is None:
        return None
    fields: dict[str, Any] = {"corpus": held.corpus, "base": held.base, "excluded": held.excluded}
    fields["measured"] = held.test is not None
    if held.test is not None:
        test = held.test
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
    held = known(group)
    return [] if held is None else [_words(group, held)]


def marked(fields: Mapping[str, Any] | None) -> bool:
    """Whether the score carries the mark."""
    return fields is not None and fields.get("seen", 0) > 0


def _words(group: RunGroup, held: Contamination) -> str:
    where = f"{group.model} on {group.task}"
    text = f"its training text '{held.corpus}'"
    base = f"; the text of its base {held.base} is not known" if held.base and held.base != "fresh weights" else ""
    if held.test is None:
        if held.excluded:
            return f"{where}: validation and test documents were kept out of {text}{base}"
        return f"{where}: {text} has not been compared with the test documents (`biobench data overlap`){base}"
    test = held.test
    if not test.seen:
        how = ", from which all of them were kept out" if held.excluded else ""
        return f"{where}: none of {test.documents} test documents was found in {text}{how}{base}"
    return (
        f"{MARK} {where}: {test.seen} of {test.documents} test documents ({100 * test.seen / test.documents:.1f}%) "
        f"share 13 words in a row or all of their text with {text}, {test.exact} of them verbatim; "
        f"{100 * _share(test.ngrams_seen, test.ngrams):.1f}% of all runs of 13 words{base}"
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
