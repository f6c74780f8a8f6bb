"""The results as rows: one a model, task and kind of source, with its interval over seeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from biobench.report.averages import suite_averages
from biobench.report.beside import published_rows
from biobench.report.groups import RunGroup, Source, group_runs
from biobench.report.published import PublishedValue, load_published
from biobench.report.rows import METRICS, AverageName, Report, Row
from biobench.report.tasks import TaskInfo, task_infos
from biobench.stats import seed_interval
from biobench.store import Finding, Store

SUBMITTED = "submitted"
"""Folder of a results folder that holds accepted submissions, each a results folder of its own."""


@dataclass(frozen=True, slots=True)
class Results:
    """A results folder read once: from it, reports with any average and filter are quick."""

    groups: tuple[RunGroup, ...]
    infos: Mapping[str, TaskInfo]
    published: tuple[PublishedValue, ...]
    findings: tuple[Finding, ...]


def load(results_dir: str | Path, published_folder: Path | None = None) -> Results:
    """Read the folder's runs, accepted submissions and the published scores.

    Damaged records become findings. Raises SpecError where a shipped spec or published data file is wrong.
    """
    published = load_published(published_folder).values
    scanned = [(source, *store.scan()) for source, store in _stores(Path(results_dir))]
    infos = task_infos([r for _, records, _ in scanned for r in records], published)
    groups = tuple(g for source, records, _ in scanned for g in group_runs(records, infos, source))
    return Results(groups, infos, published, tuple(f for _, _, found in scanned for f in found))


def fingerprint(results_dir: str | Path) -> str:
    """Changes when `load` would read something else from the folder; quick, for caches."""
    return " ".join(store.fingerprint() for _, store in _stores(Path(results_dir)))


def build(
    results: str | Path | Results,
    average: AverageName = "macro",
    *,
    tasks: Collection[str] | None = None,
    suites: Collection[str] | None = None,
    sources: Collection[str] | None = None,
    models: Collection[str] | None = None,
    incomplete: bool = False,
) -> Report:
    """Rows of everything in the results folder and of the published scores that may stand beside `average`.

    tasks, suites, sources, models: keep only these. incomplete: average over the tasks that a model has even
    where its suite is not whole. Raises SpecError where a shipped spec or published data file is wrong.
    """
    held = results if isinstance(results, Results) else load(results)
    infos, groups = held.infos, held.groups
    rows, remarks = run_rows(groups, infos, average)
    rows += ceiling_rows(groups, infos, average)
    beside, about_published = published_rows(held.published, infos, average)
    rows += beside
    order = {task: i for i, task in enumerate(infos)}

    def wanted(task: str, source: str) -> bool:
        return (
            (tasks is None or task in tasks)
            and (suites is None or infos[task].suite in suites)
            and (sources is None or source in sources)
        )

    rows = [r for r in rows if wanted(r.task, r.source) and (models is None or r.model in models)]
    rows.sort(key=lambda r: (order[r.task], r.source, r.model, r.variant))
    means = suite_averages(rows, infos, incomplete=incomplete)
    present = {r.task for r in rows}
    notes = [note for row in rows for note in row.notes]
    notes += [text for source, task, text in remarks if wanted(task, source)]
    notes += [a.text for a in about_published if any(wanted(task, "published") for task in a.tasks)]
    notes += means.notes
    return Report(
        average=average,
        rows=tuple(rows),
        averages=means.rows,
        columns=tuple(info for info in infos.values() if info.id in present),
        notes=tuple(dict.fromkeys(notes)),
        findings=held.findings,
        groups=groups,
    )


def _stores(results_dir: Path) -> list[tuple[Source, Store]]:
    """The folder's own runs, then each accepted submission's."""
    found: list[tuple[Source, Store]] = [("run", Store(results_dir))]
    folder = results_dir / SUBMITTED
    if folder.is_dir():
        found += [("submitted", Store(path)) for path in sorted(folder.iterdir()) if path.is_dir()]
    return found


def metric_of(info: TaskInfo, average: AverageName) -> str:
    """The score that `average` means on this task."""
    return info.paper if average == "paper" else METRICS[average]


def run_rows(
    groups: Sequence[RunGroup], infos: Mapping[str, TaskInfo], average: AverageName
) -> tuple[list[Row], list[tuple[Source, str, str]]]:
    """A row a group, and (source, task, remark) for groups that lack the score."""
    rows: list[Row] = []
    remarks: list[tuple[Source, str, str]] = []
    for group in groups:
        info = infos[group.task]
        metric = metric_of(info, average)
        scores = group.scores(metric)
        if scores is None:
            text = f"{group.model} on {group.task}: some record has no {metric}; `biobench rescore` computes it"
            remarks.append((group.source, group.task, text))
            continue
        first, cut = group.records[0], _cut(group)
        summary = seed_interval(scores)
        interval = summary.interval
        count = len(scores)
        rows.append(
            Row(
                model=group.model,
                task=group.task,
                metric=metric,
                mean=summary.mean,
                sd=summary.sd,
                low=None if interval is None else max(float(interval.low), 0.0),
                high=None if interval is None else min(float(interval.high), 1.0),
                n_seeds=summary.n,
                source=group.source,
                variant=group.variant,
                language=info.language,
                suite=info.suite,
                seeds=group.seeds,
                values=tuple(scores),
                seconds=sum(r.cost.seconds for r in group.records) / count,
                peak_memory_bytes=max(r.cost.peak_memory_bytes for r in group.records),
                truncated_documents=first.windows.truncated_documents,
                lost_gold=first.windows.lost_gold,
                parameters=first.model.parameters,
                notes=(*group.notes, *cut),
            )
        )
    return rows, remarks


def _cut(group: RunGroup) -> list[str]:
    """The footnote on what the window cut off."""
    record = group.records[0]
    windows = record.windows
    if not windows.truncated_documents:
        return []
    text = (
        f"{group.model} on {group.task}: {windows.truncated_documents} of {record.task.test_documents} test documents "
        f"are longer than its window of {windows.max_length} tokens"
    )
    if windows.lost_gold:
        text += f"; {windows.lost_gold} gold mentions lie beyond it and count as missed"
    return [text]


def ceiling_rows(groups: Sequence[RunGroup], infos: Mapping[str, TaskInfo], average: AverageName) -> list[Row]:
    """What an oracle reaches through the windows of the runs, where that is below 1; one row a task and window.

    Tokenizers cut at different places; the row holds the highest of the ceilings.
    """
    best: dict[tuple[str, int], float] = {}
    for group in groups:
        metric = metric_of(infos[group.task], average)
        for record in group.records:
            reached = record.windows.ceiling.get(metric)
            if reached is not None and record.limit is None:
                at = (group.task, record.windows.max_length)
                best[at] = max(best.get(at, 0.0), reached)
    return [
        Row(
            model=f"oracle through {window} tokens",
            task=task,
            metric=metric_of(infos[task], average),
            mean=value,
            sd=None,
            low=None,
            high=None,
            n_seeds=0,
            source="ceiling",
            language=infos[task].language,
            suite=infos[task].suite,
        )
        for (task, window), value in sorted(best.items())
        if value < 1
    ]
