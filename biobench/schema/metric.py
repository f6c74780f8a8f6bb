"""A score as one object, declared beside the kind of task that has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from biobench.stats.correlation import Numbers
    from biobench.stats.counts import Average


@dataclass(frozen=True, slots=True)
class Metric:
    """What a score is called, which values it can have, and how documents make it up.

    name: in specs and records. words: in sentences and tables. lowest: its least value. falls: an
    error, which falls as predictions get better, stands on the corpus's own scale and leads
    nothing.

    How documents make it up is what its noise over other documents is computed from; where all of
    these stay at their defaults, that noise is unknown. average: of counts by document and label,
    under this match. positive: without the task's negative label. share: the mean over documents of
    the kind's `share`. measure: a function of the gold and the predicted numbers.
    """

    name: str
    words: str
    lowest: float = 0.0
    falls: bool = False
    average: Average | None = None
    match: Literal["exact", "partial"] = "exact"
    share: bool = False
    positive: bool = False
    measure: Callable[[Numbers, Numbers], float] | None = None

    @property
    def perfect(self) -> float:
        """Of predictions that repeat the gold."""
        return 0.0 if self.falls else 1.0

    def allows(self, value: float) -> bool:
        """Whether the score can have this value; an error has no greatest one."""
        return self.lowest <= value and (self.falls or value <= 1)


F1_AVERAGES = (
    Metric("macro_f1", "macro F1", average="macro"),
    Metric("macro_f1_all", "macro F1 over all labels", average="macro_all"),
    Metric("micro_f1", "micro F1", average="micro"),
    Metric("weighted_f1", "weighted F1", average="weighted"),
)
"""What every kind with counts has."""
