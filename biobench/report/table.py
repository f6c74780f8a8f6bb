"""The results as rows: one a model, task and kind of source, with its interval over seeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biobench.report.averages import costs_of, suite_averages
from biobench.report.contamination import as_fields, known
from biobench.report.details.footnotes import footnotes
from biobench.report.floors import Refusal, Text, below_floors, floor_infos, floor_rows, judge, no_skill
from biobench.report.groups import RunGroup, Source, apart, group_runs
from biobench.report.literature.beside import (
    Remark,
    likely_note,
    other_scores,
    printed_means,
    printed_note,
    published_rows,
)
from biobench.report.literature.comparability import deviation_notes
from biobench.report.literature.experiments import PublishedExperiments, experiments_for, experiments_state, of_suites
from biobench.report.literature.published import PrintedAverage, PublishedValue, published_for, published_state
from biobench.report.rows import METRICS, AverageName, Report, Row
from biobench.report.tasks import TaskInfo, task_infos
from biobench.schema.floor import FloorRecord
from biobench.schema.kind import KINDS, has_f1, traits_of
from biobench.stats import SeedSummary, seed_intervals, without_failed
from biobench.store import Store, UnusableFile
from biobench.store.floors import floors_fingerprint, scan_floors
from biobench.store.store import paused_collector

LOWEST = {"pearson": -1.0, "spearman": -1.0}
"""Scores that may lie below 0, and what they cannot pass."""
SUBMITTED = "submitted"
"""Folder of a results folder that holds accepted submissions, each a results folder of its own."""


@dataclass(frozen=True, slots=True)
class Results:
    """A results folder read once: from it, reports with any average and filter are quick.

    groups: the runs that the gate does not refuse. refused: tasks whose runs it does; judged: its remarks;
    refusals: the runs that it refuses. contents: what `contents` gave when the folder was read.
    """

    groups: tuple[RunGroup, ...]
    infos: Mapping[str, TaskInfo]
    published: tuple[PublishedValue, ...]
    findings: tuple[UnusableFile, ...]
    floors: tuple[FloorRecord, ...] = ()
    refused: frozenset[str] = frozenset()
    judged: tuple[Text, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    experiments: tuple[PublishedExperiments, ...] = ()
    printed: tuple[PrintedAverage, ...] = ()
    contents: str = ""
    _rows: dict[AverageName, _Rows] = field(default_factory=dict, repr=False, compare=False)
    pairs: dict[tuple[Any, ...], int | None] = field(default_factory=dict, repr=False, compare=False)
    """What `comparison.placing` has worked out: pair and what it was asked on -> who is ahead."""

    def rows(self, average: AverageName) -> _Rows:
        """All rows of this average, computed once."""
        if average not in self._rows:
            with paused_collector():
                self._rows[average] = self._computed(average)
        return self._rows[average]

    def _computed(self, average: AverageName) -> _Rows:
        rows, remarks = run_rows(self.groups, self.infos, average, no_skill(self.floors))
        rows += ceiling_rows(self.groups, self.infos, average)
        metrics = {task: metric_of(info, average) for task, info in self.infos.items()}
        rows += floor_rows(self.floors, self.groups, self.infos, metrics)
        beside, about_published = published_rows(self.published, self.infos, average)
        order = {task: i for i, task in enumerate(self.infos)}
        rows = sorted([*rows, *beside], key=lambda r: (order[r.task], r.source, r.model, r.variant))
        return _Rows(tuple(rows), (*self.judged, *remarks), tuple(about_published))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows in their order; remarks: (source, task, text); published: footnotes about published values."""

    rows: tuple[Row, ...]
    remarks: tuple[tuple[Source, str, str], ...]
    published: tuple[Remark, ...]


def load(results_dir: str | Path) -> Results:
    """Read the folder's runs, accepted submissions, the gate's floors and verdicts, and the published scores.

    A verdict on a submission's data is this folder's own. Damaged records become findings. Raises SpecError
    where a shipped spec or published data file is wrong.
    """
    # tens of thousands of small objects, none of them in a circle: the collector would go over them again and again
    with paused_collector():
        return _load(results_dir)


def _load(results_dir: str | Path) -> Results:
    published, printed = published_for(Path(results_dir))
    scanned = [(source, store, *store.survey()) for source, store in _stores(Path(results_dir))]
    infos = task_infos([b for _, _, briefs, *_ in scanned for b in briefs], published)
    groups = apart(g for source, store, briefs, *_ in scanned for g in group_runs(briefs, infos, store, source))
    floors, damaged = scan_floors(results_dir)
    infos |= floor_infos(floors, infos)
    judged = judge(groups, floors)
    return Results(
        groups=judged.groups,
        infos=infos,
        published=published,
        printed=printed,
        findings=(*(f for *_, problems, _ in scanned for f in problems), *damaged),
        floors=tuple(floors),
        refused=judged.refused,
        judged=judged.remarks,
        refusals=judged.refusals,
        experiments=experiments_for(Path(results_dir)),
        contents=" ".join(state for *_, state in scanned),
    )


def fingerprint(results_dir: str | Path) -> str:
    """Changes when `load` would read something else from the folder; quick, for caches."""
    folder = Path(results_dir)
    stores = [store.fingerprint() for _, store in _stores(folder)]
    return " ".join([*stores, floors_fingerprint(results_dir), published_state(folder), experiments_state(folder)])


def contents(results_dir: str | Path) -> str:
    """As `fingerprint`, and for records that something else than BioBench wrote over; looks at every file."""
    return " ".join(store.contents() for _, store in _stores(Path(results_dir)))


def build(
    results: str | Path | Results,
    average: AverageName = "macro",
    *,
    tasks: Collection[str] | None = None,
    suites: Collection[str] | None = None,
    sources: Collection[str] | None = None,
    models: Collection[str] | None = None,
    incomplete: bool = False,
    weights: Mapping[str, float] | None = None,
) -> Report:
    """Rows of everything in the results folder and of the published scores that may stand beside `average`.

    tasks, suites, sources, models: keep only these. incomplete: average over the tasks that a model has even
    where its suite is not whole. weights: of tasks (1 where one has none) in the averages, in the place of the mean
    over corpora. Raises SpecError where a shipped spec or published data file is wrong.
    """
    loaded = results if isinstance(results, Results) else load(results)
    infos = loaded.infos
    everything = loaded.rows(average)
    # experiments are of the publications: where tasks or models are picked, nothing was asked of them
    whole = tasks is None and models is None and (sources is None or "published" in sources)

    def wanted(task: str, source: str) -> bool:
        return (
            (tasks is None or task in tasks)
            and (suites is None or infos[task].suite in suites)
            and (sources is None or source in sources)
        )

    rows = [r for r in everything.rows if wanted(r.task, r.source) and (models is None or r.model in models)]
    ranked = {task: info for task, info in infos.items() if task not in loaded.refused}
    means = suite_averages(
        [r for r in rows if r.task in ranked], ranked, incomplete=incomplete, asked=tasks, weights=weights
    )
    averages = means.rows
    if average == "paper" and tasks is None and weights is None:
        averages += printed_means(rows, means.rows, loaded.printed)
    present = {r.task for r in rows}
    notes: list[str] = [*below_floors(rows, everything.rows)]
    notes += [remark for row in rows for remark in row.notes]
    notes += [text for source, task, text in everything.remarks if wanted(task, source)]
    notes += [a.text for a in everything.published if any(wanted(task, "published") for task in a.tasks)]
    beside = {r.task for r in rows if r.source == "published"}
    notes += other_scores(rows, infos)
    notes += likely_note(rows)
    notes += printed_note(averages)
    notes += deviation_notes([info for info in infos.values() if info.id in beside])
    notes += means.notes
    notes += _unranked(means.rows, [infos[t] for t in sorted(loaded.refused) if infos[t].in_suite])
    return Report(
        average=average,
        rows=tuple(rows),
        averages=averages,
        columns=tuple(info for info in infos.values() if info.id in present),
        unranked=loaded.refused,
        experiments=of_suites(loaded.experiments, suites) if whole else (),
        notes=tuple(dict.fromkeys(notes)),
        findings=loaded.findings,
        groups=loaded.groups,
    )


def _unranked(averages: Sequence[Row], refused: Sequence[TaskInfo]) -> list[str]:
    """What the averages shown leave out because a task fails its gate."""
    suites = dict.fromkeys(row.suite for row in averages)
    left = {suite: [info.id for info in refused if info.suite == suite] for suite in suites}
    return [
        f"the {suite} average leaves out {', '.join(tasks)} for every line, published ones too: the gate refuses the "
        "runs here"
        for suite, tasks in left.items()
        if tasks
    ]


def _stores(results_dir: Path) -> list[tuple[Source, Store]]:
    """The folder's own runs, then each accepted submission's."""
    stores: list[tuple[Source, Store]] = [("run", Store(results_dir))]
    folder = results_dir / SUBMITTED
    if folder.is_dir():
        # Their indexes stand apart: nothing is written into an accepted submission, and no index in it is believed.
        indexes = results_dir / ".indexes"
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                stores.append(("submitted", Store(path, indexes / f"{path.name}.parquet")))
    return stores


def first_average(results: Results) -> AverageName:
    """The average on show unless another is asked for: macro, and each task's published one where there are no runs.

    Hardly any published value stands beside macro F1, so a folder without runs would show none of them.
    """
    return "macro" if results.groups else "paper"


def metric_of(info: TaskInfo, average: AverageName) -> str:
    """The score that `average` means on this task; kinds without F1 have the one that published scores use."""
    return info.paper if average == "paper" or not has_f1(info.type) else METRICS[average]


def _step(group: RunGroup) -> float:
    """What one document is worth where a document is an answer; 0 where it holds many."""
    first = group.briefs[0]
    kind = KINDS.get(first.type)
    return 0.0 if kind and (kind.spans or not kind.single or kind.numeric) else 1 / first.test_documents


def run_rows(
    groups: Sequence[RunGroup],
    infos: Mapping[str, TaskInfo],
    average: AverageName,
    floors: Mapping[tuple[str, str], float],
) -> tuple[list[Row], list[tuple[Source, str, str]]]:
    """A row a group, and (source, task, remark) for groups that lack the score. floors: as `floors.no_skill` gives."""
    scored: list[tuple[RunGroup, str, tuple[float, ...], tuple[bool, ...]]] = []
    remarks: list[tuple[Source, str, str]] = []
    for group in groups:
        metric = metric_of(infos[group.task], average)
        scores = group.scores(metric)
        if scores is None:
            text = f"{group.model} on {group.task}: some record has no {metric}; `biobench rescore` computes it"
            remarks.append((group.source, group.task, text))
            continue
        scored.append((group, metric, scores, group.failed(metric, floors)))
    summaries = seed_intervals(
        [without_failed(scores, lost) for _, _, scores, lost in scored],
        resolutions=[_step(group) for group, *_ in scored],
        ratios=[group.ratio for group, *_ in scored],
    )
    rows = [_row(*of, summary, infos[of[0].task]) for of, summary in zip(scored, summaries, strict=True)]
    return rows, remarks


def _row(
    group: RunGroup, metric: str, scores: Sequence[float], lost: Sequence[bool], summary: SeedSummary, info: TaskInfo
) -> Row:
    """lost: which runs failed; summary: of the others."""
    interval = summary.interval
    count = len(scores)
    return Row(
        model=group.model,
        task=group.task,
        metric=metric,
        mean=sum(scores) / count,
        sd=summary.sd,
        low=None if interval is None else max(interval.low, LOWEST.get(metric, 0.0)),
        high=None if interval is None else min(interval.high, 1.0),
        n_seeds=count,
        folds=group.folds,
        ratio=group.ratio,
        failed=sum(lost),
        failed_seeds=tuple(seed for seed, gone in zip(group.seeds, lost, strict=True) if gone),
        kept=summary.mean if any(lost) else None,
        source=group.source,
        variant=group.variant,
        partial=group.departures.partial,
        language=info.language,
        suite=info.suite,
        seeds=group.seeds,
        values=tuple(scores),
        **costs_of(group),
        contamination=as_fields(known(group)),
        notes=tuple(footnotes(group, scores, lost, summary.sd)),
    )


def ceiling_rows(groups: Sequence[RunGroup], infos: Mapping[str, TaskInfo], average: AverageName) -> list[Row]:
    """What an oracle reaches through the windows of the runs, where that is below 1; one row a task and window.

    Tokenizers cut at different places; the row holds the highest of the ceilings. Labels of whole documents have no
    row: a model may tell a label without seeing its mention, so what the window shows bounds nothing.
    """
    best: dict[tuple[str, int], float] = {}
    for group in groups:
        metric = metric_of(infos[group.task], average)
        for brief in group.briefs:
            reached = brief.ceiling.get(metric)
            if reached is not None and brief.limit is None and brief.split == "test" and traits_of(brief.type).spans:
                at = (group.task, brief.max_length)
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
