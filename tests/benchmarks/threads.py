"""How waiting threads should wait: milliseconds a training step under each setting, in alternation.

    python -m tests.benchmarks.threads [--width 384] [--rounds 2] [--seconds 2]

Each setting has a process of its own, because OpenMP reads it when it loads. Run it on free cores,
and again beside other work.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

SETTINGS: dict[str, dict[str, str]] = {
    "the library's own": {},
    "sleep at once": {"OMP_WAIT_POLICY": "PASSIVE"},
    "10,000 turns": {"GOMP_SPINCOUNT": "10000"},
    "1,000 turns": {"GOMP_SPINCOUNT": "1000"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}


def make_step(width: int) -> Callable[[], None]:
    """A step, forward, backward and AdamW, of an encoder of three layers on 16 x 40 tokens."""
    import torch

    torch.manual_seed(0)
    heads = max(4, width // 32)
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(encoder.parameters(), 1e-4)
    batch = torch.randn(16, 40, width)

    def step() -> None:
        encoder(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    return step


def measure(width: int, seconds: float) -> None:
    """Print wall and processor milliseconds of a step in this process."""
    step = make_step(width)
    began, worked, steps = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds:
        step()
        steps += 1
    wall, processor = time.perf_counter() - began, time.process_time() - worked
    print(f"{1000 * wall / steps:.0f} ms a step, {1000 * processor / steps:.0f} of processor time")


def main() -> None:
    """Run every setting in turn."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.threads", description=__doc__)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.width, options.seconds)
        return
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_", "MKL_"))
    }
    for turn in range(options.rounds):
        for name, setting in SETTINGS.items():
            command = [sys.executable, "-m", "tests.benchmarks.threads", "--measure"]
            command += ["--width", str(options.width), "--seconds", str(options.seconds)]
            done = subprocess.run(
                command, env=clean | setting, capture_output=True, text=True, check=True
            )
            print(f"round {turn + 1}, load {os.getloadavg()[0]:.1f}, {name}: {done.stdout.strip()}")


if __name__ == "__main__":
    main()
