"""The footnotes on a row of runs: what of its data, window, seeds and training text a reader must
know.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from biobench.reporting.entrants import line_name
from biobench.reporting.groups import RunGroup
from biobench.reporting.row import in_percent
from biobench.schema.contamination import Contamination
from biobench.schema.kind import traits_of
from biobench.stats import without_failed
from biobench.store import Brief

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
    return [
        *_data_notes(group),
        *group.notes,
        *_model_notes(group),
        *_window_notes(group),
        *_score_notes(group, scores, lost, sd, guess),
        *remark(group),
    ]


def recall_note(group: RunGroup, tags: Sequence[str]) -> list[str]:
    """What counts where mentions identify people (tag `deidentification`): how many are found."""
    recalls = group.scores("micro_recall")
    if "deidentification" not in tags or not recalls:
        return []
    return [
        f"{_name(group)}: recall {in_percent(fmean(recalls))} of identifiers with exact "
        f"ends and type; `biobench errors` has leaks by type and documents without one"
    ]


def _data_notes(group: RunGroup) -> Iterator[str]:
    run = group.briefs[0]
    if group.folds:
        yield (
            f"{_name(group)}: {len(group.briefs)} of {group.folds} splits of one corpus, a "
            f"training each; ± is the t interval corrected for the training documents that they "
            f"share"
        )
    data = f"{group.task}, source {run.source}"
    problems = dict.fromkeys(line for brief in group.briefs for line in brief.count_problems)
    if problems:
        yield (
            f"warning: {data}: {len(problems)} counts of the data contradict its spec "
            f"({_author(group)}{next(iter(problems))})"
        )
    if run.unexpressed:
        yield (
            f"{data}: {sum(run.unexpressed.values())} gold mentions of the corpus, "
            f"{run.unexpressed.get('test', 0)} of them in test, cannot be expressed in its units "
            f"and tokens, or are dropped by the decoding of its tags, and are in no score"
        )


def _model_notes(group: RunGroup) -> list[str]:
    notes: dict[str, None] = {}
    for brief in group.briefs:
        for note in brief.model_notes:
            notes[f"{group.model}: {_author(group)}{note}"] = None
    return list(notes)


def _author(group: RunGroup) -> str:
    """Whose word a record's own text is."""
    return "its submitter says: " if group.source == "submitted" else ""


def _window_notes(group: RunGroup) -> Iterator[str]:
    """What of the test documents the model does not read, or cannot answer."""
    run = group.briefs[0]
    name = _name(group)
    if group.lengths:
        lengths = ", ".join(map(str, group.lengths))
        yield f"{name}: over the lengths {lengths}, window {run.max_length}"
    elif run.truncated_documents:
        yield (
            f"{name}: {run.truncated_documents} of {run.test_documents} test documents are longer "
            f"than its window of {run.max_length} tokens{_hidden(run)}"
        )
    elif traits_of(run.type).spans and run.lost_gold:
        yield (
            f"{name}: {run.lost_gold} gold mentions have edges that no model predicts (`edges` "
            f"of `biobench data verify`) and count as missed"
        )


def _hidden(run: Brief) -> str:
    """The gold that lies beyond the window, as the end of a sentence."""
    if traits_of(run.type).spans:
        if not run.lost_gold:
            return ""
        return (
            f"; {run.lost_gold} gold mentions lie beyond it, or have edges that no model "
            f"predicts, and count as missed"
        )
    if not run.ceiling:
        return "; the corpus does not say which labels that hides"
    return f"; {run.lost_gold} gold labels have no mention in it"


def _score_notes(
    group: RunGroup,
    scores: Sequence[float],
    lost: Sequence[bool],
    sd: float | None,
    guess: float | None,
) -> Iterator[str]:
    name = _name(group)
    if sd == 0:
        yield (
            f"{name}: {len(group.seeds)} seeds gave exactly the same score, which tells nothing "
            f"of the spread over others: no ±, here and in averages over it"
        )
    if guess is not None:
        yield f"{name}: not above guessing (a baseline without skill scores {in_percent(guess)})"
    if any(lost):
        seeds = ", ".join(map(str, itertools.compress(group.seeds, lost)))
        plural = "s" if sum(lost) > 1 else ""
        yield (
            f"{name}: {sum(lost)} of {len(lost)} runs failed (seed{plural} {seeds}); the mean "
            f"includes them, ± is about the others, whose mean is "
            f"{in_percent(fmean(without_failed(scores, lost)))}"
        )


def _name(group: RunGroup) -> str:
    return f"{line_name(group.model, group.variant)} on {group.task}"


def contamination(group: RunGroup) -> Contamination | None:
    """The worst of what the group's records say of the training text; None where they say
    nothing."""
    records = []
    for brief in group.briefs:
        if brief.contamination is not None:
            records.append(Contamination.model_validate(brief.contamination))
    return max(
        records,
        key=lambda c: (c.seen, c.test is not None, c.excluded),
        default=None,
    )


def marked(found: Mapping[str, Any] | None) -> bool:
    """Whether the score carries the mark. found: a row's `contamination`."""
    return bool(found and found["test"] and found["test"]["seen"])


def remark(group: RunGroup) -> list[str]:
    """The footnote on the group's training text, where something is known of it."""
    found = contamination(group)
    if found is None:
        return []
    name = _name(group)
    corpus = f"its training text '{found.corpus}'"
    test = found.test
    base = ""
    if found.base and found.base != "fresh weights":
        base = f"; the text of its base {found.base} is not known"
    if test is not None and test.seen:
        return [
            f"{MARK} {name}: {test.seen} of {test.documents} test documents "
            f"({in_percent(test.seen / test.documents)}%) share 13 words in a row or all of their "
            f"text with {corpus}, {test.exact} of them verbatim; "
            f"{in_percent(test.ngrams_seen / max(test.ngrams, 1))}% of all runs of 13 words{base}"
        ]
    if test is not None:
        excluded = ", from which all of them were excluded" if found.excluded else ""
        return [
            f"{name}: none of {test.documents} test documents was found in {corpus}{excluded}{base}"
        ]
    if found.excluded:
        return [f"{name}: validation and test documents were excluded from {corpus}{base}"]
    return [
        f"{name}: {corpus} has not been compared with the test documents "
        f"(`biobench analyze overlap`){base}"
    ]
