"""What a run is between two of its steps, for the loop and its savepoints."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import torch
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

    def saved(self, seconds: float) -> dict[str, Any]:
        """As a savepoint keeps it. seconds: of the run so far."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return values | {"seconds": seconds}

    def resume(self, saved: dict[str, Any], device: torch.device) -> None:
        """Go on from what `saved` returned, with the best weights on this device."""
        for name, value in saved.items():
            setattr(self, name, value)
        self.resumed += 1
        best_weights = self.best_weights or {}
        for name, weights in best_weights.items():
            best_weights[name] = weights.to(device)
