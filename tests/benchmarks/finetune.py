"""Our fine-tuning against the HF Trainer, in alternation on one machine: prints seconds and ratios.

    python -m tests.benchmarks.finetune MODEL --data-dir DIR [--rounds 3] [--seeds 42,43] [--threads 2]

Same checkpoint, sentences (the first 800 of NCBI-disease after a fixed shuffle), batch, epochs, optimiser and
seeds, and the same work: validation is scored after each epoch, the best epoch's weights predict the test
split. A round trains every seed once with each contender, in an order that turns from round to round, each in
a process of its own. Whole seconds include tokenisation, loading and prediction, not the imports. The ratio
is the median over rounds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from typing import Any

import torch

from biobench.core.machine import resolve_precision
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.finetune.engine import finetune, load_encoder
from biobench.finetune.prepare import prepare
from biobench.models.loading import find_checkpoint, load_tokenizer, quiet_libraries, window
from tests.benchmarks.peer import train_peer

CONTENDERS: dict[str, dict[str, bool] | None] = {
    "biobench": None,
    "trainer defaults (fp32)": {},
    "trainer bf16": {"bf16": True},
    "trainer bf16, length grouping": {"bf16": True, "group_by_length": True},
}


def contend(flags: dict[str, bool] | None, arguments: argparse.Namespace) -> tuple[float, list[float]]:
    """Seconds and test micro F1 per seed of one contender; flags None is ours."""
    torch.set_num_threads(arguments.threads)
    quiet_libraries()
    task = load_task("ncbi_disease_single", [f"training.epochs={arguments.epochs}"])
    data = load_data(task, arguments.data_dir, arguments.sentences)
    if flags is not None:
        options: dict[str, Any] = {"epochs": arguments.epochs, "select": True, **flags}
        runs = [train_peer(arguments.model, task.spec, data, seed, **options) for seed in arguments.seeds]
        return sum(r.seconds for r in runs), [r.scores["micro_f1"] for r in runs]
    began = time.perf_counter()
    cpu = torch.device("cpu")
    checkpoint = find_checkpoint(arguments.model)
    loaded, tokenizer = load_encoder(checkpoint, cpu), load_tokenizer(checkpoint)
    size = window(tokenizer, checkpoint.config, task.spec.protocol.max_length)
    prepared = prepare(task.spec, data, tokenizer, size)
    precision = resolve_precision("auto", cpu)
    scores = []
    for seed in arguments.seeds:
        outcome = finetune(loaded, prepared, seed, precision, lambda *_: None)
        scores.append(prepared.score(prepared.test.documents, outcome.predictions).values["micro_f1"])
    return time.perf_counter() - began, scores


def main() -> None:
    """Parse, train in alternation, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=lambda text: [int(s) for s in text.split(",")], default=[42, 43])
    parser.add_argument("--sentences", type=int, default=800)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    names = list(CONTENDERS)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    scores: dict[str, list[float]] = {}
    start = multiprocessing.get_context("spawn")
    for round_ in range(arguments.rounds):
        for name in names[round_ % len(names) :] + names[: round_ % len(names)]:
            with start.Pool(1) as process:
                took, scores[name] = process.apply(contend, (CONTENDERS[name], arguments))
            seconds[name].append(took)
            shown = " ".join(f"{100 * score:.1f}" for score in scores[name])
            print(f"round {round_ + 1} {name}: {took:.1f} s, micro F1 {shown}", flush=True)
    for name in names:
        ratio = statistics.median(t / o for t, o in zip(seconds[name], seconds["biobench"], strict=True))
        mean = 100 * statistics.fmean(scores[name])
        print(f"{name}: median {statistics.median(seconds[name]):.1f} s, {ratio:.2f} x ours, mean micro F1 {mean:.1f}")


if __name__ == "__main__":
    main()
