"""Baselines, oracles and verdicts of the gate beside the results: rows, and which runs are not ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biobench.report.groups import RunGroup, Source
from biobench.report.row import Row
from biobench.report.tasks import TaskInfo
from biobench.schema.baseline import LENGTH, ORDER, BaselineRecord
from biobench.schema.kind import is_error, traits_of
from biobench.store.floors import latest

Text = tuple[Source, str, str]
"""(source of the runs, task, remark)."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Runs that are neither shown nor compared because their task fails its gate on their data."""

    group: RunGroup
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgedRuns:
    """Runs by the gate's verdict on their task and data.

    groups: those that may be shown. refused: tasks all of whose runs the gate refuses; they stay out of every
    suite average. remarks: why runs are refused, what the gate flags, and which have no verdict.
    refusals: the refused runs.
    """

    groups: tuple[RunGroup, ...]
    refused: frozenset[str]
    remarks: tuple[Text, ...]
    refusals: tuple[Refusal, ...] = ()


def judge(groups: Sequence[RunGroup], floors: Sequence[BaselineRecord]) -> JudgedRuns:
    """Keep the runs whose task passes its gate on their data, and those that no gate has looked at."""
    kept: list[RunGroup] = []
    failed: dict[tuple[Source, str], BaselineRecord] = {}
    unjudged: dict[tuple[Source, str], None] = {}
    flagged: dict[tuple[Source, str], tuple[str, ...]] = {}
    refusals: list[Refusal] = []
    for group in groups:
        verdict = verdict_on(group, floors)
        if verdict is not None and not verdict.passed:
            failed[group.source, group.task] = verdict
            refusals.append(Refusal(group, verdict.reasons))
            continue
        kept.append(group)
        if verdict is None:
            unjudged[group.source, group.task] = None
        elif verdict.flags:
            flagged[group.source, group.task] = verdict.flags
    remarks: list[Text] = [
        (
            source,
            task,
            f"{task} fails its gate, so its runs are neither shown nor averaged: {'; '.join(v.reasons)}",
        )
        for (source, task), v in failed.items()
    ]
    remarks += [
        (
            source,
            task,
            f"{task}: no gate verdict on the data of its runs; `biobench tasks gate {task}` gives one",
        )
        for source, task in unjudged
    ]
    remarks += [
        (source, task, f"the gate flags {task}: {'; '.join(reasons)}") for (source, task), reasons in flagged.items()
    ]
    refused = frozenset(task for _, task in failed) - {g.task for g in kept}
    return JudgedRuns(tuple(kept), refused, tuple(remarks), tuple(refusals))


def verdict_on(group: RunGroup, floors: Sequence[BaselineRecord]) -> BaselineRecord | None:
    """The verdict on the group's spec and data, else the newest on its data (see `store.floors.find_floor`)."""
    first = group.briefs[0]
    matching = [r for r in floors if (r.task, r.task_hash, r.data_hash) == (group.task, first.spec, first.data)]
    return matching[0] if matching else latest(floors, group.task, first.data)


MODELS: tuple[Source, ...] = ("run", "submitted", "external")
"""Sources of rows that are models' own results."""

#: Policies that look at the text, its length or the order of the documents, and so may have skill.
SKILLED = ("bag of words", "training dictionary", "length difference", "token overlap", "option words", LENGTH, ORDER)


def baseline_rows(
    records: Sequence[BaselineRecord],
    groups: Sequence[RunGroup],
    infos: Mapping[str, TaskInfo],
    metrics: Mapping[str, str],
) -> list[Row]:
    """A row a policy of each task; metrics: task -> the score to show. Policies without that score have none, nor
    has the one by ids and order."""
    rows = []
    for record in shown(records, groups, infos):
        info, metric = infos[record.task], metrics[record.task]
        for policy in record.policies:
            if metric in policy.scores and policy.name != ORDER:
                source: Source = "baseline" if policy.kind == "floor" else "oracle"
                of = {"source": source, "language": info.language, "suite": info.suite}
                rows.append(Row(policy.name, record.task, metric, policy.scores[metric], **of))  # type: ignore[arg-type]
    return rows


def oracle_rows(groups: Sequence[RunGroup], infos: Mapping[str, TaskInfo], metrics: Mapping[str, str]) -> list[Row]:
    """What an oracle reaches through the windows of the runs, where that is below 1; one row a task and window.

    Tokenizers cut at different places; the row holds the highest score. Labels of whole documents have no row: a
    model may tell a label without seeing its mention, so what the window shows bounds nothing.
    """
    best: dict[tuple[str, int], float] = {}
    for group in groups:
        for brief in group.briefs:
            reached = brief.ceiling.get(metrics[group.task])
            if reached is not None and brief.limit is None and brief.split == "test" and traits_of(brief.type).spans:
                at = (group.task, brief.max_length)
                best[at] = max(best.get(at, 0.0), reached)
    return [
        Row(
            model=f"oracle through {window} tokens",
            task=task,
            metric=metrics[task],
            mean=value,
            source="oracle",
            language=infos[task].language,
            suite=infos[task].suite,
        )
        for (task, window), value in sorted(best.items())
        if value < 1
    ]


def below_baselines(rows: Sequence[Row], everything: Sequence[Row]) -> list[str]:
    """A note a model of `rows` that scores below the best baseline of a task; these are those of `everything`."""
    best: dict[tuple[str, str], Row] = {}
    for row in everything:
        key = (row.task, row.metric)
        if row.source == "baseline" and (key not in best or row.mean > best[key].mean):
            best[key] = row
    below: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        bar = best.get((row.task, row.metric))
        if row.source in MODELS and bar is not None and row.mean < bar.mean and not is_error(row.metric):
            name = f"{row.model} [{row.variant}]" if row.variant else row.model
            below.setdefault((name, bar.model), []).append(row.task)
    return [
        f"{model} scores below the baseline {bar}, which reads the whole training split, on {', '.join(tasks)}"
        for (model, bar), tasks in below.items()
    ]


def no_skill(records: Sequence[BaselineRecord]) -> dict[tuple[str, str], float]:
    """(task, metric) -> the best score of a policy that does not look at the text, over the records of the task."""
    best: dict[tuple[str, str], float] = {}
    for record in records:
        for policy in record.policies:
            if policy.kind == "floor" and policy.name not in SKILLED:
                for metric, score in policy.scores.items():
                    best[record.task, metric] = max(score, best.get((record.task, metric), 0.0))
    return best


def shown(
    records: Sequence[BaselineRecord], groups: Sequence[RunGroup], infos: Mapping[str, TaskInfo]
) -> list[BaselineRecord]:
    """One record a task: on the data of its runs where it has runs, else of the shipped spec, else the newest."""
    data = {(g.task, b.data) for g in groups for b in g.briefs}
    best: dict[str, tuple[tuple[bool, bool, str], BaselineRecord]] = {}
    for r in records:
        rank = ((r.task, r.data_hash) in data, r.task_hash in infos[r.task].hashes.values(), r.made)
        if r.task not in best or rank > best[r.task][0]:
            best[r.task] = (rank, r)
    return [record for _, record in best.values()]
