"""What a run is between two of its steps, for the loop and its savepoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass(slots=True)
class LoopState:
    """What changes from step to step, except weights, optimiser and random numbers.

    losses: of the steps since the last validation. best_score: begins below every score,
    correlations included.
    seconds: of killed processes, without writing of savepoints. resumed: how often the run was
    resumed from disk.
    """

    step: int = 0
    tokens: int = 0
    losses: list[float] = field(default_factory=list)
    best_score: float = -2.0
    best_step: int = 0
    best_weights: dict[str, Tensor] | None = None
    threshold: float = 0.5
    waited: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    evaluation_seconds: float = 0.0
    seconds: float = 0.0
    resumed: int = 0
