"""What a task's scores are compared with, what its text must prove, and how its data are had."""

from __future__ import annotations

from typing import Annotated, Literal

from biobench.schema.kind import metric_names
from biobench.schema.source import descriptive
from biobench.schema.strict import OneOf, Strict

MetricName = Annotated[str, OneOf(metric_names)]


class Metric(Strict):
    """Which average leads, and which one a published number is compared with."""

    primary: MetricName = "macro_f1"
    paper: MetricName = descriptive()
    """Average that a published number is compared with; changes no run."""
    selection: MetricName | None = None
    """Average that picks the best epoch on validation; default: `primary`."""
    negative_label: str | None = None
    """Label left out of micro_f1_positive."""


class Obtain(Strict):
    """What a user has to do to get data that cannot simply be fetched, in words that a newcomer can follow."""

    needs: str | None = None
    """The agreement or registration; null where the files are free but have no known address."""
    pages: list[str]
    """Addresses, in the order in which they are visited."""
    steps: list[str]


class Gate(Strict):
    """What the text must prove before a score is ranked."""

    expect: Literal["text_informative", "chance", "beyond_words"] = "text_informative"
    """beyond_words: counting words cannot reach the labels (a question whose answer takes understanding). What it
    reaches is shown and asked nothing; the scorer's checks remain."""
