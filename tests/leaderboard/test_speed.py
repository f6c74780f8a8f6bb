"""200 models x all suite tasks x 9 seeds: how long a start and a filter take (run by hand: `pytest -m slow -s`)."""

from __future__ import annotations

import random
import time

import pytest

from biobench.comparison.placing import place
from biobench.report.table import build, fingerprint, load
from biobench.report.tasks import shipped
from biobench.report.wide import blocks
from biobench.store import run_key
from biobench.store.records import to_json
from biobench.store.tables import to_parquet
from leaderboard.table import to_cards, to_frame
from leaderboard.words import words
from tests.helpers.store_make import documents, predictions, record

MODELS, SEEDS = 200, range(42, 51)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records written without fsync, or making them would take longer than all else."""
    results = tmp_path_factory.mktemp("big")
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
        for number in range(MODELS):
            model = base.model.model_copy(update={"id": f"org/model-{number}", "hash": str(number)})
            level = 0.3 + 0.4 * chance.random()
            for seed in SEEDS:
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
    return results


def _table(block):
    return to_frame(block, block.lines, {}, {}, words("en")), to_cards(block.lines, {}, words("en"))


@pytest.mark.slow
def test_start_and_filter(folder):
    def timed(what, call):
        start = time.perf_counter()
        found = call()
        taken = time.perf_counter() - start
        print(f"{what}: {taken:.2f} s")
        return found, taken

    (_, first) = timed("first read, index made", lambda: load(folder))
    timed("fingerprint", lambda: fingerprint(folder))
    (held, opened) = timed("read from the index", lambda: load(folder))
    (_, built) = timed("rows of an average", lambda: build(held, "macro"))
    names = {f"org/model-{i}" for i in range(50)}
    (report, filtered) = timed("filter", lambda: build(held, "macro", suites=["fr"], models=names))
    (_, drawn) = timed("draw", lambda: [_table(b) for b in blocks(report)])
    assert len(held.groups) == MODELS * len([i for i in shipped().values() if i.in_suite])
    assert opened < first / 3
    assert filtered + drawn < 0.3
    names = [f"org/model-{i}" for i in range(MODELS)]
    timed("ranks of the first models", lambda: place(held, names, "macro", suite="fr"))
    timed("ranks again", lambda: place(held, names, "macro", suite="fr"))
    print(f"start: {opened + built:.2f} s")
