"""What a spec may say of each kind of task. The kinds themselves stand in `biobench/kinds/` and
register here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from biobench.schema.document import Prediction


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
    metrics: ClassVar[tuple[str, ...]] = ()
    """Averages that the kind has besides the F1 averages of all."""
    probes: ClassVar[bool] = True
    """Can be learnt from the states of a frozen encoder."""
    label_rules: ClassVar[bool] = False
    """Labels may be given by a rule instead of a list."""
    fields: ClassVar[tuple[str, ...]] = ("protocol.long_documents",)
    """Of the spec's fields that not every kind has, those that this one has."""
    counted: ClassVar[bool] = True
    """Truth is labels or spans with an F1; else the kind has its own `metrics` alone, the first of
    which leads.
    """
    pairs: ClassVar[bool] = False
    """Documents may have a first text (`Document.query`) whose relation to the second is asked for.
    """
    numeric: ClassVar[bool] = False
    """Truth is a number on the spec's `scale`, which documents hold as text in place of a label."""
    lower_is_better: ClassVar[tuple[str, ...]] = ()
    """Those of `metrics` that fall as predictions get better; they are reported and lead nothing.
    """
    perfect: ClassVar[Mapping[str, float]] = {}
    """Scores of predictions that repeat the gold, of kinds without F1."""
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

AVERAGES = ("macro_f1", "micro_f1", "weighted_f1", "macro_f1_all")
"""Averages that every kind of task has."""


def is_error(metric: str) -> bool:
    """Whether it falls as predictions get better; such a score stands on the corpus's own scale,
    never in percent.
    """
    return any(metric in kind.lower_is_better for kind in KINDS.values())


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


def is_possible(metric: str, value: float) -> bool:
    """Whether a score can have this value: an error is not negative, a correlation between -1 and
    1, others 0 and 1.
    """
    if is_error(metric):
        return value >= 0
    return (-1 if metric in ("pearson", "spearman") else 0) <= value <= 1


def number_of(prediction: Prediction) -> float:
    """The number that a prediction of a numeric kind holds: its only score, else its only label."""
    return prediction.label_scores[0] if prediction.label_scores else float(prediction.labels[0])


def kind_names() -> list[str]:
    """The values of `type`."""
    return list(KINDS)


def leading_metrics(kind: Traits) -> tuple[str, ...]:
    """The scores that a spec of this kind may name as primary, paper or selection."""
    names = (*AVERAGES, *kind.metrics) if kind.counted else kind.metrics
    return tuple(name for name in names if name not in kind.lower_is_better)


def metric_names() -> list[str]:
    """The averages of all kinds."""
    return [
        *AVERAGES,
        *dict.fromkeys(name for kind in KINDS.values() for name in kind.metrics),
        *PLUGIN_METRICS,
    ]
