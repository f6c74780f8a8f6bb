"""The results table: one row a model, task and source, and one an average. Everything printed is
made from it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from biobench.reporting.averages import COSTS, known_mean, suite_averages
from biobench.reporting.baselines import (
    Remark,
    baseline_rows,
    below_baselines,
    no_skill,
    oracle_rows,
    refusal_remarks,
)
from biobench.reporting.evidence import Evidence
from biobench.reporting.footnotes import contamination, footnotes, recall_note
from biobench.reporting.groups import RunGroup
from biobench.reporting.guessing import Bars, TaskScores, is_guessing
from biobench.reporting.literature.comparison import (
    deviation_notes,
    likely_note,
    other_scores,
    published_rows,
)
from biobench.reporting.results import Results, load, metric_of
from biobench.reporting.row import AverageName, Row, check_average
from biobench.reporting.slices import sliced
from biobench.reporting.tasks import Infos, TaskInfo
from biobench.schema.kind import KINDS, get_metric
from biobench.stats import seed_interval, without_failed
from biobench.store import Brief, UnusableFile
from biobench.store.store import paused_collector

if TYPE_CHECKING:
    import pandas as pd


Choice = Collection[str] | None
"""What a report is narrowed to; None narrows nothing."""
MOST_ROWS = 20
"""Of a report that shows itself in an interpreter or a notebook."""


@dataclass(frozen=True, repr=False)
class Report:
    """rows: tasks; averages: suites; columns: the tasks that have rows, in order of the
    catalogue."""

    average: AverageName
    rows: tuple[Row, ...]
    averages: tuple[Row, ...]
    columns: tuple[TaskInfo, ...]
    notes: tuple[str, ...] = ()
    findings: tuple[UnusableFile, ...] = ()
    caption: str = ""
    """What the numbers are, where `average` does not say it."""
    title: str = ""
    """Over the table, where it is not the suite's id."""
    slice: str = ""
    """The part of the gold that is scored; empty: all of it."""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The tidy table: a column a field of `Row`, tasks first, then averages. Scores are
        fractions (0-1).
        """
        import pandas as pd

        frame = pd.DataFrame(self.as_json(), columns=list(Row.__dataclass_fields__))
        counts = ("peak_memory_bytes", "truncated_documents", "lost_gold", "parameters")
        return frame.astype(dict.fromkeys(counts, "Int64"))

    def as_json(self) -> list[dict[str, Any]]:
        """All rows as plain data."""
        return [asdict(row) for row in (*self.rows, *self.averages)]

    def __repr__(self) -> str:
        """The beginning and the end of the table, runs of one's own first."""
        columns = ["model", "variant", "task", "metric", "mean", "low", "high", "n_seeds", "source"]
        printed_last = self.frame.sort_values(
            "source", key=lambda source: source == "published", kind="stable"
        )
        if not printed_last["variant"].any():
            columns.remove("variant")
        return str(printed_last[columns].to_string(max_rows=MOST_ROWS, index=False))

    def _repr_html_(self) -> str:
        """The same, for notebooks."""
        return f"<pre>{escape(repr(self))}</pre>"


class Cells(NamedTuple):
    """The rows of all tasks under one average, and what is to be said of them."""

    rows: tuple[Row, ...]
    remarks: tuple[Remark, ...]


def cells(results: Results, average: AverageName) -> Cells:
    """The rows of every run, baseline, oracle and published value, computed once for a folder that
    was read.
    """
    if average not in results.cells:
        infos = results.infos
        groups = results.groups
        with paused_collector():
            rows, remarks = run_rows(groups, infos, average, no_skill(results.baselines))
            metrics = {task: metric_of(info, average) for task, info in infos.items()}
            rows += baseline_rows(results.baselines, groups, infos, metrics)
            if not results.slice:  # the oracle was scored on all gold
                rows += oracle_rows(groups, infos, metrics)
            printed, on_printed = published_rows(results.published, infos, average)
            order = {task: number for number, task in enumerate(infos)}
            rows += printed
            rows.sort(key=lambda row: (order[row.task], row.source, row.model, row.variant))
        remarks += on_printed
        results.cells[average] = Cells(tuple(rows), (*results.judged, *remarks))
    computed: Cells = results.cells[average]
    return computed


class RowFilter(NamedTuple):
    """What a report is narrowed to; None narrows nothing."""

    tasks: Choice = None
    suites: Choice = None
    sources: Choice = None
    models: Choice = None

    @classmethod
    def of(cls, *choices: Choice) -> RowFilter:
        """The choices in order; one value stands for a list of it."""
        several = []
        for choice in choices:
            several.append((choice,) if isinstance(choice, str) else choice)
        return cls(*several)

    def allows(self, info: TaskInfo, source: str, names: Sequence[str] = ()) -> bool:
        """Whether rows of the task and source are kept. names: what the model is called, alone and
        with what sets its runs apart; none for what is of all models.
        """
        if self.suites is not None and not (info.in_suite and info.suite in self.suites):
            return False
        if names and self.models is not None and not set(names).intersection(self.models):
            return False
        for value, allowed in ((info.id, self.tasks), (source, self.sources)):
            if allowed is not None and value not in allowed:
                return False
        return True

    def texts(self, remarks: Iterable[Remark], infos: Infos) -> list[str]:
        """The words of the remarks on what is kept."""
        return [text for source, task, text in remarks if self.allows(infos[task], source)]


def build(
    results: str | Path | Results,
    average: AverageName = "macro",
    *,
    tasks: Choice = None,
    suites: Choice = None,
    sources: Choice = None,
    models: Choice = None,
    incomplete: bool = False,
    slice: str | None = None,
) -> Report:
    """The table of everything in the results folder and of the published scores that may stand
    beside `average`.

    tasks, suites, sources, models: keep only these. incomplete: average over the tasks that a model
    has even where its suite is not whole. slice: the scores on this part of the gold
    (`score.slices.SLICES`), averaged over the tasks that have it. Raises UsageError where there is
    no such slice or no run has it, and SpecError where a shipped spec or published data
    file is wrong.
    """
    loaded = results if isinstance(results, Results) else load(results)
    if slice is not None:
        loaded = sliced(loaded, slice)
        incomplete = True
    infos = loaded.infos
    check_average(average)
    everything = cells(loaded, average)
    filters = RowFilter.of(tasks, suites, sources, models)

    rows = []
    rows_in_averages = []
    for row in everything.rows:
        if filters.allows(infos[row.task], row.source, (row.model, row.name)):
            rows.append(row)
            if row.task not in loaded.refused:
                rows_in_averages.append(row)
    means, part_notes = suite_averages(
        rows_in_averages,
        {task: info for task, info in infos.items() if task not in loaded.refused},
        incomplete=incomplete,
        asked=filters.tasks,
    )
    # what is missing comes first: the terminal shows only the first few notes
    notes = filters.texts(refusal_remarks(loaded.refusals), infos)
    notes += below_baselines(rows, everything.rows)
    for row in rows:
        notes += row.notes
    notes += filters.texts(everything.remarks, infos)
    notes += _notes_on_published(rows, infos)
    notes += part_notes
    notes += _left_out(means, loaded)
    present = {row.task for row in rows}
    return Report(
        average=average,
        rows=tuple(rows),
        averages=means,
        columns=tuple(info for info in infos.values() if info.id in present),
        notes=tuple(dict.fromkeys(notes)),
        findings=loaded.findings,
        slice=loaded.slice,
    )


def _notes_on_published(rows: Sequence[Row], infos: Infos) -> list[str]:
    """Other scores than F1, averages that are likely, and how published protocols differ."""
    differing = {}
    for row in rows:
        if row.source == "published":
            differing[row.task] = infos[row.task]
    return [*other_scores(rows, infos), *likely_note(rows), *deviation_notes(differing.values())]


def _left_out(averages: Sequence[Row], results: Results) -> Iterator[str]:
    """A note for each average that lacks the tasks whose runs the gate refuses."""
    refused: dict[str, list[str]] = defaultdict(list)
    for task in sorted(results.refused):
        info = results.infos[task]
        if info.in_suite:
            refused[info.suite].append(task)
    for suite in dict.fromkeys(row.suite for row in averages):
        if suite in refused:
            yield (
                f"the {suite} average leaves out {', '.join(refused[suite])} for every line, "
                f"published ones too: the gate refuses the runs here"
            )


def run_rows(
    groups: Sequence[RunGroup],
    infos: Infos,
    average: AverageName,
    bars: Bars,
) -> tuple[list[Row], list[Remark]]:
    """A row a group, and remarks on groups that lack the score. bars: what guessing scores."""
    evidence = Evidence()
    rows: list[Row] = []
    remarks: list[Remark] = []
    for group in groups:
        info = infos[group.task]
        metric = metric_of(info, average)
        scores = group.scores(metric)
        if scores is None:
            text = (
                f"{group.model} on {group.task}: some record has no {metric}; `biobench "
                f"rescore` computes it"
            )
            remarks.append((group.source, group.task, text))
            continue
        scored = TaskScores(info, metric, scores, group)
        rows.append(_run_row(group, scored, is_guessing([scored], bars, evidence), bars))
    return rows, remarks


def _run_row(
    group: RunGroup,
    scored: TaskScores,
    guessing: bool,
    bars: Bars,
) -> Row:
    """The row of one group. guessing: the model is not above it; bars: what guessing scores."""
    info = scored.info
    metric = scored.metric
    scores = scored.scores
    guess = None
    if guessing:
        guess = bars.get((info.id, metric))
    lost = group.failed(metric)
    summary = seed_interval(
        without_failed(scores, lost), resolution=_resolution(group.briefs[0]), ratio=group.ratio
    )
    low = high = None
    if summary.interval is not None:
        low = max(summary.interval.low, get_metric(metric).lowest)
        high = min(summary.interval.high, 1.0)
    training_text = contamination(group)
    overlap = None
    if training_text is not None:
        overlap = training_text.model_dump(mode="json")
    return Row(
        model=group.model,
        task=group.task,
        metric=metric,
        mean=sum(scores) / len(scores),
        sd=summary.sd,
        low=low,
        high=high,
        n_seeds=len(scores),
        ratio=group.ratio,
        failed=sum(lost),
        guessing=guessing,
        failed_seeds=tuple(itertools.compress(group.seeds, lost)),
        kept=summary.mean if any(lost) else None,
        source=group.source,
        variant=group.variant,
        partial=group.departures.partial,
        language=info.language,
        suite=info.suite,
        slice=group.slice,
        seeds=group.seeds,
        values=tuple(scores),
        **_costs(group),
        contamination=overlap,
        notes=(
            *recall_note(group, info.spec.tags if info.spec else ()),
            *footnotes(group, scores, lost, summary.sd, guess),
        ),
    )


def _resolution(run: Brief) -> float:
    """What one document is worth in a score where a document is an answer, else 0."""
    kind = KINDS.get(run.type)
    if kind is not None and (kind.spans or not kind.single or kind.numeric):
        return 0.0
    return 1 / run.test_documents


def _costs(group: RunGroup) -> dict[str, Any]:
    """What the runs cost and what their window hides, by the row's fields. Predictions that were
    made elsewhere say nothing of it.
    """
    runs = group.briefs
    if runs[0].origin == "outside":
        return {}
    costs: dict[str, Any] = {}
    for name in COSTS:
        costs[name] = known_mean([getattr(run, name) for run in runs])
    for name in ("truncated_documents", "lost_gold", "parameters"):
        costs[name] = getattr(runs[0], name)
    costs["peak_memory_bytes"] = max(run.peak_memory_bytes for run in runs)
    return costs
