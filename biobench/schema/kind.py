"""What a spec may say of each kind of task. The kinds themselves stand in `biobench/kinds/` and register here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


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
    thresholds: ClassVar[bool] = False
    """Labels are decided one by one by a threshold (head.threshold, head.fallback, training.positive_weights)."""


KINDS: dict[str, Traits] = {}
"""Name to kind; filled by importing `biobench.kinds`."""

PLUGIN_METRICS: dict[str, Callable[[Any], float | None]] = {}
"""Name to metric of installed packages: from a `kinds.base.Answered` to a fraction, None where it is not defined."""

AVERAGES = ("macro_f1", "micro_f1", "weighted_f1", "macro_f1_all")
"""Averages that every kind of task has."""


def kind_names() -> list[str]:
    """The values of `type`."""
    return list(KINDS)


def metric_names() -> list[str]:
    """The averages of all kinds."""
    return [*AVERAGES, *dict.fromkeys(name for kind in KINDS.values() for name in kind.metrics), *PLUGIN_METRICS]
