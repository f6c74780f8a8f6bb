"""A plan of several tasks with the next one tokenised while one trains, and with each tokenised at its turn.

    python -m tests.benchmarks.ahead MODEL --task bc5cdr --task anatem --task ddi --data-dir DIR [--rounds 3]

Contenders: in turn; a process (what `biobench run` does where a CPU is to spare); a thread, which shares Python's lock
with training. They alternate, each in a fresh process with a results folder of its own. Printed: wall seconds of the
plan's runs (planning and imports left out), CPU seconds of this process and of its children, and in each round how many
times as long as with a process the others took. The scores must be equal.

--device-seconds S replaces training by S seconds of sleep a run: a device that needs nothing of the host, which bounds
what such a device can gain. --tokens-only prints what tokenising and reading back cost a million characters.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

MODES = ("in turn", "process", "thread")


def measure(options: argparse.Namespace, mode: str) -> dict[str, Any]:
    """Make the plan's runs in this process."""
    import torch

    from biobench.errors import TrainingError
    from biobench.finetune.ahead import Ahead, NextTask, tokenise
    from biobench.runs import execute, workshop
    from biobench.runs.api import run_plan
    from biobench.runs.execute import Silent
    from biobench.runs.plan import RunRequest, make_plan

    class InThread(Ahead):
        """The same work in a thread."""

        def begin(self, task: NextTask) -> bool:
            threading.Thread(target=tokenise, args=(replace(task, memory=None),), daemon=True).start()
            return True

    def sleep(*_: Any) -> None:
        time.sleep(options.device_seconds)
        raise TrainingError("nothing was trained", hint="this is a stand-in")

    torch.set_num_threads(options.threads)
    workshop.spare_cpus = lambda busy: 0 if mode == "in turn" else 1  # type: ignore[attr-defined]
    if mode == "thread":
        workshop.Ahead = InThread  # type: ignore[attr-defined,misc]
    if options.device_seconds is not None:
        execute.finetune = sleep  # type: ignore[attr-defined]
    with TemporaryDirectory() as folder:
        plan = make_plan(
            RunRequest(
                model=options.model,
                tasks=options.task,
                seeds=options.seeds,
                data_dir=options.data_dir,
                results_dir=folder,
                device="cpu",
                overrides=options.set,
                gate=False,
            )
        )
        began, worked = time.perf_counter(), time.process_time()
        results = run_plan(plan, Silent())
        wall, cpu = time.perf_counter() - began, time.process_time() - worked
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    wanted = "done" if options.device_seconds is None else "failed"
    assert {r.status for r in results} == {wanted}, [(r.task, r.reason) for r in results]
    return {
        "wall": wall,
        "cpu": cpu,
        "below": below.ru_utime + below.ru_stime,
        "scores": [[r.task, r.seed, r.scores] for r in results],
    }


def tokens_only(options: argparse.Namespace) -> None:
    """Seconds that tokenising, naming and reading back cost, and bytes on disk, a million characters."""
    from biobench.data.catalog import load_task
    from biobench.data.load import load_data
    from biobench.finetune import token_cache
    from biobench.finetune.prepare import prepare
    from biobench.finetune.token_cache import TokenCache
    from biobench.kinds import get_kind
    from biobench.models.loading import find_checkpoint, load_tokenizer, window

    checkpoint = find_checkpoint(options.model)
    tokenizer = load_tokenizer(checkpoint)
    for name in options.task:
        task = load_task(name, options.set)
        began = time.process_time()
        data = load_data(task, options.data_dir)
        reading = time.process_time() - began
        size = window(tokenizer, checkpoint.config, task.spec.protocol.max_length)
        kind, documents = get_kind(task.spec.type), data.train
        millions = sum(len(d.text) + len(d.query) for d in documents) / 1e6
        with TemporaryDirectory() as folder:
            cache = TokenCache(Path(folder), least=0)
            spent = []
            for cut in (kind.cut, *[lambda *a, c=cache, k=kind: c.cut(k, *a)] * 2):
                began = time.process_time()
                cut(task.spec, documents, tokenizer, size)
                spent.append(time.process_time() - began)
            began = time.process_time()
            token_cache._path(cache.folder, kind, task.spec, documents, tokenizer, size)
            naming = time.process_time() - began
            files = sum(f.stat().st_size for f in Path(folder).glob("*.npy"))
        began = time.process_time()
        prepare(task.spec, data, tokenizer, size)
        whole = time.process_time() - began
        print(
            f"{name}: {millions:.2f} million characters in {len(documents)} training documents; CPU seconds a million: "
            f"tokenised {spent[0] / millions:.2f}, tokenised and kept {spent[1] / millions:.2f}, "
            f"read {spent[2] / millions:.2f} (naming {naming / millions:.2f}); {files / millions / 1e6:.1f} MB; "
            f"all splits: read from the corpus {reading:.2f} s, prepared {whole:.2f} s",
            flush=True,
        )


def main() -> None:
    """Parse, measure in alternation, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ahead", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--task", action="append", required=True)
    parser.add_argument("--data-dir", default=os.environ.get("BIOBENCH_DATA_DIR"))
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device-seconds", type=float)
    parser.add_argument("--tokens-only", action="store_true")
    parser.add_argument("--measure", choices=MODES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options, options.measure)))
        return
    if options.tokens_only:
        tokens_only(options)
        return
    ratios: dict[str, list[float]] = {mode: [] for mode in MODES}
    for turn in range(options.rounds):
        seen = {}
        for mode in MODES[turn % len(MODES) :] + MODES[: turn % len(MODES)]:
            command = [sys.executable, "-m", "tests.benchmarks.ahead", *sys.argv[1:], "--measure", mode]
            env = os.environ | {"OMP_NUM_THREADS": str(options.threads), "TOKENIZERS_PARALLELISM": "false"}
            load = os.getloadavg()[0]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            seen[mode] = json.loads(done.stdout.splitlines()[-1])
            print(
                f"round {turn + 1}, load {load:.1f}, {mode}: wall {seen[mode]['wall']:.2f} s, CPU "
                f"{seen[mode]['cpu']:.2f} s and {seen[mode]['below']:.2f} s below",
                flush=True,
            )
        assert all(run["scores"] == seen["in turn"]["scores"] for run in seen.values()), "the scores differ"
        for mode in MODES:
            ratios[mode].append(seen[mode]["wall"] / seen["process"]["wall"])
    for mode in ("in turn", "thread"):
        each = ", ".join(f"{r:.3f}" for r in ratios[mode])
        print(f"{mode} / process: median {statistics.median(ratios[mode]):.3f} ({each})")


if __name__ == "__main__":
    main()
