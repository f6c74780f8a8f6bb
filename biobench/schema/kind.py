"""What a spec may say of each kind of task. The kinds themselves stand in `biobench/kinds/` and
register here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from biobench.schema.document import Prediction
from biobench.schema.metric import F1_AVERAGES, Metric


class Traits:
    """One kind of task, as far as specs, readers and scores need to know it."""

    name: ClassVar[str]
    """`type` in the spec."""
    head: ClassVar[str] = "sequence"
    """`head.kind` in the spec."""
    spans: ClassVar[bool] = False
    """Truth is spans (which are looked for in words), else labels of the document."""
    tagged: ClassVar[bool] = False
    """Documents need the corpus's own tokens."""
    single: ClassVar[bool] = True
    """Each document has exactly one label; of span kinds it says nothing."""
    metrics: ClassVar[tuple[Metric, ...]] = ()
    """Scores that the kind has besides the F1 averages of all; the first leads where there is no
    F1.
    """
    probes: ClassVar[bool] = True
    """Can be learnt from the states of a frozen encoder."""
    label_rules: ClassVar[bool] = False
    """Labels may be given by a rule instead of a list."""
    fields: ClassVar[tuple[str, ...]] = ("protocol.long_documents",)
    """Of the spec's fields that not every kind has, those that this one has."""
    counted: ClassVar[bool] = True
    """Truth is labels or spans with an F1; else the kind has its own `metrics` alone."""
    pairs: ClassVar[bool] = False
    """Documents may have a first text (`Document.query`) whose relation to the second is asked for.
    """
    numeric: ClassVar[bool] = False
    """Truth is a number on the spec's `scale`, which documents hold as text in place of a label."""
    thresholds: ClassVar[bool] = False
    """Labels are decided one by one by a threshold (head.threshold, head.fallback,
    training.positive_weights).
    """
    options: ClassVar[bool] = False
    """Labels are the names of options that each document has, and a set of them is the answer."""
    trains: ClassVar[bool] = True
    """Can be fine-tuned; tasks of other kinds run under `--track frozen` alone."""
    ranked: ClassVar[bool] = False
    """A prediction's labels are in order, the likeliest first; the first right one counts."""

    def check(self, spec: Any) -> None:
        """Raise FieldError where a `TaskSpec` has what this kind of task does not have, or lacks
        what it needs.
        """


KINDS: dict[str, Traits] = {}
"""Name to kind; filled by importing `biobench.kinds`."""

PLUGIN_METRICS: dict[str, Callable[[Any], float | None]] = {}
"""Name to metric of installed packages: from a `kinds.base.Answered` to a fraction, None where it
is not defined.
"""


def all_metrics() -> dict[str, Metric]:
    """Name to score, of all kinds and of installed packages."""
    declared = [*F1_AVERAGES]
    for kind in KINDS.values():
        declared += kind.metrics
    declared += [Metric(name, name) for name in PLUGIN_METRICS]
    return {metric.name: metric for metric in declared}


def get_metric(name: str) -> Metric:
    """The score of this name; one without properties where nothing here declares it."""
    return all_metrics().get(name) or Metric(name, name)


def traits_of(type: str) -> Traits:
    """What is known of a type; the defaults where a record's type is not known here."""
    return KINDS.get(type) or Traits()


def is_numeric(type: str) -> bool:
    """Whether tasks of this type ask for a number."""
    return traits_of(type).numeric


def has_f1(type: str) -> bool:
    """Whether tasks of this type have F1 averages; so have those of types that are not known
    here."""
    return traits_of(type).counted


def number_of(prediction: Prediction) -> float:
    """The number that a prediction of a numeric kind holds: its only score, else its only label."""
    return prediction.label_scores[0] if prediction.label_scores else float(prediction.labels[0])


def kind_names() -> list[str]:
    """The values of `type`."""
    return list(KINDS)


def leading_metrics(kind: Traits) -> list[str]:
    """The scores that a spec of this kind may name as primary, paper or selection."""
    metrics = (*F1_AVERAGES, *kind.metrics) if kind.counted else kind.metrics
    return [metric.name for metric in metrics if not metric.falls]


def metric_names() -> list[str]:
    """The names of `all_metrics`."""
    return list(all_metrics())
