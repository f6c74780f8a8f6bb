"""Baselines, oracles and verdicts of the gate beside the results: rows, and which runs are not
ranked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biobench.core.grouped import grouped
from biobench.reporting.groups import RunGroup, Source
from biobench.reporting.row import Row, in_percent
from biobench.reporting.tasks import NEEDLE, Infos, TaskInfo
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
    accepted: list[RunGroup] = []
    refusals: list[Refusal] = []
    remarks: dict[Remark, None] = {}
    for group in groups:
        verdict = verdict_on(group, baselines)
        task = group.task
        if verdict is not None and not verdict.passed:
            refusals.append(Refusal(group, verdict.reasons))
            continue
        accepted.append(group)
        if verdict is None:
            advice = f"`biobench tasks gate {task}` gives one"
            text = f"{task}: no gate verdict on the data of its runs; {advice}"
            remarks[group.source, task, text] = None
        elif verdict.flags:
            text = f"the gate flags {task}: {'; '.join(verdict.flags)}"
            remarks[group.source, task, text] = None
    return tuple(accepted), tuple(refusals), (*refusal_remarks(refusals), *remarks)


def refusal_remarks(refusals: Sequence[Refusal]) -> list[Remark]:
    """For each source and task, how many runs are left out, why, and what to do about it."""
    refused = grouped(refusals, lambda refusal: (refusal.group.source, refusal.group.task))
    remarks: list[Remark] = []
    for (source, task), of_task in refused.items():
        runs = sum(len(refusal.group.briefs) for refusal in of_task)
        text = (
            f"{task} fails its gate, so its runs ({runs}) are neither shown nor averaged: "
            f"{'; '.join(of_task[-1].reasons)}; {AFTER_FAILED_GATE}"
        )
        remarks.append((source, task, text))
    return remarks


def verdict_on(group: RunGroup, baselines: Sequence[BaselineRecord]) -> BaselineRecord | None:
    """The verdict on the group's spec and data, else the newest on its data (see
    `store.baselines.find_baseline`).
    """
    brief = group.briefs[0]
    on_spec = [record for record in baselines if record.task_hash == brief.spec]
    return latest(on_spec, group.task, brief.data) or latest(baselines, group.task, brief.data)


def baseline_rows(
    records: Sequence[BaselineRecord],
    groups: Sequence[RunGroup],
    infos: Infos,
    metrics: Mapping[str, str],
) -> list[Row]:
    """A row a policy of each task; metrics: task -> the score to show. Policies without that score
    have none, nor has the one by ids and order.
    """
    rows = []
    for record in shown(records, groups, infos):
        info = infos[record.task]
        metric = metrics[record.task]
        for policy in record.policies:
            if metric in policy.scores and policy.name != ORDER:
                source = POLICY_SOURCES[policy.kind]
                rows.append(_policy_row(policy.name, info, metric, policy.scores[metric], source))
    return rows


def oracle_rows(groups: Sequence[RunGroup], infos: Infos, metrics: Mapping[str, str]) -> list[Row]:
    """What an oracle reaches through the windows of the runs, where that is below 1; one row a task
    and window.

    Tokenizers cut at different places; the row holds the highest score. Labels of whole documents
    have no row: a model may tell a label without seeing its mention, so what the window shows
    bounds nothing.
    """
    best: dict[tuple[str, int], float] = defaultdict(float)
    for group in groups:
        metric = metrics[group.task]
        if not traits_of(group.briefs[0].type).spans or group.departures.partial:
            continue
        for brief in group.briefs:
            if metric in brief.ceiling:
                task_and_window = group.task, brief.max_length
                best[task_and_window] = max(best[task_and_window], brief.ceiling[metric])
    rows = []
    for (task, window), reached in sorted(best.items()):
        if reached < 1:
            name = f"oracle through {window} tokens"
            rows.append(_policy_row(name, infos[task], metrics[task], reached, "oracle"))
    return rows


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
    for row in sorted(everything, key=lambda row: row.mean):
        if row.source == "baseline":
            best[row.task, row.metric] = row
    below: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for row in rows:
        bar = best.get((row.task, row.metric))
        is_compared = row.source in MODELS and not row.partial  # the bar saw all training texts
        if bar is None or not is_compared or get_metric(row.metric).falls:
            continue
        if row.mean < bar.mean:
            bar_words = f"{in_percent(bar.mean)} ({bar.model})"
            text = f"{row.task} {in_percent(row.mean)}, below the baseline {bar_words}"
            below[row.name].append((row.mean / bar.mean, text))
    notes = []
    for model, texts in sorted(below.items(), key=lambda item: min(item[1])):
        tasks = "; ".join(text for _, text in sorted(texts))
        notes.append(f"{model} learnt less than a baseline: {tasks}")
    return notes


def no_skill(records: Sequence[BaselineRecord]) -> dict[tuple[str, str], float]:
    """(task, metric) -> the best score of a policy that does not look at the text, over the records
    of the task. On a needle no policy has skill: what looks at the text is at chance there.
    """
    best: dict[tuple[str, str], float] = defaultdict(float)
    for record in records:
        skilled = () if record.type == NEEDLE else SKILLED
        for policy in record.policies:
            if policy.kind != "floor" or policy.name in skilled:
                continue
            for metric, score in policy.scores.items():
                best[record.task, metric] = max(score, best[record.task, metric])
    return dict(best)


def shown(
    records: Sequence[BaselineRecord], groups: Sequence[RunGroup], infos: Infos
) -> list[BaselineRecord]:
    """One record a task: on the data of its runs where it has runs, else of the shipped spec, else
    the newest.
    """
    data: set[tuple[str, str]] = set()
    for group in groups:
        data.update((group.task, brief.data) for brief in group.briefs)

    def rank(record: BaselineRecord) -> tuple[bool, bool, str]:
        is_of_runs = (record.task, record.data_hash) in data
        is_shipped = record.task_hash in infos[record.task].hashes.values()
        return is_of_runs, is_shipped, record.made

    by_task = grouped(records, lambda record: record.task)
    return [max(of_task, key=rank) for of_task in by_task.values()]
