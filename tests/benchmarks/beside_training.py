"""How much a training step waits for documents that are tokenised meanwhile, by a thread and by a process.

    python -m tests.benchmarks.beside_training MODEL --task bc5cdr --data-dir DIR [--rounds 6] [--seconds 2]

MODEL gives the tokenizer. A step is forward, backward and AdamW of an encoder of three layers on 16 x 40 tokens with
one thread, as in `tests.benchmarks.threads`. The three settings alternate within one process, the tokenising process
being suspended where it is not wanted. Printed: the median wall milliseconds of a step, and the CPU milliseconds of the
training thread, which depend little on what else wants the CPU. Two free cores are needed to tell anything.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import statistics
import threading
import time
from typing import Any

SETTINGS = ("nothing", "process", "thread")


def tokenise(model: str, task: str, data_dir: str | None, ready: Any, wanted: Any) -> None:
    """Tokenise the task's training documents again and again, while `wanted` is set."""
    from biobench.core.tokenizer import load_tokenizer
    from biobench.data.catalog import load_task
    from biobench.data.load import load_data
    from biobench.kinds import get_kind

    loaded = load_task(task)
    documents, tokenizer = load_data(loaded, data_dir).train, load_tokenizer(model)
    ready.set()
    while True:
        wanted.wait()
        get_kind(loaded.spec.type).cut(loaded.spec, documents[:200], tokenizer, 512)


def steps(width: int, seconds: float) -> tuple[list[float], list[float]]:
    """Wall and CPU seconds of each step."""
    import torch

    torch.set_num_threads(1)
    layer = torch.nn.TransformerEncoderLayer(width, max(4, width // 32), 4 * width, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(encoder.parameters(), 1e-4)
    batch = torch.randn(16, 40, width)
    wall, cpu = [], []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        began, worked = time.perf_counter(), time.thread_time()
        encoder(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        wall.append(time.perf_counter() - began)
        cpu.append(time.thread_time() - worked)
    return wall[1:], cpu[1:]


def main() -> None:
    """Parse, measure in alternation, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.beside_training", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--task", default="bc5cdr")
    parser.add_argument("--data-dir", default=os.environ.get("BIOBENCH_DATA_DIR"))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--width", type=int, action="append")
    options = parser.parse_args()
    about = (options.model, options.task, options.data_dir)
    context = multiprocessing.get_context("spawn")
    ready, always = context.Event(), context.Event()
    always.set()
    process = context.Process(target=tokenise, args=(*about, ready, always), daemon=True)
    process.start()
    ready.wait()
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    here, wanted = threading.Event(), threading.Event()
    threading.Thread(target=tokenise, args=(*about, here, wanted), daemon=True).start()
    here.wait()
    for width in options.width or (64,):
        seen: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in SETTINGS}
        for turn in range(options.rounds):
            for name in SETTINGS[turn % 3 :] + SETTINGS[: turn % 3]:
                if name == "process":
                    os.kill(process.pid, signal.SIGCONT)
                if name == "thread":
                    wanted.set()
                wall, cpu = steps(width, options.seconds)
                wanted.clear()
                os.kill(process.pid, signal.SIGSTOP)
                seen[name][0].extend(wall)
                seen[name][1].extend(cpu)
        for name, (wall, cpu) in seen.items():
            middle, work = (1000 * statistics.median(times or [float("nan")]) for times in (wall, cpu))
            what = f"width {width}, load {os.getloadavg()[0]:.1f}, beside {name}"
            print(f"{what}: {middle:.1f} ms a step, CPU {work:.1f} ({len(wall)} steps)", flush=True)
    process.kill()


if __name__ == "__main__":
    main()
