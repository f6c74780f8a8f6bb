"""A results folder from Python: tidy data frames, predictions and mistakes. What `biobench.results`
gives.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from biobench.errors import UsageError
from biobench.kinds import get_kind
from biobench.reporting.details.mistaken import read_mistakes
from biobench.reporting.entrants import names_of
from biobench.reporting.escape import plain
from biobench.reporting.frame import Choice, Report, RowFilter, build, cells
from biobench.reporting.groups import RunGroup, Source
from biobench.reporting.rescore import Location, run_documents
from biobench.reporting.results import Results, load
from biobench.reporting.row import AverageName
from biobench.schema.record import RunRecord
from biobench.schema.strict import check_keywords, suggest
from biobench.score.probabilistic import probabilistic

if TYPE_CHECKING:
    import pandas as pd

Measured = tuple[str, str, float, int | None]
"""Metric, label (empty: all of them), value, and support of the label."""
_LINE = ("model", "variant", "task", "suite", "language", "source")
COLUMNS = (*_LINE, "seed", "metric", "label", "value", "support", "key", "failed")
"""value: a fraction (0-1) for scores. label: empty but for scores of one label. support: gold of
that label. failed: the run did not train, by its macro F1 or, where the kind has none, the score
that published ones are compared with (`stats.failed_runs`).
"""


def tidy(
    results: Results,
    *,
    labels: bool = False,
    probabilities: bool = False,
    data_dir: Location | None = None,
    specs: Mapping[str, Location] | None = None,
    tasks: Choice = None,
    suites: Choice = None,
    models: Choice = None,
    sources: Choice = None,
) -> list[dict[str, Any]]:
    """A row a run and metric, all averages that the record holds; with `labels`, also a row a run,
    label and metric.

    probabilities: also how good the stored probabilities are (`score.probabilistic`), where the run
    has some; runs on data under an agreement need it below `data_dir`, and the file of a task that
    is not shipped in `specs`, by id. Only what was run or submitted has seeds: published values are
    in `reporting.frame.build`. tasks, suites, models,
    sources: keep only these. Raises StoreError where a record is gone or damaged.
    """
    rows: list[dict[str, Any]] = []
    filters = RowFilter.of(tasks, suites, sources, models)
    for group in results.groups:
        info = results.infos[group.task]
        if not filters.allows(info, group.source, names_of(group)):
            continue
        line = (group.model, group.variant, group.task, info.suite, info.language, group.source)
        headline = "macro_f1" if group.scores("macro_f1") is not None else info.paper
        for number, has_failed in enumerate(group.failed(headline)):
            brief = group.briefs[number]
            scores = _of_all_labels(brief.scores)
            if labels:
                scores += _of_each_label(group.records[number])
            if probabilities:
                spec = (specs or {}).get(group.task)
                scores += _of_probabilities(group, group.records[number], data_dir, spec)
            for metric, label, value, support in scores:
                cells = (*line, brief.seed, metric, label, value, support, brief.key, has_failed)
                rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def _of_all_labels(scores: Mapping[str, float]) -> list[Measured]:
    return [(metric, "", value, None) for metric, value in scores.items()]


def _of_each_label(record: RunRecord) -> list[Measured]:
    """Precision, recall and F1 of each label, as far as the record has them."""
    scores: list[Measured] = []
    for label, measured in record.per_label.items():
        for metric in ("precision", "recall", "f1"):
            if metric in measured:
                scores.append((metric, label, measured[metric], int(measured["support"])))
    return scores


def _of_probabilities(
    group: RunGroup, record: RunRecord, data_dir: Location | None, spec: Location | None
) -> list[Measured]:
    """How good the run's stored probabilities are; none where its kind has no counts."""
    kind = get_kind(record.task.type)
    if not kind.counted:
        return []
    # only a redacted record lacks the gold, and needs it from the data
    documents = run_documents(record, data_dir, spec) if record.redacted else None
    gold, predictions = group.store.load_predictions(record, documents)
    return _of_all_labels(probabilistic(kind, record.task.labels, gold, predictions))


@dataclass(frozen=True, slots=True, repr=False)
class ResultsFolder:
    """Stored runs of a results folder. data_dir: where texts are looked for (None: the default data
    folder).
    """

    results: Results
    data_dir: Location | None = None

    def __repr__(self) -> str:
        """What the folder holds, and what can be asked of it."""
        groups = self.results.groups
        runs = sum(len(group.briefs) for group in groups)
        models = len({group.model for group in groups})
        tasks = len({group.task for group in groups})
        return (
            f"runs: {runs}, models: {models}, tasks: {tasks}\n"
            ".report(), .to_dataframe(), .predictions(MODEL, TASK)"
        )

    def to_dataframe(self, *, labels: bool = False) -> pd.DataFrame:
        """One row a run and metric; with `labels`, also one a run, label and metric (precision,
        recall, f1).

        Columns as in `COLUMNS`; `value` is a fraction (0-1). Published scores are not runs:
        `report` has them. Warns of runs that are left out because their task fails its gate.
        """
        import pandas as pd

        reasons = {refusal.group.task: refusal.reasons for refusal in self.results.refusals}
        for task, of_task in reasons.items():
            warnings.warn(
                f"runs of {task} are left out, the task fails its gate: {'; '.join(of_task)}",
                stacklevel=2,
            )
        return pd.DataFrame(tidy(self.results, labels=labels), columns=list(COLUMNS))

    def report(self, average: AverageName = "paper", **filters: Any) -> Report:
        """The table of the report (`.frame` is the data frame); filters as of
        `reporting.frame.build`. Raises UsageError for a value that no row could have.
        """
        built = build(self.results, average, **filters)
        if filters:
            _check_filters(self.results, filters)
        return built

    def predictions(self, model: str, task: str, *, seed: int | None = None) -> pd.DataFrame:
        """One row a test document of one run: document, text, gold and said (lists), wrong (number
        of mistakes).

        gold, said: labels, or (start, end, label) of mentions. text: None where the data is not
        available or under an agreement. Raises as `details.mistaken.read_mistakes`.
        """
        import pandas as pd

        mistakes = read_mistakes(self.results, model, task, seed=seed, data_dir=self.data_dir)
        rows = []
        for judged in mistakes.judged:
            sides: dict[str, list[Any]] = {"gold": [], "predicted": []}
            for mark in judged.marks:
                for side, span in mark.sides.items():
                    sides[side].append(tuple(span) if span.end else span.label)
            row = {
                "document": judged.document.id,
                "text": mistakes.texts.get(judged.document.id),
                "gold": sides["gold"],
                "said": sides["predicted"],
                "wrong": judged.wrong,
            }
            rows.append(row)
        return pd.DataFrame(rows, columns=["document", "text", "gold", "said", "wrong"])


def model_names(results: Results) -> set[str]:
    """What the models of runs, shown or not, and of publications are called: alone, and as tables
    name their lines.
    """
    names: set[str] = set()
    for group in (*results.groups, *(refusal.group for refusal in results.refusals)):
        names.update(names_of(group))
    for average in get_args(AverageName):
        for row in cells(results, average).rows:
            names.update((row.model, row.name))
    return names


def _check_filters(results: Results, filters: Mapping[str, Choice]) -> None:
    """Raise UsageError for a task, suite, source or model that the results do not have."""
    known = {
        "tasks": set(results.infos),
        "suites": {info.suite for info in results.infos.values()},
        "sources": set(get_args(Source)),
        "models": model_names(results),
    }
    asked = RowFilter.of(*map(filters.get, known))
    for keyword, values in zip(known, asked, strict=True):
        for value in values or ():
            if value not in known[keyword]:
                hint = suggest(value, sorted(map(plain, known[keyword])))
                raise UsageError(f"{keyword}: '{plain(value)}' is not known", hint=hint)


def results(
    results_dir: Location = "results", *, data_dir: Location | None = None
) -> ResultsFolder:
    """The stored runs of a folder.

    >>> results("results").to_dataframe()  # a row a run and metric
    >>> results("results").report("macro")

    data_dir: the corpora, for texts and for gold under an agreement. Raises UsageError where there
    is no such folder.
    """
    if not Path(results_dir).is_dir():
        raise UsageError(
            f"there is no results folder '{results_dir}'", hint="name the folder that `run` wrote"
        )
    return ResultsFolder(load(results_dir), data_dir)


def report(
    results_dir: Location = "results", average: AverageName = "paper", **filters: Any
) -> Report:
    """The report of a results folder: it prints as a short table, `.frame` is the whole data
    frame.

    >>> print(report("results", tasks=["gad"]))

    average: paper (each task's published one), macro, micro or weighted. filters: tasks, suites,
    sources or models (one or several: only these), incomplete (average suites that are not whole),
    slice (seen or unseen mentions). Raises UsageError where there is no such folder.
    """
    filter_names = list(inspect.signature(build).parameters)[2:]
    check_keywords("report", filters, ["results_dir", "average", *filter_names])
    return results(results_dir).report(average, **filters)


def predictions(
    model: str,
    task: str,
    *,
    seed: int | None = None,
    results_dir: Location = "results",
    data_dir: Location | None = None,
) -> pd.DataFrame:
    """The predictions of one stored run, a row a test document; see `ResultsFolder.predictions`.

    >>> predictions("my-org/my-encoder", "gad", seed=42)
    """
    return results(results_dir, data_dir=data_dir).predictions(model, task, seed=seed)
