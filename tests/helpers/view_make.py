"""Folders that fill every view: runs on all tasks of a suite, needle runs, pretraining runs and an analysis."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biobench.report.tasks import shipped
from biobench.schema.document import Document, Prediction
from biobench.schema.needle import ABSENT, PRESENT, GridCell, example_id
from biobench.score import scored
from biobench.store import Store, run_key
from tests.helpers.ledger_make import ledger, write
from tests.helpers.report_make import save_runs
from tests.helpers.store_make import record, weights_hash

LENGTHS = (512, 1024, 2048, 4096)
POSITIONS = ("start", "middle", "end")


def save_suites(results: Path, models: dict[str, float], seeds: tuple[int, ...] = (42, 43, 44)) -> None:
    """Each model on every task of both suites, around its level, the same seeds."""
    chance = random.Random(5)
    for task in (i.id for i in shipped().values() if i.in_suite and i.suite in ("fr", "en")):
        hard = chance.uniform(-0.12, 0.15)
        for model, level in models.items():
            own = level + hard + chance.gauss(0, 0.008)
            save_runs(results, model, task, {s: min(0.99, own + chance.gauss(0, 0.006)) for s in seeds})


def save_needle(results: Path, model: str, window: int, level: float, task: str = "needle_fr", pairs: int = 6) -> None:
    """Two seeds of a needle run: right with a chance that falls with length, nothing read beyond the window."""
    info = shipped()[task]
    source, spec = next(iter(info.hashes.items()))
    cells = [GridCell(n, p, "drug") for n in LENGTHS for p in POSITIONS]
    gold = [
        Document(example_id("fr", cell, i, label), f"{cell.length}-{cell.position}-{i}", "", "test", labels=(label,))
        for cell in cells
        if cell.length <= window
        for i in range(pairs)
        for label in (PRESENT, ABSENT)
    ]
    for seed in (42, 43):
        chance = random.Random(f"{model}{seed}")
        said = []
        for number, document in enumerate(gold):
            right = chance.random() < level - 0.08 * math.log2(cells[number // (2 * pairs)].length / 512)
            other = ABSENT if document.labels[0] == PRESENT else PRESENT
            said.append(Prediction(document=document.id, labels=document.labels if right else (other,)))
        base = record(model=model, task=task, seed=seed, language="fr", score=False)
        identity = base.task.model_copy(
            update={
                "hash": spec,
                "source": source,
                "type": "needle",
                "labels": (PRESENT, ABSENT),
                "gold_labels": (PRESENT, ABSENT),
                "corpus": info.corpus,
                "paper": info.paper,
                "test_documents": len(gold),
            }
        )
        key = run_key(model_hash=base.model.hash, task_hash=spec, data_hash="d", seed=seed, precision="fp32")
        made = base.model_copy(
            update={
                "key": key,
                "task": identity,
                "protocol": {"reader": {"lengths": list(LENGTHS)}},
                "windows": base.windows.model_copy(update={"max_length": window}),
            }
        )
        Store(results).save(scored(made, gold, said), gold, said)


def metrics_line(step: int, total: int, loss: float, **fields: Any) -> dict[str, Any]:
    """One line as the trainer writes it."""
    first = step <= total // 2
    return {
        "event": "train",
        "total_step": step,
        "phase": "detour" if first else "decay",
        "objective": "clm" if first else "mlm",
        "step": step,
        "tokens": 131_072 * step,
        "loss": loss,
        "learning_rate": 3e-4 if first else 3e-4 * max(0.0, 1 - (step - total // 2) / (total // 2)),
        "gradient_norm": 1.0,
        "targets": 39_000,
        "tokens_per_second": 84_000.0 + 900 * math.sin(step),
        "mfu": None,
        "memory_bytes": 1,
        "seconds": 1.5 * step,
    } | fields


def save_pretraining(folder: Path, steps: int = 120, models: Mapping[str, str] | None = None) -> None:
    """A detour, its twin and an analysis of the two. models: run -> benchmarked model that it exported."""
    hashes = {run: weights_hash(model) for run, model in (models or {}).items()}
    for name, floor, objective in (("detour", 1.9, "clm"), ("twin", 1.6, "mlm")):
        chance = random.Random(name)
        lines = []
        for step in range(1, steps + 1):
            lines.append(metrics_line(step, steps, floor + 4 * math.exp(-step / 25) + chance.gauss(0, 0.03)))
            if step % 20 == 0:
                loss = floor + 0.05 + 4 * math.exp(-step / 25)
                lines.append(metrics_line(step, steps, loss) | {"event": "evaluation"})
        run = folder / name
        write(run / "ledger.json", ledger(name, objective, model_hash=hashes.get(name)))
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "cka.json").write_text(json.dumps(cka()))


def cka(layers: int = 6) -> dict[str, Any]:
    """What `biobench analyze cka --json` prints, in miniature."""

    def value(middle: float, half: float) -> dict[str, float]:
        return {"value": middle, "low": middle - half, "high": middle + half}

    def line(where: str, share: float) -> dict[str, Any]:
        return {
            "where": where,
            "layers": [0],
            "estimator": "debiased",
            "similarity": 1 - share,
            "divergence": value(share, 0.02),
            "seeds": {"42": share},
            "noise": value(share / 3, 0.01),
            "noise_pairs": [share / 3],
            "ratio": value(3.0, 0.6),
        }

    lines = [line(str(i), 0.1 + 0.04 * i) for i in range(layers)]
    lines += [line(name, 0.2) for name in ("low", "mid", "late", "all")]
    return {
        "pair": ["runs/detour/model", "runs/twin/model"],
        "noise": [["runs/twin/model", "runs/noise/model"]],
        "lines": lines,
        "texts": 200,
        "states": "mean",
        "notes": [],
    }


def fill(results: Path, pretraining: Path) -> None:
    """Everything: three models on both suites, two of them on the needle, pretraining runs."""
    save_suites(results, {"example/long-encoder": 0.72, "example/base-encoder": 0.69, "example/small-encoder": 0.61})
    save_needle(results, "example/long-encoder", 4096, 0.96)
    save_needle(results, "example/base-encoder", 1024, 0.9)
    _set_costs(results, {"long": (149_000_000, 310.0), "base": (110_000_000, 170.0), "small": (33_000_000, 60.0)})
    save_pretraining(pretraining, models={"detour": "example/long-encoder", "twin": "example/base-encoder"})


def _set_costs(results: Path, costs: dict[str, tuple[int, float]]) -> None:
    """Parameters and seconds a run, by a part of the model's name."""
    store = Store(results)
    for held in store.records():
        parameters, seconds = next(value for part, value in costs.items() if part in held.model.id)
        cost = held.cost.model_copy(update={"seconds": seconds, "peak_memory_bytes": 60 * parameters})
        model = held.model.model_copy(update={"parameters": parameters})
        # as much gold as corpora have: a score over three answers moves in thirds, and nothing is told apart
        labels = {label: row | {"support": 200.0} for label, row in held.per_label.items()}
        store.update(held.model_copy(update={"cost": cost, "model": model, "per_label": labels}))
