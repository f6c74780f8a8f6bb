"""A large results folder: every task of the shipped suites, written without fsync so that making it is quick."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from pathlib import Path

from biobench.report.tasks import shipped
from biobench.store import run_key
from biobench.store.records import to_json
from biobench.store.tables import to_parquet
from tests.helpers.store_make import documents, predictions, record

MODELS, SEEDS = 200, range(42, 51)


def save_large(results: Path, models: int = MODELS, seeds: Iterable[int] = SEEDS) -> None:
    """Runs of this many models on every task that counts in a suite, scores drawn around a level of each."""
    base, table, chance = record(), to_parquet(documents(), predictions()), random.Random(0)
    for info in (i for i in shipped().values() if i.in_suite):
        source, spec = next(iter(info.hashes.items()))
        task = base.task.model_copy(
            update={
                "id": info.id,
                "hash": spec,
                "source": source,
                "corpus": info.corpus,
                "language": info.language,
                "paper": info.paper,
            }
        )
        runs = results / "runs" / info.id
        runs.mkdir(parents=True)
        for number in range(models):
            model = base.model.model_copy(update={"id": f"org/model-{number}", "hash": str(number)})
            level = 0.3 + 0.4 * chance.random()
            for seed in seeds:
                key = run_key(model_hash=model.hash, task_hash=spec, data_hash="d", seed=seed, precision="fp32")
                score = level + 0.02 * chance.random()
                made = base.model_copy(
                    update={
                        "key": key,
                        "seed": seed,
                        "model": model,
                        "task": task,
                        "scores": {"macro_f1": score, "micro_f1": score, "weighted_f1": score},
                        "predictions": f"runs/{info.id}/{key}.parquet",
                    }
                )
                path = runs / f"{key}.json"
                path.write_bytes(to_json(made, path))
                path.with_suffix(".parquet").write_bytes(table)


if __name__ == "__main__":
    save_large(Path(sys.argv[1]))
