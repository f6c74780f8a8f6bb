"""What every policy gives: predictions for the test split, and the scores known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from biobench.schema.document import Prediction


@dataclass(frozen=True, slots=True)
class Played:
    """A policy's predictions. draws: one list of predictions a draw, a single one where nothing is random.

    known: scores that follow from label counts alone, which the scorer must reproduce. expected_hits: mean and
    standard deviation of a draw's true positives, for random policies. blind: the policy reads no test text.
    """

    name: str
    words: str
    draws: Sequence[Sequence[Prediction]]
    kind: Literal["floor", "ceiling"] = "floor"
    blind: bool = True
    known: Mapping[str, float] = field(default_factory=dict)
    expected_hits: tuple[float, float] | None = None
