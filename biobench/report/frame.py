"""The results table: one row a model, task and source, and one an average. Everything printed is made from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biobench.report.averages import known_mean, suite_averages
from biobench.report.baselines import Remark, baseline_rows, below_baselines, no_skill, oracle_rows
from biobench.report.footnotes import contamination_fields, footnotes
from biobench.report.groups import RunGroup
from biobench.report.literature.comparison import (
    deviation_notes,
    likely_note,
    other_scores,
    printed_means,
    printed_note,
    published_rows,
)
from biobench.report.literature.experiments import PublishedExperiments, of_suites
from biobench.report.results import Results, load, metric_of
from biobench.report.row import AverageName, Row
from biobench.report.tasks import TaskInfo
from biobench.schema.kind import KINDS
from biobench.stats import seed_interval, without_failed
from biobench.store import UnusableFile
from biobench.store.store import paused_collector

if TYPE_CHECKING:
    import pandas as pd

LOWEST = {"pearson": -1.0, "spearman": -1.0}
"""Scores that may lie below 0, and what they cannot pass."""


@dataclass(frozen=True)
class Report:
    """rows: tasks; averages: suites; columns: the tasks that have rows, in order of the catalogue."""

    average: AverageName
    rows: tuple[Row, ...]
    averages: tuple[Row, ...]
    columns: tuple[TaskInfo, ...]
    notes: tuple[str, ...] = ()
    findings: tuple[UnusableFile, ...] = ()
    groups: tuple[RunGroup, ...] = field(default=(), repr=False)
    caption: str = ""
    """What the numbers are, where `average` does not say it."""
    title: str = ""
    """Over the table, where it is not the suite's id."""
    experiments: tuple[PublishedExperiments, ...] = field(default=(), repr=False)
    """Published results beyond the task tables, those that the report's filters leave."""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The tidy table: a column a field of `Row`, tasks first, then averages. Scores are fractions (0-1)."""
        import pandas as pd

        rows = (*self.rows, *self.averages)
        whole = {"peak_memory_bytes", "truncated_documents", "lost_gold", "parameters"}
        columns = {name: [getattr(row, name) for row in rows] for name in Row.__dataclass_fields__}
        kind = {name: "Int64" if name in whole else None for name in columns}
        return pd.DataFrame({name: pd.Series(cells, dtype=kind[name]) for name, cells in columns.items()})

    def as_json(self) -> list[dict[str, Any]]:
        """All rows as plain data."""
        return [asdict(row) for row in (*self.rows, *self.averages)]


@dataclass(frozen=True, slots=True)
class Cells:
    """The rows of all tasks under one average, and what is to be said of them."""

    rows: tuple[Row, ...]
    remarks: tuple[Remark, ...]


def cells(results: Results, average: AverageName) -> Cells:
    """The rows of every run, baseline, oracle and published value, computed once for a folder that was read."""
    if average not in results.cells:
        infos, groups = results.infos, results.groups
        with paused_collector():
            rows, remarks = run_rows(groups, infos, average, no_skill(results.floors))
            metrics = {task: metric_of(info, average) for task, info in infos.items()}
            rows += oracle_rows(groups, infos, metrics) + baseline_rows(results.floors, groups, infos, metrics)
            printed, about = published_rows(results.published, infos, average)
            order = {task: i for i, task in enumerate(infos)}
            rows = sorted([*rows, *printed], key=lambda r: (order[r.task], r.source, r.model, r.variant))
        remarks += [("published", task, text) for text, tasks in about for task in tasks]
        results.cells[average] = Cells(tuple(rows), (*results.judged, *remarks))
    computed: Cells = results.cells[average]
    return computed


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
    """The table of everything in the results folder and of the published scores that may stand beside `average`.

    tasks, suites, sources, models: keep only these. incomplete: average over the tasks that a model has even
    where its suite is not whole. Raises SpecError where a shipped spec or published data file is wrong.
    """
    loaded = results if isinstance(results, Results) else load(results)
    infos = loaded.infos
    everything = cells(loaded, average)

    def wanted(task: str, source: str) -> bool:
        return (
            (tasks is None or task in tasks)
            and (suites is None or infos[task].suite in suites)
            and (sources is None or source in sources)
        )

    rows = [r for r in everything.rows if wanted(r.task, r.source) and (models is None or r.model in models)]
    ranked = {task: info for task, info in infos.items() if task not in loaded.refused}
    means, part_notes = suite_averages(
        [r for r in rows if r.task in ranked], ranked, incomplete=incomplete, asked=tasks
    )
    printed = printed_means(rows, means, loaded.printed) if average == "paper" and tasks is None else ()
    published = {r.task for r in rows if r.source == "published"}
    present = {r.task for r in rows}
    notes = [
        *below_baselines(rows, everything.rows),
        *(remark for row in rows for remark in row.notes),
        *(text for source, task, text in everything.remarks if wanted(task, source)),
        *other_scores(rows, infos),
        *likely_note(rows),
        *printed_note(printed),
        *deviation_notes([info for info in infos.values() if info.id in published]),
        *part_notes,
        *_left_out(means, [infos[t] for t in sorted(loaded.refused) if infos[t].in_suite]),
    ]
    # experiments are of the publications: where tasks or models are picked, nothing was asked of them
    whole = tasks is None and models is None and (sources is None or "published" in sources)
    return Report(
        average=average,
        rows=tuple(rows),
        averages=(*means, *printed),
        columns=tuple(info for info in infos.values() if info.id in present),
        experiments=of_suites(loaded.experiments, suites) if whole else (),
        notes=tuple(dict.fromkeys(notes)),
        findings=loaded.findings,
        groups=loaded.groups,
    )


def _left_out(averages: Sequence[Row], refused: Sequence[TaskInfo]) -> list[str]:
    """What the averages shown leave out because a task fails its gate."""
    suites = dict.fromkeys(row.suite for row in averages)
    left = {suite: ", ".join(info.id for info in refused if info.suite == suite) for suite in suites}
    form = "the {} average leaves out {} for every line, published ones too: the gate refuses the runs here"
    return [form.format(suite, tasks) for suite, tasks in left.items() if tasks]


def run_rows(
    groups: Sequence[RunGroup],
    infos: Mapping[str, TaskInfo],
    average: AverageName,
    baselines: Mapping[tuple[str, str], float],
) -> tuple[list[Row], list[Remark]]:
    """A row a group, and remarks on groups that lack the score. baselines: as `baselines.no_skill` gives."""
    rows: list[Row] = []
    remarks: list[Remark] = []
    for group in groups:
        info, metric = infos[group.task], metric_of(infos[group.task], average)
        scores = group.scores(metric)
        if scores is None:
            text = f"{group.model} on {group.task}: some record has no {metric}; `biobench rescore` computes it"
            remarks.append((group.source, group.task, text))
            continue
        lost = group.failed(metric, baselines)
        first = group.briefs[0]
        kind = KINDS.get(first.type)
        # what one document is worth where a document is an answer
        whole = kind is None or not (kind.spans or not kind.single or kind.numeric)
        step = 1 / first.test_documents if whole else 0.0
        summary = seed_interval(without_failed(scores, lost), resolution=step, ratio=group.ratio)
        interval = summary.interval
        rows.append(
            Row(
                model=group.model,
                task=group.task,
                metric=metric,
                mean=sum(scores) / len(scores),
                sd=summary.sd,
                low=None if interval is None else max(interval.low, LOWEST.get(metric, 0.0)),
                high=None if interval is None else min(interval.high, 1.0),
                n_seeds=len(scores),
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
                **_costs(group),
                contamination=contamination_fields(group),
                notes=tuple(footnotes(group, scores, lost, summary.sd)),
            )
        )
    return rows, remarks


def _costs(group: RunGroup) -> dict[str, Any]:
    """The row's fields on what a run costs and what its window hides; none where the predictions are external."""
    runs = group.briefs
    if runs[0].origin == "outside":
        return {}
    return {
        "seconds": known_mean([b.seconds for b in runs]),
        "peak_memory_bytes": max(b.peak_memory_bytes for b in runs),
        "energy_kwh": known_mean([b.energy_kwh for b in runs]),
        "train_tokens_per_second": known_mean([b.train_tokens_per_second for b in runs]),
        "truncated_documents": runs[0].truncated_documents,
        "lost_gold": runs[0].lost_gold,
        "parameters": runs[0].parameters,
    }
