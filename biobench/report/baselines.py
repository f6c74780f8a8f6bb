"""Baselines, oracles and verdicts of the gate beside the results: rows, and which runs are not
ranked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biobench.report.groups import RunGroup, Source
from biobench.report.row import Row
from biobench.report.tasks import NEEDLE, TaskInfo
from biobench.schema.baseline import AFTER_FAILED_GATE, ORDER, SKILLED, BaselineRecord
from biobench.schema.kind import get_metric, traits_of
from biobench.store.baselines import latest

Remark = tuple[Source, str, str]
"""(source of the runs, task, words)."""
MODELS: tuple[Source, ...] = ("run", "submitted", "external")
"""Sources of rows that are models' own results."""

POLICY_SOURCES: dict[str, Source] = {"floor": "baseline", "ceiling": "oracle"}
"""A stored policy's kind, as it is spelled on disk -> the source of its rows."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Runs that are neither shown nor compared because their task fails its gate on their data."""

    group: RunGroup
    reasons: tuple[str, ...]


def judge(
    groups: Sequence[RunGroup], baselines: Sequence[BaselineRecord]
) -> tuple[tuple[RunGroup, ...], tuple[Refusal, ...], tuple[Remark, ...]]:
    """The runs whose task passes its gate on their data or has none, those that it refuses, and
    remarks on both.
    """
    kept: list[RunGroup] = []
    refusals: list[Refusal] = []
    others: dict[tuple[Source, str], str] = {}
    for group in groups:
        verdict, task, place = verdict_on(group, baselines), group.task, (group.source, group.task)
        if verdict is None:
            others[place] = (
                f"{task}: no gate verdict on the data of its runs; `biobench tasks gate {task}` "
                f"gives one"
            )
        elif not verdict.passed:
            refusals.append(Refusal(group, verdict.reasons))
            continue
        elif verdict.flags:
            others[place] = f"the gate flags {task}: {'; '.join(verdict.flags)}"
        kept.append(group)
    remarks = [(*place, text) for place, text in others.items()]
    return tuple(kept), tuple(refusals), (*refusal_remarks(refusals), *remarks)


def refusal_remarks(refusals: Sequence[Refusal]) -> list[Remark]:
    """For each source and task, how many runs are left out, why, and what to do about it."""
    runs: Counter[tuple[Source, str]] = Counter()
    reasons: dict[tuple[Source, str], tuple[str, ...]] = {}
    for refusal in refusals:
        place = (refusal.group.source, refusal.group.task)
        runs[place] += len(refusal.group.briefs)
        reasons[place] = refusal.reasons
    remarks: list[Remark] = []
    for (source, task), count in runs.items():
        text = (
            f"{task} fails its gate, so its runs ({count}) are neither shown nor averaged: "
            f"{'; '.join(reasons[source, task])}; {AFTER_FAILED_GATE}"
        )
        remarks.append((source, task, text))
    return remarks


def verdict_on(group: RunGroup, baselines: Sequence[BaselineRecord]) -> BaselineRecord | None:
    """The verdict on the group's spec and data, else the newest on its data (see
    `store.baselines.find_baseline`).
    """
    first = group.briefs[0]
    matching = [
        r
        for r in baselines
        if (r.task, r.task_hash, r.data_hash) == (group.task, first.spec, first.data)
    ]
    return matching[0] if matching else latest(baselines, group.task, first.data)


def baseline_rows(
    records: Sequence[BaselineRecord],
    groups: Sequence[RunGroup],
    infos: Mapping[str, TaskInfo],
    metrics: Mapping[str, str],
) -> list[Row]:
    """A row a policy of each task; metrics: task -> the score to show. Policies without that score
    have none, nor has the one by ids and order.
    """
    return [
        _policy_row(
            policy.name,
            infos[record.task],
            metric,
            policy.scores[metric],
            POLICY_SOURCES[policy.kind],
        )
        for record in shown(records, groups, infos)
        for metric in [metrics[record.task]]
        for policy in record.policies
        if metric in policy.scores and policy.name != ORDER
    ]


def oracle_rows(
    groups: Sequence[RunGroup], infos: Mapping[str, TaskInfo], metrics: Mapping[str, str]
) -> list[Row]:
    """What an oracle reaches through the windows of the runs, where that is below 1; one row a task
    and window.

    Tokenizers cut at different places; the row holds the highest score. Labels of whole documents
    have no row: a model may tell a label without seeing its mention, so what the window shows
    bounds nothing.
    """
    best: dict[tuple[str, int], float] = {}
    for group in groups:
        for brief in group.briefs:
            reached = brief.ceiling.get(metrics[group.task])
            if (
                reached is not None
                and brief.limit is None
                and brief.split == "test"
                and traits_of(brief.type).spans
            ):
                at = (group.task, brief.max_length)
                best[at] = max(best.get(at, 0.0), reached)
    return [
        _policy_row(f"oracle through {window} tokens", infos[task], metrics[task], value, "oracle")
        for (task, window), value in sorted(best.items())
        if value < 1
    ]


def _policy_row(name: str, info: TaskInfo, metric: str, score: float, source: Source) -> Row:
    return Row(
        name, info.id, metric, score, source=source, language=info.language, suite=info.suite
    )


def below_baselines(rows: Sequence[Row], everything: Sequence[Row]) -> list[str]:
    """A note a model of `rows` that scores below the best baseline of a task; these are those of
    `everything`.

    Models with the least of a baseline's score come first.
    """
    best: dict[tuple[str, str], Row] = {}
    for row in everything:
        key = (row.task, row.metric)
        if row.source == "baseline" and (key not in best or row.mean > best[key].mean):
            best[key] = row
    below: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        bar = best.get((row.task, row.metric))
        if (
            row.source in MODELS
            and bar is not None
            and not get_metric(row.metric).falls
            and row.mean < bar.mean
        ):
            text = (
                f"{row.task} {100 * row.mean:.1f}, below the baseline {100 * bar.mean:.1f} "
                f"({bar.model})"
            )
            below.setdefault(row.name, []).append((row.mean / bar.mean, text))
    return [
        f"{model} learnt less than a baseline: {'; '.join(text for _, text in sorted(texts))}"
        for model, texts in sorted(below.items(), key=lambda item: min(item[1]))
    ]


def no_skill(records: Sequence[BaselineRecord]) -> dict[tuple[str, str], float]:
    """(task, metric) -> the best score of a policy that does not look at the text, over the records
    of the task. On a needle no policy has skill: what looks at the text is at chance there.
    """
    best: dict[tuple[str, str], float] = {}
    for record in records:
        skilled = () if record.type == NEEDLE else SKILLED
        for policy in record.policies:
            if policy.kind == "floor" and policy.name not in skilled:
                for metric, score in policy.scores.items():
                    best[record.task, metric] = max(score, best.get((record.task, metric), 0.0))
    return best


def shown(
    records: Sequence[BaselineRecord], groups: Sequence[RunGroup], infos: Mapping[str, TaskInfo]
) -> list[BaselineRecord]:
    """One record a task: on the data of its runs where it has runs, else of the shipped spec, else
    the newest.
    """
    data = {(g.task, b.data) for g in groups for b in g.briefs}
    best: dict[str, tuple[tuple[bool, bool, str], BaselineRecord]] = {}
    for r in records:
        rank = ((r.task, r.data_hash) in data, r.task_hash in infos[r.task].hashes.values(), r.made)
        if r.task not in best or rank > best[r.task][0]:
            best[r.task] = (rank, r)
    return [record for _, record in best.values()]
