"""A row of the results table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from biobench.errors import UsageError
from biobench.reporting.groups import Source
from biobench.schema.strict import suggest

AverageName = Literal["macro", "micro", "weighted", "paper"]
METRICS: dict[AverageName, str] = {
    "macro": "macro_f1",
    "micro": "micro_f1",
    "weighted": "weighted_f1",
}
"""`paper` has none of its own: each task's spec names the average."""


def check_average(average: str) -> None:
    """Raise UsageError where it is no `AverageName`: from Python any text may come."""
    names = get_args(AverageName)
    if average not in names:
        raise UsageError(f"unknown average '{average}'", hint=suggest(average, names))


def in_percent(share: float) -> str:
    """``61.0``: a fraction as tables and sentences print it."""
    return f"{100 * share:.1f}"


@dataclass(frozen=True, slots=True)
class Row:
    """One cell of the table. Scores are fractions (0-1).

    mean, sd: over seeds; low, high: 95% t interval of the mean over seeds, None where the spread is
    unknown (one seed, seeds of equal scores, a published mean). task: an id, or avg_<suite> for the
    average over a suite.
    """

    model: str
    task: str
    metric: str
    mean: float
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    n_seeds: int = 0
    source: Source = "run"
    variant: str = ""
    """What sets the runs apart from full ones on the shipped spec: the condition that they were
    made under.
    """
    partial: bool = False
    """Not on the whole test split: a part of it, or validation. Such rows are in no average."""
    language: str = ""
    suite: str = ""
    slice: str = ""
    """The part of the gold that is scored (`score.slices`); empty: all of it."""
    seeds: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    tasks: int = 1
    """How many tasks an average covers."""
    task_mean: float | None = None
    """For an average: the plain mean over its tasks; the average itself is the mean over corpora of
    their tasks'.
    """
    ratio: float = 0.0
    """Of runs on several splits: test documents to training documents, by which the interval is
    widened.
    """
    failed: int = 0
    """Runs among those of the mean that failed (`stats.failed_runs`)."""
    guessing: bool = False
    """Of a task's row: the model is not shown to be above a policy that reads no text
    (`reporting.guessing`).
    """
    failed_seeds: tuple[int, ...] = ()
    """Of a task's row: the seeds of these runs."""
    kept: float | None = None
    """With failed runs: the mean of the others; low and high are about it."""
    complete: bool = True
    """For an average: all tasks of the suite are in it."""
    only_likely: bool = False
    """A published value (or a suite average that holds one) whose publication does not state the
    average `metric`.
    """
    seconds: float | None = None
    """Mean wall seconds of a run."""
    peak_memory_bytes: int | None = None
    train_tokens_per_second: float | None = None
    """Mean over runs, of training alone."""
    truncated_documents: int | None = None
    lost_gold: int | None = None
    parameters: int | None = None
    contamination: Mapping[str, Any] | None = None
    """Test documents in the model's training text, where that is known (`reporting.footnotes`)."""
    notes: tuple[str, ...] = ()

    @property
    def trained_mean(self) -> float:
        """The mean of the runs that did not fail, a fraction."""
        return self.mean if self.kept is None else self.kept

    @property
    def margin(self) -> float | None:
        """The interval's longer side, a fraction: half its width unless both ends were cut to 0-1.
        None without one.
        """
        if self.low is None or self.high is None:
            return None
        return max(self.trained_mean - self.low, self.high - self.trained_mean)

    @property
    def name(self) -> str:
        """The model as tables name it: what sets its runs apart stands in brackets."""
        return f"{self.model} [{self.variant}]" if self.variant else self.model

    @property
    def line(self) -> tuple[str, str, Source]:
        """What names the row's line in a wide table: model, variant, source."""
        return self.model, self.variant, self.source
