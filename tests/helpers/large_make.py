"""A large results folder: every task of the shipped suites, written without fsync so that making it
is quick.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from biobench.reporting.tasks import shipped
from biobench.store import run_key
from tests.helpers.store_make import record, shipped_identity, write_runs

MODELS, SEEDS = 200, range(42, 51)


def save_large(results: Path, models: int = MODELS, seeds: Iterable[int] = SEEDS) -> None:
    """Runs of this many models on every task that counts in a suite, scores drawn around a level of
    each.
    """
    base, chance = record(), random.Random(0)
    for info in (i for i in shipped().values() if i.in_suite):
        task = base.task.model_copy(update={"id": info.id, **shipped_identity(info.id)})
        for number in range(models):
            model = base.model.model_copy(update={"id": f"org/model-{number}", "hash": str(number)})
            level, runs = 0.3 + 0.4 * chance.random(), []
            for seed in seeds:
                key = run_key(
                    model_hash=model.hash,
                    task_hash=task.hash,
                    data_hash="d",
                    seed=seed,
                    precision="fp32",
                )
                scores = dict.fromkeys(
                    ("macro_f1", "micro_f1", "weighted_f1"), level + 0.02 * chance.random()
                )
                about = {"key": key, "seed": seed, "model": model, "task": task, "scores": scores}
                runs.append(base.model_copy(update=about))
            write_runs(results, runs)
