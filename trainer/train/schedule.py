"""Learning rate as a pure function of the tokens seen in a phase."""

from __future__ import annotations

import math

from trainer.recipe.phases import Phase


def factor(phase: Phase, step: int, *, steps: int, step_tokens: int) -> float:
    """The multiple of the peak rate at `step` (from 0) of a phase of `steps` steps.

    Warm-up rises linearly and reaches 1 with the step that completes it. Cooldown by
    ``final + (1 - final) * g(x)``, x being the part of the cooldown that is over before the step:
    g = 1 - sqrt(x), 1 - x, or the half cosine (the 1-sqrt form as in the code lineage of the paper).
    """
    schedule = phase.schedule
    total = steps * step_tokens
    if (step + 1) * step_tokens <= schedule.warmup:
        return (step + 1) * step_tokens / schedule.warmup
    if schedule.shape == "constant":
        return 1.0
    length = schedule.cooldown or total - schedule.warmup
    x = max(0.0, (step * step_tokens - (total - length)) / length)
    shapes = {"1-sqrt": 1 - math.sqrt(x), "linear": 1 - x, "cosine": 0.5 * (1 + math.cos(math.pi * x))}
    return schedule.final + (1 - schedule.final) * shapes[schedule.shape]
