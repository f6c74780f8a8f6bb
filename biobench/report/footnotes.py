"""The footnotes on a row of runs: what of its data, window, seeds and training text a reader must
know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biobench.report.groups import RunGroup
from biobench.schema.contamination import Contamination
from biobench.schema.kind import traits_of
from biobench.stats import without_failed

MARK = "†"
"""Beside a score on a test set part of which was in the model's training text."""


def footnotes(
    group: RunGroup,
    scores: Sequence[float],
    lost: Sequence[bool],
    sd: float | None,
    guess: float | None = None,
) -> list[str]:
    """What a reader must know of a row.

    scores: of the group's runs, as fractions. lost: which of these runs failed. sd: over the
    others. guess: what guessing scores, where the model is not above it.
    """
    first, what, notes = group.briefs[0], f"{group.model} on {group.task}", []
    if group.folds:
        notes.append(
            f"{what}: {len(group.briefs)} of {group.folds} splits of one corpus, a training each; "
            f"± is the t interval "
            "corrected for the training documents that they share"
        )
    data = f"{group.task}, source {first.source}"
    hidden = ""
    if traits_of(first.type).spans:
        if first.lost_gold:
            hidden = (
                f"; {first.lost_gold} gold mentions lie beyond it, or have edges that no model "
                f"predicts, and count as missed"
            )
    elif not first.ceiling:
        hidden = "; the corpus does not say which labels that hides"
    else:
        hidden = (
            f"; {first.lost_gold} gold labels have no mention in it, the others alone give micro "
            f"F1 "
            f"{100 * first.ceiling['micro_f1']:.1f} (no bound: a label can be found without its "
            f"mention)"
        )
    author = "its submitter says: " if group.source == "submitted" else ""
    problems = tuple(dict.fromkeys(line for brief in group.briefs for line in brief.count_problems))
    if problems:
        notes.append(
            f"warning: {data}: {len(problems)} counts of the data contradict its spec "
            f"({author}{problems[0]})"
        )
    if lacking := first.unexpressed:
        notes.append(
            f"{data}: {sum(lacking.values())} gold mentions of the corpus, "
            f"{lacking.get('test', 0)} of them in test, "
            "cannot be expressed in its units and tokens, or are dropped by the decoding of its "
            "tags, and are in no score"
        )
    notes += group.notes
    notes += [
        f"{group.model}: {author}{note}"
        for note in dict.fromkeys(note for brief in group.briefs for note in brief.model_notes)
    ]
    if group.lengths:
        notes.append(
            f"{what}: over the lengths {', '.join(map(str, group.lengths))}, window "
            f"{first.max_length}"
        )
    elif first.truncated_documents:
        notes.append(
            f"{what}: {first.truncated_documents} of {first.test_documents} test documents are "
            f"longer than its window "
            f"of {first.max_length} tokens{hidden}"
        )
    elif traits_of(first.type).spans and first.lost_gold:
        notes.append(
            f"{what}: {first.lost_gold} gold mentions have edges that no model predicts (`edges` "
            f"of `biobench data verify`) and count as missed"
        )
    if sd == 0:
        notes.append(
            f"{what}: {len(group.seeds)} seeds gave exactly the same score, which tells nothing "
            f"of the spread over "
            "others: no ±, here and in averages over it"
        )
    if guess is not None:
        notes.append(
            f"{what}: not above guessing (a policy that reads no text scores {100 * guess:.1f})"
        )
    if any(lost):
        rest = without_failed(scores, lost)
        which = f"seed{'s' * (sum(lost) > 1)} " + ", ".join(
            str(seed) for seed, gone in zip(group.seeds, lost, strict=True) if gone
        )
        notes.append(
            f"{what}: {sum(lost)} of {len(lost)} runs failed ({which}); the mean includes them, ± "
            f"is about the "
            f"others, whose mean is {100 * sum(rest) / len(rest):.1f}"
        )
    return [*notes, *remark(group)]


def contamination(group: RunGroup) -> Contamination | None:
    """The worst of what the group's records say of the training text; None where they say
    nothing."""
    records = [
        Contamination.model_validate(b.contamination)
        for b in group.briefs
        if b.contamination is not None
    ]
    return max(records, key=lambda c: (c.seen, c.test is not None, c.excluded), default=None)


def marked(known: Mapping[str, Any] | None) -> bool:
    """Whether the score carries the mark. known: a row's `contamination`."""
    return bool(known and known["test"] and known["test"]["seen"])


def remark(group: RunGroup) -> list[str]:
    """The footnote on the group's training text, where something is known of it."""
    known = contamination(group)
    if known is None:
        return []
    what, corpus, test, base = f"{group.model} on {group.task}", known.corpus, known.test, ""
    if known.base and known.base != "fresh weights":
        base = f"; the text of its base {known.base} is not known"
    if test is None and known.excluded:
        return [
            f"{what}: validation and test documents were excluded from its training text "
            f"'{corpus}'{base}"
        ]
    if test is None:
        unknown = "has not been compared with the test documents (`biobench data overlap`)"
        return [f"{what}: its training text '{corpus}' {unknown}{base}"]
    if not test.seen:
        how = ", from which all of them were excluded" if known.excluded else ""
        return [
            f"{what}: none of {test.documents} test documents was found in its training text "
            f"'{corpus}'{how}{base}"
        ]
    return [
        f"{MARK} {what}: {test.seen} of {test.documents} test documents "
        f"({100 * test.seen / test.documents:.1f}%) "
        f"share 13 words in a row or all of their text with its training text '{corpus}', "
        f"{test.exact} of them "
        f"verbatim; {100 * test.ngrams_seen / max(test.ngrams, 1):.1f}% of all runs of 13 "
        f"words{base}"
    ]
