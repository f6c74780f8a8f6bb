"""`biobench speed`."""

from __future__ import annotations

from typing import Annotated

import typer

from biobench.cli.console.arguments import Device, Json, Offline, Threads
from biobench.cli.console.output import answer
from biobench.errors import UsageError


def speed(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Hub id, id@revision, or local folder.")
    ],
    *,
    lengths: Annotated[
        str, typer.Option("--lengths", help="Document lengths in tokens.")
    ] = "128,512",
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Documents a step.")] = 16,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps that are measured.")] = 5,
    device: Device = "auto",
    threads: Threads = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Fine-tuning and inference throughput, and memory, by document length."""
    numbers = lengths.split(",")
    if not all(p.strip().isdecimal() for p in numbers):
        raise UsageError(
            f"--lengths '{lengths}' is not understood", hint="write whole numbers, such as 128,512"
        )
    from dataclasses import asdict

    from biobench.models.loading import quiet_libraries
    from biobench.runs.speed import measure

    quiet_libraries()
    lines = measure(
        model,
        [int(p) for p in numbers],
        batch_size=batch_size,
        steps=steps,
        device=device,
        offline=offline,
    )
    words = (
        f"{line.model}, {line.parameters / 1e6:.1f}M parameters, {line.length} tokens x "
        f"{line.batch_size}: "
        f"training {line.train_tokens_per_second:,.0f} tokens/s, "
        f"inference {line.inference_tokens_per_second:,.0f} tokens/s, "
        f"peak {line.peak_memory_bytes / 2**20:,.0f} MiB ({line.precision}, {line.attention})"
        for line in lines
    )
    answer(as_json, [asdict(line) for line in lines], words)
