"""The statistics stand on the ground floor: arrays in, numbers out, nothing of the rest of the package."""

from __future__ import annotations

import subprocess
import sys

SHOW = """
import sys
import biobench.stats
ours = {name for name in sys.modules if name.startswith("biobench.")}
print(sorted(n for n in ours if not n.startswith("biobench.stats") and n != "biobench.errors"))
print("torch" in sys.modules, "transformers" in sys.modules)
"""


def test_imports_only_errors_and_no_torch():
    shown = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True).stdout
    assert shown.split("\n")[:2] == ["[]", "False False"]


def test_the_benchmark_runs_small():
    command = [sys.executable, "-m", "tests.benchmarks.statistics", "--models", "3", "--seeds", "2"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "3 models x 21 tasks x 2 seeds" in shown
    assert "possible ranks: 3–3, 2–2, 1–1" in shown
