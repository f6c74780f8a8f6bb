"""A toy run of two processes through torch's launcher, and the losses that a run wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from trainer.train.progress import read_metrics

GOLDEN = json.loads(
    (Path(__file__).parent.parent / "trainer" / "golden_toy_curve.json").read_text()
)["loss"]


def curve(out: Path) -> list[float]:
    return [
        line["loss"] for line in read_metrics(out / "metrics.jsonl") if line["event"] == "train"
    ]


def two_processes(out: Path, overrides: list[str], *more: str) -> None:
    launcher = (
        "-m torch.distributed.run --standalone --nproc-per-node 2 -m biobench pretrain "
        "toy_detour --quiet"
    )
    command = [sys.executable, *launcher.split(), "--out", str(out), *more]
    for text in overrides:
        command += ["--set", text]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
