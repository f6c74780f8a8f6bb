"""The footnotes on a row of runs: what of its data, window, seeds and training a reader must know."""

from __future__ import annotations

from collections.abc import Sequence

from biobench.report.conditions import lengths_read
from biobench.report.contamination import remark
from biobench.report.groups import RunGroup
from biobench.schema.kind import traits_of
from biobench.stats import without_failed
from biobench.store import Brief


def footnotes(group: RunGroup, scores: Sequence[float], lost: Sequence[bool], sd: float | None) -> list[str]:
    """scores: of the group's runs, as fractions; lost: which of these runs failed; sd: over the others."""
    first, what, notes = group.briefs[0], f"{group.model} on {group.task}", []
    if group.folds:
        notes.append(
            f"{what}: {len(group.briefs)} of {group.folds} splits of one corpus, a training each; ± is the t interval "
            "corrected for the training documents that they share"
        )
    data = f"{group.task}, source {first.source}"
    problems = tuple(dict.fromkeys(line for brief in group.briefs for line in brief.count_problems))
    if problems:
        notes.append(f"warning: {data}: {len(problems)} counts of the data contradict its spec ({problems[0]})")
    if lacking := first.unexpressed:
        notes.append(
            f"{data}: {sum(lacking.values())} gold mentions of the corpus, {lacking.get('test', 0)} of them in test, "
            "cannot be expressed in its units and tokens and are in no score"
        )
    notes += group.notes
    lengths = ", ".join(map(str, lengths_read(first)))
    if lengths:
        notes.append(f"{what}: over the lengths {lengths}, window {first.max_length}")
    elif first.truncated_documents:
        notes.append(
            f"{what}: {first.truncated_documents} of {first.test_documents} test documents are longer than its window "
            f"of {first.max_length} tokens{_hidden(first)}"
        )
    if sd == 0:
        notes.append(
            f"{what}: {len(group.seeds)} seeds gave exactly the same score, which tells nothing of the spread over "
            "others: no ±, here and in averages over it"
        )
    if any(lost):
        rest = without_failed(scores, lost)
        which = ", ".join(str(seed) for seed, gone in zip(group.seeds, lost, strict=True) if gone)
        notes.append(
            f"{what}: {sum(lost)} of {len(lost)} runs failed (seeds {which}); the mean includes them, ± is about the "
            f"others, whose mean is {100 * sum(rest) / len(rest):.1f}"
        )
    return [*notes, *remark(group)]


def _hidden(brief: Brief) -> str:
    """What the window hides of the gold."""
    if traits_of(brief.type).spans:
        return f"; {brief.lost_gold} gold mentions lie beyond it and count as missed" if brief.lost_gold else ""
    if not brief.ceiling:
        return "; the corpus does not say which labels that hides"
    return (
        f"; {brief.lost_gold} gold labels have no mention in it, the others alone give micro F1 "
        f"{100 * brief.ceiling['micro_f1']:.1f} (no bound: a label can be told without its mention)"
    )
