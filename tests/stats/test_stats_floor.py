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
    command = [sys.executable, "-m", "tests.benchmarks.statistics", "--models", "2", "--seeds", "2", "--draws", "50"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "2 models x 19 tasks x 2 seeds" in shown
    assert "peak memory" in shown
