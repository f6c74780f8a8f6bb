"""Needle runs, pretraining runs and an analysis for the views of the board."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biobench.schema.document import Document
from biobench.schema.needle import ABSENT, PRESENT, GridCell, example_id
from tests.helpers import needle_make
from tests.helpers.ledger_make import ledger, write
from tests.helpers.store_make import weights_hash

LENGTHS = (512, 1024, 2048, 4096)


def save_needle(
    results: Path, model: str, window: int, level: float, task: str = "needle_fr", pairs: int = 6
) -> None:
    """Two seeds of a needle run: right with a chance that falls with length, nothing read beyond
    the window.
    """
    cells = [GridCell(n, p, "drug") for n in LENGTHS if n <= window for p in needle_make.POSITIONS]
    gold = [
        Document(
            example_id("fr", cell, i, label),
            f"{cell.length}-{cell.position}-{i}",
            "",
            "test",
            labels=(label,),
        )
        for cell in cells
        for i in range(pairs)
        for label in (PRESENT, ABSENT)
    ]
    for seed in (42, 43):
        chance = random.Random(f"{model}{seed}")

        def right(document: Document, chance: random.Random = chance) -> bool:
            return chance.random() < level - 0.08 * math.log2(
                needle_make.cell(document).length / 512
            )

        needle_make.save_needle(
            results, model, seed, right, window=window, task=task, gold=gold, lengths=LENGTHS
        )


def save_pretraining(
    folder: Path, steps: int = 120, models: Mapping[str, str] | None = None
) -> None:
    """A detour, its twin and an analysis of the two. models: run -> benchmarked model that it
    exported.
    """
    hashes = {run: weights_hash(model) for run, model in (models or {}).items()}
    for name, floor, objective in (("detour", 1.9, "clm"), ("twin", 1.6, "mlm")):
        chance = random.Random(name)
        about = {
            "phase": "detour",
            "learning_rate": 3e-4,
            "tokens_per_second": 84_000.0,
            "mfu": None,
        }
        lines = []
        for step in range(1, steps + 1):
            loss = floor + 4 * math.exp(-step / 25)
            at = {"event": "train", "total_step": step, "tokens": 131_072 * step, **about}
            lines.append(at | {"loss": loss + chance.gauss(0, 0.03)})
            lines += [at | {"event": "evaluation", "loss": loss + 0.05}] if step % 20 == 0 else []
        run = folder / name
        write(run / "ledger.json", ledger(name, objective, model_hash=hashes.get(name)))
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "cka.json").write_text(json.dumps(cka()))


def cka(layers: int = 6) -> dict[str, Any]:
    """What `biobench analyze cka --json` prints, in miniature."""

    def value(middle: float, half: float) -> dict[str, float]:
        return {"value": middle, "low": middle - half, "high": middle + half}

    def line(where: str, share: float) -> dict[str, Any]:
        about = {"where": where, "layers": [0], "estimator": "debiased", "similarity": 1 - share}
        about |= {
            "divergence": value(share, 0.02),
            "seeds": {"42": share},
            "ratio": value(3.0, 0.6),
        }
        return about | {"noise": value(share / 3, 0.01), "noise_pairs": [share / 3]}

    lines = [line(str(i), 0.1 + 0.04 * i) for i in range(layers)]
    lines += [line(name, 0.2) for name in ("low", "mid", "late", "all")]
    detour, twin, noise = (f"runs/{name}/model" for name in ("detour", "twin", "noise"))
    about = {
        "pair": [detour, twin],
        "noise": [[twin, noise]],
        "texts": 200,
        "states": "mean",
        "notes": [],
    }
    return about | {"lines": lines}
