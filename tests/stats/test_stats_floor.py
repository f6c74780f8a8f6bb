"""The benchmark of the statistics runs."""

from __future__ import annotations

import subprocess
import sys


def test_the_benchmark_runs_small():
    command = [sys.executable, "-m", "tests.benchmarks.statistics", "--models", "3", "--seeds", "2"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "3 models x 21 tasks x 2 seeds" in shown
    assert "possible ranks: 3–3, 2–2, 1–1" in shown
