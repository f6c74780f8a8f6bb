"""The footnotes on a row of runs: what of its data, window, seeds and training a reader must know."""

from __future__ import annotations

from collections.abc import Sequence

from biobench.report.conditions import lengths_read
from biobench.report.contamination import remark
from biobench.report.groups import RunGroup
from biobench.schema.kind import traits_of
from biobench.stats import without_failed


def footnotes(group: RunGroup, scores: Sequence[float], lost: Sequence[bool], sd: float | None) -> list[str]:
    """scores: of the group's runs, as fractions; lost: which of these runs failed; sd: over the others."""
    return [
        *_folds(group),
        *_about_data(group),
        *group.notes,
        *_cut(group),
        *_equal(group, sd),
        *_failed(group, scores, lost),
        *remark(group),
    ]


def _folds(group: RunGroup) -> list[str]:
    """The footnote on runs that are splits."""
    if not group.folds:
        return []
    return [
        f"{group.model} on {group.task}: {len(group.briefs)} of {group.folds} splits of one corpus, a training each; ± "
        "is the t interval corrected for the training documents that they share"
    ]


def _about_data(group: RunGroup) -> list[str]:
    """A warning where the data are not what the spec counts, and the number of mentions that are in no score."""
    notes: list[str] = []
    first = group.briefs[0]
    what = {"task": group.task, "source": first.source}
    problems = tuple(dict.fromkeys(line for brief in group.briefs for line in brief.count_problems))
    if problems:
        form = "warning: {task}, source {source}: {count} counts of the data contradict its spec ({first})"
        notes.append(form.format(**what, count=len(problems), first=problems[0]))
    if first.unexpressed:
        form = (
            "{task}, source {source}: {count} gold mentions of the corpus, {test} of them in test, cannot be expressed "
            "in its units and tokens and are in no score"
        )
        numbers = {"count": sum(first.unexpressed.values()), "test": first.unexpressed.get("test", 0)}
        notes.append(form.format(**what, **numbers))
    return notes


def _equal(group: RunGroup, sd: float | None) -> list[str]:
    """The footnote on seeds of equal scores, whose row has no interval (`stats.seed_interval`)."""
    if sd != 0:
        return []
    return [
        f"{group.model} on {group.task}: {len(group.seeds)} seeds gave exactly the same score, which tells nothing of "
        "the spread over others: no ±, here and in averages over it"
    ]


def _failed(group: RunGroup, scores: Sequence[float], lost: Sequence[bool]) -> list[str]:
    """The footnote on failed runs."""
    if not any(lost):
        return []
    rest = without_failed(scores, lost)
    which = ", ".join(str(seed) for seed, gone in zip(group.seeds, lost, strict=True) if gone)
    return [
        f"{group.model} on {group.task}: {sum(lost)} of {len(lost)} runs failed (seeds {which}); the mean includes "
        f"them, ± is about the others, whose mean is {100 * sum(rest) / len(rest):.1f}"
    ]


def _cut(group: RunGroup) -> list[str]:
    """The footnote on what the window cut off; of needle runs, the lengths that their score is over."""
    brief = group.briefs[0]
    read = ", ".join(map(str, lengths_read(brief)))
    if read:
        return [f"{group.model} on {group.task}: over the lengths {read}, window {brief.max_length}"]
    if not brief.truncated_documents:
        return []
    lost = ""
    if traits_of(brief.type).spans:
        if brief.lost_gold:
            lost = f"; {brief.lost_gold} gold mentions lie beyond it and count as missed"
    elif not brief.ceiling:
        lost = "; the corpus does not say which labels that hides"
    else:
        lost = (
            f"; {brief.lost_gold} gold labels have no mention in it, the others alone give micro F1 "
            f"{100 * brief.ceiling['micro_f1']:.1f} (no ceiling: a label can be told without its mention)"
        )
    return [
        f"{group.model} on {group.task}: {brief.truncated_documents} of {brief.test_documents} test documents are "
        f"longer than its window of {brief.max_length} tokens{lost}"
    ]
