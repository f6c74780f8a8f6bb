"""Splits for training scripts of one's own: in Python, as JSON Lines, and the example script with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.cli_make import Run

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "own_training.py"


def test_rows_hold_the_gold_in_the_form_of_predictions(biobench: Run, tmp_path: Path) -> None:
    biobench("data", "export", "demo_ner", "--split", "test", "--out", "test.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows[0]["tokens"]) == len(rows[0]["tags"])
    answers = [{"document": row["document"], "spans": row["spans"]} for row in rows]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers), encoding="utf-8")
    said = biobench(
        "score", "--predictions", "gold.jsonl", "--task", "demo_ner", "--model", "me", "--no-gate", "--json"
    )
    assert said.json()[0]["scores"]["macro_f1"] == 1.0


def test_the_example_script_trains_and_is_scored(biobench: Run, tiny: Path, tmp_path: Path) -> None:
    for split in ("train", "validation", "test"):
        biobench("data", "export", "demo_topic", "--split", split, "--out", f"{split}.jsonl").ok()
    quiet = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(tmp_path / "cache"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run([sys.executable, EXAMPLE, tiny], cwd=tmp_path, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    biobench("score", "--predictions", "predictions.jsonl", "--task", "demo_topic", "--model", "me", "--no-gate").ok()
