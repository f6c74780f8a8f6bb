"""Budgets of processor time that hold on slower processors too."""

from __future__ import annotations

import time
from functools import cache

REFERENCE = 0.02
"""Processor seconds of `_work` on the machine on which the tests' budgets were set."""


def budget(seconds: float) -> float:
    """What takes `seconds` on the reference may take so long on this processor; never less."""
    return seconds * max(1.0, _seconds_of_work() / REFERENCE)


@cache
def _seconds_of_work() -> float:
    return min(_work() for _ in range(5))


def _work() -> float:
    began = time.process_time()
    total = 0
    for number in range(400_000):
        total += number * number % 7
    return time.process_time() - began
